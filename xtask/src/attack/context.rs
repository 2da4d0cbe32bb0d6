//! [`CaseContext`]: the context of a case. Starts the program and served references, and measures their memory and
//! time.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::names::DnsServer;
use crate::served;
use testkit::{Connection, RunningProgram, signal, wait_until};

/// The maximum stored output of a program.
const SAID_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The reason why a case has no figures.
#[derive(Debug)]
pub(crate) enum CaseFailure {
    /// This machine does not meet the requirements of the case. Not a fault of the server.
    Skipped(String),
    /// The case could not be carried out, so it has no result.
    Broken(String),
}

impl<E: ToString> From<E> for CaseFailure {
    fn from(error: E) -> CaseFailure {
        CaseFailure::Broken(error.to_string())
    }
}

/// The context of a case.
pub(crate) struct CaseContext {
    pub(crate) program: PathBuf,
    /// A directory of this run.
    pub(crate) directory: PathBuf,
    /// `true` for the short run, in which cases do less.
    pub(crate) is_short: bool,
    /// The DNS server of this run; `None` if this machine does not allow one.
    pub(crate) names: Option<DnsServer>,
}

impl CaseContext {
    /// Starts a reference without a rate limit, with these options.
    pub(crate) fn serve(&self, options: &[&str]) -> Result<Host, CaseFailure> {
        let mut command = Command::new(&self.program);
        command.stderr(Stdio::null());
        Host::start(command, &[&["--rate-limit", "off"], options].concat())
    }

    /// Starts a reference with the default rate limit.
    pub(crate) fn serve_limited(&self, options: &[&str]) -> Result<Host, CaseFailure> {
        let mut command = Command::new(&self.program);
        command.stderr(Stdio::null());
        Host::start(command, options)
    }

    /// Returns the DNS server, or the reason why there is none.
    pub(crate) fn names(&self) -> Result<&DnsServer, CaseFailure> {
        let why = "requires a network namespace: `unshare` on Linux";
        self.names.as_ref().ok_or_else(|| CaseFailure::Skipped(why.to_owned()))
    }

    /// Returns a command for the program in the run's directory, without the user's settings.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = testkit::program(&self.program, &self.directory);
        command.args(arguments).stdin(Stdio::null());
        command
    }

    /// Returns the first number for the long run and the second for the short one.
    pub(crate) fn long_or_short(&self, long: usize, short: usize) -> usize {
        if self.is_short { short } else { long }
    }
}

/// A served reference with a connection to it.
pub(crate) struct Host {
    served: RunningProgram,
    pub(crate) address: String,
    pub(crate) live: String,
    pub(crate) test: String,
    pub(crate) token: String,
    connection: Option<Connection>,
}

impl Host {
    pub(crate) fn start(command: Command, options: &[&str]) -> Result<Host, CaseFailure> {
        let served = served::start_as(command, options)?;
        let word = |name| served.value(name).to_owned();
        let (address, live, test) = (word("address"), word("live_key"), word("test_key"));
        let token = word("sandbox_token");
        Ok(Host { served, address, live, test, token, connection: None })
    }

    /// Sends a request, with a key or as a local caller. Reconnects if the server closed the connection.
    pub(crate) fn call(
        &mut self,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: &Value,
    ) -> Result<Value, CaseFailure> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        if let Some(connection) = &mut self.connection
            && let Ok(answer) = connection.call(method, path, key, &body)
        {
            return Ok(answer.success().map_err(|why| format!("{method} {path}: {why}"))?);
        }
        let mut connection = Connection::open(&self.address)?;
        let answer = connection.call(method, path, key, &body)?;
        self.connection = Some(connection);
        Ok(answer.success().map_err(|why| format!("{method} {path}: {why}"))?)
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Result<Value, CaseFailure> {
        self.call("POST", path, None, body)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.served.child.id()
    }

    /// Waits for the end of the server and returns the time it took; `None` after the timeout.
    pub(crate) fn wait(&mut self, timeout: Duration) -> Option<Duration> {
        let began = Instant::now();
        self.served.wait(timeout).map(|_| began.elapsed())
    }

