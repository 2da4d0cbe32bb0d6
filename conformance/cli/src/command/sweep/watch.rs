//! `sweep merge --watch`: merges the result files of shards as they appear in a directory.

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
    read_shard_results,
    shard_result::ShardResults,
};
use crate::{Failure, signals, terminal};

/// The interval at which the directory is read.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// A result file that was read.
struct CachedFile {
    /// The size and the modification time when the file was read. A change of either means new content.
    version: (u64, Option<SystemTime>),
    /// The path as text, for messages.
    name: String,
    results: ShardResults,
}

type FileCache = BTreeMap<PathBuf, CachedFile>;

/// Merges the results in a directory until no shard is missing, `wait_for` has elapsed (`None`: no limit), or a signal
/// comes. Returns an error if there is no result by then.
pub(super) fn watch(directory: &Path, wait_for: Option<Duration>) -> Result<MergedSweep, Failure> {
    let (stop, started_at) = (signals::stop_flag()?, Instant::now());
    let bar = terminal::spinner();
    let mut cache = FileCache::new();
    loop {
        let has_changed = read_changed_files(directory, &mut cache)?;
        let must_stop =
            stop.load(Ordering::Relaxed) || wait_for.is_some_and(|duration| started_at.elapsed() >= duration);
        if (has_changed || must_stop) && !cache.is_empty() {
            let files = cache.values().map(|file| (file.name.clone(), file.results.clone())).collect();
            let mut merged = merge(files).map_err(Failure::usage)?;
            bar.set_message(progress_text(&merged));
            if must_stop || merged.missing_shards.is_empty() {
                merged.totals.interrupted = stop.load(Ordering::Relaxed);
                bar.finish_and_clear();
                return Ok(merged);
            }
        } else if must_stop {
            let message = format!(
                "`{}` contains no result; write results to it with `sweep --out`",
                directory.display()
            );
            return Err(Failure { code: 3, message });
        }
        thread::park_timeout(POLL_INTERVAL);
    }
}

/// Reads new and changed `.json` files into the cache; returns `true` if there were any. A removed file stays in the
/// cache. No file is partly written, because `sweep --out` writes atomically.
fn read_changed_files(directory: &Path, cache: &mut FileCache) -> Result<bool, Failure> {
    let to_failure = |error| Failure::usage(format!("`{}` can't be read: {error}", directory.display()));
    let mut has_changed = false;
    for entry in fs::read_dir(directory).map_err(to_failure)? {
        let path = entry.map_err(to_failure)?.path();
        let is_result = path.extension().is_some_and(|extension| extension == "json");
        // Skips a file that was removed since the directory was read.
        let Ok(metadata) = fs::metadata(&path) else { continue };
        let version = (metadata.len(), metadata.modified().ok());
        if !is_result || !metadata.is_file() || cache.get(&path).is_some_and(|file| file.version == version) {
            continue;
        }
        let (name, results) = read_shard_results(&path)?;
        cache.insert(path, CachedFile { version, name, results });
        has_changed = true;
    }
    Ok(has_changed)
}

fn progress_text(merged: &MergedSweep) -> String {
    let shard_count = merged.sweep.shards;
    format!(
        "{} of {shard_count} shards, {} simulations, {} kinds of failures",
        shard_count - merged.missing_shards.len() as u64,
        merged.totals.simulations,
        merged.totals.groups.len()
    )
}
