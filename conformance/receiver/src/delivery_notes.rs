//! [`Note`]s about the headers and the body of a delivery. The signature is judged in `diagnose`.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
};

use serde_json::Value;

use conformance_model::catalogue::EVENT_TYPES;

use super::{
    diagnose::signature_header,
    listen::REDIRECT_PATH,
    received_request::{ReceivedRequest, WebhookNames},
    signature_header::{SignatureHeader, quote},
};

/// An observation about a delivery: a deviation from the specification, or information for the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The body is not a JSON object.
    BodyNotObject,
    /// A member of the body is missing, or not a string.
    MemberMissing {
        /// The name of the member.
        name: &'static str,
    },
    /// A header is missing.
    HeaderMissing {
        /// The name of the header.
        name: String,
    },
    /// A header differs from the member of the body that it repeats.
    HeaderDiffers {
        /// The name of the header.
        name: String,
        /// The value of the header.
        header: String,
        /// The name of the member.
        member: &'static str,
        /// The value in the body.
        body: String,
    },
    /// The `Content-Type` is not `application/json`.
    ContentType {
        /// The actual value.
        got: String,
    },
    /// The `User-Agent` is not that of the service.
    UserAgent {
        /// The actual value.
        got: String,
    },
    /// The specification does not define the event type.
    UnknownEvent {
        /// The actual value.
        got: String,
    },
    /// The mode is neither `live` nor `test`.
    UnknownMode {
        /// The actual value.
        got: String,
    },
    /// `data` lacks the charge or invoice of the event.
    SubjectMissing {
        /// `charge` or `invoice`.
        name: &'static str,
    },
    /// There is white space around a part of the signature header, which not every receiver trims.
    SignatureWhiteSpace,
    /// A test delivery from the dashboard.
    TestDelivery,
    /// The request contains a secret. It is redacted in output and files.
    SecretContained,
    /// The sender followed a redirect of this receiver.
    RedirectFollowed,
    /// A delivery with this id has arrived before.
    Retry {
        /// The number of its arrivals so far.
        try_number: u32,
    },
}

impl Note {
    /// Returns the stable name of the note.
    pub fn name(&self) -> &'static str {
        match self {
            Note::BodyNotObject => "body_form",
            Note::MemberMissing { .. } => "member_missing",
            Note::HeaderMissing { .. } => "header_missing",
            Note::HeaderDiffers { .. } => "header_differs",
            Note::ContentType { .. } => "content_type",
            Note::UserAgent { .. } => "user_agent",
            Note::UnknownEvent { .. } => "unknown_event",
            Note::UnknownMode { .. } => "unknown_mode",
            Note::SubjectMissing { .. } => "subject_missing",
            Note::SignatureWhiteSpace => "signature_spaced",
            Note::TestDelivery => "test_delivery",
            Note::SecretContained => "secret_quoted",
            Note::RedirectFollowed => "redirect_followed",
            Note::Retry { .. } => "retry",
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::BodyNotObject => f.write_str("the body is not a JSON object"),
            Note::MemberMissing { name } => write!(f, "the body has no string `{name}`"),
            Note::HeaderMissing { name } => write!(f, "the `{name}` header is missing"),
            Note::HeaderDiffers { name, header, member, body } => {
                write!(f, "`{name}` is `{header}`, but the body's `{member}` is `{body}`")
            }
            Note::ContentType { got } => {
                write!(f, "`Content-Type` is `{got}`; it must be `application/json`")
            }
            Note::UserAgent { got } => write!(f, "`User-Agent` is `{got}`, which is not that of the service"),
            Note::UnknownEvent { got } => write!(f, "`{got}` is not a specified event type"),
            Note::UnknownMode { got } => write!(f, "the mode is `{got}`; it must be `live` or `test`"),
            Note::SubjectMissing { name } => write!(f, "`data.{name}` is missing or not an object"),
            Note::SignatureWhiteSpace => {
                f.write_str("the signature header contains white space; not every receiver trims it")
            }
            Note::TestDelivery => f.write_str("a test delivery"),
            Note::SecretContained => {
                f.write_str("the request contains a secret; it is redacted here and in recordings")
            }
            Note::RedirectFollowed => f.write_str("the sender followed a redirect; it must not"),
            Note::Retry { try_number } => write!(f, "a retry: this delivery id arrived {try_number} times"),
        }
    }
}

