//! `cargo xtask ci`: its steps and the summary.
//!
//! A failed step does not stop the next one, so one run reports all failures.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};

use crate::packages::cargo;
use crate::{attack, commits, crash, deny, direction, tidy};

/// One named check.
pub(crate) struct Step {
    /// The name for `--only`.
    pub(crate) name: &'static str,
    /// One line for `--help`.
    pub(crate) title: &'static str,
    run: Run,
}

enum Run {
    /// A cargo command, which prints its own messages.
    Cargo { arguments: &'static [&'static str], env: Option<(&'static str, &'static str)> },
    /// A check of this program: returns its findings, or the reason why it could not run.
    Check(fn(&Path) -> Result<Vec<String>, String>),
    /// The check `attack`, which also gets the names of the cases that may be skipped on this machine.
    Attack(fn(&Path, &[String]) -> Result<Vec<String>, String>),
}

/// The options of `ci`.
#[derive(Args, Default)]
pub(crate) struct CiOptions {
    /// Runs one step; may be given more than once
    #[arg(long, value_name = "STEP", value_parser = PossibleValuesParser::new(STEPS.iter().map(step_value)))]
    only: Vec<String>,
    /// Allows a case of `attack` to be skipped, if this machine cannot run it; may be given more than once
    #[arg(long, value_name = "CASE", value_parser = attack::case_names())]
    allow_skip: Vec<String>,
}

fn step_value(step: &Step) -> PossibleValue {
    PossibleValue::new(step.name).help(step.title)
}

impl CiOptions {
    /// Returns the options that run one step.
    pub(crate) fn single_step(step: &str) -> CiOptions {
        CiOptions { only: vec![step.to_owned()], ..CiOptions::default() }
    }

    fn steps(&self) -> impl Iterator<Item = &'static Step> {
        STEPS.iter().filter(|step| self.only.is_empty() || self.only.iter().any(|name| name == step.name))
    }
}

/// All steps, in the order in which they run.
pub(crate) const STEPS: &[Step] = &[
    Step {
        name: "format",
        title: "the sources are formatted (rustfmt)",
        run: Run::Cargo { arguments: &["fmt", "--all", "--check"], env: None },
    },
    Step {
        name: "tidy",
        title: "rules about files, modules and guides that no lint checks",
        run: Run::Check(tidy::findings),
    },
    Step {
        name: "commits",
        title: "commit subjects are imperative and short",
        run: Run::Check(commits::findings),
    },
    Step {
        name: "direction",
        title: "dependencies between packages follow the allowed directions",
        run: Run::Check(direction::findings),
    },
    Step {
        name: "deny",
        title: "dependencies: licences, sources, duplicate versions, advisories (cargo-deny)",
        run: Run::Check(deny::findings),
    },
    Step {
        name: "clippy",
        title: "no warning from the compiler or clippy, and no function above 70 lines of code",
        run: Run::Cargo {
            arguments: &[
                "clippy",
                "--locked",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
                "-D",
                "clippy::too_many_lines",
            ],
            env: None,
        },
    },
    Step {
        name: "lean",
        title: "no warning from clippy in the server without its optional features",
        run: Run::Cargo {
            arguments: &[
                "clippy",
                "--locked",
                "--package=reference-server",
                "--no-default-features",
                "--",
                "-D",
                "warnings",
            ],
            env: None,
        },
    },
    Step {
        name: "tests",
        title: "cargo test",
        run: Run::Cargo { arguments: &["test", "--locked", "--workspace", "--no-fail-fast"], env: None },
    },
    Step {
        name: "attack",
        title: "abuse tests of the server and the program, short version",
        run: Run::Attack(attack::findings),
    },
    Step {
        name: "crash",
        title: "the program with --data, killed under load: no acknowledged write is lost",
        run: Run::Check(crash::findings),
    },
    Step {
        name: "docs",
        title: "no warning from rustdoc",
        run: Run::Cargo {
            // With --examples, cargo selects the features of tests, so it reuses what `clippy` has checked.
            arguments: &[
                "doc",
                "--locked",
                "--workspace",
                "--no-deps",
                "--examples",
                "--lib",
                "--bin=chargeproof",
                "--bin=xtask",
                "--bin=bare",
                "--bin=large",
                "--bin=charges",
                "--bin=steps",
            ],
            env: Some(("RUSTDOCFLAGS", "-D warnings")),
        },
    },
];

struct StepResult {
    step: &'static Step,
    has_passed: bool,
    elapsed: Duration,
}

/// Runs the steps and prints the summary. Returns `true` if all passed.
pub(crate) fn run(root: &Path, options: &CiOptions) -> bool {
    let results: Vec<StepResult> = options
        .steps()
        .map(|step| {
            println!("==> {}: {}", step.name, step.title);
            let started = Instant::now();
            let has_passed = step.run(root, &options.allow_skip);
            StepResult { step, has_passed, elapsed: started.elapsed() }
        })
        .collect();

    println!("\n==> summary");
    for StepResult { step, has_passed, elapsed } in &results {
        let verdict = if *has_passed { "pass" } else { "FAIL" };
        println!("{verdict}  {:<11} {:>4}.{}s", step.name, elapsed.as_secs(), elapsed.subsec_millis() / 100);
    }
    for StepResult { step, .. } in results.iter().filter(|result| !result.has_passed) {
        println!("to repeat: cargo xtask ci --only {}", step.name);
    }
    results.iter().all(|result| result.has_passed)
}

impl Step {
    /// Runs the step and prints its findings. Returns `true` if it passed.
    fn run(&self, root: &Path, allow_skip: &[String]) -> bool {
        let found = match self.run {
            Run::Cargo { arguments, env } => return succeeds(cargo(root).args(arguments).envs(env)),
            Run::Check(check) => check(root),
            Run::Attack(check) => check(root, allow_skip),
        };
        match found {
            Ok(findings) => {
                findings.iter().for_each(|finding| println!("{finding}"));
                findings.is_empty()
            }
            Err(message) => {
                println!("error: {message}");
                false
            }
        }
    }
}

fn succeeds(command: &mut Command) -> bool {
    match command.status() {
        Ok(status) => status.success(),
        Err(err) => {
            println!("error: cannot start {command:?}: {err}");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(only: &[&str], expected: &str) {
        let options =
            CiOptions { only: only.iter().map(|name| (*name).to_owned()).collect(), allow_skip: vec![] };
        let names: Vec<_> = options.steps().map(|step| step.name).collect();
        assert_eq!(names.join(" "), expected);
    }

    #[test]
    fn without_options_every_step_runs() {
        check(&[], "format tidy commits direction deny clippy lean tests attack crash docs");
    }

    #[test]
    fn only_selects_steps_and_keeps_their_order() {
        check(&["tidy"], "tidy");
        check(&["docs", "format"], "format docs");
    }
}
