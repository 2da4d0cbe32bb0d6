//! Responses to requests for single charges, invoices and payment links that do not exist, and the format of every 404.

use std::collections::BTreeMap;

use conformance_model::reading::{has_text, text_at};
use conformance_model::recording::{Caller, Exchange, ObjectKind, Purpose, Recording, Side};
use conformance_model::verdict::CheckError;

use super::ABSENT;
use crate::diff::LIST_DELAY_MAX;
use crate::evidence::{PageView, check_media_type, readable_pages, recorded_at};

/// Checks the status of every response for a single object that does not exist.
pub(super) fn check_absent_objects(recording: &Recording) -> Result<(), CheckError> {
    for (exchange, id) in object_requests(recording, ABSENT) {
        let is_violated = match exchange.status() {
            None | Some(404 | 429 | 502..=504 | 300..=399) => false,
            // The code of an object may have a checksum, and an invalid one a status of its own.
            Some(400 | 422) => false,
            // If objects are numbered, the next number may exist.
            Some(200..=299) => !shows_id(exchange, id),
            Some(_) => true,
        };
        if is_violated {
            return Err(CheckError::violation(exchange.number, "404", exchange.summary()));
        }
    }
    Ok(())
}

/// Checks that repeated requests for a listed charge or invoice do not all get 404. The list must contain the object before
/// them, and a minute must have passed since its creation.
pub(super) fn check_listed_objects(recording: &Recording) -> Result<(), CheckError> {
    let views = readable_pages(recording);
    let mut requests: BTreeMap<_, Vec<&Exchange>> = BTreeMap::new();
    for (exchange, id) in object_requests(recording, &[Side::Own]) {
        if let Purpose::Object { kind, .. } = exchange.purpose {
            requests.entry((exchange.caller, kind, id)).or_default().push(exchange);
        }
    }
    for ((caller, kind, id), exchanges) in requests {
        let are_absent = |exchange: &&Exchange| matches!(exchange.status(), Some(404 | 410));
        let [exchange, _, ..] = &exchanges[..] else { continue };
        let Some(list) = kind.list().filter(|_| exchanges.iter().all(are_absent)) else { continue };
        let mut earlier = views.iter().filter(|view| {
            (Caller::Own(view.mode), view.request.list) == (caller, list)
                && view.exchange.ended <= exchange.sent
        });
        let is_visible = |view: &PageView<'_>| {
            let row = view.rows().iter().find(|row| text_at(row, &["code"]) == Some(id));
            let is_old = exchange.sent.saturating_sub(view.exchange.ended) >= LIST_DELAY_MAX;
            let is_old_record = |row| {
                let times = recorded_at(row).zip(view.read_at);
                times.is_some_and(|(created, read)| created + LIST_DELAY_MAX < read)
            };
            row.is_some_and(|row| is_old || is_old_record(row))
        };
        if earlier.any(is_visible) {
            let expected = format!("{} {id}, which was listed before", kind.as_str());
            return Err(CheckError::violation(exchange.number, expected, exchange.summary()));
        }
    }
    Ok(())
}

/// Checks that every 404 for an event, a single object or a filter is JSON, with a text if the event does not exist.
pub(super) fn check_not_found_is_json(recording: &Recording) -> Result<(), CheckError> {
    let is_event_or_filter = |exchange: &&Exchange| {
        matches!(exchange.caller, Caller::Own(_))
            && matches!(
                exchange.purpose,
                Purpose::Filter { .. }
                    | Purpose::Event {
                        side: Side::AbsentBefore | Side::Foreign | Side::AbsentAfter | Side::OtherAccount,
                        ..
                    }
            )
    };
    let objects = object_requests(recording, &[Side::AbsentBefore, Side::Foreign, Side::AbsentAfter]);
    let all =
        recording.exchanges.iter().filter(is_event_or_filter).chain(objects.map(|(exchange, _)| exchange));
    for exchange in all {
        let Some(response) = exchange.response().filter(|response| response.status == 404) else { continue };
        let is_absent_event =
            matches!(&exchange.purpose, Purpose::Event { side, .. } if ABSENT.contains(side));
        let is_valid = response.body.is_utf8()
            && response.body.json().is_some_and(|body| !is_absent_event || has_text(body));
        if !is_valid {
            let expected = if is_absent_event { "a message in JSON" } else { "JSON" };
            return Err(CheckError::violation(exchange.number, expected, exchange.summary()));
        }
        check_media_type(exchange, response)?;
    }
    Ok(())
}

/// Returns the requests for single objects of these sides, each with the id, if the same key read an own object of the kind.
/// Otherwise the configured path may be wrong.
fn object_requests<'a>(
    recording: &'a Recording,
    sides: &'a [Side],
) -> impl Iterator<Item = (&'a Exchange, &'a str)> {
    let is_kind_served = |caller: Caller, wanted: ObjectKind| {
        recording.exchanges.iter().any(|exchange| {
            let is_own =
                matches!(exchange.purpose, Purpose::Object { kind, side: Side::Own, .. } if kind == wanted);
            is_own && exchange.caller == caller && exchange.status() == Some(200)
        })
    };
    recording.exchanges.iter().filter_map(move |exchange| match &exchange.purpose {
        Purpose::Object { kind, id, side, .. }
            if sides.contains(side) && is_kind_served(exchange.caller, *kind) =>
        {
            Some((exchange, id.as_str()))
        }
        _ => None,
    })
}

/// Returns `true` if a response contains an id in any letter case.
fn shows_id(exchange: &Exchange, id: &str) -> bool {
    exchange
        .response()
        .is_some_and(|response| response.body.to_ascii_lowercase().contains(&id.to_ascii_lowercase()))
}
