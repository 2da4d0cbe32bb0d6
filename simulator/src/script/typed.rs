//! Deserializes typed values with their positions from the tree of a YAML document. The YAML library's own deserializer
//! is large and compiled again for each type, so it is used for the tree only.

use std::{borrow::Cow, fmt, marker::PhantomData, ops::Deref, slice};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{
        self, DeserializeSeed, EnumAccess, Error as _, Expected, IntoDeserializer, MapAccess, SeqAccess,
        Unexpected, VariantAccess, Visitor,
    },
};

use crate::value::did_you_mean;

use super::{
    diagnostic::{Diagnostic, SourceSpan, list_allowed},
    node::{Node, NodeKind},
};

/// The struct name by which [`At`] requests its position from the deserializer.
const AT: &str = "simulator::script::At";

/// A value and its position in the file.
#[derive(Clone, Debug)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// The position in the file.
    pub span: SourceSpan,
}

impl<T> Deref for At<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Serialize> Serialize for At<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<At<T>, D::Error> {
        struct AtVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for AtVisitor<T> {
            type Value = At<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value of a scenario file")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<At<T>, A::Error> {
                let missing = |n| A::Error::invalid_length(n, &self);
                let offset = parts.next_element()?.ok_or_else(|| missing(0))?;
                let len = parts.next_element()?.ok_or_else(|| missing(1))?;
                let value = parts.next_element()?.ok_or_else(|| missing(2))?;
                Ok(At { value, span: SourceSpan { offset, len } })
            }
        }

        deserializer.deserialize_newtype_struct(AT, AtVisitor(PhantomData))
    }
}

/// Deserializes a typed value from a node.
///
/// # Errors
///
/// The first value that the type refuses, with its position.
pub(super) fn deserialize_node<'a, T: Deserialize<'a>>(
    node: &'a Node,
    source: &'a str,
) -> Result<T, Diagnostic> {
    NodeReader { node, source }.read(PhantomData).map_err(|Refusal { title, label, span }| Diagnostic {
        title: title.to_owned(),
        span: span.unwrap_or(node.span),
        label,
    })
}

/// The reason why a node cannot be deserialized. The position is that of the innermost refused node.
#[derive(Debug)]
struct Refusal {
    title: &'static str,
    label: String,
    span: Option<SourceSpan>,
}

impl Refusal {
    fn with_default_span(mut self, span: SourceSpan) -> Refusal {
        self.span.get_or_insert(span);
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

impl std::error::Error for Refusal {}

fn refusal(title: &'static str, label: String) -> Refusal {
    Refusal { title, label, span: None }
}

impl de::Error for Refusal {
    fn custom<T: fmt::Display>(message: T) -> Refusal {
        refusal("invalid value", message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Refusal {
        let found = if found == Unexpected::Unit { "nothing".to_owned() } else { found.to_string() };
        Refusal::custom(format_args!("found {found}; expected {expected}"))
    }

    fn unknown_variant(name: &str, known: &'static [&'static str]) -> Refusal {
        let title = if known.contains(&"expect") { "unknown step" } else { "unknown value" };
        refusal(title, did_you_mean(name, known.iter().copied()).unwrap_or_else(|| list_allowed(known)))
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Refusal {
        if key == "scenario" && known.contains(&"steps") {
            let hint = "is the JSON response of /sandbox/scenario; request it with `Accept: application/yaml` and play that file";
            return refusal("this is not a scenario file", hint.to_owned());
        }
        refusal(
            "unknown key",
            did_you_mean(key, known.iter().copied()).unwrap_or_else(|| list_allowed(known)),
        )
    }

    fn missing_field(key: &'static str) -> Refusal {
        refusal("a key is missing", format!("needs `{key}`"))
    }
}

/// A node, and the source text, which preserves the digits of numbers.
#[derive(Clone, Copy)]
struct NodeReader<'a> {
    node: &'a Node,
    source: &'a str,
}

impl<'a> NodeReader<'a> {
    fn with_node(self, node: &'a Node) -> NodeReader<'a> {
        NodeReader { node, ..self }
    }

    /// Deserializes a value from the node. A refusal without a position gets the position of this node.
    fn read<T: DeserializeSeed<'a>>(self, seed: T) -> Result<T::Value, Refusal> {
        seed.deserialize(self).map_err(|refusal| refusal.with_default_span(self.node.span))
    }

    /// Returns the text of a scalar as written in the file: `0.50` preserves its zero.
    fn scalar_text(self) -> Option<&'a str> {
        match &self.node.kind {
            NodeKind::Text(text) => Some(text),
            NodeKind::Bool(_) | NodeKind::Number(_) => {
                let SourceSpan { offset, len } = self.node.span;
                self.source.get(offset..offset.saturating_add(len))
            }
            NodeKind::Null | NodeKind::List(_) | NodeKind::Map(_) => None,
        }
    }

    fn is_null(self) -> bool {
        matches!(self.node.kind, NodeKind::Null)
    }
}

macro_rules! whole_numbers {
    ($($method:ident $visit:ident $type:ty),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
            let integer = match &self.node.kind {
                NodeKind::Number(number) => number.as_i64().map(i128::from).or(number.as_u64().map(i128::from)),
                _ => None,
            };
            match integer.map(<$type>::try_from) {
                Some(Ok(number)) => visitor.$visit(number),
                Some(Err(_)) => {
                    let (min, max) = (<$type>::MIN, <$type>::MAX);
                    Err(Refusal::custom(format_args!("expected a whole number from {min} to {max}")))
                }
                None => Err(Refusal::custom("expected a whole number")),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for NodeReader<'de> {
    type Error = Refusal;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match &self.node.kind {
            NodeKind::Null => visitor.visit_unit(),
            NodeKind::Bool(value) => visitor.visit_bool(*value),
            NodeKind::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), ..) => visitor.visit_u64(number),
                (_, Some(number), _) => visitor.visit_i64(number),
                (.., number) => visitor.visit_f64(number.unwrap_or(f64::NAN)),
            },
            NodeKind::Text(text) => visitor.visit_borrowed_str(text),
            NodeKind::List(nodes) => visitor.visit_seq(Elements { nodes: nodes.iter(), source: self.source }),
            NodeKind::Map(entries) => {
                visitor.visit_map(Entries { entries: entries.iter(), value: None, source: self.source })
            }
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match self.node.kind {
            NodeKind::Bool(_) => self.deserialize_any(visitor),
            _ => Err(Refusal::custom("expected `true` or `false`")),
        }
    }

    whole_numbers!(
        deserialize_i8 visit_i8 i8,
        deserialize_i16 visit_i16 i16,
        deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64,
        deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64
    );

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match self.scalar_text() {
            Some(text) => visitor.visit_borrowed_str(text),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        if self.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        match name {
            AT => visitor.visit_seq(AtParts { reader: self, parts_read: 0 }),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    /// Reads null as a list without elements.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        if self.is_null() {
            return visitor.visit_seq(Elements { nodes: [].iter(), source: self.source });
        }
        self.deserialize_any(visitor)
    }

    /// Reads null as a map without keys.
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        if self.is_null() {
            return visitor.visit_map(Entries { entries: [].iter(), value: None, source: self.source });
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        self.deserialize_map(visitor)
    }

    /// Accepts the name of a variant, or a map with the name as its only key.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        let (name, value) = match &self.node.kind {
            NodeKind::Map(entries) => match entries.as_slice() {
                [(key, value)] => (self.with_node(key), Some(self.with_node(value))),
                [_, (second, _), ..] => {
                    let label = "a step has one key; begin the next step with `-`".to_owned();
                    return Err(refusal("a step has two keys", label).with_default_span(second.span));
                }
                [] => return Err(Refusal::custom("expected a map with one key, but it is empty")),
            },
            _ => (self, None),
        };
        visitor.visit_enum(Variant { name, value })
    }

    serde::forward_to_deserialize_any! {
        i128 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct ignored_any
    }
}

