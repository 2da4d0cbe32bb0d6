//! The consistency of deliveries with the events of the API.

use std::collections::BTreeMap;

use serde_json::Value;

use conformance_model::mode::Mode;
use conformance_model::reading::{after_rows, cached, listed, single_event, text_at};
use conformance_model::recording::{Caller, Exchange, Purpose, Recording, Side};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::NEEDS;
use crate::check::Check;
use crate::delivered::{ParsedDelivery, ReceivedDeliveries, is_uuid, member_text, received_deliveries};
use crate::diff::{LATENESS, SETTLED, at, contradict_as_written, contradiction};

pub(crate) const CHECKS: &[Check] = &[
    Check::of("webhooks.event_id", NEEDS, event_id),
    Check::of("webhooks.mode", NEEDS, mode),
    Check::of("isolation.delivered", NEEDS, isolated),
];

/// The members that a payment changes. Events and deliveries show both with 18 decimals.
const RECEIVED: [(&str, &[&str]); 2] = [("charge", &["received_amount"]), ("invoice", &[])];

/// Returns the exchange in which a key requested a delivered event.
fn read<'a>(recording: &'a Recording, id: &str, key: Mode, side: Side) -> Option<&'a Exchange> {
    let purpose = Purpose::DeliveredEvent { id: id.to_owned(), side };
    recording.last(|exchange| exchange.caller == Caller::Own(key) && exchange.purpose == purpose)
}

/// The events of both modes in the API.
struct Api<'a> {
    recording: &'a Recording,
    listed: BTreeMap<Mode, BTreeMap<String, Value>>,
}

