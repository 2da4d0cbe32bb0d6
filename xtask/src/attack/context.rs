//! [`CaseContext`]: starts the program and reference servers for a case, and measures their memory and time.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::dns::DnsServer;
use crate::served;
use testkit::{Connection, RunningProgram, signal, wait_until};

/// The maximum number of stored bytes of each output stream of a program.
const OUTPUT_BYTES_MAX: u64 = 16 * 1024 * 1024;

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
    /// A directory for the files of this run.
    pub(crate) directory: PathBuf,
    /// `true` for the short run, in which cases do less.
    pub(crate) is_short: bool,
    /// The DNS server of this run; `None` outside of the namespaces that it needs.
    pub(crate) dns_server: Option<DnsServer>,
}

impl CaseContext {
    /// Starts the reference server without a rate limit, with these options.
    pub(crate) fn serve(&self, options: &[&str]) -> Result<ServedReference, CaseFailure> {
        let mut command = Command::new(&self.program);
        command.stderr(Stdio::null());
        ServedReference::start(command, &[&["--rate-limit", "off"], options].concat())
    }

    /// Starts the reference server with the default rate limit.
    pub(crate) fn serve_limited(&self, options: &[&str]) -> Result<ServedReference, CaseFailure> {
        let mut command = Command::new(&self.program);
        command.stderr(Stdio::null());
        ServedReference::start(command, options)
    }

    /// Returns the DNS server, or the reason why there is none.
    pub(crate) fn dns_server(&self) -> Result<&DnsServer, CaseFailure> {
        let reason = "requires a network namespace: `unshare` on Linux";
        self.dns_server.as_ref().ok_or_else(|| CaseFailure::Skipped(reason.to_owned()))
    }

    /// Returns a command for the program in the run's directory, without the user's settings.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = testkit::command_for(&self.program, &self.directory);
        command.args(arguments).stdin(Stdio::null());
        command
    }

    /// Returns the first number for the long run and the second for the short one.
    pub(crate) fn long_or_short(&self, long: usize, short: usize) -> usize {
        if self.is_short { short } else { long }
    }
}

/// A running reference server, with a connection that is opened by the first request.
pub(crate) struct ServedReference {
    served: RunningProgram,
    pub(crate) address: String,
    pub(crate) live_key: String,
    pub(crate) test_key: String,
    pub(crate) sandbox_token: String,
    connection: Option<Connection>,
}

impl ServedReference {
    pub(crate) fn start(command: Command, options: &[&str]) -> Result<ServedReference, CaseFailure> {
        let served = served::start_as(command, options)?;
        let value_of = |name| served.value(name).to_owned();
        let (address, live, test) = (value_of("address"), value_of("live_key"), value_of("test_key"));
        let token = value_of("sandbox_token");
        Ok(ServedReference {
            served,
            address,
            live_key: live,
            test_key: test,
            sandbox_token: token,
            connection: None,
        })
    }

    /// Sends a request, with an API key or as a local client, and returns the JSON of the response, which must be a
    /// success. If the request fails on the existing connection, it is repeated over a new one.
    pub(crate) fn call(
        &mut self,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: &Value,
    ) -> Result<Value, CaseFailure> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        if let Some(connection) = &mut self.connection
            && let Ok(response) = connection.call(method, path, key, &body)
        {
            return Ok(response.success().map_err(|reason| format!("{method} {path}: {reason}"))?);
        }
        let mut connection = Connection::open(&self.address)?;
        let response = connection.call(method, path, key, &body)?;
        self.connection = Some(connection);
        Ok(response.success().map_err(|reason| format!("{method} {path}: {reason}"))?)
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Result<Value, CaseFailure> {
        self.call("POST", path, None, body)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.served.child.id()
    }

    /// Waits for the end of the server. Returns the duration of the wait; `None` after the timeout.
    pub(crate) fn wait(&mut self, timeout: Duration) -> Option<Duration> {
        let started = Instant::now();
        self.served.wait(timeout).map(|_| started.elapsed())
    }

    /// Returns the current resident memory in bytes.
    pub(crate) fn memory(&self) -> Result<u64, CaseFailure> {
        process_status(self.pid(), "VmRSS")
    }

    /// Returns the peak memory in bytes since [`ServedReference::reset_peak_memory`].
    pub(crate) fn peak_memory(&self) -> Result<u64, CaseFailure> {
        process_status(self.pid(), "VmHWM")
    }

    /// Resets the peak that Linux records to the current memory.
    pub(crate) fn reset_peak_memory(&self) -> Result<(), CaseFailure> {
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
        process_status(self.pid(), "Threads")
    }
}

fn not_linux() -> CaseFailure {
    CaseFailure::Skipped("requires /proc of Linux".to_owned())
}

/// Returns a value of `/proc/PID/status`, with kilobytes converted to bytes.
fn process_status(pid: u32, name: &str) -> Result<u64, CaseFailure> {
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
    /// The exit code; `None` if a signal ended the program.
    pub(crate) code: Option<i32>,
    /// Both streams, stdout first.
    pub(crate) output: String,
    /// The peak of the observed memory in bytes; 0 if unknown.
    pub(crate) peak_memory: u64,
    /// The duration of [`StartedProgram::wait_or_kill`].
    pub(crate) ended_after: Duration,
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
    pub(crate) fn wait_or_kill(mut self, timeout: Duration) -> ProgramResult {
        let started = Instant::now();
        let mut peak = 0;
        let exit_status = wait_until(timeout, || {
            peak = process_status(self.child.id(), "VmHWM").unwrap_or(0).max(peak);
            self.child.try_wait().ok().flatten()
        });
        if exit_status.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        let code = exit_status.and_then(|status| status.code());
        let output = self.output.into_iter().map(|output| output.join().unwrap_or_default()).collect();
        ProgramResult { code, output, peak_memory: peak, ended_after: started.elapsed() }
    }
}

fn read_in_background(stream: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut stream = stream;
        let _ = stream.by_ref().take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes);
        // The rest is discarded: if it was not read, the program would block.
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Creates an empty directory inside another; removes an existing one of the same name.
pub(crate) fn create_empty_dir(parent: &Path, name: &str) -> Result<PathBuf, CaseFailure> {
    let path = parent.join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path)?;
    Ok(path)
}
