//! Absent, foreign, absent, then foreign, absent, foreign: a difference tells of the object only if it keeps following
//! the object, in each of two rounds.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use conformance_model::reading::is_infrastructure;
use conformance_model::recording::{Answer, Exchange, Kind, Purpose, Recording, Side, shorten};
use conformance_model::verdict::CheckError;

/// The answers of 404 of one round: about something that exists elsewhere, and about what nobody has.
pub(super) struct Round<'a> {
    foreign: Vec<&'a Exchange>,
    absent: Vec<&'a Exchange>,
    /// The headers that differ between equal answers to equal requests.
    noise: BTreeSet<&'a str>,
}

/// The headers that differ between equal answers to equal requests: the name of a replica, an id of the request. They
/// cannot follow an object.
fn noise(recording: &Recording) -> BTreeSet<&str> {
    let mut answers: BTreeMap<_, Vec<&Answer>> = BTreeMap::new();
    // Single objects are compared, and prove nothing about each other.
    for exchange in recording.exchanges.iter().filter(|it| key(it).is_none()) {
        if let Some(answer) = exchange.answer() {
            let asked = (exchange.caller, exchange.method(), exchange.target.as_str());
            let body: &str = &answer.body;
            answers.entry((asked, answer.status, body)).or_default().push(answer);
        }
    }
    let names = answers.values().flatten().flat_map(|it| it.headers.iter().map(|(name, _)| name.as_str()));
    let names: BTreeSet<&str> = names.filter(|name| !is_infrastructure(name)).collect();
    let differs = |all: &Vec<&Answer>, name: &str| {
        let values =
            |it: &Answer| it.headers.iter().filter(|(of, _)| of == name).map(|it| it.1.clone()).collect();
        let values: BTreeSet<Vec<String>> = all.iter().map(|it| values(it)).collect();
        values.len() > 1
    };
    names.into_iter().filter(|name| answers.values().any(|all| differs(all, name))).collect()
}

/// The kind of object that was asked for, the round and the side; an event has no kind.
fn key(exchange: &Exchange) -> Option<(Option<Kind>, u8, Side)> {
    match &exchange.purpose {
        Purpose::Event { round, side, .. } => Some((None, *round, *side)),
        Purpose::Object { kind, round, side, .. } => Some((Some(*kind), *round, *side)),
        _ => None,
    }
}

/// The rounds to which these foreign answers belong. Any other answer than 404 is another statement's.
pub(super) fn rounds<'a>(recording: &'a Recording, foreign: &[&'a Exchange]) -> Vec<Round<'a>> {
    let noise = noise(recording);
    let numbers: BTreeSet<u8> = foreign.iter().filter_map(|it| Some(key(it)?.1)).collect();
    let Some((first, (kind, ..))) = foreign.first().and_then(|it| Some((it, key(it)?))) else {
        return Vec::new();
    };
    let of_round = |number: u8| {
        let answers = |wanted: &'static [Side]| {
            let fits = move |it: &&Exchange| {
                it.caller == first.caller
                    && it.status() == Some(404)
                    && key(it).is_some_and(|it| (it.0, it.1) == (kind, number) && wanted.contains(&it.2))
            };
            recording.exchanges.iter().filter(fits).collect::<Vec<_>>()
        };
        let round = Round {
            foreign: answers(&[Side::Foreign]),
            absent: answers(super::ABSENT),
            noise: noise.clone(),
        };
        (round.foreign.len().min(round.absent.len()) > 0 && round.foreign.len() + round.absent.len() > 2)
            .then_some(round)
    };
    numbers.into_iter().filter_map(of_round).collect()
}

impl Round<'_> {
    /// Every place where all foreign answers say one thing and all absent ones another.
    fn differences(&self) -> BTreeMap<String, [Option<String>; 2]> {
        let [foreign, absent] = [&self.foreign, &self.absent]
            .map(|all| all.iter().map(|it| features(it, &self.noise)).collect::<Vec<_>>());
        let names: BTreeSet<_> = foreign.iter().chain(&absent).flat_map(BTreeMap::keys).collect();
        let common = |of: &[BTreeMap<String, String>], name: &str| {
            let first = of.first()?.get(name).cloned();
            of.iter().all(|it| it.get(name) == first.as_ref()).then_some(first)
        };
        let is_noisy = common(&absent, LENGTH).is_none();
        let mut differences = BTreeMap::new();
        for name in names.into_iter().filter(|name| !(is_noisy && name.as_str() == "header content-length")) {
            if let (Some(foreign), Some(absent)) = (common(&foreign, name), common(&absent, name))
                && foreign != absent
            {
                differences.insert(name.clone(), [foreign, absent]);
            }
        }
        differences
    }
}

const LENGTH: &str = "body length";

/// The differences that every round shows, beside the exchange that shows them first.
///
/// # Errors
///
/// A difference that one round alone shows is not judged: it may be the order of the requests.
pub(super) fn lasting(rounds: &[Round<'_>]) -> Result<Option<(u32, String)>, CheckError> {
    let mut differences = rounds.iter().map(Round::differences);
    let Some(mut common) = differences.next() else { return Ok(None) };
    for other in differences {
        common.retain(|name, values| other.get(name) == Some(values));
    }
    let Some((name, [foreign, absent])) = common.into_iter().next() else { return Ok(None) };
    let show = |it: Option<String>| it.map_or("missing".to_owned(), |text| shorten(text.trim()));
    let difference = format!("{name}: {} (otherwise {})", show(foreign), show(absent));
    match rounds {
        [_] => Err(CheckError::unjudged(
            format!("what exists elsewhere differed, and was compared once only ({difference})"),
            "check again, without --only and with time for all requests",
        )),
        all => Ok(all[0].foreign.first().map(|it| (it.number, difference))),
    }
}

/// An answer as named features: each header field, and each place in the body.
fn features(exchange: &Exchange, noise: &BTreeSet<&str>) -> BTreeMap<String, String> {
    let (Purpose::Event { id, .. } | Purpose::Object { id, .. }, Some(answer)) =
        (&exchange.purpose, exchange.answer())
    else {
        return BTreeMap::new();
    };
    let Answer { headers, .. } = answer;
    let neutral = |text: &str| text.replace(id.as_str(), "{id}");
    let mut features = BTreeMap::new();
    let counts = |name: &str| !is_infrastructure(name) && !noise.contains(name);
    for (name, value) in headers.iter().filter(|(name, _)| counts(name)) {
        let values: &mut String = features.entry(format!("header {name}")).or_default();
        values.push_str(&neutral(value));
        values.push('\n');
    }
    let body = neutral(&answer.body);
    match answer.body.json() {
        Some(value) => places("body", &value, &neutral, &mut features),
        None => drop(features.insert("body".into(), body.clone())),
    }
    // Comes after the places by its name: it tells of what they do not show, such as the order of names.
    features.insert("text of the body".into(), body.clone());
    features.insert(LENGTH.into(), body.len().to_string());
    features
}

fn places(
    at: &str,
    value: &Value,
    neutral: &impl Fn(&str) -> String,
    features: &mut BTreeMap<String, String>,
) {
    match value {
        Value::Object(members) => {
            let names: Vec<_> = members.keys().map(String::as_str).collect();
            features.insert(format!("{at} names"), names.join(" "));
            for (name, inner) in members {
                places(&format!("{at}.{name}"), inner, neutral, features);
            }
        }
        other => drop(features.insert(at.to_owned(), neutral(&other.to_string()))),
    }
}
