//! Starts, observes and stops programs ([`RunningProgram`]). Also sends signals, polls conditions and finds free
//! ports.

use std::env;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::connection::call;
use crate::message::{Message, Request};

/// The timeout of waits.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// The interval at which conditions are polled.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Returns a command that runs a program in a directory, without the `CHARGEPROOF_` variables of this process and without
/// colours.
pub fn command_for(program: impl AsRef<Path>, directory: &Path) -> Command {
    let mut command = Command::new(program.as_ref());
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CHARGEPROOF_")) {
            command.env_remove(name);
        }
    }
    command.env("NO_COLOR", "1").current_dir(directory);
    command
}

/// A running program. Killed on drop.
#[derive(Debug)]
pub struct RunningProgram {
    /// The process.
    pub child: Child,
    /// The further lines of output; `None` if the output is not read.
    lines: Option<BufReader<ChildStdout>>,
    /// The first line of output as JSON; `Null` if it is not JSON.
    pub first_line_json: Value,
    /// The first line of output.
    pub first_line: String,
}

impl RunningProgram {
    /// Starts a program and waits for its first line.
    ///
    /// # Errors
    /// The program cannot be started, ends without a line, or its first line is not UTF-8.
    pub fn start(mut command: Command) -> Result<RunningProgram, String> {
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| format!("cannot start {command:?}: {error}"))?;
        let lines = child.stdout.take().map(BufReader::new);
        let mut running =
            RunningProgram { child, lines, first_line_json: Value::Null, first_line: String::new() };
        running.first_line = running.read_line().map_err(|error| format!("{command:?}: {error}"))?;
        running.first_line_json = serde_json::from_str(&running.first_line).unwrap_or_default();
        Ok(running)
    }

    /// Starts the reference server on a free port.
    ///
    /// # Errors
    /// The errors of [`RunningProgram::start`]; also if the first line has no address.
    pub fn start_server(mut command: Command, options: &[&str]) -> Result<RunningProgram, String> {
        command.args(["serve", "--format", "json", "--listen", "127.0.0.1:0"]).args(options);
        let running = RunningProgram::start(command)?;
        match running.first_line_json["address"] {
            Value::String(_) => Ok(running),
            _ => Err(format!("the server is not ready: {}", running.first_line)),
        }
    }

    /// Starts a program whose output is not read, and waits until `is_ready` returns `true`.
    ///
    /// # Errors
    /// The program cannot be started, ends, or is not ready in time.
    pub fn start_and_wait(
        command: &mut Command,
        mut is_ready: impl FnMut() -> bool,
    ) -> Result<RunningProgram, String> {
        let child = command.spawn().map_err(|error| format!("cannot start {command:?}: {error}"))?;
        let mut running =
            RunningProgram { child, lines: None, first_line_json: Value::Null, first_line: String::new() };
        let state = wait_until(TIMEOUT, || match is_ready() {
            true => Some(Ok(())),
            false => running.child.try_wait().ok().flatten().map(Err),
        });
        match state {
            Some(Ok(())) => Ok(running),
            Some(Err(status)) => Err(format!("{command:?} ended with {status}")),
            None => Err(format!("{command:?} is not ready after {} s", TIMEOUT.as_secs())),
        }
    }

    /// Returns the string field `name` of the first line.
    ///
    /// # Panics
    /// The line has no such string field.
    #[track_caller]
    pub fn value(&self, name: &str) -> &str {
        self.first_line_json[name].as_str().unwrap_or_else(|| panic!("no {name} in {}", self.first_line))
    }

    /// Reads the next line of output as JSON.
    ///
    /// # Panics
    /// The program ended or its output is not captured, or the line is not JSON.
    #[track_caller]
    pub fn read_json_line(&mut self) -> Value {
        let line = self.read_line().unwrap_or_else(|error| panic!("{error}"));
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Sends a request to the `address` of the first line over a new connection.
    ///
    /// # Panics
    /// The server does not respond.
    #[track_caller]
    pub fn call(&self, method: &str, path: &str, key: Option<&str>, body: &str) -> Message {
        let host = self.value("address");
        let request = Request { method, key, body, host, ..Request::get(path) };
        call(host, request).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// Sends a `POST` request that must succeed; returns the JSON body.
    ///
    /// # Panics
    /// The request fails.
    #[track_caller]
    pub fn post(&self, path: &str, key: Option<&str>, body: &Value) -> Value {
        let response = self.call("POST", path, key, &body.to_string());
        response.success().unwrap_or_else(|error| panic!("POST {path}: {error}"))
    }

    fn read_line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let lines = self.lines.as_mut().ok_or("the program's output is not captured")?;
        let read = lines.read_line(&mut line).map_err(|error| error.to_string())?;
        if read == 0 {
            Err("the program ended without another line of output".to_owned())
        } else {
            Ok(line.trim_end().to_owned())
        }
    }

    /// Sends a signal, such as `TERM`.
    ///
    /// # Errors
    /// The errors of [`signal`].
    pub fn signal(&self, name: &str) -> Result<(), String> {
        signal(self.child.id(), name)
    }

    /// Waits for the program to end and returns its status; `None` after the timeout.
    pub fn wait(&mut self, timeout: Duration) -> Option<ExitStatus> {
        wait_until(timeout, || self.child.try_wait().ok().flatten())
    }

    /// Stops the program by the signal `TERM`. Returns the exit code.
    ///
    /// # Panics
    /// The program does not end in time.
    #[track_caller]
    pub fn stop(&mut self) -> Option<i32> {
        self.signal("TERM").expect("the program is running");
        self.wait(TIMEOUT).expect("the program ends in time").code()
    }

    /// Returns `true` if the program is running.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        // An error means that it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal, such as `TERM`, to a process.
///
/// # Errors
/// The program `kill` cannot be started, or fails: there is no such process or signal, or no permission.
pub fn signal(pid: u32, name: &str) -> Result<(), String> {
    let result = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    match result {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("kill -{name} {pid} ended with {status}")),
        Err(error) => Err(format!("cannot start kill: {error}")),
    }
}

/// Polls `condition` until it returns a value; `None` after the timeout.
pub fn wait_until<T>(timeout: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + timeout;
    loop {
        match condition() {
            None if Instant::now() < deadline => thread::park_timeout(POLL_INTERVAL),
            result => return result,
        }
    }
}

/// Polls a condition until it holds.
///
/// # Panics
/// The condition does not hold within [`TIMEOUT`].
#[track_caller]
pub fn assert_eventually(mut condition: impl FnMut() -> bool) {
    assert!(
        wait_until(TIMEOUT, || condition().then_some(())).is_some(),
        "the condition does not hold in time"
    );
}

/// Returns free ports of the loopback interface, all different. Another process may take one before it is used.
///
/// # Errors
/// There are too few free ports.
pub fn free_ports<const N: usize>() -> Result<[u16; N], String> {
    let listeners = [(); N].map(|()| {
        TcpListener::bind("127.0.0.1:0").and_then(|listener| Ok((listener.local_addr()?, listener)))
    });
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.as_ref().map_err(|error| format!("no port is free: {error}"))?.0.port();
    }
    Ok(ports)
}

/// Returns an unused address of the loopback interface.
///
/// # Errors
/// There is no free port.
pub fn free_address() -> Result<SocketAddr, String> {
    free_ports().map(|[port]| SocketAddr::from(([127, 0, 0, 1], port)))
}
