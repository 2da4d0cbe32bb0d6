//! The script of a key's addresses, where one coin has several kinds.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::asset::AddressForm;

/// The kind of address that is made from a public key. The same key has one of each kind, and a wallet watches only
/// its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Script {
    /// Native segwit, as BIP-84 accounts have it: `bc1q…`.
    P2wpkh,
    /// Segwit within a script hash, as BIP-49 accounts have it: `3…`.
    P2shP2wpkh,
    /// The oldest kind, as BIP-44 accounts have it: `1…`.
    P2pkh,
}

impl Script {
    /// Every kind, the usual one first.
    pub const ALL: [Script; 3] = [Script::P2wpkh, Script::P2shP2wpkh, Script::P2pkh];

    /// The word in requests and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Script::P2wpkh => "p2wpkh",
            Script::P2shP2wpkh => "p2sh-p2wpkh",
            Script::P2pkh => "p2pkh",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Script> {
        Script::ALL.into_iter().find(|script| script.as_str() == word)
    }

    /// Returns `true` if a coin of this form has these kinds of address.
    pub const fn is_for(form: AddressForm) -> bool {
        matches!(form, AddressForm::Bitcoin | AddressForm::Litecoin)
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
