//! The Python wheel: the program as a command of a Python environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Build, trial};
use crate::packages::undescribed;
use crate::tools::{self, succeeds};

const TOOLS: [&str; 1] = ["maturin==1.16.0"];

/// Makes it with maturin, installs it into a new environment and tries the program.
pub(super) fn make(build: &Build) -> Result<(), String> {
    println!("==> wheel");
    if !tools::is_there("python3") {
        println!("skipped: python3 is not installed");
        return Ok(());
    }
    let programs = tools::python(&build.root.join("target/packages-work/maturin"), &TOOLS)?;
    // It builds as this task did, so it finds the program that is in the archive.
    let mut maturin = undescribed(Command::new(programs.join("maturin")));
    maturin.current_dir(build.root.join("conformance/cli"));
    maturin.args(["build", "--locked", "--profile", build.profile, "--out"]).arg(&build.out);
    if let Some(target) = build.target {
        maturin.args(["--target", target]);
    }
    if build.platform.ends_with("-linux-musl") {
        // It is linked statically, so it runs with either C library.
        maturin.args(["--compatibility", "manylinux2014", "musllinux_1_1"]);
    } else if build.platform.contains("-linux-") {
        maturin.args(["--compatibility", "linux"]);
    }
    if !succeeds(&mut maturin)? {
        return Err("maturin failed".to_owned());
    }
    let prefix = build.room("trial-wheel")?;
    let environment = prefix.join("environment");
    let installed = succeeds(Command::new("python3").args(["-m", "venv"]).arg(&environment))?
        && succeeds(
            Command::new(environment.join(tools::PROGRAMS).join("pip"))
                .args(["install", "--quiet", "--disable-pip-version-check", "--no-index"])
                .arg(wheel(&build.out)?),
        )?;
    if !installed {
        return Err("the wheel cannot be installed".to_owned());
    }
    let program = environment.join(tools::PROGRAMS).join("chargeproof");
    if cfg!(target_os = "linux") && read(&program)? != read(&build.program)? {
        return Err("the wheel has another program than the archive".to_owned());
    }
    trial::judge_built_in(&program, &prefix)
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    fs::read(file).map_err(|err| format!("cannot read `{}`: {err}", file.display()))
}

fn wheel(directory: &Path) -> Result<PathBuf, String> {
    let entries =
        fs::read_dir(directory).map_err(|err| format!("cannot read `{}`: {err}", directory.display()))?;
    let mut files = entries.flatten().map(|entry| entry.path());
    files
        .find(|path| path.extension().is_some_and(|it| it == "whl"))
        .ok_or_else(|| "maturin left no wheel".to_owned())
}
