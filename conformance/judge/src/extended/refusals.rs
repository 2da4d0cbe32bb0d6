//! Choices about errors, limits and invalid requests.

use serde_json::Value;

use conformance_model::reading::{Page, REQUESTS_PER_MINUTE};
use conformance_model::recording::{Caller, Exchange, Purpose, ReceivedResponse, Recording, Side};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::{choice_response, display_value, no_sample};

/// Returns the responses with a 4xx status.
fn refusals(recording: &Recording) -> impl Iterator<Item = (&Exchange, &ReceivedResponse)> {
    let responses = recording.exchanges.iter().filter_map(|exchange| Some((exchange, exchange.response()?)));
    responses.filter(|(_, response)| (400..500).contains(&response.status))
}

pub(super) fn judge_error_body(recording: &Recording) -> CheckResult {
    let mut judged = false;
    // A response to HEAD has no body.
    for (exchange, response) in refusals(recording).filter(|(exchange, _)| exchange.method() != "HEAD") {
        let body = response.body.json().unwrap_or_default();
        let message = body.get("message");
        if message.and_then(Value::as_str).is_none_or(str::is_empty) {
            return Err(CheckError::violation(
                exchange.number,
                "an object with a message",
                exchange.summary(),
            ));
        }
        let has_messages_by_field = |errors: &Value| {
            let is_message_list = |list: &Value| {
                list.as_array()
                    .is_some_and(|messages| !messages.is_empty() && messages.iter().all(Value::is_string))
            };
            errors
                .as_object()
                .is_some_and(|fields| !fields.is_empty() && fields.values().all(is_message_list))
        };
        if response.status == 422 && !body.get("errors").is_some_and(has_messages_by_field) {
            let actual = format!("errors {}", display_value(body.get("errors")));
            return Err(CheckError::violation(
                exchange.number,
                "errors by field, each a list of strings",
                actual,
            ));
        }
        judged = true;
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(no_sample("refusal")) }
}

pub(super) fn judge_challenge(recording: &Recording) -> CheckResult {
    let mut judged = false;
    for (exchange, response) in refusals(recording).filter(|(_, response)| response.status == 401) {
        let challenge = response.header("www-authenticate").unwrap_or("none");
        if challenge != "Bearer" {
            return Err(CheckError::violation(exchange.number, "WWW-Authenticate: Bearer", challenge));
        }
        judged = true;
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(no_sample("401")) }
}

/// Checks that the response to a choice is a 422 with errors for this parameter.
fn check_422(recording: &Recording, choice: &str, parameter: &str) -> Result<(), CheckError> {
    let (exchange, response) = choice_response(recording, choice)?;
    let field_errors = || response.body.json()?.get("errors")?.get(parameter).cloned();
    if response.status != 422 || field_errors().is_none() {
        return Err(CheckError::violation(
            exchange.number,
            format!("422 with errors.{parameter}"),
            exchange.summary(),
        ));
    }
    Ok(())
}

pub(super) fn judge_page_values(recording: &Recording) -> CheckResult {
    for (choice, parameter) in
        [("page=0", "page"), ("page=x", "page"), ("per_page=0", "per_page"), ("per_page=101", "per_page")]
    {
        check_422(recording, choice, parameter)?;
    }
    Ok(CheckOutcome::Holds)
}

pub(super) fn judge_filter_values(recording: &Recording) -> CheckResult {
    check_422(recording, "type=", "type")?;
    check_422(recording, "status=", "status")?;
    Ok(CheckOutcome::Holds)
}

pub(super) fn judge_anchors(recording: &Recording) -> CheckResult {
    check_422(recording, "anchor=", "anchor")?;
    Ok(CheckOutcome::Holds)
}

fn is_empty_list(exchange: &Exchange) -> bool {
    Page::from_exchange(exchange).is_some_and(|page| page.rows().is_some_and(<[_]>::is_empty))
}

