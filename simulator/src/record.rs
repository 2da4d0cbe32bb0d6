//! The record of everything observable around a world, in order: every request with its response, every sighting of a
//! watcher, every webhook attempt and its result, and every restart. The main type is [`Record`].
//!
//! The invariants read it. Must not contain verdicts, or anything from inside the service.

use std::collections::BTreeMap;

use bytes::Bytes;
use reference_core::{
    asset::Asset, endpoint::Secret, id::Code, mode::Mode, outbox::AttemptResult, sighting::Sighting,
    time::Timestamp,
};
use reference_wire::AttemptRequest;
use uuid::Uuid;

/// A book, which holds the objects of one account in one mode: the account's index in order of opening, and the mode.
pub type BookId = (usize, Mode);

/// An observation with its time.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The time.
    pub at: Timestamp,
    /// The observation.
    pub observation: Observation,
}

/// An observation.
#[derive(Clone, Debug)]
pub enum Observation {
    /// A request and its response.
    Call(Box<RecordedCall>),
    /// The watchers' sightings of one moment, as reported to the service.
    Sightings(Vec<Sighting>),
    /// The heights of chains, as reported to the service.
    Heights(Vec<((Mode, Asset), u64)>),
    /// The service sent an attempt.
    AttemptStart(Box<RecordedAttempt>),
    /// The service received the result of an attempt.
    AttemptEnd {
        /// The delivery.
        delivery: Uuid,
        /// The result.
        outcome: AttemptResult,
    },
    /// The service restarted.
    Restart,
}

/// A request and its response.
#[derive(Clone, Debug)]
pub struct RecordedCall {
    /// `GET`, `POST`, …
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The query, without `?`.
    pub query: Option<String>,
    /// The `Authorization` header, without the prefix `Bearer `.
    pub bearer: Option<String>,
    /// The `Idempotency-Key`.
    pub idempotency_key: Option<String>,
    /// The `Content-Type`.
    pub content_type: Option<String>,
    /// The body.
    pub body: Vec<u8>,
    /// The status of the response.
    pub status: u16,
    /// The headers of the response: names in lower case, and values.
    pub headers: Vec<(&'static str, String)>,
    /// The body of the response.
    pub response_body: Bytes,
}

impl RecordedCall {
    /// Returns the API key; empty without one. The scheme before it is case-insensitive.
    pub fn key(&self) -> &str {
        let text = self.bearer.as_deref().unwrap_or_default();
        match text.split_once(' ') {
            Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => key,
            _ => text,
        }
    }

    /// Returns `true` for a request to the API.
    pub fn is_api(&self) -> bool {
        self.path == "/v1" || self.path.starts_with("/v1/")
    }

    /// Returns the value of a header of the response.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the `Retry-After` of the response, in seconds.
    pub fn retry_after(&self) -> Option<u64> {
        self.header("retry-after")?.parse().ok()
    }

    /// Returns `true` if the response is marked as an idempotent replay.
    pub fn is_replayed(&self) -> bool {
        self.header("idempotent-replayed") == Some("true")
    }
}

/// A webhook attempt, as the network saw it.
#[derive(Clone, Debug)]
pub struct RecordedAttempt {
    /// The mode of the delivery.
    pub mode: Mode,
    /// The id of the endpoint.
    pub endpoint: Code,
    /// The host of the merchant.
    pub host: String,
    /// The delivery id in the headers.
    pub delivery: Uuid,
    /// The event type in the headers.
    pub kind: &'static str,
    /// The signature.
    pub signature: Signature,
    /// The body.
    pub body: Bytes,
    /// The time of arrival at the merchant; `None` if it did not arrive.
    pub arrived_at: Option<Timestamp>,
    /// The number of copies that arrived.
    pub copies: u32,
    /// `true` if it arrived although the host name resolves to a private address among others.
    pub is_private: bool,
}

/// The signature of an attempt.
#[derive(Clone, Debug)]
pub enum Signature {
    /// The header, if the record has [`Detail::Bytes`].
    Header(String),
    /// The signing secret at the time of the attempt, if the record has [`Detail::Values`].
    Secret(Secret),
}

/// The level of detail of recorded attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// All bytes: the body and the signature header of each attempt.
    #[default]
    Bytes,
    /// The body of the first attempt, which all others share, and the secret. Encoding and signing each attempt takes
    /// an eighth of a world's run time.
    Values,
}

/// The record of one world.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The entries in order.
    pub entries: Vec<Entry>,
    detail: Detail,
    /// The bodies of first attempts, for [`Detail::Values`].
    bodies: BTreeMap<Uuid, Bytes>,
}

impl Record {
    /// Creates an empty record.
    pub(crate) fn new(detail: Detail) -> Record {
        Record { detail, ..Record::default() }
    }

    /// Returns the record of these entries.
    pub(crate) fn from_entries(entries: Vec<Entry>) -> Record {
        Record { entries, ..Record::default() }
    }

    /// Returns the body of the delivery's first attempt; `None` if there was none, or with [`Detail::Bytes`].
    pub(crate) fn reusable_body(&self, delivery: Uuid) -> Option<Bytes> {
        self.bodies.get(&delivery).cloned()
    }

    /// Returns the signature and body to record for an attempt that is sent now. Stores the body of a first attempt.
    pub(crate) fn attempt_contents(
        &mut self,
        now: Timestamp,
        attempt: &AttemptRequest,
        has_arrived: bool,
    ) -> (Signature, Bytes) {
        let body = attempt.body.clone();
        match self.detail {
            Detail::Bytes => {
                let sign = || attempt.secret.sign(now.unix_secs(), &body);
                (Signature::Header(has_arrived.then(sign).unwrap_or_default()), body)
            }
            Detail::Values => {
                self.bodies.entry(attempt.id).or_insert_with(|| body.clone());
                (Signature::Secret(attempt.secret.clone()), body)
            }
        }
    }

    pub(crate) fn push(&mut self, at: Timestamp, observation: Observation) {
        self.entries.push(Entry { at, observation });
    }
}
