//! Verifies a journal before it is opened: every page, every seal, and that the newest acknowledged commit exists.
//!
//! Writes nothing, so a damaged journal stays as it is.

use std::{error::Error, fmt, io, ops::Range, sync::Arc};

use redb::ReadableTable;
use reference_core::time::Timestamp;

use super::{
    disk::{CHUNKS, Disk, REWINDS, SEALS, count_lines, rewinds_within},
    replay::catch_panic,
    seal::{AcknowledgedCommit, Seal},
    setup::SetupRecord,
    storage::{DATABASE_FILE, DatabaseAccess, Storage},
};

/// The damage of a journal, and the end of its undamaged part.
#[derive(Clone, Debug)]
pub(crate) struct Damage {
    why: String,
    /// The last commit before the damage; `None` if nothing can be opened.
    pub(super) last_good: Option<Seal>,
    /// `true` if the snapshots and counts are undamaged.
    pub(super) has_intact_facts: bool,
}

impl Damage {
    pub(super) fn new(good: Option<Seal>, why: String) -> Damage {
        Damage { why, last_good: good, has_intact_facts: true }
    }

    /// Returns the description of the damage, without the remedy.
    pub(super) fn reason(&self) -> &str {
        &self.why
    }

    /// Returns the damage that an error reports.
    pub(super) fn from_error(error: &io::Error) -> Option<&Damage> {
        error.get_ref()?.downcast_ref()
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.last_good {
            Some(good) => write!(
                f,
                "{}; `--recover` opens it in its state after {}, and keeps the damaged file in the same directory",
                self.why,
                CommitLabel(good)
            ),
            None => {
                write!(f, "{}; no part of it can be opened: restore the directory from a backup", self.why)
            }
        }
    }
}

impl Error for Damage {}

impl From<Damage> for io::Error {
    fn from(damage: Damage) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, damage)
    }
}

/// A commit in a message: the number of records up to it and the wall clock.
pub(super) struct CommitLabel<'a>(pub(super) &'a Seal);

impl fmt::Display for CommitLabel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Seal { records, end: Some((_, wall)), .. } => {
                write!(f, "record {records}, written {}", Timestamp(*wall))
            }
            Seal { records, end: None, .. } => write!(f, "record {records}"),
        }
    }
}

/// Verifies a journal, if there is one.
///
/// # Errors
///
/// A [`Damage`]; otherwise those of the storage.
pub(super) fn verify(storage: &Arc<dyn Storage>) -> io::Result<()> {
    if !storage.exists() {
        return Ok(());
    }
    let verified = catch_panic(|| {
        Disk::open(storage, DatabaseAccess::Verify).and_then(|disk| verify_seals(&disk, storage))
    });
    match verified {
        Some(Ok(())) => Ok(()),
        Some(Err(error))
            if error.kind() != io::ErrorKind::InvalidData || Damage::from_error(&error).is_some() =>
        {
            Err(error)
        }
        Some(Err(error)) => Err(locate_damage(storage, &error.to_string()).into()),
        None => Err(locate_damage(storage, "it is damaged").into()),
    }
}

/// Finds the first damaged record of a database with damaged pages. `why`: the error of its verification.
fn locate_damage(storage: &Arc<dyn Storage>, why: &str) -> Damage {
    let found = catch_panic(|| {
        let disk = Disk::open(storage, DatabaseAccess::Read)?;
        verify_seals(&disk, storage)?;
        disk.seal_within(u64::MAX)
    });
    match found {
        Some(Ok(Some(last))) => {
            Damage::new(Some(last), format!("{why}, but all its {} records are undamaged", last.records))
        }
        Some(Err(error)) => {
            Damage::from_error(&error).cloned().unwrap_or_else(|| Damage::new(None, why.to_owned()))
        }
        Some(Ok(None)) | None => Damage::new(None, why.to_owned()),
    }
}

