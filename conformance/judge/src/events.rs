//! Chapter "events": the fields of an event in lists and as a single object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use time::{Duration, OffsetDateTime};

use conformance_model::catalogue::EVENT_TYPES;
use conformance_model::group::Group;
use conformance_model::mode::Mode;
use conformance_model::reading::{
    event_with_path, listed_events, parse_utc, requested_own_event, single_event, text_at,
};
use conformance_model::recording::{Caller, Exchange, List, Recording};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::diff::{
    FAULTY_OBJECTS_MIN, IMMUTABLE_FIELDS, STATE_FIELDS, TEXT_FIELDS, contradict, contradict_in_field,
    first_contradiction, is_unchanged_before, time_zone_difference,
};
use super::evidence::{PageView, is_in_burst, may_be_limited, missing_response, readable_pages, recorded_at};
use super::parsed_deliveries::{is_uuid, member_text};
use crate::check::{Check, Mismatch};
use crate::event_copies::check_unchanged_field;
use crate::object_history::{all_histories, long_detail_texts};

const NEEDS: &[Group] = &[Group::Account, Group::Lists, Group::Isolation];

/// The minimum number of payments that show a wrong time zone.
const PAYMENTS_MIN: usize = 3;
/// The minimum time between the first and the last of these payments.
const PAYMENT_SPREAD_MIN: Duration = Duration::hours(1);

pub(super) const CHECKS: &[Check] = &[
    Check::new("events.id", NEEDS, |recording| judge_each_event(recording, invalid_id)),
    Check::new("events.type", NEEDS, |recording| {
        let outcome = judge_each_event(recording, invalid_type)?;
        check_unchanged_field(recording, "type").map(|()| outcome)
    }),
    Check::new("events.details", NEEDS, |recording| {
        let outcome = judge_each_event(recording, invalid_details)?;
        check_unchanged_field(recording, "details")?;
        check_foreign_details(recording)?;
        check_confirmed_transactions(recording).map(|()| outcome)
    }),
    Check::new("events.subject", NEEDS, |recording| judge_each_event(recording, invalid_subject)),
    Check::new("events.created_at", NEEDS, judge_created_at),
    Check::new("events.single", NEEDS, judge_single_events),
    Check::new("events.envelope", NEEDS, observe_envelope),
];

/// Judges all listed events and all events that were requested individually.
fn judge_each_event(recording: &Recording, mismatch: fn(&Value) -> Option<Mismatch>) -> CheckResult {
    let views = readable_pages(recording);
    let listed = views
        .iter()
        .filter(|view| view.request.list == List::Events)
        .flat_map(|view| view.rows().iter().map(|row| (view.number(), row)));
    let single = single_event_requests(recording)
        .filter(|exchange| exchange.status() == Some(200))
        .filter_map(|exchange| Some((exchange.number, single_event(exchange)?)));
    let mut judged = false;
    for (number, event) in listed.chain(single) {
        if let Some((expected, actual)) = mismatch(event) {
            let id = text_at(event, &["id"]).unwrap_or("without an id");
            return Err(CheckError::violation(number, expected, format!("{actual} (event {id})")));
        }
        judged = true;
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(no_events()) }
}

fn no_events() -> CheckError {
    CheckError::unjudged(
        "no event could be read in either mode",
        "open a charge with the test key's account, then check again",
    )
}

/// Returns the requests for single events, except those that the rate limit may have refused.
fn single_event_requests(recording: &Recording) -> impl Iterator<Item = &Exchange> {
    let is_own = |exchange: &&Exchange| requested_own_event(exchange).is_some();
    recording
        .exchanges
        .iter()
        .filter(is_own)
        .filter(|exchange| exchange.status() == Some(200) || !may_be_limited(recording, exchange))
}

fn invalid_id(event: &Value) -> Option<Mismatch> {
    let is_valid = text_at(event, &["id"]).is_some_and(is_uuid);
    (!is_valid).then(|| ("a UUID".into(), member_text(event, "id")))
}

fn invalid_type(event: &Value) -> Option<Mismatch> {
    let is_valid = text_at(event, &["type"]).is_some_and(|kind| EVENT_TYPES.contains(&kind));
    (!is_valid).then(|| ("one of the thirteen types".into(), member_text(event, "type")))
}

