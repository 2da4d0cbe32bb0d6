//! Standard output and standard error: colours and progress where somebody sees them, and no panic when nobody reads.

use std::{
    fmt,
    io::{self, IsTerminal, Write},
    sync::Mutex,
    time::Duration,
};

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressStyle};

/// Success.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
/// Failure.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// Less important text.
pub(crate) const DIM: Style = Style::new().dimmed();
/// A position in a file.
pub(crate) const PLACE: Style = AnsiColor::Cyan.on_default();

/// Why stdout could not be written, if it could not.
static LOST: Mutex<Option<io::ErrorKind>> = Mutex::new(None);

/// Prints a line on stdout. Colours are removed where nobody sees them. A failure is kept for [`finish`].
macro_rules! say {
    () => { $crate::screen::print("\n") };
    ($($part:tt)*) => { $crate::screen::print(format_args!("{}\n", format_args!($($part)*))) };
}
/// Prints a line on stderr.
macro_rules! note {
    ($($part:tt)*) => { $crate::screen::print_error(format_args!("{}\n", format_args!($($part)*))) };
}
pub(crate) use {note, say};

/// Prints text on stdout.
pub(crate) fn print(text: impl fmt::Display) {
    keep(write!(anstream::stdout(), "{text}"));
}

/// Prints text on stdout byte for byte.
pub(crate) fn print_raw(text: &str) {
    keep(io::stdout().write_all(text.as_bytes()));
}

/// Prints text on stderr. If that fails there is nobody left to tell.
pub(crate) fn print_error(text: impl fmt::Display) {
    let _ = write!(anstream::stderr(), "{text}");
}

fn keep(written: io::Result<()>) {
    if let Err(error) = written {
        lost().get_or_insert(error.kind());
    }
}

fn lost() -> std::sync::MutexGuard<'static, Option<io::ErrorKind>> {
    LOST.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Whether stdout takes nothing more.
pub(crate) fn is_lost() -> bool {
    lost().is_some()
}

/// Flushes stdout. The exit code that is left if the result did not get out: whoever closed a pipe has read enough, but
/// a full disk has lost the result.
pub(crate) fn finish(code: u8) -> u8 {
    keep(io::stdout().flush());
    match *lost() {
        None | Some(io::ErrorKind::BrokenPipe) => code,
        Some(kind) => {
            note!("{BAD}error{BAD:#}: stdout can't be written: {kind}");
            crate::MACHINE
        }
    }
}

/// Shows that something goes on, on a terminal.
pub(crate) fn spinner() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    bar.set_style(ProgressStyle::with_template("{spinner} {elapsed} {msg}").expect("a constant template"));
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
