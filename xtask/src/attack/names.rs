//! [`DnsServer`]: a DNS server in a network namespace of this run.
//!
//! The program uses the operating system's resolver, which reads `/etc/resolv.conf`. So the whole run moves into
//! namespaces in which that file and the network are its own.

use std::env;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

/// The variable that is set inside the namespaces.
const INSIDE: &str = "CHARGEPROOF_ATTACK_INSIDE";
/// The start of names that are slow on request.
pub(crate) const SLOW: &str = "slow";
/// The address of all names: a public one, where no server can be reached from inside.
const ADDRESS: [u8; 4] = [8, 8, 8, 8];
/// The preparation of the shell: as many descriptors as a server accepts connections, if the machine allows it.
const PREPARE: &str = "\
ulimit -n 8192 2>/dev/null
mkdir -p \"$1/full\" && mount -t tmpfs -o size=64k full \"$1/full\" || exit 97
ip link set lo up && mount --bind \"$1/resolv.conf\" /etc/resolv.conf && mount --bind \"$1/nsswitch.conf\" /etc/nsswitch.conf || exit 97
shift
exec \"$@\"";
/// The exit code of a shell that could not prepare the namespaces.
const UNPREPARED: i32 = 97;

/// Runs this program again inside namespaces, if the machine allows it. Returns the exit code of that run.
pub(crate) fn rerun_in_namespaces(directory: &Path, arguments: &[String]) -> Option<i32> {
    if env::var_os(INSIDE).is_some() || !cfg!(target_os = "linux") {
        return None;
    }
    std::fs::write(directory.join("resolv.conf"), "nameserver 127.0.0.1\noptions timeout:10 attempts:3\n")
        .ok()?;
    std::fs::write(directory.join("nsswitch.conf"), "hosts: files dns\n").ok()?;
    let unshare = ["--user", "--map-root-user", "--mount", "--net"];
    let shell = |command: &mut Command| {
        command.args(unshare).args(["sh", "-c", PREPARE, "sh"]).arg(directory);
    };
    let mut trial = Command::new("unshare");
    shell(&mut trial);
    if !trial.arg("true").status().is_ok_and(|status| status.success()) {
        return None;
    }
    let mut run = Command::new("unshare");
    shell(&mut run);
    let status = run.arg(env::current_exe().ok()?).args(arguments).env(INSIDE, "1").status().ok()?;
    status.code().filter(|code| *code != UNPREPARED)
}

/// Returns `true` inside the namespaces.
pub(crate) fn is_in_namespaces() -> bool {
    env::var_os(INSIDE).is_some()
}

/// The DNS server for the program.
pub(crate) struct DnsServer {
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    is_slow: AtomicBool,
    lookups: AtomicU64,
}

impl DnsServer {
    /// Starts the DNS server at port 53 of the loopback address, for the life of this program.
    pub(crate) fn serve() -> std::io::Result<DnsServer> {
        let socket = UdpSocket::bind("127.0.0.1:53")?;
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            let mut buffer = [0; 512];
            while let Ok((length, client)) = socket.recv_from(&mut buffer) {
                if let Some(answer) = answer(&buffer[..length], &shared) {
                    // The resolver repeats a query that got no response.
                    let _ = socket.send_to(&answer, client);
                }
            }
        });
        Ok(DnsServer { state })
    }

    /// Sets the behaviour for slow names: `true` to leave their queries without a response.
    pub(crate) fn set_slow(&self, is_slow: bool) {
        self.state.is_slow.store(is_slow, Relaxed);
    }

    /// Returns the number of queries for slow names that got no response.
    pub(crate) fn unanswered_queries(&self) -> u64 {
        self.state.lookups.load(Relaxed)
    }
}

/// Answers a query with one question: A with the address, other types with no record. Slow names get no response.
fn answer(question: &[u8], state: &State) -> Option<Vec<u8>> {
    let mut position = 12;
    let first = question.get(position + 1..position + 1 + usize::from(*question.get(position)?))?;
    if first.starts_with(SLOW.as_bytes()) && state.is_slow.load(Relaxed) {
        state.lookups.fetch_add(1, Relaxed);
        return None;
    }
    while *question.get(position)? != 0 {
        position += usize::from(question[position]) + 1;
    }
    let end = position + 5;
    let is_a = question.get(position + 1..position + 3)? == [0, 1];
    let mut answer = question.get(..end)?.to_vec();
    // A response with recursion available: one question, one record or none.
    answer[2..4].copy_from_slice(&[0x81, 0x80]);
    answer[4..12].copy_from_slice(&[0, 1, 0, u8::from(is_a), 0, 0, 0, 0]);
    if is_a {
        // A pointer to the name of the question, A, IN, TTL 0, four bytes.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        answer.extend(ADDRESS);
    }
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(name: &str, kind: u8) -> Vec<u8> {
        let mut bytes = vec![7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            bytes.push(u8::try_from(label.len()).expect("labels in tests are shorter than 256 bytes"));
            bytes.extend(label.as_bytes());
        }
        bytes.extend([0, 0, kind, 0, 1]);
        bytes
    }

    #[track_caller]
    fn check(bytes: &[u8], is_slow: bool, ending: Option<&[u8]>) {
        let state = State { is_slow: is_slow.into(), ..State::default() };
        let answer = answer(bytes, &state);
        assert_eq!(answer.is_some(), ending.is_some(), "{answer:?}");
        assert!(answer.unwrap_or_default().ends_with(ending.unwrap_or_default()));
    }

    #[test]
    fn names_have_one_address_and_slow_ones_no_response() {
        check(&question("good.example", 1), true, Some(&ADDRESS));
        check(&question("good.example", 28), true, Some(&[0, 28, 0, 1]));
        check(&question("slow1.example", 1), false, Some(&ADDRESS));
        check(&question("slow1.example", 1), true, None);
        check(&[], true, None);
        check(&[0; 12], true, None);
        check(&question("good.example", 1)[..20], false, None);
    }
}
