//! Output on stdout and stderr: colours and progress on terminals, and no panic on closed pipes.

use std::{
    borrow::Cow,
    fmt,
    io::{self, IsTerminal, Write},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use anstyle::{AnsiColor, Style};
use conformance::report::is_invisible;
use indicatif::{ProgressBar, ProgressStyle};

/// The style of a success.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
/// The style of a failure.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// The style of less important text.
pub(crate) const DIM: Style = Style::new().dimmed();
/// The style of a position in a file.
pub(crate) const LOCATION: Style = AnsiColor::Cyan.on_default();

/// The maximum time to print a line while exiting.
const NOTE_TIMEOUT: Duration = Duration::from_millis(200);

/// The interval, in seconds, at which progress is printed without a terminal.
pub(crate) const LOG_EVERY_SECS: u64 = 15;

/// The first error of writing to stdout.
static STDOUT_ERROR: Mutex<Option<io::ErrorKind>> = Mutex::new(None);

/// Prints a line on stdout. Colours are removed unless it is a terminal. A failure is recorded for [`finish`].
macro_rules! print_line {
    () => { $crate::terminal::print("\n") };
    ($($part:tt)*) => { $crate::terminal::print(format_args!("{}\n", format_args!($($part)*))) };
}
/// Prints a line on stderr.
macro_rules! note {
    ($($part:tt)*) => { $crate::terminal::print_error(format_args!("{}\n", format_args!($($part)*))) };
}
pub(crate) use {note, print_line};

/// Prints text on stdout, with invisible characters replaced.
pub(crate) fn print(text: impl fmt::Display) {
    record_error(write!(anstream::stdout(), "{}", replace_invisible(&text.to_string())));
}

/// Prints text on stdout byte for byte.
pub(crate) fn print_raw(text: &str) {
    record_error(io::stdout().write_all(text.as_bytes()));
}

/// Prints text on stderr, with invisible characters replaced. Failures are ignored.
pub(crate) fn print_error(text: impl fmt::Display) {
    let _ = write!(anstream::stderr(), "{}", replace_invisible(&text.to_string()));
}

/// Replaces invisible characters by U+FFFD, except for line ends, tabs and ESC, which begins the program's colours.
fn replace_invisible(text: &str) -> Cow<'_, str> {
    replace_chars(text, |c| is_invisible(c) && !matches!(c, '\n' | '\t' | '\u{1b}'))
}

/// Replaces invisible characters in text that is not the program's own, including ESC, but not line ends and tabs.
pub(crate) fn sanitize(text: &str) -> Cow<'_, str> {
    replace_chars(text, |c| is_invisible(c) && !matches!(c, '\n' | '\t'))
}

fn replace_chars(text: &str, is_replaced: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_replaced) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(&is_replaced, "\u{fffd}"))
}

/// Prints a line on stderr; returns after at most [`NOTE_TIMEOUT`] even if stderr blocks: its
/// reader may have stopped, and another thread may hold its lock.
pub(crate) fn note_briefly(line: String) {
    let (finished, wait) = mpsc::channel();
    thread::spawn(move || {
        note!("{line}");
        // Fails if the caller has timed out.
        let _ = finished.send(());
    });
    let _ = wait.recv_timeout(NOTE_TIMEOUT);
}

fn record_error(result: io::Result<()>) {
    if let Err(error) = result {
        stdout_error().get_or_insert(error.kind());
    }
}

fn stdout_error() -> std::sync::MutexGuard<'static, Option<io::ErrorKind>> {
    STDOUT_ERROR.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Returns the width of the terminal on stdout; `None` if it is not a terminal.
pub(crate) fn columns() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0))
}

/// Returns `true` if writing to stdout has failed.
pub(crate) fn has_stdout_failed() -> bool {
    stdout_error().is_some()
}

/// Flushes stdout and returns the exit code: `code`, or that of a machine failure if stdout could
/// not be written. A closed pipe is not a failure: its reader has read enough.
pub(crate) fn finish(code: u8) -> u8 {
    record_error(io::stdout().flush());
    match *stdout_error() {
        None | Some(io::ErrorKind::BrokenPipe) => code,
        Some(kind) => {
            note!("{BAD}error{BAD:#}: stdout can't be written: {kind}");
            crate::MACHINE
        }
    }
}

/// Returns a spinner, hidden without a terminal.
pub(crate) fn spinner() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    bar.set_style(
        ProgressStyle::with_template("{spinner} {elapsed} {msg}").expect("the template is a valid constant"),
    );
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// Progress without a terminal: a line on stderr from time to time.
pub(crate) struct ProgressLog {
    started_at: Instant,
    /// The number of the last interval for which a line was printed.
    printed_interval: AtomicU64,
}

impl ProgressLog {
    pub(crate) fn start() -> ProgressLog {
        ProgressLog { started_at: Instant::now(), printed_interval: AtomicU64::new(0) }
    }

    /// Prints the line if the bar is hidden: at most one line in each interval of [`LOG_EVERY_SECS`], and
    /// none in the first interval.
    pub(crate) fn line(&self, bar: &ProgressBar, text: impl FnOnce() -> String) {
        let interval = self.started_at.elapsed().as_secs() / LOG_EVERY_SECS;
        if bar.is_hidden() && self.printed_interval.fetch_max(interval, Ordering::Relaxed) < interval {
            note!("{}", text());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_replaced() {
        for hidden in ('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}').chain([
            '\u{200e}', '\u{200f}', '\u{61c}', '\u{200b}', '\u{2028}', '\u{feff}', '\u{7}', '\u{7f}',
            '\u{9b}', '\r',
        ]) {
            assert_eq!(replace_invisible(&format!("a{hidden}b")), "a\u{fffd}b");
        }
        assert_eq!(sanitize("\u{1b}[2Ja\n\tb"), "\u{fffd}[2Ja\n\tb");
        let printable = format!("{GOOD}größer{GOOD:#}\t大\n");
        assert!(matches!(replace_invisible(&printable), Cow::Borrowed(same) if same == printable));
    }
}