/// Verifies every seal, the digest of the last seal, and that the newest acknowledged commit is among the records.
fn verify_seals(disk: &Disk, storage: &Arc<dyn Storage>) -> io::Result<()> {
    let Some(setup) = disk.setup()? else { return Ok(()) };
    if disk.last_seal()?.is_none() && !SetupRecord::has_seals(&setup) {
        // An earlier version of the program wrote it without seals.
        return Ok(());
    }
    let first = match disk.seal_within(0)? {
        Some(stored) if Seal::first(&setup, disk.options()?.as_deref(), stored.end) == stored => stored,
        _ => {
            let why = format!(
                "`{DATABASE_FILE}` is damaged: the initial settings of the world (seed, start, rate limit, prefixes)"
            );
            return Err(Damage::new(None, why).into());
        }
    };
    let last = verify_chain(disk, first)?;
    let acknowledged = AcknowledgedCommit::parse_newest(&storage.read_acknowledged()?);
    let newest = disk.last_seal()?;
    let digest = newest.map(|newest| disk.digest_after(&last, newest.commit)).transpose()?;
    if newest.map(|newest| newest.digest) != digest || newest.is_none() {
        let why = format!("`{DATABASE_FILE}` is damaged: the snapshots or the counts");
        return Err(Damage { why, last_good: Some(last), has_intact_facts: false }.into());
    }
    let Some(acknowledged) = acknowledged else { return Ok(()) };
    let commit = newest.map_or(0, |newest| newest.commit);
    let is_behind = acknowledged.commit > commit || acknowledged.records > last.records;
    if is_behind {
        let why = format!(
            "the newest commit in `{DATABASE_FILE}` is damaged or missing: commit {} with {} records was acknowledged, and the newest \
             that can be read is commit {commit} with {}",
            acknowledged.commit, acknowledged.records, last.records
        );
        return Err(Damage::new(Some(last), why).into());
    }
    let stored = disk.seal_within(acknowledged.records)?;
    if stored
        .is_none_or(|stored| stored.records != acknowledged.records || stored.chain != acknowledged.chain)
    {
        let why = format!(
            "the first {} records in `{DATABASE_FILE}` are not the acknowledged ones: another file replaced it",
            acknowledged.records
        );
        return Err(Damage::new(Some(last), why).into());
    }
    Ok(())
}

/// Verifies all seals; returns the last one.
fn verify_chain(disk: &Disk, first: Seal) -> io::Result<Seal> {
    let mut good = first;
    // The range of records under the first seal that does not match.
    let first_damaged = disk.with_transaction(|transaction| {
        let (chunks, seals, rewinds) = (
            transaction.open_table(CHUNKS)?,
            transaction.open_table(SEALS)?,
            transaction.open_table(REWINDS)?,
        );
        for chunk in chunks.iter()? {
            let (first, lines) = chunk?;
            let (first, lines) = (first.value(), lines.value());
            let count = count_lines(lines);
            let end = first.saturating_add(count);
            let stored = seals.get(end)?.map(|row| Seal::from_row(end, row.value()));
            let next = stored.and_then(|stored| {
                let rewinds = rewinds_within(&rewinds, first..end).ok()?;
                let next = good.next(&rewinds, lines, count, stored.end);
                (first == good.records && count > 0 && next == stored).then_some(next)
            });
            match next {
                Some(next) => good = next,
                None => return Ok(Some(first.max(good.records)..end)),
            }
        }
        let last = seals.last()?.map(|(records, _)| records.value());
        Ok(last.filter(|last| *last != good.records).map(|last| good.records..last))
    });
    let damage_of =
        |why: String| Damage::new(Some(good), format!("`{DATABASE_FILE}` is damaged: {why}")).into();
    match first_damaged {
        Ok(None) => Ok(good),
        Ok(Some(Range { start, end })) if end <= start + 1 => Err(damage_of(format!("record {}", start + 1))),
        Ok(Some(Range { start, end })) => Err(damage_of(format!("records {} to {end}", start + 1))),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(damage_of(format!("the records from {} on ({error})", good.records + 1)))
        }
        Err(error) => Err(error),
    }
}