fn invalid_details(event: &Value) -> Option<Mismatch> {
    let is_valid = event.get("details").is_some_and(Value::is_object);
    (!is_valid).then(|| ("details as an object".into(), member_text(event, "details")))
}

/// The minimum number of events with the details of another object's payment, for a violation. One
/// transaction may pay two charges.
const FOREIGN_DETAILS_MIN: usize = 2;

/// Checks that events without a payment do not have the details of another object's payment, such
/// as its transaction id.
fn check_foreign_details(recording: &Recording) -> Result<(), CheckError> {
    const WITHOUT_PAYMENT: [&str; 7] = [
        "charge.created",
        "charge.expired",
        "charge.canceled",
        "invoice.created",
        "invoice.sent",
        "invoice.viewed",
        "invoice.voided",
    ];
    let views = readable_pages(recording);
    for mode in Mode::BOTH {
        let of_mode = views.iter().filter(|view| view.mode == mode && view.request.list == List::Events);
        let rows: Vec<_> =
            of_mode.flat_map(|view| view.rows().iter().map(move |row| (view.number(), row))).collect();
        let is_payment = |row: &Value| {
            text_at(row, &["type"]).is_some_and(|kind| {
                EVENT_TYPES.contains(&kind) && !WITHOUT_PAYMENT.contains(&kind) && kind.starts_with("charge.")
            })
        };
        let mut texts_to_charges: BTreeMap<String, &str> = BTreeMap::new();
        for (_, row) in rows.iter().filter(|(_, row)| is_payment(row)) {
            let Some(code) = text_at(row, &["charge", "code"]) else { continue };
            texts_to_charges.extend(long_detail_texts(row).into_iter().map(|text| (text, code)));
        }
        let has_foreign_details = |row: &Value| {
            let own = text_at(row, &["charge", "code"]);
            let is_foreign =
                |text: &String| texts_to_charges.get(text).is_some_and(|code| Some(*code) != own);
            text_at(row, &["type"]).is_some_and(|kind| WITHOUT_PAYMENT.contains(&kind))
                && long_detail_texts(row).iter().any(is_foreign)
        };
        let foreign: BTreeMap<_, _> = rows
            .iter()
            .filter(|(_, row)| has_foreign_details(row))
            .filter_map(|(number, row)| Some((text_at(row, &["id"])?, (*number, *row))))
            .collect();
        if let Some((id, (number, row))) =
            foreign.first_key_value().filter(|_| foreign.len() >= FOREIGN_DETAILS_MIN)
        {
            return Err(CheckError::violation(
                *number,
                "no details of another object's payment",
                format!("{} (event {id}), and {} more", member_text(row, "details"), foreign.len() - 1),
            ));
        }
    }
    Ok(())
}

/// Checks that the details of few confirmed payments name a transaction that was detected for another charge, and none that was
/// detected for their own.
fn check_confirmed_transactions(recording: &Recording) -> Result<(), CheckError> {
    let views = readable_pages(recording);
    let histories = all_histories(&views);
    let detected: Vec<BTreeSet<String>> = histories
        .iter()
        .map(|history| {
            history
                .of_type("charge.payment_detected")
                .flat_map(|event| long_detail_texts(event.row))
                .collect()
        })
        .collect();
    let is_detected = |text: &String, mode: Mode| {
        histories.iter().zip(&detected).any(|(history, texts)| history.mode == mode && texts.contains(text))
    };
    let foreign: Vec<_> = histories
        .iter()
        .zip(&detected)
        .filter(|(_, own)| !own.is_empty())
        .filter_map(|(history, own)| {
            let mut confirmed =
                ["charge.paid", "charge.underpaid"].into_iter().flat_map(|kind| history.of_type(kind));
            let event = confirmed.find(|event| {
                let texts = long_detail_texts(event.row);
                texts.is_disjoint(own) && texts.iter().any(|text| is_detected(text, history.mode))
            })?;
            Some((history, event))
        })
        .collect();
    match foreign.last().filter(|_| foreign.len() >= FAULTY_OBJECTS_MIN) {
        None => Ok(()),
        Some((history, event)) => Err(CheckError::violation(
            event.number,
            format!("the details of a transfer to {} in its {}", history.name(), event.event_type()),
            format!(
                "{} of a transfer to another charge (event {}), and {} more such events",
                member_text(event.row, "details"),
                event.id(),
                foreign.len() - 1
            ),
        )),
    }
}

