//! Checkpoints: the state of a world after some of its records, so that a start replays only the later ones.
//!
//! A checkpoint is a cache: if it is damaged, was written by another program, or contains records that a restore abandoned,
//! it is ignored and all records are replayed.

use std::{
    io::{self, Write},
    iter,
    ops::Range,
    sync::atomic::{AtomicBool, Ordering},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use simulator::{
    digest::HashingWriter,
    sandbox::{Sandbox, Setup},
};

use super::{SetupRecord, disk::Disk, seal::Digest, setup::damage_error, storage::Storage};

/// The digest of the program: it decides how records are replayed and how states are written.
const PROGRAM: &str = env!("PROGRAM_DIGEST");
/// The size of the SHA-256 digest at the end of a checkpoint.
const DIGEST_BYTES: usize = 32;

/// The fields between the state and the digest of both.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckpointFooter {
    program: String,
    setup: SetupRecord,
    /// The number of records up to the checkpoint, abandoned ones included.
    position: u64,
    /// The digest of all records up to the checkpoint.
    chain: Digest,
}

/// Writes a checkpoint: the state of a world at a position.
pub(super) fn write(
    (storage, disk): (&dyn Storage, &Disk),
    (setup, position): (&Setup, u64),
    sandbox: &Sandbox,
    stop: &AtomicBool,
) -> io::Result<()> {
    let footer = CheckpointFooter {
        program: PROGRAM.to_owned(),
        setup: SetupRecord::from_setup(setup),
        position,
        chain: chain(disk, position)?.ok_or_else(|| damage_error("no commit ends at its position"))?,
    };
    storage.write_checkpoint(&mut |file| {
        let mut out = HashingWriter::new(Stoppable { file, stop });
        sandbox.write_state(&mut out)?;
        out.write_all(&[b"\n", &*serde_json::to_vec(&footer)?].concat())?;
        let (mut file, digest) = out.finish();
        file.write_all(&digest)
    })
}

/// Reads the checkpoint, if there is one, with its position. `ranges`: the records of the world, which must contain the
/// position.
///
/// # Errors
///
/// The reason why an existing checkpoint cannot be used.
pub(super) fn read(
    (storage, disk): (&dyn Storage, &Disk),
    setup: &Setup,
    ranges: &[Range<u64>],
) -> io::Result<Option<(Sandbox, u64)>> {
    let Some(file) = storage.read_checkpoint()? else { return Ok(None) };
    let is_intact = |(file, digest): &(&[u8], &[u8; DIGEST_BYTES])| Sha256::digest(file)[..] == digest[..];
    let (file, _) = file.split_last_chunk().filter(is_intact).ok_or_else(|| damage_error("it is damaged"))?;
    let state_end =
        file.iter().rposition(|byte| *byte == b'\n').ok_or_else(|| damage_error("it has no footer"))?;
    let (state, footer) = (&file[..state_end], &file[state_end + 1..]);
    let footer: CheckpointFooter = serde_json::from_slice(footer)
        .map_err(|_| damage_error("another version of this program wrote it"))?;
    if footer.program != PROGRAM {
        return Err(damage_error("another version of this program wrote it"));
    }
    let is_on_path = ranges.iter().any(|range| leads_through(range, footer.position));
    if footer.setup != SetupRecord::from_setup(setup)
        || !is_on_path
        || chain(disk, footer.position)? != Some(footer.chain)
    {
        return Err(damage_error("it belongs to records that a restore abandoned, or to another world"));
    }
    let sandbox = Sandbox::read_state(state, setup).ok_or_else(|| damage_error("its state is unreadable"))?;
    Ok(Some((sandbox, footer.position)))
}

/// Returns the digest of the records up to a position, if a commit ends there.
fn chain(disk: &Disk, position: u64) -> io::Result<Option<Digest>> {
    let seal = disk.seal_within(position)?.filter(|seal| seal.records == position);
    Ok(seal.map(|seal| seal.chain))
}

/// Returns the part of `ranges` after a position; all of it if the ranges do not contain the position.
pub(super) fn records_after(ranges: &[Range<u64>], position: u64) -> Vec<Range<u64>> {
    match ranges.iter().position(|range| leads_through(range, position)) {
        Some(n) => iter::once(position..ranges[n].end).chain(ranges[n + 1..].iter().cloned()).collect(),
        None => ranges.to_vec(),
    }
}

/// Returns `true` if a position is after at least one record of a range and not beyond its end.
fn leads_through(range: &Range<u64>, position: u64) -> bool {
    range.start < position && position <= range.end
}

/// Returns the number of records in these ranges.
pub(super) fn record_count(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

/// A file that refuses further writes once the checkpoint must stop.
struct Stoppable<'a> {
    file: &'a mut dyn Write,
    stop: &'a AtomicBool,
}

impl Write for Stoppable<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(stopped_error());
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

pub(super) fn stopped_error() -> io::Error {
    io::Error::other("the journal is being closed")
}
