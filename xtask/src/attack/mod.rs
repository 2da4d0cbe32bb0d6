//! `cargo xtask attack`: attacks the reference server and the commands of the program, and measures the effect.
//!
//! Cases are defined by the tables in `access`, `deliveries`, `memory`, `program` and `slots`: the attack, the
//! measured figures and their bounds. `context` starts servers and programs, `hostile_server` contains a malicious
//! server, `dns` a DNS server. Everything runs on loopback; nothing is installed.

mod access;
mod case;
mod context;
mod deliveries;
mod dns;
mod hostile_server;
mod memory;
mod program;
mod slots;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use serde_json::json;

use self::case::{AttackCase, CaseOutcome, CaseVerdict};
use self::context::{CaseContext, CaseFailure};
use crate::OutputFormat;
use crate::packages::cargo;

/// The time after which no further case is started, so that a run ends within five minutes.
const TIME_MAX: Duration = Duration::from_secs(240);

/// The options of the task.
#[derive(Args, Debug, Default)]
#[command(
    after_help = "Cases that need slow DNS run in separate Linux namespaces, by `unshare`. Where that is not allowed, \
they are skipped. A case that fails is run once more: if it passes then, it is reported as flaky.\n\n\
exit code: 0 every figure is within its bound, 1 a figure is not or a case was skipped without --allow-skip, 2 error"
)]
pub(crate) struct AttackOptions {
    /// Runs fewer repetitions and omits the longest cases, as `cargo xtask ci` does; takes a minute
    #[arg(long = "short")]
    is_short: bool,
    /// Attacks the optimised program; the bounds of the shortest times are ten times as wide for the test build
    #[arg(long = "release")]
    is_release: bool,
    /// Lists the cases
    #[arg(long = "list")]
    lists: bool,
    /// Runs one case; may be given more than once
    #[arg(long, value_name = "CASE", value_parser = case_names())]
    only: Vec<String>,
    /// Allows a case to be skipped, if this machine cannot run it; may be given more than once
    #[arg(long, value_name = "CASE", value_parser = case_names())]
    allow_skip: Vec<String>,
    /// The format of the result
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

impl AttackOptions {
    /// Returns the arguments for the same run in separate namespaces.
    fn command_line(&self) -> Vec<String> {
        let flag = |is_set: bool, name: &str| is_set.then(|| name.to_owned());
        let repeated = |option: &'static str, names: &[String]| -> Vec<String> {
            names.iter().flat_map(|name| [option.to_owned(), name.clone()]).collect()
        };
        let mut arguments = vec!["attack".to_owned()];
        arguments.extend(flag(self.is_short, "--short"));
        arguments.extend(flag(self.is_release, "--release"));
        arguments.extend(flag(self.format == OutputFormat::Json, "--format=json"));
        arguments.extend(repeated("--only", &self.only));
        arguments.extend(repeated("--allow-skip", &self.allow_skip));
        arguments
    }

    fn selects(&self, case: &AttackCase) -> bool {
        if self.only.is_empty() {
            !(self.is_short && case.is_long)
        } else {
            self.only.iter().any(|name| name == case.name)
        }
    }
}

/// Returns the parser of case names.
pub(crate) fn case_names() -> PossibleValuesParser {
    PossibleValuesParser::new(cases().map(|case| PossibleValue::new(case.name).help(case.title)))
}

/// Returns all cases in the order in which they run.
fn cases() -> impl Iterator<Item = &'static AttackCase> {
    [deliveries::CASES, access::CASES, memory::CASES, slots::CASES, program::CASES].into_iter().flatten()
}

/// Lists or runs the cases. Returns `true` if every figure is within its bound and no case was skipped, except
/// those of `--allow-skip`.
pub(crate) fn run(root: &Path, options: &AttackOptions) -> Result<bool, String> {
    if options.lists {
        cases().for_each(|case| println!("{:<11} {}", case.name, case.title));
        return Ok(true);
    }
    let directory = root.join("target/attack");
    fs::create_dir_all(&directory)
        .map_err(|error| format!("cannot make `{}`: {error}", directory.display()))?;
    if !dns::is_in_namespaces() {
        build(root, options.is_release)?;
        match dns::rerun_in_namespaces(&directory, &options.command_line()) {
            Some(0) => return Ok(true),
            Some(1) => return Ok(false),
            Some(code) => return Err(format!("the run in separate namespaces exited with {code}")),
            None => {}
        }
    }
    let names = if dns::is_in_namespaces() {
        Some(dns::DnsServer::serve().map_err(|error| format!("cannot start the DNS server: {error}"))?)
    } else {
        None
    };
    let profile = if options.is_release { "release" } else { "debug" };
    let name = format!("chargeproof{}", std::env::consts::EXE_SUFFIX);
    let program = root.join("target").join(profile).join(name);
    let context = CaseContext { program, directory, is_short: options.is_short, dns_server: names };
    Ok(run_cases(&context, options))
}

