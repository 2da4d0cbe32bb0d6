//! The script of a key's addresses, for coins with several.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::asset::AddressFormat;

/// The type of the addresses of a public key. A key has an address of each type, and its wallet watches one type only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Script {
    /// Native segwit, as in BIP-84 accounts: `bc1q…`.
    P2wpkh,
    /// Segwit within a script hash, as in BIP-49 accounts: `3…`.
    P2shP2wpkh,
    /// The oldest type, as in BIP-44 accounts: `1…`.
    P2pkh,
}

impl Script {
    /// All scripts, the most common one first.
    pub const ALL: [Script; 3] = [Script::P2wpkh, Script::P2shP2wpkh, Script::P2pkh];

    /// Returns the name in requests and responses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Script::P2wpkh => "p2wpkh",
            Script::P2shP2wpkh => "p2sh-p2wpkh",
            Script::P2pkh => "p2pkh",
        }
    }

    /// Parses the name.
    pub fn parse(name: &str) -> Option<Script> {
        Script::ALL.into_iter().find(|script| script.as_str() == name)
    }

    /// Returns `true` if a coin of this format has several scripts.
    pub const fn is_for(format: AddressFormat) -> bool {
        matches!(format, AddressFormat::Bitcoin | AddressFormat::Litecoin)
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
