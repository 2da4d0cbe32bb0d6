//! Runs the program in a directory of the test, without the settings of the developer.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;
use testkit::RunningProgram;

/// Returns a command for the program in a directory, without the environment variables of the developer.
pub(crate) fn program(directory: &Path) -> Command {
    testkit::command_for(env!("CARGO_BIN_EXE_chargeproof"), directory)
}

/// Runs the program to its end.
pub(crate) fn run(directory: &Path, arguments: &[&str]) -> Output {
    program(directory).args(arguments).output().expect("the program starts")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns stdout and stderr.
pub(crate) fn output_of(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

/// Parses stdout as JSON.
#[track_caller]
pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", output_of(output)))
}

pub(crate) fn read(directory: &Path, name: &str) -> String {
    fs::read_to_string(directory.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Starts a long-running command and waits for its first line, which must be a JSON object.
#[track_caller]
pub(crate) fn start(command: Command) -> RunningProgram {
    let running = RunningProgram::start(command).unwrap_or_else(|why| panic!("{why}"));
    assert!(running.first_line_json.is_object(), "{}", running.first_line);
    running
}

/// Starts a reference server on a free port.
pub(crate) fn serve(directory: &Path, arguments: &[&str]) -> RunningProgram {
    serve_as(program(directory), arguments)
}

/// Starts a reference server with this command, which may have environment variables of its own.
#[track_caller]
pub(crate) fn serve_as(program: Command, arguments: &[&str]) -> RunningProgram {
    RunningProgram::start_server(program, arguments).unwrap_or_else(|why| panic!("{why}"))
}
