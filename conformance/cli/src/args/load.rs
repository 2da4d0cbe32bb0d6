//! The command line of `load`.

use std::{num::NonZeroU32, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use reference_core::time::Span;

use super::Format;

/// What to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mix {
    /// Pages of events and charges, single ones, the account
    Read,
    /// Opens charges in mode test; needs `--allow-writes`
    Write,
    /// Posts signed deliveries to a merchant's handler: URL is its address
    Webhook,
}

#[derive(Debug, Args)]
pub(crate) struct Load {
    /// How results are printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// The service's base address, or a handler's with `--mix webhook`
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// So many requests a second; latencies are counted from when a request was due
    #[arg(long, value_name = "R", required_unless_present = "max", conflicts_with = "max")]
    pub(crate) rate: Option<NonZeroU32>,
    /// As many requests as the connections get answered
    #[arg(long)]
    pub(crate) max: bool,
    /// What to ask for
    #[arg(long, value_enum, default_value_t = Mix::Read)]
    pub(crate) mix: Mix,
    /// Ask for this path instead; may be repeated
    #[arg(long, value_name = "PATH", conflicts_with = "mix")]
    pub(crate) path: Vec<String>,
    /// How long
    #[arg(long = "for", value_name = "TIME", default_value = "30s", value_parser = parse_span)]
    pub(crate) span: Duration,
    /// Connections, all kept open
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = parse_count)]
    pub(crate) connections: usize,
    /// Threads [default: as many as there are cores, at most 2]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(crate) threads: Option<usize>,
    /// With `--mix write`: charges may be opened there
    #[arg(long)]
    pub(crate) allow_writes: bool,
    /// With `--mix write`: in this coin [default: the first that the account accepts]
    #[arg(long, value_name = "ASSET")]
    pub(crate) asset: Option<String>,
    /// With `--mix webhook`: the variable that holds the endpoint's secret
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

fn parse_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..=10_000) => Ok(n),
        _ => Err("takes a whole number from 1 to 10000".to_owned()),
    }
}
