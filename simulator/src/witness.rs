//! The record of everything observable around a world: every request with its answer, every notice of a watcher,
//! every post and its result, in order.
//!
//! Holds no judgement: the invariants read it. Reads nothing inside the service.

use std::collections::BTreeMap;

use bytes::Bytes;
use reference_core::{
    endpoint::Secret, id::Code, mode::Mode, outbox::AttemptResult, sighting::Sighting, time::Timestamp,
};
use reference_wire::AttemptRequest;
use uuid::Uuid;

/// A book: the number of the account, in order of opening from 0, and the mode.
pub type BookId = (usize, Mode);

/// One thing that was written down.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The time.
    pub at: Timestamp,
    /// The observation.
    pub what: Observation,
}

/// An observation.
#[derive(Clone, Debug)]
pub enum Observation {
    /// A request and its answer.
    Call(Box<RecordedCall>),
    /// The watchers' sightings of one moment.
    Told(Vec<Sighting>),
    /// A post left the service.
    Post(Box<RecordedPost>),
    /// The service learned how a post ended.
    Landed {
        /// The delivery.
        delivery: Uuid,
        /// The result.
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
    /// The signature.
    pub signature: Signature,
    /// The body.
    pub body: Bytes,
    /// The time of arrival at the merchant, if it arrived.
    pub arrived: Option<Timestamp>,
    /// The number of copies that the merchant got.
    pub copies: u32,
}

/// The signature of a post.
#[derive(Clone, Debug)]
pub enum Signature {
    /// The header, of a record of bytes.
    Header(String),
    /// The secret that signed it when it was posted, of a record of values.
    Secret(Secret),
}

/// The detail in which posts are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Byte for byte: the body of each attempt, and the header that signs it.
    #[default]
    Bytes,
    /// The body of the first attempt, which stands for those of all others, and the secret. To write and to sign each
    /// attempt is an eighth of what a world takes.
    Values,
}

/// All that was written down of one world.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// In order.
    pub seen: Vec<Entry>,
    detail: Detail,
    /// The bodies of first attempts, of a record of values.
    bodies: BTreeMap<Uuid, Bytes>,
}

impl Record {
    /// A record that begins.
    pub(crate) fn new(detail: Detail) -> Record {
        Record { detail, ..Record::default() }
    }

    /// Returns the record of these entries.
    pub(crate) fn of(seen: Vec<Entry>) -> Record {
        Record { seen, ..Record::default() }
    }

    /// The body of an earlier attempt, if that is enough here.
    pub(crate) fn body_of(&self, delivery: Uuid) -> Option<Bytes> {
        self.bodies.get(&delivery).cloned()
    }

    /// Returns the entry for a post that leaves now.
    pub(crate) fn seal(
        &mut self,
        now: Timestamp,
        post: &AttemptRequest,
        arrives: bool,
    ) -> (Signature, Bytes) {
        let body = post.body.clone();
        match self.detail {
            Detail::Bytes => {
                let sign = || post.secret.sign(now.unix_secs(), &body);
                (Signature::Header(arrives.then(sign).unwrap_or_default()), body)
            }
            Detail::Values => {
                self.bodies.entry(post.id).or_insert_with(|| body.clone());
                (Signature::Secret(post.secret.clone()), body)
            }
        }
    }

    pub(crate) fn note(&mut self, at: Timestamp, what: Observation) {
        self.seen.push(Entry { at, what });
    }
}
