"""What Schemathesis cannot read in the document: values of formats that the service narrows, and refusals that
depend on more than the request's schema.

The built-in check `positive_data_acceptance` lets 422 pass for the operations named in `schemathesis.toml`; the
check below takes its place there. For every refused field it wants a sentence that speaks of other objects, of other
fields (bodies are flat, because generators cannot read alternatives), of balances, of the clock, or of a number that
JSON Schema cannot narrow. Anything else is a request that the document allows and the server does not.
"""

import datetime
import re
from decimal import Decimal

import schemathesis
from hypothesis import strategies as st
from schemathesis import GenerationMode

ANCHOR = [("anchor", "selected anchor is invalid")]
ACCOUNT = [("account", "selected account is invalid")]
TXID = [("txid", "no chain has this transaction")]

CHARGE = [
    ("payment_link", "selected payment_link is invalid"),
    # An existing payment link has its own price, coins and questions; without one there is a price.
    ("(amount|currency|asset|custom_fields)", "The payment link"),
    ("amount", "must be at least|must not be greater than|amount field is required"),
    ("(customer.email|custom_fields)", "is required|only for payment links that ask"),
    # Large amounts of cheap coins do not exist, and lists of addresses run out.
    ("amount", "too large to be paid in"),
    ("asset", "no unused address left"),
]
REFUND = [("amount", "not refunded yet|decimal places|too large")]
LINK = [
    ("max_amount", "must be at least"),
    ("(amount|suggested_amounts|min_amount|max_amount)", "only for links with|amount field is required"),
    ("expires_at", "must be in the future"),
    ("custom_fields", "the same question twice"),
]
INVOICE = [
    ("amount", "greater than 0|amount field is required|together with items"),
    ("items", "add up to more"),
    (r"items\.\d+\.unit_amount", "too large for this quantity"),
    ("customer_email", "In test mode|required to send"),
    ("due_at", "must not be in the past"),
]
MOMENT = [
    ("(from.)?at", "give one of the two|the start of that world"),
    ("(from.)?(snapshot|world)", "selected|snapshot field is required"),
]

# By operation: a field, and the allowed error messages about it.
DEPENDS_ON_THE_REST = {
    "listCharges": ANCHOR,
    "listPaymentLinks": ANCHOR,
    "listInvoices": ANCHOR,
    "listEvents": ANCHOR,
    "lookListCharges": ANCHOR,
    "lookListPaymentLinks": ANCHOR,
    "lookListInvoices": ANCHOR,
    "lookListEvents": ANCHOR,
    "createCharge": CHARGE,
    "makeCharge": CHARGE,
    "refundCharge": REFUND,
    "recordRefund": REFUND,
    "createPaymentLink": LINK,
    "makePaymentLink": LINK,
    "changePaymentLink": LINK,
    "createInvoice": INVOICE,
    "makeInvoice": INVOICE,
    "sendInvoice": [("customer_email", "required to send|In test mode")],
    "sendInvoiceAsOwner": [("customer_email", "required to send|In test mode")],
    "advance": [("to", "never goes back"), ("by", "Give either by"), ("(by|to)", "too far")],
    "restoreSnapshot": MOMENT,
    "openWorld": MOMENT + [("(seed|start|rate_limit|clock|speed)", "leave it out|for a clock that is fast"), ("ttl", "to 7d")],
    "pay": [
        ("charge", "selected charge is invalid|Give either charge"),
        ("amount", "decimal places|smallest unit|too large"),
        ("share", "more than can be sent|Give either share|goes with charge"),
        ("mode", "goes with address"),
        ("(asset|amount)", "is required"),
        ("outputs", "too small to be split"),
    ],
    "reorganise": TXID + [("txid", "is invalid")],
    "doubleSpend": TXID,
    "dropTransaction": TXID,
    "rebroadcast": TXID,
    "replace": TXID,
    "createKey": ACCOUNT,
    "removeWallet": ACCOUNT,
    "setWallet": ACCOUNT + [("(key|addresses)", "is invalid|is in use|Give either key"), ("script", "give it together with key|kinds? of address|this is a")],
    # The network decides if an address is public, and if it is this machine's.
    "addEndpoint": ACCOUNT + [("url", "is invalid|endpoints already")],
    "changeEndpoint": [("url", "is invalid")],
    "addForward": ACCOUNT + [("to", "is invalid"), ("url", "endpoints already")],
    "payLink": [("(asset|amount|customer.email|custom_fields)", ".")],
    "chooseCoin": [("asset", ".")],
    "setRate": [],
    "openAccount": [],
    "changeAccount": [],
}


def at(body, field):
    """The value of a field such as `items.0.quantity`."""
    for part in field.split("."):
        if isinstance(body, list):
            body = body[int(part)]
        elif isinstance(body, dict):
            body = body.get(part)
    return body


def is_a_fraction_that_needs_text(value):
    """Amounts have two decimals, quantities three; `multipleOf` over binary fractions would be wrong about them."""
    return isinstance(value, float) and ("e" in repr(value) or -Decimal(repr(value)).as_tuple().exponent > 2)


@schemathesis.check
def refusals_depend_on_the_rest(ctx, response, case):
    excuses = DEPENDS_ON_THE_REST.get(case.operation.definition.raw.get("operationId"))
    if excuses is None or response.status_code != 422 or case.meta is None:
        return
    if case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    for field, sentences in response.json()["errors"].items():
        if is_a_fraction_that_needs_text(at(case.body, field)):
            continue
        for sentence in sentences:
            if not any(re.fullmatch(name, field) and re.search(said, sentence) for name, said in excuses):
                raise AssertionError(f"the document allows this {field}, but: {sentence}")


def has_an_empty_list(body):
    return body == [] or isinstance(body, dict) and any(value == [] for value in body.values())


@schemathesis.hook
def filter_case(ctx, case):
    """An empty list stands for an empty object, because PHP writes it so; it is no fault of a body."""
    is_wrong = case.meta is not None and case.meta.generation.mode != GenerationMode.POSITIVE
    return not (is_wrong and has_an_empty_list(case.body))


def text(letters, **bounds):
    return st.text("abcdefghijklmnopqrstuvwxyz0123456789" + letters, **bounds)


schemathesis.openapi.format(
    "uri",
    st.builds(
        lambda scheme, host, path: f"{scheme}://{host}.example/{path}",
        st.sampled_from(["http", "https"]),
        text("", min_size=1, max_size=20),
        text("-._~?=&", max_size=40),
    ),
)
schemathesis.openapi.format(
    "date-time",
    st.builds(
        lambda moment, decimals: moment.isoformat(timespec="microseconds" if decimals else "seconds") + "Z",
        st.datetimes(min_value=datetime.datetime(1970, 1, 1)),
        st.booleans(),
    ),
)
