//! Writes the failures of a sweep to files: scenarios and a page.

use std::path::Path;

use simulator::{
    picture::{self, Picture},
    shrink::{Shrunk, shrink},
    sweep::Runner,
    workload,
};

use super::{FailureGroup, SavedScenario, SweepTotals, save_scenario};
use crate::Failure;

/// The maximum number of failure groups that are shrunk.
const SHRUNK_MAX: usize = 20;

/// Shrinks the first failure of each group, and writes it to a file.
pub(super) fn save_groups(sum: &mut SweepTotals, directory: &Path) -> Result<(), Failure> {
    let runner = Runner::with_fault(sum.fault);
    for group in sum.groups.values_mut().take(SHRUNK_MAX) {
        group.saved = Some(save(&runner, directory, group)?);
    }
    Ok(())
}

fn save(runner: &Runner<'_>, directory: &Path, group: &FailureGroup) -> Result<SavedScenario, Failure> {
    let script = workload::draw(group.first).script;
    let Shrunk { script, attempts, .. } = shrink(runner, &script, &group.breach);
    let name = format!("invariant-{}-seed-{}.yaml", group.breach.law.number(), group.first);
    let path = save_scenario(directory, &name, &script.to_yaml())?;
    Ok(SavedScenario { path, steps: script.steps.len(), attempts })
}

/// Returns the page of a seed.
pub(super) fn page(seed: u64, sum: &SweepTotals) -> String {
    let script = workload::draw(seed).script;
    let breach = sum.groups.values().find(|group| group.first == seed).map(|group| &group.breach);
    picture::page(&Picture { script: &script, fault: sum.fault, breach, failure: None })
}
