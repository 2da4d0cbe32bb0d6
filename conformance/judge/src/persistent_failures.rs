//! Violations by requests of one kind that never get a usable response, while other requests do.
//!
//! One 503, one lost connection or one unexpected 429 is a transient failure, and the statement is not judged. If every
//! request of a kind fails, the failure is permanent, and the statement is violated.

use std::collections::BTreeMap;
use std::ops::Range;

use conformance_model::mode::Mode;
use conformance_model::reading::{LIMIT_WINDOW, REQUESTS_PER_MINUTE, is_served, page_request};
use conformance_model::recording::{Burst, Caller, Exchange, List, PageRequest, Purpose, Recording, Side};
use conformance_model::verdict::{CheckError, CheckResult};

/// The minimum number of requests of a kind for a permanent failure.
const REQUESTS_MIN: usize = 3;
/// The minimum number of refusals of a burst other than by 429, if the live key is served meanwhile.
const REFUSALS_MIN: usize = 30;
/// The minimum number of consecutive refusals other than by 429, if the live key is served between them.
const CONSECUTIVE_MIN: usize = 6;
/// The minimum number of consecutive refusals other than by 429, if nothing is known of the live key.
const CONSECUTIVE_ALONE_MIN: usize = 60;
/// The minimum number of list requests, if a third of them fails.
const LISTS_MIN: usize = 12;

/// A kind of requests with the same expected response.
struct RequestKind {
    /// The ids of the statements that need such a response.
    statements: &'static [&'static str],
    /// Returns `true` if a request is of this kind.
    includes: fn(&Exchange) -> bool,
    expected: &'static str,
}

const KINDS: &[RequestKind] = &[
    RequestKind {
        statements: &["auth.no_header", "auth.every_path"],
        includes: |exchange| exchange.purpose == Purpose::Refusal && exchange.caller == Caller::NoKey,
        expected: "401 without a key",
    },
    RequestKind {
        statements: &[
            "auth.appended",
            "auth.empty_bearer",
            "auth.encoded",
            "auth.last_character",
            "auth.letter_case",
            "auth.other_prefix",
            "auth.other_scheme",
            "auth.shortened",
            "auth.token_scheme",
            "auth.unknown_key",
        ],
        includes: |exchange| {
            exchange.purpose == Purpose::Refusal && matches!(exchange.caller, Caller::Forged(_))
        },
        expected: "401 for an invalid key",
    },
    RequestKind {
        statements: &["auth.revoked_key"],
        includes: |exchange| exchange.purpose == Purpose::Refusal && exchange.caller == Caller::Revoked,
        expected: "401 with a revoked key",
    },
    RequestKind {
        statements: &["errors.not_found"],
        includes: |exchange| is_event_request(exchange, &[Side::AbsentBefore, Side::AbsentAfter]),
        expected: "404 for an event that does not exist",
    },
    RequestKind {
        statements: &["isolation.not_found"],
        includes: |exchange| is_event_request(exchange, &[Side::Foreign]),
        expected: "404 for an event of the other mode",
    },
    RequestKind {
        statements: &["events.single"],
        includes: |exchange| is_event_request(exchange, &[Side::Own]),
        expected: "200 for a single event",
    },
    RequestKind {
        statements: &["filters.type"],
        includes: |exchange| is_filtered(exchange, "type"),
        expected: "200 for events filtered by type",
    },
    RequestKind {
        statements: &["filters.charge"],
        includes: |exchange| is_filtered(exchange, "charge"),
        expected: "200 for events filtered by a charge",
    },
    RequestKind {
        statements: &["filters.invoice"],
        includes: |exchange| is_filtered(exchange, "invoice"),
        expected: "200 for events filtered by an invoice",
    },
    RequestKind {
        statements: &["filters.status"],
        includes: |exchange| is_filtered(exchange, "status"),
        expected: "200 for lists filtered by status",
    },
    RequestKind {
        statements: &["filters.payment_link"],
        includes: |exchange| is_filtered(exchange, "payment_link"),
        expected: "200 for charges filtered by a payment link",
    },
];

fn is_own(exchange: &Exchange) -> bool {
    matches!(exchange.caller, Caller::Own(_))
}

fn is_event_request(exchange: &Exchange, sides: &[Side]) -> bool {
    is_own(exchange) && matches!(&exchange.purpose, Purpose::Event { side, .. } if sides.contains(side))
}

fn allowed_page_request(exchange: &Exchange) -> Option<PageRequest> {
    page_request(exchange)
        .filter(|request| request.has_allowed_size() && is_own(exchange) && !may_exceed_limit(exchange))
}

