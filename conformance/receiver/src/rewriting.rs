//! [`Rewriting`]: the changes that programs make to a body, most of them by parsing its JSON and writing it again.
//!
//! Unless a change sorts them, members keep their order, unlike in a `serde_json::Value`.

use std::{fmt, io};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};

/// A change of the body: of its bytes, or by parsing its JSON and writing it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewriting {
    /// An empty body, as from a stream that was already read.
    Empty,
    /// White space at both ends removed.
    Trimmed,
    /// A line break added at the end.
    NewlineAdded,
    /// CR LF replaced by LF.
    LineFeeds,
    /// Without white space between tokens.
    Compact,
    /// A space after each comma and colon, as in Python.
    Spaced,
    /// A space after each comma and colon, with `\u….` for non-ASCII characters.
    SpacedAscii,
    /// Indented by two spaces.
    Indented2,
    /// Indented by four spaces.
    Indented4,
    /// Compact, with `\/` for `/` and `\u….` for non-ASCII characters, as in PHP.
    SlashesEscapedAscii,
    /// Compact, with `\u….` for non-ASCII characters.
    CompactAscii,
    /// Members sorted by name, compact.
    Sorted,
    /// Members sorted by name, compact, with `<`, `>` and `&` as `\u00..`, as Go writes a map.
    SortedHtmlSafe,
    /// Members sorted by name, a space after each comma and colon.
    SortedSpaced,
    /// Members sorted by name, indented by two spaces.
    SortedIndented,
    /// Compact, with `<`, `>` and `&` as `\u00..`, as Go writes a struct, and as in Rails.
    HtmlSafe,
    /// Compact, with `<`, `>`, `&`, `=` and `'` as `\u00..`, as in Gson.
    HtmlSafest,
    /// Compact, with `\/` for `/`.
    SlashesEscaped,
    /// Members sorted by name, compact, with `\u….` for non-ASCII characters.
    SortedAscii,
    /// Members sorted by name, a space after each comma and colon, with `\u….` for non-ASCII characters.
    SortedSpacedAscii,
    /// Indented by tabs.
    Tabs,
}

impl Rewriting {
    pub(super) const ALL: [Rewriting; 21] = [
        Rewriting::Empty,
        Rewriting::Trimmed,
        Rewriting::NewlineAdded,
        Rewriting::LineFeeds,
        Rewriting::Compact,
        Rewriting::Spaced,
        Rewriting::SpacedAscii,
        Rewriting::Indented2,
        Rewriting::Indented4,
        Rewriting::SlashesEscapedAscii,
        Rewriting::CompactAscii,
        Rewriting::Sorted,
        Rewriting::SortedHtmlSafe,
        Rewriting::SortedSpaced,
        Rewriting::SortedIndented,
        Rewriting::HtmlSafe,
        Rewriting::HtmlSafest,
        Rewriting::SlashesEscaped,
        Rewriting::SortedAscii,
        Rewriting::SortedSpacedAscii,
        Rewriting::Tabs,
    ];
}

impl fmt::Display for Rewriting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rewriting::Empty => "an empty body",
            Rewriting::Trimmed => "the body without white space at its ends",
            Rewriting::NewlineAdded => "the body with a line break at its end",
            Rewriting::LineFeeds => "the body with CR LF replaced by LF",
            Rewriting::Compact => "the body written compact",
            Rewriting::Spaced => "the body with a space after each comma and colon",
            Rewriting::SpacedAscii => "the body with a space after each comma and colon, in ASCII",
            Rewriting::Indented2 => "the body indented by two spaces",
            Rewriting::Indented4 => "the body indented by four spaces",
            Rewriting::SlashesEscapedAscii => "the body written compact, with escaped slashes, in ASCII",
            Rewriting::CompactAscii => "the body written compact, in ASCII",
            Rewriting::Sorted => "the body with its members sorted",
            Rewriting::SortedHtmlSafe => "the body with its members sorted and `<`, `>`, `&` escaped",
            Rewriting::SortedSpaced => {
                "the body with its members sorted and a space after each comma and colon"
            }
            Rewriting::SortedIndented => "the body with its members sorted and indented",
            Rewriting::HtmlSafe => "the body written compact, with `<`, `>`, `&` escaped",
            Rewriting::HtmlSafest => "the body written compact, with `<`, `>`, `&`, `=`, `'` escaped",
            Rewriting::SlashesEscaped => "the body written compact, with escaped slashes",
            Rewriting::SortedAscii => "the body with its members sorted, in ASCII",
            Rewriting::SortedSpacedAscii => {
                "the body with its members sorted and a space after each comma and colon, in ASCII"
            }
            Rewriting::Tabs => "the body indented by tabs",
        })
    }
}

