//! Writes the failures of a sweep to files: scenarios and a page.

use std::path::Path;

use simulator::{
    picture::{self, Picture},
    shrink::shrink,
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
    let mut shrunk = shrink(runner, &script, &group.violation);
    let name = format!("invariant-{}-seed-{}.yaml", group.violation.invariant.number(), group.first);
    let path = save_scenario(directory, &name, &shrunk.script.to_yaml())?;
    shrunk.script.path = path.display().to_string();
    Ok(SavedScenario { path, shrunk })
}

/// Returns the page of the shrunken first failure, or else of the first simulation.
pub(super) fn page(sum: &SweepTotals) -> String {
    let group = sum.groups.values().min_by_key(|group| group.first);
    let drawn = || workload::draw(group.map_or(sum.from, |group| group.first)).script;
    let (script, violation) = match group.and_then(|group| group.saved.as_ref()) {
        Some(SavedScenario { shrunk, .. }) => (&shrunk.script, Some(&shrunk.violation)),
        None => (&drawn(), group.map(|group| &group.violation)),
    };
    picture::page(&Picture { script, fault: sum.fault, violation, failure: None })
}
