//! Development tasks, run as `cargo xtask <task>`.
//!
//! `ci`, `tidy`, `spec`, `attack` and `crash` require only what rustup installs. The description of another task
//! names the programs that it needs. Packages from PyPI and npm are installed into `target/`.

#[expect(clippy::disallowed_methods, reason = "waits for other programs, and blocks no async runtime")]
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
    reason = "polls daemons until their state has changed, and blocks no async runtime"
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
mod planted;
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

use clap::{Parser, Subcommand, ValueEnum};

/// Development tasks.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Xtask {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Runs every check that a change must pass
    Ci(ci::CiOptions),
    /// Checks rules about files, modules and language that no lint has
    Tidy,
    /// Checks the subject of a commit message; the hook in .github/hooks calls it
    CommitMsg { file: PathBuf },
    /// Runs the suite on faulty and on correct servers; options go to that program
    #[command(disable_help_flag = true)]
    Mutants(ForwardedOptions),
    /// Plants bugs in a copy of the core and the API, and searches for each by scenarios, random worlds and
    /// exhaustive search
    Planted(planted::PlantedOptions),
    /// Judges small servers on third-party frameworks; options go to `check` (needs python3, node)
    Frameworks(ForwardedOptions),
    /// Judges the reference server behind nginx, HAProxy, Varnish and Apache
    Gateways(gateways::GatewayOptions),
    /// Attacks a served reference and the program, and compares the measurements with bounds
    Attack(attack::AttackOptions),
    /// Kills the program under load, starts it again on the same --data, and checks that nothing is lost
    Crash(crash::CrashOptions),
    /// Measures the reference server beside a bare hyper server (needs two cores and taskset)
    Compare(compare::CompareOptions),
    /// Fuzzes a parser with libFuzzer, guided by coverage (needs a C++ compiler)
    Hostile(hostile::HostileOptions),
    /// Compares the catalogue of the suite with the text of the specification
    Spec(spec::SpecOptions),
    /// Generates clients and types from the served /openapi.json with third-party tools (needs node, npm, python3)
    Openapi,
    /// Tests the served reference against its OpenAPI document; options go to Schemathesis (needs python3)
    Schemathesis(ForwardedOptions),
    /// Runs the official MCP conformance suite on the served /mcp; options go to it (needs node and npm)
    McpConformance(ForwardedOptions),
    /// Calls the served /mcp with the official MCP SDKs (needs node and npm, python3)
    McpSdks,
    /// Validates the files for fleets, and sweeps on two Slurm nodes, one of which is killed (needs python3, Slurm,
    /// root)
    Fleet,
    /// Runs the webhook handlers of /docs (needs python3, node, php, go; skips what is missing)
    Handlers,
    /// Runs suites in pytest, vitest and node:test with the packages' sources (needs python3, node)
    Worlds,
    /// Takes the README's screenshots from the running program (needs chromium)
    Pictures,
    /// Builds what is published for this platform into target/packages, and tries each part in an empty directory
    Dist(dist::DistOptions),
}

/// Options that are forwarded to another program.
#[derive(clap::Args)]
struct ForwardedOptions {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<String>,
}

/// The format of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    #[default]
    Text,
    Json,
}

fn main() -> ExitCode {
    let Xtask { task } = Xtask::parse();
    match root().and_then(|root| run(&root, &task)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

/// Runs a task on the workspace. Returns `true` if it succeeds, `false` if it has findings.
fn run(root: &Path, task: &Task) -> Result<bool, String> {
    match task {
        Task::Ci(options) => Ok(ci::run(root, options)),
        Task::Tidy => Ok(ci::run(root, &ci::CiOptions::single_step("tidy"))),
        Task::CommitMsg { file } => commits::check_file(file),
        Task::Mutants(ForwardedOptions { options }) => mutants::run(root, options),
        Task::Planted(options) => planted::run(root, options),
        Task::Frameworks(ForwardedOptions { options }) => frameworks::run(root, options),
        Task::Gateways(options) => gateways::run(root, options),
        Task::Attack(options) => attack::run(root, options),
        Task::Crash(options) => crash::run(root, options),
        Task::Compare(options) => compare::run(root, options),
        Task::Hostile(options) => hostile::run(root, options),
        Task::Spec(options) => spec::run(root, options),
        Task::Openapi => openapi::run(root),
        Task::Schemathesis(ForwardedOptions { options }) => schemathesis::run(root, options),
        Task::McpConformance(ForwardedOptions { options }) => mcp_conformance::run(root, options),
        Task::McpSdks => mcp_sdks::run(root),
        Task::Fleet => fleet::run(root),
        Task::Handlers => handlers::run(root),
        Task::Worlds => worlds::run(root),
        Task::Pictures => pictures::run(root),
        Task::Dist(options) => dist::run(root, options),
    }
}

/// Returns the directory of the workspace, in which every task runs.
fn root() -> Result<PathBuf, String> {
    let package = env::var_os("CARGO_MANIFEST_DIR").ok_or("not started by cargo; run `cargo xtask`")?;
    let root = PathBuf::from(package).join("..");
    root.canonicalize().map_err(|err| format!("cannot read `{}`: {err}", root.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected_error: Option<&str>) {
        let arguments = std::iter::once("xtask").chain(line.split_whitespace());
        match (Xtask::try_parse_from(arguments), expected_error) {
            (Ok(_), None) => {}
            (Err(error), Some(excerpt)) => assert!(error.to_string().contains(excerpt), "{error}"),
            (Ok(_), Some(_)) => panic!("`{line}` is accepted"),
            (Err(error), None) => panic!("{error}"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        <Xtask as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn valid_options_are_accepted() {
        for line in [
            "ci --only tidy --only docs --allow-skip lookups",
            "attack --short --only queue --format json",
            "crash --rounds 3 --seed 7",
            "compare --rounds 3 --only stored --write",
            "hostile judge --for 5m --jobs 2",
            "hostile --list",
            "gateways --only nginx --jobs 4 --format json",
            "dist --profile dev --repository https://host/a/b/",
            "planted --worlds 9 --only links --bugs FILE",
            "spec text.md --hashes",
            "mutants --combinations 500 --seed 7",
            "schemathesis --max-examples 5",
        ] {
            check(line, None);
        }
    }

    #[test]
    fn invalid_options_are_rejected() {
        check("", Some("Usage"));
        check("test", Some("unrecognized subcommand"));
        check("ci --only test", Some("possible values: format, tidy"));
        check("ci --allow-skip nothing", Some("possible values: queue"));
        check("tidy --fast", Some("unexpected argument"));
        check("crash --rounds 0", Some("0 is not in 1.."));
        check("hostile", Some("required"));
        check("hostile judge --for 0s", Some("such as 90s, 5m or 1h"));
        check("planted --jobs 0", Some("0 is not in 1.."));
        check("gateways --jobs 0", Some("0 is not in 1..=256"));
        check("dist --repository a/b", Some("begins with https://"));
        check("spec text.md --hashes --places", Some("cannot be used with"));
    }
}
