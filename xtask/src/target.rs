//! A server that `chargeproof check` judges: a process on a loopback port, and what the check says of it.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output};
use std::thread;
use std::time::Duration;

/// A tenth of a second each: how long a server may take to listen.
const TRIES_MAX: u32 = 600;

/// A server in a process of its own. Dropping it ends the process.
pub(crate) struct Listening(Child);

impl Listening {
    /// Starts a command, and waits until its server listens on the port.
    ///
    /// # Errors
    /// The command cannot be started, ends, or does not listen within a minute.
    pub(crate) fn start(command: &mut Command, port: u16) -> Result<Listening, String> {
        let program = command.get_program().to_string_lossy().into_owned();
        let process = command.spawn().map_err(|err| format!("cannot start `{program}`: {err}"))?;
        let mut server = Listening(process);
        for _ in 0..TRIES_MAX {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(server);
            }
            if let Ok(Some(status)) = server.0.try_wait() {
                return Err(format!("`{program}` ended at once: {status}"));
            }
            #[expect(
                clippy::disallowed_methods,
                reason = "another program is waited for, and no runtime is stopped"
            )]
            thread::sleep(Duration::from_millis(100));
        }
        Err(format!("`{program}` does not listen on port {port}"))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Free ports of the loopback interface, all different.
pub(crate) fn free_ports<const N: usize>() -> Result<[u16; N], String> {
    let no_port = |err: std::io::Error| format!("there is no free port: {err}");
    let mut ports = [0; N];
    let mut listeners = Vec::new();
    for port in &mut ports {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(no_port)?;
        *port = listener.local_addr().map_err(no_port)?.port();
        listeners.push(listener);
    }
    Ok(ports)
}

/// The keys that a server is checked with.
#[derive(Clone, Copy)]
pub(crate) struct Keys<'a> {
    pub(crate) live: &'a str,
    pub(crate) test: &'a str,
}

/// `chargeproof check` of the server on a loopback port, which leaves these parts out.
pub(crate) fn check(program: &Path, port: u16, keys: Keys<'_>, without: &[&str]) -> Command {
    let mut check = Command::new(program);
    check.args(["check", &format!("http://127.0.0.1:{port}")]);
    check.args(without.iter().map(|part| format!("--without={part}")));
    check.env("CHARGEPROOF_LIVE_KEY", keys.live).env("CHARGEPROOF_TEST_KEY", keys.test);
    check
}

/// Runs a command to its end.
pub(crate) fn output(command: &mut Command) -> Result<Output, String> {
    command.output().map_err(|err| format!("cannot start {command:?}: {err}"))
}
