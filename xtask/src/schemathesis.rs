//! `cargo xtask schemathesis`: validates the OpenAPI document, and tests the reference server against it, with
//! third-party tools.

use std::path::Path;
use std::process::Command;

use crate::served;
use crate::tools::{self, succeeds};

/// The exact packages.
const TOOLS: [&str; 2] = ["schemathesis==4.32.5", "openapi-spec-validator==0.9.0"];

/// The runs of Schemathesis: name, options that select the operations. Each has its own server, because `/sandbox`
/// can change its whole state.
const RUNS: [(&str, &[&str]); 2] =
    // `/mcp` is tested by `cargo xtask mcp-conformance`.
    [
        ("the API", &["--exclude-tag", "Sandbox", "--exclude-path", "/mcp"]),
        ("the sandbox", &["--include-tag", "Sandbox"]),
    ];

/// The default options: the number of cases per operation, and the seed of their generation.
const DEFAULT_OPTIONS: [(&str, &str); 2] = [("--max-examples", "50"), ("--seed", "1")];

/// Runs the tools. `extra` is passed to Schemathesis. Returns `true` if there are no findings.
pub(crate) fn run(root: &Path, extra: &[String]) -> Result<bool, String> {
    let programs = tools::install_python_packages(&root.join("target/schemathesis"), &TOOLS)?;
    println!("==> openapi-spec-validator: the document is OpenAPI 3.1");
    let document = root.join("reference/openapi.json");
    let mut no_finding = succeeds(Command::new(programs.join("openapi-spec-validator")).arg(&document))?;
    let program = served::build(root)?;
    for (name, selection) in RUNS {
        println!("\n==> schemathesis: {name} behaves as documented");
        no_finding &= run_schemathesis(root, (&programs, &program), selection, extra)?;
    }
    Ok(no_finding)
}

/// Runs Schemathesis on a new server. `selection`: the options that select the operations.
fn run_schemathesis(
    root: &Path,
    (programs, chargeproof): (&Path, &Path),
    selection: &[&str],
    extra: &[String],
) -> Result<bool, String> {
    let mut served = served::start(chargeproof, &["--rate-limit", "off"])?;
    // Stored examples of earlier runs would be replayed against a changed document.
    let directory = root.join("target/schemathesis/run");
    tools::create_empty_dir(&directory)?;
    let settings = root.join("xtask/schemathesis");
    let mut command = Command::new(programs.join("schemathesis"));
    command
        .current_dir(&directory)
        .env("PYTHONPATH", &settings)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .arg("--config-file")
        .arg(settings.join("schemathesis.toml"))
        .args(["run", &format!("{}/openapi.json", served.value("url"))])
        .args(["--checks", "all", "--continue-on-failure", "--warnings", "off"])
        .args(["--header", &format!("Authorization: Bearer {}", served.value("live_key"))])
        .args(selection);
    for (option, value) in DEFAULT_OPTIONS {
        if !extra.iter().any(|given| given == option) {
            command.args([option, value]);
        }
    }
    let no_finding = succeeds(command.args(extra))?;
    if !served.is_running() {
        println!("error: the server has ended");
    }
    Ok(no_finding && served.is_running())
}
