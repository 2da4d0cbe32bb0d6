//! [`Plan`]: the settings of a run.

use std::{num::NonZeroU32, time::Duration};

use url::Url;

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The base URL of the service; for [`Work::Webhook`] the complete URL of the handler.
    pub url: Url,
    /// The pace of requests.
    pub pace: Pace,
    /// The duration of the run.
    pub duration: Duration,
    /// The number of connections, at least one. They stay open between requests.
    pub connections: usize,
    /// The number of threads, at most 64 and at most one per connection; `None` for one per core, at most two.
    pub threads: Option<usize>,
    /// Additional trusted certificates, in PEM.
    pub ca_pem: Option<String>,
    /// The requests to send.
    pub work: Work,
}

/// The pace of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Every connection sends its next request as soon as it has a response.
    Max,
    /// This number of requests is due per second, evenly spread.
    PerSecond(NonZeroU32),
}

/// The requests of a run. The `Debug` output is only the name, without keys and secrets.
#[derive(Clone)]
pub enum Work {
    /// Reads of lists, single objects and the account.
    Read {
        /// The API key.
        key: String,
    },
    /// These paths, in rotation.
    Paths {
        /// The API key, if the paths need one.
        key: Option<String>,
        /// Paths with their queries, such as `/v1/events?per_page=25`.
        paths: Vec<String>,
    },
    /// Creates charges, with a test key.
    Write {
        /// The API key.
        key: String,
        /// The asset of the charges; `None` for the first that the account accepts.
        asset: Option<String>,
    },
    /// Sends signed deliveries to a merchant's handler.
    Webhook {
        /// The signing secret of the endpoint.
        secret: String,
        /// The prefix of the webhook headers, such as `X-Service`.
        header_prefix: String,
        /// The `User-Agent` header.
        user_agent: String,
    },
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Work {
    /// Returns the name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Work::Read { .. } => "read",
            Work::Paths { .. } => "paths",
            Work::Write { .. } => "write",
            Work::Webhook { .. } => "webhook",
        }
    }
}

/// The reason why a run did not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartError {
    /// The plan is invalid, the target rejects a request that prepares the run, or the async runtime cannot start.
    Usage(String),
    /// The host cannot be resolved, or does not send a valid response.
    Unreachable(String),
}
