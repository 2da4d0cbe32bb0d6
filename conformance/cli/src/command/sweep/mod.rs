//! `chargeproof sweep`: runs random simulations on all cores; reports violated invariants and coverage.
//!
//! Exit codes: 0 every invariant held · 1 one was violated · 2 wrong usage · 5 two runs of one simulation differ, or a
//! result cannot be written: retry on another machine · 130 interrupted · of `merge` also 3: shards are missing.

mod coverage;
mod exhaust;
mod judge;
mod merge;
mod report;
mod save;
mod shard_result;
mod totals;
mod watch;
mod worlds;

use std::{
    fs,
    path::{Path, PathBuf},
};

use simulator::sweep::{Runner, is_played_twice};

use self::{
    coverage::Width,
    shard_result::{ShardResult, ShardResults, SweepSettings},
    totals::{FailureGroup, SavedScenario, SweepTotals},
};
use crate::{
    Failure,
    args::{Format, Merge, Sweep, SweepTask},
    files::{self, RECORDING_MAX},
    shard::{Shard, ShardChoice},
    signals,
    terminal::{self, print_line},
};

/// The default number of simulations.
const SEEDS_DEFAULT: u64 = 1_000;

pub(crate) fn run(args: &Sweep) -> Result<u8, Failure> {
    if let Some(SweepTask::Merge(args)) = &args.task {
        return merge_files(args);
    }
    if !args.exhaust.is_empty() {
        check_outputs_writable(std::iter::empty(), &args.save)?;
        return exhaust::exhaust(args);
    }
    if !args.files.is_empty() {
        args.html.iter().try_for_each(|path| files::check_writable(path)).map_err(machine_failure)?;
        return judge::judge_files(args);
    }
    check_outputs_writable(args.out.iter().chain(&args.html), &args.save)?;
    let shard = match args.shard {
        None => Shard::SINGLE,
        Some(ShardChoice::Explicit(shard)) => shard,
        Some(ShardChoice::Auto) => {
            Shard::from_environment(|name| std::env::var(name).ok()).map_err(Failure::usage)?
        }
    };
    let from = args.night.as_deref().map_or(args.seed.or(args.from).unwrap_or(0), seed_from_text);
    let default_seeds = match (args.seed, args.run_for) {
        (Some(_), _) => 1,
        // `--for` ends the sweep.
        (None, Some(_)) => u64::MAX,
        (None, None) => SEEDS_DEFAULT,
    };
    let seeds = args.seeds.unwrap_or(default_seeds);
    let stop = signals::stop_flag()?;
    let mut totals = worlds::sweep(args, from, shard.range(seeds), &stop);
    if let Some(path) = &args.out {
        write(path, &shard_results(&totals, shard, (from, seeds)).to_text())?;
    }
    if !totals.interrupted {
        save::save_groups(&mut totals, &args.save)?;
    }
    if let Some(path) = &args.html {
        write(path, &save::page(&totals))?;
    }
    match args.format {
        Format::Text => terminal::print(report::text(&totals, Width::if_requested(args.coverage))),
        Format::Json => print_line!("{}", report::json(&totals)),
    }
    Ok(totals.exit_code())
}

/// Returns the result of a shard for `merge`. Runs some simulations of the next shard, so that
/// `merge` can compare machines.
fn shard_results(totals: &SweepTotals, shard: Shard, (from, seeds): (u64, u64)) -> ShardResults {
    let (begin, count) = shard.overlap(seeds);
    let runner = Runner::default();
    // After a signal no more simulations are run.
    let count = if totals.interrupted { 0 } else { count };
    let overlap_seeds =
        (begin..begin + count).map(|n| from.wrapping_add(n)).filter(|seed| is_played_twice(*seed));
    let overlap = overlap_seeds.map(|seed| (seed, runner.digest(seed))).collect();
    let program_version = env!("CARGO_PKG_VERSION").to_owned();
    ShardResults::new(
        SweepSettings { program_version, from, seeds, shards: shard.count },
        vec![ShardResult::from_totals(shard, totals, overlap)],
    )
}

/// Returns the first seed for a text of `--night`: the first 60 bits of its digest.
fn seed_from_text(text: &str) -> u64 {
    let digest = simulator::digest::digest(text);
    let digits = digest.rsplit(':').next().unwrap_or_default().get(..15).unwrap_or_default();
    u64::from_str_radix(digits, 16).expect("a digest is hexadecimal")
}

/// `sweep merge`.
fn merge_files(args: &Merge) -> Result<u8, Failure> {
    check_outputs_writable(args.out.iter(), &args.save)?;
    let mut merged = match &args.watch {
        Some(directory) => watch::watch(directory, args.wait_for)?,
        None => {
            let files: Result<Vec<_>, Failure> =
                args.files.iter().map(|path| read_shard_results(path)).collect();
            merge::merge(files?).map_err(Failure::usage)?
        }
    };
    if let Some(path) = &args.out {
        write(path, &merged.file().to_text())?;
    }
    if !merged.totals.interrupted {
        save::save_groups(&mut merged.totals, &args.save)?;
    }
    match args.format {
        Format::Text => terminal::print(report::merged_text(&merged, Width::if_requested(args.coverage))),
        Format::Json => print_line!("{}", report::merged_json(&merged)),
    }
    Ok(merged.exit_code())
}

/// Reads the results in a file; also returns the file's name.
fn read_shard_results(path: &Path) -> Result<(String, ShardResults), Failure> {
    let name = path.display().to_string();
    let results = ShardResults::parse(&files::text_of(path, RECORDING_MAX)?).map_err(|why| {
        Failure::usage(format!("`{name}` is not a file of `sweep --out`: {}", files::truncate_message(&why)))
    })?;
    Ok((name, results))
}

/// Checks that every result can be written, before the first simulation runs.
fn check_outputs_writable<'a>(
    files: impl Iterator<Item = &'a PathBuf>,
    directory: &Path,
) -> Result<(), Failure> {
    if directory.exists() && !directory.is_dir() {
        return Err(Failure::machine(format!("`{}` is not a directory", directory.display())));
    }
    // The directory is created with the first scenario.
    let existing = directory.ancestors().find(|ancestor| ancestor.is_dir()).unwrap_or(Path::new("."));
    let mut files = files.cloned().chain([existing.join("invariant.yaml")]);
    files.try_for_each(|path| files::check_writable(&path)).map_err(machine_failure)
}

/// Writes a shrunken scenario to a file in a directory, which is created if it is missing. Returns the path.
fn save_scenario(directory: &Path, name: &str, text: &str) -> Result<PathBuf, Failure> {
    fs::create_dir_all(directory)
        .map_err(|error| Failure::machine(format!("`{}` can't be created: {error}", directory.display())))?;
    let path = directory.join(name);
    write(&path, text)?;
    Ok(path)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    files::write_atomically(path, text).map_err(machine_failure)
}

/// Converts a write error to a failure of this machine: the disk may be full, so another machine may succeed.
fn machine_failure(failure: Failure) -> Failure {
    Failure::machine(failure.message)
}
