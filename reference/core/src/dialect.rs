//! Brand names in keys and headers: a deployed service may use other names than `svc` and `Service`.

use serde::{Deserialize, Serialize};

use crate::mode::Mode;

/// Brand names in keys and headers. Read from the configuration, never from a literal elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dialect {
    /// The prefix of keys, before `_live_` and `_test_`.
    pub key_prefix: String,
    /// The prefix of webhook headers, before `-Event`, `-Delivery`, `-Signature`.
    pub header_prefix: String,
    /// The user agent of webhook requests.
    pub user_agent: String,
}

impl Default for Dialect {
    fn default() -> Dialect {
        Dialect {
            key_prefix: "svc".to_owned(),
            header_prefix: "X-Service".to_owned(),
            user_agent: "Service-Webhooks/1.0".to_owned(),
        }
    }
}

impl Dialect {
    /// Returns the start of a mode's keys (`auth.other_prefix`): `svc_live_`.
    pub fn key_start(&self, mode: Mode) -> String {
        format!("{}_{mode}_", self.key_prefix)
    }
}
