//! Development tasks, run as `cargo xtask <task>`.
//!
//! `ci`, `tidy` and `spec` need nothing but what rustup installs: cargo, rustfmt and clippy. The others fetch other
//! people's tools from their registries into `target/`.

mod ci;
mod compare;
mod direction;
mod duplicates;
mod hostile;
mod licence;
mod mcp_conformance;
mod mutants;
mod packages;
mod schemathesis;
mod served;
mod spdx;
mod spec;
mod tidy;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
Development tasks.

usage: cargo xtask <task>

tasks:
  ci                   every check that a change must pass
  ci --only <step>     one step; may be given more than once
  tidy                 the rules of the house that no lint knows
  mutants              what the conformance suite says of faulty and of honest servers; --help for options
  compare              the reference server beside a bare hyper server, measured; `compare --help`
  hostile TARGET       bytes that libFuzzer chooses, for all that reads bytes; `hostile --help` for options
  spec FILE            whether the conformance suite's catalogue covers the specification's text
  spec FILE --hashes   the sentences of that text, with what the catalogue cites them by
  mcp-conformance [...]  the served /mcp against the protocol's own suite; options go to it (needs node and npm)
  schemathesis [...]   the served reference against its OpenAPI document; options go to Schemathesis (needs python3)

steps of ci, in their order:
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let verdict = match arguments[..] {
        ["mutants", ref rest @ ..] => root().and_then(|root| mutants::run(&root, rest)),
        ["compare", "--help" | "-h", ..] => {
            print!("{}", compare::HELP);
            return ExitCode::SUCCESS;
        }
        ["hostile", "--help" | "-h", ..] => {
            print!("{}", hostile::HELP);
            return ExitCode::SUCCESS;
        }
        [] | ["help" | "--help" | "-h", ..] | [_, "--help" | "-h", ..] => {
            print!("{}", help());
            return ExitCode::SUCCESS;
        }
        ["ci", ref rest @ ..] => steps(rest),
        ["tidy"] => steps(&["--only", "tidy"]),
        ["spec", ref rest @ ..] => root().and_then(|root| spec::run(&root, rest)),
        ["compare", ref rest @ ..] => compare::Options::read(rest)
            .and_then(|options| root().and_then(|root| compare::run(&root, &options))),
        ["hostile", ref rest @ ..] => {
            hostile::Task::read(rest).and_then(|task| root().and_then(|root| hostile::run(&root, &task)))
        }
        ["mcp-conformance", ref rest @ ..] => root().and_then(|root| mcp_conformance::run(&root, rest)),
        ["schemathesis", ref rest @ ..] => root().and_then(|root| schemathesis::run(&root, rest)),
        ["tidy", extra, ..] => Err(format!("`{extra}` is not an option; `tidy` takes none")),
        [other, ..] => Err(format!(
            "`{other}` is not a task; there are `ci`, `compare`, `hostile`, `mcp-conformance`, `mutants`, `schemathesis`, \
             `spec` and `tidy`"
        )),
    };
    match verdict {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}\n\ntry `cargo xtask --help`");
            ExitCode::from(2)
        }
    }
}

fn steps(options: &[&str]) -> Result<bool, String> {
    let steps = ci::select(options)?;
    Ok(ci::run(&root()?, &steps))
}

fn help() -> String {
    let mut text = HELP.to_owned();
    for step in ci::STEPS {
        text.push_str(&format!("  {:<20} {}\n", step.name, step.what));
    }
    text
}

/// The directory of the workspace, which is where every step runs.
fn root() -> Result<PathBuf, String> {
    let package = env::var_os("CARGO_MANIFEST_DIR").ok_or("not started by cargo; run `cargo xtask`")?;
    let root = PathBuf::from(package).join("..");
    root.canonicalize().map_err(|err| format!("cannot read `{}`: {err}", root.display()))
}
