//! The command line of `sweep`.

use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

use clap::{
    Args, Subcommand,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};

use simulator::{demo::DemoFault, exhaust::Scope};

use super::{Format, demo_fault, whole_number};
use crate::shard::ShardChoice;

const EXAMPLES: &str = "\
Examples:
  chargeproof sweep                                       1000 simulations
  chargeproof sweep --for 10m --save failures
  chargeproof sweep --seed 4711 --html world.html         one simulation, with its timeline
  chargeproof sweep scenarios/charge/paid.yaml            check the invariants on a scenario
  chargeproof sweep --demo-fault retry-renamed            demonstrate a failure
  chargeproof sweep --exhaust charge                      every sequence of a few inputs
  chargeproof sweep --seeds 100000 --shard 3/8 --out 3.json";

const MERGE_EXAMPLES: &str = "\
Examples:
  chargeproof sweep merge 1.json 2.json 3.json
  chargeproof sweep merge --watch shards --for 2h --out night.json";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub(crate) struct Sweep {
    #[command(subcommand)]
    pub(crate) task: Option<SweepTask>,
    /// Format of the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Check the invariants on these scenario files instead of on random simulations
    #[arg(value_name = "FILE", conflicts_with_all = ["seeds", "seed", "run_for", "from", "night"])]
    pub(crate) files: Vec<PathBuf>,
    /// Number of simulations [default: 1000]
    #[arg(long, value_name = "N", value_parser = whole_number::<u64>(1..=u64::MAX))]
    pub(crate) seeds: Option<u64>,
    /// Run only the simulation with this seed
    #[arg(long, value_name = "SEED", value_parser = whole_number::<u64>(0..=u64::MAX), conflicts_with_all = ["seeds", "run_for", "from", "night", "shard"])]
    pub(crate) seed: Option<u64>,
    /// Run for this long instead, such as 5m
    #[arg(long = "for", value_name = "SPAN", value_parser = super::time_span(super::RUN_SPANS), conflicts_with = "seeds")]
    pub(crate) run_for: Option<Duration>,
    /// Seed of the first simulation [default: 0]
    #[arg(long, value_name = "SEED", value_parser = whole_number::<u64>(0..=u64::MAX))]
    pub(crate) from: Option<u64>,
    /// Derive the first seed from this text, such as a commit and a date, so that every nightly run has new simulations
    #[arg(long, value_name = "TEXT", conflicts_with = "from")]
    pub(crate) night: Option<String>,
    /// Run only this shard of the simulations, such as 3/8; `auto` reads the shard from the environment variables of
    /// the CI system or scheduler
    #[arg(long, value_name = "I/N", conflicts_with_all = ["run_for", "files"])]
    pub(crate) shard: Option<ShardChoice>,
    /// Save the results to this file, for `sweep merge`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["run_for", "files"])]
    pub(crate) out: Option<PathBuf>,
    /// Number of simulations to run in parallel [default: one per core]
    #[arg(long, value_name = "N", value_parser = whole_number::<NonZeroUsize>(1..=1_024))]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Write an HTML page with a timeline of the first failing simulation or scenario or, if none fails, of the first
    /// one
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Directory for the shrunken failing scenarios; created when needed
    #[arg(long, value_name = "DIR", default_value = "sweep-failures")]
    pub(crate) save: PathBuf,
    /// Run every sequence of the inputs of this scope, instead of random simulations; repeatable
    #[arg(
        long, value_name = "SCOPE", value_parser = scope_parser(),
        conflicts_with_all = ["files", "seeds", "seed", "from", "night", "shard", "out", "html", "coverage"],
    )]
    pub(crate) exhaust: Vec<&'static Scope>,
    /// Maximum length of the sequences [default: depends on the scope]
    #[arg(long, value_name = "N", value_parser = whole_number::<usize>(0..=64), requires = "exhaust")]
    pub(crate) depth: Option<usize>,
    /// Stop at the first simulation that violates an invariant
    #[arg(long, conflicts_with_all = ["files", "exhaust", "shard", "out"])]
    pub(crate) first: bool,
    /// Show which events occurred under which faults, and which combinations never occurred
    #[arg(long, conflicts_with = "files")]
    pub(crate) coverage: bool,
    /// Inject a fault into the simulated worlds, to demonstrate a failure
    #[arg(long, value_name = "NAME", value_parser = demo_fault(), conflicts_with_all = ["shard", "out"])]
    pub(crate) demo_fault: Option<&'static DemoFault>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SweepTask {
    /// Merge the results of shards and list the missing shards
    Merge(Merge),
}

#[derive(Debug, Args)]
#[command(after_help = MERGE_EXAMPLES)]
pub(crate) struct Merge {
    /// Files written by `sweep --out`, in any order
    #[arg(value_name = "FILE", required_unless_present = "watch")]
    pub(crate) files: Vec<PathBuf>,
    /// Merge the result files (*.json) in this directory as they appear, until no shard is missing
    #[arg(long, value_name = "DIR", conflicts_with = "files")]
    pub(crate) watch: Option<PathBuf>,
    /// With `--watch`: maximum time to wait, such as 2h
    #[arg(long = "for", value_name = "SPAN", value_parser = super::time_span(super::RUN_SPANS), requires = "watch")]
    pub(crate) wait_for: Option<Duration>,
    /// Save the merged results to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Directory for the shrunken failing scenarios; created when needed
    #[arg(long, value_name = "DIR", default_value = "sweep-failures")]
    pub(crate) save: PathBuf,
    /// Show which events occurred under which faults, and which combinations never occurred
    #[arg(long)]
    pub(crate) coverage: bool,
    /// Format of the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

fn scope_parser() -> impl TypedValueParser<Value = &'static Scope> {
    let names = Scope::ALL.iter().map(|scope| PossibleValue::new(scope.name).help(scope.description));
    let find = |name: String| Scope::find(&name).ok_or("not a scope");
    PossibleValuesParser::new(names).try_map(find)
}
