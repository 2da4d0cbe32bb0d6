//! What two sights of one charge or invoice contradict each other in.

use serde_json::Value;
use time::{Duration, OffsetDateTime};

use conformance_model::reading::{http_date, text_at, utc};
use conformance_model::recording::{Exchange, List};
use conformance_model::words::Mode;

use crate::evidence::PageView;

/// The members of an event, and the fields of each.
type Fields = [(&'static str, &'static [&'static str]); 2];

/// What is settled of an object when it is opened: which one it is, and the rate that is locked.
pub(crate) const SETTLED: Fields = [
    ("charge", &["code", "fiat_amount", "fiat_currency", "asset", "asset_amount"]),
    ("invoice", &["code", "number", "amount", "currency"]),
];

/// What an event may change.
pub(crate) const STATE: Fields =
    [("charge", &["status", "received_amount", "paid_at"]), ("invoice", &["status"])];

/// How long something may be on its way from one list to another.
pub(crate) const LATENESS: Duration = Duration::minutes(1);

/// The kinds of objects that have a list, and the member of an event that holds one.
pub(crate) const KINDS: [(List, &str); 2] = [(List::Charges, "charge"), (List::Invoices, "invoice")];

/// How long after a change the copies of an object may still be of two minds.
pub(crate) const TWO_MINDS: Duration = Duration::minutes(10);

/// A number without noughts at its end, and how many decimals it has; `None` if it is none.
fn number(text: &str) -> Option<(&str, usize)> {
    let is_number = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit() || it == b'.');
    let decimals = text.split_once('.').map(|(_, decimals)| decimals.len());
    let plain = decimals.map_or(text, |_| text.trim_end_matches('0').trim_end_matches('.'));
    is_number.then_some((plain, decimals.unwrap_or_default()))
}

/// Whether two texts of one field cannot both be true. What is wrong in itself, another statement tells.
pub(crate) fn contradict(one: &Value, other: &Value) -> bool {
    let (Value::String(one), Value::String(other)) = (one, other) else { return false };
    match ((utc(one), utc(other)), (number(one), number(other))) {
        ((Ok(one), Ok(other)), _) => one != other,
        (_, (Some((one, _)), Some((other, _)))) => one != other,
        ((Err(_), Err(_)), (None, None)) => one != other && !one.is_empty() && !other.is_empty(),
        _ => false,
    }
}

/// The same for numbers that have as many decimals, and for no others: where amounts are hidden, those with other
/// decimals look different.
pub(crate) fn contradict_as_written(_: &str, one: &Value, other: &Value) -> bool {
    let decimals = |it: &Value| it.as_str().and_then(number).map(|(_, decimals)| decimals);
    decimals(one) == decimals(other) && contradict(one, other)
}

/// Whether one of them tells of a time and the other of none.
fn is_half_told(name: &str, one: &Value, other: &Value) -> bool {
    name == "paid_at" && (one.is_null() && other.is_string() || one.is_string() && other.is_null())
}

/// Whether two values of a field cannot both be true, be it that one of them tells of a payment and the other of none.
pub(crate) fn differ(name: &str, one: &Value, other: &Value) -> bool {
    contradict(one, other) || is_half_told(name, one, other)
}

/// The first of these fields in which two events, or two things that hold a charge or an invoice, differ: the member
/// and the field.
pub(crate) fn contradiction(
    one: &Value,
    other: &Value,
    fields: &Fields,
    differ: fn(&str, &Value, &Value) -> bool,
) -> Option<(&'static str, &'static str)> {
    fields.iter().find_map(|(member, names)| {
        let (one, other) = (one.get(member)?, other.get(member)?);
        let differs = |name: &&&str| {
            one.get(**name).zip(other.get(**name)).is_some_and(|(one, other)| differ(name, one, other))
        };
        Some((*member, *names.iter().find(differs)?))
    })
}

/// When an event was recorded.
pub(crate) fn at(row: &Value) -> Option<OffsetDateTime> {
    utc(text_at(row, &["created_at"])?).ok()
}

/// The clock of the server that answered.
pub(crate) fn clock(exchange: &Exchange) -> Option<OffsetDateTime> {
    exchange.answer().and_then(|answer| http_date(answer.header("date")?))
}

/// Whether nothing happened to the charge or invoice of an event for so long before an answer that all copies of it
/// agree by then.
pub(crate) fn is_still(views: &[PageView<'_>], mode: Mode, event: &Value, exchange: &Exchange) -> bool {
    let code =
        |it: &Value| ["charge", "invoice"].map(|member| text_at(it, &[member, "code"]).map(str::to_owned));
    let events = views.iter().filter(|it| it.mode == mode && it.ask.list == List::Events);
    let of_object = events.flat_map(PageView::rows).filter(|it| code(it) == code(event));
    let newest = of_object.filter_map(at).max();
    newest.zip(clock(exchange)).is_some_and(|(newest, now)| newest + TWO_MINDS < now)
}
