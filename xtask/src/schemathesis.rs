//! `cargo xtask schemathesis`: the published document against its meta-schema, and the served reference against
//! the document, both with other people's tools.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::served::Served;

/// What is installed, exactly.
const TOOLS: &str = "schemathesis==4.32.5 openapi-spec-validator==0.9.0";

/// The passes over the document. Each has a server of its own, because `/sandbox` can break anything.
const PASSES: [(&str, &[&str]); 2] =
    // What `/mcp` takes is another protocol's, which has a suite of its own.
    [
        ("the API", &["--exclude-tag", "Sandbox", "--exclude-path", "/mcp"]),
        ("the sandbox", &["--include-tag", "Sandbox"]),
    ];

/// What counts unless the caller says otherwise: cases per operation, and the luck of their making.
const USUAL: [(&str, &str); 2] = [("--max-examples", "50"), ("--seed", "1")];

/// Runs the tools. `extra` goes to Schemathesis. Whether nothing was found.
pub(crate) fn run(root: &Path, extra: &[&str]) -> Result<bool, String> {
    let python = install(root)?;
    println!("==> openapi-spec-validator: the document is OpenAPI 3.1");
    let document = root.join("reference/openapi.json");
    let mut good = succeeds(Command::new(python.join("openapi-spec-validator")).arg(&document))?;
    Served::build(root)?;
    for (what, part) in PASSES {
        println!("\n==> schemathesis: {what} is as documented");
        good &= pass(root, &python, part, extra)?;
    }
    Ok(good)
}

fn pass(root: &Path, python: &Path, part: &[&str], extra: &[&str]) -> Result<bool, String> {
    let mut served = Served::start(root, &["--rate-limit", "off"])?;
    // What an earlier run kept would be tried again against a document that has changed.
    let room = fresh(&root.join("target/schemathesis/run"))?;
    let settings = root.join("xtask/schemathesis");
    let mut command = Command::new(python.join("schemathesis"));
    command
        .current_dir(&room)
        .env("PYTHONPATH", &settings)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .arg("--config-file")
        .arg(settings.join("schemathesis.toml"))
        .args(["run", &format!("{}/openapi.json", served.ready.url)])
        .args(["--checks", "all", "--continue-on-failure", "--warnings", "off"])
        .args(["--header", &format!("Authorization: Bearer {}", served.ready.live_key)])
        .args(part);
    for (option, value) in USUAL {
        if !extra.contains(&option) {
            command.args([option, value]);
        }
    }
    let good = succeeds(command.args(extra))?;
    if !served.is_alive() {
        println!("error: the server has ended");
    }
    Ok(good && served.is_alive())
}

/// The directory of the tools' programs, in a virtual environment of their own.
fn install(root: &Path) -> Result<PathBuf, String> {
    let home = root.join("target/schemathesis");
    let (venv, stamp) = (home.join("venv"), home.join("installed"));
    let programs = venv.join("bin");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == TOOLS) {
        return Ok(programs);
    }
    println!("==> installing {TOOLS}");
    fs::create_dir_all(&home).map_err(|error| format!("cannot make `{}`: {error}", home.display()))?;
    let made = succeeds(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))
        .map_err(|why| format!("{why}; it needs python3 with venv"))?;
    let pip = ["install", "--quiet", "--disable-pip-version-check"];
    if !made || !succeeds(Command::new(programs.join("pip")).args(pip).args(TOOLS.split(' ')))? {
        return Err("the tools can't be installed; they come from PyPI".to_owned());
    }
    fs::write(&stamp, TOOLS).map_err(|error| format!("cannot write `{}`: {error}", stamp.display()))?;
    Ok(programs)
}

/// An empty directory.
fn fresh(directory: &Path) -> Result<PathBuf, String> {
    let _ = fs::remove_dir_all(directory);
    fs::create_dir_all(directory)
        .map_err(|error| format!("cannot make `{}`: {error}", directory.display()))?;
    Ok(directory.to_owned())
}

fn succeeds(command: &mut Command) -> Result<bool, String> {
    match command.status() {
        Ok(status) => Ok(status.success()),
        Err(error) => Err(format!("cannot start {command:?}: {error}")),
    }
}
