//! Chapter "answers": the format of successful responses, and of 400 and 422.

use conformance_model::group::Group;
use conformance_model::reading::{declares_json, first_duplicate_name};
use conformance_model::recording::{Caller, Exchange, Purpose, ReceivedResponse, Recording, shorten};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::evidence::missing_response;
use crate::check::Check;

const NEEDS: &[Group] = &[Group::Account, Group::Lists, Group::Isolation];

pub(super) const CHECKS: &[Check] = &[
    Check::new("answers.json", NEEDS, judge_json),
    Check::new("answers.content_type", NEEDS, judge_content_type),
    Check::new("answers.duplicate_keys", NEEDS, judge_duplicate_keys),
    Check::new("answers.media_type", NEEDS, judge_media_type),
    Check::new("answers.head", &[Group::Account, Group::Auth], judge_head),
];

/// Judges the latest HEAD request of an address for which GET succeeds: it must get 200 and the `Content-Type` of GET.
/// A server may refuse the method.
fn judge_head(recording: &Recording) -> CheckResult {
    let is_own_head =
        |exchange: &&Exchange| exchange.purpose == Purpose::Head && matches!(exchange.caller, Caller::Own(_));
    let get_response = |head: &Exchange| {
        let is_its_get = |exchange: &Exchange| {
            (exchange.caller, &exchange.target) == (head.caller, &head.target) && exchange.method() == "GET"
        };
        recording
            .find_last(|exchange| is_its_get(exchange) && exchange.status() == Some(200))
            .and_then(Exchange::response)
    };
    let heads = || recording.exchanges.iter().filter(is_own_head);
    // isolation.not_found judges HEAD of absent objects.
    let pair =
        heads().rev().find_map(|exchange| Some((exchange, exchange.response()?, get_response(exchange)?)));
    let Some((exchange, response, get_response)) = pair else {
        return Err(missing_response(heads().next_back(), "HEAD and GET of one address"));
    };
    match response.status {
        405 | 501 => Err(CheckError::Inapplicable("the server refuses HEAD".into())),
        429 | 502..=504 => Err(missing_response(Some(exchange), "HEAD with a key")),
        200 => {
            let media_type = |response: &ReceivedResponse| response.header("content-type").map(str::to_owned);
            if media_type(response) == media_type(get_response) {
                return Ok(CheckOutcome::Holds);
            }
            let content_type =
                |media_type: Option<String>| format!("Content-Type {}", media_type.unwrap_or("none".into()));
            Err(CheckError::violation(
                exchange.number,
                content_type(media_type(get_response)),
                content_type(media_type(response)),
            ))
        }
        _ => Err(CheckError::violation(exchange.number, "200, as for GET", exchange.summary())),
    }
}

/// Returns the responses with status 200 to requests with a valid key, except HEAD. Chapter "auth" judges invalid keys.
fn successes(recording: &Recording) -> Result<Vec<(&Exchange, &ReceivedResponse)>, CheckError> {
    let has_valid_key = |exchange: &&Exchange| {
        matches!(exchange.caller, Caller::Own(_) | Caller::SecondKey | Caller::OtherAccount)
            && exchange.method() != "HEAD"
    };
    let found: Vec<_> = recording
        .exchanges
        .iter()
        .filter(has_valid_key)
        .filter_map(|exchange| {
            Some((exchange, exchange.response().filter(|response| response.status == 200)?))
        })
        .collect();
    if found.is_empty() {
        Err(missing_response(None, "a request with a successful response"))
    } else {
        Ok(found)
    }
}

/// Returns the responses with status 400 or 422 that have a body, to requests with the live or the test key, except
/// HEAD.
fn refusals(recording: &Recording) -> impl Iterator<Item = (&Exchange, &ReceivedResponse)> {
    let is_own =
        |exchange: &&Exchange| matches!(exchange.caller, Caller::Own(_)) && exchange.method() != "HEAD";
    recording.exchanges.iter().filter(is_own).filter_map(|exchange| {
        let is_refusal =
            |response: &&ReceivedResponse| matches!(response.status, 400 | 422) && !response.body.is_empty();
        Some((exchange, exchange.response().filter(is_refusal)?))
    })
}

fn judge_json(recording: &Recording) -> CheckResult {
    let has_no_content = |exchange: &&Exchange| {
        matches!(exchange.caller, Caller::Own(_))
            && exchange.method() == "GET"
            && exchange.status() == Some(204)
    };
    if let Some(exchange) = recording.exchanges.iter().find(has_no_content) {
        return Err(CheckError::violation(exchange.number, "a body of JSON", exchange.summary()));
    }
    for (exchange, response) in successes(recording)?.into_iter().chain(refusals(recording)) {
        if response.body.json().is_none() {
            return Err(CheckError::violation(exchange.number, "a body of JSON", shorten(&response.body)));
        }
        // JSON between systems is UTF-8 (RFC 8259, 8.1).
        if !response.body.is_utf8() {
            let offset = response.body.find(char::REPLACEMENT_CHARACTER).unwrap_or_default();
            let actual = format!("invalid UTF-8 at byte offset {offset}");
            return Err(CheckError::violation(exchange.number, "a body of JSON in UTF-8", actual));
        }
        // A client that decodes the body by this header gets an error.
        if let Some(coding) = response.header("content-encoding").filter(|coding| is_encoded(coding)) {
            let actual = format!("Content-Encoding {coding}, and a body that is not encoded");
            return Err(CheckError::violation(exchange.number, "a body of JSON", actual));
        }
    }
    Ok(CheckOutcome::Holds)
}

/// Returns `true` if a `Content-Encoding` names a coding other than `identity`. For a body that was read as JSON, the
/// header is then wrong.
fn is_encoded(value: &str) -> bool {
    value.split(',').map(str::trim).any(|token| !token.is_empty() && !token.eq_ignore_ascii_case("identity"))
}

fn judge_content_type(recording: &Recording) -> CheckResult {
    for (exchange, response) in successes(recording)? {
        let media_type = response
            .header("content-type")
            .filter(|_| response.body.json().is_some() && !declares_json(response));
        if let Some(media_type) = media_type {
            return Err(CheckError::violation(
                exchange.number,
                "Content-Type application/json",
                format!("Content-Type {media_type}"),
            ));
        }
    }
    Ok(CheckOutcome::Holds)
}

fn judge_media_type(recording: &Recording) -> CheckResult {
    let lacks_media_type = |(_, response): &(&Exchange, &ReceivedResponse)| {
        response.header("content-type").is_none() && response.body.json().is_some()
    };
    match successes(recording)?.into_iter().find(lacks_media_type) {
        Some((exchange, _)) => Err(CheckError::violation(
            exchange.number,
            "a Content-Type",
            "a response with a body and no Content-Type",
        )),
        None => Ok(CheckOutcome::Holds),
    }
}

fn judge_duplicate_keys(recording: &Recording) -> CheckResult {
    for (exchange, response) in successes(recording)? {
        if let Some(name) = first_duplicate_name(&response.body) {
            return Err(CheckError::violation(
                exchange.number,
                "each name once in an object",
                format!("`{name}` twice"),
            ));
        }
    }
    Ok(CheckOutcome::Holds)
}
