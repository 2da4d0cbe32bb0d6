//! `cargo xtask mutants`: runs the program of the package `mutants`, which is no dependency so that other tasks need not build it.

use std::path::Path;

use crate::packages::cargo;

/// Passes the options on. Returns `true` if the program succeeds.
pub(crate) fn run(root: &Path, options: &[String]) -> Result<bool, String> {
    let mut program = cargo(root);
    // With the profile `test`, which is optimised: the program judges many recordings.
    program
        .args(["run", "--quiet", "--locked", "--profile", "test", "--package", "mutants", "--"])
        .args(options);
    let status = program.status().map_err(|err| format!("cannot start {program:?}: {err}"))?;
    match status.code() {
        Some(0) => Ok(true),
        Some(2) => Err("the mutants could not be run".to_owned()),
        _ => Ok(false),
    }
}