/// Runs the short form as a step of `ci`. Prints the table and returns one finding for all failures.
///
/// # Errors
///
/// The cases could not be run.
pub(crate) fn findings(root: &Path, allow_skip: &[String]) -> Result<Vec<String>, String> {
    let options =
        AttackOptions { is_short: true, allow_skip: allow_skip.to_vec(), ..AttackOptions::default() };
    let all_within_bounds = run(root, &options)?;
    let finding = "a figure exceeds its bound, or a case was skipped; see the table";
    Ok(if all_within_bounds { Vec::new() } else { vec![finding.to_owned()] })
}

/// Runs the selected cases, a failed one twice, and prints the outcomes. Returns `true` as [`run`] does.
fn run_cases(context: &CaseContext, options: &AttackOptions) -> bool {
    let run_started = Instant::now();
    let mut outcomes = Vec::new();
    for case in cases().filter(|case| options.selects(case)) {
        let measure = |is_repeated| {
            let case_started = Instant::now();
            let measured = if run_started.elapsed() < TIME_MAX {
                (case.run)(context)
            } else {
                Err(CaseFailure::Broken(format!(
                    "the time limit of {} s for a run was exceeded",
                    TIME_MAX.as_secs()
                )))
            };
            let millis = u64::try_from(case_started.elapsed().as_millis()).unwrap_or(u64::MAX);
            let outcome =
                CaseOutcome { case, result: measured, millis, is_release: options.is_release, is_repeated };
            if options.format == OutputFormat::Text {
                print!("{}", outcome.lines());
            }
            outcome
        };
        let mut outcome = measure(false);
        if outcome.verdict() == CaseVerdict::Failed {
            // Other load on the machine may affect one attempt; a regression affects both.
            outcome = measure(true);
        }
        outcomes.push(outcome);
    }
    let is_allowed = |outcome: &CaseOutcome| match outcome.verdict() {
        CaseVerdict::Passed | CaseVerdict::Flaky => true,
        CaseVerdict::Skipped => options.allow_skip.iter().any(|name| name == outcome.case.name),
        CaseVerdict::Failed => false,
    };
    let all_within_bounds = outcomes.iter().all(is_allowed);
    if options.format == OutputFormat::Json {
        let rows: Vec<_> = outcomes.iter().map(CaseOutcome::json).collect();
        let report = json!({ "cases": rows, "holds": all_within_bounds, "millis": run_started.elapsed().as_millis() as u64 });
        println!("{report:#}");
        return all_within_bounds;
    }
    for outcome in outcomes.iter().filter(|outcome| !is_allowed(outcome)) {
        let (name, title) = (outcome.case.name, outcome.case.title);
        match outcome.verdict() {
            CaseVerdict::Skipped => {
                println!("{name} was skipped; to allow this: --allow-skip {name}   ({title})")
            }
            _ => println!("to repeat: cargo xtask attack --only {name}   ({title})"),
        }
    }
    let verdicts = [CaseVerdict::Passed, CaseVerdict::Flaky, CaseVerdict::Skipped, CaseVerdict::Failed];
    let counts = verdicts.map(|verdict| {
        let count = outcomes.iter().filter(|outcome| outcome.verdict() == verdict).count();
        format!("{count} {}", verdict.as_str())
    });
    println!("{} cases in {} s: {}", outcomes.len(), run_started.elapsed().as_secs(), counts.join(", "));
    all_within_bounds
}

/// Builds the unoptimised program, and returns its path.
///
/// # Errors
///
/// The program cannot be built.
pub(crate) fn built_program(root: &Path) -> Result<PathBuf, String> {
    build(root, false)?;
    Ok(root.join("target/debug").join(format!("chargeproof{}", std::env::consts::EXE_SUFFIX)))
}

/// Builds the program. The unoptimised one is built together with the tests, so it exists after a test run.
fn build(root: &Path, is_release: bool) -> Result<(), String> {
    let mut build = cargo(root);
    match is_release {
        true => build.args(["build", "--quiet", "--locked", "--release", "--package", "chargeproof"]),
        // Builds all tests: another selection of packages would compile the dependencies again, with other features.
        false => build.args(["test", "--quiet", "--locked", "--workspace", "--no-run"]),
    };
    match build.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("`cargo build` of the program failed".to_owned()),
        Err(error) => Err(format!("cannot start cargo: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn case_names_are_unique_and_every_case_has_bounds() {
        let names: BTreeSet<_> = cases().map(|case| case.name).collect();
        assert_eq!(names.len(), cases().count());
        assert!(cases().all(|case| !case.bounds.is_empty()));
    }
}
