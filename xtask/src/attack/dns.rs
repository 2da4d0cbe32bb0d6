//! [`DnsServer`], and the Linux namespaces that it needs.
//!
//! The program uses the operating system's resolver, which reads `/etc/resolv.conf`. So the task runs itself again in
//! mount and network namespaces, in which it replaces that file.

use std::env;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

/// The environment variable that is set inside the namespaces.
const INSIDE_NAMESPACES: &str = "CHARGEPROOF_ATTACK_INSIDE";
/// The prefix of the slow host names, whose queries get no response after [`DnsServer::set_slow`].
pub(crate) const SLOW_PREFIX: &str = "slow";
/// The address of all names: a public one, which is unreachable from inside the namespaces.
const ADDRESS: [u8; 4] = [8, 8, 8, 8];
/// The shell script that prepares the namespaces and runs a command in them. Raises the limit of descriptors above
/// the server's connection slots, if the machine allows it; mounts a small file system that a case fills; starts
/// the loopback interface; replaces the resolver's configuration. Exits with [`PREPARATION_FAILED`] if it cannot.
const PREPARE: &str = "\
ulimit -n 8192 2>/dev/null
mkdir -p \"$1/full\" && mount -t tmpfs -o size=64k full \"$1/full\" || exit 97
ip link set lo up && mount --bind \"$1/resolv.conf\" /etc/resolv.conf && mount --bind \"$1/nsswitch.conf\" /etc/nsswitch.conf || exit 97
shift
exec \"$@\"";
/// The exit code of a shell that could not prepare the namespaces.
const PREPARATION_FAILED: i32 = 97;

/// Runs this program again inside namespaces. Returns the exit code of that run; `None` if it is inside already, or
/// if the machine allows no namespaces.
pub(crate) fn rerun_in_namespaces(directory: &Path, arguments: &[String]) -> Option<i32> {
    if env::var_os(INSIDE_NAMESPACES).is_some() || !cfg!(target_os = "linux") {
        return None;
    }
    std::fs::write(directory.join("resolv.conf"), "nameserver 127.0.0.1\noptions timeout:10 attempts:3\n")
        .ok()?;
    std::fs::write(directory.join("nsswitch.conf"), "hosts: files dns\n").ok()?;
    let unshare = ["--user", "--map-root-user", "--mount", "--net"];
    let add_shell = |command: &mut Command| {
        command.args(unshare).args(["sh", "-c", PREPARE, "sh"]).arg(directory);
    };
    let mut dry_run = Command::new("unshare");
    add_shell(&mut dry_run);
    if !dry_run.arg("true").status().is_ok_and(|status| status.success()) {
        return None;
    }
    let mut run = Command::new("unshare");
    add_shell(&mut run);
    let status =
        run.arg(env::current_exe().ok()?).args(arguments).env(INSIDE_NAMESPACES, "1").status().ok()?;
    status.code().filter(|code| *code != PREPARATION_FAILED)
}

/// Returns `true` inside the namespaces.
pub(crate) fn is_in_namespaces() -> bool {
    env::var_os(INSIDE_NAMESPACES).is_some()
}

/// The DNS server for the program.
pub(crate) struct DnsServer {
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    is_slow: AtomicBool,
    unanswered: AtomicU64,
}

impl DnsServer {
    /// Starts the DNS server at port 53 of the loopback address. It runs until this process ends.
    pub(crate) fn serve() -> std::io::Result<DnsServer> {
        let socket = UdpSocket::bind("127.0.0.1:53")?;
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            let mut buffer = [0; 512];
            while let Ok((length, client)) = socket.recv_from(&mut buffer) {
                if let Some(response) = response(&buffer[..length], &shared) {
                    // If this fails, the resolver repeats the query.
                    let _ = socket.send_to(&response, client);
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
        self.state.unanswered.load(Relaxed)
    }
}

/// Returns the response to a query with one question: the address for type A, no record for other types. `None` for
/// invalid queries, and for slow names while these get no response.
fn response(query: &[u8], state: &State) -> Option<Vec<u8>> {
    // The question follows the header, which has 12 bytes.
    let mut position = 12;
    let first_label = query.get(position + 1..position + 1 + usize::from(*query.get(position)?))?;
    if first_label.starts_with(SLOW_PREFIX.as_bytes()) && state.is_slow.load(Relaxed) {
        state.unanswered.fetch_add(1, Relaxed);
        return None;
    }
    while *query.get(position)? != 0 {
        position += usize::from(query[position]) + 1;
    }
    // The zero byte after the name, then type and class with two bytes each.
    let end = position + 5;
    let is_a = query.get(position + 1..position + 3)? == [0, 1];
    let mut response = query.get(..end)?.to_vec();
    // The header of a response with recursion available: one question, one record or none.
    response[2..4].copy_from_slice(&[0x81, 0x80]);
    response[4..12].copy_from_slice(&[0, 1, 0, u8::from(is_a), 0, 0, 0, 0]);
    if is_a {
        // A pointer to the name of the question, A, IN, TTL 0, four bytes.
        response.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        response.extend(ADDRESS);
    }
    Some(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a query. `record_type`: 1 for A, 28 for AAAA.
    fn query(name: &str, record_type: u8) -> Vec<u8> {
        let mut bytes = vec![7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            bytes.push(u8::try_from(label.len()).expect("labels in tests are shorter than 256 bytes"));
            bytes.extend(label.as_bytes());
        }
        bytes.extend([0, 0, record_type, 0, 1]);
        bytes
    }

    #[track_caller]
    fn check(bytes: &[u8], is_slow: bool, expected_end: Option<&[u8]>) {
        let state = State { is_slow: is_slow.into(), ..State::default() };
        let response = response(bytes, &state);
        assert_eq!(response.is_some(), expected_end.is_some(), "{response:?}");
        assert!(response.unwrap_or_default().ends_with(expected_end.unwrap_or_default()));
    }

    #[test]
    fn names_have_one_address_and_slow_names_and_invalid_queries_get_no_response() {
        check(&query("good.example", 1), true, Some(&ADDRESS));
        check(&query("good.example", 28), true, Some(&[0, 28, 0, 1]));
        check(&query("slow1.example", 1), false, Some(&ADDRESS));
        check(&query("slow1.example", 1), true, None);
        check(&[], true, None);
        check(&[0; 12], true, None);
        check(&query("good.example", 1)[..20], false, None);
    }
}
