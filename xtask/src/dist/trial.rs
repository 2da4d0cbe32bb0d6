//! Tests of an installed program: it judges the built-in server in an environment without the developer's settings.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

/// The timeout for the start and the stop of a server.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Runs `check` with an empty home directory.
///
/// # Errors
/// The program does not start, or its check does not pass.
pub(super) fn judge_built_in(program: &Path, home: &Path) -> Result<(), String> {
    // The launcher of the npm package searches the path for node.
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
    let printed = String::from_utf8_lossy(&output.stdout);
    let last = printed.trim_end().lines().last().unwrap_or_default();
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{} check` ended with {}: {last}\n{error}", program.display(), output.status));
    }
    println!("    check: {last}");
    Ok(())
}

/// Starts a server by a launcher and stops the launcher; then does the same with the shell that npm starts before it.
/// Each time the server has to stop too.
///
/// # Errors
/// The server does not start or does not stop.
pub(super) fn serves_until_stopped(launcher: &Path, home: &Path) -> Result<(), String> {
    let serve = "serve --listen 127.0.0.1:0 --ready-file ready.json";
    // The second command prevents the shell from replacing itself by the launcher.
    for (shell, script, code) in
        [(false, format!("exec \"$0\" {serve}"), Some(0)), (true, format!("\"$0\" {serve}; exit 9"), None)]
    {
        let ready = home.join("ready.json");
        let _ = std::fs::remove_file(&ready);
        let mut command = Command::new("sh");
        command.arg("-c").arg(script).arg(launcher).current_dir(home).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        if shell {
            command.env("npm_lifecycle_event", "npx");
        }
        let mut started = command.spawn().map_err(|err| format!("cannot start sh: {err}"))?;
        let stopped = check_stop(&mut started, &ready, code);
        if stopped.is_err() {
            let _ = started.kill();
        }
        stopped.map_err(|why| format!("`{}`: {why}", launcher.display()))?;
    }
    println!("    serve: stops with its launcher");
    Ok(())
}

/// Stops a server. `code`: the expected exit code; `None` for a signal.
fn check_stop(started: &mut Child, ready: &Path, code: Option<i32>) -> Result<(), String> {
    let address = until("serves", || {
        let ready_file: Value = serde_json::from_slice(&std::fs::read(ready).ok()?).ok()?;
        ready_file["address"].as_str().map(str::to_owned)
    })?;
    testkit::signal(started.id(), "TERM")?;
    let status = until("has ended", || started.try_wait().ok().flatten())?;
    if status.code() != code {
        return Err(format!("SIGTERM: it ended with {status}"));
    }
    until("has stopped serving", || TcpStream::connect(&address).err().map(drop))
}

fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> Result<T, String> {
    testkit::wait_until(TIMEOUT, look)
        .ok_or_else(|| format!("timed out after {} s before it {what}", TIMEOUT.as_secs()))
}
