//! [`MeasuredServer`]: server processes, started on selected cores and measured.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;
use testkit::{Message, Request};

use super::Programs;
use crate::served;

/// The cores that each process runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cores {
    /// Servers on core 0, the client on core 1.
    Pinned,
    /// All processes on the same two cores.
    Shared,
}

impl Cores {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Cores::Pinned => "pinned",
            Cores::Shared => "shared",
        }
    }

    fn core_list(self, pinned: &'static str) -> &'static str {
        match self {
            Cores::Pinned => pinned,
            Cores::Shared => "0,1",
        }
    }

    /// Returns a command that runs a program on the servers' cores.
    pub(crate) fn server_command(self, program: impl AsRef<Path>) -> Command {
        pinned_command(self.core_list("0"), program.as_ref())
    }

    /// Returns a command that runs a program on the client's cores.
    pub(crate) fn client_command(self, program: impl AsRef<Path>) -> Command {
        pinned_command(self.core_list("1"), program.as_ref())
    }
}

fn pinned_command(cores: &str, program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", cores]).arg(program);
    command
}

/// A running server. Stopped on drop.
pub(crate) struct MeasuredServer {
    process: testkit::RunningProgram,
    pub(crate) address: SocketAddr,
    /// A test-mode API key; empty if the server has none.
    pub(crate) key: String,
}

impl MeasuredServer {
    /// Starts the reference server without a rate limit.
    pub(crate) fn start_reference(programs: &Programs, cores: Cores) -> Result<MeasuredServer, String> {
        MeasuredServer::start_reference_with(programs, cores, &[])
    }

    /// Starts the reference server with further options.
    pub(crate) fn start_reference_with(
        programs: &Programs,
        cores: Cores,
        options: &[&str],
    ) -> Result<MeasuredServer, String> {
        let mut command = cores.server_command(programs.path("chargeproof"));
        command.stderr(Stdio::null());
        let process = served::start_as(command, &[&["--rate-limit", "off"], options].concat())?;
        let (address, key) = (parse(process.value("address"))?, process.value("test_key").to_owned());
        Ok(MeasuredServer { process, address, key })
    }

    /// Starts a server that prints only its address when it is ready. Clients send `key`.
    pub(crate) fn start_bare(mut command: Command, key: &str) -> Result<MeasuredServer, String> {
        command.stderr(Stdio::null());
        let process = testkit::RunningProgram::start(command)?;
        Ok(MeasuredServer { address: parse(&process.first_line)?, process, key: key.to_owned() })
    }

    /// Starts a third-party server with its child processes, and waits until it responds to `path` with 200.
    pub(crate) fn start_third_party(
        mut command: Command,
        address: SocketAddr,
        path: &str,
    ) -> Result<MeasuredServer, String> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let is_ready = || call(address, ("GET", path), "", "").is_ok_and(|response| response.status == 200);
        let process = testkit::RunningProgram::start_and_wait(&mut command, is_ready)?;
        Ok(MeasuredServer { process, address, key: String::new() })
    }

    /// Returns the processor time of all threads and child processes, in nanoseconds.
    pub(crate) fn cpu_ns(&self) -> u64 {
        process_tree(self.process.child.id()).into_iter().map(process_cpu_ns).sum()
    }

    /// Returns the resident memory, child processes included, in KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        process_tree(self.process.child.id()).into_iter().map(resident_kib).sum()
    }
}

fn parse(address: &str) -> Result<SocketAddr, String> {
    address.parse().map_err(|_| format!("`{address}` is not an address"))
}

/// Sends one request over a new connection. Without a key if `key` is empty.
pub(crate) fn call(
    address: SocketAddr,
    (method, path): (&str, &str),
    key: &str,
    body: &str,
) -> Result<Message, String> {
    let key = Some(key).filter(|key| !key.is_empty());
    let request = Request { method, key, body, host: &address.to_string(), ..Request::get(path) };
    testkit::call(address, request).map_err(|err| format!("{method} {path} at {address}: {err}"))
}

/// Sends a request that must succeed; returns the JSON body.
pub(crate) fn call_for_json(
    address: SocketAddr,
    operation: (&str, &str),
    key: &str,
    body: &str,
) -> Result<Value, String> {
    let response = call(address, operation, key, body)?;
    response.success().map_err(|reason| format!("{} {} failed: {reason}", operation.0, operation.1))
}

/// Returns the time from the start of the process to its first response, in microseconds.
pub(crate) fn startup_micros(programs: &Programs) -> Result<u128, String> {
    let started = Instant::now();
    let server = MeasuredServer::start_reference(programs, Cores::Shared)?;
    let response = call(server.address, ("GET", "/v1/account"), &server.key, "")?;
    let micros = started.elapsed().as_micros();
    if response.status == 200 {
        Ok(micros)
    } else {
        Err(format!("the first response is {}", response.status))
    }
}

/// Returns the ids of a process and all its descendants.
fn process_tree(pid: u32) -> Vec<u32> {
    let children =
        fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten().flat_map(|task| {
            let text = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()
        });
    std::iter::once(pid).chain(children.flat_map(process_tree)).collect()
}

/// The unit of processor times in `/proc`: a hundredth of a second (`USER_HZ`).
const TICK_NS: u64 = 10_000_000;

/// Returns the processor time of a process in user and system mode, including that of ended threads.
fn process_cpu_ns(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name of the program, the second field, may contain spaces and parentheses. User and system time are the
    // 14th and 15th fields, the 12th and 13th after the name.
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let [user, system] =
        [11, 12].map(|index| fields.clone().nth(index).and_then(|ticks| ticks.parse::<u64>().ok()));
    (user.unwrap_or(0) + system.unwrap_or(0)) * TICK_NS
}

/// Returns the resident memory of one process in KiB.
fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
