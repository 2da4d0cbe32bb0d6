//! `chargeproof sweep`: random worlds on every processor, what broke, and what met what.
//!
//! Exit codes: 0 no law was broken · 1 one was · 2 wrong usage · 5 two runs of one world differ, or a result
//! cannot be written: the machine or the program is broken, and trying elsewhere makes sense · of `merge` also
//! 3 shards are missing.

mod merge;
mod part;
mod report;
mod shard;

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
    sweep::{Matrix, Theatre, Verdict, is_played_twice},
    workload,
};

use part::{Part, Parts, Whole};
use shard::Shard;

pub(crate) use shard::Choice;

use crate::{
    Failure,
    args::{Format, Merge, Sweep, SweepTask},
    reports::write_whole,
};

const SEEDS: u64 = 1_000;
/// So many kinds of failures are made small.
const SHRUNK_MAX: usize = 20;

/// Failures of one law and shape.
pub(super) struct Group {
    pub(super) breach: Breach,
    /// The first seed, which is made small.
    pub(super) first: u64,
    pub(super) seeds: u64,
    pub(super) saved: Option<Saved>,
}

/// A scenario that a failure was made small to.
pub(super) struct Saved {
    pub(super) path: PathBuf,
    pub(super) steps: usize,
    pub(super) attempts: u32,
}

/// What all worlds add up to.
#[derive(Default)]
pub(super) struct Sum {
    pub(super) worlds: u64,
    pub(super) beside: u64,
    pub(super) events: u64,
    pub(super) posts: u64,
    pub(super) checks: [u64; Law::ALL.len()],
    pub(super) matrix: Matrix,
    pub(super) groups: BTreeMap<(Law, String), Group>,
    /// Worlds that came out differently when they were played again.
    pub(super) differing: BTreeMap<u64, String>,
    /// Fingerprints of worlds that were played twice.
    pub(super) digests: BTreeMap<u64, String>,
    pub(super) took: Duration,
    pub(super) jobs: usize,
    pub(super) from: u64,
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
        // What follows a first breach is often only its echo.
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
            (false, _) => 5,
            (true, false) => 1,
            (true, true) => 0,
        }
    }
}

pub(crate) fn run(args: &Sweep, format: Format) -> Result<u8, Failure> {
    if let Some(SweepTask::Merge(args)) = &args.task {
        return merge_files(args);
    }
    if !args.files.is_empty() {
        return judge_files(&args.files, format);
    }
    let shard = match args.shard {
        None => Shard::WHOLE,
        Some(Choice::Named(shard)) => shard,
        Some(Choice::Auto) => {
            Shard::from_environment(|name| std::env::var(name).ok()).map_err(Failure::usage)?
        }
    };
    let from = args.night.as_deref().map_or(args.from.unwrap_or(0), night);
    let seeds = args.seeds.unwrap_or(if args.lasting.is_some() { u64::MAX } else { SEEDS });
    let mut sum = sweep(args, from, shard.range(seeds));
    if let Some(path) = &args.out {
        let (begin, count) = shard.overlap(seeds);
        let theatre = Theatre::default();
        let beyond =
            (begin..begin + count).map(|n| from.wrapping_add(n)).filter(|seed| is_played_twice(*seed));
        let overlap = beyond.map(|seed| (seed, theatre.digest(seed))).collect();
        let program = env!("CARGO_PKG_VERSION").to_owned();
        let whole = Whole { program, from, seeds, shards: shard.of };
        write_whole(path, &Parts::new(whole, vec![Part::of(shard, &sum, overlap)]).write())
            .map_err(|failure| Failure { code: 5, ..failure })?;
    }
    save_groups(&mut sum, &args.save)?;
    if let Some(path) = &args.html {
        let seed = sum.groups.values().map(|group| group.first).min().unwrap_or(sum.from);
        write(path, &page(seed, &sum))?;
    }
    match format {
        Format::Text => anstream::print!("{}", report::text(&sum)),
        Format::Json => anstream::println!("{}", report::json(&sum)),
    }
    Ok(sum.exit_code())
}

