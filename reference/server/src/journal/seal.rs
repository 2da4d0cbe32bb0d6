//! The running digest of a journal.
//!
//! Each commit has a [`Seal`]: its digest covers the digest before it, the records of the commit and where the world stood
//! after them, so that a seal covers every record up to it. A digest of the snapshots and counts stands beside the last one.
//! The newest acknowledged commit is also written into a file of its own, so that a database that lost it is noticed.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{history::Return, tip::Tip};

/// Bytes of the file of the newest acknowledged commit: two places, written in turn, so that one of them is always whole.
const PLACE_BYTES: usize = 256;

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    pub(super) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The digest of some parts, in order. Where one ends and the next begins counts.
    pub(super) fn of_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Digest {
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

/// Where a world stands after a commit, and the time of day then in microseconds since 1970.
pub(crate) type End = (Tip, u64);

/// The known facts about a journal after a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seal {
    /// The number of records up to it.
    pub(crate) records: u64,
    /// Covers what the world began with and all of these records.
    pub(crate) chain: Digest,
    /// `None` if it is not known: nothing was written, or by a version of the program that kept only the last one.
    pub(crate) end: Option<End>,
}

/// A seal as the database has it: the digest, what the clock showed, how much had happened, the time of day.
pub(super) type SealRow = ([u8; 32], u64, u64, u64);

impl Seal {
    /// The seal of a journal without records.
    pub(super) fn first(setup: &[u8], opening: Option<&[u8]>, end: Option<End>) -> Seal {
        let parts = [&b"chargeproof journal"[..], setup, opening.unwrap_or_default()];
        Seal { records: 0, chain: Digest::of_parts(parts), end: None }.next(&[], &[], 0, end)
    }

    /// The seal after these records. `returns`: those of them that the world went back before.
    pub(super) fn next(&self, returns: &[Return], lines: &[u8], count: u64, end: Option<End>) -> Seal {
        let mut numbers = Vec::with_capacity(32 + 16 * returns.len());
        numbers.extend(returns.iter().flat_map(|it| [it.at, it.to]).flat_map(u64::to_le_bytes));
        let (_, now, happened, wall) = row_of(&self.chain, end);
        let stood = [now, happened, wall].map(u64::to_le_bytes).concat();
        let chain = Digest::of_parts([&self.chain.0[..], &numbers, &stood, lines]);
        Seal { records: self.records + count, chain, end }
    }

    pub(super) fn row(&self) -> SealRow {
        row_of(&self.chain, self.end)
    }

    pub(super) fn of_row(records: u64, (chain, now, happened, wall): SealRow) -> Seal {
        // A world that stands at the very beginning of 1970 is not compared.
        let end = (now != 0).then_some((Tip { now, happened }, wall));
        Seal { records, chain: Digest(chain), end }
    }
}

fn row_of(chain: &Digest, end: Option<End>) -> SealRow {
    let (Tip { now, happened }, wall) = end.unwrap_or((Tip { now: 0, happened: 0 }, 0));
    (chain.0, now, happened, wall)
}

/// The addition of the last commit to its seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LastSeal {
    /// The number of the commit.
    pub(crate) commit: u64,
    /// Covers the seal, the number, the snapshots and the counts.
    pub(crate) digest: Digest,
}

/// The newest commit that was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AcknowledgedCommit {
    pub(crate) commit: u64,
    pub(crate) records: u64,
    pub(crate) chain: Digest,
}

impl AcknowledgedCommit {
    /// A file without any.
    pub(super) const NONE: [u8; 2 * PLACE_BYTES] = [b'\n'; 2 * PLACE_BYTES];

    /// The place in the file, and the bytes written there.
    pub(super) fn place(&self) -> (u64, Vec<u8>) {
        let mut text = serde_json::to_vec(self).expect("numbers and texts are JSON");
        let digest = Digest::of_parts([&*text]);
        text.extend_from_slice(format!(" {digest:?}\n").as_bytes());
        assert!(text.len() <= PLACE_BYTES, "numbers and two digests fit into a place");
        text.resize(PLACE_BYTES, b'\n');
        ((self.commit % 2) * PLACE_BYTES as u64, text)
    }

    /// The newest one of a file. One that a power cut tore is left out.
    pub(super) fn newest(file: &[u8]) -> Option<AcknowledgedCommit> {
        let read = |place: &[u8]| {
            let text = str::from_utf8(place).ok()?.trim_end();
            let (text, digest) = text.rsplit_once(' ')?;
            (digest == format!("{:?}", Digest::of_parts([text.as_bytes()])))
                .then(|| serde_json::from_str::<AcknowledgedCommit>(text).ok())?
        };
        file.chunks(PLACE_BYTES).filter_map(read).max_by_key(|it| it.commit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acknowledged(commit: u64) -> AcknowledgedCommit {
        AcknowledgedCommit { commit, records: u64::MAX, chain: Digest([7; 32]) }
    }

    #[test]
    fn a_torn_place_leaves_the_one_before() {
        let mut file = vec![0; 2 * PLACE_BYTES];
        assert_eq!(AcknowledgedCommit::newest(&[]), None);
        for commit in 1..6 {
            let (offset, bytes) = acknowledged(commit).place();
            let target = usize::try_from(offset).unwrap();
            for torn in [0, 1, 40, 150] {
                let mut half = file.clone();
                half[target..target + torn].copy_from_slice(&bytes[..torn]);
                let newest = AcknowledgedCommit::newest(&half).map_or(0, |it| it.commit);
                assert!(newest <= commit && newest + 2 >= commit, "{newest} after {torn} bytes of {commit}");
            }
            file[target..target + PLACE_BYTES].copy_from_slice(&bytes);
            assert_eq!(AcknowledgedCommit::newest(&file), Some(acknowledged(commit)));
        }
    }
}
