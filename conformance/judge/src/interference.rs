//! Interference between the suite and the service: responses that a cache gave in its place.
//!
//! Such an answer is old, or was made for another client. Age is no failure of the service, so none is grounded on it.
//! Another key's answer is a failure, whoever gave it. A limit never counts what a cache answered.

use std::collections::BTreeSet;

use conformance_model::group::Group;
use conformance_model::reading::{self, http_date};
use conformance_model::recording::{Answer, Caller, Exchange, Purpose, Recording};
use conformance_model::verdict::{CheckError, Judged};

use crate::check::Check;

/// The exchanges that a cache answered, and what shows it.
pub(crate) fn cached(recording: &Recording) -> Vec<(&Exchange, String)> {
    let mut found = Vec::new();
    for exchange in &recording.exchanges {
        let Some(answer) = exchange.answer() else { continue };
        if let Some(told) = reading::cached(answer) {
            found.push((exchange, told));
        } else if let Some(date) = stale(recording, exchange, answer) {
            found.push((exchange, format!("Date: {date} again, after a later one")));
        }
    }
    found
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
            // Two replicas may be of two minds about the second.
            let is_earlier = exchange.sent.saturating_sub(it.ended).as_secs() >= SKEW_SECS.unsigned_abs();
            first = (same && is_earlier && told.status == 200).then_some(it.number);
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

/// The recording without the requests of bursts that a cache answered: they were never counted. `None` if there are none.
pub(crate) fn without_cached_shots(
    recording: &Recording,
    cached: &[(&Exchange, String)],
) -> Option<Recording> {
    let numbers: BTreeSet<_> =
        cached.iter().filter(|it| group(it.0) == Group::Burst).map(|it| it.0.number).collect();
    (!numbers.is_empty()).then(|| {
        let mut counted = recording.clone();
        counted.exchanges.retain(|it| !numbers.contains(&it.number));
        counted
    })
}

/// The milder of two judgements. The service may count what a cache in front of it answers, and may never see it.
pub(crate) fn milder(uncounted: Judged, counted: impl FnOnce() -> Judged) -> Judged {
    match (uncounted, counted) {
        (Ok(held), _) => Ok(held),
        (Err(CheckError::Broken(finding)), counted) => match counted() {
            Err(CheckError::Broken(_)) => Err(CheckError::Broken(finding)),
            other => other,
        },
        (Err(unjudged), counted) => counted().or(Err(unjudged)),
    }
}

/// Statements about what one key must never see. That a cache answered is no excuse for breaking them.
const NEVER_SEEN: &[&str] = &[
    "account.mode",
    "auth.after_refusal",
    "auth.appended",
    "auth.empty_bearer",
    "auth.encoded",
    "auth.every_path",
    "auth.head",
    "auth.last_character",
    "auth.letter_case",
    "auth.no_header",
    "auth.other_prefix",
    "auth.other_scheme",
    "auth.revoked_key",
    "auth.shortened",
    "auth.token_scheme",
    "auth.unknown_key",
    "isolation.filter_charge",
    "isolation.filter_invoice",
    "isolation.filter_payment_link",
    "isolation.lists",
    "isolation.not_found",
    "isolation.objects",
    "isolation.second_account",
];

/// The recording without the answers of caches.
pub(super) fn uncached(recording: &Recording, cached: &[(&Exchange, String)]) -> Recording {
    let is_of_service = |it: &&Exchange| !cached.iter().any(|(cached, _)| cached.number == it.number);
    let exchanges = recording.exchanges.iter().filter(is_of_service).cloned().collect();
    Recording { exchanges, ..recording.clone() }
}

/// Returns the judgement without the answers of caches: a violation that shows without them as well remains one.
pub(super) fn weighed(
    check: &Check,
    judged: Judged,
    cached: &[(&Exchange, String)],
    uncached: impl FnOnce() -> Judged,
) -> Judged {
    let of_check = |it: &&(&Exchange, String)| check.needs.contains(&group(it.0));
    // What a burst asked is left out where caches answered, so only what could not be judged then is their fault.
    let is_excused = |it: &&(&Exchange, String)| match &judged {
        Err(CheckError::Broken(_)) => group(it.0) != Group::Burst && !NEVER_SEEN.contains(&check.id),
        Err(CheckError::Unjudged { .. }) => group(it.0) == Group::Burst,
        _ => false,
    };
    let Some((exchange, shown)) = cached.iter().filter(of_check).find(is_excused) else { return judged };
    if judged.as_ref().is_err_and(is_broken)
        && let Err(error) = uncached()
        && is_broken(&error)
    {
        return Err(error);
    }
    Err(CheckError::unjudged(
        format!("a cache answered in the service's place ({shown}, {})", exchange.target),
        "check past the cache, or keep it from answering under /v1",
    ))
}

fn is_broken(error: &CheckError) -> bool {
    matches!(error, CheckError::Broken(_))
}
