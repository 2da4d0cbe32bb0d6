//! The settings of the webhook sender.

use std::{sync::Arc, time::Duration};

use simulator::sandbox::Reach;

use super::{Forward, Resolve, SystemResolver};

/// The settings of the webhook sender.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// The network that deliveries are sent over. [`Reach::Simulated`] opens no socket.
    pub reach: Reach,
    /// Additional trusted root certificates in PEM.
    pub extra_roots: Option<Vec<u8>>,
    /// Forwards for development. The first match applies.
    pub forwards: Vec<Forward>,
    /// The resolver of names.
    pub resolver: Arc<dyn Resolve>,
    /// The limits.
    pub bounds: SenderBounds,
}

impl Default for SenderConfig {
    /// Returns settings with simulated deliveries.
    fn default() -> SenderConfig {
        SenderConfig {
            reach: Reach::Simulated,
            extra_roots: None,
            forwards: Vec::new(),
            resolver: Arc::new(SystemResolver),
            bounds: SenderBounds::default(),
        }
    }
}

/// The limits on the duration and number of attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderBounds {
    /// The maximum time for lookup, connection and TLS together.
    pub connect_timeout: Duration,
    /// The maximum time of an attempt, from the lookup to the end of the response.
    pub attempt_timeout: Duration,
    /// The maximum number of concurrent attempts, at least 1. A quarter is a reserve for accounts that have no
    /// slot. An account may take a further slot only while, besides the reserve, more slots are free than it holds.
    pub attempts: usize,
    /// The time after which an attempt is aborted if all slots are in use and an account has none. The longest attempt
    /// of the account with the most slots is aborted first.
    pub abort_after: Duration,
    /// The maximum number of concurrent attempts of one account to one host, at least 1.
    pub attempts_per_host: usize,
    /// The maximum number of concurrent DNS lookups, at least 1, shared like attempts.
    pub lookups: usize,
    /// The maximum number of concurrent DNS lookups of one account, at least 1.
    pub lookups_per_account: usize,
}

impl Default for SenderBounds {
    fn default() -> SenderBounds {
        SenderBounds {
            connect_timeout: Duration::from_secs(5),
            attempt_timeout: Duration::from_secs(15),
            attempts: 256,
            abort_after: Duration::from_secs(3),
            attempts_per_host: 8,
            lookups: 64,
            lookups_per_account: 8,
        }
    }
}
