//! The formatting of times, names and untrusted strings for the page.

use reference_core::time::{Span, Timestamp};

use crate::printable::is_unseen;

/// Formats a time as `+1h 2m 14.862s`: to the millisecond, which is enough to compare rows.
pub(super) fn format_elapsed(span: Span) -> String {
    let millis = span.0 / 1_000;
    let mut words = String::from("+");
    let mut rest = millis;
    for (unit, name) in [(86_400_000, "d "), (3_600_000, "h "), (60_000, "m ")] {
        if millis >= unit {
            words.push_str(&format!("{}{name}", rest / unit));
        }
        rest %= unit;
    }
    let seconds = format!("{}.{:03}", rest / 1_000, rest % 1_000);
    words + seconds.trim_end_matches('0').trim_end_matches('.') + "s"
}

/// Formats a date as `2026-12-31 12:01:52.848526`.
pub(super) fn date(at: Timestamp) -> String {
    at.to_string().replace('T', " ").trim_end_matches('Z').to_owned()
}

/// Escapes invisible characters and direction marks. Line breaks stay.
pub(super) fn escape_invisible(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut plain, character| {
        if is_unseen(character) && character != '\n' {
            plain.extend(character.escape_unicode())
        } else {
            plain.push(character)
        }
        plain
    })
}

/// Quotes a word for a shell.
pub(super) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:+,@%=".contains(c);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain) {
        return text.to_owned();
    }
    let text = if text.starts_with('-') { format!("./{text}") } else { text.to_owned() };
    format!("'{}'", text.replace('\'', r"'\''"))
}