/// A body and, if it is JSON, its parsed value, also with sorted members.
pub(super) struct ParsedBody<'a> {
    body: &'a [u8],
    node: Option<Node>,
    sorted: Option<Node>,
}

impl<'a> ParsedBody<'a> {
    pub(super) fn new(body: &'a [u8]) -> ParsedBody<'a> {
        let node: Option<Node> = serde_json::from_slice(body).ok();
        let sorted = node.clone().map(Node::sort_members);
        ParsedBody { body, node, sorted }
    }

    /// Returns the changed body; `None` if it does not change, or if the rewriting needs JSON and the body is
    /// not JSON.
    pub(super) fn rewrite(&self, rewriting: Rewriting) -> Option<Vec<u8>> {
        let node = || self.node.as_ref();
        let sorted = || self.sorted.as_ref();
        let text = match rewriting {
            Rewriting::Empty => Vec::new(),
            Rewriting::Trimmed => self.body.trim_ascii().to_vec(),
            Rewriting::NewlineAdded => [self.body, b"\n"].concat(),
            Rewriting::LineFeeds => replace_crlf(self.body),
            Rewriting::Compact => write(node()?, CompactFormatter),
            Rewriting::Spaced => write(node()?, JsonStyle { has_spaces: true, ..JsonStyle::COMPACT }),
            Rewriting::SpacedAscii => {
                write(node()?, JsonStyle { has_spaces: true, is_ascii: true, ..JsonStyle::COMPACT })
            }
            Rewriting::Indented2 => write(node()?, PrettyFormatter::new()),
            Rewriting::Indented4 => write(node()?, PrettyFormatter::with_indent(b"    ")),
            Rewriting::SlashesEscapedAscii => {
                write(node()?, JsonStyle { is_ascii: true, escaped: "/", ..JsonStyle::COMPACT })
            }
            Rewriting::CompactAscii => write(node()?, JsonStyle { is_ascii: true, ..JsonStyle::COMPACT }),
            Rewriting::Sorted => write(sorted()?, CompactFormatter),
            Rewriting::SortedHtmlSafe => write(sorted()?, JsonStyle { escaped: "<>&", ..JsonStyle::COMPACT }),
            Rewriting::SortedSpaced => write(sorted()?, JsonStyle { has_spaces: true, ..JsonStyle::COMPACT }),
            Rewriting::SortedIndented => write(sorted()?, PrettyFormatter::new()),
            Rewriting::HtmlSafe => write(node()?, JsonStyle { escaped: "<>&", ..JsonStyle::COMPACT }),
            Rewriting::HtmlSafest => write(node()?, JsonStyle { escaped: "<>&='", ..JsonStyle::COMPACT }),
            Rewriting::SlashesEscaped => write(node()?, JsonStyle { escaped: "/", ..JsonStyle::COMPACT }),
            Rewriting::SortedAscii => write(sorted()?, JsonStyle { is_ascii: true, ..JsonStyle::COMPACT }),
            Rewriting::SortedSpacedAscii => {
                write(sorted()?, JsonStyle { has_spaces: true, is_ascii: true, ..JsonStyle::COMPACT })
            }
            Rewriting::Tabs => write(node()?, PrettyFormatter::with_indent(b"\t")),
        };
        (text != self.body).then_some(text)
    }
}

/// Replaces CR LF by LF.
fn replace_crlf(body: &[u8]) -> Vec<u8> {
    let mut text = body.to_vec();
    let mut following = body.iter().skip(1).chain([&0]);
    text.retain(|&b| !(following.next() == Some(&b'\n') && b == b'\r'));
    text
}

fn write(node: &Node, formatter: impl Formatter) -> Vec<u8> {
    let mut text = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, formatter);
    node.serialize(&mut serializer).expect("a parsed JSON value can be serialized");
    text
}

