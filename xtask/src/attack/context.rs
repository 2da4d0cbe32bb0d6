//! The context of every case: the program, a served reference, and its memory as the operating system reports it.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::names::Names;
use crate::served;
use testkit::{Connection, Running, signal, wait_until};

/// So much of what a program prints is kept.
const SAID_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The reason why a case has no figures.
#[derive(Debug)]
pub(crate) enum Miss {
    /// This machine lacks what it takes. No fault of the server.
    Skipped(String),
    /// It went another way than it should, so nobody can tell.
    Broken(String),
}

impl<E: ToString> From<E> for Miss {
    fn from(error: E) -> Miss {
        Miss::Broken(error.to_string())
    }
}

/// The context of a case.
pub(crate) struct CaseContext {
    pub(crate) program: PathBuf,
    /// A directory of this run.
    pub(crate) directory: PathBuf,
    /// In the short form cases do less of the same.
    pub(crate) is_short: bool,
    /// Names of our own, where this machine lets us have some.
    pub(crate) names: Option<Names>,
}

impl CaseContext {
    /// A served reference without a rate limit, with these options.
    pub(crate) fn serve(&self, options: &[&str]) -> Result<Host, Miss> {
        let mut command = Command::new(&self.program);
        command.stderr(Stdio::null());
        Host::start(command, &[&["--rate-limit", "off"], options].concat())
    }

    /// The same with the usual rate limit.
    pub(crate) fn serve_limited(&self, options: &[&str]) -> Result<Host, Miss> {
        let mut command = Command::new(&self.program);
        command.stderr(Stdio::null());
        Host::start(command, options)
    }

    /// The names, or why there are none.
    pub(crate) fn names(&self) -> Result<&Names, Miss> {
        let why = "it takes a network of its own, which `unshare` gives on Linux";
        self.names.as_ref().ok_or_else(|| Miss::Skipped(why.to_owned()))
    }

    /// The program with these arguments, in the run's directory and with none of the operator's settings.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = testkit::program(&self.program, &self.directory);
        command.args(arguments).stdin(Stdio::null());
        command
    }

    /// So many in the long form, or a part of it.
    pub(crate) fn many(&self, long: usize, short: usize) -> usize {
        if self.is_short { short } else { long }
    }
}

/// A served reference, and whom to ask.
pub(crate) struct Host {
    served: Running,
    pub(crate) address: String,
    pub(crate) live: String,
    pub(crate) test: String,
    pub(crate) token: String,
    line: Option<Connection>,
}

impl Host {
    pub(crate) fn start(command: Command, options: &[&str]) -> Result<Host, Miss> {
        let served = served::start_as(command, options)?;
        let word = |name| served.word(name).to_owned();
        let (address, live, test) = (word("address"), word("live_key"), word("test_key"));
        let token = word("sandbox_token");
        Ok(Host { served, address, live, test, token, line: None })
    }

    /// Asks, with a key or as somebody on this machine. A connection that the server closed is opened again.
    pub(crate) fn ask(
        &mut self,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: &Value,
    ) -> Result<Value, Miss> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        if let Some(line) = &mut self.line
            && let Ok(answer) = line.ask(method, path, key, &body)
        {
            return Ok(answer.success().map_err(|why| format!("{method} {path}: {why}"))?);
        }
        let mut line = Connection::open(&self.address)?;
        let answer = line.ask(method, path, key, &body)?;
        self.line = Some(line);
        Ok(answer.success().map_err(|why| format!("{method} {path}: {why}"))?)
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Result<Value, Miss> {
        self.ask("POST", path, None, body)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.served.child.id()
    }

    /// Returns the time that it takes to end; `None` if it does not end in time.
    pub(crate) fn wait(&mut self, patience: Duration) -> Option<Duration> {
        let began = Instant::now();
        self.served.wait(patience).map(|_| began.elapsed())
    }

