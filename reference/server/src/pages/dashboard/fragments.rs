//! HTML fragments that many pages use.

use std::fmt::{self, Display, Write};

use askama::filters::{Escaper, Html as Escape, HtmlSafe};
use reference_core::time::Timestamp;

use crate::pages::formats::TimeFormats as _;

/// The number of characters shown at the start of a long id.
const HEAD_SHOWN: usize = 10;
/// The number of characters shown at the end of a long id.
const TAIL_SHOWN: usize = 6;

/// HTML with all input escaped.
pub(super) struct Html(String);

impl Display for Html {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HtmlSafe for Html {}

/// A string, escaped when written as HTML.
struct Text<'t>(&'t str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Escape.write_escaped_str(f, self.0)
    }
}

fn html(write: impl FnOnce(&mut String) -> fmt::Result) -> Html {
    let mut text = String::new();
    write(&mut text).expect("writing to a string does not fail");
    Html(text)
}

/// Returns a time to the second, in UTC.
pub(super) fn time(at: &Timestamp) -> Html {
    html(|out| {
        let (iso, day, time) = (at.iso(), at.day(), at.time());
        write!(out, r#"<time datetime="{iso}"><span class="day">{day}</span> {time}</time>"#)
    })
}

/// Returns the status of a record as a badge.
pub(super) fn status(status: impl AsRef<str>) -> Html {
    let status = status.as_ref();
    badge(status.replace('_', " "), tone(status))
}

/// Returns a label as a badge. `tone`: the CSS class for its colour.
pub(super) fn badge(label: impl AsRef<str>, tone: impl AsRef<str>) -> Html {
    html(|out| write!(out, r#"<span class="badge {}">{}</span>"#, Text(tone.as_ref()), Text(label.as_ref())))
}

/// Returns an HTTP status as a badge.
pub(super) fn http_status(status: &u16) -> Html {
    badge(status.to_string(), if *status < 400 { "good" } else { "bad" })
}

/// Returns the CSS class for the colour of a status. The colour adds no information.
fn tone(status: &str) -> &'static str {
    match status {
        "paid" | "delivered" | "enabled" | "active" | "accepted" => "good",
        "pending" | "open" | "in_flight" => "info",
        "underpaid" | "waiting" | "overdue" => "warn",
        "failed" => "bad",
        _ => "",
    }
}

/// Shortens a long id in the middle; its full text is shown on hover.
pub(super) fn short(text: impl AsRef<str>) -> Html {
    let text = text.as_ref();
    let chars = text.chars().count();
    // Up to three more characters are shown, because an ellipsis would save little.
    if chars <= HEAD_SHOWN + TAIL_SHOWN + 3 {
        return html(|out| write!(out, r#"<code dir="ltr">{}</code>"#, Text(text)));
    }
    let head: String = text.chars().take(HEAD_SHOWN).collect();
    let tail: String = text.chars().skip(chars - TAIL_SHOWN).collect();
    html(|out| {
        let (whole, head, tail) = (Text(text), Text(&head), Text(&tail));
        write!(out, r#"<code dir="ltr" title="{whole}">{head}…{tail}</code>"#)
    })
}

/// Returns an amount of a coin for a list: at most eight decimal places, and the exact amount on hover if it has more.
pub(super) fn coin_short(amount: impl Display) -> Html {
    const PLACES_MAX: usize = 8;
    let exact = amount.to_string();
    let end = exact.find('.').map_or(exact.len(), |point| point + 1 + PLACES_MAX);
    match exact.get(..end) {
        Some(short) if short != exact => {
            html(|out| write!(out, "<span title=\"{}\">{}…</span>", Text(&exact), Text(short)))
        }
        _ => coin(exact),
    }
}

/// Returns an amount of a coin with possible line breaks after every sixth decimal place.
pub(super) fn coin(amount: impl Display) -> Html {
    const PLACES: usize = 6;
    let amount = amount.to_string();
    let (whole, places) = amount.split_at(amount.find('.').map_or(amount.len(), |point| point + 1));
    html(|out| {
        write!(out, "{}", Text(whole))?;
        let places: Vec<char> = places.chars().collect();
        for (n, group) in places.chunks(PLACES).enumerate() {
            let wbr = if n == 0 { "" } else { "<wbr>" };
            write!(out, "{wbr}{}", Text(&group.iter().collect::<String>()))?;
        }
        Ok(())
    })
}

/// Returns an id as [`short`] does, with a button that copies its full text. `id` must be unique on the page.
pub(super) fn short_copy(id: impl AsRef<str>, text: impl AsRef<str>) -> Html {
    html(|out| {
        let (id, whole) = (Text(id.as_ref()), Text(text.as_ref()));
        write!(
            out,
            r#"{}<code class="visually-hidden" id="{id}" aria-hidden="true">{whole}</code> <button class="tiny scripted-only" type="button" data-copy="{id}" aria-label="Copy {whole}">Copy</button>"#,
            short(text.as_ref())
        )
    })
}

/// Returns an event type with possible line breaks after its parts, such as `charge.` and `paid`.
pub(super) fn kind(name: impl AsRef<str>) -> Html {
    html(|out| {
        for part in name.as_ref().split_inclusive(['.', '_']) {
            write!(out, "{}<wbr>", Text(part))?;
        }
        Ok(())
    })
}

/// Returns text from users: its writing direction is isolated, and it may break anywhere.
pub(super) fn user_text(text: impl AsRef<str>) -> Html {
    html(|out| write!(out, "<bdi>{}</bdi>", Text(text.as_ref())))
}

/// Returns a string in a box with a copy button. `id` must be unique on the page.
pub(super) fn copy(id: impl AsRef<str>, text: impl AsRef<str>) -> Html {
    html(|out| {
        let (id, text) = (Text(id.as_ref()), Text(text.as_ref()));
        write!(
            out,
            r#"<div class="copy"><code id="{id}" dir="ltr">{text}</code><button class="small scripted-only" type="button" data-copy="{id}">Copy</button></div>"#
        )
    })
}

/// Returns hidden fields of a form.
pub(super) fn hidden(fields: &[(&str, &str)]) -> Html {
    html(|out| {
        for (name, value) in fields {
            write!(out, r#"<input type="hidden" name="{}" value="{}">"#, Text(name), Text(value))?;
        }
        Ok(())
    })
}

/// Returns the errors of a form field; empty if there are none.
pub(super) fn field_errors<'m>(id: impl AsRef<str>, messages: impl AsRef<[&'m str]>) -> Html {
    html(|out| match messages.as_ref() {
        [] => Ok(()),
        messages => {
            write!(
                out,
                r#"<p class="field-error" id="{}-wrong">{}</p>"#,
                Text(id.as_ref()),
                Text(&messages.join(" "))
            )
        }
    })
}

/// Returns the HTML attributes of a form field with errors, for screen readers and the focus; empty if there are none.
pub(super) fn error_attributes<'m>(id: impl AsRef<str>, messages: impl AsRef<[&'m str]>) -> Html {
    html(|out| match messages.as_ref() {
        [] => Ok(()),
        _ => write!(out, r#" aria-invalid="true" autofocus aria-describedby="{}-wrong""#, Text(id.as_ref())),
    })
}

/// Escapes the characters of JSON that change the writing direction, so that they cannot disguise its content.
pub(super) fn escape_directions(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for char in json.chars() {
        match char {
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(char));
            }
            _ => out.push(char),
        }
    }
    out
}

/// Adds line breaks and indentation to JSON, and [escapes](escape_directions) it.
pub(super) fn pretty(json: &str) -> String {
    let json = escape_directions(json);
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth: usize = 0;
    let mut chars = json.chars().peekable();
    let mut is_in_string = false;
    let break_line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(char) = chars.next() {
        match char {
            '\\' if is_in_string => {
                out.push(char);
                out.extend(chars.next());
            }
            '"' => {
                is_in_string = !is_in_string;
                out.push(char);
            }
            _ if is_in_string => out.push(char),
            '{' | '[' => {
                out.push(char);
                if matches!(chars.peek(), Some('}' | ']')) {
                    out.extend(chars.next());
                } else {
                    depth += 1;
                    break_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                break_line(&mut out, depth);
                out.push(char);
            }
            ',' => {
                out.push(char);
                break_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => out.push(char),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn external_text_is_escaped() {
        let evil = r#""><script>alert('&')</script>"#;
        for html in [
            user_text(evil),
            short(evil),
            short(evil.repeat(5)),
            short_copy(evil, evil),
            coin(evil),
            copy(evil, evil),
            badge(evil, evil),
            status(evil),
        ] {
            let html = html.to_string();
            assert!(!html.contains("<script") && !html.contains(r#"""><"#), "{html}");
        }
        let html = field_errors(evil, [evil]).to_string();
        assert!(!html.contains("<script"), "{html}");
    }

    #[track_caller]
    fn check_pretty(json: &str, lines: &[&str]) {
        assert_eq!(pretty(json), lines.join("\n"));
    }

    #[test]
    fn json_is_broken_into_lines_without_other_changes() {
        check_pretty(
            r#"{"b":1e400,"a":[{},[],"x, {\"y\": 1}"]}"#,
            &[
                "{",
                r#"  "b": 1e400,"#,
                r#"  "a": ["#,
                "    {},",
                "    [],",
                r#"    "x, {\"y\": 1}""#,
                "  ]",
                "}",
            ],
        );
        check_pretty("[\"\u{202e}ab\"]", &["[", r#"  "\u202eab""#, "]"]);
        check_pretty("not JSON", &["not JSON"]);
        check_pretty("}}]", &["", "}", "}", "]"]);
    }

    #[test]
    fn long_ids_are_shortened_in_the_middle() {
        assert_eq!(short("abc").to_string(), r#"<code dir="ltr">abc</code>"#);
        let long = "0x0123456789abcdef0123456789abcdef";
        assert_eq!(
            short(long).to_string(),
            format!(r#"<code dir="ltr" title="{long}">0x01234567…abcdef</code>"#)
        );
    }

    #[test]
    fn long_amounts_break_between_their_places() {
        for (amount, expected) in
            [("12", "12"), ("0.001", "0.001"), ("0.123456789012345678", "0.123456<wbr>789012<wbr>345678")]
        {
            assert_eq!(coin(amount).to_string(), expected);
        }
    }

    #[test]
    fn times_are_shown_to_the_second() {
        let at = Timestamp::parse("2026-09-20T10:05:41.123456Z").expect("the time is valid");
        assert_eq!((at.day().as_str(), at.time().as_str()), ("2026-09-20", "10:05:41"));
    }
}
