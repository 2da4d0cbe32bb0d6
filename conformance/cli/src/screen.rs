//! What a terminal shows: colours and progress, only where somebody sees them.

use std::{io::IsTerminal, time::Duration};

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressStyle};

/// It holds.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
/// It does not.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// Less important.
pub(crate) const DIM: Style = Style::new().dimmed();
/// A place in a file.
pub(crate) const PLACE: Style = AnsiColor::Cyan.on_default();

/// Says that something goes on, and what. Hidden where nobody looks.
pub(crate) fn spinner() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    bar.set_style(ProgressStyle::with_template("{spinner} {elapsed} {msg}").expect("a constant template"));
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
