//! `cargo xtask mutants`: runs the program of the package `mutants`. The package is not a dependency, so other
//! tasks do not build it.

use std::path::Path;

use crate::packages::cargo;

/// Runs the program with the options. Returns `true` if it succeeds.
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
