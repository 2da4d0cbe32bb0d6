//! Recovery of a damaged journal: its undamaged part is copied into a new database, and the damaged file is kept.

use std::{io, ops::Range, sync::Arc};

use super::{
    disk::{Batch, CHUNKS, Disk, REWINDS, SEALS, count_lines, rewinds_within},
    replay::catch_panic,
    seal::{AcknowledgedCommit, Seal},
    setup::damage_error,
    storage::{DatabaseAccess, Storage},
    verify::{CommitLabel, Damage},
};

/// The bytes of records copied at a time.
const BYTES_AT_ONCE: usize = 16 * 1_024 * 1_024;

/// Replaces a journal by its undamaged part. Returns a notice for the operator.
pub(super) fn recover(storage: &Arc<dyn Storage>, damage: &Damage, good: &Seal) -> io::Result<String> {
    let copied = catch_panic(|| {
        let from = Disk::open(storage, DatabaseAccess::Read)?;
        let to = Disk::open(storage, DatabaseAccess::Replacement)?;
        copy((&from, &to), good, damage.has_intact_facts)
    });
    copied.unwrap_or_else(|| Err(damage_error("its undamaged part could not be read")))?;
    let damaged_name = storage.replace_damaged()?;
    // The last commit of the replacement is now the newest acknowledged one.
    storage.write_acknowledged(0, &AcknowledgedCommit::NONE)?;
    Disk::open(storage, DatabaseAccess::Write)?.acknowledge_last()?;
    Ok(format!(
        "the world in `{}` was damaged ({}) and was recovered to its state after {}; the damaged file is kept as `{damaged_name}`",
        storage.name(),
        damage.reason(),
        CommitLabel(good)
    ))
}

/// Copies the records up to `good`; the snapshots and counts, too, if they are undamaged.
fn copy((from, to): (&Disk, &Disk), good: &Seal, has_intact_facts: bool) -> io::Result<()> {
    let setup = from.setup()?.ok_or_else(|| damage_error("it has no world"))?;
    let end = from.seal_within(0)?.and_then(|first| first.end);
    to.initialize(&setup, from.options()?.as_deref(), &Batch { end, ..Batch::default() })?;
    let mut copied = 0;
    while copied < good.records {
        let batches = read_batches(from, copied..good.records)?;
        to.append_all(&batches)?;
        copied = to.record_count()?;
    }
    if has_intact_facts {
        let (snapshots, highest_number) = from.snapshots()?;
        let snapshots = snapshots.into_iter().filter(|snapshot| snapshot.position <= good.records);
        // Starts with the deletion of the highest number, which stores the number, so that no new snapshot gets it.
        let snapshots = std::iter::once((highest_number, None))
            .chain(snapshots.map(|snapshot| (snapshot.n, Some(snapshot))))
            .collect();
        to.append(&Batch { snapshots, world_count: Some(from.world_count()?), ..Batch::default() })?;
    }
    Ok(())
}

/// Reads the first of these records, as one batch for each of their commits. Stops after [`BYTES_AT_ONCE`].
fn read_batches(from: &Disk, records: Range<u64>) -> io::Result<Vec<Batch>> {
    from.with_transaction(|transaction| {
        let (chunks, seals, rewinds) = (
            transaction.open_table(CHUNKS)?,
            transaction.open_table(SEALS)?,
            transaction.open_table(REWINDS)?,
        );
        let (mut batches, mut bytes) = (Vec::new(), 0);
        for chunk in chunks.range(records)? {
            let (first, lines) = chunk?;
            let (first, lines) = (first.value(), lines.value().to_vec());
            let chunk_end = first + count_lines(&lines);
            let end = seals.get(chunk_end)?.and_then(|row| Seal::from_row(chunk_end, row.value()).end);
            let rewinds = rewinds_within(&rewinds, first..chunk_end)?;
            bytes += lines.len();
            batches.push(Batch { first_record: first, lines, end, rewinds, ..Batch::default() });
            if bytes > BYTES_AT_ONCE {
                break;
            }
        }
        Ok(batches)
    })
}
