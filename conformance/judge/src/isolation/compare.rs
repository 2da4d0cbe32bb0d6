//! Comparison of 404 responses for absent and foreign objects.
//!
//! One round requests an absent, a foreign and an absent object, the other a foreign, an absent and a foreign one. A
//! difference counts only if it depends on the object in both rounds, not on the position of the request.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use conformance_model::reading::{is_infrastructure, link_query};
use conformance_model::recording::{
    Exchange, ObjectKind, Purpose, ReceivedResponse, Recording, Side, shorten,
};
use conformance_model::verdict::CheckError;

/// The 404 responses of one round, for foreign and for absent objects.
pub(super) struct Round<'a> {
    foreign: Vec<&'a Exchange>,
    absent: Vec<&'a Exchange>,
    /// The headers that differ between equal responses to equal requests.
    noise: BTreeSet<&'a str>,
}

/// Returns the headers that differ between equal responses to equal requests, such as the name of a replica or a
/// request id. They do not depend on the object.
fn noise_headers(recording: &Recording) -> BTreeSet<&str> {
    let mut responses: BTreeMap<_, Vec<&ReceivedResponse>> = BTreeMap::new();
    // The requests for single objects are left out: their differences are what the suite looks for.
    for exchange in recording.exchanges.iter().filter(|exchange| trial_key(exchange).is_none()) {
        if let Some(response) = exchange.response() {
            let request = (exchange.caller, exchange.method(), exchange.target.as_str());
            let body: &str = &response.body;
            responses.entry((request, response.status, body)).or_default().push(response);
        }
    }
    let names = responses
        .values()
        .flatten()
        .flat_map(|response| response.headers.iter().map(|(name, _)| name.as_str()));
    let names: BTreeSet<&str> = names.filter(|name| !is_infrastructure(name)).collect();
    let differs = |all: &Vec<&ReceivedResponse>, name: &str| {
        let values = |response: &ReceivedResponse| {
            response
                .headers
                .iter()
                .filter(|(header_name, _)| header_name == name)
                .map(|header| header.1.clone())
                .collect()
        };
        let values: BTreeSet<Vec<String>> = all.iter().map(|response| values(response)).collect();
        values.len() > 1
    };
    names.into_iter().filter(|name| responses.values().any(|all| differs(all, name))).collect()
}

/// Returns the kind of the requested object (`None` for an event), the round and the side.
fn trial_key(exchange: &Exchange) -> Option<(Option<ObjectKind>, u8, Side)> {
    match &exchange.purpose {
        Purpose::Event { round, side, .. } => Some((None, *round, *side)),
        Purpose::Object { kind, round, side, .. } => Some((Some(*kind), *round, *side)),
        _ => None,
    }
}

/// Returns the rounds of these foreign requests, which have one kind and one caller. A round needs 404
/// responses of both sides, and three in total. Other statements judge statuses other than 404.
pub(super) fn rounds<'a>(recording: &'a Recording, foreign: &[&'a Exchange]) -> Vec<Round<'a>> {
    let noise = noise_headers(recording);
    let numbers: BTreeSet<u8> = foreign.iter().filter_map(|exchange| Some(trial_key(exchange)?.1)).collect();
    let Some((first, (kind, ..))) =
        foreign.first().and_then(|exchange| Some((exchange, trial_key(exchange)?)))
    else {
        return Vec::new();
    };
    let of_round = |number: u8| {
        let of_sides = |sides: &'static [Side]| {
            let is_of_sides = move |exchange: &&Exchange| {
                exchange.caller == first.caller
                    && exchange.status() == Some(404)
                    && trial_key(exchange)
                        .is_some_and(|key| (key.0, key.1) == (kind, number) && sides.contains(&key.2))
            };
            recording.exchanges.iter().filter(is_of_sides).collect::<Vec<_>>()
        };
        let round = Round {
            foreign: of_sides(&[Side::Foreign]),
            absent: of_sides(super::ABSENT),
            noise: noise.clone(),
        };
        (round.foreign.len().min(round.absent.len()) > 0 && round.foreign.len() + round.absent.len() > 2)
            .then_some(round)
    };
    numbers.into_iter().filter_map(of_round).collect()
}

impl Round<'_> {
    /// Returns the features that are equal in all foreign responses and equal in all absent ones, but
    /// differ between the two sides, each with the foreign and the absent value (`None` if missing).
    fn differences(&self) -> BTreeMap<String, [Option<String>; 2]> {
        let [foreign, absent] = [&self.foreign, &self.absent].map(|exchanges| {
            exchanges.iter().map(|exchange| features(exchange, &self.noise)).collect::<Vec<_>>()
        });
        let names: BTreeSet<_> = foreign.iter().chain(&absent).flat_map(BTreeMap::keys).collect();
        let common = |responses: &[BTreeMap<String, String>], name: &str| {
            let first = responses.first()?.get(name).cloned();
            responses.iter().all(|features| features.get(name) == first.as_ref()).then_some(first)
        };
        let is_length_noisy = common(&absent, BODY_LENGTH).is_none();
        let mut differences = BTreeMap::new();
        for name in
            names.into_iter().filter(|name| !(is_length_noisy && name.as_str() == "header content-length"))
        {
            if let (Some(foreign), Some(absent)) = (common(&foreign, name), common(&absent, name))
                && foreign != absent
            {
                differences.insert(name.clone(), [foreign, absent]);
            }
        }
        differences
    }
}

