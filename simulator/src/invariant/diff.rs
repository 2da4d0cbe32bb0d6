//! The comparison of complete JSON documents, and the list of allowed differences.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Invariant;

/// A value that differs between an expected and an actual JSON text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Difference {
    /// The path to the value, as `transactions[0].status`.
    pub(super) path: String,
    /// The expected value; `None` if the field must be absent.
    pub(super) expected: Option<Value>,
    /// The actual value; `None` if the field is absent.
    pub(super) actual: Option<Value>,
    /// `true` for the `confirmations` of a confirmed transfer, which continue to grow.
    is_growing: bool,
}

/// An allowed difference, with its reason.
struct Exception {
    /// The last name of the path.
    field: &'static str,
    #[allow(dead_code, reason = "documents the exception")]
    reason: &'static str,
    /// `blocks`: the growth of the chain while the text was read.
    allows: fn(expected: &Value, actual: &Value, blocks: u64) -> bool,
}

/// All allowed differences. All other fields of every response and body are compared.
const EXCEPTIONS: [Exception; 6] = [
    Exception {
        field: "confirmations",
        reason: "The confirmations of a confirmed transfer grow with each block; sightings do not report them any more.",
        allows: |expected, actual, blocks| {
            let (expected, actual) = (expected.as_u64(), actual.as_u64());
            expected.zip(actual).is_some_and(|(least, n)| (least..=least + blocks).contains(&n))
        },
    },
    Exception { field: "first", reason: PARAMETER_ORDER, allows: is_same_link },
    Exception { field: "last", reason: PARAMETER_ORDER, allows: is_same_link },
    Exception { field: "prev", reason: PARAMETER_ORDER, allows: is_same_link },
    Exception { field: "next", reason: PARAMETER_ORDER, allows: is_same_link },
    Exception {
        field: "event_id",
        reason: "Ids of events are random: an id is known once it was listed or delivered, and must not change from then on.",
        allows: |expected, _, _| expected == "",
    },
];
const PARAMETER_ORDER: &str = "The contract does not fix the order of the parameters of a link.";

/// Returns `true` if two links differ at most in the order of their parameters.
fn is_same_link(expected: &Value, actual: &Value, _: u64) -> bool {
    fn parts(link: &Value) -> Option<(&str, BTreeSet<&str>)> {
        let (path, query) = link.as_str()?.split_once('?')?;
        Some((path, query.split('&').collect()))
    }
    parts(expected).is_some_and(|expected| Some(expected) == parts(actual))
}

impl Difference {
    /// Returns the path without list indexes, which is equal for the same field of every object.
    pub(super) fn field(&self) -> String {
        let mut field = String::new();
        let mut rest = self.path.as_str();
        while let Some((before, after)) = rest.split_once('[') {
            field.push_str(before);
            rest = after.split_once(']').map_or("", |(_, after)| after);
        }
        field + rest
    }

    /// Returns `true` if an exception allows the difference. `blocks`: the growth of the chain while the text was read.
    fn is_allowed(&self, blocks: u64) -> bool {
        let name = self.path.rsplit(['.', ']']).next().unwrap_or_default();
        let both = self.expected.as_ref().zip(self.actual.as_ref());
        let exception = EXCEPTIONS.iter().find(|exception| exception.field == name);
        let allows = |((expected, actual), exception): ((&Value, &Value), &Exception)| {
            (self.is_growing || exception.field != "confirmations")
                && (exception.allows)(expected, actual, blocks)
        };
        both.zip(exception).is_some_and(allows)
    }

    /// Returns the path, the expected and the actual value as a sentence.
    pub(super) fn to_sentence(&self) -> String {
        let text = |value: &Option<Value>| match value {
            None => "no such field".to_owned(),
            Some(Value::String(string)) => string.clone(),
            Some(value) => value.to_string(),
        };
        let (expected, actual) = (text(&self.expected), text(&self.actual));
        format!("{}: expected {}, got {}", self.path, truncate(&expected), truncate(&actual))
    }

    /// Returns the invariant that a wrong value of the field violates.
    pub(super) fn invariant(&self) -> Invariant {
        let field = self.field();
        let field = field.strip_prefix("data.").unwrap_or(&field);
        let field =
            ["charge.", "invoice."].iter().find_map(|prefix| field.strip_prefix(prefix)).unwrap_or(field);
        invariant_of_field(field.split('.').next().unwrap_or_default())
    }
}

