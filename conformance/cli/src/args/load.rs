//! The command line of `load`.

use std::{num::NonZeroU32, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use reference_core::time::Span;

use super::{Format, whole};

/// The kind of requests of a load test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mix {
    /// GET: pages of events and charges, single ones, the account
    Read,
    /// POST: creates charges in test mode; needs `--allow-writes`
    Write,
    /// POST: signed deliveries to a merchant's webhook handler; URL is its address
    Webhook,
}

const EXAMPLES: &str = "\
Examples:
  chargeproof load http://127.0.0.1:8402 --rate 200 --for 1m
  chargeproof load http://127.0.0.1:8402 --max --path /v1/account
  chargeproof load http://127.0.0.1:8402 --max --mix write --allow-writes
  chargeproof load http://127.0.0.1:3000/hooks --rate 50 --mix webhook

Keys come from CHARGEPROOF_TEST_KEY or CHARGEPROOF_LIVE_KEY. Use it only against your own servers.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Load {
    /// Format of the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Base address of the API; with `--mix webhook`, the address of a handler
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// Requests per second. Latency is measured from when a request was due (no coordinated omission)
    #[arg(long, value_name = "R", value_parser = whole::<NonZeroU32>(1..=u64::from(u32::MAX)), conflicts_with = "max")]
    pub(crate) rate: Option<NonZeroU32>,
    /// No fixed rate: every connection sends its next request as soon as it has a response
    #[arg(long)]
    pub(crate) max: bool,
    /// Requests to send
    #[arg(long, value_enum, default_value_t = Mix::Read)]
    pub(crate) mix: Mix,
    /// Send GET requests for this path instead; repeatable
    #[arg(long, value_name = "PATH", conflicts_with = "mix")]
    pub(crate) path: Vec<String>,
    /// Duration of the test, such as 30s, 5m or 1h30m
    #[arg(long = "for", value_name = "TIME", default_value = "30s", value_parser = parse_span)]
    pub(crate) span: Duration,
    /// Number of connections, all kept open
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = whole::<usize>(1..=10_000))]
    pub(crate) connections: usize,
    /// Number of threads [default: one for each core, at most 2]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..=10_000))]
    pub(crate) threads: Option<usize>,
    /// With `--mix write`: confirm that charges may be created
    #[arg(long)]
    pub(crate) allow_writes: bool,
    /// With `--mix write`: the coin of the charges [default: the first that the account accepts]
    #[arg(long, value_name = "ASSET")]
    pub(crate) asset: Option<String>,
    /// With `--mix webhook`: environment variable that holds the endpoint's secret
    #[arg(long, value_name = "NAME", default_value = "CHARGEPROOF_WEBHOOK_SECRET")]
    pub(crate) secret_env: String,
    /// Trust the certificates in this PEM file too, for a target over https
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
}

fn parse_span(text: &str) -> Result<Duration, String> {
    match Span::parse(text) {
        Some(span) if span > Span(0) && span <= Span::hours(24) => Ok(Duration::from_micros(span.0)),
        _ => Err("takes a time up to 24h such as 30s, 5m or 1h30m".to_owned()),
    }
}
