//! The result file of one shard, or of several merged shards, with all data for merging.

use std::collections::BTreeMap;

use reference_core::event::EventType;
use serde::{Deserialize, Serialize};
use simulator::{
    invariant::{Invariant, Violation},
    model::Situation,
    sweep::{Cell, Matrix},
    workload::Fault,
};

use super::{FailureGroup, SweepTotals};
use crate::shard::Shard;

/// The version of the format, incremented when older programs would misread it.
const FORMAT: u32 = 1;

/// The content of a result file: the results of one or more shards of one sweep.
// Renamed fields keep their names in the JSON, so that files of older versions can be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ShardResults {
    format: u32,
    pub(super) sweep: SweepSettings,
    #[serde(rename = "parts")]
    pub(super) results: Vec<ShardResult>,
}

/// The settings that all shards of a sweep share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SweepSettings {
    #[serde(rename = "program")]
    pub(super) program_version: String,
    /// The first seed.
    pub(super) from: u64,
    /// The number of seeds.
    pub(super) seeds: u64,
    pub(super) shards: u64,
}

/// The result of one shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ShardResult {
    pub(super) shard: u64,
    /// The number of simulations, one per seed.
    #[serde(rename = "worlds")]
    simulations: u64,
    /// The number of second runs of simulations.
    #[serde(rename = "beside")]
    extra_runs: u64,
    events: u64,
    #[serde(rename = "posts")]
    attempts: u64,
    /// The number of checks of each invariant, by its number.
    checks: BTreeMap<u32, u64>,
    failures: Vec<FailedInvariant>,
    /// Digests of the simulations of this shard that were run twice, by seed.
    pub(super) digests: BTreeMap<u64, String>,
    /// Digests of those simulations of the next shard that this shard runs, too, by seed.
    pub(super) overlap: BTreeMap<u64, String>,
    /// The differences between two runs of a simulation, by seed.
    pub(super) differing: BTreeMap<u64, String>,
    cells: Vec<ReachedCell>,
    jobs: u64,
    took_us: u64,
}

/// The simulations whose first violation is of one invariant and shape: the kind of violation, without names and
/// amounts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FailedInvariant {
    #[serde(rename = "law")]
    invariant: u32,
    shape: String,
    /// The details of the violation with the first seed.
    #[serde(rename = "what")]
    details: String,
    first_seed: u64,
    /// The number of simulations.
    seeds: u64,
}

/// A cell of the coverage matrix, with the first seed that reached it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReachedCell {
    event: String,
    situation: String,
    fault: Option<String>,
    first_seed: u64,
}

impl ShardResults {
    pub(super) fn new(sweep: SweepSettings, results: Vec<ShardResult>) -> ShardResults {
        ShardResults { format: FORMAT, sweep, results }
    }

    /// Parses the content of a result file.
    pub(super) fn parse(text: &str) -> Result<ShardResults, String> {
        let file: ShardResults = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if file.format != FORMAT {
            return Err(format!("the format is {}; this program reads format {FORMAT}", file.format));
        }
        let is_out_of_range = |result: &&ShardResult| !(1..=file.sweep.shards).contains(&result.shard);
        match file.results.iter().find(is_out_of_range) {
            Some(result) => Err(format!("it contains shard {} of {}", result.shard, file.sweep.shards)),
            None => Ok(file),
        }
    }

    /// Returns the content of the result file.
    pub(super) fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).expect("results serialize to JSON") + "\n"
    }
}

