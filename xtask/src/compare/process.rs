//! Servers as processes: started on their cores, watched, and ended.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Programs;
use super::ask::ask;

/// The time within which a server must start.
const START_MAX: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(1);

/// The cores that each process runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cores {
    /// Servers on core 0, the client on core 1.
    Pinned,
    /// Everybody on the same two cores.
    Shared,
}

impl Cores {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Cores::Pinned => "pinned",
            Cores::Shared => "shared",
        }
    }

    fn list(self, own: &'static str) -> &'static str {
        match self {
            Cores::Pinned => own,
            Cores::Shared => "0,1",
        }
    }

    /// A command on the servers' cores.
    pub(crate) fn server(self, program: impl AsRef<Path>) -> Command {
        on(self.list("0"), program.as_ref())
    }

    /// A command on the client's cores.
    pub(crate) fn client(self, program: impl AsRef<Path>) -> Command {
        on(self.list("1"), program.as_ref())
    }
}

fn on(cores: &str, program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", cores]).arg(program);
    command
}

/// A server that runs until this is dropped.
pub(crate) struct Running {
    child: Child,
    pub(crate) address: SocketAddr,
    /// A key of mode test; empty where there are no keys.
    pub(crate) key: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already, or ends now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// The reference server without a limit.
    pub(crate) fn reference(programs: &Programs, cores: Cores) -> Result<Running, String> {
        Running::reference_with(programs, cores, &[])
    }

    /// The same with further options.
    pub(crate) fn reference_with(
        programs: &Programs,
        cores: Cores,
        options: &[&str],
    ) -> Result<Running, String> {
        let mut command = cores.server(programs.path("chargeproof"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--rate-limit", "off", "--seed", "1"]);
        command.args(["--format", "json"]).args(options);
        let (child, line) = started(command, "chargeproof serve")?;
        let ready: Value =
            serde_json::from_str(&line).map_err(|err| format!("`{line}` is not JSON: {err}"))?;
        let text = |name: &str| ready[name].as_str().unwrap_or_default().to_owned();
        let address = text("address").parse().map_err(|_| format!("`{line}` names no address"))?;
        Ok(Running { child, address, key: text("test_key") })
    }

    /// A bare server, which prints its address when it is ready, for clients that send `key`.
    pub(crate) fn bare(command: Command, key: &str) -> Result<Running, String> {
        let (child, line) = started(command, "bare")?;
        let address = line.trim().parse().map_err(|_| format!("`{line}` is not an address"))?;
        Ok(Running { child, address, key: key.to_owned() })
    }

    /// A server of somebody else's that listens on `address` once it is ready, with all that it started.
    pub(crate) fn foreign(mut command: Command, address: SocketAddr, path: &str) -> Result<Running, String> {
        let name = format!("{command:?}");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|err| format!("cannot start {name}: {err}"))?;
        let mut running = Running { child, address, key: String::new() };
        let begin = Instant::now();
        while begin.elapsed() < START_MAX {
            if ask(address, ("GET", path), "", None).is_ok_and(|answer| answer.status == 200) {
                return Ok(running);
            }
            if let Ok(Some(status)) = running.child.try_wait() {
                return Err(format!("{name} ended with {status}"));
            }
            std::thread::park_timeout(LOOK * 20);
        }
        Err(format!("{name} does not answer on {address}"))
    }

    /// The processor time that it has used, of all its threads and children, in nanoseconds.
    pub(crate) fn cpu_ns(&self) -> u64 {
        family(self.child.id()).into_iter().map(process_ns).sum()
    }

    /// Memory that is resident now, of it and its children, in KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        family(self.child.id()).into_iter().map(resident_kib).sum()
    }
}

/// Starts a server and waits for its first line.
fn started(mut command: Command, name: &str) -> Result<(Child, String), String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|err| format!("cannot start `{name}` on its cores: {err}; `taskset` is needed"))?;
    let mut line = String::new();
    let out = child.stdout.take().ok_or("a pipe was asked for")?;
    let read = BufReader::new(out).read_line(&mut line);
    if read.is_err() || line.is_empty() {
        let _ = child.kill();
        let _ = child.wait();
        return Err(format!("`{name}` ended without a word"));
    }
    Ok((child, line))
}

/// From the start of the process to its first answer, in microseconds.
pub(crate) fn start_up(programs: &Programs) -> Result<u128, String> {
    let begin = Instant::now();
    let server = Running::reference(programs, Cores::Shared)?;
    let answer = ask(server.address, ("GET", "/v1/account"), &server.key, None)?;
    let took = begin.elapsed().as_micros();
    if answer.status == 200 { Ok(took) } else { Err(format!("the first answer is {}", answer.status)) }
}

/// A process and its children.
fn family(pid: u32) -> Vec<u32> {
    let children =
        fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten().flat_map(|task| {
            let text = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()
        });
    std::iter::once(pid).chain(children.flat_map(family)).collect()
}

/// The first number of each thread's `schedstat` is the time that it ran.
fn process_ns(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks
        .filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok())
        .filter_map(|text| text.split(' ').next()?.parse::<u64>().ok())
        .sum()
}

fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
