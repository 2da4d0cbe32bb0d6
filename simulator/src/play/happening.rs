//! What the world says has happened, and the line it becomes.

use std::collections::BTreeMap;

use reference_core::mode::Mode;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::alias::Aliases;
use crate::script::Kind;

/// One thing that happened.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Happening {
    /// Its number, from 1 on.
    pub(super) n: u64,
    /// When.
    pub(super) at: String,
    #[serde(flatten)]
    pub(super) what: What,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub(super) enum What {
    Event {
        mode: ModeWord,
        event: String,
        #[serde(rename = "type")]
        kind: String,
        subject: String,
        #[serde(default)]
        details: Map<String, Value>,
    },
    Post {
        mode: ModeWord,
        endpoint: String,
        delivery: String,
        event: Option<String>,
        #[serde(rename = "type")]
        kind: String,
        subject: Option<String>,
        attempt: u32,
        answer: String,
        next_at: Option<String>,
    },
    Transfer {
        mode: ModeWord,
        asset: String,
        txid: String,
        #[serde(default)]
        output: u32,
        charge: Option<String>,
        amount: String,
        state: String,
        confirmations: u32,
        required: u32,
    },
    Reorg {
        mode: ModeWord,
        asset: String,
        depth: u32,
    },
    Mail {
        mode: ModeWord,
        to: String,
        kind: String,
        invoice: String,
    },
    EndpointOff {
        mode: ModeWord,
        endpoint: String,
    },
    Restart,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ModeWord {
    Live,
    Test,
}

impl From<ModeWord> for Mode {
    fn from(word: ModeWord) -> Mode {
        match word {
            ModeWord::Live => Mode::Live,
            ModeWord::Test => Mode::Test,
        }
    }
}

/// A line without its time.
#[derive(Debug)]
pub(super) struct Words {
    pub(super) verb: String,
    pub(super) body: String,
    pub(super) outcome: Option<String>,
}

/// Marks what belongs to test mode; live mode goes without saying.
pub(super) fn in_mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Live => "",
        Mode::Test => " (test)",
    }
}

/// Charge or invoice: the type of an event says whose it is.
fn kind_of(event_type: &str) -> Kind {
    if event_type.starts_with("invoice.") { Kind::Invoice } else { Kind::Charge }
}

/// The line of a happening. Things that appear for the first time get their names here.
pub(super) fn words(what: &What, aliases: &mut Aliases) -> Words {
    let said = |verb: &str, body: String| Words { verb: verb.to_owned(), body, outcome: None };
    match what {
        What::Event { mode, event, kind, subject, details } => {
            let mode = Mode::from(*mode);
            let event = aliases.name(Kind::Event, mode, event);
            let subject = aliases.name(kind_of(kind), mode, subject);
            let details = self::details(details, aliases);
            said("event", format!("{event} {kind} {subject}{details}{}", in_mode(mode)))
        }
        What::Post { mode, endpoint, delivery, event, kind, subject, attempt, answer, .. } => {
            let mode = Mode::from(*mode);
            let endpoint = aliases.name(Kind::Endpoint, mode, endpoint);
            let delivery = aliases.name(Kind::Delivery, mode, delivery);
            let about = match (event, subject) {
                (Some(event), Some(subject)) => {
                    let event = aliases.name(Kind::Event, mode, event);
                    let subject = aliases.name(kind_of(kind), mode, subject);
                    format!("{delivery} {event} {kind} {subject}")
                }
                _ => format!("{delivery} test of {kind}"),
            };
            Words {
                verb: format!("POST {endpoint}"),
                body: format!("{about:<36}  try {attempt}"),
                outcome: Some(format!("{answer}{}", in_mode(mode))),
            }
        }
        What::Transfer { mode, asset, txid, output, charge, amount, state, confirmations, required } => {
            let mode = Mode::from(*mode);
            let tx = aliases.name(Kind::Transaction, mode, txid);
            let output = if *output == 0 { String::new() } else { format!(":{output}") };
            let to = match charge {
                Some(code) => aliases.name(Kind::Charge, mode, code),
                None => "nobody here".to_owned(),
            };
            let amount = plain(amount);
            let counted = match state.as_str() {
                "seen" | "confirmed" | "unconfirmed" => format!(", {confirmations} of {required}"),
                _ => String::new(),
            };
            let state = state.replace('_', " ");
            said(
                "transfer",
                format!("{tx}{output} {amount} {asset} to {to}: {state}{counted}{}", in_mode(mode)),
            )
        }
        What::Reorg { mode, asset, depth } => {
            said("reorg", format!("{asset} {depth} deep{}", in_mode(Mode::from(*mode))))
        }
        What::Mail { mode, to, kind, invoice } => {
            let mode = Mode::from(*mode);
            let invoice = aliases.name(Kind::Invoice, mode, invoice);
            said("mail", format!("{kind} {invoice} to {to}{}", in_mode(mode)))
        }
        What::EndpointOff { mode, endpoint } => {
            let mode = Mode::from(*mode);
            let endpoint = aliases.name(Kind::Endpoint, mode, endpoint);
            said("off", format!("{endpoint}: too many deliveries failed{}", in_mode(mode)))
        }
        What::Restart => said("restart", String::new()),
    }
}

/// `, amount 0.0008, txid t1`: amounts without idle zeros, ids by name.
fn details(details: &Map<String, Value>, aliases: &mut Aliases) -> String {
    let mut text = String::new();
    for (key, value) in details {
        let value = match value {
            Value::String(word) => aliases.known(word).map_or_else(|| plain(word), str::to_owned),
            other => other.to_string(),
        };
        text.push_str(&format!(", {key} {value}"));
    }
    text
}

/// A decimal number without zeros at its end; anything else as it is.
pub(super) fn plain(text: &str) -> String {
    let decimal = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match decimal && text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    }
}

/// What the happenings of a run add up to, as far as expectations ask for it.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The types of the events of a charge or an invoice, by its code, oldest first.
    pub(super) events: BTreeMap<String, Vec<String>>,
    /// How the attempts of a delivery ended.
    pub(super) answers: BTreeMap<String, Vec<String>>,
    /// The endpoint of a delivery, and when it is tried again.
    pub(super) next_at: BTreeMap<String, (String, Option<String>)>,
    /// The types of the events that an endpoint acknowledged.
    pub(super) acknowledged: BTreeMap<String, Vec<String>>,
    /// The state of the transfers of a transaction.
    pub(super) transfers: BTreeMap<String, String>,
    /// How many events there were.
    pub(super) event_count: u64,
    /// How many posts there were.
    pub(super) post_count: u64,
}

impl Seen {
    pub(super) fn note(&mut self, what: &What) {
        match what {
            What::Event { kind, subject, .. } => {
                self.event_count += 1;
                self.events.entry(subject.clone()).or_default().push(kind.clone());
            }
            What::Post { endpoint, delivery, kind, answer, next_at, .. } => {
                self.post_count += 1;
                self.answers.entry(delivery.clone()).or_default().push(answer.clone());
                self.next_at.insert(delivery.clone(), (endpoint.clone(), next_at.clone()));
                if answer.len() == 3 && answer.starts_with('2') {
                    self.acknowledged.entry(endpoint.clone()).or_default().push(kind.clone());
                }
            }
            What::Transfer { txid, state, .. } => {
                self.transfers.insert(txid.clone(), state.clone());
            }
            What::Reorg { .. } | What::Mail { .. } | What::EndpointOff { .. } | What::Restart => {}
        }
    }
}
