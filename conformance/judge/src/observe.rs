//! The behaviour of the target where the specification leaves a choice. It is observed, never judged.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use conformance_model::deliveries::Delivery;
use conformance_model::reading::{Page, declares_json, parse_http_date, text_at};
use conformance_model::recording::{Exchange, Purpose, ReceivedResponse, Recording, Side};
use conformance_model::verdict::{StatementResult, Verdict};

use crate::cached_responses::cached_exchanges;

/// A choice that the specification leaves open, as observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Deserialize))]
pub struct Observation {
    /// The name of the choice.
    pub topic: String,
    /// The observation.
    pub seen: String,
}

type Observer = fn(&Recording) -> BTreeSet<String>;

/// The observers of a recording, by topic. A topic without observations is not reported.
const OBSERVERS: &[(&str, Observer)] = &[
    ("Retry-After", retry_after),
    ("Media type of a 401", |recording| refusal_types(recording, 401)),
    ("Media type of a 404", |recording| refusal_types(recording, 404)),
    ("Media type of a 429", |recording| refusal_types(recording, 429)),
    ("WWW-Authenticate of a 401", challenge),
    ("Status for an event that does not exist", absent_events),
    ("A ?charge= that finds nothing", |recording| absent_filter(recording, "charge")),
    ("A ?invoice= that finds nothing", |recording| absent_filter(recording, "invoice")),
    ("A ?payment_link= that finds nothing", |recording| absent_filter(recording, "payment_link")),
    ("A ?status= that finds nothing", |recording| absent_filter(recording, "status")),
    ("A ?type= that finds nothing", |recording| absent_filter(recording, "type")),
    ("Ids of events", event_ids),
    ("Times", times),
    ("Links of a page", links),
    ("last_page of an empty list", empty_last_page),
    ("States in lists", states),
    ("Headers about the limit", limit_headers),
    ("A cache in front", cache),
    ("Server", server),
    ("Ids of deliveries", delivery_ids),
    ("Repeated deliveries", repeated_deliveries),
    ("Order of deliveries", delivery_order),
    ("Parts of the signature header", signature_parts),
    ("More members of a delivery", additional_members),
    ("Test deliveries", test_deliveries),
];

/// Returns all observations: first those in the verdicts, then those of the observers.
pub fn observations(recording: &Recording, rows: &[StatementResult]) -> Vec<Observation> {
    let mut found = Vec::new();
    for row in rows {
        let topic = match (&row.verdict, row.id.as_str()) {
            (Verdict::Pass { note: Some(_) }, "limits.refused") => "Reading of the rate limit".to_owned(),
            (Verdict::Observed { .. }, _) => row.requirement.text.trim_end_matches('.').to_owned(),
            _ => continue,
        };
        if let Verdict::Observed { seen } | Verdict::Pass { note: Some(seen) } = &row.verdict {
            found.push(Observation { topic, seen: seen.clone() });
        }
    }
    for (topic, observe) in OBSERVERS {
        let seen = observe(recording);
        if !seen.is_empty() {
            let seen = seen.into_iter().collect::<Vec<_>>().join(", ");
            found.push(Observation { topic: (*topic).to_owned(), seen });
        }
    }
    found
}

fn responses(recording: &Recording) -> impl Iterator<Item = (&Exchange, &ReceivedResponse)> {
    recording.exchanges.iter().filter_map(|exchange| Some((exchange, exchange.response()?)))
}

fn pages(recording: &Recording) -> impl Iterator<Item = Page<'_>> {
    recording
        .exchanges
        .iter()
        .filter(|exchange| matches!(exchange.purpose, Purpose::Page(_)))
        .filter_map(Page::from_exchange)
}

fn rows(recording: &Recording) -> impl Iterator<Item = &Value> {
    pages(recording).filter_map(Page::rows).flatten()
}

fn retry_after(recording: &Recording) -> BTreeSet<String> {
    let refused = responses(recording).filter(|(_, response)| response.status == 429);
    let format = |(_, response): (&Exchange, &ReceivedResponse)| match response.header("retry-after") {
        None => "absent",
        Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => "whole seconds",
        Some(text) if parse_http_date(text).is_some() => "an HTTP date",
        Some(_) => "something else",
    };
    refused.map(format).map(str::to_owned).collect()
}