/// The first seed of a night: the same text plays the same, another text plays other worlds.
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
        let text = fs::read_to_string(path).map_err(|error| format!("`{name}` can't be read: {error}"))?;
        let parts =
            Parts::read(&text).map_err(|why| format!("`{name}` is not what `sweep --out` kept: {why}"))?;
        Ok((name, parts))
    };
    let files: Result<Vec<_>, String> = args.files.iter().map(read).collect();
    let mut merged = files.and_then(merge::merge).map_err(Failure::usage)?;
    if let Some(path) = &args.out {
        write_whole(path, &merged.file().write()).map_err(|failure| Failure { code: 5, ..failure })?;
    }
    save_groups(&mut merged.sum, &args.save)?;
    match args.format {
        Format::Text => anstream::print!("{}", report::merged_text(&merged)),
        Format::Json => anstream::println!("{}", report::merged_json(&merged)),
    }
    Ok(merged.exit_code())
}

/// Plays the worlds, on as many threads as asked for.
fn sweep(args: &Sweep, from: u64, (begin, seeds): (u64, u64)) -> Sum {
    let jobs = args.jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, usize::from);
    let begun = Instant::now();
    let next = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let whole = Mutex::new(Sum::default());
    let bar = bar(seeds, args.lasting.is_some());
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                let theatre = Theatre::default();
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
                    let verdict = theatre.try_seed(seed);
                    if !verdict.findings.breaches.is_empty() {
                        bar.set_message(format!("seed {seed} breaks a law"));
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
    sum
}

/// Progress for people who watch; nothing for logs.
fn bar(seeds: u64, is_timed: bool) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let (bar, template) = match is_timed {
        true => (ProgressBar::new_spinner(), "{spinner} {pos} worlds, {per_sec}, {elapsed} {msg}"),
        false => (ProgressBar::new(seeds), "{bar:40} {pos}/{len} worlds, {per_sec}, {eta} left {msg}"),
    };
    bar.with_style(ProgressStyle::with_template(template).expect("a constant template"))
}

/// Makes the first failure of a group small, and writes it into a file.
fn save(directory: &Path, group: &Group) -> Result<Saved, Failure> {
    let script = workload::draw(group.first).script;
    let Shrunk { script, attempts, .. } = shrink(&Theatre::default(), &script, &group.breach);
    fs::create_dir_all(directory).map_err(|error| broken(directory, &error))?;
    let path = directory.join(format!("law-{}-seed-{}.yaml", group.breach.law.number(), group.first));
    write(&path, &script.to_yaml())?;
    Ok(Saved { path, steps: script.steps.len(), attempts })
}

fn page(seed: u64, sum: &Sum) -> String {
    let theatre = Theatre::default();
    let script = workload::draw(seed).script;
    let breach = sum.groups.values().find(|group| group.first == seed).map(|group| group.breach.to_string());
    simulator::picture::page(&theatre, &script, breach.as_deref())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| broken(path, &error))
}

/// The result has nowhere to go: a machine may be full, and another one is worth a try.
fn broken(path: &Path, error: &std::io::Error) -> Failure {
    Failure { code: 5, message: format!("{} cannot be written: {error}", path.display()) }
}

/// Judges scenario files by the laws.
fn judge_files(files: &[PathBuf], format: Format) -> Result<u8, Failure> {
    let mut rows = Vec::new();
    for path in files {
        let name = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
        let script = Script::parse(&name, &text).map_err(|error| Failure::usage(error.to_string()))?;
        rows.push((name, Theatre::default().try_script(&script)));
    }
    match format {
        Format::Text => anstream::print!("{}", report::files_text(&rows)),
        Format::Json => anstream::println!("{}", report::files_json(&rows)),
    }
    Ok(u8::from(rows.iter().any(|(_, verdict)| !verdict.findings.breaches.is_empty())))
}
