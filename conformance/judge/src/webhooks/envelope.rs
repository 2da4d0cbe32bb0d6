//! The headers and the body members of a delivery.

use std::collections::BTreeMap;

use serde_json::Value;

use conformance_model::catalogue::EVENT_TYPES;
use conformance_model::deliveries::Deliveries;
use conformance_model::reading::first_duplicate_name;
use conformance_model::recording::{Recording, shorten};
use conformance_model::verdict::{CheckOutcome, CheckResult};

use super::NEEDS;
use super::api_consistency::check_delivery_times;
use super::objects::check_history;
use crate::check::{Check, Mismatch};
use crate::parsed_deliveries::{
    ParsedDelivery, has_microseconds, is_uuid, judge_each_delivery, member_text, received_deliveries,
};

pub(crate) const CHECKS: &[Check] = &[
    Check::new("webhooks.post", NEEDS, judge_post),
    Check::new("webhooks.content_type", NEEDS, |recording| judge_each(recording, wrong_content_type)),
    Check::new("webhooks.user_agent", NEEDS, |recording| judge_each(recording, wrong_user_agent)),
    Check::new("webhooks.event_header", NEEDS, |recording| judge_each(recording, wrong_event_header)),
    Check::new("webhooks.delivery_id", NEEDS, judge_delivery_ids),
    Check::new("webhooks.body", NEEDS, |recording| judge_each_body(recording, missing_member)),
    Check::new("webhooks.duplicate_keys", NEEDS, |recording| judge_each_body(recording, duplicate_member)),
    Check::new("webhooks.event_type", NEEDS, |recording| judge_each_body(recording, invalid_event_type)),
    Check::new("webhooks.created_at", NEEDS, |recording| {
        let outcome = judge_each_body(recording, invalid_created_at)?;
        check_delivery_times(recording).map(|()| outcome)
    }),
    Check::new("webhooks.data", NEEDS, |recording| {
        let outcome = judge_each_body(recording, invalid_data)?;
        check_history(recording, &received_deliveries(recording)?).map(|()| outcome)
    }),
];