pub(super) fn judge_past_the_end(recording: &Recording) -> CheckResult {
    let (exchange, _) = choice_response(recording, "far")?;
    if !is_empty_list(exchange) {
        return Err(CheckError::violation(exchange.number, "200 with empty data", exchange.summary()));
    }
    Ok(CheckOutcome::Holds)
}

pub(super) fn judge_foreign_filters(recording: &Recording) -> CheckResult {
    let is_unmatched_code_filter = |exchange: &&Exchange| {
        // Types and statuses are enums, whose unknown values are refused; see
        // `judge_filter_values`.
        let is_code = |filter: &str| !matches!(filter, "type" | "status");
        matches!(&exchange.purpose, Purpose::Filter { side: Side::AbsentBefore | Side::Foreign, filter, .. }
            if is_code(filter))
            && exchange.status().is_some_and(|status| !matches!(status, 429 | 502..=504))
    };
    let mut judged = false;
    for exchange in recording.exchanges.iter().filter(is_unmatched_code_filter) {
        if !is_empty_list(exchange) {
            return Err(CheckError::violation(exchange.number, "200 with empty data", exchange.summary()));
        }
        judged = true;
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(no_sample("filter by an absent or foreign object")) }
}

pub(super) fn judge_method(recording: &Recording) -> CheckResult {
    let (exchange, response) = choice_response(recording, "method")?;
    let allowed = response.header("allow").unwrap_or_default();
    if response.status != 405 || !allowed.split(',').any(|method| method.trim() == "POST") {
        let actual = format!("{} with Allow: {allowed}", response.status);
        return Err(CheckError::violation(exchange.number, "405 with Allow: POST", actual));
    }
    Ok(CheckOutcome::Holds)
}

pub(super) fn judge_unknown_path(recording: &Recording) -> CheckResult {
    let (exchange, response) = choice_response(recording, "path")?;
    if response.status != 404 {
        return Err(CheckError::violation(exchange.number, "404", exchange.summary()));
    }
    Ok(CheckOutcome::Holds)
}

pub(super) fn judge_rate_headers(recording: &Recording) -> CheckResult {
    let mut judged = false;
    let own = recording.exchanges.iter().filter(|exchange| matches!(exchange.caller, Caller::Own(_)));
    for (exchange, response) in own.filter_map(|exchange| Some((exchange, exchange.response()?))) {
        // A gateway in front of the service may have responded.
        if response.status >= 500 {
            continue;
        }
        let number = |name| response.header(name).and_then(|text| text.parse::<u32>().ok());
        let (limit, remaining) = (number("x-ratelimit-limit"), number("x-ratelimit-remaining"));
        if limit != Some(REQUESTS_PER_MINUTE)
            || remaining.is_none_or(|remaining| remaining >= REQUESTS_PER_MINUTE)
        {
            let header = |name| response.header(name).unwrap_or("none");
            let actual = format!(
                "limit {}, remaining {}",
                header("x-ratelimit-limit"),
                header("x-ratelimit-remaining")
            );
            let expected = "X-RateLimit-Limit: 120 and X-RateLimit-Remaining below that";
            return Err(CheckError::violation(exchange.number, expected, actual));
        }
        judged = true;
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(no_sample("response")) }
}

pub(super) fn judge_retry_after(recording: &Recording) -> CheckResult {
    let mut judged = false;
    for (exchange, response) in refusals(recording).filter(|(_, response)| response.status == 429) {
        let seconds = response.header("retry-after").unwrap_or("none");
        if !seconds.parse::<u32>().is_ok_and(|seconds| seconds >= 1) {
            return Err(CheckError::violation(
                exchange.number,
                "whole seconds, at least 1",
                format!("Retry-After: {seconds}"),
            ));
        }
        judged = true;
    }
    if judged {
        Ok(CheckOutcome::Holds)
    } else {
        Err(CheckError::unjudged("the rate limit refused no request", "check again without --quick"))
    }
}
