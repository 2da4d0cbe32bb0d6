//! A YAML document as a tree of untyped nodes with their positions.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::Number;
use serde_saphyr::{Location, Spanned};

use super::diagnostic::SourceSpan;

/// A node of a document.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    pub(super) span: SourceSpan,
}

/// The value of a node, as YAML reads it without an expected type.
#[derive(Debug)]
pub(super) enum NodeKind {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::deserialize(deserializer)?;
        Ok(Node { kind: value, span: source_span(referenced) })
    }
}

impl<'de> Deserialize<'de> for NodeKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<NodeKind, D::Error> {
        struct NodeVisitor;

        impl<'de> Visitor<'de> for NodeVisitor {
            type Value = NodeKind;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }

            fn visit_unit<E>(self) -> Result<NodeKind, E> {
                Ok(NodeKind::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<NodeKind, E> {
                Ok(NodeKind::Bool(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<NodeKind, E> {
                Ok(NodeKind::Number(value.into()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<NodeKind, E> {
                Ok(NodeKind::Number(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<NodeKind, E> {
                // Numbers that JSON cannot represent become strings.
                Ok(Number::from_f64(value)
                    .map_or_else(|| NodeKind::Text(value.to_string()), NodeKind::Number))
            }

            fn visit_str<E>(self, value: &str) -> Result<NodeKind, E> {
                Ok(NodeKind::Text(value.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<NodeKind, A::Error> {
                let mut list = Vec::new();
                while let Some(node) = elements.next_element()? {
                    list.push(node);
                }
                Ok(NodeKind::List(list))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<NodeKind, A::Error> {
                let mut map = Vec::new();
                while let Some(entry) = entries.next_entry()? {
                    map.push(entry);
                }
                Ok(NodeKind::Map(map))
            }
        }

        deserializer.deserialize_any(NodeVisitor)
    }
}

/// Returns the byte range of a location of the YAML library.
pub(super) fn source_span(location: Location) -> SourceSpan {
    let span = location.span();
    let bytes = |n: Option<u64>| n.and_then(|n| usize::try_from(n).ok());
    SourceSpan {
        offset: bytes(span.byte_offset()).unwrap_or_default(),
        len: bytes(span.byte_len()).unwrap_or_default(),
    }
}
