//! The command line of `fuzz`.

use std::{num::NonZeroU32, path::PathBuf, time::Duration};

use clap::Args;

use super::{Format, RateLimit};

const EXAMPLES: &str = "\
Examples:
  chargeproof fuzz https://api.example.com
  chargeproof fuzz http://127.0.0.1:8402 --rate off --requests 5000 --allow-writes
  chargeproof fuzz https://api.example.com --save found.json
  chargeproof fuzz https://api.example.com --replay found.json

The keys are read from the environment variables CHARGEPROOF_LIVE_KEY and CHARGEPROOF_TEST_KEY.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Fuzz {
    /// Base URL of the API
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// Seed of the random requests; the same seed sends the same requests [default: random]
    #[arg(long, value_name = "N", value_parser = super::whole_number::<u64>(0..=u64::MAX))]
    pub(crate) seed: Option<u64>,
    /// Number of requests, not counting those that shrink failures
    #[arg(long, value_name = "N", default_value = "400", value_parser = super::whole_number::<NonZeroU32>(1..=u64::from(u32::MAX)), conflicts_with = "replay")]
    pub(crate) requests: NonZeroU32,
    /// Send requests for this long instead, such as 5m
    #[arg(long = "for", value_name = "SPAN", value_parser = super::time_span(super::RUN_SPANS), conflicts_with_all = ["requests", "replay"])]
    pub(crate) run_for: Option<Duration>,
    /// Requests per minute and key, to stay below the rate limit; `off` for a server without one
    #[arg(long, value_name = "N|off", default_value = "110", value_parser = super::parse_rate_limit)]
    pub(crate) rate: RateLimit,
    /// Also create charges, in test mode only
    #[arg(long)]
    pub(crate) allow_writes: bool,
    /// Send only the requests in this file, as written by `--save`
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
    /// Save the failing requests to this file
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) save: Option<PathBuf>,
    /// PEM file with additional certificates to trust, for an HTTPS target
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// Format of the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}
