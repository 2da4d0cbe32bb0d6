//! `chargeproof sweep`: random simulations on every core, the invariants that broke, and the coverage.
//!
//! Exit codes: 0 every invariant held · 1 one broke · 2 wrong usage · 5 two runs of one simulation differ, or a
//! result cannot be written: this machine or program failed, and another machine is worth a try · 130 interrupted ·
//! of `merge` also 3: shards are missing.

mod merge;
mod part;
mod report;

use std::{
    collections::BTreeMap,
    fs,
    io::IsTerminal as _,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};
use simulator::{
    law::{Breach, Law},
    script::Script,
    shrink::{Shrunk, shrink},
    sweep::{Matrix, Runner, Verdict, is_played_twice},
    workload,
};

use part::{Part, Parts, Whole};

use crate::{
    Failure,
    args::{Format, Merge, Sweep, SweepTask},
    files::{self, RECORDING_MAX, SCENARIO_MAX},
    screen::{self, say},
    shard::{Shard, ShardChoice},
    signals::{self, INTERRUPTED},
};

const SEEDS: u64 = 1_000;
/// As many kinds of failures are shrunk.
const SHRUNK_MAX: usize = 20;

/// Failures of one invariant and shape.
pub(super) struct Group {
    pub(super) breach: Breach,
    /// The first seed, which is shrunk.
    pub(super) first: u64,
    pub(super) seeds: u64,
    pub(super) saved: Option<Saved>,
}

/// A failure, shrunk to a scenario.
pub(super) struct Saved {
    pub(super) path: PathBuf,
    pub(super) steps: usize,
    pub(super) attempts: u32,
}

/// The sum of all simulations.
#[derive(Default)]
pub(super) struct Sum {
    pub(super) worlds: u64,
    pub(super) beside: u64,
    pub(super) events: u64,
    pub(super) posts: u64,
    pub(super) checks: [u64; Law::ALL.len()],
    pub(super) matrix: Matrix,
    pub(super) groups: BTreeMap<(Law, String), Group>,
    /// Simulations that came out differently when they were run again.
    pub(super) differing: BTreeMap<u64, String>,
    /// Digests of simulations that were run twice.
    pub(super) digests: BTreeMap<u64, String>,
    pub(super) took: Duration,
    pub(super) jobs: usize,
    pub(super) from: u64,
    /// Whether a signal ended it early. What was run until then is a prefix of the seeds.
    pub(super) interrupted: bool,
}

impl Sum {
    fn add(&mut self, seed: u64, verdict: Verdict) {
        self.worlds += 1;
        self.beside += verdict.beside;
        self.events += verdict.events;
        self.posts += verdict.posts;
        for (sum, checks) in self.checks.iter_mut().zip(verdict.findings.checks) {
            *sum += checks;
        }
        for cell in verdict.cells {
            self.matrix.note(cell, seed);
        }
        if let Some(difference) = verdict.differs {
            self.differing.insert(seed, difference);
        }
        if let Some(digest) = verdict.digest {
            self.digests.insert(seed, digest);
        }
        // What follows a first breach is often its consequence.
        if let Some(breach) = verdict.findings.breaches.into_iter().next() {
            let place = (breach.law, breach.shape.clone());
            let group = self.groups.entry(place).or_insert(Group {
                breach: breach.clone(),
                first: seed,
                seeds: 0,
                saved: None,
            });
            group.seeds += 1;
            if seed < group.first {
                (group.first, group.breach) = (seed, breach);
            }
        }
    }

    fn absorb(&mut self, other: Sum) {
        self.worlds += other.worlds;
        self.beside += other.beside;
        self.events += other.events;
        self.posts += other.posts;
        for (sum, checks) in self.checks.iter_mut().zip(other.checks) {
            *sum += checks;
        }
        self.matrix.absorb(&other.matrix);
        self.differing.extend(other.differing);
        self.digests.extend(other.digests);
        for (place, group) in other.groups {
            match self.groups.get_mut(&place) {
                None => drop(self.groups.insert(place, group)),
                Some(known) => {
                    known.seeds += group.seeds;
                    if group.first < known.first {
                        (known.first, known.breach) = (group.first, group.breach);
                    }
                }
            }
        }
    }

