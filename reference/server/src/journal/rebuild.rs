//! The replay of a journal's records into a world, from a valid checkpoint on if there is one.

use std::{
    io,
    ops::Range,
    sync::atomic::{AtomicBool, Ordering},
};

use simulator::sandbox::Setup;

use super::{
    JournalMetadata, checkpoint,
    disk::Disk,
    history::record_ranges,
    replay::{Replay, ReplayedWorld},
    storage::Storage,
    world_position::WorldPosition,
};

/// A world rebuilt from its journal.
pub(super) struct RebuiltWorld {
    pub(super) world: ReplayedWorld,
    /// The position of the newest checkpoint; 0 for none.
    pub(super) checkpoint_position: u64,
    /// The reason why the existing checkpoint was ignored.
    pub(super) ignored_reason: Option<String>,
}

/// Replays the records that lead to the world's current position, from the checkpoint on if there is one. `end`: the
/// position that the replay must reach. Writes a new checkpoint after a long replay.
pub(super) fn rebuild(
    (storage, disk): (&dyn Storage, &Disk),
    (end, metadata): (Option<WorldPosition>, &JournalMetadata),
    setup: &Setup,
    stop: &AtomicBool,
) -> io::Result<RebuiltWorld> {
    let ranges = record_ranges(&metadata.rewinds, metadata.records);
    let replay_ranges = |mut replay: Replay, ranges: &[Range<u64>]| {
        for range in ranges {
            disk.read(range.clone(), |lines| match stop.load(Ordering::Relaxed) {
                true => Err(checkpoint::stopped_error()),
                false => replay.replay_lines(lines),
            })?;
        }
        replay.finish(end)
    };
    let checkpoint_after = storage.checkpoint_after();
    let checkpoint = checkpoint_after.map_or(Ok(None), |_| checkpoint::read((storage, disk), setup, &ranges));
    let resumed = checkpoint.and_then(|checkpoint| {
        let Some((sandbox, position)) = checkpoint else { return Ok(None) };
        let tail = checkpoint::records_after(&ranges, position);
        let records_before = checkpoint::record_count(&ranges) - checkpoint::record_count(&tail);
        let world = replay_ranges(Replay::resume(sandbox, records_before), &tail)?;
        Ok(Some((world, position, tail)))
    });
    let (resumed, ignored_reason) = match resumed {
        Ok(resumed) => (resumed, None),
        Err(why) => (None, Some(why.to_string())),
    };
    let (world, mut position, tail) = match resumed {
        Some(resumed) => resumed,
        None => (replay_ranges(Replay::new(setup), &ranges)?, 0, ranges),
    };
    let is_long = checkpoint_after.is_some_and(|after| checkpoint::record_count(&tail) >= after);
    if is_long && checkpoint::write((storage, disk), (setup, metadata.records), &world.sandbox, stop).is_ok()
    {
        position = metadata.records;
    }
    Ok(RebuiltWorld { world, checkpoint_position: position, ignored_reason })
}
