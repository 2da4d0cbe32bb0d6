"""The payment service as a FastAPI project would write it: dependencies, Pydantic models, one exception handler.

Run with `uvicorn fastapi_shop:app --port PORT --no-access-log`. Objects live in memory and are the same at each start.
"""

import math
import time
from collections import defaultdict, deque
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, TypeVar
from uuid import UUID

from fastapi import Depends, FastAPI, HTTPException, Query, Request
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, Field

from shop import KEYS, LIMIT, Book, books

T = TypeVar("T")
app = FastAPI(title="Payments", version="1.0.0")
bearer = HTTPBearer(auto_error=False)
served: dict[str, deque[float]] = defaultdict(deque)


class Links(BaseModel):
    first: str
    last: str
    prev: str | None
    next: str | None


class Meta(BaseModel):
    current_page: int
    last_page: int
    per_page: int
    total: int


class Page(BaseModel, Generic[T]):
    data: list[T]
    links: Links
    meta: Meta


class Charge(BaseModel):
    code: str
    status: str
    fiat_amount: Decimal
    fiat_currency: str
    asset: str
    asset_amount: Decimal
    received_amount: Decimal
    customer_email: str | None
    description: str | None
    metadata: dict[str, Any]
    payment_link: str | None
    paid_at: datetime | None
    created_at: datetime


class Invoice(BaseModel):
    code: str
    number: str
    status: str
    amount: Decimal
    currency: str
    customer: dict[str, str]
    hosted_url: str
    charges: list[dict[str, str]]
    created_at: datetime


class Event(BaseModel):
    id: UUID
    type: str
    details: dict[str, Any]
    charge: Charge | None
    invoice: Invoice | None
    created_at: datetime


class Listing(BaseModel):
    page: Annotated[int, Field(ge=1)] = 1
    per_page: Annotated[int, Field(ge=1, le=100)] = 25


class Tenant(BaseModel):
    mode: Literal["live", "test"]

    @property
    def book(self) -> Book:
        return books[self.mode]


def tenant(credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]) -> Tenant:
    key = credentials.credentials if credentials else None
    mode = KEYS.get(key)
    if mode is None:
        raise HTTPException(401, "Invalid or missing API key", {"WWW-Authenticate": "Bearer"})
    now, window = time.monotonic(), served[key]
    while window and now - window[0] >= 60:
        window.popleft()
    if len(window) >= LIMIT:
        wait = math.ceil(60 - (now - window[0]))
        raise HTTPException(429, "Rate limit exceeded", {"Retry-After": str(max(wait, 1))})
    window.append(now)
    return Tenant(mode=mode)


Caller = Annotated[Tenant, Depends(tenant)]


def paginate(request: Request, listing: Listing, rows: list[dict]) -> dict:
    last = max(1, math.ceil(len(rows) / listing.per_page))
    start = (listing.page - 1) * listing.per_page

    def link(page: int) -> str:
        return str(request.url.include_query_params(page=page, per_page=listing.per_page))

    return {
        "data": rows[start : start + listing.per_page],
        "links": {
            "first": link(1),
            "last": link(last),
            "prev": link(listing.page - 1) if listing.page > 1 else None,
            "next": link(listing.page + 1) if listing.page < last else None,
        },
        "meta": {
            "current_page": listing.page,
            "last_page": last,
            "per_page": listing.per_page,
            "total": len(rows),
        },
    }


@app.get("/v1/account")
def account(caller: Caller) -> dict:
    return {
        "data": {
            "type": "organization",
            "profile": {"display_name": "Tea House", "support_email": "help@tea.example"},
            "default_currency": "EUR",
            "tolerances": {"underpayment": "1", "overpayment": "3"},
        },
        "meta": {"mode": caller.mode, "accepted_assets": ["BTC", "ETH"]},
    }


@app.get("/v1/charges")
def charges(
    request: Request,
    caller: Caller,
    listing: Annotated[Listing, Query()],
    status: str | None = None,
    payment_link: str | None = None,
) -> Page[Charge]:
    return paginate(request, listing, caller.book.charges(status=status, payment_link=payment_link))


@app.get("/v1/invoices")
def invoices(
    request: Request, caller: Caller, listing: Annotated[Listing, Query()], status: str | None = None
) -> Page[Invoice]:
    return paginate(request, listing, caller.book.invoices(status=status))


@app.get("/v1/events")
def events(
    request: Request,
    caller: Caller,
    listing: Annotated[Listing, Query()],
    type: str | None = None,
    charge: str | None = None,
    invoice: str | None = None,
) -> Page[Event]:
    return paginate(request, listing, caller.book.events(type=type, charge=charge, invoice=invoice))


@app.get("/v1/events/{event_id}")
def event(caller: Caller, event_id: str) -> Event:
    found = caller.book.event(event_id)
    if found is None:
        raise HTTPException(404, "Event not found")
    return found


@app.exception_handler(500)
def broken(_: Request, __: Exception) -> JSONResponse:
    return JSONResponse({"detail": "Internal Server Error"}, 500)
