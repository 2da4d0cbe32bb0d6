//! `Retry-After`: its format, its bounds, and the response to the first request after the wait.

use std::time::Duration;

use conformance_model::reading::{LIMIT_WINDOW, parse_http_date, retry_after};
use conformance_model::recording::{Burst, Exchange, Purpose, ReceivedResponse, Recording};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::history::{may_be_refused, refusals_before, requests_in_minute_before, test_key_exchanges};
use super::other_traffic::{shared_key, used_by_others};
use super::{last_burst, responses_429};
use crate::evidence::missing_response;

/// The rounding of seconds and dates.
const ROUNDING_MAX: Duration = Duration::from_secs(2);
/// The additional wait for each refused request, if refusals count against the limit.
const WAIT_PER_REFUSAL: Duration = Duration::from_millis(500);
/// The maximum time by which a refusal that counts may defer the end of a window: the time between
/// the first requests of a run.
const WINDOW_DEFERRAL_MAX: Duration = Duration::from_secs(8);

pub(super) fn judge_header(recording: &Recording) -> CheckResult {
    last_burst(recording)?;
    let refused = responses_429(recording)?;
    for (exchange, response) in &refused {
        let expected = "Retry-After with whole seconds or an HTTP date";
        let violation = |actual: String| Err(CheckError::violation(exchange.number, expected, actual));
        let values: Vec<_> = response.headers.iter().filter(|(name, _)| name == "retry-after").collect();
        let [(_, text)] = values[..] else {
            return violation(match values.len() {
                0 => "no such header".to_owned(),
                count => format!("Retry-After {count} times"),
            });
        };
        let is_seconds = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_seconds && parse_http_date(text).is_none() {
            return violation(format!("Retry-After: {text}"));
        }
        let delay_max = LIMIT_WINDOW + ROUNDING_MAX + WAIT_PER_REFUSAL * refusals_before(recording, exchange);
        // A value that overflows an integer is too long a wait too.
        if retry_after(response).is_none_or(|delay| delay > delay_max) {
            let expected = "at most 60 s: after that time no limit of 120 per minute refuses a key";
            return Err(CheckError::violation(exchange.number, expected, format!("Retry-After: {text}")));
        }
    }
    match grown_delay(recording) {
        Some((number, actual)) => {
            Err(CheckError::violation(number, "a time that does not grow while the key is refused", actual))
        }
        None => Ok(CheckOutcome::Holds),
    }
}

/// Returns the number and the waits of a refusal with a longer wait than an earlier one, although no request was served
/// in between. A wait may grow by [`WINDOW_DEFERRAL_MAX`] and by [`WAIT_PER_REFUSAL`].
fn grown_delay(recording: &Recording) -> Option<(u32, String)> {
    // The shortest wait since a request was served, and the number of refusals up to it.
    let mut shortest: Option<(Duration, u32)> = None;
    let mut refusals = 0;
    for exchange in test_key_exchanges(recording) {
        let delay = exchange.response().filter(|response| response.status == 429).and_then(retry_after);
        let Some(delay) = delay else {
            if exchange.status() != Some(429) {
                shortest = None;
            }
            continue;
        };
        refusals += 1;
        if let Some((least, refusals_then)) = shortest
            && delay
                > least.saturating_add(WINDOW_DEFERRAL_MAX + WAIT_PER_REFUSAL * (refusals - refusals_then))
        {
            let actual = format!("Retry-After: {} s, and {} s before", delay.as_secs(), least.as_secs());
            return Some((exchange.number, actual));
        }
        if shortest.is_none_or(|(least, _)| delay < least) {
            shortest = Some((delay, refusals));
        }
    }
    None
}

