//! Choices about refusals, limits and odd questions.

use serde_json::Value;

use conformance_model::reading::{LIMIT, Page};
use conformance_model::recording::{Answer, Caller, Exchange, Purpose, Recording, Side};
use conformance_model::verdict::{CheckError, Held, Judged};

use super::{choice, none, shown};

fn refusals(recording: &Recording) -> impl Iterator<Item = (&Exchange, &Answer)> {
    let answers = recording.exchanges.iter().filter_map(|it| Some((it, it.answer()?)));
    answers.filter(|(_, answer)| (400..500).contains(&answer.status))
}

pub(super) fn error_body(recording: &Recording) -> Judged {
    let mut judged = false;
    // An answer to HEAD has no body.
    for (exchange, answer) in refusals(recording).filter(|(exchange, _)| exchange.method() != "HEAD") {
        let body = answer.body.json().unwrap_or_default();
        let message = body.get("message");
        if message.and_then(Value::as_str).is_none_or(str::is_empty) {
            return Err(CheckError::broken(exchange.number, "an object with a message", exchange.summary()));
        }
        let by_field = |it: &Value| {
            let lists = |list: &Value| {
                list.as_array().is_some_and(|it| !it.is_empty() && it.iter().all(Value::is_string))
            };
            it.as_object().is_some_and(|it| !it.is_empty() && it.values().all(lists))
        };
        if answer.status == 422 && !body.get("errors").is_some_and(by_field) {
            let actual = format!("errors {}", shown(body.get("errors")));
            return Err(CheckError::broken(exchange.number, "errors by field, each a list of texts", actual));
        }
        judged = true;
    }
    if judged { Ok(Held::Plainly) } else { Err(none("refusal")) }
}

pub(super) fn challenge(recording: &Recording) -> Judged {
    let mut judged = false;
    for (exchange, answer) in refusals(recording).filter(|(_, answer)| answer.status == 401) {
        let told = answer.header("www-authenticate").unwrap_or("none");
        if told != "Bearer" {
            return Err(CheckError::broken(exchange.number, "WWW-Authenticate: Bearer", told));
        }
        judged = true;
    }
    if judged { Ok(Held::Plainly) } else { Err(none("401")) }
}

/// Refused with 422 that names the parameter.
fn refused(recording: &Recording, what: &str, name: &str) -> Result<(), CheckError> {
    let (exchange, answer) = choice(recording, what)?;
    let named = || answer.body.json()?.get("errors")?.get(name).cloned();
    if answer.status != 422 || named().is_none() {
        return Err(CheckError::broken(
            exchange.number,
            format!("422 with errors.{name}"),
            exchange.summary(),
        ));
    }
    Ok(())
}

pub(super) fn page_values(recording: &Recording) -> Judged {
    for (what, name) in
        [("page=0", "page"), ("page=x", "page"), ("per_page=0", "per_page"), ("per_page=101", "per_page")]
    {
        refused(recording, what, name)?;
    }
    Ok(Held::Plainly)
}

pub(super) fn filter_values(recording: &Recording) -> Judged {
    refused(recording, "type=", "type")?;
    refused(recording, "status=", "status")?;
    Ok(Held::Plainly)
}

pub(super) fn anchors(recording: &Recording) -> Judged {
    refused(recording, "anchor=", "anchor")?;
    Ok(Held::Plainly)
}

fn is_empty_list(exchange: &Exchange) -> bool {
    Page::of(exchange).is_some_and(|page| page.rows().is_some_and(Vec::is_empty))
}

pub(super) fn past_the_end(recording: &Recording) -> Judged {
    let (exchange, _) = choice(recording, "far")?;
    if !is_empty_list(exchange) {
        return Err(CheckError::broken(exchange.number, "200 with empty data", exchange.summary()));
    }
    Ok(Held::Plainly)
}

pub(super) fn foreign_filters(recording: &Recording) -> Judged {
    let named = |it: &&Exchange| {
        // A type and a status are of a closed list: what names none is refused, see `filter_values`.
        let is_code = |filter: &str| !matches!(filter, "type" | "status");
        matches!(&it.purpose, Purpose::Twin { side: Side::AbsentBefore | Side::Foreign, filter, .. } if is_code(filter))
            && it.status().is_some_and(|status| !matches!(status, 429 | 502..=504))
    };
    let mut judged = false;
    for exchange in recording.exchanges.iter().filter(named) {
        if !is_empty_list(exchange) {
            return Err(CheckError::broken(exchange.number, "200 with empty data", exchange.summary()));
        }
        judged = true;
    }
    if judged { Ok(Held::Plainly) } else { Err(none("filter that names what is not there")) }
}

pub(super) fn method(recording: &Recording) -> Judged {
    let (exchange, answer) = choice(recording, "method")?;
    let allowed = answer.header("allow").unwrap_or_default();
    if answer.status != 405 || !allowed.split(',').any(|it| it.trim() == "POST") {
        let actual = format!("{} with Allow: {allowed}", answer.status);
        return Err(CheckError::broken(exchange.number, "405 with Allow: POST", actual));
    }
    Ok(Held::Plainly)
}

pub(super) fn unknown_path(recording: &Recording) -> Judged {
    let (exchange, answer) = choice(recording, "path")?;
    if answer.status != 404 {
        return Err(CheckError::broken(exchange.number, "404", exchange.summary()));
    }
    Ok(Held::Plainly)
}

pub(super) fn rate_headers(recording: &Recording) -> Judged {
    let mut judged = false;
    let own = recording.exchanges.iter().filter(|it| matches!(it.caller, Caller::Own(_)));
    for (exchange, answer) in own.filter_map(|it| Some((it, it.answer()?))) {
        // What stands in front of the service may have answered by itself.
        if answer.status >= 500 {
            continue;
        }
        let number = |name| answer.header(name).and_then(|text| text.parse::<u32>().ok());
        let (limit, remaining) = (number("x-ratelimit-limit"), number("x-ratelimit-remaining"));
        if limit != Some(LIMIT) || remaining.is_none_or(|it| it >= LIMIT) {
            let told = |name| answer.header(name).unwrap_or("none");
            let actual =
                format!("limit {}, remaining {}", told("x-ratelimit-limit"), told("x-ratelimit-remaining"));
            let expected = "X-RateLimit-Limit: 120 and X-RateLimit-Remaining below that";
            return Err(CheckError::broken(exchange.number, expected, actual));
        }
        judged = true;
    }
    if judged { Ok(Held::Plainly) } else { Err(none("answer")) }
}

pub(super) fn retry_after(recording: &Recording) -> Judged {
    let mut judged = false;
    for (exchange, answer) in refusals(recording).filter(|(_, answer)| answer.status == 429) {
        let told = answer.header("retry-after").unwrap_or("none");
        if !told.parse::<u32>().is_ok_and(|seconds| seconds >= 1) {
            return Err(CheckError::broken(
                exchange.number,
                "whole seconds, at least 1",
                format!("Retry-After: {told}"),
            ));
        }
        judged = true;
    }
    if judged {
        Ok(Held::Plainly)
    } else {
        Err(CheckError::unjudged("nothing was refused for the limit", "check again without --quick"))
    }
}
