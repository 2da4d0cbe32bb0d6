//! The consistency of deliveries with the events of the API.

use std::collections::BTreeMap;

use serde_json::Value;

use conformance_model::mode::Mode;
use conformance_model::reading::{after_rows, cache_evidence, listed_events, single_event, text_at};
use conformance_model::recording::{Caller, Exchange, Purpose, Recording, Side};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::NEEDS;
use super::objects::{check_texts, check_zone};
use crate::check::Check;
use crate::delivered::{ParsedDelivery, ReceivedDeliveries, is_uuid, member_text, received_deliveries};
use crate::diff::{LATENESS, SETTLED, contradict_as_written, first_contradiction, recorded_at};

pub(crate) const CHECKS: &[Check] = &[
    Check::new("webhooks.event_id", NEEDS, judge_event_id),
    Check::new("webhooks.mode", NEEDS, judge_mode),
    Check::new("isolation.delivered", NEEDS, judge_isolated),
];

/// The members that a payment changes. Events and deliveries show both with 18 decimals.
const RECEIVED: [(&str, &[&str]); 2] = [("charge", &["received_amount"]), ("invoice", &[])];

/// Returns the exchange in which a key requested a delivered event.
fn read<'a>(recording: &'a Recording, id: &str, key: Mode, side: Side) -> Option<&'a Exchange> {
    let purpose = Purpose::DeliveredEvent { id: id.to_owned(), side };
    recording.find_last(|exchange| exchange.caller == Caller::Own(key) && exchange.purpose == purpose)
}

/// The events of both modes in the API.
struct Api<'a> {
    recording: &'a Recording,
    listed_events: BTreeMap<Mode, BTreeMap<String, Value>>,
}

impl<'a> Api<'a> {
    fn from_recording(recording: &'a Recording) -> Api<'a> {
        let listed = Mode::BOTH.map(|mode| (mode, listed_events(recording, mode)));
        Api { recording, listed_events: listed.into() }
    }

    /// Returns the event as read with the key of a mode, if it was read.
    fn event(&self, id: &str, claimed: Mode, key: Mode) -> Option<Value> {
        let side = if claimed == key { Side::Own } else { Side::Foreign };
        let alone = read(self.recording, id, key, side).filter(|exchange| exchange.status() == Some(200));
        // The response may contain another event.
        let alone = alone.and_then(single_event).filter(|event| text_at(event, &["id"]) == Some(id));
        alone.or_else(|| self.listed_events[&key].get(id).cloned())
    }

    /// Returns the first field of a delivered object whose value in the API differs, with that value. Each change of an
    /// object is recorded as an event, so the received amount must be equal if the list shows this event as the object's
    /// newest. After the list was read, the object may have received more.
    fn first_contradiction(
        &self,
        event: &Value,
        sent: &Value,
        mode: Mode,
    ) -> Option<(&'static str, &'static str, String)> {
        let code = |row: &Value| text_at(row, &["charge", "code"]).map(str::to_owned);
        let is_newest = |row: &Value| {
            let mut later = self.listed_events[&mode].values().filter(|later| code(later) == code(row));
            later.all(|later| later["id"] == row["id"] || recorded_at(later) < recorded_at(row))
        };
        let is_same_state = |row: &Value| row["charge"]["status"] == sent["charge"]["status"];
        let listed = text_at(event, &["id"]).and_then(|id| self.listed_events[&mode].get(id));
        let listed = listed.filter(|row| is_newest(row) && is_same_state(row));
        let compared = [(Some(event), SETTLED), (listed, RECEIVED)];
        compared.into_iter().find_map(|(shown, fields)| {
            let shown = shown?;
            let (member, name) = first_contradiction(shown, sent, &fields, contradict_as_written)?;
            Some((member, name, shown[member][name].to_string()))
        })
    }

    /// Returns the exchange in which the key got a 404 for the event.
    fn not_found_exchange(&self, id: &str, claimed: Mode) -> Option<&'a Exchange> {
        read(self.recording, id, claimed, Side::Own).filter(|exchange| exchange.status() == Some(404))
    }
}

/// Returns the deliveries of real events, with event id and mode.
fn events<'a>(
    seen: &'a [ParsedDelivery<'a>],
) -> impl Iterator<Item = (&'a ParsedDelivery<'a>, &'a str, Mode)> {
    let real = seen.iter().filter(|parsed| !parsed.is_test());
    real.filter_map(|parsed| Some((parsed, parsed.text(&["event_id"])?, parsed.mode()?)))
}

/// Returns the deliveries whose events the API shows, each with its event.
fn delivered_events<'a>(
    received: &'a ReceivedDeliveries<'_>,
    api: &Api<'_>,
) -> Vec<(&'a ParsedDelivery<'a>, Value)> {
    let shown = events(&received.parsed);
    shown.filter_map(|(seen, id, mode)| Some((seen, api.event(id, mode, mode)?))).collect()
}

/// Judges the time zone of deliveries; webhooks.created_at judges the format of their times.
pub(super) fn check_delivery_zone(recording: &Recording) -> Result<(), CheckError> {
    let received = received_deliveries(recording)?;
    check_zone(&delivered_events(&received, &Api::from_recording(recording)))
}

