//! Builds and starts `chargeproof serve`, for tools that test it over HTTP.

use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::RunningProgram;

use crate::packages::{Workspace, cargo};

/// Builds the program. Returns its path.
pub(crate) fn build(root: &Path) -> Result<PathBuf, String> {
    let built = cargo(root).args(["build", "--locked", "-p", "chargeproof"]).status();
    match built {
        Ok(status) if status.success() => {
            let target = Workspace::load(root)?.target_directory;
            Ok(target.join("debug").join(format!("chargeproof{}", std::env::consts::EXE_SUFFIX)))
        }
        Ok(_) => Err("`cargo build` of the program failed".to_owned()),
        Err(error) => Err(format!("cannot start cargo: {error}")),
    }
}

/// Starts a built program on a free port, with a fixed seed, so that every run has the same world.
pub(crate) fn start(program: &Path, options: &[&str]) -> Result<RunningProgram, String> {
    start_as(Command::new(program), options)
}

/// Starts the server as [`start`] does, by a command that runs the program, such as `prlimit … chargeproof`.
pub(crate) fn start_as(command: Command, options: &[&str]) -> Result<RunningProgram, String> {
    RunningProgram::serve(command, &[&["--seed", "1"], options].concat())
}
