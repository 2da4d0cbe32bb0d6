//! Edits of a recording as lines of text, a format that is readable and suits the mutations of a fuzzer.
//!
//! A line is `<index> <edit> <argument>`, such as `4 status 500`. The index selects an exchange, modulo the number of
//! exchanges. Other lines are skipped.

use std::time::Duration;

use conformance::{Body, Exchange, ExchangeOutcome, Purpose, ReceivedResponse, Recording};
use serde_json::Value;

/// Applies the edits of all lines in order.
pub(crate) fn apply(recording: &mut Recording, text: &str) {
    for line in text.lines() {
        let mut parts = line.splitn(3, ' ');
        let (Some(Ok(index)), Some(edit)) = (parts.next().map(str::parse::<usize>), parts.next()) else {
            continue;
        };
        let argument = parts.next().unwrap_or_default();
        if recording.exchanges.is_empty() {
            return;
        }
        let index = index % recording.exchanges.len();
        let other_index =
            argument.parse::<usize>().map_or(0, |other_index| other_index % recording.exchanges.len());
        match edit {
            "remove" => drop(recording.exchanges.remove(index)),
            "repeat" => {
                let copy = recording.exchanges[index].clone();
                recording.exchanges.insert(other_index, copy);
            }
            "swap" => recording.exchanges.swap(index, other_index),
            "caller" => recording.exchanges[index].caller = recording.exchanges[other_index].caller,
            "purpose" => {
                recording.exchanges[index].purpose = recording.exchanges[other_index].purpose.clone()
            }
            "ending" => recording.exchanges[index].outcome = recording.exchanges[other_index].outcome.clone(),
            "base" => recording.base = argument.to_owned(),
            "prefix" => recording.key_prefix = argument.to_owned(),
            _ => apply_to(&mut recording.exchanges[index], edit, argument),
        }
    }
}

/// Applies an edit that affects one exchange only.
fn apply_to(exchange: &mut Exchange, edit: &str, argument: &str) {
    let number = argument.parse::<u64>().unwrap_or_default();
    match edit {
        "lost" => exchange.outcome = ExchangeOutcome::NoResponse(argument.to_owned()),
        "status" => response_mut(exchange).status = u16::try_from(number).unwrap_or(u16::MAX),
        "body" => response_mut(exchange).body = argument.into(),
        "header" => {
            let (name, value) = argument.split_once(": ").unwrap_or((argument, ""));
            let headers = &mut response_mut(exchange).headers;
            headers.retain(|(header, _)| header != name);
            headers.push((name.to_owned(), value.to_owned()));
        }
        "set" => set(&mut response_mut(exchange).body, argument),
        "target" => exchange.target = argument.to_owned(),
        "number" => exchange.number = u32::try_from(number).unwrap_or(u32::MAX),
        "sent" => exchange.sent = Duration::from_micros(number),
        "ended" => exchange.ended = Duration::from_micros(number),
        "page" | "per_page" => {
            if let Purpose::Page(request) = &mut exchange.purpose {
                *(if edit == "page" { &mut request.page } else { &mut request.per_page }) =
                    argument.parse().ok();
            }
        }
        "event" => {
            if let Purpose::Event { id, .. } = &mut exchange.purpose {
                *id = argument.to_owned();
            }
        }
        _ => {}
    }
}

/// Sets a value in a JSON body; a missing member is added, an index beyond the end of an array appends. `argument`: a
/// JSON pointer and a JSON value or a plain string, such as `/data/0/id "text"`.
fn set(body: &mut Body, argument: &str) {
    let (pointer, value) = argument.split_once(' ').unwrap_or((argument, "null"));
    let Some(mut document) = body.json().cloned() else { return };
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    match document.pointer_mut(pointer) {
        Some(target) => *target = value,
        None => {
            let Some((parent, name)) = pointer.rsplit_once('/') else { return };
            match document.pointer_mut(parent) {
                Some(Value::Object(members)) => drop(members.insert(name.to_owned(), value)),
                Some(Value::Array(items)) => items.push(value),
                _ => return,
            }
        }
    }
    *body = document.to_string().into();
}

/// Returns the response of an exchange, which is replaced by an empty 200 if there was none.
fn response_mut(exchange: &mut Exchange) -> &mut ReceivedResponse {
    if !matches!(exchange.outcome, ExchangeOutcome::Answered(_)) {
        exchange.outcome = ExchangeOutcome::Answered(ReceivedResponse {
            status: 200,
            headers: Vec::new(),
            body: Body::default(),
        });
    }
    let ExchangeOutcome::Answered(response) = &mut exchange.outcome else {
        unreachable!("the outcome was just set to a response")
    };
    response
}
