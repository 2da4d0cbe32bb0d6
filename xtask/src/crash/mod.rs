//! `cargo xtask crash`: kills the program with `--data` at random times under load and restarts it.
//!
//! Checks after each start: acknowledged charges, API keys, snapshots and worlds exist; the charges have the same
//! fields, and are returned for their `Idempotency-Key`; there are no unrequested charges, no duplicate events, and
//! no delivery that the world has not recorded. At the end of each world, all deliveries succeed, and the world
//! that is opened from its checkpoint equals the one replayed from all records. The program itself checks the
//! digests of records whenever it opens a world.

mod load;
mod objects;
mod receiver;
mod world;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use clap::{Args, value_parser};

use self::load::Load;
use self::receiver::Receiver;
use self::world::{AcknowledgedWrites, ServedProgram};
use crate::attack;

/// The number of kills before a new world is used, because opening a world takes longer with each record.
const ROUNDS_PER_WORLD: u32 = 25;
const ROUNDS: u32 = 1_000;
const ROUNDS_SHORT: u32 = 20;
/// The number of calls between checkpoints. Small, so that many checkpoints are interrupted.
const CHECKPOINT_AFTER: &str = "60";
/// The limit of the time from the start of the load to the kill.
const LIFE_MAX: Duration = Duration::from_millis(400);

/// The options of the task.
#[derive(Args)]
pub(crate) struct CrashOptions {
    /// Kills the program 20 times, as `cargo xtask ci` does
    #[arg(long, conflicts_with = "rounds")]
    short: bool,
    /// The number of kills
    #[arg(long, value_name = "N", default_value_t = ROUNDS, value_parser = value_parser!(u32).range(1..))]
    rounds: u32,
    /// The seed of the times of the kills; the load itself differs from run to run
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

impl CrashOptions {
    const SHORT: CrashOptions = CrashOptions { short: true, rounds: ROUNDS, seed: 1 };

    fn rounds(&self) -> u32 {
        if self.short { ROUNDS_SHORT } else { self.rounds }
    }
}

/// The figures of a run.
#[derive(Default)]
struct CrashFigures {
    kills: u32,
    /// The number of acknowledged charges.
    acknowledged: usize,
    /// The number of received delivery attempts.
    attempts: usize,
    /// The number of attempts after the first one of their delivery.
    repeated_attempts: usize,
    slowest_start: Duration,
}

/// Runs the step of `ci`. Returns the violations.
///
/// # Errors
///
/// The program could not be run.
pub(crate) fn findings(root: &Path) -> Result<Vec<String>, String> {
    crash(root, &CrashOptions::SHORT)
}

/// Runs the task. Returns `true` if there are no violations.
///
/// # Errors
///
/// The program could not be run.
pub(crate) fn run(root: &Path, options: &CrashOptions) -> Result<bool, String> {
    let findings = crash(root, options)?;
    findings.iter().for_each(|finding| println!("{finding}"));
    Ok(findings.is_empty())
}

fn crash(root: &Path, options: &CrashOptions) -> Result<Vec<String>, String> {
    let program = attack::built_program(root)?;
    let directory = root.join("target").join("crash");
    let (mut findings, mut figures) = (Vec::new(), CrashFigures::default());
    let mut kill_times = KillTimes(options.seed);
    let started = Instant::now();
    let mut remaining_kills = options.rounds();
    while remaining_kills > 0 && findings.is_empty() {
        let rounds = remaining_kills.min(ROUNDS_PER_WORLD);
        remaining_kills -= rounds;
        let found = crash_one_world(&program, &directory, rounds, &mut kill_times, &mut figures)?;
        findings.extend(found);
    }
    println!(
        "{} kills in {} s: {} charges acknowledged, {} delivery attempts received ({} repeated), slowest start {} ms",
        figures.kills,
        started.elapsed().as_secs(),
        figures.acknowledged,
        figures.attempts,
        figures.repeated_attempts,
        figures.slowest_start.as_millis()
    );
    if !findings.is_empty() {
        println!("the data of the world is kept in {}", directory.display());
    }
    Ok(findings)
}

/// Kills the program repeatedly on a new world. Returns the violations.
fn crash_one_world(
    program: &Path,
    directory: &Path,
    rounds: u32,
    kill_times: &mut KillTimes,
    figures: &mut CrashFigures,
) -> Result<Vec<String>, String> {
    if directory.exists() {
        std::fs::remove_dir_all(directory)
            .map_err(|error| format!("cannot empty {}: {error}", directory.display()))?;
    }
    let receiver = Receiver::start()?;
    let mut acknowledged = AcknowledgedWrites::default();
    for round in 1..=rounds {
        let server = ServedProgram::start(program, directory, &receiver, CHECKPOINT_AFTER)?;
        figures.slowest_start = figures.slowest_start.max(server.startup_duration);
        let findings = server.find_violations(&acknowledged, &receiver.attempts())?;
        if !findings.is_empty() {
            return Ok(label_findings(findings, round - 1));
        }
        server.add_endpoint()?;
        let load = Load::start(&server, round);
        std::thread::park_timeout(kill_times.next());
        server.kill();
        acknowledged.extend(load.join());
        figures.kills += 1;
    }
    let server = ServedProgram::start(program, directory, &receiver, CHECKPOINT_AFTER)?;
    let mut findings = server.find_violations(&acknowledged, &receiver.attempts())?;
    findings.extend(server.deliver_all(&receiver)?);
    let from_checkpoint = server.visible_state()?;
    server.kill();
    let replayed = ServedProgram::start(program, directory, &receiver, "off")?;
    let from_records = replayed.visible_state()?;
    if from_records != from_checkpoint {
        let mut pairs = from_checkpoint.iter().zip(&from_records);
        let difference = pairs.find(|(opened, replayed)| opened != replayed);
        let (one, other) = difference.map_or(("", ""), |(one, other)| (one.as_str(), other.as_str()));
        findings.push(format!(
            "the world opened from its checkpoint differs from the replayed one: {one}; replayed: {other}"
        ));
    }
    replayed.kill();
    let attempts = receiver.attempts();
    let deliveries: BTreeSet<&str> = attempts.iter().map(|attempt| attempt.delivery.as_str()).collect();
    figures.acknowledged += acknowledged.charges.len();
    figures.attempts += attempts.len();
    figures.repeated_attempts += attempts.len() - deliveries.len();
    Ok(label_findings(findings, rounds))
}

/// Adds the number of kills so far to findings.
fn label_findings(findings: Vec<String>, kills: u32) -> Vec<String> {
    findings.into_iter().map(|finding| format!("after kill {kills}: {finding}")).collect()
}

/// The durations of the load before each kill, from the state of a random generator.
struct KillTimes(u64);

impl KillTimes {
    /// Returns the next duration below [`LIFE_MAX`], drawn by splitmix64.
    fn next(&mut self) -> Duration {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Duration::from_millis((mixed ^ (mixed >> 31)) % (LIFE_MAX.as_millis() as u64))
    }
}
