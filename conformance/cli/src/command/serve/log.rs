//! `serve --log`: prints a line for each request, event and delivery attempt while the server runs.
//!
//! A separate thread prints the lines, so that a blocked terminal or pipe does not delay requests.
//! Lines that do not fit into its queue are dropped and counted.

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
const QUEUED_LINES_MAX: usize = 4_096;

/// Prints log entries. Entries before `start_printing` are discarded.
pub(super) struct Printer {
    lines: SyncSender<String>,
    is_started: Arc<AtomicBool>,
    /// The number of lines dropped since the last printed one.
    dropped: Arc<AtomicU64>,
    is_json: bool,
}

impl Printer {
    /// Starts the printer that the options select; `None` without a log.
    pub(super) fn start(log: Option<Log>) -> Result<Option<Printer>, Failure> {
        let default = if io::stderr().is_terminal() { Log::Text } else { Log::Off };
        let log = log.unwrap_or(default);
        if log == Log::Off {
            return Ok(None);
        }
        let (lines, queued_lines) = sync_channel(QUEUED_LINES_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        let printer = Printer {
            lines,
            is_started: Arc::default(),
            dropped: Arc::clone(&dropped),
            is_json: log == Log::Json,
        };
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || print_lines(&queued_lines, &dropped))
            .map_err(|error| Failure::machine(format!("cannot start the log thread: {error}")))?;
        Ok(Some(printer))
    }

    /// Starts printing.
    pub(super) fn start_printing(&self) {
        self.is_started.store(true, Ordering::Relaxed);
    }

    /// Returns the sink to which the server sends its log entries.
    pub(super) fn sink(&self) -> LogSink {
        let (lines, is_json) = (self.lines.clone(), self.is_json);
        let (is_started, dropped) = (Arc::clone(&self.is_started), Arc::clone(&self.dropped));
        LogSink::new(move |entry| {
            if !is_started.load(Ordering::Relaxed) {
                return;
            }
            let line = if is_json { escape_invisible(&as_json(&entry).to_string()) } else { as_text(&entry) };
            if lines.try_send(line).is_err() {
                dropped.fetch_add(1, Ordering::Relaxed);
            }
        })
    }
}

/// Prints lines until the printer and its sinks are dropped.
fn print_lines(lines: &Receiver<String>, dropped: &AtomicU64) {
    for line in lines {
        note!("{line}");
        match dropped.swap(0, Ordering::Relaxed) {
            0 => {}
            count => note!("… {count} log lines omitted: entries arrived faster than they could be printed"),
        }
    }
}

/// Returns the time of day to the millisecond.
fn time_of_day(at: Timestamp) -> String {
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
                time_of_day(*at),
                one_line(target),
                took.as_millis(),
                one_line(&message),
            )
        }
        LogEntry::Event(WorldEvent { at, kind, .. }) => {
            let style = match kind {
                WorldEventKind::Attempt { answer, .. } if !answer.starts_with('2') => BAD,
                _ => DIM,
            };
            let mode = kind.mode().map(|mode| format!("  {}", mode.as_str())).unwrap_or_default();
            format!(
                "{DIM}{}{DIM:#}    {style}{}{style:#}{DIM}{mode}{DIM:#}",
                time_of_day(*at),
                one_line(&kind.to_string())
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
