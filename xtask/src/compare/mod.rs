//! `cargo xtask compare`: measures the reference server, and a bare hyper server that sends the same bytes. They
//! are measured alternately, because absolute figures vary from run to run, but ratios within a run are stable.
//! Other mock servers are measured if they are installed.

mod case;
mod durable;
mod figures;
mod mock_servers;
mod process;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use case::{CASES, Case, ReferenceWorld};
use clap::builder::PossibleValuesParser;
use clap::{Args, value_parser};
use figures::{Figures, Sample};
pub(crate) use process::call_for_json;
use process::{Cores, MeasuredServer};

/// The options of the task.
#[derive(Args)]
pub(crate) struct CompareOptions {
    /// The number of rounds per case; the tables show medians
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// The length of a round for each server, in seconds
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = value_parser!(u32).range(1..=1_000))]
    seconds: u32,
    /// Writes the tables into benches/README.md
    #[arg(long)]
    write: bool,
    /// Measures one case, the mock servers and the one-off operations; may be given more than once
    #[arg(long, value_name = "CASE", value_parser = case_names())]
    only: Vec<String>,
}

/// Returns the parser of case names.
fn case_names() -> PossibleValuesParser {
    PossibleValuesParser::new(CASES.iter().map(|case| case.name).chain([durable::CASE_NAME]))
}

impl CompareOptions {
    fn selects(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}

/// Measures, and prints the tables. Returns `true`, the value of a task without findings; every failure is an error.
pub(crate) fn run(root: &Path, options: &CompareOptions) -> Result<bool, String> {
    build(root)?;
    let programs = Programs { root: root.to_owned() };
    let work = programs.work_dir()?;
    let mut text = table::heading(options.rounds, options.seconds);
    for cores in [Cores::Pinned, Cores::Shared] {
        let rows = measure(&programs, &work, cores, options)?;
        text.push_str(&table::ratio_table(cores, &rows));
    }
    if options.selects(durable::CASE_NAME) {
        text.push_str(&table::durability_table(&durable::measure(&programs, &work, options)?));
    }
    text.push_str(&table::mock_server_table(&mock_servers::measure(&programs, &work, options)?));
    text.push_str(&table::one_off_table(&one_off_durations(&programs)?));
    println!("{text}");
    if options.write {
        table::write(&root.join("benches/README.md"), &text)?;
    }
    Ok(true)
}

/// The built programs: servers and client, in the release directory of the build.
pub(crate) struct Programs {
    root: PathBuf,
}

impl Programs {
    /// Returns the path of a file in the release directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or(self.root.join("target"), PathBuf::from);
        target.join("release").join(name)
    }

    /// Creates the directory for the stored responses, which the bare server sends, and returns its path.
    fn work_dir(&self) -> Result<PathBuf, String> {
        let dir = self.path("compare");
        fs::create_dir_all(&dir).map_err(|err| format!("cannot make `{}`: {err}", dir.display()))?;
        Ok(dir)
    }
}

/// Builds the servers and the client.
fn build(root: &Path) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let status = Command::new(cargo)
        .current_dir(root)
        .args([
            "build",
            "--release",
            "--locked",
            "--package",
            "chargeproof",
            "--package",
            "benches",
            "--bins",
        ])
        .status()
        .map_err(|err| format!("cannot start cargo: {err}"))?;
    if status.success() { Ok(()) } else { Err("`cargo build --release` failed".to_owned()) }
}

/// The figures of a case for both servers.
pub(crate) struct CaseFigures {
    pub(crate) case: &'static Case,
    /// The length of the response.
    pub(crate) bytes: usize,
    pub(crate) figures: Figures,
}

/// Measures the selected cases: in each round, every case with the reference server and with the bare server.
fn measure(
    programs: &Programs,
    work: &Path,
    cores: Cores,
    options: &CompareOptions,
) -> Result<Vec<CaseFigures>, String> {
    let reference = MeasuredServer::start_reference(programs, cores)?;
    let world = ReferenceWorld::create(&reference, work)?;
    let (mut rows, mut servers) = (Vec::new(), Vec::new());
    for case in CASES.iter().filter(|case| options.selects(case.name)) {
        let prepared = world.prepare(case, work)?;
        rows.push(CaseFigures { case, bytes: prepared.bytes, figures: Figures::default() });
        servers.push((world.start_bare_server(programs, cores, &prepared)?, prepared));
    }
    for round in 0..options.rounds {
        for (row, (bare, prepared)) in rows.iter_mut().zip(&servers) {
            eprintln!("{}: round {} of {}, {}", cores.name(), round + 1, options.rounds, row.case.name);
            let sample =
                |server: &MeasuredServer| Sample::measure(programs, server, prepared, cores, options.seconds);
            // The order alternates, so that neither server always has the advantage or disadvantage of being first.
            if round % 2 == 0 {
                let sampled_first = sample(&reference)?;
                row.figures.add(sampled_first, sample(bare)?);
            } else {
                let sampled_first = sample(bare)?;
                row.figures.add(sample(&reference)?, sampled_first);
            }
        }
    }
    Ok(rows)
}

/// Returns the durations of operations that users run once: start, check, playing all scenarios. Each is a median
/// of five, in microseconds.
fn one_off_durations(programs: &Programs) -> Result<Vec<(&'static str, u128)>, String> {
    let chargeproof = programs.path("chargeproof");
    let median = |mut durations: Vec<u128>| {
        durations.sort_unstable();
        durations[durations.len() / 2]
    };
    let run_micros = |arguments: &[&str]| -> Result<u128, String> {
        let started = Instant::now();
        let output = Command::new(&chargeproof)
            .args(arguments)
            .output()
            .map_err(|err| format!("cannot start `{}`: {err}", chargeproof.display()))?;
        if !output.status.success() {
            return Err(format!("`chargeproof {}` ended with {}", arguments.join(" "), output.status));
        }
        Ok(started.elapsed().as_micros())
    };
    let median_of_five = |measure: &dyn Fn() -> Result<u128, String>| -> Result<u128, String> {
        Ok(median((0..5).map(|_| measure()).collect::<Result<Vec<_>, _>>()?))
    };
    Ok(vec![
        ("from start to the first response", median_of_five(&|| process::startup_micros(programs))?),
        ("`check` of the built-in server", median_of_five(&|| run_micros(&["check"]))?),
        ("`play`: all scenarios", median_of_five(&|| run_micros(&["play"]))?),
    ])
}
