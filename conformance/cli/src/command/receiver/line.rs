//! The output for a delivery: text, or one line of JSON.

use conformance::{
    receiver::{DeliverySummary, Diagnosis, Note, ReceivedRequest, ReceiverResponse},
    report::{escape_invisible, one_line},
};
use serde::Serialize;

use crate::{
    args::Format,
    terminal::{BAD, DIM, GOOD, print_line},
};

/// The maximum number of characters of a string from the sender.
const EXCERPT_MAX: usize = 60;

/// A judged delivery, without secrets.
pub(super) struct JudgedDelivery {
    pub(super) received: ReceivedRequest,
    pub(super) summary: DeliverySummary,
    pub(super) diagnosis: Diagnosis,
    pub(super) notes: Vec<Note>,
    /// The number of this attempt of the delivery, from 1; `None` if the request has no delivery id.
    pub(super) attempt_number: Option<u32>,
    /// The response of the receiver; `None` for a recorded request.
    pub(super) response: Option<ReceiverResponse>,
}

/// A delivery as one line of JSON.
#[derive(Serialize)]
struct DeliveryLine<'a> {
    at: String,
    path: &'a str,
    verdict: &'static str,
    secret: Option<&'a str>,
    reasons: Vec<JsonReason>,
    notes: Vec<JsonReason>,
    #[serde(flatten)]
    summary: &'a DeliverySummary,
    #[serde(rename = "try")]
    attempt_number: Option<u32>,
    answer: Option<String>,
    bytes: usize,
}

/// A reason why a delivery is not verified, or a note.
#[derive(Serialize)]
struct JsonReason {
    name: &'static str,
    #[serde(rename = "says")]
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<&'static str>,
}

impl JudgedDelivery {
    pub(super) fn print(&self, format: Format) {
        match format {
            Format::Json => print_json("delivery", &self.json_line()),
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

    fn json_line(&self) -> DeliveryLine<'_> {
        let reasons = self.diagnosis.reasons().iter();
        DeliveryLine {
            at: self.received.timestamp(),
            path: &self.received.path,
            verdict: self.verdict(),
            secret: self.secret(),
            reasons: reasons
                .map(|reason| JsonReason {
                    name: reason.name(),
                    message: reason.to_string(),
                    remedy: Some(reason.remedy()),
                })
                .collect(),
            notes: self
                .notes
                .iter()
                .map(|note| JsonReason { name: note.name(), message: note.to_string(), remedy: None })
                .collect(),
            summary: &self.summary,
            attempt_number: self.attempt_number,
            answer: self.response.as_ref().map(ReceiverResponse::to_string),
            bytes: self.received.body.0.len(),
        }
    }

    fn print_text(&self) {
        let style = match self.diagnosis {
            Diagnosis::Verified { .. } => GOOD,
            Diagnosis::NotVerified { .. } => BAD,
            Diagnosis::NotJudged => DIM,
        };
        let timestamp = self.received.timestamp();
        let time_of_day = timestamp.get(11..19).unwrap_or(&timestamp);
        let DeliverySummary { event, mode, subject, .. } = &self.summary;
        let [event, mode, subject] =
            [event, mode, subject].map(|field| field.as_deref().map_or("-".into(), excerpt));
        let mut details = vec![subject];
        details.extend(self.attempt_number.map(|number| format!("attempt {number}")));
        details.extend(self.response.as_ref().map(|response| format!("-> {response}")));
        details.push(format!("{} bytes", self.received.body.0.len()));
        details.extend(self.secret().map(|name| format!("with {name}")));
        print_line!(
            "{time_of_day}  {style}{:<12}{style:#}  {event:<24}  {mode:<4}  {}",
            self.verdict(),
            details.join("  ")
        );
        for reason in self.diagnosis.reasons() {
            print_line!("          {}", one_line(&reason.to_string()));
            print_line!("          {DIM}{} · {}{DIM:#}", reason.name(), reason.remedy());
        }
        // The number of the attempt is printed above.
        for note in self.notes.iter().filter(|note| !matches!(note, Note::Retry { .. })) {
            print_line!("          {DIM}note: {}{DIM:#}", one_line(&note.to_string()));
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
        Format::Text => print_line!("{DIM}rejected: {}{DIM:#}", one_line(why)),
    }
}

/// Prints an object as one line of JSON, with the additional field `kind`.
pub(super) fn print_json(kind: &'static str, fields: &impl Serialize) {
    #[derive(Serialize)]
    struct Line<'a, T> {
        kind: &'static str,
        #[serde(flatten)]
        fields: &'a T,
    }
    let line = serde_json::to_string(&Line { kind, fields }).expect("strings and numbers serialize to JSON");
    print_line!("{}", escape_invisible(&line));
}

/// Returns a string from the sender, truncated, with control characters escaped.
fn excerpt(text: &str) -> String {
    let mut excerpt: String = text.chars().take(EXCERPT_MAX).flat_map(char::escape_debug).collect();
    if text.chars().nth(EXCERPT_MAX).is_some() {
        excerpt.push('…');
    }
    excerpt
}