    fn exit_code(&self) -> u8 {
        match (self.differing.is_empty(), self.groups.is_empty()) {
            _ if self.interrupted => INTERRUPTED,
            (false, _) => 5,
            (true, false) => 1,
            (true, true) => 0,
        }
    }
}

pub(crate) fn run(args: &Sweep) -> Result<u8, Failure> {
    if let Some(SweepTask::Merge(args)) = &args.task {
        return merge_files(args);
    }
    if !args.files.is_empty() {
        return judge_files(&args.files, args.format);
    }
    writable(args.out.iter().chain(&args.html), &args.save)?;
    let shard = match args.shard {
        None => Shard::WHOLE,
        Some(ShardChoice::Named(shard)) => shard,
        Some(ShardChoice::Auto) => {
            Shard::from_environment(|name| std::env::var(name).ok()).map_err(Failure::usage)?
        }
    };
    let from = args.night.as_deref().map_or(args.from.unwrap_or(0), night);
    let seeds = args.seeds.unwrap_or(if args.lasting.is_some() { u64::MAX } else { SEEDS });
    let stop = signals::stop_flag()?;
    let mut sum = sweep(args, from, shard.range(seeds), &stop);
    if let Some(path) = &args.out {
        let (begin, count) = shard.overlap(seeds);
        let runner = Runner::default();
        // Whoever is interrupted does not begin anything new.
        let count = if sum.interrupted { 0 } else { count };
        let beyond =
            (begin..begin + count).map(|n| from.wrapping_add(n)).filter(|seed| is_played_twice(*seed));
        let overlap = beyond.map(|seed| (seed, runner.digest(seed))).collect();
        let program = env!("CARGO_PKG_VERSION").to_owned();
        let whole = Whole { program, from, seeds, shards: shard.of };
        write(path, &Parts::new(whole, vec![Part::of(shard, &sum, overlap)]).write())?;
    }
    if !sum.interrupted {
        save_groups(&mut sum, &args.save)?;
    }
    if let Some(path) = &args.html {
        let seed = sum.groups.values().map(|group| group.first).min().unwrap_or(sum.from);
        write(path, &page(seed, &sum))?;
    }
    match args.format {
        Format::Text => screen::print(report::text(&sum)),
        Format::Json => say!("{}", report::json(&sum)),
    }
    Ok(sum.exit_code())
}

/// The first seed for a text: the same text gives the same simulations.
fn night(text: &str) -> u64 {
    let digest = simulator::digest::digest(text);
    let digits = digest.rsplit(':').next().unwrap_or_default().get(..15).unwrap_or_default();
    u64::from_str_radix(digits, 16).expect("a digest is hexadecimal")
}

fn save_groups(sum: &mut Sum, directory: &Path) -> Result<(), Failure> {
    for group in sum.groups.values_mut().take(SHRUNK_MAX) {
        group.saved = Some(save(directory, group)?);
    }
    Ok(())
}

fn merge_files(args: &Merge) -> Result<u8, Failure> {
    let read = |path: &PathBuf| {
        let name = path.display().to_string();
        let parts = Parts::read(&files::text_of(path, RECORDING_MAX)?).map_err(|why| {
            Failure::usage(format!("`{name}` is not a file of `sweep --out`: {}", files::excerpt(&why)))
        })?;
        Ok((name, parts))
    };
    writable(args.out.iter(), &args.save)?;
    let files: Result<Vec<_>, Failure> = args.files.iter().map(read).collect();
    let mut merged = merge::merge(files?).map_err(Failure::usage)?;
    if let Some(path) = &args.out {
        write(path, &merged.file().write())?;
    }
    save_groups(&mut merged.sum, &args.save)?;
    match args.format {
        Format::Text => screen::print(report::merged_text(&merged)),
        Format::Json => say!("{}", report::merged_json(&merged)),
    }
    Ok(merged.exit_code())
}

