//! Runs the program, in a directory of the test's own and without the tester's settings.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, ChildStdout, Command, Output, Stdio},
};

use serde_json::Value;

/// The program, in a directory, with none of the tester's variables.
pub(crate) fn program(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chargeproof"));
    for (name, _) in env::vars().filter(|(name, _)| name.starts_with("CHARGEPROOF_")) {
        command.env_remove(name);
    }
    command.env("NO_COLOR", "1").current_dir(directory);
    command
}

/// Runs it to its end.
pub(crate) fn run(directory: &Path, arguments: &[&str]) -> Output {
    program(directory).args(arguments).output().expect("the program starts")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Everything that it printed.
pub(crate) fn said(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

#[track_caller]
pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", said(output)))
}

pub(crate) fn read(directory: &Path, name: &str) -> String {
    fs::read_to_string(directory.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A command that runs until it is stopped, and is killed if a test ends early. Its first line says that it is ready.
pub(crate) struct Running {
    pub(crate) child: Child,
    lines: BufReader<ChildStdout>,
    pub(crate) ready: Value,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Running {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped"));
        let ready = line_of(&mut lines);
        Running { child, lines, ready }
    }

    /// A served reference on a free port.
    pub(crate) fn serve(directory: &Path, arguments: &[&str]) -> Running {
        Running::serve_as(program(directory), arguments)
    }

    pub(crate) fn serve_as(mut program: Command, arguments: &[&str]) -> Running {
        program.args(["serve", "--format", "json", "--listen", "127.0.0.1:0"]).args(arguments);
        Running::start(program)
    }

    pub(crate) fn word(&self, name: &str) -> &str {
        self.ready[name].as_str().unwrap_or_else(|| panic!("{name} in {}", self.ready))
    }

    /// The next line of its output.
    pub(crate) fn line(&mut self) -> Value {
        line_of(&mut self.lines)
    }

    /// The whole answer to a request over a connection of its own.
    pub(crate) fn ask(&self, method: &str, path: &str, key: Option<&str>, body: &str) -> String {
        ask(self.word("address"), method, path, key, body)
    }

    /// The JSON of an answer that is a success.
    #[track_caller]
    pub(crate) fn post(&self, path: &str, key: Option<&str>, body: &Value) -> Value {
        post(self.word("address"), path, key, body)
    }

    /// Sends a signal, such as `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Stops it; its exit code.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        self.signal("TERM");
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Already over, if the test came to its end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(status.expect("kill is there").success());
}

#[track_caller]
fn line_of(lines: &mut impl BufRead) -> Value {
    let mut line = String::new();
    lines.read_line(&mut line).expect("it says something");
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}

/// The whole answer to a request.
pub(crate) fn ask(address: &str, method: &str, path: &str, key: Option<&str>, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let key = key.map(|key| format!("Authorization: Bearer {key}\r\n")).unwrap_or_default();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{key}\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

/// The JSON of an answer that is a success.
#[track_caller]
pub(crate) fn post(address: &str, path: &str, key: Option<&str>, body: &Value) -> Value {
    let answer = ask(address, "POST", path, key, &body.to_string());
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a body");
    assert!(head.starts_with("HTTP/1.1 2"), "{path}: {answer}");
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

/// Returns once something holds; a test that waits for what never comes fails.
#[track_caller]
pub(crate) fn until(mut holds: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed().as_secs() < 60, "it does not come");
        std::thread::yield_now();
    }
}
