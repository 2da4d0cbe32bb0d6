//! What stands between us and the service: answers that a cache gave in its place.
//!
//! Such an answer is old, or was made for somebody else. It shows nothing about the service, so no failure is
//! grounded on it, and nothing at all about a limit, for what a cache answers is never counted.

use std::collections::BTreeSet;

use conformance_model::group::Group;
use conformance_model::reading::http_date;
use conformance_model::recording::{Answer, Caller, Exchange, Purpose, Recording};
use conformance_model::verdict::{CheckError, Judged};

use crate::check::Check;

/// The exchanges that a cache answered, and what shows it.
pub(crate) fn cached(recording: &Recording) -> Vec<(&Exchange, String)> {
    let mut found = Vec::new();
    for exchange in &recording.exchanges {
        let Some(answer) = exchange.answer() else { continue };
        if let Some(told) = told(answer) {
            found.push((exchange, told));
        } else if let Some(date) = stale(recording, exchange, answer) {
            found.push((exchange, format!("Date: {date} again, after a later one")));
        }
    }
    found
}

/// What a cache says of itself.
fn told(answer: &Answer) -> Option<String> {
    let age = answer.header("age").filter(|text| text.trim().parse::<u64>().is_ok_and(|age| age > 0));
    if let Some(age) = age {
        return Some(format!("Age: {age}"));
    }
    ["x-cache", "cf-cache-status", "x-cache-status"].into_iter().find_map(|name| {
        let text = answer.header(name)?;
        let is_hit =
            text.split(|it: char| !it.is_ascii_alphabetic()).any(|word| word.eq_ignore_ascii_case("hit"));
        is_hit.then(|| format!("{name}: {text}"))
    })
}

/// An earlier answer to the same question word for word, its `Date` included, although the server has told a
/// later one since. Refusals may be dated by another machine than successes, and are not kept by caches.
fn stale<'a>(recording: &Recording, exchange: &Exchange, answer: &'a Answer) -> Option<&'a str> {
    const SKEW_SECS: i64 = 2;
    let text = answer.header("date").filter(|_| answer.status == 200)?;
    let date = http_date(text)?;
    let earlier = recording.exchanges.iter().take_while(|it| it.number < exchange.number);
    let mut first = None;
    for it in earlier {
        let Some(told) = it.answer() else { continue };
        let Some(other) = told.header("date") else { continue };
        if first.is_none() {
            let same = it.target == exchange.target && other == text && told.body == answer.body;
            first = (same && told.status == 200).then_some(it.number);
        } else if http_date(other).is_some_and(|later| (later - date).whole_seconds() > SKEW_SECS) {
            return Some(text);
        }
    }
    None
}

/// The probes that an exchange belongs to.
fn group(exchange: &Exchange) -> Group {
    match &exchange.purpose {
        Purpose::Account => Group::Account,
        Purpose::Refusal if exchange.caller == Caller::Revoked => Group::Revoked,
        Purpose::Refusal | Purpose::AfterRefusal | Purpose::Head => Group::Auth,
        Purpose::Burst(_) => Group::Burst,
        Purpose::Page(ask) if ask.filters.is_empty() => Group::Lists,
        Purpose::Page(_) => Group::Filters,
        Purpose::Event { .. } | Purpose::Twin { .. } => Group::Isolation,
        Purpose::OtherEvents => Group::Other,
        Purpose::BeforeDeliveries | Purpose::AfterDeliveries | Purpose::DeliveredEvent { .. } => {
            Group::Webhooks
        }
        Purpose::Object { .. } => Group::Objects,
        Purpose::Choice { .. } => Group::Extended,
        Purpose::Create | Purpose::DuringInserts { .. } => Group::Inserts,
    }
}

/// What is left of a judgement where caches answered.
pub(super) fn weighed(check: &Check, judged: Judged, cached: &[(&Exchange, String)]) -> Judged {
    let of_check = |it: &&(&Exchange, String)| check.needs.contains(&group(it.0));
    let Some((exchange, shown)) = cached.iter().find(of_check) else { return judged };
    let groups: BTreeSet<_> = cached.iter().filter(of_check).map(|(it, _)| group(it)).collect();
    match &judged {
        Err(CheckError::Broken(_)) => {}
        _ if groups.contains(&Group::Burst) => {}
        _ => return judged,
    }
    Err(CheckError::unjudged(
        format!("a cache answered in the service's place ({shown}, {})", exchange.target),
        "check past the cache, or keep it from answering under /v1",
    ))
}
