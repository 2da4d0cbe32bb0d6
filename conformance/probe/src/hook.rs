//! The operator's command (hook), run by the shell with a time limit.
//!
//! Keys are passed in its environment, never on its command line, which every process of the machine can read.

use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

use crate::interrupt::Interrupt;
use crate::plan::Hook;

/// The largest number of recorded bytes of a command's output.
const OUTPUT_MAX: usize = 4 * 1024;
/// The time to wait for the end of the output after the exit of a command. A background process may keep it open.
const OUTPUT_WAIT: Duration = Duration::from_millis(300);

/// Runs the command and waits for its exit. The error is a message with the exit status and the output.
pub(crate) async fn run(
    hook: &Hook,
    environment: &[(&str, &str)],
    interrupt: &Interrupt,
) -> Result<(), String> {
    match run_shell(hook, environment, interrupt).await {
        Ok((status, _)) if status.success() => Ok(()),
        Ok((status, output)) => Err(format!("the hook ended with {status} {output}")),
        Err(why) => Err(format!("the hook {why}")),
    }
}

/// Runs a shell command of the operator. Returns its exit status, and a clause with its output.
///
/// The command and all its child processes are killed at the time limit or when the run is interrupted.
///
/// # Errors
///
/// The reason why there is no exit status, worded as a predicate: "took longer than 30 s …".
pub async fn run_shell(
    hook: &Hook,
    environment: &[(&str, &str)],
    interrupt: &Interrupt,
) -> Result<(ExitStatus, String), String> {
    let mut command = shell(&hook.command);
    command.envs(environment.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|err| format!("cannot be started: {err}"))?;
    let output = Arc::new(Mutex::new(Vec::new()));
    let readers = [
        child.stdout.take().map(|stdout| tokio::spawn(read_output(stdout, Arc::clone(&output)))),
        child.stderr.take().map(|stderr| tokio::spawn(read_output(stderr, Arc::clone(&output)))),
    ];
    let result = tokio::select! {
        result = tokio::time::timeout(hook.time_limit, child.wait()) => Some(result),
        () = interrupt.wait_until_raised() => None,
    };
    if !matches!(result, Some(Ok(_))) {
        kill(&mut child).await;
    }
    for reader in readers.into_iter().flatten() {
        let abort = reader.abort_handle();
        if tokio::time::timeout(OUTPUT_WAIT, reader).await.is_err() {
            abort.abort();
        }
    }
    let output = String::from_utf8_lossy(&output.lock().expect("no thread panics while it holds the lock"))
        .trim()
        .to_owned();
    let output =
        if output.is_empty() { "and printed nothing".to_owned() } else { format!("and printed: {output}") };
    match result {
        Some(Ok(Ok(status))) => Ok((status, output)),
        Some(Ok(Err(err))) => Err(format!("cannot be waited for: {err}")),
        Some(Err(_)) => Err(format!("took longer than {} s {output}", hook.time_limit.as_secs())),
        None => Err("was killed: the run was interrupted".to_owned()),
    }
}

#[cfg(unix)]
fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    // A separate process group, so that all of it can be killed.
    command.args(["-c", script]).process_group(0);
    command
}

#[cfg(not(unix))]
fn shell(script: &str) -> Command {
    let mut command = Command::new("cmd");
    command.args(["/C", script]);
    command
}

/// Kills the command and its child processes.
async fn kill(child: &mut Child) {
    #[cfg(unix)]
    if let Some(group) = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)) {
        // Fails if the group has already exited.
        let _ = kill_process_group(group, Signal::KILL);
    }
    // Fails if the child has already exited.
    let _ = child.kill().await;
}

/// Reads all output, so that the command never blocks, and records the start of it.
async fn read_output(mut pipe: impl AsyncRead + Unpin, recorded: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        let mut output = recorded.lock().expect("no thread panics while it holds the lock");
        let room = OUTPUT_MAX.saturating_sub(output.len());
        output.extend_from_slice(&buffer[..count.min(room)]);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, seconds: u64, expected: &str) {
        let hook = Hook { command: command.into(), time_limit: Duration::from_secs(seconds) };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime can be created");
        let found = runtime.block_on(run(&hook, &[("CHARGEPROOF_TEST_KEY", "k")], &Interrupt::default()));
        let found = found.map_or_else(|err| err, |()| "success".into());
        assert!(found.contains(expected), "{found}");
    }

    #[test]
    fn a_hook_gets_the_key_in_its_environment() {
        check("test \"$CHARGEPROOF_TEST_KEY\" = k", 10, "success");
    }

    #[test]
    fn a_failed_hook_is_reported_with_its_output() {
        check("echo out of memory >&2; exit 3", 10, "exit status: 3 and printed: out of memory");
        check("exit 1", 10, "and printed nothing");
        // The exit status of the shell for an unknown command.
        check("no-such-command-anywhere", 10, "127");
    }

    #[test]
    fn a_hook_with_much_output_does_not_block() {
        check("yes | head -c 1000000; exit 4", 30, "exit status: 4 and printed: y");
    }

    #[test]
    fn a_hook_that_exceeds_the_time_limit_is_reported() {
        check("sleep 1000 & wait", 0, "longer than 0 s");
    }
}