/// Judges every delivery.
fn judge_each(
    recording: &Recording,
    mismatch: fn(&Deliveries, &ParsedDelivery<'_>) -> Option<Mismatch>,
) -> CheckResult {
    // The text is never shown: it describes what no delivery has, and every delivery has it.
    judge_each_delivery(recording, "any content", |_| true, mismatch)
}

/// Judges the deliveries with a readable body. `webhooks.post` judges the others.
fn judge_each_body(
    recording: &Recording,
    mismatch: fn(&Value, &ParsedDelivery<'_>) -> Option<Mismatch>,
) -> CheckResult {
    judge_each_delivery(
        recording,
        "a body that is a JSON object",
        |parsed| parsed.body.is_some_and(Value::is_object),
        |_, parsed| mismatch(parsed.body?, parsed),
    )
}

fn judge_post(recording: &Recording) -> CheckResult {
    judge_each(recording, |_, parsed| {
        if parsed.delivery.method != "POST" {
            return Some(("POST".into(), shorten(&parsed.delivery.method)));
        }
        let is_valid = parsed.body.is_some_and(Value::is_object);
        (!is_valid).then(|| {
            ("a body that is a JSON object".into(), shorten(&parsed.delivery.body.to_string_lossy()))
        })
    })?;
    Ok(CheckOutcome::HoldsWith("the receiver cannot observe HTTPS: TLS is terminated in front of it".into()))
}

/// Returns the value of a header that occurs exactly once; otherwise the error describes the occurrences.
fn single_value(parsed: &ParsedDelivery<'_>, name: &str) -> Result<String, String> {
    let values = parsed.delivery.header_values(name);
    match values.as_slice() {
        [] => Err(format!("no {name}")),
        [value] => Ok(value.clone()),
        _ => Err(format!("{name} {} times", values.len())),
    }
}

fn wrong_content_type(_: &Deliveries, parsed: &ParsedDelivery<'_>) -> Option<Mismatch> {
    let found = single_value(parsed, "Content-Type");
    let is_json = |value: &String| {
        let essence = value.split(';').next().unwrap_or_default().trim();
        essence.eq_ignore_ascii_case("application/json")
    };
    let is_valid = found.as_ref().is_ok_and(is_json);
    let actual = || found.map_or_else(|problem| problem, |value| format!("Content-Type {}", shorten(&value)));
    (!is_valid).then(|| ("Content-Type application/json".into(), actual()))
}

fn wrong_user_agent(deliveries: &Deliveries, parsed: &ParsedDelivery<'_>) -> Option<Mismatch> {
    let found = single_value(parsed, "User-Agent");
    let is_valid = found.as_ref().is_ok_and(|value| *value == deliveries.user_agent);
    let actual = || found.map_or_else(|problem| problem, |value| format!("User-Agent {}", shorten(&value)));
    (!is_valid).then(|| (format!("User-Agent {}", deliveries.user_agent), actual()))
}

fn wrong_event_header(deliveries: &Deliveries, parsed: &ParsedDelivery<'_>) -> Option<Mismatch> {
    let name = format!("{}-Event", deliveries.header_prefix);
    let value = match single_value(parsed, &name) {
        Ok(value) => value,
        Err(problem) => return Some((format!("{name} with the type of the event"), problem)),
    };
    match parsed.event_type() {
        Some(kind) if kind != value => {
            Some((format!("{name} {}, as in the body", shorten(kind)), format!("{name} {}", shorten(&value))))
        }
        Some(_) => None,
        None => {
            let is_valid = EVENT_TYPES.contains(&value.as_str());
            (!is_valid).then(|| {
                (format!("{name} with one of the thirteen types"), format!("{name} {}", shorten(&value)))
            })
        }
    }
}

fn judge_delivery_ids(recording: &Recording) -> CheckResult {
    let outcome = judge_each(recording, wrong_delivery_id)?;
    let received = received_deliveries(recording)?;
    // By delivery id: the id of the event, and the name of the first delivery with that id.
    let mut event_by_delivery: BTreeMap<String, (&str, String)> = BTreeMap::new();
    for parsed in received.readable_deliveries() {
        let (Some(id), Some(event)) = (parsed.text(&["id"]), parsed.text(&["event_id"])) else { continue };
        let (known_event, name) =
            event_by_delivery.entry(id.to_ascii_lowercase()).or_insert_with(|| (event, parsed.name()));
        // A retry may have the same id, but deliveries of two events may not, in any interpretation.
        if !known_event.eq_ignore_ascii_case(event) {
            let expected = format!("an id other than that of {name}, which has another event");
            return Err(parsed.violation(expected, format!("id {}", shorten(id))));
        }
    }
    Ok(outcome)
}

fn wrong_delivery_id(deliveries: &Deliveries, parsed: &ParsedDelivery<'_>) -> Option<Mismatch> {
    let name = format!("{}-Delivery", deliveries.header_prefix);
    let value = match single_value(parsed, &name) {
        Ok(value) => value,
        Err(problem) => return Some((format!("{name} with a UUID"), problem)),
    };
    if !is_uuid(&value) {
        return Some((format!("{name} with a UUID"), format!("{name} {}", shorten(&value))));
    }
    match parsed.text(&["id"]) {
        Some(id) if !id.eq_ignore_ascii_case(&value) => {
            Some((format!("{name} and id alike"), format!("{name} {value}, id {}", shorten(id))))
        }
        _ => None,
    }
}

fn missing_member(body: &Value, parsed: &ParsedDelivery<'_>) -> Option<Mismatch> {
    for name in ["id", "event_id", "event", "mode", "created_at"] {
        // A test delivery has no event.
        let is_valid =
            body.get(name).is_some_and(Value::is_string) || (parsed.is_test() && name == "event_id");
        if !is_valid {
            return Some((format!("{name} as a string"), member_text(body, name)));
        }
    }
    let is_valid = body.get("data").is_some_and(Value::is_object);
    (!is_valid).then(|| ("data as an object".into(), member_text(body, "data")))
}

fn duplicate_member(_: &Value, parsed: &ParsedDelivery<'_>) -> Option<Mismatch> {
    let name = first_duplicate_name(&parsed.delivery.body.to_string_lossy())?;
    Some(("each name once in an object".into(), format!("`{}` twice", shorten(&name))))
}

fn invalid_event_type(body: &Value, parsed: &ParsedDelivery<'_>) -> Option<Mismatch> {
    let is_valid = EVENT_TYPES.contains(&parsed.event_type()?);
    (!is_valid).then(|| ("one of the thirteen types".into(), member_text(body, "event")))
}

fn invalid_created_at(body: &Value, parsed: &ParsedDelivery<'_>) -> Option<Mismatch> {
    let is_valid = has_microseconds(parsed.text(&["created_at"])?);
    (!is_valid).then(|| ("an ISO 8601 time in UTC with microseconds".into(), member_text(body, "created_at")))
}

fn invalid_data(body: &Value, parsed: &ParsedDelivery<'_>) -> Option<Mismatch> {
    let (required, forbidden) = match parsed.event_type()?.split_once('.')?.0 {
        "charge" => ("charge", "invoice"),
        "invoice" => ("invoice", "charge"),
        _ => return None,
    };
    let data = body.get("data").filter(|data| data.is_object())?;
    if !data.get(required).is_some_and(Value::is_object) {
        return Some((
            format!("data.{required} as an object"),
            format!("data.{}", member_text(data, required)),
        ));
    }
    let is_absent = data.get(forbidden).is_none_or(Value::is_null);
    (!is_absent).then(|| (format!("no data.{forbidden}"), format!("data.{}", member_text(data, forbidden))))
}
