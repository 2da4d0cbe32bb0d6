//! [`Mode`]: the two modes of the specification, and the path of the account.

use serde::{Deserialize, Serialize};

/// The path that returns the account of the key, below the base address.
pub const ACCOUNT_PATH: &str = "/v1/account";

/// A mode of the service. Each key is for one of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Payments with real coins.
    Live,
    /// Payments on test networks.
    Test,
}

impl Mode {
    /// Both modes.
    pub const BOTH: [Mode; 2] = [Mode::Live, Mode::Test];

    /// Returns the name of the mode in keys and in `meta.mode`.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Live => "live",
            Mode::Test => "test",
        }
    }

    /// Returns the prefix of keys of this mode, such as `svc_live_`.
    pub fn mode_prefix(self, key_prefix: &str) -> String {
        format!("{key_prefix}_{}_", self.as_str())
    }

    /// Splits a key into the mode in its prefix and the part after the prefix; `None` for a key of another format.
    pub fn split_key<'k>(key: &'k str, key_prefix: &str) -> Option<(Mode, &'k str)> {
        Mode::BOTH.into_iter().find_map(|mode| Some((mode, key.strip_prefix(&mode.mode_prefix(key_prefix))?)))
    }

    /// Returns the other mode.
    pub fn other(self) -> Mode {
        match self {
            Mode::Live => Mode::Test,
            Mode::Test => Mode::Live,
        }
    }
}
