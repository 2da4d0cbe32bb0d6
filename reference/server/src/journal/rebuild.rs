//! The replay of a journal's records into a world, from a valid checkpoint on if there is one.

use std::{
    io,
    ops::Range,
    sync::atomic::{AtomicBool, Ordering},
};

use simulator::sandbox::Setup;

use super::{
    Marks, checkpoint,
    disk::Disk,
    history::path,
    medium::Medium,
    replay::{Replay, Replayed},
    tip::Tip,
};

/// A world that was made again.
pub(super) struct Rebuilt {
    pub(super) world: Replayed,
    /// The position of the newest checkpoint, from 1 on.
    pub(super) checkpoint: u64,
    /// The reason why the existing one is ignored.
    pub(super) ignored: Option<String>,
}

/// The world that these records lead to, from the checkpoint on if there is one. Writes another one if that took long.
pub(super) fn rebuild(
    (medium, disk): (&dyn Medium, &Disk),
    (tip, marks): (Option<Tip>, &Marks),
    setup: &Setup,
    stop: &AtomicBool,
) -> io::Result<Rebuilt> {
    let way = path(&marks.returns, marks.records);
    let follow = |mut replay: Replay, tail: &[Range<u64>]| {
        for range in tail {
            disk.read(range.clone(), |lines| match stop.load(Ordering::Relaxed) {
                true => Err(checkpoint::stopped()),
                false => replay.lines(lines),
            })?;
        }
        replay.finish(tip)
    };
    let after = medium.checkpoint_after();
    let kept = after.map_or(Ok(None), |_| checkpoint::read((medium, disk), setup, &way));
    let resumed = kept.and_then(|kept| {
        let Some((sandbox, position)) = kept else { return Ok(None) };
        let tail = checkpoint::tail(&way, position);
        let before = checkpoint::length(&way) - checkpoint::length(&tail);
        let world = follow(Replay::resume(sandbox, before), &tail)?;
        Ok(Some((world, position, tail)))
    });
    let (resumed, ignored) = match resumed {
        Ok(resumed) => (resumed, None),
        Err(why) => (None, Some(why.to_string())),
    };
    let (world, mut position, tail) = match resumed {
        Some(resumed) => resumed,
        None => (follow(Replay::new(setup), &way)?, 0, way),
    };
    let is_long = after.is_some_and(|after| checkpoint::length(&tail) >= after);
    if is_long && checkpoint::write((medium, disk), (setup, marks.records), &world.sandbox, stop).is_ok() {
        position = marks.records;
    }
    Ok(Rebuilt { world, checkpoint: position, ignored })
}