fn is_unfiltered_page(exchange: &Exchange, list: List) -> bool {
    allowed_page_request(exchange).is_some_and(|request| request.list == list && request.filters.is_empty())
}

fn is_long_page(exchange: &Exchange, list: List) -> bool {
    allowed_page_request(exchange)
        .is_some_and(|request| request.list == list && request.per_page == Some(100))
}

fn is_filtered(exchange: &Exchange, name: &str) -> bool {
    allowed_page_request(exchange)
        .is_some_and(|request| request.filters.iter().any(|(filter, _)| filter == name))
}

/// Returns `true` for a request of a burst that the limit may refuse: all but the concurrent ones with the live key.
fn may_exceed_limit(exchange: &Exchange) -> bool {
    matches!(exchange.purpose, Purpose::Burst(ref burst) if !matches!(burst, Burst::ConcurrentLiveKey { .. }))
}

/// Returns `true` if there is no usable response.
fn is_unclear(exchange: &Exchange) -> bool {
    exchange.status().is_none_or(|status| matches!(status, 429 | 502..=504))
}

/// Replaces the result of a statement by a violation if its requests failed persistently: an unjudged result, and for
/// `lists.served` and `answers.json` also a pass.
pub(super) fn with_persistent_failures(id: &str, recording: &Recording, judged: CheckResult) -> CheckResult {
    let kinds = KINDS.iter().filter(|kind| kind.statements.contains(&id));
    let violation = match (&judged, id) {
        (Err(CheckError::Violation(_) | CheckError::Inapplicable(_)), _) => None,
        // These may be violated even if some requests were served.
        (_, "lists.served") => often_failing(recording)
            .or_else(|| List::ALL.into_iter().find_map(|list| never_listed(recording, list))),
        (_, "answers.json") => never_complete(recording),
        (Ok(_), _) => None,
        (_, "limits.refused") => other_refusals(recording),
        _ => None,
    };
    let is_unjudged = matches!(judged, Err(CheckError::Unjudged { .. }));
    let never = || {
        kinds.filter(|_| is_unjudged).find_map(|kind| never_usable(recording, kind.includes, kind.expected))
    };
    violation.or_else(never).map_or(judged, Err)
}

/// Returns the violation if no page of a list was served, or none of the largest size, whose responses are the longest.
fn never_listed(recording: &Recording, list: List) -> Option<CheckError> {
    let long = format!("200 for a page of 100 {}", list.as_str());
    never_usable(recording, |exchange| is_unfiltered_page(exchange, list), "200 for the list")
        .or_else(|| never_usable(recording, |exchange| is_long_page(exchange, list), &long))
}

/// Returns the violation if the responses to one path and query are malformed at least [`REQUESTS_MIN`] times and never
/// a 200. A lost connection may cut off a single response.
fn never_complete(recording: &Recording) -> Option<CheckError> {
    let mut malformed: BTreeMap<&str, Vec<&Exchange>> = BTreeMap::new();
    for exchange in sent_exchanges(recording).filter(|exchange| is_own(exchange) && exchange.is_malformed()) {
        malformed.entry(&exchange.target).or_default().push(exchange);
    }
    let is_served_once = |target: &str| {
        sent_exchanges(recording).any(|exchange| exchange.target == target && exchange.status() == Some(200))
    };
    let (_, requests) =
        malformed.into_iter().find(|(target, all)| all.len() >= REQUESTS_MIN && !is_served_once(target))?;
    let actual = format!("{} for each of {} such requests", requests[0].summary(), requests.len());
    Some(CheckError::violation(requests[0].number, "a complete HTTP response with a body of JSON", actual))
}

/// Returns the violation if none of at least [`REQUESTS_MIN`] requests of a kind got a usable
/// response, although other requests did before and after.
fn never_usable(
    recording: &Recording,
    is_of_kind: impl Fn(&Exchange) -> bool,
    expected: &str,
) -> Option<CheckError> {
    let trials: Vec<_> = sent_exchanges(recording).filter(|exchange| is_of_kind(exchange)).collect();
    let (first, last) = (trials.first()?, trials.last()?);
    if trials.len() < REQUESTS_MIN || !trials.iter().all(|exchange| is_unclear(exchange)) {
        return None;
    }
    let others = || sent_exchanges(recording).filter(|exchange| !is_of_kind(exchange));
    // A lockout after failed attempts starts after some refusals and returns 429.
    let is_refused = |exchange: &Exchange| exchange.status() == Some(401) && exchange.number < first.number;
    let is_locked_out =
        || trials.iter().any(|exchange| exchange.status() == Some(429)) && others().any(is_refused);
    let served = || others().filter(|exchange| is_own(exchange) && exchange.status() == Some(200));
    let is_served_around = served().any(|exchange| exchange.number < first.number)
        && served().any(|exchange| exchange.number > first.number);
    (is_served_around && !is_locked_out()).then(|| {
        let actual = format!("{} for each of {} such requests", last.summary(), trials.len());
        CheckError::violation(last.number, expected, actual)
    })
}

