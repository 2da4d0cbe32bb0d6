//! `cargo xtask mcp-conformance`: the served `/mcp` against the protocol's own conformance suite.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::served::Served;

/// What is installed, exactly: the suite, and the Node.js that it needs.
const TOOLS: [&str; 2] = ["@modelcontextprotocol/conformance@0.1.16", "node@22.23.3"];
const SUITE: &str = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
const NODE: &str = "node_modules/node/bin/node";

/// Runs the suite. `extra` goes to it. Whether everything is as the baseline says.
pub(crate) fn run(root: &Path, extra: &[&str]) -> Result<bool, String> {
    let home = install(root)?;
    Served::build(root)?;
    let mut served = Served::start(root, &["--rate-limit", "off"])?;
    let settings = root.join("xtask/mcp");
    println!("==> the protocol's conformance suite; what does not apply stands in xtask/mcp/baseline.yml");
    let mut command = Command::new(home.join(NODE));
    command
        .current_dir(&home)
        .env("MCP_SERVER_KEY", &served.ready.test_key)
        // The suite knows no keys: this puts one into each of its requests.
        .arg("--import")
        .arg(settings.join("bearer.mjs"))
        .arg(SUITE)
        .args(["server", "--url", &format!("{}/mcp", served.ready.url)])
        .arg("--expected-failures")
        .arg(settings.join("baseline.yml"))
        .args(extra);
    let good = succeeds(&mut command)?;
    if !served.is_alive() {
        println!("error: the server has ended");
    }
    Ok(good && served.is_alive())
}

/// Where the suite lies.
fn install(root: &Path) -> Result<PathBuf, String> {
    let home = root.join("target/mcp-conformance");
    let stamp = home.join("installed");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == TOOLS.join(" ")) {
        return Ok(home);
    }
    println!("==> installing {}", TOOLS.join(" "));
    fs::create_dir_all(&home).map_err(|error| format!("cannot make `{}`: {error}", home.display()))?;
    let npm = ["install", "--no-fund", "--no-audit", "--loglevel", "error", "--prefix"];
    let mut command = Command::new("npm");
    if !succeeds(command.args(npm).arg(&home).args(TOOLS))? || !home.join(NODE).is_file() {
        return Err("the suite can't be installed; it and Node.js come from npm".to_owned());
    }
    fs::write(&stamp, TOOLS.join(" "))
        .map_err(|error| format!("cannot write `{}`: {error}", stamp.display()))?;
    Ok(home)
}

fn succeeds(command: &mut Command) -> Result<bool, String> {
    match command.status() {
        Ok(status) => Ok(status.success()),
        Err(error) => Err(format!("cannot start {command:?}: {error}; it needs node and npm")),
    }
}
