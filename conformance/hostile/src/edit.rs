//! Edits of a recording as lines of text, a format that is readable and suits the mutations of a fuzzer.
//!
//! A line is `<index> <edit> <argument>`. The index is taken modulo the number of exchanges. Other lines are skipped.

use std::time::Duration;

use conformance::{Answer, Body, Ending, Exchange, Purpose, Recording};
use serde_json::Value;

/// Applies all lines.
pub(crate) fn apply(recording: &mut Recording, text: &str) {
    for line in text.lines() {
        let mut words = line.splitn(3, ' ');
        let (Some(Ok(index)), Some(word)) = (words.next().map(str::parse::<usize>), words.next()) else {
            continue;
        };
        let rest = words.next().unwrap_or_default();
        if recording.exchanges.is_empty() {
            return;
        }
        let index = index % recording.exchanges.len();
        let other = rest.parse::<usize>().map_or(0, |other| other % recording.exchanges.len());
        match word {
            "remove" => drop(recording.exchanges.remove(index)),
            "repeat" => {
                let again = recording.exchanges[index].clone();
                recording.exchanges.insert(other, again);
            }
            "swap" => recording.exchanges.swap(index, other),
            "caller" => recording.exchanges[index].caller = recording.exchanges[other].caller,
            "purpose" => recording.exchanges[index].purpose = recording.exchanges[other].purpose.clone(),
            "ending" => recording.exchanges[index].ending = recording.exchanges[other].ending.clone(),
            "base" => recording.base = rest.to_owned(),
            "prefix" => recording.key_prefix = rest.to_owned(),
            _ => apply_to(&mut recording.exchanges[index], word, rest),
        }
    }
}

fn apply_to(exchange: &mut Exchange, word: &str, rest: &str) {
    let number = rest.parse::<u64>().unwrap_or_default();
    match word {
        "lost" => exchange.ending = Ending::Lost(rest.to_owned()),
        "status" => answer_mut(exchange).status = u16::try_from(number).unwrap_or(u16::MAX),
        "body" => answer_mut(exchange).body = rest.into(),
        "header" => {
            let (name, value) = rest.split_once(": ").unwrap_or((rest, ""));
            let headers = &mut answer_mut(exchange).headers;
            headers.retain(|(known, _)| known != name);
            headers.push((name.to_owned(), value.to_owned()));
        }
        "set" => set(&mut answer_mut(exchange).body, rest),
        "target" => exchange.target = rest.to_owned(),
        "number" => exchange.number = u32::try_from(number).unwrap_or(u32::MAX),
        "sent" => exchange.sent = Duration::from_micros(number),
        "ended" => exchange.ended = Duration::from_micros(number),
        "page" | "per_page" => {
            if let Purpose::Page(request) = &mut exchange.purpose {
                *(if word == "page" { &mut request.page } else { &mut request.per_page }) = rest.parse().ok();
            }
        }
        "event" => {
            if let Purpose::Event { id, .. } = &mut exchange.purpose {
                *id = rest.to_owned();
            }
        }
        _ => {}
    }
}

/// Sets a value in a JSON body. `rest`: a JSON pointer and a JSON value or a plain string, such as `/data/0/id "text"`.
fn set(body: &mut Body, rest: &str) {
    let (pointer, value) = rest.split_once(' ').unwrap_or((rest, "null"));
    let Some(mut whole) = body.json().as_deref().cloned() else { return };
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    match whole.pointer_mut(pointer) {
        Some(at) => *at = value,
        None => {
            let Some((parent, name)) = pointer.rsplit_once('/') else { return };
            match whole.pointer_mut(parent) {
                Some(Value::Object(members)) => drop(members.insert(name.to_owned(), value)),
                Some(Value::Array(items)) => items.push(value),
                _ => return,
            }
        }
    }
    *body = whole.to_string().into();
}

fn answer_mut(exchange: &mut Exchange) -> &mut Answer {
    if !matches!(exchange.ending, Ending::Answered(_)) {
        exchange.ending =
            Ending::Answered(Answer { status: 200, headers: Vec::new(), body: Body::default() });
    }
    let Ending::Answered(answer) = &mut exchange.ending else { unreachable!("it was just answered") };
    answer
}
