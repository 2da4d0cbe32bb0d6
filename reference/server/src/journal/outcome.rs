//! The digest of a call's outcome: its result, its events and the position of the world.
//!
//! It is recorded with the call and compared on replay, so a program that behaves differently is detected at the first
//! call with another outcome.

use std::io::{self, Write as _};

use reference_wire::Response;
use serde::{Deserialize, Serialize};
use simulator::{
    digest::HashingWriter,
    sandbox::{PendingAdvance, Progress, Sandbox},
};

use super::world_position::WorldPosition;

/// The digest of an outcome: 64 bits, serialized in hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "&str", into = "String")]
pub(crate) struct OutcomeDigest([u8; 8]);

impl From<OutcomeDigest> for String {
    fn from(outcome: OutcomeDigest) -> String {
        hex::encode(outcome.0)
    }
}

impl TryFrom<&str> for OutcomeDigest {
    type Error = hex::FromHexError;

    fn try_from(text: &str) -> Result<OutcomeDigest, hex::FromHexError> {
        let mut bytes = [0; 8];
        hex::decode_to_slice(text, &mut bytes)?;
        Ok(OutcomeDigest(bytes))
    }
}

/// The result of a call.
pub(crate) enum CallResult<'a> {
    Nothing,
    /// No result. The digest ignores the clock, which may have advanced since the last call without a record.
    NothingAtAnyTime,
    Response(&'a Response),
    Waiting(&'a PendingAdvance),
}

impl<'a> From<&'a Progress> for CallResult<'a> {
    fn from(progress: &'a Progress) -> CallResult<'a> {
        match progress {
            Progress::Done(response) => CallResult::Response(response),
            Progress::Waiting(pending) => CallResult::Waiting(pending),
        }
    }
}

/// The state before a call that the digest of its outcome depends on.
pub(crate) struct BeforeCall {
    event_count: u64,
}

impl BeforeCall {
    pub(crate) fn from_sandbox(sandbox: &Sandbox) -> BeforeCall {
        BeforeCall { event_count: sandbox.log().count() }
    }

    /// Returns the digest of the outcome of the call that was made since.
    pub(crate) fn outcome(self, sandbox: &Sandbox, result: CallResult<'_>) -> OutcomeDigest {
        let mut hash = HashingWriter::new(io::sink());
        let position = WorldPosition::from_sandbox(sandbox);
        hash_bytes(&mut hash, &position.event_count.to_le_bytes());
        if !matches!(result, CallResult::NothingAtAnyTime) {
            hash_bytes(&mut hash, &position.now.to_le_bytes());
        }
        // A replaced world has a new log.
        let from = if position.event_count < self.event_count { 0 } else { self.event_count };
        for event in sandbox.log().events_after(from) {
            hash_json(&mut hash, event);
        }
        match result {
            CallResult::Nothing | CallResult::NothingAtAnyTime => {}
            CallResult::Waiting(pending) => hash_json(&mut hash, &pending.record()),
            CallResult::Response(response) => {
                hash_bytes(&mut hash, &response.status.to_le_bytes());
                // The body of a repeated response was hashed when it was first sent.
                if !response.headers.iter().any(|(name, _)| *name == "idempotent-replayed") {
                    hash_body(&mut hash, &response.body, &sandbox.setup().public_url);
                }
            }
        }
        let (_, digest) = hash.finish();
        OutcomeDigest(*digest.first_chunk().expect("a digest has at least 8 bytes"))
    }
}

type Hash = HashingWriter<io::Sink>;

fn hash_bytes(hash: &mut Hash, bytes: &[u8]) {
    hash.write_all(bytes).expect("writing to a hash does not fail");
}

fn hash_json(hash: &mut Hash, value: &impl Serialize) {
    serde_json::to_writer(&mut *hash, value).expect("writing to a hash does not fail, and records are JSON");
}

/// Hashes a body without the server's address in its links, which another start may change.
fn hash_body(hash: &mut Hash, body: &[u8], public_url: &str) {
    let mut rest_start = 0;
    for url_start in memchr::memmem::find_iter(body, public_url) {
        hash_bytes(hash, &body[rest_start..url_start]);
        rest_start = url_start + public_url.len();
    }
    hash_bytes(hash, &body[rest_start..]);
}