/// Runs the simulations, on as many threads as asked for.
fn sweep(args: &Sweep, from: u64, (begin, seeds): (u64, u64), stop: &AtomicBool) -> Sum {
    let jobs = args.jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, usize::from);
    let begun = Instant::now();
    let next = AtomicU64::new(0);
    let whole = Mutex::new(Sum::default());
    let bar = bar(seeds, args.lasting.is_some());
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                let runner = Runner::default();
                let mut sum = Sum::default();
                while !stop.load(Ordering::Relaxed) {
                    if args.lasting.is_some_and(|lasting| begun.elapsed() >= lasting) {
                        break;
                    }
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= seeds {
                        break;
                    }
                    // After the last seed comes the first.
                    let seed = from.wrapping_add(begin).wrapping_add(n);
                    let verdict = runner.try_seed(seed);
                    if !verdict.findings.breaches.is_empty() {
                        bar.set_message(format!("seed {seed} breaks an invariant"));
                    }
                    sum.add(seed, verdict);
                    bar.inc(1);
                }
                whole.lock().unwrap_or_else(PoisonError::into_inner).absorb(sum);
            });
        }
    });
    bar.finish_and_clear();
    let mut sum = whole.into_inner().unwrap_or_else(PoisonError::into_inner);
    (sum.took, sum.jobs, sum.from) = (begun.elapsed(), jobs, from);
    sum.interrupted = stop.load(Ordering::Relaxed);
    sum
}

/// Progress on a terminal; none in a log.
fn bar(seeds: u64, is_timed: bool) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let (bar, template) = match is_timed {
        true => (ProgressBar::new_spinner(), "{spinner} {pos} simulations, {per_sec}, {elapsed} {msg}"),
        false => (ProgressBar::new(seeds), "{bar:40} {pos}/{len} simulations, {per_sec}, {eta} left {msg}"),
    };
    bar.with_style(ProgressStyle::with_template(template).expect("a constant template"))
}

/// Shrinks the first failure of a group, and writes it to a file.
fn save(directory: &Path, group: &Group) -> Result<Saved, Failure> {
    let script = workload::draw(group.first).script;
    let Shrunk { script, attempts, .. } = shrink(&Runner::default(), &script, &group.breach);
    let path = directory.join(format!("law-{}-seed-{}.yaml", group.breach.law.number(), group.first));
    write(&path, &script.to_yaml())?;
    Ok(Saved { path, steps: script.steps.len(), attempts })
}

fn page(seed: u64, sum: &Sum) -> String {
    let runner = Runner::default();
    let script = workload::draw(seed).script;
    let breach = sum.groups.values().find(|group| group.first == seed).map(|group| group.breach.to_string());
    simulator::picture::page(&runner, &script, breach.as_deref())
}

/// Whether every result can be written, before the first simulation runs.
fn writable<'a>(files: impl Iterator<Item = &'a PathBuf>, directory: &Path) -> Result<(), Failure> {
    fs::create_dir_all(directory)
        .map_err(|error| Failure::machine(format!("`{}` can't be created: {error}", directory.display())))?;
    let mut files = files.cloned().chain([directory.join("law.yaml")]);
    files.try_for_each(|path| files::check_writable(&path)).map_err(lost)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    files::write_whole(path, text).map_err(lost)
}

/// The result has nowhere to go: a disk may be full, and another machine is worth a try.
fn lost(failure: Failure) -> Failure {
    Failure::machine(failure.message)
}

/// Checks the invariants on scenario files.
fn judge_files(files: &[PathBuf], format: Format) -> Result<u8, Failure> {
    let mut rows = Vec::new();
    for path in files {
        let name = path.display().to_string();
        let text = files::text_of(path, SCENARIO_MAX)?;
        let script = Script::parse(&name, &text).map_err(|error| Failure::usage(error.to_string()))?;
        rows.push((name, Runner::default().try_script(&script)));
    }
    match format {
        Format::Text => screen::print(report::files_text(&rows)),
        Format::Json => say!("{}", report::files_json(&rows)),
    }
    Ok(u8::from(rows.iter().any(|(_, verdict)| !verdict.findings.breaches.is_empty())))
}
