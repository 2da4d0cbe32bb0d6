//! Writes views as JSON, byte for byte as `serde_json` does.
//!
//! Half of what an answer costs is looking for letters to escape. Names of fields are our own and have none, and
//! most texts are seen to have none sixteen letters at a time.

use std::fmt::{self, Write};

use serde::{
    Serialize, Serializer,
    ser::{Impossible, SerializeMap, SerializeSeq, SerializeStruct},
};

use reference_core::ascii_buf::AsciiBuf;

/// Adds a view to a body.
pub(crate) fn write(body: &mut Vec<u8>, view: &(impl Serialize + ?Sized)) {
    view.serialize(JsonWriter { body, raw: false }).expect("a view is of texts, numbers, lists and objects");
}

/// A number as its owner wrote it.
pub(crate) struct RawJson<'a>(pub(crate) &'a str);

/// A text of ours: ASCII, with nothing to escape. Only the pen writes it as a text; bytes are what it is to others.
#[derive(Clone, Copy)]
pub(crate) struct PlainText<'a>(pub(crate) &'a [u8]);

impl<'a> From<&'a str> for PlainText<'a> {
    fn from(text: &'a str) -> PlainText<'a> {
        PlainText(text.as_bytes())
    }
}

/// How [`RawJson`] tells the pen.
const RAW: &str = "as it is";

impl Serialize for RawJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(RAW, self.0)
    }
}

impl Serialize for PlainText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

struct JsonWriter<'b> {
    body: &'b mut Vec<u8>,
    /// The next text is written as it is.
    raw: bool,
}

/// A list or an object that has begun.
struct Open<'b> {
    body: &'b mut Vec<u8>,
    is_first: bool,
    end: u8,
}

type Done = Result<(), fmt::Error>;

impl<'b> JsonWriter<'b> {
    fn open(self, begin: u8, end: u8) -> Open<'b> {
        self.body.push(begin);
        Open { body: self.body, is_first: true, end }
    }
}

impl Open<'_> {
    fn comma(&mut self) {
        if !std::mem::take(&mut self.is_first) {
            self.body.push(b',');
        }
    }

    fn value(&mut self, value: &(impl Serialize + ?Sized)) -> Done {
        value.serialize(JsonWriter { body: self.body, raw: false })
    }

    fn close(self) -> Done {
        self.body.push(self.end);
        Ok(())
    }
}

impl<'b> Serializer for JsonWriter<'b> {
    type Ok = ();
    type Error = fmt::Error;
    type SerializeSeq = Open<'b>;
    type SerializeMap = Open<'b>;
    type SerializeStruct = Open<'b>;
    type SerializeTuple = Impossible<(), fmt::Error>;
    type SerializeTupleStruct = Impossible<(), fmt::Error>;
    type SerializeTupleVariant = Impossible<(), fmt::Error>;
    type SerializeStructVariant = Impossible<(), fmt::Error>;

    fn serialize_str(self, text: &str) -> Done {
        if self.raw {
            self.body.extend_from_slice(text.as_bytes());
        } else {
            self.body.push(b'"');
            escape(self.body, text.as_bytes());
            self.body.push(b'"');
        }
        Ok(())
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, value: &T) -> Done {
        self.body.push(b'"');
        write!(Escaping(self.body), "{value}")?;
        self.body.push(b'"');
        Ok(())
    }

    fn serialize_bytes(self, plain: &[u8]) -> Done {
        debug_assert!(plain.is_ascii() && is_plain(plain), "{} is not plain", plain.escape_ascii());
        self.body.push(b'"');
        self.body.extend_from_slice(plain);
        self.body.push(b'"');
        Ok(())
    }

    fn serialize_bool(self, truth: bool) -> Done {
        self.body.extend_from_slice(if truth { b"true" } else { b"false" });
        Ok(())
    }

