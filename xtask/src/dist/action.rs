//! Tests the script of the GitHub Action on the reference server, as in a workflow.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::Build;
use crate::served;

/// Runs the script with the built program, and once more without API keys.
///
/// # Errors
/// The script does not exit with 0, an output is missing, or the run without keys does not report an error.
pub(super) fn try_script(build: &Build) -> Result<(), String> {
    println!("==> the action's script");
    if cfg!(windows) {
        println!("skipped: bash is required");
        return Ok(());
    }
    let directory = build.work_directory("trial-action")?;
    let served = served::start(&build.program, &[])?;
    let (output, summary) = (directory.join("output"), directory.join("summary"));
    let script = Command::new(build.root.join("conformance/action/check.sh"))
        .current_dir(&directory)
        .env("PATH", path_with_program(build)?)
        .env("CHARGEPROOF_LIVE_KEY", served.value("live_key"))
        .env("CHARGEPROOF_TEST_KEY", served.value("test_key"))
        .env("INPUT_URL", served.value("url"))
        .env("INPUT_WHEEL", "installed")
        .env("INPUT_REPORT", "junit=report.xml\nhtml=report.html")
        .env("INPUT_ARGUMENTS", "--only\naccount.served")
        .env("GITHUB_OUTPUT", &output)
        .env("GITHUB_STEP_SUMMARY", &summary)
        .output()
        .map_err(|err| format!("cannot start the script: {err}"))?;
    let read_or_empty = |path| fs::read_to_string(path).unwrap_or_default();
    let printed = String::from_utf8_lossy(&script.stdout);
    let expected = format!("exit-code={}\n", script.status.code().unwrap_or(-1));
    let is_complete = script.status.code() == Some(0)
        && read_or_empty(output) == expected
        && read_or_empty(summary).contains(served.value("url"))
        && read_or_empty(directory.join("report.xml")).contains("account.served")
        && read_or_empty(directory.join("report.html")).contains("</html>");
    if is_complete {
        return try_without_keys(build, &directory);
    }
    let error = String::from_utf8_lossy(&script.stderr);
    Err(format!("the script ended with {}, or an output is missing:\n{printed}{error}", script.status))
}

/// Checks that a run without keys exits with 2, prints an error annotation, and states the exit code in the summary.
fn try_without_keys(build: &Build, directory: &Path) -> Result<(), String> {
    let summary = directory.join("summary-without-keys");
    let script = Command::new(build.root.join("conformance/action/check.sh"))
        .current_dir(directory)
        .env("PATH", path_with_program(build)?)
        .env_remove("CHARGEPROOF_LIVE_KEY")
        .env("INPUT_URL", "http://127.0.0.1:9")
        .env("INPUT_WHEEL", "installed")
        .env("GITHUB_STEP_SUMMARY", &summary)
        .output()
        .map_err(|err| format!("cannot start the script: {err}"))?;
    let output = String::from_utf8_lossy(&script.stdout);
    let written = fs::read_to_string(summary).unwrap_or_default();
    match script.status.code() == Some(2) && output.contains("::error") && written.contains("exit code 2") {
        true => Ok(()),
        false => Err(format!(
            "without keys the script ended with {}, and printed:\n{output}{written}",
            script.status
        )),
    }
}

/// Returns the search path, with the built program first.
fn path_with_program(build: &Build) -> Result<OsString, String> {
    let programs = build.program.parent().ok_or("the program has no directory")?.to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(programs).chain(std::env::split_paths(&path)))
        .map_err(|err| format!("cannot extend PATH: {err}"))
}
