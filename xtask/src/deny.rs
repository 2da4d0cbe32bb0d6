//! Licences, sources, duplicate versions and advisories of dependencies, by cargo-deny.
//!
//! The rules are in `.cargo/deny.toml`. cargo-deny takes minutes to build, so a machine without it skips the step. The
//! workflow in `.github` installs it.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::packages::cargo;

const INSTALL: &str = "cargo install cargo-deny --locked";

/// Runs the available checks. Prints the reason for a skipped one.
///
/// # Errors
/// cargo-deny cannot be started.
pub(crate) fn findings(root: &Path) -> Result<Vec<String>, String> {
    if !succeeds(cargo(root).args(["deny", "--version"]).stderr(Stdio::null()).stdout(Stdio::null()))? {
        println!("skipped: cargo-deny is not installed; `{INSTALL}`");
        return Ok(Vec::new());
    }
    let mut findings = Vec::new();
    if !succeeds(cargo(root).args(["deny", "--locked", "check", "bans", "licenses", "sources"]))? {
        findings.push("cargo-deny rejects a dependency; the rules are in .cargo/deny.toml".to_owned());
    }
    // The advisories are a separate Git repository.
    if !succeeds(cargo(root).args(["deny", "fetch", "db"]).stderr(Stdio::null()))? {
        println!("skipped: advisories, because their database cannot be fetched");
    } else if !succeeds(cargo(root).args(["deny", "--locked", "check", "--disable-fetch", "advisories"]))? {
        findings.push(
            "a dependency has an advisory; update it, or allow it in .cargo/deny.toml with a reason"
                .to_owned(),
        );
    }
    Ok(findings)
}

fn succeeds(command: &mut Command) -> Result<bool, String> {
    let status = command.status().map_err(|err| format!("cannot start {command:?}: {err}"))?;
    Ok(status.success())
}
