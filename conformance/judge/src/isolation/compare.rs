//! Absent, foreign, absent: where the absent answers differ from each other is noise; everywhere
//! else the foreign answer must equal them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use conformance_model::recording::{Answer, Exchange, Purpose, Recording, Side, shorten};

/// Three answers to the same question, the middle one about something that exists elsewhere.
pub(super) struct Trio<'a> {
    before: &'a Exchange,
    pub(super) foreign: &'a Exchange,
    after: &'a Exchange,
}

impl<'a> Trio<'a> {
    /// The trio around a foreign answer, if all three are 404. Anything else is another statement's.
    pub(super) fn around(recording: &'a Recording, foreign: &'a Exchange) -> Option<Trio<'a>> {
        let find = |wanted| {
            let fits = |purpose: &Purpose| match (purpose, &foreign.purpose) {
                (Purpose::Event { side, round: of, .. }, Purpose::Event { round, .. }) => {
                    *side == wanted && of == round
                }
                (
                    Purpose::Object { side, kind: of, round: one, .. },
                    Purpose::Object { kind, round: other, .. },
                ) => *side == wanted && (of, one) == (kind, other),
                _ => false,
            };
            recording.last(|it| it.caller == foreign.caller && fits(&it.purpose))
        };
        let trio = Trio { before: find(Side::AbsentBefore)?, foreign, after: find(Side::AbsentAfter)? };
        let all = [trio.before, trio.foreign, trio.after];
        all.iter().all(|it| it.status() == Some(404)).then_some(trio)
    }

    /// Every place where the foreign answer differs and the absent ones agree.
    pub(super) fn differences(&self) -> BTreeSet<String> {
        let [before, foreign, after] = [self.before, self.foreign, self.after].map(features);
        let names: BTreeSet<_> = before.keys().chain(foreign.keys()).chain(after.keys()).collect();
        let noisy = before.get("body length") != after.get("body length");
        names
            .into_iter()
            .filter(|name| before.get(*name) == after.get(*name) && before.get(*name) != foreign.get(*name))
            .filter(|name| !(noisy && name.as_str() == "header content-length"))
            .map(|name| {
                let show = |it: Option<&String>| it.map_or("missing".to_owned(), |text| shorten(text.trim()));
                format!("{name}: {} (otherwise {})", show(foreign.get(name)), show(before.get(name)))
            })
            .collect()
    }
}

/// A difference that lasts over all rounds, with the exchange that shows it first. One that does not is noise, not a
/// trace of the object.
pub(super) fn lasting(recording: &Recording, foreign: &[&Exchange]) -> Option<(u32, String)> {
    let rounds: Vec<_> = foreign.iter().filter_map(|it| Trio::around(recording, it)).collect();
    let first = rounds.first()?.foreign.number;
    let common = rounds.iter().map(Trio::differences).reduce(|a, b| a.intersection(&b).cloned().collect())?;
    common.into_iter().next().map(|difference| (first, difference))
}

/// An answer as named features: each header field, and each place in the body.
fn features(exchange: &Exchange) -> BTreeMap<String, String> {
    let (Purpose::Event { id, .. } | Purpose::Object { id, .. }, Some(answer)) =
        (&exchange.purpose, exchange.answer())
    else {
        return BTreeMap::new();
    };
    let Answer { headers, .. } = answer;
    let neutral = |text: &str| text.replace(id.as_str(), "{id}");
    let mut features = BTreeMap::new();
    for (name, value) in headers {
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
    features.insert("body length".into(), body.len().to_string());
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