/// A JSON value with ordered members. The parser limits its depth.
#[derive(Clone)]
enum Node {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    Text(String),
    Array(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl Node {
    fn sort_members(self) -> Node {
        match self {
            Node::Array(items) => Node::Array(items.into_iter().map(Node::sort_members).collect()),
            Node::Object(members) => {
                let mut members: Vec<_> =
                    members.into_iter().map(|(name, node)| (name, node.sort_members())).collect();
                members.sort_by(|(a, _), (b, _)| a.cmp(b));
                Node::Object(members)
            }
            leaf => leaf,
        }
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Node::Null => serializer.serialize_unit(),
            Node::Bool(value) => serializer.serialize_bool(*value),
            Node::Number(number) => number.serialize(serializer),
            Node::Text(text) => serializer.serialize_str(text),
            Node::Array(items) => serializer.collect_seq(items),
            Node::Object(members) => serializer.collect_map(members.iter().map(|(name, node)| (name, node))),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Node, E> {
        serde_json::Number::from_f64(value).map(Node::Number).ok_or_else(|| E::custom("not a finite number"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Node::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = access.next_entry()? {
            members.push(member);
        }
        Ok(Node::Object(members))
    }
}

/// The format in which a programming language writes JSON on one line.
struct JsonStyle {
    /// `true` for a space after each comma and colon.
    has_spaces: bool,
    /// `true` for `\u….` in place of non-ASCII characters.
    is_ascii: bool,
    /// The ASCII characters that are escaped although JSON does not require it.
    escaped: &'static str,
}

impl JsonStyle {
    const COMPACT: JsonStyle = JsonStyle { has_spaces: false, is_ascii: false, escaped: "" };

    fn write_comma<W: ?Sized + io::Write>(&self, writer: &mut W, is_first: bool) -> io::Result<()> {
        match (is_first, self.has_spaces) {
            (true, _) => Ok(()),
            (false, true) => writer.write_all(b", "),
            (false, false) => writer.write_all(b","),
        }
    }
}

impl Formatter for JsonStyle {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, is_first: bool) -> io::Result<()> {
        self.write_comma(writer, is_first)
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, is_first: bool) -> io::Result<()> {
        self.write_comma(writer, is_first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(if self.has_spaces { b": " } else { b":" })
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        for character in fragment.chars() {
            if character == '/' && self.escaped.contains('/') {
                writer.write_all(b"\\/")?;
            } else if self.escaped.contains(character) || (self.is_ascii && !character.is_ascii()) {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(writer, "\\u{unit:04x}")?;
                }
            } else {
                writer.write_all(character.encode_utf8(&mut [0; 4]).as_bytes())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "{\"b\": [1, 2.5, null],\r\n \"a\": {\"z/\": \"<ü🜁>\", \"y\": true}}\n";

    #[track_caller]
    fn check(rewriting: Rewriting, expected: &str) {
        let text = ParsedBody::new(BODY.as_bytes()).rewrite(rewriting).map(String::from_utf8);
        assert_eq!(text, Some(Ok(expected.to_owned())));
    }

    #[test]
    fn rewritings_write_the_expected_text() {
        check(Rewriting::Empty, "");
        check(Rewriting::Trimmed, BODY.trim());
        check(Rewriting::NewlineAdded, &format!("{BODY}\n"));
        check(Rewriting::LineFeeds, &BODY.replace("\r\n", "\n"));
        check(Rewriting::Compact, r#"{"b":[1,2.5,null],"a":{"z/":"<ü🜁>","y":true}}"#);
        check(Rewriting::Spaced, r#"{"b": [1, 2.5, null], "a": {"z/": "<ü🜁>", "y": true}}"#);
        check(
            Rewriting::SpacedAscii,
            r#"{"b": [1, 2.5, null], "a": {"z/": "<\u00fc\ud83d\udf01>", "y": true}}"#,
        );
        check(
            Rewriting::Indented2,
            "{\n  \"b\": [\n    1,\n    2.5,\n    null\n  ],\n  \"a\": {\n    \"z/\": \"<ü🜁>\",\n    \"y\": true\n  }\n}",
        );
        check(
            Rewriting::SlashesEscapedAscii,
            r#"{"b":[1,2.5,null],"a":{"z\/":"<\u00fc\ud83d\udf01>","y":true}}"#,
        );
        check(Rewriting::CompactAscii, r#"{"b":[1,2.5,null],"a":{"z/":"<\u00fc\ud83d\udf01>","y":true}}"#);
        check(Rewriting::Sorted, r#"{"a":{"y":true,"z/":"<ü🜁>"},"b":[1,2.5,null]}"#);
        check(Rewriting::SortedHtmlSafe, r#"{"a":{"y":true,"z/":"\u003cü🜁\u003e"},"b":[1,2.5,null]}"#);
        check(Rewriting::HtmlSafe, r#"{"b":[1,2.5,null],"a":{"z/":"\u003cü🜁\u003e","y":true}}"#);
        check(Rewriting::SlashesEscaped, r#"{"b":[1,2.5,null],"a":{"z\/":"<ü🜁>","y":true}}"#);
        check(Rewriting::SortedAscii, r#"{"a":{"y":true,"z/":"<\u00fc\ud83d\udf01>"},"b":[1,2.5,null]}"#);
        check(Rewriting::SortedSpaced, r#"{"a": {"y": true, "z/": "<ü🜁>"}, "b": [1, 2.5, null]}"#);
    }

    #[test]
    fn a_rewriting_without_a_change_or_of_invalid_json_is_none() {
        let compact = br#"{"a":1}"#;
        assert_eq!(ParsedBody::new(compact).rewrite(Rewriting::Compact), None);
        assert_eq!(ParsedBody::new(b"not JSON").rewrite(Rewriting::Compact), None);
        assert_eq!(ParsedBody::new(b"").rewrite(Rewriting::Empty), None);
    }
}
