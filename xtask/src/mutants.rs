//! `cargo xtask mutants`: runs the program of that package, so that the other tasks need not build it.

use std::path::Path;

use crate::packages::cargo;

/// Passes the options on. Returns `true` if the program succeeds.
pub(crate) fn run(root: &Path, options: &[String]) -> Result<bool, String> {
    let mut program = cargo(root);
    // Optimised as for the tests, because it judges many recordings.
    program
        .args(["run", "--quiet", "--locked", "--profile", "test", "--package", "mutants", "--"])
        .args(options);
    let status = program.status().map_err(|err| format!("cannot start {program:?}: {err}"))?;
    match status.code() {
        Some(0) => Ok(true),
        Some(2) => Err("the mutants were not tried".to_owned()),
        _ => Ok(false),
    }
}
