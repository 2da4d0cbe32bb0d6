//! Opens a damaged journal as far as it is sound: the sound part is copied into a new database, and the damaged one is kept.

use std::{io, ops::Range, sync::Arc};

use super::{
    disk::{Batch, CHUNKS, Disk, RETURNS, SEALS, count, returns_within},
    medium::{DatabaseAccess, Medium},
    replay::tried,
    seal::{AcknowledgedCommit, Seal},
    setup::damaged,
    verify::{Damage, Point},
};

/// Bytes of records that are copied at a time.
const BYTES_AT_ONCE: usize = 16 * 1_024 * 1_024;

/// Puts the sound part of a journal in place of it. Returns a sentence about what was done.
pub(super) fn recover(medium: &Arc<dyn Medium>, damage: &Damage, good: &Seal) -> io::Result<String> {
    let copied = tried(|| {
        let from = Disk::open(medium, DatabaseAccess::Read)?;
        let to = Disk::open(medium, DatabaseAccess::Replacement)?;
        copy((&from, &to), good, damage.has_sound_facts)
    });
    copied.unwrap_or_else(|| Err(damaged("its sound part could not be read")))?;
    let aside = medium.replace_damaged()?;
    // From now on the newest acknowledged commit is the last one of the replacement.
    medium.write_acknowledged(0, &AcknowledgedCommit::NONE)?;
    Disk::open(medium, DatabaseAccess::Write)?.acknowledge_last()?;
    Ok(format!(
        "the world in `{}` was damaged ({}) and stands where it stood after {}; the damaged file is kept as `{aside}`",
        medium.name(),
        damage.why(),
        Point(good)
    ))
}

fn copy((from, to): (&Disk, &Disk), good: &Seal, has_sound_facts: bool) -> io::Result<()> {
    let setup = from.setup()?.ok_or_else(|| damaged("it has no world"))?;
    let end = from.seal_within(0)?.and_then(|first| first.end);
    to.begin(&setup, from.opening()?.as_deref(), &Batch { end, ..Batch::default() })?;
    let mut at = 0;
    while at < good.records {
        let batches = batches(from, at..good.records)?;
        to.append_all(&batches)?;
        at = to.records()?;
    }
    if has_sound_facts {
        let (snapshots, last) = from.snapshots()?;
        let reached = snapshots.into_iter().filter(|it| it.position <= good.records);
        // The last number first, which may be that of a snapshot that was dropped: no number is given twice.
        let snapshots = std::iter::once((last, None)).chain(reached.map(|it| (it.n, Some(it)))).collect();
        to.append(&Batch { snapshots, worlds: Some(from.worlds()?), ..Batch::default() })?;
    }
    Ok(())
}

/// The next commits with records.
fn batches(from: &Disk, records: Range<u64>) -> io::Result<Vec<Batch>> {
    from.look(|transaction| {
        let (chunks, seals, returns) = (
            transaction.open_table(CHUNKS)?,
            transaction.open_table(SEALS)?,
            transaction.open_table(RETURNS)?,
        );
        let (mut batches, mut bytes) = (Vec::new(), 0);
        for chunk in chunks.range(records)? {
            let (first, lines) = chunk?;
            let (first, lines) = (first.value(), lines.value().to_vec());
            let until = first + count(&lines);
            let end = seals.get(until)?.and_then(|row| Seal::of_row(until, row.value()).end);
            let returns = returns_within(&returns, first..until)?;
            bytes += lines.len();
            batches.push(Batch { first, lines, end, returns, ..Batch::default() });
            if bytes > BYTES_AT_ONCE {
                break;
            }
        }
        Ok(batches)
    })
}