    /// Returns the current memory in bytes.
    pub(crate) fn memory(&self) -> Result<u64, CaseFailure> {
        status(self.pid(), "VmRSS")
    }

    /// Returns the peak memory since [`Host::forget_peak`].
    pub(crate) fn peak(&self) -> Result<u64, CaseFailure> {
        status(self.pid(), "VmHWM")
    }

    pub(crate) fn forget_peak(&self) -> Result<(), CaseFailure> {
        let path = format!("/proc/{}/clear_refs", self.pid());
        fs::write(path, "5").map_err(|_| not_linux())
    }

    /// Returns the processor time in milliseconds.
    pub(crate) fn cpu_millis(&self) -> Result<u64, CaseFailure> {
        /// The unit of Linux: hundredths of a second.
        const TICK_MILLIS: u64 = 10;
        let text = fs::read_to_string(format!("/proc/{}/stat", self.pid())).map_err(|_| not_linux())?;
        // The program's name in parentheses may contain any character.
        let (_, fields) = text.rsplit_once(')').ok_or("the `stat` file of a process has no program name")?;
        // User and system time are the 14th and 15th fields; the name is the second.
        let ticks = fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok());
        Ok(ticks.sum::<u64>() * TICK_MILLIS)
    }

    pub(crate) fn threads(&self) -> Result<u64, CaseFailure> {
        status(self.pid(), "Threads")
    }
}

fn not_linux() -> CaseFailure {
    CaseFailure::Skipped("requires /proc of Linux".to_owned())
}

/// Returns a value of a process's status, with kilobytes converted to bytes.
pub(crate) fn status(pid: u32, name: &str) -> Result<u64, CaseFailure> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).map_err(|_| not_linux())?;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
    let (digits, factor) = match value {
        Some(text) => text.strip_suffix(" kB").map_or((text, 1), |digits| (digits, 1_024)),
        None => return Err(CaseFailure::Broken(format!("the status of a process has no {name}"))),
    };
    let number: u64 = digits.parse().map_err(|_| format!("{name} of a process is {digits}"))?;
    Ok(number * factor)
}

/// The result of a program run.
pub(crate) struct ProgramResult {
    /// `None` if it had to be killed.
    pub(crate) code: Option<i32>,
    /// Both streams, stdout first.
    pub(crate) output: String,
    /// The peak of the observed memory in bytes; 0 if unknown.
    pub(crate) peak: u64,
    /// The time from the start, or from the signal, to the end.
    pub(crate) took: Duration,
}

/// A running program.
pub(crate) struct StartedProgram {
    child: Child,
    output: Vec<thread::JoinHandle<String>>,
}

impl StartedProgram {
    pub(crate) fn start(mut command: Command) -> Result<StartedProgram, CaseFailure> {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {command:?}: {error}"))?;
        let mut output = Vec::new();
        output.extend(child.stdout.take().map(read_in_background));
        output.extend(child.stderr.take().map(read_in_background));
        Ok(StartedProgram { child, output })
    }

    /// Sends a signal to the program.
    pub(crate) fn signal(&self, name: &str) -> Result<(), CaseFailure> {
        Ok(signal(self.child.id(), name)?)
    }

    /// Waits for the end of the program, and kills it after a timeout.
    pub(crate) fn end(mut self, timeout: Duration) -> ProgramResult {
        let began = Instant::now();
        let mut peak = 0;
        let ended = wait_until(timeout, || {
            peak = status(self.child.id(), "VmHWM").unwrap_or(0).max(peak);
            self.child.try_wait().ok().flatten()
        });
        if ended.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        let code = ended.and_then(|status| status.code());
        let output = self.output.into_iter().map(|output| output.join().unwrap_or_default()).collect();
        ProgramResult { code, output, peak, took: began.elapsed() }
    }
}

fn read_in_background(stream: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut stream = stream;
        let _ = stream.by_ref().take(SAID_BYTES_MAX).read_to_end(&mut bytes);
        // The rest is read too, or the program would block.
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Creates an empty directory inside another.
pub(crate) fn create_empty_dir(parent: &Path, name: &str) -> Result<PathBuf, CaseFailure> {
    let path = parent.join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path)?;
    Ok(path)
}
