//! What somebody who stands around a world could write down: every request with its answer, every notice of a
//! watcher, every post and how it ended, in order.
//!
//! Owns no opinion: judges read it. Looks at nothing inside the service.

use bytes::Bytes;
use reference_core::{id::Code, mode::Mode, outbox::AttemptResult, sighting::Sighting, time::Timestamp};
use uuid::Uuid;

/// Whose something is: the number of the account, in order of opening from 0, and the mode.
pub type BookId = (usize, Mode);

/// One thing that was written down.
#[derive(Clone, Debug)]
pub struct Entry {
    /// When.
    pub at: Timestamp,
    /// What.
    pub what: Observation,
}

/// What was written down.
#[derive(Clone, Debug)]
pub enum Observation {
    /// A request and its answer.
    Call(Box<RecordedCall>),
    /// What watchers told the service, in one breath.
    Told(Vec<Sighting>),
    /// A post left the service.
    Post(Box<RecordedPost>),
    /// The service learned how a post ended.
    Landed {
        /// The delivery.
        delivery: Uuid,
        /// How.
        outcome: AttemptResult,
    },
    /// The service stopped and started again.
    Restarted,
}

/// A request and its answer.
#[derive(Clone, Debug)]
pub struct RecordedCall {
    /// `GET`, `POST`, …
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The query, without `?`.
    pub query: Option<String>,
    /// The API key that was shown.
    pub bearer: Option<String>,
    /// The `Idempotency-Key`.
    pub idempotency_key: Option<String>,
    /// The body.
    pub body: Vec<u8>,
    /// The status of the answer.
    pub status: u16,
    /// `Retry-After` of the answer, in seconds.
    pub retry_after: Option<u64>,
    /// The answer says that it was given before.
    pub replayed: bool,
    /// The body of the answer.
    pub answer: Bytes,
}

/// A webhook post, as the network saw it.
#[derive(Clone, Debug)]
pub struct RecordedPost {
    /// The mode of the book that it came from.
    pub mode: Mode,
    /// The endpoint, by its id.
    pub endpoint: Code,
    /// The merchant's host.
    pub host: String,
    /// The header that names the delivery.
    pub delivery: Uuid,
    /// The header that names the event's type.
    pub kind: &'static str,
    /// The header that signs it.
    pub signature: String,
    /// The body.
    pub body: Vec<u8>,
    /// When it came to the merchant, if it did.
    pub arrived: Option<Timestamp>,
    /// How often the merchant got it.
    pub copies: u32,
}

/// All that was written down of one world.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// In order.
    pub seen: Vec<Entry>,
}

impl Record {
    pub(crate) fn note(&mut self, at: Timestamp, what: Observation) {
        self.seen.push(Entry { at, what });
    }
}