/// The invariants that a comparison of a charge checks.
pub(super) const CHARGE_INVARIANTS: [Invariant; 8] = [
    Invariant::Edges,
    Invariant::PaidMoney,
    Invariant::Confirmations,
    Invariant::Tolerance,
    Invariant::Conservation,
    Invariant::LockEnd,
    Invariant::Order,
    Invariant::SameObject,
];

/// Returns the invariant of a field of an object or a page.
fn invariant_of_field(name: &str) -> Invariant {
    match name {
        "status" | "voided_at" | "timeline" => Invariant::Edges,
        "received_amount" | "paid_at" => Invariant::PaidMoney,
        "transactions" => Invariant::Confirmations,
        "remaining_amount" | "overpaid" | "asset_amount" | "fiat_amount" | "fiat_currency"
        | "exchange_rate" => Invariant::Tolerance,
        "refunded_amount" | "refunds" | "deposit_address" => Invariant::Conservation,
        "expires_at" => Invariant::LockEnd,
        "created_at" | "number" => Invariant::Order,
        "sent_at" | "viewed_at" | "accepting_payments" => Invariant::Once,
        "links" | "meta" => Invariant::Paging,
        _ => Invariant::SameObject,
    }
}

/// Returns the invariant that a page violates if its rows or its total differ; `None` if only other values differ.
pub(super) fn invariant_of_page(found: &[Difference], is_filtered: bool) -> Option<Invariant> {
    let is_row_or_total = |path: &str| match path.strip_prefix("data[").and_then(|rest| rest.split_once(']'))
    {
        Some((_, rest)) => ["", ".id"].contains(&rest),
        None => path == "meta.total",
    };
    let invariant = if is_filtered { Invariant::Filters } else { Invariant::Paging };
    found.iter().any(|difference| is_row_or_total(&difference.path)).then_some(invariant)
}