fn invalid_subject(event: &Value) -> Option<Mismatch> {
    let is_charge = match text_at(event, &["type"])?.split_once('.')?.0 {
        "charge" => true,
        "invoice" => false,
        _ => return None,
    };
    let (required, forbidden) = if is_charge { ("charge", "invoice") } else { ("invoice", "charge") };
    if !event.get(required).is_some_and(Value::is_object) {
        let expected = if is_charge { "charge as an object" } else { "invoice as an object" };
        return Some((expected.into(), member_text(event, required)));
    }
    if !event.get(forbidden).is_some_and(Value::is_null) {
        let expected = if is_charge { "invoice null" } else { "charge null" };
        return Some((
            expected.into(),
            if event.get(forbidden).is_some() {
                format!("{forbidden} set")
            } else {
                member_text(event, forbidden)
            },
        ));
    }
    None
}

fn judge_created_at(recording: &Recording) -> CheckResult {
    let outcome = judge_each_event(recording, |event| {
        let is_valid = text_at(event, &["created_at"]).is_some_and(|text| parse_utc(text).is_some());
        (!is_valid).then(|| ("an ISO 8601 time in UTC".into(), member_text(event, "created_at")))
    })?;
    check_unchanged_field(recording, "created_at")?;
    check_time_zone(recording)?;
    Ok(outcome)
}

/// Checks that the times of payment events do not all differ from `paid_at` by the same whole number of hours, as if in
/// another time zone. A service may use its own clock, so no time is compared with the `Date` of a response.
fn check_time_zone(recording: &Recording) -> Result<(), CheckError> {
    let views = readable_pages(recording);
    for mode in Mode::BOTH {
        let of_mode = views.iter().filter(|view| view.mode == mode && view.request.list == List::Events);
        let rows = of_mode.flat_map(|view| view.rows().iter().map(move |row| (view.number(), row)));
        let payments: BTreeMap<_, _> =
            rows.filter_map(|(number, row)| Payment::from_event(number, row)).collect();
        let recorded: BTreeSet<_> = payments.values().map(|payment| payment.recorded_at).collect();
        let is_spread = recorded
            .first()
            .zip(recorded.last())
            .is_some_and(|(oldest, newest)| *newest - *oldest > PAYMENT_SPREAD_MIN);
        let hours: BTreeSet<_> = payments
            .values()
            .map(|payment| time_zone_difference(payment.recorded_at - payment.paid_at))
            .collect();
        let Some((id, payment)) = payments.first_key_value().filter(|_| payments.len() >= PAYMENTS_MIN)
        else {
            continue;
        };
        if let (true, 1, Some(Some(hours))) = (is_spread, hours.len(), hours.first()) {
            return Err(CheckError::violation(
                payment.number,
                "created_at and paid_at of a charge.paid in one time zone",
                format!("{hours} h apart (event {id}), as in all {} payments", payments.len()),
            ));
        }
    }
    Ok(())
}

/// The event of a payment.
struct Payment {
    /// The number of the exchange of its page.
    number: u32,
    recorded_at: OffsetDateTime,
    paid_at: OffsetDateTime,
}

impl Payment {
    /// Returns the id of a `charge.paid` event, and its payment; `None` for other events.
    fn from_event(number: u32, row: &Value) -> Option<(&str, Payment)> {
        let paid_at = parse_utc(text_at(row, &["charge", "paid_at"])?)?;
        let payment = Payment { number, recorded_at: recorded_at(row)?, paid_at };
        (text_at(row, &["type"]) == Some("charge.paid")).then_some((text_at(row, &["id"])?, payment))
    }
}

