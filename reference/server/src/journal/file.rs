//! The file of a world: its setup in the first line, then its records.

use std::io;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use simulator::sandbox::Setup;

use super::{
    replay::{Replay, ReplayedWorld},
    setup::{SetupRecord, damage_error},
    world_position::WorldPosition,
};

/// The largest number of bytes of records in a file.
pub(crate) const RECORDS_MAX: usize = 64 * 1_024 * 1_024;
/// The largest size of a world file, in bytes: the records and up to 64 KiB for the first line.
pub const WORLD_FILE_MAX: u64 = RECORDS_MAX as u64 + 64 * 1_024;
/// The value of `file` in the first line.
const FILE_KIND: &str = "chargeproof world";
const NOT_A_WORLD: &str = "it is not a snapshot file; download one with GET /sandbox/snapshots/{id}";

/// The first line of a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileHead {
    /// The kind of file.
    file: String,
    setup: SetupRecord,
    /// The position of the world after the records.
    #[serde(rename = "tip")]
    end: WorldPosition,
    /// The digest of the records, in hex.
    sha256: String,
}

/// A parsed world file, not yet replayed.
#[derive(Debug)]
pub(crate) struct WorldFile {
    pub(crate) setup: SetupRecord,
    pub(crate) end: WorldPosition,
    pub(crate) records: Vec<u8>,
}

impl WorldFile {
    /// Returns the bytes of a file with these records, which are moved out of `records`.
    pub(crate) fn encode(setup: &Setup, end: WorldPosition, records: &mut Vec<u8>) -> Vec<u8> {
        let head = FileHead {
            file: FILE_KIND.to_owned(),
            setup: SetupRecord::from_setup(setup),
            end,
            sha256: hex::encode(Sha256::digest(&records)),
        };
        let mut file = serde_json::to_vec(&head).expect("strings and numbers are JSON");
        file.push(b'\n');
        file.append(records);
        file
    }

    /// Parses a file and checks the digest of its records.
    ///
    /// # Errors
    ///
    /// `InvalidData` with the reason.
    pub(crate) fn parse(file: &[u8]) -> io::Result<WorldFile> {
        if file.len() as u64 > WORLD_FILE_MAX {
            return Err(damage_error(format!(
                "it has {} bytes; a world has at most {WORLD_FILE_MAX}",
                file.len()
            )));
        }
        let head_end =
            file.iter().position(|byte| *byte == b'\n').ok_or_else(|| damage_error(NOT_A_WORLD))?;
        let (head, records) = (&file[..head_end], &file[head_end + 1..]);
        let value: Value = serde_json::from_slice(head).map_err(|_| damage_error(NOT_A_WORLD))?;
        if value["file"] != FILE_KIND {
            return Err(damage_error(NOT_A_WORLD));
        }
        // The format first, because it determines the other fields of the head.
        SetupRecord::parse(value["setup"].to_string().as_bytes())?;
        let head: FileHead = serde_json::from_value(value)
            .map_err(|error| damage_error(format!("its first line is unreadable: {error}")))?;
        if head.sha256 != hex::encode(Sha256::digest(records)) {
            return Err(damage_error("it was truncated or changed: its records do not match its digest"));
        }
        Ok(WorldFile { setup: head.setup, end: head.end, records: records.to_vec() })
    }

    /// Replays the records into a world.
    ///
    /// # Errors
    ///
    /// Those of [`Replay::replay_lines`] and [`Replay::finish`].
    pub(crate) fn replay(&self, setup: &Setup) -> io::Result<ReplayedWorld> {
        let mut replay = Replay::new(setup);
        replay.replay_lines(&self.records)?;
        replay.finish(Some(self.end))
    }
}
