//! A trial of what was installed: it judges the built-in server, with nothing of the developer's around it.

use std::path::Path;
use std::process::{Command, Stdio};

/// Runs `check` in an empty home.
///
/// # Errors
/// The program does not start, or its check does not pass.
pub(super) fn judge_built_in(program: &Path, home: &Path) -> Result<(), String> {
    // The launcher of the npm package looks for node in the path.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let output = Command::new(program)
        .args(["check", "--built-in"])
        .current_dir(home)
        .env_clear()
        .env("PATH", path)
        .env("HOME", home)
        .stdin(Stdio::null())
        .output()
        .map_err(|err| format!("cannot start `{}`: {err}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let last = said.trim_end().lines().last().unwrap_or_default();
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{} check` ended with {}: {last}\n{error}", program.display(), output.status));
    }
    println!("    check: {last}");
    Ok(())
}
