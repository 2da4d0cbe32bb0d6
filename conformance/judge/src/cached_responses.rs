//! Responses of a cache between the suite and the service.
//!
//! Such a response is stale or was created for another client. A stale response is not a violation by the service.
//! Data of another key is a violation even if a cache sent it. The rate limiter may not have counted the requests.

use std::collections::BTreeSet;

use conformance_model::group::Group;
use conformance_model::reading::{self, parse_http_date};
use conformance_model::recording::{Caller, Exchange, Purpose, ReceivedResponse, Recording};
use conformance_model::verdict::{CheckError, CheckResult};

use crate::check::Check;

/// Returns the exchanges whose response came from a cache, each with the evidence.
pub(crate) fn cached_exchanges(recording: &Recording) -> Vec<(&Exchange, String)> {
    let mut found = Vec::new();
    for exchange in &recording.exchanges {
        let Some(response) = exchange.response() else { continue };
        if let Some(reason) = reading::cache_evidence(response) {
            found.push((exchange, reason));
        } else if let Some(date) = stale_date(recording, exchange, response) {
            found.push((exchange, format!("Date: {date} again, after a later one")));
        }
    }
    found
}

/// Returns the `Date` of a response that repeats an earlier one exactly, although the server has sent a later `Date`
/// since. Error responses are excluded: another machine may set their `Date`, and caches do not store them.
fn stale_date<'a>(
    recording: &Recording,
    exchange: &Exchange,
    response: &'a ReceivedResponse,
) -> Option<&'a str> {
    // The clocks of two replicas may differ slightly.
    const SKEW_SECS: i64 = 2;
    let date_text = response.header("date").filter(|_| response.status == 200)?;
    let date = parse_http_date(date_text)?;
    let previous_exchanges =
        recording.exchanges.iter().take_while(|previous| previous.number < exchange.number);
    let mut original = None;
    for previous in previous_exchanges {
        let Some(earlier) = previous.response() else { continue };
        let Some(earlier_date) = earlier.header("date") else { continue };
        if original.is_none() {
            let is_same = previous.target == exchange.target
                && earlier_date == date_text
                && earlier.body == response.body;
            let is_clearly_older =
                exchange.sent.saturating_sub(previous.ended).as_secs() >= SKEW_SECS.unsigned_abs();
            original = (is_same && is_clearly_older && earlier.status == 200).then_some(previous.number);
        } else if parse_http_date(earlier_date)
            .is_some_and(|later| (later - date).whole_seconds() > SKEW_SECS)
        {
            return Some(date_text);
        }
    }
    None
}

/// Returns the group of probes that sent an exchange.
fn group(exchange: &Exchange) -> Group {
    match &exchange.purpose {
        Purpose::Account => Group::Account,
        Purpose::Refusal if exchange.caller == Caller::Revoked => Group::Revoked,
        Purpose::Refusal | Purpose::AfterRefusal | Purpose::Head => Group::Auth,
        Purpose::Burst(_) => Group::Burst,
        Purpose::Page(_) if exchange.caller == Caller::OtherAccount => Group::OtherAccount,
        Purpose::Page(request) if request.filters.is_empty() => Group::Lists,
        Purpose::Page(_) => Group::Filters,
        Purpose::Event { .. } | Purpose::Filter { .. } => Group::Isolation,
        Purpose::BeforeDeliveries
        | Purpose::AfterDeliveries
        | Purpose::ListAfterDeliveries(_)
        | Purpose::DeliveredEvent { .. } => Group::Webhooks,
        Purpose::Object { .. } => Group::Objects,
        Purpose::Choice { .. } => Group::Extended,
        Purpose::Create | Purpose::DuringInserts { .. } => Group::Inserts,
    }
}

/// Returns the recording without the burst requests that got a cached response, as if the limiter did not count them;
/// `None` if there is no such request.
pub(crate) fn without_cached_burst_requests(
    recording: &Recording,
    cached: &[(&Exchange, String)],
) -> Option<Recording> {
    let numbers: BTreeSet<_> = cached
        .iter()
        .filter(|cached| group(cached.0) == Group::Burst)
        .map(|cached| cached.0.number)
        .collect();
    (!numbers.is_empty()).then(|| {
        let mut uncached = recording.clone();
        uncached.exchanges.retain(|exchange| !numbers.contains(&exchange.number));
        uncached
    })
}

/// Returns the more favourable of two results of a limits check, without and with the requests that got a cached
/// response: the limiter may or may not count them.
pub(crate) fn more_favourable(uncounted: CheckResult, counted: impl FnOnce() -> CheckResult) -> CheckResult {
    uncounted.or_else(|uncounted| match counted() {
        Err(CheckError::Violation(_)) => Err(uncounted),
        other => other,
    })
}

/// The statements about data that a key must never see. A cache does not excuse their violation.
const NEVER_EXCUSED: &[&str] = &[
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

/// Returns the recording without cached responses.
pub(super) fn without_cached(recording: &Recording, cached: &[(&Exchange, String)]) -> Recording {
    let is_uncached =
        |exchange: &&Exchange| !cached.iter().any(|(cached, _)| cached.number == exchange.number);
    let exchanges = recording.exchanges.iter().filter(is_uncached).cloned().collect();
    Recording { exchanges, ..recording.clone() }
}

/// Replaces a violation by "not judged" if cached responses may explain it: the check needs a group of probes that got
/// one, and `uncached`, the check without them, finds no violation.
pub(super) fn excuse_cached(
    check: &Check,
    judged: CheckResult,
    cached: &[(&Exchange, String)],
    uncached: impl FnOnce() -> CheckResult,
) -> CheckResult {
    let of_check = |cached: &&(&Exchange, String)| check.needs.contains(&group(cached.0));
    // The limits checks already leave out burst requests with a cached response.
    let is_excused = |cached: &&(&Exchange, String)| {
        judged.as_ref().is_err_and(is_violation)
            && group(cached.0) != Group::Burst
            && !NEVER_EXCUSED.contains(&check.id)
    };
    let Some((exchange, evidence)) = cached.iter().filter(of_check).find(is_excused) else { return judged };
    if let Err(error) = uncached()
        && is_violation(&error)
    {
        return Err(error);
    }
    Err(CheckError::unjudged(
        format!("a cache responded instead of the service ({evidence}, {})", exchange.target),
        "check the service without the cache, or exclude /v1 from caching",
    ))
}

fn is_violation(error: &CheckError) -> bool {
    matches!(error, CheckError::Violation(_))
}
