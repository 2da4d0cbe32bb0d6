//! Installs Python and npm packages into a given directory. Also functions for commands and files, whose errors name
//! the command or the file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The name of the directory with the programs of a Python virtual environment.
pub(crate) const VENV_PROGRAMS: &str = if cfg!(windows) { "Scripts" } else { "bin" };
/// The file extension of `npm` and of the commands that it installs: on Windows they are scripts.
const SCRIPT_EXTENSION: &str = if cfg!(windows) { ".cmd" } else { "" };

/// Returns the name of npm's program.
pub(crate) fn npm_program() -> String {
    format!("npm{SCRIPT_EXTENSION}")
}

/// Returns the path of a command that npm installed into this directory.
pub(crate) fn node_program(home: &Path, name: &str) -> PathBuf {
    home.join("node_modules/.bin").join(format!("{name}{SCRIPT_EXTENSION}"))
}

/// Returns `true` if the program can be started and succeeds with `--version`.
pub(crate) fn is_installed(program: &str) -> bool {
    runs_with(program, "--version")
}

/// Returns `true` if a program succeeds with this option.
pub(crate) fn runs_with(program: &str, option: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(option).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Installs Python packages into a virtual environment in `home`, unless they are installed. Returns the directory of
/// its programs.
///
/// # Errors
/// There is no `python3` with venv, or the package index cannot be reached.
pub(crate) fn install_python_packages(home: &Path, packages: &[&str]) -> Result<PathBuf, String> {
    let venv = home.join("venv");
    let programs = venv.join(VENV_PROGRAMS);
    install_once(home, packages, || {
        let pip = ["install", "--quiet", "--disable-pip-version-check"];
        Ok(succeeds(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?
            && succeeds(Command::new(programs.join("pip")).args(pip).args(packages))?)
    })?;
    Ok(programs)
}

/// Installs npm packages into `home`, unless they are installed.
///
/// # Errors
/// There is no `npm`, or its registry cannot be reached.
pub(crate) fn install_npm_packages(home: &Path, packages: &[&str]) -> Result<(), String> {
    install_once(home, packages, || {
        let options = ["install", "--no-fund", "--no-audit", "--loglevel", "error", "--prefix"];
        succeeds(Command::new(npm_program()).args(options).arg(home).args(packages))
    })
}

/// Installs packages unless a stamp file in `home` lists the same packages.
fn install_once(
    home: &Path,
    packages: &[&str],
    install: impl Fn() -> Result<bool, String>,
) -> Result<(), String> {
    let stamp = home.join("installed");
    let list = packages.join(" ");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == list) {
        return Ok(());
    }
    println!("==> installing {list}");
    fs::create_dir_all(home).map_err(|err| format!("cannot make `{}`: {err}", home.display()))?;
    if !install()? {
        return Err(format!("cannot install {list}; the output above has the reason"));
    }
    fs::write(&stamp, list).map_err(|err| format!("cannot write `{}`: {err}", stamp.display()))
}

/// Empties a directory, creating it if necessary. What cannot be removed stays.
pub(crate) fn create_empty_dir(directory: &Path) -> Result<(), String> {
    let _ = fs::remove_dir_all(directory);
    fs::create_dir_all(directory).map_err(|err| format!("cannot make `{}`: {err}", directory.display()))
}

/// Runs a command, with its output on this terminal. Returns `true` if it succeeds.
pub(crate) fn succeeds(command: &mut Command) -> Result<bool, String> {
    let status = command.status().map_err(|err| format!("cannot start {command:?}: {err}"))?;
    Ok(status.success())
}

/// Writes a file; the error names the file.
pub(crate) fn write(file: &Path, text: impl AsRef<[u8]>) -> Result<(), String> {
    fs::write(file, text).map_err(|err| format!("cannot write `{}`: {err}", file.display()))
}

/// Reads a text file; the error names the file.
pub(crate) fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|err| format!("cannot read `{}`: {err}", file.display()))
}

/// Reads the bytes of a file; the error names the file.
pub(crate) fn read_bytes(file: &Path) -> Result<Vec<u8>, String> {
    fs::read(file).map_err(|err| format!("cannot read `{}`: {err}", file.display()))
}

/// Copies a file; the error names both.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to)
        .map(drop)
        .map_err(|err| format!("cannot copy `{}` to `{}`: {err}", from.display(), to.display()))
}
