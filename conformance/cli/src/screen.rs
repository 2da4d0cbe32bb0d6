//! What a terminal shows: colours, only where there are any to see.

use anstyle::{AnsiColor, Style};

/// It holds.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
/// It does not.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// Less important.
pub(crate) const DIM: Style = Style::new().dimmed();
/// A place in a file.
pub(crate) const PLACE: Style = AnsiColor::Cyan.on_default();
