//! The operator's own command: run by the shell, watched, and cut off when its time is up.
//!
//! Keys stand in its environment, never on its command line, where every process of the machine could
//! read them.

use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

use crate::interrupt::Interrupt;
use crate::plan::Hook;

/// The number of bytes of a command's output that are kept.
const OUTPUT_MAX: usize = 4 * 1024;
/// A process that a command left behind may hold its output open. So long it is waited for.
const AFTERWORD: Duration = Duration::from_millis(300);

/// Runs the command and waits until it has ended. The error says how it failed and what it said.
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

/// Runs a shell command of the operator. Returns its exit status, and a clause with what it printed.
///
/// The command and every process that it started are ended when its time is over or the run is interrupted.
///
/// # Errors
///
/// Why there is no exit status, as the predicate of a sentence: "took longer than 30 s …".
pub async fn run_shell(
    hook: &Hook,
    environment: &[(&str, &str)],
    interrupt: &Interrupt,
) -> Result<(ExitStatus, String), String> {
    let mut command = shell(&hook.command);
    command.envs(environment.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|err| format!("does not start: {err}"))?;
    let said = Arc::new(Mutex::new(Vec::new()));
    let listeners = [
        child.stdout.take().map(|it| tokio::spawn(listen(it, Arc::clone(&said)))),
        child.stderr.take().map(|it| tokio::spawn(listen(it, Arc::clone(&said)))),
    ];
    let ended = tokio::select! {
        ended = tokio::time::timeout(hook.time_limit, child.wait()) => Some(ended),
        () = interrupt.raised() => None,
    };
    if !matches!(ended, Some(Ok(_))) {
        end(&mut child).await;
    }
    for listener in listeners.into_iter().flatten() {
        let stop = listener.abort_handle();
        if tokio::time::timeout(AFTERWORD, listener).await.is_err() {
            stop.abort();
        }
    }
    let said =
        String::from_utf8_lossy(&said.lock().expect("nobody panics while listening")).trim().to_owned();
    let said = if said.is_empty() { "and said nothing".to_owned() } else { format!("and said: {said}") };
    match ended {
        Some(Ok(Ok(status))) => Ok((status, said)),
        Some(Ok(Err(err))) => Err(format!("was lost: {err}")),
        Some(Err(_)) => Err(format!("took longer than {} s {said}", hook.time_limit.as_secs())),
        None => Err("was ended: the run was interrupted".to_owned()),
    }
}

#[cfg(unix)]
fn shell(text: &str) -> Command {
    let mut command = Command::new("sh");
    // A group of its own, so that all of it can be ended.
    command.args(["-c", text]).process_group(0);
    command
}

#[cfg(not(unix))]
fn shell(text: &str) -> Command {
    let mut command = Command::new("cmd");
    command.args(["/C", text]);
    command
}

async fn end(child: &mut Child) {
    #[cfg(unix)]
    if let Some(group) = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)) {
        // A group that has ended already cannot be ended.
        let _ = kill_process_group(group, Signal::KILL);
    }
    // The same.
    let _ = child.kill().await;
}

/// Reads to the end, so that the command is never held up, and keeps the beginning.
async fn listen(mut from: impl AsyncRead + Unpin, into: Arc<Mutex<Vec<u8>>>) {
    let mut part = [0; 1024];
    while let Ok(count @ 1..) = from.read(&mut part).await {
        let mut said = into.lock().expect("nobody panics while listening");
        let room = OUTPUT_MAX.saturating_sub(said.len());
        said.extend_from_slice(&part[..count.min(room)]);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, seconds: u64, expected: &str) {
        let hook = Hook { command: command.into(), time_limit: Duration::from_secs(seconds) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let found = runtime.block_on(run(&hook, &[("CHARGEPROOF_TEST_KEY", "k")], &Interrupt::default()));
        let found = found.map_or_else(|err| err, |()| "fine".into());
        assert!(found.contains(expected), "{found}");
    }

    #[test]
    fn a_hook_finds_the_key_in_its_environment() {
        check("test \"$CHARGEPROOF_TEST_KEY\" = k", 10, "fine");
    }

    #[test]
    fn a_hook_that_fails_is_told_with_what_it_said() {
        check("echo out of luck >&2; exit 3", 10, "exit status: 3 and said: out of luck");
        check("exit 1", 10, "and said nothing");
        check("no-such-command-anywhere", 10, "127");
    }

    #[test]
    fn a_hook_that_says_much_is_not_held_up() {
        check("yes | head -c 1000000; exit 4", 30, "exit status: 4 and said: y");
    }

    #[test]
    fn a_hook_that_does_not_end_is_ended() {
        check("sleep 1000 & wait", 0, "longer than 0 s");
    }
}
