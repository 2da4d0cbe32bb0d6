//! A YAML document as a tree: what a file says before anybody asks for a type.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::Number;
use serde_saphyr::Spanned;

use super::{diagnostic::SourceSpan, yaml};

/// One node of a document.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) span: SourceSpan,
}

/// What a node is, as YAML reads it when nothing says which type is wanted.
#[derive(Debug)]
pub(super) enum Kind {
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
        Ok(Node { kind: value, span: yaml::span(referenced) })
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Kind, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Kind;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }

            fn visit_unit<E>(self) -> Result<Kind, E> {
                Ok(Kind::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Kind, E> {
                Ok(Kind::Bool(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Kind, E> {
                Ok(Kind::Number(value.into()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Kind, E> {
                Ok(Kind::Number(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Kind, E> {
                // What JSON has no number for is a word.
                Ok(Number::from_f64(value).map_or_else(|| Kind::Text(value.to_string()), Kind::Number))
            }

            fn visit_str<E>(self, value: &str) -> Result<Kind, E> {
                Ok(Kind::Text(value.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Kind, A::Error> {
                let mut list = Vec::new();
                while let Some(node) = elements.next_element()? {
                    list.push(node);
                }
                Ok(Kind::List(list))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Kind, A::Error> {
                let mut map = Vec::new();
                while let Some(entry) = entries.next_entry()? {
                    map.push(entry);
                }
                Ok(Kind::Map(map))
            }
        }

        deserializer.deserialize_any(Any)
    }
}