/// Observes the media types of the responses with a status, and the members of their JSON. There is
/// a topic for each status, because a run gets a 429 only if the key was used before.
fn refusal_types(recording: &Recording, status: u16) -> BTreeSet<String> {
    let refused = responses(recording).filter(|(_, response)| response.status == status);
    let choices = refused.map(|(_, response)| {
        let media_type = response.header("content-type").unwrap_or("none");
        let members = response
            .body
            .json()
            .filter(|_| declares_json(response))
            .and_then(|body| Some(body.as_object()?.keys().cloned().collect::<Vec<_>>().join(" ")));
        match members {
            Some(members) => format!("{media_type} ({members})"),
            None => media_type.to_owned(),
        }
    });
    choices.collect()
}

fn challenge(recording: &Recording) -> BTreeSet<String> {
    let refused = responses(recording).filter(|(_, response)| response.status == 401);
    refused.map(|(_, response)| response.header("www-authenticate").unwrap_or("absent").to_owned()).collect()
}

fn absent_events(recording: &Recording) -> BTreeSet<String> {
    let absent = responses(recording)
        .filter(|(exchange, _)| matches!(exchange.purpose, Purpose::Event { side: Side::AbsentBefore, .. }));
    absent.map(|(_, response)| response.status.to_string()).collect()
}

fn absent_filter(recording: &Recording, name: &str) -> BTreeSet<String> {
    let exchanges = recording.exchanges.iter().filter(
        |exchange| matches!(&exchange.purpose, Purpose::Filter { filter, side: Side::AbsentBefore, .. } if filter == name),
    );
    let seen = exchanges.filter_map(|exchange| match exchange.status()? {
        200 => Some("an empty list".to_owned()),
        // The request was repeated after the wait.
        429 => None,
        status => Some(status.to_string()),
    });
    seen.collect()
}

fn event_ids(recording: &Recording) -> BTreeSet<String> {
    let ids = responses(recording).filter_map(|(exchange, _)| match &exchange.purpose {
        Purpose::Event { id, side: Side::Own | Side::Foreign, .. } => Some(id),
        _ => None,
    });
    ids.map(|id| uuid_version(id).unwrap_or_else(|| "no UUID".to_owned())).collect()
}

fn uuid_version(id: &str) -> Option<String> {
    /// The position of the version in a UUID.
    const VERSION_INDEX: usize = 14;
    let version = id.chars().nth(VERSION_INDEX)?;
    (id.len() == 36 && id.matches('-').count() == 4).then(|| format!("UUID version {version}"))
}

fn times(recording: &Recording) -> BTreeSet<String> {
    let rows = rows(recording);
    let stamps = rows.filter_map(|row| text_at(row, &["created_at"]));
    let format = |text: &str| {
        let (time, zone) = match text.strip_suffix('Z') {
            Some(time) => (time, "Z"),
            None => text.split_at(text.len().saturating_sub("+00:00".len())),
        };
        let digits = time.rsplit_once('.').map_or(0, |(_, digits)| digits.len());
        format!("{zone} with {digits} decimals of a second")
    };
    stamps.filter(|text| text.is_ascii()).map(format).collect()
}

fn links(recording: &Recording) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for page in pages(recording) {
        for rel in ["first", "last", "prev", "next"] {
            if let Some(link) = page.link(rel) {
                let kind = if link.contains("://") { "absolute" } else { "relative" };
                found.insert(kind.to_owned());
            }
        }
    }
    found
}

fn empty_last_page(recording: &Recording) -> BTreeSet<String> {
    let empty = pages(recording).filter(|page| page.meta_number("total") == Some(0));
    empty.filter_map(|page| page.meta_number("last_page")).map(|number| number.to_string()).collect()
}

fn states(recording: &Recording) -> BTreeSet<String> {
    rows(recording).filter_map(|row| text_at(row, &["status"])).map(str::to_owned).collect()
}

fn limit_headers(recording: &Recording) -> BTreeSet<String> {
    let names = responses(recording).flat_map(|(_, response)| response.headers.iter().map(|(name, _)| name));
    names.filter(|name| name.contains("ratelimit") || name.contains("rate-limit")).cloned().collect()
}

