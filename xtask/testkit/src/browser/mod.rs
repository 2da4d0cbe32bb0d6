//! A headless Chromium, controlled by its DevTools protocol over two pipes, which needs no port and no driver program.

use std::{
    collections::BTreeMap,
    io::Write,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{ChildStdin, ChildStdout, Command},
    runtime::Runtime,
    sync::oneshot,
};

pub mod axe;
mod page;

pub use page::{Page, Viewport};

/// The usual paths of Chromium, besides the one in `CHARGEPROOF_CHROMIUM`.
const BROWSER_PATHS: &[&str] = &[
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome-stable",
    "/usr/bin/google-chrome",
];

const FLAGS: &[&str] = &[
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-renderer-backgrounding",
    "--disable-sync",
    "--hide-scrollbars",
    "--lang=en-GB",
    "--mute-audio",
    "--remote-debugging-pipe",
];

/// The byte after each message on a pipe.
const MESSAGE_END: u8 = 0;

/// Starts the browser with its pipes at descriptors 3 and 4, where it reads commands and writes results. A shell sets
/// up these descriptors, because `Command` sets up 0 to 2 only. When this process ends, even by a signal, the browser
/// ends too, and the shell removes the profile. The browser's child processes may still write to the profile, so the
/// removal may need several attempts.
const LAUNCH_SCRIPT: &str = r#"
    profile=$0
    "$@" --user-data-dir="$profile" about:blank 3<&0 4>&1 1>&2 2>/dev/null
    for _ in 1 2 3 4 5 6 7 8 9; do rm -rf "$profile" 2>/dev/null && break; done
"#;

/// A handle to the shared browser process, with separate browser contexts for one test.
#[derive(Debug)]
pub struct Browser {
    shared: &'static Shared,
    contexts: Mutex<Vec<Value>>,
}

/// The browser process, started by the first test that needs it: starting takes longer than most tests.
#[derive(Debug)]
struct Shared {
    /// Runs the connection to the browser: it outlives the runtime of each test.
    runtime: Runtime,
    connection: Arc<DevToolsConnection>,
}

impl Drop for Browser {
    fn drop(&mut self) {
        for context in self.contexts.lock().expect("the lock is not poisoned").drain(..) {
            let connection = Arc::clone(&self.shared.connection);
            self.shared.runtime.spawn(async move {
                let params = json!({ "browserContextId": context });
                // The context is no longer used, so errors do not matter.
                let _ = connection.try_command(None, "Target.disposeBrowserContext", params).await;
            });
        }
    }
}

impl Browser {
    /// Starts the browser or uses the running one. Without a browser on this machine, prints a message and returns
    /// `None`; panics if a browser is required.
    pub async fn start() -> Option<Browser> {
        let Some(program) = program() else {
            let name = std::thread::current().name().unwrap_or("a browser test").to_owned();
            assert!(
                !is_required(),
                "{name}: no browser is installed, and CI or CHARGEPROOF_BROWSER=required demands one: \
                 install Debian's package chromium, or set CHARGEPROOF_CHROMIUM"
            );
            // Not `eprintln!`, whose output the test runner hides when a test passes.
            let _ = writeln!(
                std::io::stderr(),
                "NOT RUN, NO BROWSER: {name} (install chromium, or set CHARGEPROOF_CHROMIUM)"
            );
            return None;
        };
        static SHARED: OnceLock<Shared> = OnceLock::new();
        Some(Browser { shared: SHARED.get_or_init(|| Shared::start(&program)), contexts: Mutex::default() })
    }

    /// Opens a page of desktop width in light colours, in a new context without stored data.
    pub async fn page(&self) -> Page {
        let connection = &self.shared.connection;
        let context = connection.command(None, "Target.createBrowserContext", json!({})).await;
        let context = context["browserContextId"].clone();
        self.contexts.lock().expect("the lock is not poisoned").push(context.clone());
        let blank = json!({ "url": "about:blank", "browserContextId": context });
        let target = connection.command(None, "Target.createTarget", blank).await;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = connection.command(None, "Target.attachToTarget", attach).await;
        let session = attached["sessionId"].as_str().expect("the browser returns a session id").to_owned();
        Page::new(Arc::clone(connection), session).await
    }
}

