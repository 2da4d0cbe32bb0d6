//! The running digest of a journal.
//!
//! Each commit has a [`Seal`]: its digest covers the digest before it, the records of the commit, and the position of the
//! world after them. So a seal covers every record up to it. The last commit also has a digest of what no seal covers:
//! snapshots, counts, and rewinds after the last record ([`LastSeal`]).
//! The newest acknowledged commit is also stored in a separate file, so that a database that lost it is detected.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{history::Rewind, world_position::WorldPosition};

/// The size in bytes of each of the two slots of the acknowledgement file. Commits are written to the slots alternately, so
/// that one slot is always complete.
const SLOT_BYTES: usize = 256;

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    pub(super) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the digest of some parts, in order. Each is preceded by its length, so that different splits of the
    /// same bytes differ.
    pub(super) fn from_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Digest {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Digest(hash.finalize().into())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        hex::encode(digest.0)
    }
}

impl TryFrom<String> for Digest {
    type Error = hex::FromHexError;

    fn try_from(text: String) -> Result<Digest, hex::FromHexError> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes)?;
        Ok(Digest(bytes))
    }
}

/// The position of a world after a commit, and the wall clock then in microseconds since 1970.
pub(crate) type CommitEnd = (WorldPosition, u64);

/// The running digest of a journal after a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seal {
    /// The number of records up to the commit.
    pub(crate) records: u64,
    /// The digest of the setup of the world and all records up to the commit.
    pub(crate) chain: Digest,
    /// `None` if it is unknown: nothing was written, or an earlier version of the program stored only the last end.
    pub(crate) end: Option<CommitEnd>,
}

/// A seal as a database row: digest, service clock, number of events, wall clock.
pub(super) type SealRow = ([u8; 32], u64, u64, u64);

impl Seal {
    /// Returns the seal of a journal without records.
    pub(super) fn first(setup: &[u8], options: Option<&[u8]>, end: Option<CommitEnd>) -> Seal {
        let parts = [&b"chargeproof journal"[..], setup, options.unwrap_or_default()];
        Seal { records: 0, chain: Digest::from_parts(parts), end: None }.next(&[], &[], 0, end)
    }

    /// Returns the seal after further records. `rewinds`: those before one of these records.
    pub(super) fn next(&self, rewinds: &[Rewind], lines: &[u8], count: u64, end: Option<CommitEnd>) -> Seal {
        let mut numbers = Vec::with_capacity(16 * rewinds.len());
        numbers.extend(rewinds.iter().flat_map(|rewind| [rewind.at, rewind.to]).flat_map(u64::to_le_bytes));
        let (_, now, event_count, wall) = row_of(&self.chain, end);
        let last_end = [now, event_count, wall].map(u64::to_le_bytes).concat();
        let chain = Digest::from_parts([&self.chain.0[..], &numbers, &last_end, lines]);
        Seal { records: self.records + count, chain, end }
    }

    pub(super) fn to_row(self) -> SealRow {
        row_of(&self.chain, self.end)
    }

    pub(super) fn from_row(records: u64, (chain, now, event_count, wall): SealRow) -> Seal {
        // Zero means that the end is unknown.
        let end = (now != 0).then_some((WorldPosition { now, event_count }, wall));
        Seal { records, chain: Digest(chain), end }
    }
}

fn row_of(chain: &Digest, end: Option<CommitEnd>) -> SealRow {
    let (WorldPosition { now, event_count }, wall) =
        end.unwrap_or((WorldPosition { now: 0, event_count: 0 }, 0));
    (chain.0, now, event_count, wall)
}

/// The digest of the last commit, beside its seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LastSeal {
    /// The number of the commit.
    pub(crate) commit: u64,
    /// The digest of the seal, the number of the commit, the counts, the snapshots, and the rewinds after the last record.
    pub(crate) digest: Digest,
}

/// The newest acknowledged commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AcknowledgedCommit {
    pub(crate) commit: u64,
    pub(crate) records: u64,
    pub(crate) chain: Digest,
}

impl AcknowledgedCommit {
    /// The file before the first acknowledgement.
    pub(super) const NONE: [u8; 2 * SLOT_BYTES] = [b'\n'; 2 * SLOT_BYTES];

    /// Returns the offset of its slot in the file, and the bytes of the slot.
    pub(super) fn slot(&self) -> (u64, Vec<u8>) {
        let mut text = serde_json::to_vec(self).expect("numbers and strings are JSON");
        let digest = Digest::from_parts([&*text]);
        text.extend_from_slice(format!(" {digest:?}\n").as_bytes());
        assert!(text.len() <= SLOT_BYTES, "numbers and two digests fit into a slot");
        text.resize(SLOT_BYTES, b'\n');
        ((self.commit % 2) * SLOT_BYTES as u64, text)
    }

    /// Returns the newest commit in a complete slot of a file. A power cut can leave the other slot incomplete.
    pub(super) fn parse_newest(file: &[u8]) -> Option<AcknowledgedCommit> {
        let read = |slot: &[u8]| {
            let text = str::from_utf8(slot).ok()?.trim_end();
            let (text, digest) = text.rsplit_once(' ')?;
            (digest == format!("{:?}", Digest::from_parts([text.as_bytes()])))
                .then(|| serde_json::from_str::<AcknowledgedCommit>(text).ok())?
        };
        file.chunks(SLOT_BYTES).filter_map(read).max_by_key(|acknowledged| acknowledged.commit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acknowledged_commit(commit: u64) -> AcknowledgedCommit {
        AcknowledgedCommit { commit, records: u64::MAX, chain: Digest([7; 32]) }
    }

    #[test]
    fn an_incomplete_slot_leaves_the_previous_commit_readable() {
        let mut file = vec![0; 2 * SLOT_BYTES];
        assert_eq!(AcknowledgedCommit::parse_newest(&[]), None);
        for commit in 1..6 {
            let (offset, bytes) = acknowledged_commit(commit).slot();
            let target = usize::try_from(offset).unwrap();
            for torn in [0, 1, 40, 150] {
                let mut incomplete = file.clone();
                incomplete[target..target + torn].copy_from_slice(&bytes[..torn]);
                let newest = AcknowledgedCommit::parse_newest(&incomplete).map_or(0, |found| found.commit);
                assert!(newest <= commit && newest + 1 >= commit, "{newest} after {torn} bytes of {commit}");
            }
            file[target..target + SLOT_BYTES].copy_from_slice(&bytes);
            assert_eq!(AcknowledgedCommit::parse_newest(&file), Some(acknowledged_commit(commit)));
        }
    }
}
