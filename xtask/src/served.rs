//! The served reference, for tools that test it from outside.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde::Deserialize;

use crate::packages::{Workspace, cargo};

/// A server in a process of its own. Dropping it ends the process.
pub(crate) struct Served {
    process: Child,
    pub(crate) ready: Ready,
}

/// The line that `serve --format json` prints once it is ready.
#[derive(Deserialize)]
pub(crate) struct Ready {
    pub(crate) url: String,
    pub(crate) address: String,
    pub(crate) live_key: String,
    pub(crate) test_key: String,
    pub(crate) sandbox_token: String,
}

impl Served {
    /// Builds the program, and says where it is.
    pub(crate) fn build(root: &Path) -> Result<PathBuf, String> {
        let built = cargo(root).args(["build", "--locked", "-p", "chargeproof"]).status();
        match built {
            Ok(status) if status.success() => {
                let target = Workspace::load(root)?.target_directory;
                Ok(target.join("debug").join(format!("chargeproof{}", std::env::consts::EXE_SUFFIX)))
            }
            Ok(_) => Err("the program can't be built".to_owned()),
            Err(error) => Err(format!("cannot start cargo: {error}")),
        }
    }

    /// Starts a built program on a free port, with a fixed seed, so that every run meets the same world.
    pub(crate) fn start(program: &Path, options: &[&str]) -> Result<Served, String> {
        Served::start_as(Command::new(program), options)
    }

    /// The same by a command of the caller's, to which the arguments are added.
    pub(crate) fn start_as(mut command: Command, options: &[&str]) -> Result<Served, String> {
        let mut process = command
            .args(["serve", "--listen", "127.0.0.1:0", "--seed", "1", "--format", "json"])
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {command:?}: {error}"))?;
        let mut line = String::new();
        let stdout = process.stdout.take().expect("it was asked for");
        // Ends with the line, or with the process: there is nothing to wait for beyond that.
        let read = BufReader::new(stdout).read_line(&mut line);
        let ready = read.ok().and_then(|_| serde_json::from_str(&line).ok());
        match ready {
            Some(ready) => Ok(Served { process, ready }),
            None => {
                let _ = process.kill();
                let _ = process.wait();
                Err(format!("{command:?} did not say that it is ready, but: {line}"))
            }
        }
    }

    /// The number of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Returns `true` if it still runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
