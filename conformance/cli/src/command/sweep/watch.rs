//! Merges the results of shards as they appear in a directory.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant, SystemTime},
};

use super::{
    merge::{MergedSweep, merge},
    read_parts,
    shard_result::ShardResults,
};
use crate::{Failure, signals, terminal};

/// The interval at which the directory is read.
const EVERY: Duration = Duration::from_millis(500);

/// The content of files, with their size and modification time when read.
type FileCache = BTreeMap<PathBuf, ((u64, Option<SystemTime>), (String, ShardResults))>;

/// Merges the results in a directory until no shard is missing, time is up, or a signal comes.
pub(super) fn watch(directory: &Path, lasting: Option<Duration>) -> Result<MergedSweep, Failure> {
    let (stop, begun) = (signals::stop_flag()?, Instant::now());
    let bar = terminal::spinner();
    let mut known = FileCache::new();
    loop {
        let is_new = read_changed_files(directory, &mut known)?;
        let is_over =
            stop.load(Ordering::Relaxed) || lasting.is_some_and(|lasting| begun.elapsed() >= lasting);
        if (is_new || is_over) && !known.is_empty() {
            let mut merged =
                merge(known.values().map(|(_, file)| file.clone()).collect()).map_err(Failure::usage)?;
            bar.set_message(progress_text(&merged));
            if is_over || merged.gaps.is_empty() {
                merged.sum.interrupted = stop.load(Ordering::Relaxed);
                bar.finish_and_clear();
                return Ok(merged);
            }
        } else if is_over {
            let message =
                format!("`{}` contains no result; `sweep --out` writes results there", directory.display());
            return Err(Failure { code: 3, message });
        }
        thread::park_timeout(EVERY);
    }
}

/// Reads new and changed files; returns `true` if there were any. Shards write results atomically.
fn read_changed_files(directory: &Path, known: &mut FileCache) -> Result<bool, Failure> {
    let cannot = |error| Failure::usage(format!("`{}` can't be read: {error}", directory.display()));
    let mut is_new = false;
    for entry in fs::read_dir(directory).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        let is_result = path.extension().is_some_and(|extension| extension == "json");
        // A file that vanished meanwhile is read when it reappears.
        let Ok(metadata) = fs::metadata(&path) else { continue };
        let state = (metadata.len(), metadata.modified().ok());
        if !is_result || !metadata.is_file() || known.get(&path).is_some_and(|(before, _)| *before == state) {
            continue;
        }
        known.insert(path.clone(), (state, read_parts(&path)?));
        is_new = true;
    }
    Ok(is_new)
}

fn progress_text(merged: &MergedSweep) -> String {
    let of = merged.sweep.shards;
    format!(
        "{} of {of} shards, {} simulations, {} kinds of failures",
        of - merged.gaps.len() as u64,
        merged.sum.worlds,
        merged.sum.groups.len()
    )
}
