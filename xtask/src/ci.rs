//! The steps of `cargo xtask ci`: what each runs, and how the whole ends.
//!
//! A failed step does not stop the next one: one run tells everything that is wrong.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::packages::cargo;
use crate::{attack, commits, crash, deny, direction, tidy};

/// One named check.
pub(crate) struct Step {
    /// The name for `--only`.
    pub(crate) name: &'static str,
    /// One line for `--help`.
    pub(crate) what: &'static str,
    run: Run,
}

enum Run {
    /// A cargo command; it speaks for itself.
    Cargo { arguments: &'static [&'static str], env: Option<(&'static str, &'static str)> },
    /// A judgement of our own: every finding, or why it could not be made.
    Judge(fn(&Path) -> Result<Vec<String>, String>),
    /// The same with the cases that this machine may be unable to run.
    Attack(fn(&Path, &[&str]) -> Result<Vec<String>, String>),
}

/// The options of `ci`.
pub(crate) struct CiOptions<'a> {
    steps: Vec<&'static Step>,
    /// Attacks that this machine may be unable to run.
    allow_skip: Vec<&'a str>,
}

/// Every step. The quick ones stand first, so that their findings are not waited for.
pub(crate) const STEPS: &[Step] = &[
    Step {
        name: "format",
        what: "rustfmt has nothing to change",
        run: Run::Cargo { arguments: &["fmt", "--all", "--check"], env: None },
    },
    Step {
        name: "tidy",
        what: "rules about files, modules and guides that no lint knows",
        run: Run::Judge(tidy::findings),
    },
    Step {
        name: "commits",
        what: "commit subjects are imperative and short",
        run: Run::Judge(commits::findings),
    },
    Step {
        name: "direction",
        what: "packages depend on each other one way only",
        run: Run::Judge(direction::findings),
    },
    Step {
        name: "deny",
        what: "dependencies: licences, sources, duplicate versions, advisories (cargo-deny)",
        run: Run::Judge(deny::findings),
    },
    Step {
        name: "clippy",
        what: "no warning from the compiler or clippy, and no function above 70 lines of code",
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
        what: "the server without its optional parts",
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
        what: "cargo test",
        run: Run::Cargo { arguments: &["test", "--locked", "--workspace", "--no-fail-fast"], env: None },
    },
    Step {
        name: "attack",
        what: "abuse tests of the server and the program, in their short form",
        run: Run::Attack(attack::findings),
    },
    Step {
        name: "crash",
        what: "the program on its directory, killed under load: nothing acknowledged is lost",
        run: Run::Judge(crash::findings),
    },
    Step {
        name: "docs",
        what: "no warning from rustdoc",
        run: Run::Cargo {
            // Examples, of which there are none, select the features that tests use: `clippy` has checked the dependencies so.
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
                "--bin=lives",
                "--bin=steps",
            ],
            env: Some(("RUSTDOCFLAGS", "-D warnings")),
        },
    },
];

/// Reads the options of `ci`.
pub(crate) fn select<'a>(options: &[&'a str]) -> Result<CiOptions<'a>, String> {
    let (mut wanted, mut allow_skip) = (Vec::new(), Vec::new());
    let mut rest = options;
    while let [option, after @ ..] = rest {
        rest = match (*option, after) {
            ("--only", [name, after @ ..]) => {
                wanted.push(*name);
                after
            }
            ("--only", []) => return Err("`--only` needs the name of a step".to_owned()),
            ("--allow-skip", [name, after @ ..]) => {
                allow_skip.push(*name);
                after
            }
            ("--allow-skip", []) => {
                return Err("`--allow-skip` needs the name of a case of `attack`".to_owned());
            }
            (other, _) => {
                return Err(format!(
                    "`{other}` is not an option; `ci` takes `--only <step>` and `--allow-skip <case of attack>`"
                ));
            }
        };
    }
    if let Some(unknown) = wanted.iter().find(|name| STEPS.iter().all(|step| step.name != **name)) {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        return Err(format!("`{unknown}` is not a step; there are {}", names.join(", ")));
    }
    let steps = STEPS.iter().filter(|step| wanted.is_empty() || wanted.contains(&step.name)).collect();
    Ok(CiOptions { steps, allow_skip })
}

/// Runs the steps and prints the summary. Whether all passed.
pub(crate) fn run(root: &Path, options: &CiOptions<'_>) -> bool {
    let results: Vec<(&Step, bool, Duration)> = options
        .steps
        .iter()
        .map(|step| {
            println!("==> {}: {}", step.name, step.what);
            let started = Instant::now();
            let passed = step.run(root, &options.allow_skip);
            (*step, passed, started.elapsed())
        })
        .collect();

    println!("\n==> summary");
    for (step, passed, took) in &results {
        let verdict = if *passed { "pass" } else { "FAIL" };
        println!("{verdict}  {:<11} {:>4}.{}s", step.name, took.as_secs(), took.subsec_millis() / 100);
    }
    for (step, _, _) in results.iter().filter(|(_, passed, _)| !passed) {
        println!("again: cargo xtask ci --only {}", step.name);
    }
    results.iter().all(|(_, passed, _)| *passed)
}

impl Step {
    fn run(&self, root: &Path, allow_skip: &[&str]) -> bool {
        let found = match self.run {
            Run::Cargo { arguments, env } => return succeeds(cargo(root).args(arguments).envs(env)),
            Run::Judge(judge) => judge(root),
            Run::Attack(judge) => judge(root, allow_skip),
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
    fn check(options: &[&str], expected: &str) {
        let names = |options: CiOptions<'_>| {
            let steps = options.steps.iter().map(|step| step.name);
            let skips = options.allow_skip.iter().copied();
            steps.chain(skips).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(select(options).map_or_else(|message| message, names), expected);
    }

    #[test]
    fn without_options_every_step_runs() {
        check(&[], "format tidy commits direction deny clippy lean tests attack crash docs");
    }

    #[test]
    fn only_picks_steps_and_keeps_their_order() {
        check(&["--only", "tidy"], "tidy");
        check(&["--allow-skip", "lookups", "--only", "attack"], "attack lookups");
        check(&["--only", "docs", "--only", "format"], "format docs");
    }

    #[test]
    fn a_wrong_option_names_what_there_is() {
        check(&["--only"], "`--only` needs the name of a step");
        check(
            &["--fast"],
            "`--fast` is not an option; `ci` takes `--only <step>` and `--allow-skip <case of attack>`",
        );
        check(
            &["--only", "test"],
            "`test` is not a step; there are \
             format, tidy, commits, direction, deny, clippy, lean, tests, attack, crash, docs",
        );
    }
}
