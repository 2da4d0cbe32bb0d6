//! Writes a script as a file that parses to the same script: one step per line, as the types of the steps serialize.

use reference_core::{mode::Mode, time::Span};
use serde_json::{Value, json};

use super::{START, Script, step};

impl Script {
    /// Returns the text of a file that parses to this script.
    pub fn to_yaml(&self) -> String {
        let mut text = format!("title: {}\n", in_line(&Value::from(self.title.clone())));
        if self.seed != 1 {
            text.push_str(&format!("seed: {}\n", self.seed));
        }
        if self.start != START {
            text.push_str(&format!("start: {}\n", in_line(&Value::from(self.start.to_string()))));
        }
        if self.pace != Span::secs(1) {
            text.push_str(&format!("pace: {}\n", self.pace));
        }
        if self.mode != Mode::Live {
            text.push_str(&format!("mode: {}\n", self.mode));
        }
        let account = step::without_defaults(json!(self.account));
        if account != json!({}) {
            text.push_str(&format!("account: {}\n", in_line(&account)));
        }
        text.push_str("steps:\n");
        for step in &self.steps {
            match json!(step) {
                Value::Object(map) => {
                    for (keyword, value) in map {
                        text.push_str(&format!(
                            "  - {keyword}: {}\n",
                            in_line(&step::without_defaults(value))
                        ));
                    }
                }
                keyword => text.push_str(&format!("  - {}\n", in_line(&keyword))),
            }
        }
        text
    }
}

/// Returns a value in one line of YAML.
pub(crate) fn in_line(value: &Value) -> String {
    match value {
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Object(map) => {
            let entries: Vec<_> =
                map.iter().map(|(key, value)| format!("{}: {}", scalar(key), in_line(value))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        Value::Array(list) => format!("[{}]", list.iter().map(in_line).collect::<Vec<_>>().join(", ")),
        Value::String(text) => scalar(text),
        other => other.to_string(),
    }
}

/// Returns a string as a YAML scalar, quoted unless the unquoted text is read as the same string.
fn scalar(text: &str) -> String {
    let starts_unambiguously =
        text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'/' || b == b'+');
    let is_plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./+ ".contains(&b));
    let is_reserved = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
        .contains(&text.to_ascii_lowercase().as_str());
    // `49.90 EUR` and `30s` do not read as numbers either, but `0x1f` does, and times such as
    // `2026-01-05T09:00:00Z` may.
    let has_unit = text.bytes().next().is_some_and(|b| b.is_ascii_digit())
        && text.bytes().last().is_some_and(|b| b.is_ascii_alphabetic())
        && !text.starts_with("0x")
        && !text.contains('T');
    if is_plain && (starts_unambiguously || has_unit) && !is_reserved && !text.ends_with(' ') {
        return text.to_owned();
    }
    Value::from(text).to_string()
}
