"""The objects that the servers in Python answer with: two modes that share nothing, the same at each start."""

import os
from datetime import datetime, timedelta, timezone
from uuid import UUID

LIMIT = 120
KEYS = {os.environ["SHOP_LIVE_KEY"]: "live", os.environ["SHOP_TEST_KEY"]: "test"}
START = datetime(2026, 3, 1, 9, 0, tzinfo=timezone.utc)


class Book:
    """What an account has in one mode, newest first."""

    def __init__(self, mode: str, count: int) -> None:
        self.mode = mode
        self._charges: list[dict] = []
        self._invoices: list[dict] = []
        self._events: list[dict] = []
        for number in range(count):
            self._open(number)
        for number in range(count // 3):
            self._issue(number)
        for rows in (self._charges, self._invoices, self._events):
            rows.reverse()

    def charges(self, **filters: str | None) -> list[dict]:
        return [row for row in self._charges if fits(row, filters)]

    def invoices(self, **filters: str | None) -> list[dict]:
        return [row for row in self._invoices if fits(row, filters)]

    def events(self, **filters: str | None) -> list[dict]:
        return [row for row in self._events if fits(row, filters)]

    def event(self, event_id: str) -> dict | None:
        return next((row for row in self._events if row["id"] == event_id), None)

    def _open(self, number: int) -> None:
        paid = number % 2 == 0
        opened = START + timedelta(hours=number)
        charge = {
            "code": f"{self.mode[0]}c{number:04}kqv",
            "status": "pending",
            "fiat_amount": f"{10 + number}.50",
            "fiat_currency": "EUR",
            "asset": "BTC",
            "asset_amount": "0.000250000000000000",
            "received_amount": "0.000000000000000000",
            "customer_email": None if number % 3 else "ann@tea.example",
            "description": f"Order {number}",
            "metadata": {"order": str(number)},
            "payment_link": f"{self.mode[0]}lnk0001" if number % 4 == 1 else None,
            "paid_at": None,
            "created_at": stamp(opened),
        }
        self._record(opened, "charge.created", charge=dict(charge))
        closed = opened + timedelta(minutes=11)
        if paid:
            charge |= {"status": "paid", "received_amount": charge["asset_amount"], "paid_at": stamp(closed)}
            self._record(closed, "charge.paid", charge=dict(charge), details={"amount": "0.00025"})
        else:
            charge["status"] = "expired"
            self._record(closed, "charge.expired", charge=dict(charge))
        self._charges.append(charge)

    def _issue(self, number: int) -> None:
        issued = START + timedelta(days=30, hours=number)
        invoice = {
            "code": f"{self.mode[0]}i{number:04}mnp",
            "number": f"2026-{number + 1:04}",
            "status": "open",
            "amount": "10.50",
            "currency": "EUR",
            "customer": {"name": "Ann Leerick", "email": "ann@tea.example"},
            "hosted_url": f"https://pay.example/i/{self.mode[0]}{number}",
            "charges": [],
            "created_at": stamp(issued),
        }
        self._record(issued, "invoice.created", invoice=dict(invoice))
        self._record(issued + timedelta(minutes=1), "invoice.sent", invoice=dict(invoice))
        if number % 2:
            invoice["status"] = "void"
            self._record(issued + timedelta(minutes=9), "invoice.voided", invoice=dict(invoice))
        else:
            charge = self._charges[number]
            invoice |= {"status": "paid", "charges": [{"code": charge["code"], "status": charge["status"]}]}
            self._record(issued + timedelta(minutes=9), "invoice.paid", invoice=dict(invoice))
        self._invoices.append(invoice)

    def _record(
        self,
        at: datetime,
        kind: str,
        charge: dict | None = None,
        invoice: dict | None = None,
        details: dict | None = None,
    ) -> None:
        # UUIDv7: the time, then what makes it one of its own.
        number = len(self._events) + (1 << 40 if self.mode == "live" else 1 << 41)
        millis = int(at.timestamp() * 1000)
        raw = millis << 80 | 0x7 << 76 | 0x9AB << 64 | 0x2 << 62 | number * 2_654_435_761 % (1 << 62)
        self._events.append(
            {
                "id": str(UUID(int=raw)),
                "type": kind,
                "details": details or {},
                "charge": charge,
                "invoice": invoice,
                "created_at": stamp(at),
            }
        )


def stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def fits(row: dict, filters: dict[str, str | None]) -> bool:
    """Whether a row passes: `charge` and `invoice` name an object by its code, the others are members."""
    for name, wanted in filters.items():
        if wanted is None:
            continue
        value = row.get(name)
        if (value["code"] if isinstance(value, dict) else value) != wanted:
            return False
    return True


books = {"live": Book("live", 34), "test": Book("test", 31)}