/// The elements of a list.
struct Elements<'a> {
    nodes: slice::Iter<'a, Node>,
    source: &'a str,
}

impl<'de> SeqAccess<'de> for Elements<'de> {
    type Error = Refusal;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Refusal> {
        self.nodes.next().map(|node| NodeReader { node, source: self.source }.read(seed)).transpose()
    }
}

/// The entries of a map.
struct Entries<'a> {
    entries: slice::Iter<'a, (Node, Node)>,
    /// The value of the last returned key.
    value: Option<&'a Node>,
    source: &'a str,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Refusal;

    fn next_key_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Refusal> {
        let Some((key, value)) = self.entries.next() else { return Ok(None) };
        self.value = Some(value);
        NodeReader { node: key, source: self.source }.read(seed).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Refusal> {
        let node = self.value.take().ok_or_else(|| Refusal::custom("a value without a key"))?;
        NodeReader { node, source: self.source }.read(seed)
    }
}

/// The parts of an [`At`]: offset, length and value.
struct AtParts<'a> {
    reader: NodeReader<'a>,
    parts_read: u8,
}

impl<'de> SeqAccess<'de> for AtParts<'de> {
    type Error = Refusal;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Refusal> {
        let SourceSpan { offset, len } = self.reader.node.span;
        self.parts_read += 1;
        match self.parts_read {
            1 => seed.deserialize(offset.into_deserializer()).map(Some),
            2 => seed.deserialize(len.into_deserializer()).map(Some),
            3 => self.reader.read(seed).map(Some),
            _ => Ok(None),
        }
    }
}

/// The name of an enum variant, and its value.
struct Variant<'a> {
    name: NodeReader<'a>,
    value: Option<NodeReader<'a>>,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Refusal;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self), Refusal> {
        Ok((self.name.read(seed)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = Refusal;

    fn unit_variant(self) -> Result<(), Refusal> {
        match self.value {
            Some(value) if !value.is_null() => {
                Err(Refusal::custom("must not have a value").with_default_span(value.node.span))
            }
            _ => Ok(()),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Refusal> {
        let message = "a value is missing; write `: ` and the value after this word";
        self.value.ok_or_else(|| Refusal::custom(message).with_default_span(self.name.node.span))?.read(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Refusal> {
        self.value.unwrap_or(self.name).deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        self.value.unwrap_or(self.name).deserialize_map(visitor)
    }
}
