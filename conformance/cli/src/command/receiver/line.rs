//! The output for a delivery: text, or one line of JSON.

use conformance::{
    receiver::{DeliverySummary, Diagnosis, Note, ReceivedRequest, ReceiverAnswer},
    report::{escape_invisible, one_line},
};
use serde::Serialize;

use crate::{
    args::Format,
    terminal::{BAD, DIM, GOOD, say},
};

/// The maximum length of a string from the sender.
const WORD_MAX: usize = 60;

/// A judged delivery. Contains no secret.
pub(super) struct JudgedDelivery {
    pub(super) received: ReceivedRequest,
    pub(super) summary: DeliverySummary,
    pub(super) diagnosis: Diagnosis,
    pub(super) notes: Vec<Note>,
    pub(super) try_number: Option<u32>,
    pub(super) given: Option<ReceiverAnswer>,
}

/// The fields of one line of JSON.
#[derive(Serialize)]
struct Delivery<'a> {
    at: String,
    path: &'a str,
    verdict: &'static str,
    secret: Option<&'a str>,
    reasons: Vec<JsonReason>,
    notes: Vec<JsonReason>,
    #[serde(flatten)]
    summary: &'a DeliverySummary,
    #[serde(rename = "try")]
    try_number: Option<u32>,
    answer: Option<String>,
    bytes: usize,
}

/// A reason or a note.
#[derive(Serialize)]
struct JsonReason {
    name: &'static str,
    says: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<&'static str>,
}

impl JudgedDelivery {
    pub(super) fn print(&self, format: Format) {
        match format {
            Format::Json => print_json("delivery", &self.members()),
            Format::Text => self.print_text(),
        }
    }

    fn verdict(&self) -> &'static str {
        match self.diagnosis {
            Diagnosis::Verified { .. } => "verified",
            Diagnosis::NotVerified { .. } => "not verified",
            Diagnosis::NotJudged => "not judged",
        }
    }

    fn secret(&self) -> Option<&str> {
        match &self.diagnosis {
            Diagnosis::Verified { secret } => Some(secret),
            Diagnosis::NotVerified { .. } | Diagnosis::NotJudged => None,
        }
    }

    fn members(&self) -> Delivery<'_> {
        let reasons = self.diagnosis.reasons().iter();
        Delivery {
            at: self.received.timestamp(),
            path: &self.received.path,
            verdict: self.verdict(),
            secret: self.secret(),
            reasons: reasons
                .map(|reason| JsonReason {
                    name: reason.name(),
                    says: reason.to_string(),
                    remedy: Some(reason.remedy()),
                })
                .collect(),
            notes: self
                .notes
                .iter()
                .map(|note| JsonReason { name: note.name(), says: note.to_string(), remedy: None })
                .collect(),
            summary: &self.summary,
            try_number: self.try_number,
            answer: self.given.as_ref().map(ReceiverAnswer::to_string),
            bytes: self.received.body.0.len(),
        }
    }

    fn print_text(&self) {
        let style = match self.diagnosis {
            Diagnosis::Verified { .. } => GOOD,
            Diagnosis::NotVerified { .. } => BAD,
            Diagnosis::NotJudged => DIM,
        };
        let stamp = self.received.timestamp();
        let time = stamp.get(11..19).unwrap_or(&stamp);
        let DeliverySummary { event, mode, subject, .. } = &self.summary;
        let [event, mode, subject] =
            [event, mode, subject].map(|field| field.as_deref().map_or("-".into(), excerpt));
        let mut rest = vec![subject];
        rest.extend(self.try_number.map(|number| format!("try {number}")));
        rest.extend(self.given.as_ref().map(|given| format!("-> {given}")));
        rest.push(format!("{} bytes", self.received.body.0.len()));
        rest.extend(self.secret().map(|name| format!("with {name}")));
        say!("{time}  {style}{:<12}{style:#}  {event:<24}  {mode:<4}  {}", self.verdict(), rest.join("  "));
        for reason in self.diagnosis.reasons() {
            say!("          {}", one_line(&reason.to_string()));
            say!("          {DIM}{} · {}{DIM:#}", reason.name(), reason.remedy());
        }
        for note in self.notes.iter().filter(|note| !matches!(note, Note::Retry { .. })) {
            say!("          {DIM}note: {}{DIM:#}", one_line(&note.to_string()));
        }
    }
}

/// Prints a rejected connection or request.
pub(super) fn print_rejected(why: &str, format: Format) {
    #[derive(Serialize)]
    struct RejectedRequest<'a> {
        why: &'a str,
    }
    match format {
        Format::Json => print_json("turned_away", &RejectedRequest { why }),
        Format::Text => say!("{DIM}rejected: {}{DIM:#}", one_line(why)),
    }
}

/// Prints a line of JSON with a `kind`.
pub(super) fn print_json(kind: &'static str, members: &impl Serialize) {
    #[derive(Serialize)]
    struct Line<'a, T> {
        kind: &'static str,
        #[serde(flatten)]
        members: &'a T,
    }
    let line = serde_json::to_string(&Line { kind, members }).expect("strings and numbers serialize to JSON");
    say!("{}", escape_invisible(&line));
}

/// Returns a string from the sender, truncated and without control characters.
fn excerpt(text: &str) -> String {
    let mut word: String = text.chars().take(WORD_MAX).flat_map(char::escape_debug).collect();
    if text.chars().nth(WORD_MAX).is_some() {
        word.push('…');
    }
    word
}