impl Shared {
    fn start(program: &Path) -> Shared {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().expect("a thread can be started");
        let _guard = runtime.enter();
        let profile =
            TempDir::with_prefix("chargeproof-browser-").expect("a temporary directory can be created");
        let mut process = Command::new("/bin/sh")
            .args(["-c", LAUNCH_SCRIPT])
            .arg(profile.keep())
            .arg(program)
            .args(FLAGS)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell can be started");
        let connection = DevToolsConnection::new(process.stdin.take().expect("the stream is piped"));
        runtime.spawn(Arc::clone(&connection).listen(process.stdout.take().expect("the stream is piped")));
        Shared { runtime, connection }
    }
}

/// Returns the path of the browser, if it is installed.
fn program() -> Option<PathBuf> {
    let configured = std::env::var_os("CHARGEPROOF_CHROMIUM").map(PathBuf::from);
    // A configured browser has no fallback.
    let paths =
        configured.map_or_else(|| BROWSER_PATHS.iter().map(PathBuf::from).collect(), |path| vec![path]);
    paths.into_iter().find(|path| path.exists())
}

/// Returns `true` if a missing browser is a failure.
fn is_required() -> bool {
    std::env::var("CHARGEPROOF_BROWSER").is_ok_and(|value| value == "required")
        || std::env::var_os("CI").is_some()
}

/// The connection to the browser: the pipe for commands, the pending commands, and the received events.
#[derive(Debug)]
struct DevToolsConnection {
    commands: tokio::sync::Mutex<ChildStdin>,
    next_id: AtomicU64,
    /// The senders of results, by the id of the command.
    pending: Mutex<BTreeMap<u64, oneshot::Sender<Value>>>,
    /// The received events: session and message.
    events: Mutex<Vec<(String, Value)>>,
}

impl DevToolsConnection {
    fn new(commands: ChildStdin) -> Arc<DevToolsConnection> {
        Arc::new(DevToolsConnection {
            commands: tokio::sync::Mutex::new(commands),
            next_id: AtomicU64::new(1),
            pending: Mutex::default(),
            events: Mutex::default(),
        })
    }

    /// Receives messages until the browser ends.
    async fn listen(self: Arc<Self>, messages: ChildStdout) {
        let mut messages = BufReader::new(messages);
        let mut bytes = Vec::new();
        while messages.read_until(MESSAGE_END, &mut bytes).await.is_ok_and(|n| n > 0) {
            let message: Value = serde_json::from_slice(bytes.strip_suffix(&[MESSAGE_END]).unwrap_or(&bytes))
                .expect("messages of the browser are JSON");
            bytes.clear();
            match message["id"].as_u64() {
                Some(id) => {
                    let result_sender = self.pending.lock().expect("the lock is not poisoned").remove(&id);
                    // The receiver may have been dropped.
                    let _ = result_sender.map(|sender| sender.send(message));
                }
                None => {
                    let session = message["sessionId"].as_str().unwrap_or_default().to_owned();
                    self.events.lock().expect("the lock is not poisoned").push((session, message));
                }
            }
        }
        // The pending commands get no result.
        self.pending.lock().expect("the lock is not poisoned").clear();
    }

    /// Sends a command and waits for its result, which may be an error.
    async fn try_command(&self, session: Option<&str>, method: &str, params: Value) -> Result<Value, String> {
        let id = self.next_id.fetch_add(1, Relaxed);
        let (result_sender, result) = oneshot::channel();
        self.pending.lock().expect("the lock is not poisoned").insert(id, result_sender);
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(MESSAGE_END);
        self.commands.lock().await.write_all(&bytes).await.expect("the browser listens");
        let mut message = result.await.expect("the browser responds unless it crashed");
        match message["error"]["message"].as_str() {
            Some(error) => Err(format!("{method}: {error}")),
            None => Ok(message["result"].take()),
        }
    }

    /// Sends a command that must succeed.
    async fn command(&self, session: Option<&str>, method: &str, params: Value) -> Value {
        self.try_command(session, method, params).await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns the browser's events for a session, oldest first.
    fn events(&self, session: &str) -> Vec<Value> {
        let events = self.events.lock().expect("the lock is not poisoned");
        events
            .iter()
            .filter(|(recipient, _)| recipient == session)
            .map(|(_, message)| message.clone())
            .collect()
    }
}