fn judge_event_id(recording: &Recording) -> CheckResult {
    let received = received_deliveries(recording)?;
    let api = Api::from_recording(recording);
    check_listed(recording, &received, &api)?;
    let mut types: BTreeMap<&str, &str> = BTreeMap::new();
    let mut confirmed = 0;
    for (seen, id, mode) in events(&received.parsed) {
        if !is_uuid(id) {
            return Err(seen.violation(
                "event_id as a UUID",
                member_text(seen.body.as_ref().unwrap_or(&Value::Null), "event_id"),
            ));
        }
        let kind = seen.kind().unwrap_or_default();
        if *types.entry(id).or_insert(kind) != kind {
            return Err(
                seen.violation(format!("event {id} to be one event"), format!("{} and {kind}", types[id]))
            );
        }
        let Some(event) = api.event(id, mode, mode) else {
            let elsewhere = api.event(id, mode, mode.other()).is_some();
            match api.not_found_exchange(id, mode) {
                // webhooks.mode judges an event that only the other key can read.
                Some(exchange) if !elsewhere => {
                    return Err(CheckError::violation(
                        exchange.number,
                        format!("event {id} in the API"),
                        format!("{} ({})", exchange.summary(), seen.name()),
                    ));
                }
                _ => continue,
            }
        };
        let sent = seen.body.as_ref().and_then(|body| body.get("data")).unwrap_or(&Value::Null);
        let differing = match (text_at(&event, &["type"]), seen.kind()) {
            (Some(shown), Some(sent)) if shown != sent => {
                Some(("type".to_owned(), sent.to_owned(), shown.to_owned()))
            }
            _ => api.first_contradiction(&event, sent, mode).map(|(member, name, shown)| {
                (format!("{member}.{name}"), sent[member][name].to_string(), shown)
            }),
        };
        if let Some((what, sent, shown)) = differing {
            let expected = format!("{what} {sent} of event {id} in the API");
            return Err(seen.violation(expected, format!("{what} {shown}")));
        }
        confirmed += 1;
    }
    check_texts(&delivered_events(&received, &api))?;
    match confirmed {
        0 => Err(CheckError::unjudged(
            "the API was not seen to show any of the events that were delivered",
            "see events.single; then cause a delivery of an event that is new",
        )),
        count => Ok(CheckOutcome::HoldsWith(format!("{count} deliveries name events that the API shows"))),
    }
}

/// Checks that an event which was delivered some time before the last read of the list is listed, if it is as new as the
/// listed ones.
fn check_listed(
    recording: &Recording,
    received: &ReceivedDeliveries<'_>,
    api: &Api<'_>,
) -> Result<(), CheckError> {
    let Some(listed_at) = received.all.listed_at else { return Ok(()) };
    for (seen, id, mode) in events(&received.parsed) {
        let waited = listed_at.saturating_sub(seen.delivery.arrived);
        let list = recording
            .find_last(|exchange| {
                exchange.caller == Caller::Own(mode) && exchange.purpose == Purpose::AfterDeliveries
            })
            .filter(|exchange| exchange.answer().is_some_and(|response| cache_evidence(response).is_none()));
        if waited < LATENESS || api.listed_events[&mode].contains_key(id) {
            continue;
        }
        let oldest = after_rows(recording, mode).and_then(|rows| rows.iter().filter_map(recorded_at).min());
        let event = api.event(id, mode, mode);
        if let (Some(list), Some(oldest), Some(created)) =
            (list, oldest, event.as_ref().and_then(recorded_at))
            && created > oldest
        {
            return Err(CheckError::violation(
                list.number,
                format!("event {id} in the list of events, {} s after its delivery", waited.as_secs()),
                format!("other events, and not this one ({})", seen.name()),
            ));
        }
    }
    Ok(())
}

fn judge_mode(recording: &Recording) -> CheckResult {
    let received = received_deliveries(recording)?;
    let api = Api::from_recording(recording);
    let mut judged = false;
    for seen in received.readable_deliveries() {
        let Some(word) = seen.text(&["mode"]) else { continue };
        let Some(stated) = seen.mode() else {
            return Err(seen.violation(
                "mode live or test",
                format!("mode {}", conformance_model::recording::shorten(word)),
            ));
        };
        judged = true;
        let Some(id) = seen.text(&["event_id"]).filter(|_| !seen.is_test()) else { continue };
        let other = stated.other();
        if api.event(id, stated, stated).is_none() && api.event(id, stated, other).is_some() {
            return Err(seen.violation(
                format!("mode {}, in which the API shows event {id}", other.as_str()),
                format!("mode {}", stated.as_str()),
            ));
        }
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(crate::delivered::no_delivery_with("a mode")) }
}

/// Judges the 404 for a delivered event with the key of the other mode. It counts only if the key of its mode gets 200.
fn judge_isolated(recording: &Recording) -> CheckResult {
    let received = received_deliveries(recording)?;
    let api = Api::from_recording(recording);
    let mut judged = false;
    for (seen, id, mode) in events(&received.parsed) {
        if api.event(id, mode, mode).is_none() {
            continue;
        }
        let other = mode.other();
        if api.listed_events[&other].contains_key(id) {
            return Err(seen.violation(
                format!("event {id} in no list of {} mode", other.as_str()),
                format!("the {} key sees it listed", other.as_str()),
            ));
        }
        let beside =
            read(recording, id, mode, Side::Own).is_some_and(|exchange| exchange.status() == Some(200));
        let Some(foreign) = read(recording, id, other, Side::Foreign).filter(|_| beside) else { continue };
        match foreign.status() {
            Some(404) => judged = true,
            None | Some(429 | 502..=504) => {}
            Some(_) => {
                return Err(CheckError::violation(
                    foreign.number,
                    format!("404 for the {} key", other.as_str()),
                    format!("{} ({})", foreign.summary(), seen.name()),
                ));
            }
        }
    }
    if judged {
        return Ok(CheckOutcome::Holds);
    }
    Err(CheckError::unjudged(
        "no event that was delivered could be read with its own key",
        "see events.single; then cause a delivery of an event that is new",
    ))
}
