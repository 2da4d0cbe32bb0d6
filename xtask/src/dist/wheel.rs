//! The Python wheel: the program as a command of a Python environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Build, trial};
use crate::packages::without_package_env;
use crate::sources;
use crate::tools::{self, read, read_bytes, succeeds, write};
use crate::worlds;

const TOOLS: [&str; 1] = ["maturin==1.16.0"];
const MYPY: &str = "mypy==1.18.2";

/// Builds the wheel with maturin, installs it into a new environment, and tests the program and the fixtures.
pub(super) fn build_and_try(build: &Build) -> Result<(), String> {
    println!("==> wheel");
    if !tools::is_installed("python3") {
        println!("skipped: python3 is not installed");
        return Ok(());
    }
    let programs = tools::install_python_packages(&build.root.join("target/packages-work/maturin"), &TOOLS)?;
    let project = build.work_directory("wheel")?;
    write_project(build, &project)?;
    // Maturin runs cargo with the same settings as this task, so the program is not built again.
    let mut maturin = without_package_env(Command::new(programs.join("maturin")));
    maturin.current_dir(&project);
    maturin.args(["build", "--locked", "--profile", build.profile, "--out"]).arg(&build.output_dir);
    if let Some(target) = build.target {
        maturin.args(["--target", target]);
    }
    if build.platform.ends_with("-linux-musl") {
        // The program is statically linked, so it runs with either C library.
        maturin.args(["--compatibility", "manylinux2014", "musllinux_1_1"]);
    }
    if !succeeds(&mut maturin)? {
        return Err("maturin failed".to_owned());
    }
    let prefix = build.work_directory("trial-wheel")?;
    let environment = prefix.join("environment");
    let installed = succeeds(Command::new("python3").args(["-m", "venv"]).arg(&environment))?
        && succeeds(
            Command::new(environment.join(tools::VENV_PROGRAMS).join("pip"))
                .args(["install", "--quiet", "--disable-pip-version-check", "--no-index"])
                .arg(find_wheel(&build.output_dir)?),
        )?;
    if !installed {
        return Err("the wheel cannot be installed".to_owned());
    }
    let program = environment.join(tools::VENV_PROGRAMS).join("chargeproof");
    if cfg!(target_os = "linux") && read_bytes(&program)? != read_bytes(&build.program)? {
        return Err("the program in the wheel differs from that in the archive".to_owned());
    }
    trial::check_built_in_server(&program, &prefix)?;
    try_fixtures(build, &environment)
}

/// Writes the Python project: sources, README, licences, and `pyproject.toml` with the URLs of the repository.
fn write_project(build: &Build, project: &Path) -> Result<(), String> {
    sources::write_python_package(build.root, &project.join("python"))?;
    build.write_common_files(project)?;
    let (relative, absolute) =
        ("manifest-path = \"Cargo.toml\"", build.root.join("conformance/cli/Cargo.toml"));
    let manifest = read(&build.root.join("conformance/cli/pyproject.toml"))?;
    if !manifest.contains(relative) {
        return Err(format!("conformance/cli/pyproject.toml lacks `{relative}`"));
    }
    let mut manifest =
        manifest.replace(relative, &format!("manifest-path = {:?}", absolute.display().to_string()));
    if let Some(repository) = &build.repository {
        let files = build.files_url().unwrap_or_default();
        manifest.push_str(&format!(
            "\n[project.urls]\nRepository = {repository:?}\nDocumentation = \"{files}/reference/WORLDS.md\"\n\
             Changelog = \"{files}/CHANGELOG.md\"\nIssues = \"{repository}/issues\"\n"
        ));
    }
    write(&project.join("pyproject.toml"), manifest)
}

/// Runs the tests of the guide with the installed package, and checks its types.
fn try_fixtures(build: &Build, environment: &Path) -> Result<(), String> {
    let programs = environment.join(tools::VENV_PROGRAMS);
    let tools_installed = succeeds(
        Command::new(programs.join("pip"))
            .args(["install", "--quiet", "--disable-pip-version-check"])
            .args(worlds::PYTEST)
            .arg(MYPY),
    )?;
    if !tools_installed {
        return Err("pytest and mypy cannot be installed; they come from PyPI".to_owned());
    }
    if !succeeds(&mut worlds::pytest_suite(build.root, &programs))? {
        return Err("the tests fail with the installed package".to_owned());
    }
    match succeeds(Command::new(programs.join("mypy")).args(["--strict", "--package", "chargeproof"]))? {
        true => Ok(()),
        false => Err("mypy reports errors in the types of the installed package".to_owned()),
    }
}

fn find_wheel(directory: &Path) -> Result<PathBuf, String> {
    let entries =
        fs::read_dir(directory).map_err(|err| format!("cannot read `{}`: {err}", directory.display()))?;
    let mut files = entries.flatten().map(|entry| entry.path());
    files
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .ok_or_else(|| "maturin wrote no wheel".to_owned())
}
