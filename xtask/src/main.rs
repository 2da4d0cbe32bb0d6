//! Development tasks, run as `cargo xtask <task>`.
//!
//! `ci`, `tidy` and `spec` need nothing but what rustup installs: cargo, rustfmt and clippy. The others fetch other
//! people's tools from their registries into `target/`.

#[expect(clippy::disallowed_methods, reason = "other programs are waited for, and no runtime is stopped")]
mod attack;
mod ci;
mod commits;
mod compare;
mod crash;
mod deny;
mod direction;
mod dist;
#[expect(
    clippy::disallowed_methods,
    reason = "daemons are asked until they have changed, and no runtime is stopped"
)]
mod fleet;
mod frameworks;
mod gateways;
mod handlers;
mod hostile;
mod mcp_conformance;
mod mcp_sdks;
mod modules;
mod mutants;
mod openapi;
mod packages;
mod pictures;
mod schemathesis;
mod served;
mod sources;
mod spec;
mod target;
mod tidy;
mod tools;
mod worlds;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
Development tasks.

usage: cargo xtask <task>

tasks:
  ci                   every check that a change must pass
  ci --only <step>     one step; may be given more than once
  ci --allow-skip <case>  an attack that this machine may be unable to run; may be given more than once
  tidy                 rules about files and modules that no lint knows
  commit-msg FILE      check the subject of a commit message; the hook in .github/hooks calls it
  mutants              run the suite on faulty and on correct servers; `mutants --help`
  frameworks [...]     judge small servers on other people's frameworks; options go to `check` (needs python3, node)
  gateways             judge the reference behind nginx, HAProxy, Varnish and Apache; `gateways --help`
  attack               attack a served reference and the program, and measure; `attack --help`
  crash                kill the program under load, start it again, and look what is lost; `crash --help`
  compare              measure the reference server beside a bare hyper server; `compare --help`
  hostile TARGET       fuzz whatever reads bytes, guided by coverage; `hostile --help`
  spec FILE            compare the suite's catalogue with the text of the specification
  spec FILE --hashes   the sentences of that text, with what the catalogue cites them by
  openapi              try generators of clients and types on the served /openapi.json (needs node, npm, python3)
  schemathesis [...]   compare the served reference with its OpenAPI document; options go to Schemathesis (needs python3)
  mcp-conformance [...]  run the protocol's own suite on the served /mcp; options go to it (needs node and npm)
  mcp-sdks             call the served /mcp with the protocol's official clients (needs node and npm, python3)
  fleet                validate the fleet's files, and sweep on two Slurm nodes, one killed (needs python3, Slurm, root)
  handlers             try the webhook handlers of /docs (needs python3, node, php, go; skips what is missing)
  worlds               run suites in pytest, vitest and node:test with the packages' sources (needs python3, node)
  pictures             take the README's screenshots anew from the running program (needs chromium)
  dist                 build what is published for this platform, and try it; `dist --help`

steps of ci, in their order:
";

/// Runs a task on the workspace. Returns `true` if it succeeds.
type PlainTask = fn(&Path) -> Result<bool, String>;

/// A task that takes no options; `None` for other names.
fn without_options(task: &str) -> Option<PlainTask> {
    match task {
        "pictures" => Some(pictures::run),
        "openapi" => Some(openapi::run),
        "mcp-sdks" => Some(mcp_sdks::run),
        "fleet" => Some(fleet::run),
        "handlers" => Some(handlers::run),
        "worlds" => Some(worlds::run),
        _ => None,
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let verdict = match arguments[..] {
        ["frameworks", ref rest @ ..] => root().and_then(|root| frameworks::run(&root, rest)),
        ["mutants", ref rest @ ..] => root().and_then(|root| mutants::run(&root, rest)),
        ["attack", "--help" | "-h", ..] => {
            print!("{}", attack::HELP);
            return ExitCode::SUCCESS;
        }
        ["compare", "--help" | "-h", ..] => {
            print!("{}", compare::HELP);
            return ExitCode::SUCCESS;
        }
        ["crash", "--help" | "-h", ..] => {
            print!("{}", crash::HELP);
            return ExitCode::SUCCESS;
        }
        ["gateways", "--help" | "-h", ..] => {
            print!("{}", gateways::HELP);
            return ExitCode::SUCCESS;
        }
        ["dist", "--help" | "-h", ..] => {
            print!("{}", dist::HELP);
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
        ["commit-msg", file] => commits::check_file(file),
        ["tidy"] => steps(&["--only", "tidy"]),
        ["spec", ref rest @ ..] => root().and_then(|root| spec::run(&root, rest)),
        ["attack", ref rest @ ..] => attack::AttackOptions::read(rest)
            .and_then(|options| root().and_then(|root| attack::run(&root, &options, rest))),
        ["compare", ref rest @ ..] => compare::Options::read(rest)
            .and_then(|options| root().and_then(|root| compare::run(&root, &options))),
        ["crash", ref rest @ ..] => crash::CrashOptions::read(rest)
            .and_then(|options| root().and_then(|root| crash::run(&root, &options))),
        ["hostile", ref rest @ ..] => {
            hostile::Task::read(rest).and_then(|task| root().and_then(|root| hostile::run(&root, &task)))
        }
        ["gateways", ref rest @ ..] => gateways::GatewayOptions::read(rest)
            .and_then(|options| root().and_then(|root| gateways::run(&root, &options))),
        ["dist", ref rest @ ..] => root().and_then(|root| dist::run(&root, rest)),
        ["mcp-conformance", ref rest @ ..] => root().and_then(|root| mcp_conformance::run(&root, rest)),
        ["schemathesis", ref rest @ ..] => root().and_then(|root| schemathesis::run(&root, rest)),
        ["tidy", extra, ..] => Err(format!("`{extra}` is not an option; `tidy` takes none")),
        [task, ref rest @ ..] if let Some(run) = without_options(task) => match rest {
            [] => root().and_then(|root| run(&root)),
            [extra, ..] => Err(format!("`{extra}` is not an option; `{task}` takes none")),
        },
        [other, ..] => Err(format!("`{other}` is not a task")),
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
    let options = ci::select(options)?;
    Ok(ci::run(&root()?, &options))
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
