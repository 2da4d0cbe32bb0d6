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
use conformance::report::is_unseen;
use indicatif::{ProgressBar, ProgressStyle};

/// Success.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
/// Failure.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// Less important text.
pub(crate) const DIM: Style = Style::new().dimmed();
/// A position in a file.
pub(crate) const PLACE: Style = AnsiColor::Cyan.on_default();

/// The maximum time to print a line while exiting.
const NOTE_TIME: Duration = Duration::from_millis(200);

/// Without a terminal, progress is printed this often.
pub(crate) const LOG_EVERY_SECS: u64 = 15;

/// The first error of writing to stdout.
static LOST: Mutex<Option<io::ErrorKind>> = Mutex::new(None);

/// Prints a line on stdout. Colours are removed unless it is a terminal. A failure is recorded for [`finish`].
macro_rules! say {
    () => { $crate::terminal::print("\n") };
    ($($part:tt)*) => { $crate::terminal::print(format_args!("{}\n", format_args!($($part)*))) };
}
/// Prints a line on stderr.
macro_rules! note {
    ($($part:tt)*) => { $crate::terminal::print_error(format_args!("{}\n", format_args!($($part)*))) };
}
pub(crate) use {note, say};

/// Prints text on stdout.
pub(crate) fn print(text: impl fmt::Display) {
    record_error(write!(anstream::stdout(), "{}", replace_invisible(&text.to_string())));
}

/// Prints text on stdout byte for byte.
pub(crate) fn print_raw(text: &str) {
    record_error(io::stdout().write_all(text.as_bytes()));
}

/// Prints text on stderr. Failures are ignored.
pub(crate) fn print_error(text: impl fmt::Display) {
    let _ = write!(anstream::stderr(), "{}", replace_invisible(&text.to_string()));
}

/// Replaces invisible characters by U+FFFD, except for line ends, tabs and the program's own colour escapes.
fn replace_invisible(text: &str) -> Cow<'_, str> {
    replace_chars(text, |c| is_unseen(c) && !matches!(c, '\n' | '\t' | '\u{1b}'))
}

/// Replaces invisible characters in foreign text, colour escapes included; line ends stay.
pub(crate) fn sanitize(text: &str) -> Cow<'_, str> {
    replace_chars(text, |c| is_unseen(c) && !matches!(c, '\n' | '\t'))
}

fn replace_chars(text: &str, is_hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_hidden) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(&is_hidden, "\u{fffd}"))
}

/// Prints a line on stderr; returns after at most [`NOTE_TIME`] even if stderr blocks: its reader may have stopped, and
/// another thread may hold its lock.
pub(crate) fn note_briefly(line: String) {
    let (printed, done) = mpsc::channel();
    thread::spawn(move || {
        note!("{line}");
        // The caller may have given up.
        let _ = printed.send(());
    });
    let _ = done.recv_timeout(NOTE_TIME);
}

fn record_error(written: io::Result<()>) {
    if let Err(error) = written {
        stdout_error().get_or_insert(error.kind());
    }
}

fn stdout_error() -> std::sync::MutexGuard<'static, Option<io::ErrorKind>> {
    LOST.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Returns the width of the terminal on stdout; `None` if it is not a terminal.
pub(crate) fn columns() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0))
}

/// Returns `true` if stdout failed.
pub(crate) fn has_stdout_failed() -> bool {
    stdout_error().is_some()
}

/// Flushes stdout and returns the exit code: `code`, unless the result was lost. A reader that closed the pipe has read
/// enough, but a full disk has lost the result.
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

/// Shows a spinner on a terminal.
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
    begun: Instant,
    /// The number of intervals for which a line was printed.
    printed: AtomicU64,
}

impl ProgressLog {
    pub(crate) fn start() -> ProgressLog {
        ProgressLog { begun: Instant::now(), printed: AtomicU64::new(0) }
    }

    /// Prints the line if the bar is hidden and the last line is older than [`LOG_EVERY_SECS`].
    pub(crate) fn line(&self, bar: &ProgressBar, text: impl FnOnce() -> String) {
        let due = self.begun.elapsed().as_secs() / LOG_EVERY_SECS;
        if bar.is_hidden() && self.printed.fetch_max(due, Ordering::Relaxed) < due {
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
        let own = format!("{GOOD}größer{GOOD:#}\t大\n");
        assert!(matches!(replace_invisible(&own), Cow::Borrowed(same) if same == own));
    }
}