fn cache(recording: &Recording) -> BTreeSet<String> {
    let found = cached_exchanges(recording);
    let headers: BTreeSet<_> =
        found.iter().map(|(_, evidence)| evidence.split(':').next().unwrap_or_default()).collect();
    let headers = headers.into_iter().collect::<Vec<_>>().join(", ");
    let count = found.len();
    if count == 0 { BTreeSet::new() } else { [format!("{count} responses from it, by {headers}")].into() }
}

fn server(recording: &Recording) -> BTreeSet<String> {
    responses(recording).filter_map(|(_, response)| response.header("server")).map(str::to_owned).collect()
}

/// Returns the deliveries whose body is JSON.
fn json_deliveries(recording: &Recording) -> impl Iterator<Item = (&Delivery, &Value)> {
    let received = recording
        .deliveries
        .iter()
        .flat_map(|deliveries| &deliveries.received)
        .filter(|delivery| !delivery.redirected);
    received.filter_map(|delivery| Some((delivery, delivery.body.json()?)))
}

fn delivery_ids(recording: &Recording) -> BTreeSet<String> {
    json_deliveries(recording).filter_map(|(_, body)| uuid_version(text_at(body, &["id"])?)).collect()
}

/// Counts the deliveries that an endpoint accepted although it had accepted the same event before.
fn repeated_deliveries(recording: &Recording) -> BTreeSet<String> {
    let mut accepted = BTreeSet::new();
    let mut count = 0;
    for (delivery, body) in json_deliveries(recording) {
        let event = text_at(body, &["event_id"]).unwrap_or_default().to_owned();
        if !event.is_empty() && delivery.was_accepted() && !accepted.insert((delivery.endpoint, event)) {
            count += 1;
        }
    }
    (count > 0)
        .then(|| format!("{count} were delivered again although they had been accepted"))
        .into_iter()
        .collect()
}

/// Observes whether the deliveries to each endpoint arrive in the order of the times in their bodies.
fn delivery_order(recording: &Recording) -> BTreeSet<String> {
    let mut last: BTreeMap<Option<usize>, String> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for (delivery, body) in json_deliveries(recording) {
        let Some(created_at) = text_at(body, &["created_at"]) else { continue };
        if let Some(previous) = last.insert(delivery.endpoint, created_at.to_owned()) {
            found.insert(
                if previous.as_str() <= created_at { "as created" } else { "not always as created" }
                    .to_owned(),
            );
        }
    }
    if found.len() > 1 {
        found.remove("as created");
    }
    found
}

fn signature_parts(recording: &Recording) -> BTreeSet<String> {
    let Some(deliveries) = &recording.deliveries else { return BTreeSet::new() };
    let name = format!("{}-Signature", deliveries.header_prefix);
    let mut found = BTreeSet::new();
    for delivery in &deliveries.received {
        for value in delivery.header_values(&name) {
            let parts: Vec<_> = value.split(',').filter_map(|part| part.trim().split_once('=')).collect();
            let names: Vec<_> = parts.iter().map(|(name, _)| *name).collect();
            found.insert(names.join(", "));
        }
    }
    found
}

fn additional_members(recording: &Recording) -> BTreeSet<String> {
    const ENVELOPE: &[&str] = &["id", "event_id", "event", "mode", "created_at", "data", "test"];
    const DATA: &[&str] = &["charge", "invoice"];
    let mut found = BTreeSet::new();
    for (_, body) in json_deliveries(recording) {
        let names = |value: &Value| -> Vec<String> {
            value.as_object().map(|members| members.keys().cloned().collect()).unwrap_or_default()
        };
        found.extend(names(body).into_iter().filter(|name| !ENVELOPE.contains(&name.as_str())));
        let data = body.get("data").map(names).unwrap_or_default();
        let additional = data.into_iter().filter(|name| !DATA.contains(&name.as_str()));
        found.extend(additional.map(|name| format!("data.{name}")));
    }
    found
}

fn test_deliveries(recording: &Recording) -> BTreeSet<String> {
    let count =
        json_deliveries(recording).filter(|(_, body)| body.get("test") == Some(&Value::Bool(true))).count();
    (count > 0).then(|| format!("{count} marked `\"test\": true`")).into_iter().collect()
}
