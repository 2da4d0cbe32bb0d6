//! The formatting of times, names and untrusted strings for the page.

use reference_core::time::{Span, Timestamp};

use crate::printable::is_invisible;

/// Formats a time as `+1h 2m 14.862s`: to the millisecond, which is enough to compare rows.
pub(super) fn format_elapsed(span: Span) -> String {
    let millis = span.0 / 1_000;
    let mut text = String::from("+");
    let mut rest = millis;
    for (unit, name) in [(86_400_000, "d "), (3_600_000, "h "), (60_000, "m ")] {
        if millis >= unit {
            text.push_str(&format!("{}{name}", rest / unit));
        }
        rest %= unit;
    }
    let seconds = format!("{}.{:03}", rest / 1_000, rest % 1_000);
    text + seconds.trim_end_matches('0').trim_end_matches('.') + "s"
}

/// Formats a date and time as `2026-12-31 12:01:52.848526`.
pub(super) fn format_date(at: Timestamp) -> String {
    at.to_string().replace('T', " ").trim_end_matches('Z').to_owned()
}

/// Escapes invisible characters and marks that change the writing direction. Line breaks stay.
pub(super) fn escape_invisible(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut escaped, character| {
        if is_invisible(character) && character != '\n' {
            escaped.extend(character.escape_unicode())
        } else {
            escaped.push(character)
        }
        escaped
    })
}

/// Quotes a path as one argument of a POSIX shell. A path that starts with `-` gets the prefix `./`, so that
/// it is not read as an option.
pub(super) fn shell_quote(path: &str) -> String {
    let needs_no_quotes = |c: char| c.is_ascii_alphanumeric() || "_-./:+,@%=".contains(c);
    if !path.is_empty() && !path.starts_with('-') && path.chars().all(needs_no_quotes) {
        return path.to_owned();
    }
    let path = if path.starts_with('-') { format!("./{path}") } else { path.to_owned() };
    format!("'{}'", path.replace('\'', r"'\''"))
}
