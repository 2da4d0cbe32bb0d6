//! Tests of an installed program: its check, and the stop of its server.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

/// The timeout for the start and the stop of a server.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Runs `check --built-in` without the developer's environment, in the home directory `home`.
///
/// # Errors
/// The program does not start, or its check does not pass.
pub(super) fn check_built_in_server(program: &Path, home: &Path) -> Result<(), String> {
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

/// Checks that a server stops with its launcher, and with the shell that npm puts between itself and the launcher.
/// The launcher recognizes that shell by `npm_lifecycle_event`.
///
/// # Errors
/// The server does not start or does not stop.
pub(super) fn check_server_stops_with_launcher(launcher: &Path, home: &Path) -> Result<(), String> {
    let serve = "serve --listen 127.0.0.1:0 --ready-file ready.json";
    // `; exit 9` keeps the shell running; otherwise it would replace itself by the launcher. SIGTERM ends that
    // shell by the signal, whereas the launcher exits with 0.
    for (with_shell, script, code) in
        [(false, format!("exec \"$0\" {serve}"), Some(0)), (true, format!("\"$0\" {serve}; exit 9"), None)]
    {
        let ready = home.join("ready.json");
        let _ = std::fs::remove_file(&ready);
        let mut command = Command::new("sh");
        command.arg("-c").arg(script).arg(launcher).current_dir(home).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        if with_shell {
            command.env("npm_lifecycle_event", "npx");
        }
        let mut parent = command.spawn().map_err(|err| format!("cannot start sh: {err}"))?;
        let result = check_stop(&mut parent, &ready, code);
        if result.is_err() {
            let _ = parent.kill();
        }
        result.map_err(|reason| format!("`{}`: {reason}", launcher.display()))?;
    }
    println!("    serve: stops with its launcher");
    Ok(())
}

/// Terminates the parent of a server and waits until both have ended. `expected_code` is `None` for a signal.
fn check_stop(parent: &mut Child, ready: &Path, expected_code: Option<i32>) -> Result<(), String> {
    let address = wait_until("the server is ready", || {
        let ready_file: Value = serde_json::from_slice(&std::fs::read(ready).ok()?).ok()?;
        ready_file["address"].as_str().map(str::to_owned)
    })?;
    testkit::signal(parent.id(), "TERM")?;
    let status = wait_until("the parent has ended", || parent.try_wait().ok().flatten())?;
    if status.code() != expected_code {
        return Err(format!("after SIGTERM it ended with {status}"));
    }
    wait_until("the server has stopped", || TcpStream::connect(&address).err().map(drop))
}

fn wait_until<T>(condition: &str, probe: impl FnMut() -> Option<T>) -> Result<T, String> {
    testkit::wait_until(TIMEOUT, probe)
        .ok_or_else(|| format!("timed out after {} s waiting until {condition}", TIMEOUT.as_secs()))
}
