//! What `chargeproof fuzz` takes.

use std::{num::NonZeroU32, path::PathBuf};

use clap::Args;

use super::{Format, RateLimit};

#[derive(Debug, Args)]
pub(crate) struct Fuzz {
    /// The service's base address. Its keys come from CHARGEPROOF_LIVE_KEY and CHARGEPROOF_TEST_KEY
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// What the requests are drawn from; the same seed asks the same [default: random]
    #[arg(long, value_name = "N", value_parser = super::parse_seed)]
    pub(crate) seed: Option<u64>,
    /// How many requests, beside those that shrink what is found
    #[arg(long, value_name = "N", default_value = "400", conflicts_with = "replay")]
    pub(crate) requests: NonZeroU32,
    /// Requests per minute and key, so that the limit is kept; `off` for a server without one
    #[arg(long, value_name = "N|off", default_value = "110", value_parser = super::parse_rate_limit)]
    pub(crate) rate: RateLimit,
    /// Open charges too, in test mode only
    #[arg(long)]
    pub(crate) allow_writes: bool,
    /// Ask again what `--save` kept, and nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
    /// Keep what is found in this file
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) save: Option<PathBuf>,
    /// Trust the certificates in this PEM file too, for a target over https
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}
