//! The transcript lines of world events, and the [`Tally`] that expectations are checked against.

use std::collections::BTreeMap;

use reference_core::{event::EventType, mode::Mode, time::Timestamp};
use serde_json::{Map, Value};

use super::alias::Aliases;
use crate::{
    api::{Keyword, WorldEventKind},
    script::Kind,
};

/// A line without its time.
#[derive(Debug)]
pub(super) struct LineText {
    pub(super) verb: String,
    pub(super) body: String,
    pub(super) outcome: Option<String>,
}

/// Returns the suffix that marks test mode; empty for live mode.
pub(super) fn mode_suffix(mode: Mode) -> &'static str {
    match mode {
        Mode::Live => "",
        Mode::Test => " (test)",
    }
}

/// Returns the kind of object that an event type belongs to.
fn kind_of(event_type: EventType) -> Kind {
    if event_type.as_str().starts_with("invoice.") { Kind::Invoice } else { Kind::Charge }
}

/// Returns the line of a world event. Assigns names to new objects.
pub(super) fn event_line(event: &WorldEventKind, aliases: &mut Aliases) -> LineText {
    let plain_line = |verb: &str, body: String| LineText { verb: verb.to_owned(), body, outcome: None };
    match event {
        WorldEventKind::Event { mode, event, kind, subject, details, .. } => {
            let event = aliases.name_or_assign(Kind::Event, *mode, &event.to_string());
            let subject = aliases.name_or_assign(kind_of(*kind), *mode, subject.as_str());
            let details = format_details(&details.fields(), aliases);
            plain_line("event", format!("{event} {} {subject}{details}{}", kind.as_str(), mode_suffix(*mode)))
        }
        WorldEventKind::Attempt {
            mode, endpoint, delivery, event, kind, subject, attempt, answer, ..
        } => {
            let mode = *mode;
            let endpoint = aliases.name_or_assign(Kind::Endpoint, mode, endpoint.as_str());
            let delivery = aliases.name_or_assign(Kind::Delivery, mode, &delivery.to_string());
            let contents = match (event, subject) {
                (Some(event), Some(subject)) => {
                    let event = aliases.name_or_assign(Kind::Event, mode, &event.to_string());
                    let subject = aliases.name_or_assign(kind_of(*kind), mode, subject.as_str());
                    format!("{delivery} {event} {} {subject}", kind.as_str())
                }
                _ => format!("{delivery} test of {}", kind.as_str()),
            };
            LineText {
                verb: format!("POST {endpoint}"),
                body: format!("{contents:<36}  try {attempt}"),
                outcome: Some(format!("{answer}{}", mode_suffix(mode))),
            }
        }
        WorldEventKind::Transfer {
            mode,
            asset,
            txid,
            output,
            charge,
            amount,
            state,
            confirmations,
            required,
            ..
        } => {
            let tx = aliases.name_or_assign(Kind::Transaction, *mode, txid);
            let output = if *output == 0 { String::new() } else { format!(":{output}") };
            let recipient = match charge {
                Some(code) => aliases.name_or_assign(Kind::Charge, *mode, code.as_str()),
                None => "nobody here".to_owned(),
            };
            let amount = trim_trailing_zeros(amount);
            let progress = match &**state {
                "seen" | "confirmed" | "unconfirmed" => format!(", {confirmations} of {required}"),
                _ => String::new(),
            };
            let (state, mode) = (state.replace('_', " "), mode_suffix(*mode));
            plain_line(
                "transfer",
                format!("{tx}{output} {amount} {asset} to {recipient}: {state}{progress}{mode}"),
            )
        }
        WorldEventKind::Reorg { mode, asset, depth } => {
            plain_line("reorg", format!("{asset} {depth} deep{}", mode_suffix(*mode)))
        }
        WorldEventKind::Mail { mode, to, kind, invoice, .. } => {
            let invoice = aliases.name_or_assign(Kind::Invoice, *mode, invoice.as_str());
            plain_line("mail", format!("{kind} {invoice} to {to}{}", mode_suffix(*mode)))
        }
        WorldEventKind::EndpointDisabled { mode, endpoint, .. } => {
            let endpoint = aliases.name_or_assign(Kind::Endpoint, *mode, endpoint.as_str());
            plain_line("off", format!("{endpoint}: too many deliveries failed{}", mode_suffix(*mode)))
        }
        WorldEventKind::Restart => plain_line("restart", String::new()),
    }
}

/// Formats details as `, amount 0.0008, txid t1`: amounts without trailing zeros, ids replaced by names.
fn format_details(details: &Map<String, Value>, aliases: &mut Aliases) -> String {
    let mut text = String::new();
    for (key, value) in details {
        let value = match value {
            Value::String(value) => {
                aliases.name_of(value).map_or_else(|| trim_trailing_zeros(value), str::to_owned)
            }
            other => other.to_string(),
        };
        text.push_str(&format!(", {key} {value}"));
    }
    text
}

/// Returns a decimal number without trailing zeros; other strings unchanged.
pub(super) fn trim_trailing_zeros(text: &str) -> String {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match is_decimal && text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    }
}

/// The data of a run's world events that expectations refer to.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// The types of the events of a charge or an invoice, by its code, oldest first.
    pub(super) events: BTreeMap<String, Vec<EventType>>,
    /// The results of each delivery's attempts.
    pub(super) attempt_results: BTreeMap<String, Vec<String>>,
    /// The endpoint of each delivery, and the time of its next attempt.
    pub(super) next_at: BTreeMap<String, (String, Option<Timestamp>)>,
    /// The types of the events that each endpoint acknowledged, by its id.
    pub(super) acknowledged: BTreeMap<String, Vec<EventType>>,
    /// The latest state of each transaction's transfers.
    pub(super) transfers: BTreeMap<String, Keyword>,
    /// The number of recorded events, which may be delivered.
    pub(super) event_count: u64,
    /// The number of ended attempts.
    pub(super) attempt_count: u64,
}

impl Tally {
    /// Adds a world event.
    pub(super) fn add_event(&mut self, event: &WorldEventKind) {
        match event {
            WorldEventKind::Event { kind, subject, .. } => {
                self.event_count += 1;
                self.events.entry(subject.to_string()).or_default().push(*kind);
            }
            WorldEventKind::Attempt { endpoint, delivery, kind, answer, next_at, .. } => {
                self.attempt_count += 1;
                let (endpoint, delivery) = (endpoint.to_string(), delivery.to_string());
                self.attempt_results.entry(delivery.clone()).or_default().push(answer.clone());
                self.next_at.insert(delivery, (endpoint.clone(), *next_at));
                if answer.len() == 3 && answer.starts_with('2') {
                    self.acknowledged.entry(endpoint).or_default().push(*kind);
                }
            }
            WorldEventKind::Transfer { txid, state, .. } => {
                self.transfers.insert(txid.clone(), state.clone());
            }
            WorldEventKind::Reorg { .. }
            | WorldEventKind::Mail { .. }
            | WorldEventKind::EndpointDisabled { .. }
            | WorldEventKind::Restart => {}
        }
    }
}