/// Returns the notes about a single request, except [`Note::SecretContained`] and [`Note::Retry`], which depend on
/// more than the request.
pub fn notes(received: &ReceivedRequest, names: &WebhookNames) -> Vec<Note> {
    let mut notes = Vec::new();
    if received.path == REDIRECT_PATH {
        notes.push(Note::RedirectFollowed);
    }
    if signature_header(received, names).is_ok_and(|value| SignatureHeader::parse(value).has_white_space) {
        notes.push(Note::SignatureWhiteSpace);
    }
    let content_type = header_lossy(received, "Content-Type").unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        notes.push(Note::ContentType { got: quote(&content_type) });
    }
    let user_agent = header_lossy(received, "User-Agent").unwrap_or_default();
    if user_agent != names.user_agent {
        notes.push(Note::UserAgent { got: quote(&user_agent) });
    }
    match serde_json::from_slice(&received.body.0) {
        Ok(body @ Value::Object(_)) => add_body_notes(received, names, &body, &mut notes),
        _ => notes.push(Note::BodyNotObject),
    }
    notes
}

/// Adds the notes about the body, and about headers that repeat its members.
fn add_body_notes(received: &ReceivedRequest, names: &WebhookNames, body: &Value, notes: &mut Vec<Note>) {
    for (ending, member) in [("Delivery", "id"), ("Event", "event")] {
        let name = names.header(ending);
        match (header_lossy(received, &name), body[member].as_str()) {
            (None, _) => notes.push(Note::HeaderMissing { name }),
            (Some(header), Some(value)) if header != value => {
                let (header, body) = (quote(&header), quote(value));
                notes.push(Note::HeaderDiffers { name, header, member, body });
            }
            (Some(_), _) => {}
        }
    }
    let is_test = body["test"] == Value::Bool(true);
    if is_test {
        notes.push(Note::TestDelivery);
    }
    for name in ["id", "event_id", "event", "mode", "created_at"] {
        // A test delivery has no event.
        let is_optional = is_test && name == "event_id";
        if !body[name].is_string() && !is_optional {
            notes.push(Note::MemberMissing { name });
        }
    }
    if let Some(event) = body["event"].as_str() {
        if !EVENT_TYPES.contains(&event) {
            notes.push(Note::UnknownEvent { got: quote(event) });
        }
        let subject = ["charge", "invoice"].into_iter().find(|kind| event.split('.').next() == Some(kind));
        if let Some(name) = subject.filter(|name| !body["data"][name].is_object()) {
            notes.push(Note::SubjectMissing { name });
        }
    }
    if let Some(mode) = body["mode"].as_str().filter(|mode| !["live", "test"].contains(mode)) {
        notes.push(Note::UnknownMode { got: quote(mode) });
    }
}

/// Returns the first value of a header, with invalid UTF-8 replaced.
fn header_lossy(received: &ReceivedRequest, name: &str) -> Option<String> {
    received.header_values(name).first().map(|value| String::from_utf8_lossy(value).into_owned())
}

/// A counter of the arrivals of each delivery id, with bounded memory.
#[derive(Debug, Default)]
pub struct DeliveryCounter {
    counts: BTreeMap<String, u32>,
    /// The stored ids, the oldest first.
    order: VecDeque<String>,
}

/// The maximum number of stored delivery ids. The oldest is evicted.
const STORED_IDS_MAX: usize = 100_000;
/// The maximum number of stored characters of an id. A UUID has 36.
const STORED_CHARS_MAX: usize = 64;

impl DeliveryCounter {
    /// Counts an arrival of a delivery id, and returns the number of its arrivals.
    pub fn count(&mut self, delivery_id: &str) -> u32 {
        let id: String = delivery_id.chars().take(STORED_CHARS_MAX).collect();
        if let Some(count) = self.counts.get_mut(&id) {
            *count = count.saturating_add(1);
            return *count;
        }
        if self.order.len() == STORED_IDS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.counts.remove(&oldest);
        }
        self.order.push_back(id.clone());
        self.counts.insert(id, 1);
        1
    }
}
