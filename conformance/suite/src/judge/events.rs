//! Chapter "events": the shape of an event, in lists and alone.

use serde_json::Value;

use super::Check;
use super::delivered::is_uuid;
use super::evidence::{sheets, unanswered};
use crate::catalogue::EVENT_TYPES;
use crate::plan::Mode;
use crate::probes::Group;
use crate::probes::isolation::single_event;
use crate::reading::{parse, text_at, utc};
use crate::recording::{Caller, Exchange, List, Purpose, Recording, Side};
use crate::verdict::{Halt, Held, Judged};

const NEEDS: &[Group] = &[Group::Account, Group::Lists, Group::Isolation];

pub(super) const CHECKS: &[Check] = &[
    Check { id: "events.id", needs: NEEDS, judge: |it| each(it, id) },
    Check { id: "events.type", needs: NEEDS, judge: |it| each(it, kind) },
    Check { id: "events.details", needs: NEEDS, judge: |it| each(it, details) },
    Check { id: "events.subject", needs: NEEDS, judge: |it| each(it, subject) },
    Check { id: "events.created_at", needs: NEEDS, judge: |it| each(it, created_at) },
    Check { id: "events.single", needs: NEEDS, judge: single },
    Check { id: "events.envelope", needs: NEEDS, judge: envelope },
];

/// What is wrong with one event: what was expected, and what it says.
type Flaw = Option<(&'static str, String)>;

/// Judges every event that was listed or asked for alone.
fn each(recording: &Recording, flaw: fn(&Value) -> Flaw) -> Judged {
    let sheets = sheets(recording);
    let listed = sheets
        .iter()
        .filter(|it| it.ask.list == List::Events)
        .flat_map(|it| it.rows().iter().map(|row| (it.number(), row.clone())));
    let alone = own(recording)
        .filter(|it| it.status() == Some(200))
        .filter_map(|it| Some((it.number, single_event(it)?)));
    let mut judged = false;
    for (number, event) in listed.chain(alone) {
        if let Some((expected, actual)) = flaw(&event) {
            let id = text_at(&event, &["id"]).unwrap_or("without an id");
            return Err(Halt::broken(number, expected, format!("{actual} (event {id})")));
        }
        judged = true;
    }
    if judged { Ok(Held::Plainly) } else { Err(no_events()) }
}

fn no_events() -> Halt {
    Halt::unjudged(
        "no event could be read in either mode",
        "open a charge with the test key's account, then check again",
    )
}

fn own(recording: &Recording) -> impl Iterator<Item = &Exchange> {
    let own = |it: &&Exchange| matches!(&it.purpose, Purpose::Event { side: Side::Own, .. });
    recording.exchanges.iter().filter(own)
}

fn told(event: &Value, name: &str) -> String {
    event.get(name).map_or_else(|| format!("{name} missing"), |it| format!("{name} {it}"))
}

fn id(event: &Value) -> Flaw {
    let fine = text_at(event, &["id"]).is_some_and(is_uuid);
    (!fine).then(|| ("a UUID", told(event, "id")))
}

fn kind(event: &Value) -> Flaw {
    let fine = text_at(event, &["type"]).is_some_and(|kind| EVENT_TYPES.contains(&kind));
    (!fine).then(|| ("one of the thirteen types", told(event, "type")))
}

fn details(event: &Value) -> Flaw {
    let fine = event.get("details").is_some_and(Value::is_object);
    (!fine).then(|| ("details as an object", told(event, "details")))
}

fn subject(event: &Value) -> Flaw {
    let is_charge = match text_at(event, &["type"])?.split_once('.')?.0 {
        "charge" => true,
        "invoice" => false,
        _ => return None,
    };
    let (there, null) = if is_charge { ("charge", "invoice") } else { ("invoice", "charge") };
    if !event.get(there).is_some_and(Value::is_object) {
        let expected = if is_charge { "charge as an object" } else { "invoice as an object" };
        return Some((expected, told(event, there)));
    }
    if !event.get(null).is_some_and(Value::is_null) {
        let expected = if is_charge { "invoice null" } else { "charge null" };
        return Some((
            expected,
            if event.get(null).is_some() { format!("{null} set") } else { told(event, null) },
        ));
    }
    None
}

fn created_at(event: &Value) -> Flaw {
    let fine = text_at(event, &["created_at"]).is_some_and(|text| utc(text).is_ok());
    (!fine).then(|| ("an ISO 8601 time in UTC", told(event, "created_at")))
}

fn single(recording: &Recording) -> Judged {
    let mut judged = false;
    for mode in Mode::BOTH {
        let last = own(recording).filter(|it| it.caller == Caller::Own(mode)).last();
        let Some(exchange) = last else { continue };
        let Purpose::Event { id, .. } = &exchange.purpose else { continue };
        match exchange.status() {
            None | Some(429 | 502..=504) => return Err(unanswered(Some(exchange), "a single event")),
            Some(200) => {}
            Some(_) => return Err(Halt::broken(exchange.number, "200", exchange.summary())),
        }
        let Some(event) = single_event(exchange) else { continue };
        if text_at(&event, &["id"]) != Some(id.as_str()) {
            return Err(Halt::broken(exchange.number, format!("id \"{id}\""), told(&event, "id")));
        }
        judged = true;
    }
    if judged { Ok(Held::Plainly) } else { Err(no_events()) }
}

fn envelope(recording: &Recording) -> Judged {
    let body = own(recording).find_map(|it| parse(it.answer().filter(|answer| answer.status == 200)?));
    let body = body.ok_or_else(no_events)?;
    let wrapped = body.get("data").is_some_and(Value::is_object);
    Ok(Held::Seen(if wrapped { "under data" } else { "bare" }.into()))
}
