//! The arguments of `sweep`.

use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

use clap::{Args, Subcommand};
use reference_core::time::Span;

use super::{Format, parse_seed};
use crate::command::sweep::Choice;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Sweep {
    #[command(subcommand)]
    pub(crate) task: Option<SweepTask>,
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
    /// Draw the first seed from a text instead, so that no two nights play the same: a commit and a day
    #[arg(long, value_name = "TEXT", conflicts_with = "from")]
    pub(crate) night: Option<String>,
    /// Play only this part of the worlds, such as 3/8; `auto` asks the engine's variables
    #[arg(long, value_name = "I/N", conflicts_with_all = ["lasting", "files"])]
    pub(crate) shard: Option<Choice>,
    /// Keep the results in this file; `sweep merge` puts those of all shards together
    #[arg(long, value_name = "FILE", conflicts_with_all = ["lasting", "files"])]
    pub(crate) out: Option<PathBuf>,
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

#[derive(Debug, Subcommand)]
pub(crate) enum SweepTask {
    /// Put the results of shards together, and name those that are missing
    Merge(Merge),
}

#[derive(Debug, Args)]
pub(crate) struct Merge {
    /// What `sweep --out` kept, of one or more shards each, in any order
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Keep the merged results in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Where the scenarios go that failures are made small to
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) save: PathBuf,
    /// How results are printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

fn parse_span(text: &str) -> Result<Duration, String> {
    match Span::parse(text) {
        Some(span) if span.0 > 0 => Ok(Duration::from_micros(span.0)),
        _ => Err("takes a length of time such as 30s, 5m or 1h30m".to_owned()),
    }
}