    fn serialize_u64(self, n: u64) -> Done {
        let mut text = AsciiBuf::default();
        text.number(n);
        self.body.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn serialize_u32(self, n: u32) -> Done {
        self.serialize_u64(n.into())
    }

    fn serialize_u16(self, n: u16) -> Done {
        self.serialize_u64(n.into())
    }

    fn serialize_u8(self, n: u8) -> Done {
        self.serialize_u64(n.into())
    }

    fn serialize_none(self) -> Done {
        self.serialize_unit()
    }

    fn serialize_unit(self) -> Done {
        self.body.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Done {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, value: &T) -> Done {
        value.serialize(JsonWriter { raw: name == RAW, ..self })
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Open<'b>, fmt::Error> {
        Ok(self.open(b'[', b']'))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Open<'b>, fmt::Error> {
        Ok(self.open(b'{', b'}'))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Open<'b>, fmt::Error> {
        Ok(self.open(b'{', b'}'))
    }

    // No view has any of these.

    fn serialize_i8(self, _: i8) -> Done {
        Err(fmt::Error)
    }

    fn serialize_i16(self, _: i16) -> Done {
        Err(fmt::Error)
    }

    fn serialize_i32(self, _: i32) -> Done {
        Err(fmt::Error)
    }

    fn serialize_i64(self, _: i64) -> Done {
        Err(fmt::Error)
    }

    fn serialize_f32(self, _: f32) -> Done {
        Err(fmt::Error)
    }

    fn serialize_f64(self, _: f64) -> Done {
        Err(fmt::Error)
    }

    fn serialize_char(self, _: char) -> Done {
        Err(fmt::Error)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Done {
        Err(fmt::Error)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Done {
        Err(fmt::Error)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Done {
        Err(fmt::Error)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, fmt::Error> {
        Err(fmt::Error)
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, fmt::Error> {
        Err(fmt::Error)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, fmt::Error> {
        Err(fmt::Error)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, fmt::Error> {
        Err(fmt::Error)
    }
}

impl SerializeSeq for Open<'_> {
    type Ok = ();
    type Error = fmt::Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.comma();
        self.value(value)
    }

    fn end(self) -> Done {
        self.close()
    }
}

impl SerializeMap for Open<'_> {
    type Ok = ();
    type Error = fmt::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Done {
        self.comma();
        self.value(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.body.push(b':');
        self.value(value)
    }

    fn end(self) -> Done {
        self.close()
    }
}

impl SerializeStruct for Open<'_> {
    type Ok = ();
    type Error = fmt::Error;

    // Inlined, the name's length is known, and it is stored instead of copied.
    #[inline(always)]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Done {
        let before: &[u8] = if std::mem::take(&mut self.is_first) { b"\"" } else { b",\"" };
        self.body.extend_from_slice(before);
        self.body.extend_from_slice(name.as_bytes());
        self.body.extend_from_slice(b"\":");
        self.value(value)
    }

    fn end(self) -> Done {
        self.close()
    }
}

/// Escapes what is printed into it.
struct Escaping<'b>(&'b mut Vec<u8>);

impl Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        escape(self.0, text.as_bytes());
        Ok(())
    }
}

const fn is_special(letter: u8) -> bool {
    letter < b' ' || letter == b'"' || letter == b'\\'
}

fn is_plain(text: &[u8]) -> bool {
    // Without an early end inside, the compiler looks at all sixteen at once.
    let none = |block: &[u8; 16]| !block.iter().fold(false, |found, letter| found | is_special(*letter));
    let (blocks, rest) = text.as_chunks::<16>();
    let mut last = [b' '; 16];
    last[..rest.len()].copy_from_slice(rest);
    blocks.iter().all(none) && none(&last)
}

/// Adds a text's letters, escaped where they must be.
pub(crate) fn escape(body: &mut Vec<u8>, text: &[u8]) {
    if is_plain(text) {
        body.extend_from_slice(text);
        return;
    }
    for &letter in text {
        let short = match letter {
            b'"' => b'"',
            b'\\' => b'\\',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0c => b'f',
            _ if is_special(letter) => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                body.extend_from_slice(b"\\u00");
                body.push(HEX[usize::from(letter >> 4)]);
                body.push(HEX[usize::from(letter & 15)]);
                continue;
            }
            _ => {
                body.push(letter);
                continue;
            }
        };
        body.extend_from_slice(&[b'\\', short]);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Serialize)]
    struct View<'a> {
        text: &'a str,
        #[serde(rename = "type")]
        kind: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        left_out: Option<u64>,
        truth: bool,
        n: u64,
        pairs: BTreeMap<String, Option<u32>>,
        list: Vec<View<'a>>,
    }

    fn view<'a>(text: &'a str, n: u64, list: Vec<View<'a>>) -> View<'a> {
        View {
            text,
            kind: n.is_multiple_of(2).then_some(text),
            left_out: n.is_multiple_of(3).then_some(n),
            truth: n.is_multiple_of(5),
            n,
            pairs: (0..n % 4).map(|n| (format!("{text}{n}"), (n > 0).then_some(7))).collect(),
            list,
        }
    }

    #[track_caller]
    fn check(view: &impl Serialize) {
        let mut body = Vec::new();
        write(&mut body, view);
        assert_eq!(String::from_utf8(body).unwrap(), serde_json::to_string(view).unwrap());
    }

    #[test]
    fn every_letter_is_escaped_as_the_library_does() {
        for letter in 0..=0x110_000 {
            if let Some(letter) = char::from_u32(letter) {
                let text = format!("sixteen letters or so{letter}end");
                if letter < '\u{180}' || u32::from(letter) % 997 == 0 {
                    check(&text);
                }
            }
        }
    }

    #[test]
    fn a_raw_number_stays_as_it_was_written() {
        let mut body = Vec::new();
        write(&mut body, &BTreeMap::from([("a", RawJson("1.50")), ("b", RawJson("-0e5"))]));
        assert_eq!(String::from_utf8(body).unwrap(), r#"{"a":1.50,"b":-0e5}"#);
    }

    #[test]
    fn a_plain_text_is_quoted() {
        let mut body = Vec::new();
        write(&mut body, &vec![PlainText(b"2026-01-05T09:00:00.000000Z"), PlainText(b"")]);
        assert_eq!(String::from_utf8(body).unwrap(), r#"["2026-01-05T09:00:00.000000Z",""]"#);
    }

    #[test]
    fn printed_values_are_escaped() {
        let mut body = Vec::new();
        JsonWriter { body: &mut body, raw: false }.collect_str(&format_args!("a{}\n", '"')).unwrap();
        assert_eq!(String::from_utf8(body).unwrap(), r#""a\"\n""#);
    }

    proptest! {
        #[test]
        fn views_are_written_as_the_library_writes_them(text: String, n: u64, inner: String) {
            check(&view(&text, n, vec![view(&inner, n / 7, Vec::new()), view(&text, n / 2, Vec::new())]));
        }
    }
}
