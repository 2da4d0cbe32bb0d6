//! The two modes of an account, which share no object: live and test.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The mode of a key, and of everything created with it (`isolation.created`, `isolation.not_found`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Mode {
    /// Real coins, main networks.
    Live,
    /// Test networks; nothing has value.
    Test,
}

impl Mode {
    /// Both modes, in the order in which they are listed everywhere.
    pub const ALL: [Mode; 2] = [Mode::Live, Mode::Test];

    /// Returns the name in keys, payloads and files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Mode::Live => "live",
            Mode::Test => "test",
        }
    }

    /// Parses `live` or `test`.
    pub fn parse(text: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.as_str() == text)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