const BODY_LENGTH: &str = "body length";

/// Returns the first difference that occurs in every round, and the number of the first foreign exchange.
///
/// # Errors
///
/// If only one round was sent, a difference is not judged: it may depend on the order of the requests.
pub(super) fn lasting_difference(rounds: &[Round<'_>]) -> Result<Option<(u32, String)>, CheckError> {
    let mut differences = rounds.iter().map(Round::differences);
    let Some(mut common) = differences.next() else { return Ok(None) };
    for other in differences {
        common.retain(|name, values| other.get(name) == Some(values));
    }
    let Some((name, values)) = common.into_iter().next() else { return Ok(None) };
    let difference = describe_difference(&name, values);
    match rounds {
        [_] => Err(CheckError::unjudged(
            format!(
                "the responses for foreign objects differed, but were compared in one round only ({difference})"
            ),
            "check again, without --only and with time for all requests",
        )),
        all => Ok(all[0].foreign.first().map(|exchange| (exchange.number, difference))),
    }
}

fn describe_difference(name: &str, [foreign, absent]: [Option<String>; 2]) -> String {
    let show = |value: Option<String>| value.map_or("missing".to_owned(), |text| shorten(text.trim()));
    format!("{name}: {} (otherwise {})", show(foreign), show(absent))
}

/// Returns the first difference of the bodies between all 404 responses for foreign and for absent values of a filter.
/// At least two of each are needed, to leave out what differs between any two responses, such as a request id.
pub(super) fn refusal_difference<'a>(
    recording: &'a Recording,
    foreign: Vec<&'a Exchange>,
    absent: Vec<&'a Exchange>,
) -> Option<(u32, String)> {
    let number = foreign.first()?.number;
    if foreign.len().min(absent.len()) < 2 {
        return None;
    }
    let round = Round { foreign, absent, noise: noise_headers(recording) };
    let is_of_body = |name: &str| name.starts_with("body") && name != BODY_LENGTH;
    let difference = round.differences().into_iter().find(|(name, _)| is_of_body(name));
    difference.map(|(name, values)| (number, describe_difference(&name, values)))
}

/// Splits a response into named features: each header field, each member of the body, and the text and length of the
/// body. The requested id is replaced by `{id}`.
fn features(exchange: &Exchange, noise: &BTreeSet<&str>) -> BTreeMap<String, String> {
    let Some(response) = exchange.response() else { return BTreeMap::new() };
    let id = match &exchange.purpose {
        Purpose::Event { id, .. } | Purpose::Object { id, .. } => id.clone(),
        Purpose::Filter { filter, .. } => {
            let query = link_query(&exchange.target).0;
            query.into_iter().find(|(name, _)| name == filter).map_or_else(String::new, |(_, value)| value)
        }
        _ => return BTreeMap::new(),
    };
    let ReceivedResponse { headers, .. } = response;
    let without_id = |text: &str| if id.is_empty() { text.to_owned() } else { text.replace(&id, "{id}") };
    let mut features = BTreeMap::new();
    let is_compared = |name: &str| !is_infrastructure(name) && !noise.contains(name);
    for (name, value) in headers.iter().filter(|(name, _)| is_compared(name)) {
        let values: &mut String = features.entry(format!("header {name}")).or_default();
        values.push_str(&without_id(value));
        values.push('\n');
    }
    let body = without_id(&response.body);
    match response.body.json() {
        Some(value) => json_features("body", value, &without_id, &mut features),
        None => drop(features.insert("body".into(), body.clone())),
    }
    // The name sorts after those of the members. The text has differences that they do not, such as the order of names.
    features.insert("text of the body".into(), body.clone());
    features.insert(BODY_LENGTH.into(), body.len().to_string());
    features
}

/// Adds the features of a JSON value: the names of each object and the value of each member, by its path.
fn json_features(
    path: &str,
    value: &Value,
    without_id: &impl Fn(&str) -> String,
    features: &mut BTreeMap<String, String>,
) {
    match value {
        Value::Object(members) => {
            let names: Vec<_> = members.keys().map(String::as_str).collect();
            features.insert(format!("{path} names"), names.join(" "));
            for (name, member) in members {
                json_features(&format!("{path}.{name}"), member, without_id, features);
            }
        }
        other => drop(features.insert(path.to_owned(), without_id(&other.to_string()))),
    }
}
