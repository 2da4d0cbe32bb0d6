//! The command line of `load`.

use std::{num::NonZeroU32, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use reference_core::time::Span;

use super::{Format, whole_number};

/// The kind of requests of a load test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mix {
    /// GET requests: pages of events and charges, single events and charges, and the account
    Read,
    /// POST requests that create charges in test mode; requires `--allow-writes`
    Write,
    /// POST requests with signed deliveries to the webhook handler at URL
    Webhook,
}

const EXAMPLES: &str = "\
Examples:
  chargeproof load http://127.0.0.1:8402 --rate 200 --for 1m
  chargeproof load http://127.0.0.1:8402 --max --path /v1/account
  chargeproof load http://127.0.0.1:8402 --max --mix write --allow-writes
  chargeproof load http://127.0.0.1:3000/hooks --rate 50 --mix webhook

The key is read from the environment variable CHARGEPROOF_TEST_KEY or CHARGEPROOF_LIVE_KEY.
Load-test your own servers only.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Load {
    /// Format of the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Base URL of the API; with `--mix webhook`, the URL of a webhook handler
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// Requests per second. Latency is measured from the time at which a request was due, so it is free of coordinated
    /// omission
    #[arg(long, value_name = "R", value_parser = whole_number::<NonZeroU32>(1..=u64::from(u32::MAX)), conflicts_with = "max")]
    pub(crate) rate: Option<NonZeroU32>,
    /// Send as fast as possible: each connection sends its next request as soon as it has received a response
    #[arg(long)]
    pub(crate) max: bool,
    /// Kind of the requests to send
    #[arg(long, value_enum, default_value_t = Mix::Read)]
    pub(crate) mix: Mix,
    /// Send GET requests for this path instead of those of `--mix`; repeatable
    #[arg(long, value_name = "PATH", conflicts_with = "mix")]
    pub(crate) path: Vec<String>,
    /// Duration of the test, such as 30s, 5m or 1h30m
    #[arg(long = "for", value_name = "TIME", default_value = "30s", value_parser = super::time_span(Span(1)..=Span::hours(24)))]
    pub(crate) duration: Duration,
    /// Number of open connections
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = whole_number::<usize>(1..=10_000))]
    pub(crate) connections: usize,
    /// Number of threads [default: one per core, at most 2]
    #[arg(long, value_name = "N", value_parser = whole_number::<usize>(1..=10_000))]
    pub(crate) threads: Option<usize>,
    /// With `--mix write`: confirm that charges may be created
    #[arg(long)]
    pub(crate) allow_writes: bool,
    /// With `--mix write`: the coin of the charges [default: the first coin that the account accepts]
    #[arg(long, value_name = "ASSET")]
    pub(crate) asset: Option<String>,
    /// With `--mix webhook`: environment variable with the secret of the endpoint
    #[arg(long, value_name = "NAME", default_value = "CHARGEPROOF_WEBHOOK_SECRET")]
    pub(crate) secret_env: String,
    /// PEM file with additional certificates to trust, for an HTTPS target
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
}
