//! `cargo xtask attack`: attacks a served reference and the program, and measures the effect.
//!
//! A case is a row of the tables in `access`, `deliveries`, `memory`, `program` and `slots`: what is done, what is measured,
//! and how large that may be. `context` starts servers and programs, `actors` is a hostile
//! server, `names` a DNS server. Everything is on loopback; nothing is installed, and nothing goes further.

mod access;
mod actors;
mod case;
mod context;
mod deliveries;
mod memory;
mod names;
mod program;
mod slots;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use self::case::{AttackCase, CaseVerdict, Outcome};
use self::context::{CaseContext, Miss};
use crate::packages::cargo;

pub(crate) const HELP: &str = "\
Attacks a served reference and the program, and compares what is measured with its bounds.

usage: cargo xtask attack [--short] [--only CASE] [--release] [--allow-skip CASE] [--format text|json]
       cargo xtask attack --list

  --short            less of the same without the longest cases, in a minute: what `cargo xtask ci` runs
  --only CASE        one case; may be given more than once
  --release          with the optimised program; otherwise with the one that the tests use, which may take ten times as
                     long for the shortest moments: the table says so
  --allow-skip CASE  a case that this machine may be unable to run; may be given more than once

Cases that need slow names run in namespaces of their own, by `unshare`; where that is not allowed they are skipped. A case
that fails is tried once more: if it passes then, it is reported as flaky.

exit code: 0 every figure is within its bound, 1 one is not or a case was skipped that is not allowed to be,
2 it could not be tried
";

/// A run ends within five minutes; the rest is for the case that was begun last.
const TIME_MAX: Duration = Duration::from_secs(240);

/// The options of the task.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AttackOptions {
    is_short: bool,
    is_release: bool,
    is_json: bool,
    lists: bool,
    only: Vec<String>,
    allow_skip: Vec<String>,
}

impl AttackOptions {
    pub(crate) fn read(options: &[&str]) -> Result<AttackOptions, String> {
        let mut read = AttackOptions::default();
        let mut rest = options.iter();
        while let Some(option) = rest.next() {
            match *option {
                "--short" => read.is_short = true,
                "--release" => read.is_release = true,
                "--list" => read.lists = true,
                "--only" => read.only.push(case_name(option, rest.next())?),
                "--allow-skip" => read.allow_skip.push(case_name(option, rest.next())?),
                "--format" => match rest.next() {
                    Some(&"json") => read.is_json = true,
                    Some(&"text") => read.is_json = false,
                    _ => return Err("`--format` takes text or json".to_owned()),
                },
                other => {
                    return Err(format!(
                        "`{other}` is not an option; `attack` takes --short, --only CASE, --release, --allow-skip CASE, --format, --list"
                    ));
                }
            }
        }
        Ok(read)
    }

    fn wants(&self, case: &AttackCase) -> bool {
        if self.only.is_empty() {
            !(self.is_short && case.is_long)
        } else {
            self.only.iter().any(|name| name == case.name)
        }
    }
}

/// The value of an option that names a case.
fn case_name(option: &str, name: Option<&&str>) -> Result<String, String> {
    let name = name.ok_or_else(|| format!("`{option}` needs the name of a case"))?;
    if cases().all(|case| case.name != *name) {
        let names: Vec<_> = cases().map(|case| case.name).collect();
        return Err(format!("`{name}` is not a case; there are {}", names.join(", ")));
    }
    Ok((*name).to_owned())
}

/// Every case, in the order in which they run.
fn cases() -> impl Iterator<Item = &'static AttackCase> {
    [deliveries::CASES, access::CASES, memory::CASES, slots::CASES, program::CASES].into_iter().flatten()
}

/// Runs the cases. Whether every figure is within its bound.
pub(crate) fn run(root: &Path, options: &AttackOptions, arguments: &[&str]) -> Result<bool, String> {
    if options.lists {
        cases().for_each(|case| println!("{:<11} {}", case.name, case.what));
        return Ok(true);
    }
    let directory = root.join("target/attack");
    fs::create_dir_all(&directory)
        .map_err(|error| format!("cannot make `{}`: {error}", directory.display()))?;
    if !names::is_inside() {
        build(root, options.is_release)?;
        let arguments: Vec<String> =
            std::iter::once("attack").chain(arguments.iter().copied()).map(str::to_owned).collect();
        match names::move_inside(&directory, &arguments) {
            Some(0) => return Ok(true),
            Some(1) => return Ok(false),
            Some(code) => return Err(format!("the run inside of its namespaces ended with {code}")),
            None => {}
        }
    }
    let names = if names::is_inside() {
        Some(names::Names::serve().map_err(|error| format!("cannot serve names: {error}"))?)
    } else {
        None
    };
    let profile = if options.is_release { "release" } else { "debug" };
    let name = format!("chargeproof{}", std::env::consts::EXE_SUFFIX);
    let program = root.join("target").join(profile).join(name);
    let context = CaseContext { program, directory, is_short: options.is_short, names };
    Ok(run_cases(&context, options))
}