fn judge_single_events(recording: &Recording) -> CheckResult {
    let views = readable_pages(recording);
    let mut judged = false;
    for exchange in single_event_requests(recording) {
        let (Caller::Own(mode), Some(id)) = (exchange.caller, requested_own_event(exchange)) else {
            continue;
        };
        // The suite may have retried the request after an outage.
        let is_retried = || {
            single_event_requests(recording)
                .any(|later| later.number > exchange.number && later.target == exchange.target)
        };
        match exchange.status() {
            None | Some(429 | 502..=504) if is_in_burst(exchange) || is_retried() => continue,
            None | Some(429 | 502..=504) => return Err(missing_response(Some(exchange), "a single event")),
            Some(200) => {}
            Some(_) => return Err(CheckError::violation(exchange.number, "200", exchange.summary())),
        }
        let Some(event) = single_event(exchange) else { continue };
        if text_at(event, &["id"]) != Some(id) {
            return Err(CheckError::violation(
                exchange.number,
                format!("id \"{id}\""),
                member_text(event, "id"),
            ));
        }
        if let Some((name, actual)) = difference_from_list(recording, &views, (exchange, mode), event) {
            let expected = format!("{name} of event {id} as the list shows it");
            return Err(CheckError::violation(exchange.number, expected, actual));
        }
        judged = true;
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(no_events()) }
}

/// Returns the name of the first field in which a single event differs from the listed event, and its value in the
/// single event. Charges and invoices may change between two requests, so their mutable fields are compared only if
/// they did not change for a while.
fn difference_from_list(
    recording: &Recording,
    views: &[PageView<'_>],
    (exchange, mode): (&Exchange, Mode),
    event: &Value,
) -> Option<(String, String)> {
    let id = text_at(event, &["id"])?;
    let events = views.iter().filter(|view| view.mode == mode && view.request.list == List::Events);
    let mut rows = events.flat_map(PageView::rows).filter(|row| text_at(row, &["id"]) == Some(id)).peekable();
    let row = listed_events(recording, mode).remove(id).or_else(|| rows.peek().copied())?;
    let differs = |name: &str| match (row.get(name)?, event.get(name)?) {
        (Value::Object(listed), Value::Object(single)) => Some(listed != single),
        (listed @ Value::String(_), single) => Some(contradict(listed, single)),
        _ => None,
    };
    if let Some(name) = ["type", "details", "created_at"].into_iter().find(|name| differs(name) == Some(true))
    {
        return Some((name.to_owned(), member_text(event, name)));
    }
    let is_list_steady =
        rows.all(|listed| first_contradiction(listed, row, &STATE_FIELDS, contradict_in_field).is_none());
    let fields: &[_] = if is_list_steady && is_unchanged_before(views, mode, event, exchange) {
        &[IMMUTABLE_FIELDS, STATE_FIELDS]
    } else {
        &[IMMUTABLE_FIELDS]
    };
    let first = fields.iter().find_map(|fields| first_contradiction(row, event, fields, contradict_in_field));
    let (member, name) = first.or_else(|| changed_text(views, mode, exchange, event))?;
    Some((format!("{member}.{name}"), member_text(&event[member], name)))
}

/// Returns the first text field of the charge or invoice that differs from the listed event, if the
/// list showed the same texts before and after the response.
fn changed_text(
    views: &[PageView<'_>],
    mode: Mode,
    exchange: &Exchange,
    event: &Value,
) -> Option<(&'static str, &'static str)> {
    let id = text_at(event, &["id"]);
    let listed: Vec<_> = views
        .iter()
        .filter(|view| view.mode == mode && view.request.list == List::Events)
        .flat_map(|view| view.rows().iter().map(|row| (view.number(), row)))
        .filter(|(_, row)| text_at(row, &["id"]) == id)
        .collect();
    let (first, last) = (listed.first()?, listed.last()?);
    let is_between_pages = first.0 < exchange.number && exchange.number < last.0;
    let is_list_steady = listed
        .iter()
        .all(|(_, row)| first_contradiction(first.1, row, &TEXT_FIELDS, contradict_in_field).is_none());
    if is_between_pages && is_list_steady {
        first_contradiction(first.1, event, &TEXT_FIELDS, contradict_in_field)
    } else {
        None
    }
}

fn observe_envelope(recording: &Recording) -> CheckResult {
    let (path, _) = single_event_requests(recording)
        .filter(|exchange| exchange.status() == Some(200))
        .find_map(event_with_path)
        .ok_or_else(no_events)?;
    Ok(CheckOutcome::Observed(if path.is_empty() {
        "bare".to_owned()
    } else {
        format!("under {}", path.join("."))
    }))
}
