//! The test vectors of `vectors.toml`, derived and exported by other software.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;

use super::{Script, base58};
use crate::{asset::AddressFormat, mode::Mode};

/// The vectors, parsed once.
pub(super) static VECTORS: LazyLock<Vectors> = LazyLock::new(|| {
    toml::from_str(include_str!("vectors.toml")).expect("the vectors are TOML of this layout")
});

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Vectors {
    /// Private keys and mnemonics.
    pub private: Vec<String>,
    pub refusals: Vec<RefusedText>,
    /// Lists of addresses by name.
    lists: BTreeMap<String, [String; 3]>,
    /// Single keys and addresses by name.
    keys_and_addresses: BTreeMap<String, String>,
    pub account: Vec<AccountVector>,
    pub seeded: Vec<SeededVector>,
}

/// An account's key and its addresses 0 to 2.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AccountVector {
    pub format: AddressFormat,
    pub mode: Mode,
    /// The script of the wallet's addresses.
    pub script: Option<Script>,
    /// The script that the owner requested.
    pub requested: Option<Script>,
    pub key: String,
    pub addresses: [String; 3],
}

/// A wallet of seed 7 and its addresses 0, 1 and 2³¹ - 1.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SeededVector {
    pub format: AddressFormat,
    pub mode: Mode,
    /// The extended key; `None` if the wallet is a list of addresses.
    pub key: Option<String>,
    pub addresses: [String; 3],
}

/// A text that a wallet refuses.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RefusedText {
    /// The argument of [`Vectors::key_or_address`]; either this or `text` is set.
    name: Option<String>,
    text: Option<String>,
    patch: Option<Patch>,
    pub format: AddressFormat,
    pub mode: Mode,
    pub requested: Option<Script>,
    /// The `WalletError`, as `Debug` prints it.
    pub error: String,
    pub message: Option<String>,
}

/// Bytes that replace those of the decoded text from `offset` on.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Patch {
    offset: usize,
    /// The bytes in hexadecimal.
    bytes: String,
}

impl Vectors {
    /// Returns the key or address with this name, or the first address of the list with this name.
    pub(super) fn key_or_address(&self, name: &str) -> &str {
        self.keys_and_addresses.get(name).unwrap_or_else(|| &self.lists[name][0])
    }

    /// Returns the list of addresses with this name.
    pub(super) fn list(&self, name: &str) -> [&str; 3] {
        self.lists[name].each_ref().map(String::as_str)
    }
}

impl RefusedText {
    /// Returns the text with its patch applied.
    pub(super) fn text(&self) -> String {
        let text = match (&self.name, &self.text) {
            (Some(name), None) => VECTORS.key_or_address(name),
            (None, Some(text)) => text,
            _ => panic!("a refused entry has either a name or a text"),
        };
        self.patch.as_ref().map_or_else(
            || text.to_owned(),
            |patch| {
                with_patched_bytes(
                    text,
                    patch.offset,
                    &hex::decode(&patch.bytes).expect("patches are hexadecimal"),
                )
            },
        )
    }
}

/// Returns a base58check text after replacing payload bytes from `offset` on, with a valid checksum.
pub(super) fn with_patched_bytes(text: &str, offset: usize, bytes: &[u8]) -> String {
    let mut payload = base58::decode(text).expect("only valid texts are patched");
    payload[offset..offset + bytes.len()].copy_from_slice(bytes);
    base58::encode(&payload)
}