/// Truncates a value for a report.
fn truncate(text: &str) -> String {
    const CHARS_MAX: usize = 120;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns the differences between two JSON documents, without the allowed ones. `blocks`: the growth of the chain while
/// the actual one was read.
pub(super) fn differences(expected: &str, actual: &str, blocks: u64) -> Vec<Difference> {
    if expected == actual || is_same_text(expected, actual, blocks) {
        return Vec::new();
    }
    let parse = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
    let mut found = Vec::new();
    compare(&mut found, String::new(), Some(parse(expected)), Some(parse(actual)));
    found.retain(|difference| !difference.is_allowed(blocks));
    found
}

/// Returns `true` if two documents are equal except for allowed differences. Fast path: most responses differ only in
/// counts of confirmations, and need no parsing. After `false`, they must be parsed to be compared.
fn is_same_text(expected: &str, actual: &str, blocks: u64) -> bool {
    let (mut expected, mut actual) = (expected.as_bytes(), actual.as_bytes());
    while expected != actual {
        let same = common_prefix_length(expected, actual);
        let Some(colon) = expected[..same].iter().rposition(|byte| *byte == b':') else { return false };
        let (name, rest, other) = (&expected[..=colon], &expected[colon + 1..], &actual[colon + 1..]);
        let ends = if name.ends_with(b"\"confirmations\":") {
            lengths_of_confirmations(rest, other, blocks)
        } else if name.ends_with(b"\"event_id\":") && rest.starts_with(b"\"\"") {
            // The expected id is unknown: two quotes.
            quoted_length(other).map(|end| (2, end))
        } else {
            None
        };
        let Some((end, other_end)) = ends else { return false };
        (expected, actual) = (&rest[end..], &other[other_end..]);
    }
    true
}

/// Returns the length of the common prefix of two byte strings.
fn common_prefix_length(one: &[u8], other: &[u8]) -> usize {
    let (mut same, mut end) = (0, one.len().min(other.len()));
    while same < end {
        let middle = same + (end - same).div_ceil(2);
        if one[same..middle] == other[same..middle] {
            same = middle;
        } else {
            end = middle - 1;
        }
    }
    same
}

/// Parses the confirmations of a confirmed transfer at the start of both texts. Returns the lengths of the two numbers if
/// the actual one is at most `blocks` larger than the expected one.
fn lengths_of_confirmations(expected: &[u8], actual: &[u8], blocks: u64) -> Option<(usize, usize)> {
    let read = |text: &[u8]| {
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number: u64 = std::str::from_utf8(&text[..digits]).ok()?.parse().ok()?;
        Some((number, digits))
    };
    let ((least, end), (n, other_end)) = (read(expected)?, read(actual)?);
    let (required, _) = read(expected[end..].strip_prefix(b",\"required_confirmations\":")?)?;
    (least >= required && (least..=least.saturating_add(blocks)).contains(&n)).then_some((end, other_end))
}

/// Returns the length of the quoted string at the start of a text, including the quotes; `None` if it has escapes.
fn quoted_length(text: &[u8]) -> Option<usize> {
    let content = text.strip_prefix(b"\"")?;
    let end = content.iter().position(|byte| [b'"', b'\\'].contains(byte))?;
    (content[end] == b'"').then_some(end + 2)
}

/// Adds the differences between two values at a path.
fn compare(found: &mut Vec<Difference>, path: String, expected: Option<Value>, actual: Option<Value>) {
    match (expected, actual) {
        (Some(Value::Object(expected)), Some(Value::Object(mut actual))) => {
            let child = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            let count = |name: &str| expected.get(name).and_then(Value::as_u64);
            let is_confirmed = count("confirmations") >= count("required_confirmations");
            for (name, value) in expected {
                let (other, before) = (actual.remove(&name), found.len());
                compare(found, child(&name), Some(value), other);
                if name == "confirmations" {
                    found[before..].iter_mut().for_each(|difference| difference.is_growing = is_confirmed);
                }
            }
            for (name, value) in actual {
                compare(found, child(&name), None, Some(value));
            }
        }
        (Some(Value::Array(expected)), Some(Value::Array(actual))) => {
            let (mut expected, mut actual) = (expected.into_iter(), actual.into_iter());
            for index in 0..expected.len().max(actual.len()) {
                compare(found, format!("{path}[{index}]"), expected.next(), actual.next());
            }
        }
        (expected, actual) if expected != actual => {
            found.push(Difference { path, expected, actual, is_growing: false });
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the paths of the differences, if the chain may have grown by two blocks.
    #[track_caller]
    fn check(expected: &str, actual: &str, differing: &[&str]) {
        let found = differences(expected, actual, 2);
        assert_eq!(found.iter().map(|difference| difference.path.as_str()).collect::<Vec<_>>(), differing);
    }

    #[test]
    fn every_field_is_compared() {
        check(r#"{"a":1,"b":[{"c":null}]}"#, r#"{"b":[{"c":null}],"a":1}"#, &[]);
        check(r#"{"a":1,"b":null}"#, r#"{"a":2}"#, &["a", "b"]);
        check(r#"{"a":[{"b":1},{"b":2}]}"#, r#"{"a":[{"b":1}],"c":{}}"#, &["a[1]", "c"]);
        check("{}", "not JSON", &[""]);
    }

    #[test]
    fn exceptions_have_bounds() {
        let counts = |n: u64, required: u64| {
            format!(r#"{{"transactions":[{{"confirmations":{n},"required_confirmations":{required}}}]}}"#)
        };
        check(&counts(3, 2), &counts(5, 2), &[]);
        for (n, required) in [(2, 2), (6, 2), (4, 4)] {
            let (expected, actual) = (counts(3, required), counts(n, required));
            check(&expected, &actual, &["transactions[0].confirmations"]);
        }
        let event = |id: &str| format!(r#"{{"a":1,"event_id":"{id}","b":2}}"#);
        check(&event(""), &event("e1"), &[]);
        check(&event("e1"), &event("e2"), &["event_id"]);
        check(&event("e1"), &event(""), &["event_id"]);
        check(r#"{"next":"/v1?a=1&b=2"}"#, r#"{"next":"/v1?b=2&a=1"}"#, &[]);
        check(r#"{"next":"/v1?a=1&b=2"}"#, r#"{"next":"/v1?b=2"}"#, &["next"]);
    }
}
