//! Replaces strings and numbers within the raw text of a JSON document; the rest of the text is unchanged.

use serde::de::IgnoredAny;

/// A string without quotes and escapes, or a number as written. `name` is the name of its member; in an array it is that of
/// the array, and below `errors` the name of a string is `message`. `private` is `true` below `metadata`.
pub(super) enum Scalar<'a> {
    Text { name: &'a str, private: bool, text: &'a str },
    Number { name: &'a str, private: bool, text: &'a str },
}

/// The state of the scanner at one level of nesting.
struct NestingLevel {
    /// The name of the current member.
    name: String,
    /// `true` below `metadata`, whose names the merchant chooses.
    private: bool,
    /// `true` below `errors`, whose strings are messages of the service, whatever their names are.
    has_messages: bool,
    is_object: bool,
    /// `true` if the next string is the name of a member.
    expects_name: bool,
}

/// Replaces the strings and numbers for which `change` returns a value: the new string without quotes, or the new number.
/// Returns `None` if the text is not JSON.
pub(super) fn map_scalars(text: &str, change: impl Fn(Scalar<'_>) -> Option<String>) -> Option<String> {
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    let mut out = String::with_capacity(text.len());
    let outermost = NestingLevel {
        name: String::new(),
        private: false,
        has_messages: false,
        is_object: false,
        expects_name: false,
    };
    let mut stack = vec![outermost];
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let top = stack.last_mut().expect("the stack always has the outermost level");
        let len = match first {
            '"' => string_len(rest),
            '-' | '0'..='9' => number_len(rest),
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(len);
        rest = after;
        let mut changed = None;
        match first {
            '"' => {
                let unescaped: String =
                    serde_json::from_str(token).expect("a string in a valid document is valid");
                if top.expects_name {
                    top.name = unescaped;
                } else {
                    let name = if top.has_messages { "message" } else { &top.name };
                    let scalar = Scalar::Text { name, private: top.private, text: &unescaped };
                    let quote = |text: String| serde_json::to_string(&text).expect("a string is JSON");
                    changed = change(scalar).map(quote);
                }
            }
            '-' | '0'..='9' => {
                changed = change(Scalar::Number { name: &top.name, private: top.private, text: token });
            }
            '{' | '[' => {
                let (name, private) = (top.name.clone(), top.private || top.name == "metadata");
                let has_messages = top.has_messages || top.name == "errors";
                let is_object = first == '{';
                stack.push(NestingLevel { name, private, has_messages, is_object, expects_name: is_object });
            }
            '}' | ']' => {
                stack.pop();
            }
            ':' => top.expects_name = false,
            ',' => top.expects_name = top.is_object,
            _ => {}
        }
        out.push_str(changed.as_deref().unwrap_or(token));
    }
    Some(out)
}

/// Returns the length of the JSON string at the start of the text, with its quotes.
fn string_len(rest: &str) -> usize {
    let mut escaped = false;
    for (index, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return index + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Returns the length of the JSON number at the start of the text.
fn number_len(rest: &str) -> usize {
    rest.find(|character: char| !matches!(character, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'))
        .unwrap_or(rest.len())
}

/// Returns `true` if a number of this name describes a page of a list, or is a status code. Other numbers may be amounts.
pub(super) fn is_count(name: &str) -> bool {
    const COUNTS: &[&str] = &["current_page", "last_page", "per_page", "total", "from", "to", "status"];
    COUNTS.contains(&name)
}

/// Returns `true` if a member with this name and text is an identifier, a time, an enum value, a link or a message of
/// the service.
pub(super) fn is_public_member(name: &str, text: &str) -> bool {
    const MESSAGES: &[&str] = &["message", "error", "title", "detail", "instance"];
    const LINKS: &[&str] = &["first", "last", "prev", "next"];
    /// The last words of the names of identifiers, times and enum values, such as `payment_link` and `created_at`.
    const READABLE_LAST_WORDS: &[&str] = &[
        "asset",
        "assets",
        "at",
        "charge",
        "code",
        "currency",
        "currencies",
        "event",
        "id",
        "ids",
        "invoice",
        "kind",
        "link",
        "mode",
        "network",
        "networks",
        "number",
        "object",
        "status",
        "type",
        "types",
    ];
    /// Words in the names of personal data, even if the last word is readable: `tax_id`, `postal_code`.
    const PERSONAL_WORDS: &[&str] = &["tax", "vat", "postal", "zip", "phone"];
    let words = || name.split('_');
    if PERSONAL_WORDS.iter().any(|known| words().any(|word| word == *known)) {
        return false;
    }
    let is_readable = words().next_back().is_some_and(|last| READABLE_LAST_WORDS.contains(&last));
    MESSAGES.contains(&name)
        || LINKS.contains(&name)
        || (is_readable && !text.contains(|character: char| character.is_whitespace() || character == '@'))
}