impl<'a> Api<'a> {
    fn of(recording: &'a Recording) -> Api<'a> {
        let listed = Mode::BOTH.map(|mode| (mode, listed(recording, mode)));
        Api { recording, listed: listed.into() }
    }

    /// Returns the event as read with the key of a mode, if it was read.
    fn event(&self, id: &str, claimed: Mode, key: Mode) -> Option<Value> {
        let side = if claimed == key { Side::Own } else { Side::Foreign };
        let alone = read(self.recording, id, key, side).filter(|exchange| exchange.status() == Some(200));
        // The response may contain another event.
        let alone = alone.and_then(single_event).filter(|event| text_at(event, &["id"]) == Some(id));
        alone.or_else(|| self.listed[&key].get(id).cloned())
    }

    /// Returns the first field of a delivered object whose value in the API differs, with that value. Each change of an
    /// object is recorded as an event, so the received amount must be equal if the list shows this event as the object's
    /// newest. After the list was read, the object may have received more.
    fn contradiction(
        &self,
        event: &Value,
        sent: &Value,
        mode: Mode,
    ) -> Option<(&'static str, &'static str, String)> {
        let code = |row: &Value| text_at(row, &["charge", "code"]).map(str::to_owned);
        let is_newest = |row: &Value| {
            let mut later = self.listed[&mode].values().filter(|later| code(later) == code(row));
            later.all(|later| later["id"] == row["id"] || at(later) < at(row))
        };
        let is_same_state = |row: &Value| row["charge"]["status"] == sent["charge"]["status"];
        let listed = text_at(event, &["id"]).and_then(|id| self.listed[&mode].get(id));
        let listed = listed.filter(|row| is_newest(row) && is_same_state(row));
        let compared = [(Some(event), SETTLED), (listed, RECEIVED)];
        compared.into_iter().find_map(|(shown, fields)| {
            let shown = shown?;
            let (member, name) = contradiction(shown, sent, &fields, contradict_as_written)?;
            Some((member, name, shown[member][name].to_string()))
        })
    }

    /// Returns the exchange in which the key got a 404 for the event.
    fn absent(&self, id: &str, claimed: Mode) -> Option<&'a Exchange> {
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

fn event_id(recording: &Recording) -> CheckResult {
    let received = received_deliveries(recording)?;
    let api = Api::of(recording);
    unlisted(recording, &received, &api)?;
    let mut types: BTreeMap<&str, &str> = BTreeMap::new();
    let mut confirmed = 0;
    for (seen, id, mode) in events(&received.seen) {
        if !is_uuid(id) {
            return Err(seen.broken(
                "event_id as a UUID",
                member_text(seen.body.as_ref().unwrap_or(&Value::Null), "event_id"),
            ));
        }
        let kind = seen.kind().unwrap_or_default();
        if *types.entry(id).or_insert(kind) != kind {
            return Err(
                seen.broken(format!("event {id} to be one event"), format!("{} and {kind}", types[id]))
            );
        }
        let Some(event) = api.event(id, mode, mode) else {
            let elsewhere = api.event(id, mode, mode.other()).is_some();
            match api.absent(id, mode) {
                // webhooks.mode judges an event that only the other key can read.
                Some(exchange) if !elsewhere => {
                    return Err(CheckError::broken(
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
            _ => api.contradiction(&event, sent, mode).map(|(member, name, shown)| {
                (format!("{member}.{name}"), sent[member][name].to_string(), shown)
            }),
        };
        if let Some((what, sent, shown)) = differing {
            let expected = format!("{what} {sent} of event {id} in the API");
            return Err(seen.broken(expected, format!("{what} {shown}")));
        }
        confirmed += 1;
    }
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
fn unlisted(
    recording: &Recording,
    received: &ReceivedDeliveries<'_>,
    api: &Api<'_>,
) -> Result<(), CheckError> {
    let Some(listed_at) = received.all.listed_at else { return Ok(()) };
    for (seen, id, mode) in events(&received.seen) {
        let waited = listed_at.saturating_sub(seen.delivery.arrived);
        let list = recording
            .last(|exchange| {
                exchange.caller == Caller::Own(mode) && exchange.purpose == Purpose::AfterDeliveries
            })
            .filter(|exchange| exchange.answer().is_some_and(|answer| cached(answer).is_none()));
        if waited < LATENESS || api.listed[&mode].contains_key(id) {
            continue;
        }
        let oldest = after_rows(recording, mode).and_then(|rows| rows.iter().filter_map(at).min());
        let event = api.event(id, mode, mode);
        if let (Some(list), Some(oldest), Some(created)) = (list, oldest, event.as_ref().and_then(at))
            && created > oldest
        {
            return Err(CheckError::broken(
                list.number,
                format!("event {id} in the list of events, {} s after its delivery", waited.as_secs()),
                format!("other events, and not this one ({})", seen.name()),
            ));
        }
    }
    Ok(())
}

fn mode(recording: &Recording) -> CheckResult {
    let received = received_deliveries(recording)?;
    let api = Api::of(recording);
    let mut judged = false;
    for seen in received.readable() {
        let Some(word) = seen.text(&["mode"]) else { continue };
        let Some(stated) = seen.mode() else {
            return Err(seen.broken(
                "mode live or test",
                format!("mode {}", conformance_model::recording::shorten(word)),
            ));
        };
        judged = true;
        let Some(id) = seen.text(&["event_id"]).filter(|_| !seen.is_test()) else { continue };
        let other = stated.other();
        if api.event(id, stated, stated).is_none() && api.event(id, stated, other).is_some() {
            return Err(seen.broken(
                format!("mode {}, in which the API shows event {id}", other.as_str()),
                format!("mode {}", stated.as_str()),
            ));
        }
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(crate::delivered::missing("a mode")) }
}

/// Judges the 404 for a delivered event with the key of the other mode. It counts only if the key of its mode gets 200.
fn isolated(recording: &Recording) -> CheckResult {
    let received = received_deliveries(recording)?;
    let api = Api::of(recording);
    let mut judged = false;
    for (seen, id, mode) in events(&received.seen) {
        if api.event(id, mode, mode).is_none() {
            continue;
        }
        let other = mode.other();
        if api.listed[&other].contains_key(id) {
            return Err(seen.broken(
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
                return Err(CheckError::broken(
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
