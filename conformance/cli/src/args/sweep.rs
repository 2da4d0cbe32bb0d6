//! The arguments of `sweep`.

use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

use clap::Args;
use reference_core::time::Span;

use super::{Format, parse_seed};

#[derive(Debug, Args)]
pub(crate) struct Sweep {
    /// How results are printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Scenario files to judge by the laws, instead of random worlds
    #[arg(value_name = "FILE", conflicts_with_all = ["seeds", "lasting", "from", "html"])]
    pub(crate) files: Vec<PathBuf>,
    /// How many worlds [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: Option<u64>,
    /// Sweep for so long instead, such as 5m
    #[arg(long = "for", value_name = "SPAN", value_parser = parse_span, conflicts_with = "seeds")]
    pub(crate) lasting: Option<Duration>,
    /// The seed of the first world
    #[arg(long, value_name = "SEED", value_parser = parse_seed)]
    pub(crate) from: Option<u64>,
    /// Worlds at the same time [default: one for each processor]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Draw the first world that breaks a law, or the first of all, on one page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Where the scenarios go that failures are made small to
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) save: PathBuf,
}

fn parse_span(text: &str) -> Result<Duration, String> {
    match Span::parse(text) {
        Some(span) if span.0 > 0 => Ok(Duration::from_micros(span.0)),
        _ => Err("takes a length of time such as 30s, 5m or 1h30m".to_owned()),
    }
}