/// The short form, as a step of `ci`. The table is printed; a finding stands for all of it.
///
/// # Errors
///
/// It could not be tried.
pub(crate) fn findings(root: &Path, allow_skip: &[&str]) -> Result<Vec<String>, String> {
    let mut arguments = vec!["--short"];
    allow_skip.iter().for_each(|name| arguments.extend(["--allow-skip", name]));
    let holds = run(root, &AttackOptions::read(&arguments)?, &arguments)?;
    let finding = "a figure is above its bound, or a case was skipped; the table says which";
    Ok(if holds { Vec::new() } else { vec![finding.to_owned()] })
}

fn run_cases(context: &CaseContext, options: &AttackOptions) -> bool {
    let began = Instant::now();
    let mut outcomes = Vec::new();
    for case in cases().filter(|case| options.wants(case)) {
        let measure = |is_repeated| {
            let start = Instant::now();
            let measured = if began.elapsed() < TIME_MAX {
                (case.run)(context)
            } else {
                Err(Miss::Broken(format!("the {} s of a run were over", TIME_MAX.as_secs())))
            };
            let millis = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
            let outcome = Outcome { case, measured, millis, is_release: options.is_release, is_repeated };
            if !options.is_json {
                print!("{}", outcome.lines());
            }
            outcome
        };
        let mut outcome = measure(false);
        if outcome.verdict() == CaseVerdict::Failed {
            // Others on the machine can spoil a figure once; a fault spoils it twice.
            outcome = measure(true);
        }
        outcomes.push(outcome);
    }
    let is_allowed = |outcome: &Outcome| match outcome.verdict() {
        CaseVerdict::Passed | CaseVerdict::Flaky => true,
        CaseVerdict::Skipped => options.allow_skip.iter().any(|name| name == outcome.case.name),
        CaseVerdict::Failed => false,
    };
    let holds = outcomes.iter().all(is_allowed);
    if options.is_json {
        let rows: Vec<_> = outcomes.iter().map(Outcome::json).collect();
        let report = json!({ "cases": rows, "holds": holds, "millis": began.elapsed().as_millis() as u64 });
        println!("{report:#}");
        return holds;
    }
    for outcome in outcomes.iter().filter(|outcome| !is_allowed(outcome)) {
        let (name, what) = (outcome.case.name, outcome.case.what);
        match outcome.verdict() {
            CaseVerdict::Skipped => {
                println!("{name} was skipped; if it may be: --allow-skip {name}   ({what})")
            }
            _ => println!("again: cargo xtask attack --only {name}   ({what})"),
        }
    }
    let verdicts = [CaseVerdict::Passed, CaseVerdict::Flaky, CaseVerdict::Skipped, CaseVerdict::Failed];
    let counts = verdicts.map(|verdict| {
        let count = outcomes.iter().filter(|outcome| outcome.verdict() == verdict).count();
        format!("{count} {}", verdict.word())
    });
    println!("{} cases in {} s: {}", outcomes.len(), began.elapsed().as_secs(), counts.join(", "));
    holds
}

/// The program, as the tests have built it.
///
/// # Errors
///
/// It can't be built.
pub(crate) fn built_program(root: &Path) -> Result<PathBuf, String> {
    build(root, false)?;
    Ok(root.join("target/debug").join(format!("chargeproof{}", std::env::consts::EXE_SUFFIX)))
}

/// Builds the program. The one that the tests of the command line run is there already when they were run.
fn build(root: &Path, is_release: bool) -> Result<(), String> {
    let mut build = cargo(root);
    match is_release {
        true => build.args(["build", "--quiet", "--locked", "--release", "--package", "chargeproof"]),
        // A selection of its own would compile the dependencies again, with other features.
        false => build.args(["test", "--quiet", "--locked", "--workspace", "--no-run"]),
    };
    match build.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("the program can't be built".to_owned()),
        Err(error) => Err(format!("cannot start cargo: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[track_caller]
    fn check(options: &[&str], expected: Result<&[&str], &str>) {
        let chosen = AttackOptions::read(options).map(|options| {
            cases().filter(|case| options.wants(case)).map(|case| case.name).collect::<Vec<_>>()
        });
        match (chosen, expected) {
            (Ok(names), Ok(expected)) => assert_eq!(names, expected),
            (Err(why), Err(part)) => assert!(why.contains(part), "{why}"),
            (chosen, expected) => panic!("{chosen:?}, not {expected:?}"),
        }
    }

    #[test]
    fn options_choose_cases() {
        check(&["--only", "queue"], Ok(&["queue"]));
        check(&["--short", "--only", "queue", "--format", "json"], Ok(&["queue"]));
        check(&["--only"], Err("needs the name"));
        check(&["--only", "queue", "--allow-skip", "lookups"], Ok(&["queue"]));
        check(&["--allow-skip", "nothing"], Err("`nothing` is not a case; there are queue"));
        check(&["--only", "nothing"], Err("`nothing` is not a case; there are queue"));
        check(&["--quick"], Err("`--quick` is not an option"));
        check(&["--format", "xml"], Err("takes text or json"));
    }

    #[test]
    fn cases_have_names_of_their_own_and_something_to_measure() {
        let names: BTreeSet<_> = cases().map(|case| case.name).collect();
        assert_eq!(names.len(), cases().count());
        assert!(cases().all(|case| !case.bounds.is_empty()));
    }
}