    /// Bytes of memory that it has now.
    pub(crate) fn memory(&self) -> Result<u64, Miss> {
        status(self.pid(), "VmRSS")
    }

    /// The most memory that it had since [`Host::forget_peak`].
    pub(crate) fn peak(&self) -> Result<u64, Miss> {
        status(self.pid(), "VmHWM")
    }

    pub(crate) fn forget_peak(&self) -> Result<(), Miss> {
        let path = format!("/proc/{}/clear_refs", self.pid());
        fs::write(path, "5").map_err(|_| not_linux())
    }

    /// Milliseconds of processor time that it has used.
    pub(crate) fn cpu_millis(&self) -> Result<u64, Miss> {
        /// Linux counts in hundredths of a second.
        const TICK_MILLIS: u64 = 10;
        let text = fs::read_to_string(format!("/proc/{}/stat", self.pid())).map_err(|_| not_linux())?;
        // The name of the program, in parentheses, may hold anything.
        let (_, fields) = text.rsplit_once(')').ok_or("the statistics of a process name no program")?;
        // User and system time are the 14th and 15th fields; the name is the second.
        let ticks = fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok());
        Ok(ticks.sum::<u64>() * TICK_MILLIS)
    }

    pub(crate) fn threads(&self) -> Result<u64, Miss> {
        status(self.pid(), "Threads")
    }
}

fn not_linux() -> Miss {
    Miss::Skipped("it takes /proc of Linux".to_owned())
}

/// A line of a process's status; kilobytes as bytes.
pub(crate) fn status(pid: u32, name: &str) -> Result<u64, Miss> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).map_err(|_| not_linux())?;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
    let (digits, factor) = match value {
        Some(text) => text.strip_suffix(" kB").map_or((text, 1), |digits| (digits, 1_024)),
        None => return Err(Miss::Broken(format!("the status of a process has no {name}"))),
    };
    let number: u64 = digits.parse().map_err(|_| format!("{name} of a process is {digits}"))?;
    Ok(number * factor)
}

/// The result of a program run.
pub(crate) struct Ran {
    /// `None` if it had to be killed.
    pub(crate) code: Option<i32>,
    /// Both streams, stdout first.
    pub(crate) said: String,
    /// The most memory that was seen of it, in bytes; 0 where nobody can tell.
    pub(crate) peak: u64,
    /// From the start, or from the signal, to the end.
    pub(crate) took: Duration,
}

/// A program that runs.
pub(crate) struct Started {
    child: Child,
    said: Vec<thread::JoinHandle<String>>,
}

impl Started {
    pub(crate) fn start(mut command: Command) -> Result<Started, Miss> {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {command:?}: {error}"))?;
        let mut said = Vec::new();
        said.extend(child.stdout.take().map(keep));
        said.extend(child.stderr.take().map(keep));
        Ok(Started { child, said })
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) -> Result<(), Miss> {
        Ok(signal(self.child.id(), name)?)
    }

    /// Waits for its end, and kills it when it takes too long.
    pub(crate) fn end(mut self, patience: Duration) -> Ran {
        let began = Instant::now();
        let mut peak = 0;
        let ended = wait_until(patience, || {
            peak = status(self.child.id(), "VmHWM").unwrap_or(0).max(peak);
            self.child.try_wait().ok().flatten()
        });
        if ended.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        let code = ended.and_then(|status| status.code());
        let said = self.said.into_iter().map(|said| said.join().unwrap_or_default()).collect();
        Ran { code, said, peak, took: began.elapsed() }
    }
}

fn keep(stream: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut stream = stream;
        let _ = stream.by_ref().take(SAID_BYTES_MAX).read_to_end(&mut bytes);
        // What is more is read too, or the program would wait for ever.
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// A fresh directory inside another.
pub(crate) fn fresh(parent: &Path, name: &str) -> Result<PathBuf, Miss> {
    let path = parent.join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path)?;
    Ok(path)
}