pub(super) fn judge_served_after_wait(recording: &Recording) -> CheckResult {
    last_burst(recording)?;
    let refused = responses_429(recording)?;
    let waited: Vec<_> =
        recording.exchanges.iter().filter_map(|exchange| Some((exchange, waited_span(exchange)?))).collect();
    let Some((last, longest)) = waited.last() else { return never_waited(recording, &refused) };
    let mut was_deferred = false;
    for (index, (exchange, span)) in waited.iter().enumerate() {
        // A server that counts whole seconds may round down.
        let is_served_a_second_later = |(later, later_span): &(&Exchange, Duration)| {
            later.sent.saturating_sub(exchange.ended) <= ROUNDING_MAX
                && later_span > span
                && later.status() == Some(200)
        };
        if exchange.status() != Some(429) || waited.get(index + 1).is_some_and(is_served_a_second_later) {
            continue;
        }
        if let Some(evidence) = used_by_others(recording) {
            return Err(shared_key(&evidence));
        }
        // If refusals count, a request during the wait extends it.
        if sent_during_wait(recording, exchange, *span) && may_be_refused(recording, exchange) {
            was_deferred = true;
            continue;
        }
        return Err(CheckError::violation(
            exchange.number,
            format!("served after {} s, as Retry-After states", span.as_secs()),
            format!("{}, with {} requests in the minute before", exchange.summary(), {
                requests_in_minute_before(recording, exchange)
            }),
        ));
    }
    match last.status() {
        Some(429) => Err(CheckError::unjudged(
            "the limit also counts refused requests, and each refusal extended the wait",
            "check again; if the result is the same, send one request by hand, wait for the time of Retry-After, and send it \
             again",
        )),
        Some(200..=299 | 404) if was_deferred => {
            Ok(CheckOutcome::HoldsWith("after a wait without requests".into()))
        }
        Some(200..=299 | 404) => {
            let is_late =
                waited.iter().any(|(exchange, span)| span < longest && exchange.status() == Some(429));
            Ok(if is_late {
                CheckOutcome::HoldsWith("a second later than stated".into())
            } else {
                CheckOutcome::Holds
            })
        }
        _ => Err(missing_response(Some(last), "the request after the wait")),
    }
}

fn waited_span(exchange: &Exchange) -> Option<Duration> {
    match &exchange.purpose {
        Purpose::Burst(Burst::AfterRetryAfter { span }) => Some(*span),
        _ => None,
    }
}

/// Returns `true` if the suite sent a request with the test key during the wait that ended at this exchange.
fn sent_during_wait(recording: &Recording, waited: &Exchange, span: Duration) -> bool {
    let start = waited.sent.saturating_sub(span);
    let midway = Purpose::Burst(Burst::DuringWait);
    test_key_exchanges(recording).any(|exchange| {
        exchange.purpose == midway && exchange.number < waited.number && exchange.sent >= start
    })
}

/// Returns the result if the suite sent no request for the purpose of testing the end of a wait.
fn never_waited(recording: &Recording, refused: &[(&Exchange, &ReceivedResponse)]) -> CheckResult {
    let Some(span) = refused.last().and_then(|(_, response)| retry_after(response)) else {
        return Err(CheckError::unjudged("no response has a Retry-After", "see limits.retry_after"));
    };
    if let Some(served) = served_after(recording, refused) {
        return Ok(CheckOutcome::HoldsWith(format!("served when that time had passed, at {served}")));
    }
    Err(CheckError::unjudged(
        format!("Retry-After is {} s, and that time did not pass during the check", span.as_secs()),
        "a check waits 90 s at most, and only where the target's clock can be waited for",
    ))
}

/// Returns the path and query of the first request of a key after the wait of a refusal, if it was served. The purpose
/// of the request does not matter. The latest refusals come first, because they may have extended earlier waits.
fn served_after<'a>(recording: &'a Recording, refused: &[(&Exchange, &ReceivedResponse)]) -> Option<&'a str> {
    refused.iter().rev().find_map(|(last, response)| {
        let until = last.ended.saturating_add(retry_after(response)?);
        let first = recording
            .exchanges
            .iter()
            .find(|exchange| exchange.caller == last.caller && exchange.sent >= until)?;
        (first.status() == Some(200)).then_some(first.target.as_str())
    })
}
