//! `serve --log`: prints a line for each request, event and delivery while the server runs.
//!
//! Lines are printed by a separate thread. A blocked terminal or pipe delays no request: lines that do not fit into the
//! queue are dropped and counted.

use std::{
    io::{self, IsTerminal as _},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use conformance::report::{escape_invisible, one_line};
use reference_core::time::Timestamp;
use reference_server::{LogEntry, LogSink, RequestRecord};
use serde_json::{Value, json};
use simulator::api::{WorldEvent, WorldEventKind};

use crate::{
    Failure,
    args::Log,
    terminal::{BAD, DIM, GOOD, note},
};

/// The maximum number of queued lines.
const WAITING_MAX: usize = 4_096;

/// Prints log entries, once started.
pub(super) struct Printer {
    lines: SyncSender<String>,
    has_begun: Arc<AtomicBool>,
    left_out: Arc<AtomicU64>,
    is_json: bool,
}

impl Printer {
    /// Starts the printer that the options select; `None` without a log.
    pub(super) fn start(log: Option<Log>) -> Result<Option<Printer>, Failure> {
        let usual = if io::stderr().is_terminal() { Log::Text } else { Log::Off };
        let log = log.unwrap_or(usual);
        if log == Log::Off {
            return Ok(None);
        }
        let (lines, waiting) = sync_channel(WAITING_MAX);
        let left_out = Arc::new(AtomicU64::new(0));
        let printer = Printer {
            lines,
            has_begun: Arc::default(),
            left_out: Arc::clone(&left_out),
            is_json: log == Log::Json,
        };
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || print(&waiting, &left_out))
            .map_err(|error| Failure::machine(format!("cannot start the thread of the log: {error}")))?;
        Ok(Some(printer))
    }

    /// Starts printing.
    pub(super) fn start_printing(&self) {
        self.has_begun.store(true, Ordering::Relaxed);
    }

    /// Returns the receiver of the server's log entries.
    pub(super) fn sink(&self) -> LogSink {
        let (lines, is_json) = (self.lines.clone(), self.is_json);
        let (has_begun, left_out) = (Arc::clone(&self.has_begun), Arc::clone(&self.left_out));
        LogSink::new(move |entry| {
            if !has_begun.load(Ordering::Relaxed) {
                return;
            }
            let line = if is_json { escape_invisible(&as_json(&entry).to_string()) } else { as_text(&entry) };
            if lines.try_send(line).is_err() {
                left_out.fetch_add(1, Ordering::Relaxed);
            }
        })
    }
}

fn print(lines: &Receiver<String>, left_out: &AtomicU64) {
    for line in lines {
        note!("{line}");
        match left_out.swap(0, Ordering::Relaxed) {
            0 => {}
            n => note!("… {n} log lines omitted: entries arrived faster than they could be printed"),
        }
    }
}

/// Returns the time of day to the millisecond.
fn time(at: Timestamp) -> String {
    at.to_string().get(11..23).unwrap_or_default().to_owned()
}

fn as_text(entry: &LogEntry) -> String {
    match entry {
        LogEntry::InWorld { world, entry } => format!("{DIM}{world}{DIM:#}  {}", as_text(entry)),
        LogEntry::Request(record) => {
            let RequestRecord { at, method, target, status, took, key, message, .. } = &**record;
            let style = if *status < 400 { GOOD } else { BAD };
            let key = key.as_ref().map(|key| format!("  {key}")).unwrap_or_default();
            let message = message.as_ref().map(|text| format!("  {text}")).unwrap_or_default();
            format!(
                "{DIM}{}{DIM:#}  {method} {}  {style}{status}{style:#}  {} ms{DIM}{key}{DIM:#}{}",
                time(*at),
                one_line(target),
                took.as_millis(),
                one_line(&message),
            )
        }
        LogEntry::Event(WorldEvent { at, what, .. }) => {
            let style = match what {
                WorldEventKind::Post { answer, .. } if !answer.starts_with('2') => BAD,
                _ => DIM,
            };
            let mode = what.mode().map(|mode| format!("  {}", mode.as_str())).unwrap_or_default();
            format!(
                "{DIM}{}{DIM:#}    {style}{}{style:#}{DIM}{mode}{DIM:#}",
                time(*at),
                one_line(&what.to_string())
            )
        }
    }
}

fn as_json(entry: &LogEntry) -> Value {
    match entry {
        LogEntry::InWorld { world, entry } => {
            let mut line = as_json(entry);
            line["world"] = Value::from(&**world);
            line
        }
        LogEntry::Event(event) => simulator::api::json(event),
        LogEntry::Request(record) => {
            let RequestRecord { at, method, target, status, took, key, message, .. } = &**record;
            let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            json!({
                "what": "request", "at": at.to_string(), "method": method.as_str(), "target": target, "status": status,
                "took_ms": took_ms, "key": key, "message": message,
            })
        }
    }
}