/// Returns the violation if a third of at least [`LISTS_MIN`] list requests failed, other than with 429.
fn often_failing(recording: &Recording) -> Option<CheckError> {
    let lists: Vec<_> =
        sent_exchanges(recording).filter(|exchange| allowed_page_request(exchange).is_some()).collect();
    let failed: Vec<_> =
        lists.iter().filter(|exchange| is_unclear(exchange) && exchange.status() != Some(429)).collect();
    let last = failed.last()?;
    (lists.len() >= LISTS_MIN && failed.len() * 3 >= lists.len()).then(|| {
        let actual =
            format!("{} of {} requests failed, such as: {}", failed.len(), lists.len(), last.summary());
        CheckError::violation(last.number, "200 for the lists", actual)
    })
}

/// Returns the violation if a limit refuses with another status than 429 or by silence: requests are served up to the
/// limit and then refused. An outage would also affect the live key, or end sooner.
fn other_refusals(recording: &Recording) -> Option<CheckError> {
    let of_key = |exchange: &Exchange| exchange.caller == Caller::Own(Mode::Test);
    let burst: Vec<_> = sent_exchanges(recording)
        .filter(|exchange| matches!(exchange.purpose, Purpose::Burst(_)) && of_key(exchange))
        .collect();
    let is_refused = |exchange: &Exchange| !is_served(exchange) && exchange.status() != Some(429);
    let refused: Vec<_> = burst.iter().filter(|exchange| is_refused(exchange)).collect();
    let (first, last) = (refused.first()?, refused.last()?);
    // In the minute before the first refusal: requests without a response may last longer than a minute.
    let served = sent_exchanges(recording)
        .filter(|exchange| of_key(exchange) && exchange.number < first.number && is_served(exchange))
        .filter(|exchange| exchange.sent.saturating_add(LIMIT_WINDOW) > first.sent)
        .count() as u32;
    let has_429 = burst.iter().any(|exchange| exchange.status() == Some(429));
    let is_served_to = |caller: Caller, numbers: Range<u32>| {
        let served = |exchange: &Exchange| exchange.caller == caller && exchange.status() == Some(200);
        sent_exchanges(recording).any(|exchange| served(exchange) && numbers.contains(&exchange.number))
    };
    // Exchange numbers; `u32::MAX` is the end of the recording.
    let is_live_served_until = |until: u32| is_served_to(Caller::Own(Mode::Live), first.number..until);
    // A burst ends early after lost connections, so few refusals suffice.
    let is_silent =
        refused.len() > REQUESTS_MIN && refused.iter().all(|exchange| exchange.response().is_none());
    let refused_runs =
        || burst.chunk_by(|a, b| is_refused(a) == is_refused(b)).filter(|run| is_refused(run[0]));
    let is_full = served >= REQUESTS_PER_MINUTE;
    let is_refused_often = is_full && refused.len() >= REFUSALS_MIN && is_live_served_until(u32::MAX)
        || refused_runs().any(|run| run.len() >= CONSECUTIVE_MIN) && is_live_served_until(last.number)
        || is_full
            && refused_runs().any(|run| run.len() >= CONSECUTIVE_ALONE_MIN && run[0].response().is_some());
    // A crashed server would not serve the key again.
    let is_served_later = |exchange: &Exchange| {
        exchange.caller == last.caller && exchange.status() == Some(200) && exchange.sent > last.ended
    };
    let is_served_again = || sent_exchanges(recording).any(is_served_later);
    let is_limiter =
        is_full && is_silent && is_live_served_until(u32::MAX) || is_refused_often && is_served_again();
    (is_limiter && !has_429 && served >= REQUESTS_PER_MINUTE / 2).then(|| {
        let actual = format!("{} to {} requests, and {served} were served", last.summary(), refused.len());
        CheckError::violation(
            first.number,
            format!("429 from request {} on", REQUESTS_PER_MINUTE + 1),
            actual,
        )
    })
}

/// Returns the requests that were sent.
fn sent_exchanges(recording: &Recording) -> impl Iterator<Item = &Exchange> {
    recording.exchanges.iter().filter(|exchange| exchange.is_sent())
}