impl ShardResult {
    pub(super) fn from_totals(
        shard: Shard,
        totals: &SweepTotals,
        overlap: BTreeMap<u64, String>,
    ) -> ShardResult {
        let failed_invariant = |group: &FailureGroup| FailedInvariant {
            invariant: group.violation.invariant.number(),
            shape: group.violation.shape.clone(),
            details: group.violation.details.clone(),
            first_seed: group.first_seed,
            seeds: group.seed_count,
        };
        let reached_cell = |(cell, seed): (Cell, u64)| ReachedCell {
            event: cell.kind.to_owned(),
            situation: cell.situation.as_str().to_owned(),
            fault: cell.fault.map(|fault| fault.as_str().to_owned()),
            first_seed: seed,
        };
        ShardResult {
            shard: shard.index,
            simulations: totals.simulations,
            extra_runs: totals.extra_runs,
            events: totals.events,
            attempts: totals.attempts,
            checks: Invariant::ALL
                .into_iter()
                .map(|invariant| (invariant.number(), totals.checks[invariant as usize]))
                .collect(),
            failures: totals.groups.values().map(failed_invariant).collect(),
            digests: totals.digests.clone(),
            overlap,
            differing: totals.differing.clone(),
            cells: totals.matrix.reached_cells().map(reached_cell).collect(),
            jobs: totals.jobs as u64,
            took_us: u64::try_from(totals.elapsed.as_micros()).unwrap_or(u64::MAX),
        }
    }

    /// Returns `true` if every simulation of the shard was run, and `false` after an interrupted run.
    pub(super) fn is_complete(&self, sweep: &SweepSettings) -> bool {
        let shard = Shard { index: self.shard, count: sweep.shards };
        let (_, count) = shard.range(sweep.seeds);
        self.simulations >= count
    }

    /// Returns `true` if two results of the shard are equal apart from the duration and the number of jobs.
    pub(super) fn has_same_results(&self, other: &ShardResult) -> bool {
        let without_speed = |result: &ShardResult| ShardResult { jobs: 0, took_us: 0, ..result.clone() };
        without_speed(self) == without_speed(other)
    }

    /// Returns the rank by which one of two equal results is selected; the lower one is faster.
    pub(super) fn speed_rank(&self) -> (u64, u64) {
        (self.took_us, self.jobs)
    }

    /// Adds the result to the totals. Returns an error if it contains names that this program does not know.
    pub(super) fn add_to(&self, totals: &mut SweepTotals) -> Result<(), String> {
        let mut other = SweepTotals {
            simulations: self.simulations,
            extra_runs: self.extra_runs,
            events: self.events,
            attempts: self.attempts,
            differing: self.differing.clone(),
            digests: self.digests.clone(),
            ..SweepTotals::default()
        };
        for (number, checks) in &self.checks {
            other.checks[invariant_by_number(*number)? as usize] = *checks;
        }
        for failed in &self.failures {
            let violation = Violation {
                invariant: invariant_by_number(failed.invariant)?,
                shape: failed.shape.clone(),
                details: failed.details.clone(),
                at: None,
            };
            let key = (violation.invariant, violation.shape.clone());
            let group = FailureGroup {
                violation,
                first_seed: failed.first_seed,
                seed_count: failed.seeds,
                saved: None,
            };
            other.groups.insert(key, group);
        }
        let mut matrix = Matrix::default();
        for cell in &self.cells {
            matrix.record(cell.to_cell()?, cell.first_seed);
        }
        other.matrix = matrix;
        totals.absorb(other);
        totals.jobs += usize::try_from(self.jobs).unwrap_or(usize::MAX);
        // Shards run in parallel.
        totals.elapsed = totals.elapsed.max(std::time::Duration::from_micros(self.took_us));
        Ok(())
    }
}

fn invariant_by_number(number: u32) -> Result<Invariant, String> {
    Invariant::ALL
        .into_iter()
        .find(|invariant| invariant.number() == number)
        .ok_or_else(|| format!("this program has no invariant {number}"))
}

impl ReachedCell {
    fn to_cell(&self) -> Result<Cell, String> {
        let unknown = |name: &str| format!("`{name}` is unknown to this version of the program");
        let kind = EventType::ALL.map(EventType::as_str).into_iter().find(|kind| *kind == self.event);
        let situation = Situation::ALL.into_iter().find(|situation| situation.as_str() == self.situation);
        let fault = match &self.fault {
            None => None,
            Some(name) => Some(
                Fault::ALL.into_iter().find(|fault| fault.as_str() == name).ok_or_else(|| unknown(name))?,
            ),
        };
        Ok(Cell {
            kind: kind.ok_or_else(|| unknown(&self.event))?,
            situation: situation.ok_or_else(|| unknown(&self.situation))?,
            fault,
        })
    }
}
