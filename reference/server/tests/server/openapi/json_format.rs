//! [`Node`]: JSON that keeps the order of keys, and its formatter. A value that fits on a line is printed on one line.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The longest line, in bytes.
const WIDTH: usize = 118;

/// A JSON value that preserves the order of its keys.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Map(Vec<(String, Node)>),
    List(Vec<Node>),
    Leaf(Value),
}

impl Node {
    pub(crate) fn read(text: &[u8]) -> Node {
        serde_json::from_slice(text).expect("the text is JSON")
    }

    /// Returns the value of a key, created if it does not exist.
    pub(crate) fn entry(&mut self, key: &str) -> &mut Node {
        let Node::Map(entries) = self else {
            panic!("`{key}` is requested of a value that is not an object")
        };
        let index = entries.iter().position(|(known, _)| known == key).unwrap_or_else(|| {
            entries.push((key.to_owned(), Node::Leaf(Value::Null)));
            entries.len() - 1
        });
        &mut entries[index].1
    }

    /// Returns the formatted file.
    pub(crate) fn print(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, 0, 0);
        text.push('\n');
        text
    }

    /// Appends the value. `column`: the length of the line before it.
    fn write(&self, text: &mut String, depth: usize, column: usize) {
        let line = self.line();
        let (open, close, items): (_, _, Vec<(String, &Node)>) = match self {
            Node::Map(entries) if column + line.len() > WIDTH && !entries.is_empty() => {
                let items =
                    entries.iter().map(|(key, node)| (format!("{}: ", Value::from(key.as_str())), node));
                ('{', '}', items.collect())
            }
            Node::List(nodes) if column + line.len() > WIDTH && !nodes.is_empty() => {
                ('[', ']', nodes.iter().map(|node| (String::new(), node)).collect())
            }
            _ => return text.push_str(&line),
        };
        let indent = "  ".repeat(depth + 1);
        text.push(open);
        for (n, (key, node)) in items.iter().enumerate() {
            text.push_str(if n > 0 { ",\n" } else { "\n" });
            text.push_str(&indent);
            text.push_str(key);
            // 1 for the comma after the value.
            node.write(text, depth + 1, indent.len() + key.len() + 1);
        }
        text.push('\n');
        text.push_str(&"  ".repeat(depth));
        text.push(close);
    }

    /// Returns the value on one line.
    fn line(&self) -> String {
        match self {
            Node::Leaf(value) => value.to_string(),
            Node::Map(entries) if entries.is_empty() => "{}".to_owned(),
            Node::Map(entries) => {
                let all: Vec<String> = entries
                    .iter()
                    .map(|(key, node)| format!("{}: {}", Value::from(key.as_str()), node.line()))
                    .collect();
                format!("{{ {} }}", all.join(", "))
            }
            Node::List(nodes) => {
                let all: Vec<String> = nodes.iter().map(Node::line).collect();
                format!("[{}]", all.join(", "))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Node;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Node::Map(entries))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
                let mut nodes = Vec::new();
                while let Some(node) = items.next_element()? {
                    nodes.push(node);
                }
                Ok(Node::List(nodes))
            }

            fn visit_str<E>(self, text: &str) -> Result<Node, E> {
                Ok(Node::Leaf(text.into()))
            }

            fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
                Ok(Node::Leaf(value.into()))
            }

            fn visit_u64<E>(self, n: u64) -> Result<Node, E> {
                Ok(Node::Leaf(n.into()))
            }

            fn visit_i64<E>(self, n: i64) -> Result<Node, E> {
                Ok(Node::Leaf(n.into()))
            }

            fn visit_f64<E>(self, n: f64) -> Result<Node, E> {
                Ok(Node::Leaf(n.into()))
            }

            fn visit_unit<E>(self) -> Result<Node, E> {
                Ok(Node::Leaf(Value::Null))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

#[test]
fn keys_keep_their_order_and_long_values_span_lines() {
    let text = br#"{"b":[1,{}],"a":{"long":"01234567890123456789012345678901234567890123456789","again":"01234567890123456789012345678901234567890123456789"}}"#;
    let printed = Node::read(text).print();
    assert_eq!(
        printed,
        "{\n  \"b\": [1, {}],\n  \"a\": {\n    \"long\": \"01234567890123456789012345678901234567890123456789\",\n    \
         \"again\": \"01234567890123456789012345678901234567890123456789\"\n  }\n}\n"
    );
    assert_eq!(Node::read(printed.as_bytes()), Node::read(text));
}
