//! The totals of a sweep: simulations, failures by kind, coverage.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use simulator::{
    demo::DemoFault,
    invariant::{Invariant, Violation},
    shrink::ShrinkResult,
    sweep::{Matrix, Verdict},
};

use crate::signals::INTERRUPTED;

/// Failures of one invariant and shape.
pub(super) struct FailureGroup {
    pub(super) violation: Violation,
    /// The first seed with such a failure. Its simulation is shrunk.
    pub(super) first_seed: u64,
    pub(super) seed_count: u64,
    pub(super) saved: Option<SavedScenario>,
}

/// A failure, shrunk to a scenario.
pub(super) struct SavedScenario {
    pub(super) path: PathBuf,
    pub(super) shrunk: ShrinkResult,
}

/// The totals of all simulations.
#[derive(Default)]
pub(super) struct SweepTotals {
    pub(super) simulations: u64,
    /// The number of second runs of simulations, which are compared with the first.
    pub(super) extra_runs: u64,
    pub(super) events: u64,
    pub(super) attempts: u64,
    /// The number of checks of each invariant.
    pub(super) checks: [u64; Invariant::ALL.len()],
    pub(super) matrix: Matrix,
    pub(super) groups: BTreeMap<(Invariant, String), FailureGroup>,
    /// The differences between two runs of a simulation, by seed.
    pub(super) differing: BTreeMap<u64, String>,
    /// Digests of simulations that were run twice, by seed.
    pub(super) digests: BTreeMap<u64, String>,
    pub(super) elapsed: Duration,
    pub(super) jobs: usize,
    /// The first seed of the sweep.
    pub(super) start_seed: u64,
    /// `true` if a signal ended the sweep early.
    pub(super) interrupted: bool,
    /// The enabled demo fault.
    pub(super) fault: Option<&'static DemoFault>,
}

impl SweepTotals {
    /// Adds the result of a seed.
    pub(super) fn add(&mut self, seed: u64, verdict: Verdict) {
        self.simulations += 1;
        self.extra_runs += verdict.extra_runs;
        self.events += verdict.events;
        self.attempts += verdict.attempts;
        for (total, checks) in self.checks.iter_mut().zip(verdict.findings.checks) {
            *total += checks;
        }
        for cell in verdict.cells {
            self.matrix.record(cell, seed);
        }
        if let Some(difference) = verdict.run_difference {
            self.differing.insert(seed, difference);
        }
        if let Some(digest) = verdict.digest {
            self.digests.insert(seed, digest);
        }
        // Only the first violation counts, because later ones are often its consequences.
        if let Some(violation) = verdict.findings.violations.into_iter().next() {
            let key = (violation.invariant, violation.shape.clone());
            let group = self.groups.entry(key).or_insert(FailureGroup {
                violation: violation.clone(),
                first_seed: seed,
                seed_count: 0,
                saved: None,
            });
            group.seed_count += 1;
            if seed < group.first_seed {
                (group.first_seed, group.violation) = (seed, violation);
            }
        }
    }

    /// Removes all failures except that of the first failing seed. Threads take seeds in order and complete the
    /// simulations that they have started, so the result does not depend on the number of threads.
    pub(super) fn keep_first_failure(&mut self) {
        let first = self.groups.values().map(|group| group.first_seed).min();
        self.groups.retain(|_, group| Some(group.first_seed) == first);
        self.groups.values_mut().for_each(|group| group.seed_count = 1);
    }

    /// Adds the totals of another thread or shard.
    pub(super) fn absorb(&mut self, other: SweepTotals) {
        self.simulations += other.simulations;
        self.extra_runs += other.extra_runs;
        self.events += other.events;
        self.attempts += other.attempts;
        for (total, checks) in self.checks.iter_mut().zip(other.checks) {
            *total += checks;
        }
        self.matrix.absorb(&other.matrix);
        self.differing.extend(other.differing);
        self.digests.extend(other.digests);
        for (key, group) in other.groups {
            match self.groups.get_mut(&key) {
                None => drop(self.groups.insert(key, group)),
                Some(existing) => {
                    existing.seed_count += group.seed_count;
                    if group.first_seed < existing.first_seed {
                        (existing.first_seed, existing.violation) = (group.first_seed, group.violation);
                    }
                }
            }
        }
    }

    /// Returns the exit code: 0 every invariant held · 1 one was violated · 5 two runs of one seed differ · 130
    /// interrupted.
    pub(super) fn exit_code(&self) -> u8 {
        match (self.differing.is_empty(), self.groups.is_empty()) {
            _ if self.interrupted => INTERRUPTED,
            (false, _) => 5,
            (true, false) => 1,
            (true, true) => 0,
        }
    }
}
