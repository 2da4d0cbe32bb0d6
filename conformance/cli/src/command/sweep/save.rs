//! Writes the failures of a sweep to scenario files, and renders the page of a simulation.

use std::path::Path;

use simulator::{
    picture::{self, PageInput},
    shrink::shrink,
    sweep::Runner,
    workload,
};

use super::{FailureGroup, SavedScenario, SweepTotals, save_scenario};
use crate::Failure;

/// The maximum number of failure groups that are shrunk.
const SHRUNK_MAX: usize = 20;

/// Shrinks the first failure of each group, and writes it to a file.
pub(super) fn save_groups(totals: &mut SweepTotals, directory: &Path) -> Result<(), Failure> {
    let runner = Runner::with_fault(totals.fault);
    for group in totals.groups.values_mut().take(SHRUNK_MAX) {
        group.saved = Some(save(&runner, directory, group)?);
    }
    Ok(())
}

fn save(runner: &Runner<'_>, directory: &Path, group: &FailureGroup) -> Result<SavedScenario, Failure> {
    let script = workload::draw(group.first_seed).script;
    let mut shrunk = shrink(runner, &script, &group.violation);
    let name = format!("invariant-{}-seed-{}.yaml", group.violation.invariant.number(), group.first_seed);
    let path = save_scenario(directory, &name, &shrunk.script.to_yaml())?;
    shrunk.script.path = path.display().to_string();
    Ok(SavedScenario { path, shrunk })
}

/// Returns the HTML page of the failure with the lowest seed, shrunk if it was saved, or else of the first simulation.
pub(super) fn page(totals: &SweepTotals) -> String {
    let group = totals.groups.values().min_by_key(|group| group.first_seed);
    let draw = || workload::draw(group.map_or(totals.start_seed, |group| group.first_seed)).script;
    let (script, violation) = match group.and_then(|group| group.saved.as_ref()) {
        Some(SavedScenario { shrunk, .. }) => (&shrunk.script, Some(&shrunk.violation)),
        None => (&draw(), group.map(|group| &group.violation)),
    };
    picture::page(&PageInput { script, fault: totals.fault, violation, failure: None })
}
