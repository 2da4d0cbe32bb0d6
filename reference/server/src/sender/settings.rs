//! The settings of the webhook sender.

use std::{sync::Arc, time::Duration};

use simulator::sandbox::Reach;

use super::{Forward, Resolve, SystemResolver};

/// The settings of the webhook sender.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// The reach of deliveries. [`Reach::Simulated`] opens no socket.
    pub reach: Reach,
    /// Certificates to believe beside the usual ones, in PEM.
    pub extra_roots: Option<Vec<u8>>,
    /// Hosts that stand for others, for development. The first that fits is taken.
    pub forwards: Vec<Forward>,
    /// The resolver of names.
    pub resolver: Arc<dyn Resolve>,
    /// The bounds.
    pub bounds: SenderBounds,
}

impl Default for SenderConfig {
    /// Returns settings with which nothing leaves the process.
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

/// The bounds on the duration and number of posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderBounds {
    /// For looking the name up, connecting and TLS together.
    pub connect_time: Duration,
    /// For the whole attempt, from the lookup to the end of the answer.
    pub total_time: Duration,
    /// Posts at a time, at least 1. An account may have as many as it leaves free beside a reserve of a quarter, from which
    /// an account without any takes its first.
    pub posts: usize,
    /// The time after which an attempt gives up its slot if all slots are in use and an account has none. The longest
    /// attempt of the account with the most slots is first.
    pub yield_time: Duration,
    /// Posts at a time of one account to one host, at least 1.
    pub posts_per_host: usize,
    /// Name lookups at a time, at least 1, shared like posts.
    pub lookups: usize,
    /// Name lookups at a time of one account, at least 1.
    pub lookups_per_account: usize,
}

impl Default for SenderBounds {
    fn default() -> SenderBounds {
        SenderBounds {
            connect_time: Duration::from_secs(5),
            total_time: Duration::from_secs(15),
            posts: 256,
            yield_time: Duration::from_secs(3),
            posts_per_host: 8,
            lookups: 64,
            lookups_per_account: 8,
        }
    }
}
