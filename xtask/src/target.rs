//! Starts servers on a loopback port, and runs `chargeproof check` on them.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output};

use testkit::RunningProgram;

/// Starts a command and waits until its server listens on the port.
///
/// # Errors
/// The command cannot be started, ends, or does not listen in time.
pub(crate) fn start_listening(command: &mut Command, port: u16) -> Result<RunningProgram, String> {
    RunningProgram::start_and_wait(command, || TcpStream::connect(("127.0.0.1", port)).is_ok())
}

/// The API keys of the judged server.
#[derive(Clone, Copy)]
pub(crate) struct Keys<'a> {
    pub(crate) live: &'a str,
    pub(crate) test: &'a str,
}

/// Returns the command `chargeproof check --without=PART …` for the server on a loopback port.
pub(crate) fn check_command(program: &Path, port: u16, keys: Keys<'_>, without: &[&str]) -> Command {
    let mut check = Command::new(program);
    check.args(["check", &format!("http://127.0.0.1:{port}")]);
    check.args(without.iter().map(|part| format!("--without={part}")));
    check.env("CHARGEPROOF_LIVE_KEY", keys.live).env("CHARGEPROOF_TEST_KEY", keys.test);
    check
}

/// Runs a command to completion and captures its output.
pub(crate) fn output(command: &mut Command) -> Result<Output, String> {
    command.output().map_err(|err| format!("cannot start {command:?}: {err}"))
}
