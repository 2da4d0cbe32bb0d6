//! The power of a run: the known faults that its recording would have revealed.
//!
//! A run in which every statement passes means little if the target has no data: without a second page, no fault of
//! paging can be detected. Power measures this: it determines for each known fault whether this run would have
//! noticed it in the target. It needs no second run, because a verdict is a pure function of the recording.
//!
//! For each fault of the `grid`, the affected responses and deliveries of the recording are changed as a server with
//! the fault would have sent them. The changed recording is judged again by the statements that the fault violates,
//! and then restored. The result is one [`FaultEffect`]:
//!
//! - `Noticed`: a statement that passed before now fails. The fault counts towards the power.
//! - `Warned`: a statement that passed before now warns, and none fails. The report lists the fault as missed.
//! - `Missed`: the recording changed, but no statement fails or warns. A gap in the checks.
//! - `Absent`: the fault affects no recorded response. The report lists the missing data, for example "page 2 of the
//!   list of charges in live mode".
//! - `Undecided`: no statement that could notice the fault passed before.
//!
//! A [`Fault`] has an injection point (the rows of a list, a single event, a delivery, …), a position (page 2, the
//! last page, …) and a mode, and the grid is their product: a fault on the last page of live charges is different from
//! the same fault in test mode. So the report lists exactly the data that the operator should create.
//!
//! Example: in a recording of an account with 30 live charges and 10 test charges, at 25 on a page, the fault "page
//! 2 of the list of charges in live mode: its last record is missing" changes a recorded page, and `paging.length`
//! fails on the changed recording: noticed. The same fault in test mode is absent, because there is no page 2.
//!
//! The same faults are injected into the fake server that tests the suite. This module must not contain a request, a
//! check, or a fault that only the fake server can have.

use std::collections::{BTreeMap, BTreeSet};

use conformance_judge::{checks, judge_with};
use conformance_model::recording::Recording;
use conformance_model::selection::Profile;
use conformance_model::verdict::Verdict;
use serde::Serialize;

use crate::fault::Fault;
use crate::grid::faults;
use crate::injection::{InjectedChanges, ParsedResponses};

/// The effect of one fault in a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultEffect {
    /// These statements would have failed.
    Noticed(BTreeSet<String>),
    /// These statements would have warned, and none failed.
    Warned(BTreeSet<String>),
    /// No statement that could notice the fault passes without it.
    Undecided,
    /// No recorded response could have revealed it.
    Absent,
    /// No statement would have noticed it, although it affects recorded responses.
    Missed,
}

/// A fault and its effect.
pub struct FaultTrial {
    /// The fault.
    pub fault: Fault,
    /// The effect in this recording.
    pub effect: FaultEffect,
}

/// The power of a run: the known faults that it would have noticed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Deserialize))]
#[cfg_attr(feature = "schema", serde(deny_unknown_fields))]
pub struct Power {
    /// The number of noticed faults.
    pub noticed: usize,
    /// The number of known faults.
    pub known: usize,
    /// The same by chapters of statements.
    pub chapters: Vec<Chapter>,
}

/// The known faults of one chapter of statements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Deserialize))]
#[cfg_attr(feature = "schema", serde(deny_unknown_fields))]
pub struct Chapter {
    /// Its name.
    pub chapter: String,
    /// The number of its noticed faults.
    pub noticed: usize,
    /// The number of known faults.
    pub known: usize,
    /// The data that is missing for the other faults, with the number of faults that need each.
    pub needs: BTreeMap<String, usize>,
    /// The faults that no statement would have noticed although they affect recorded responses, and those with a
    /// warning only.
    pub missed: Vec<String>,
}

/// Injects each known fault into a copy of the recording, and judges it by the statements that the fault violates.
pub fn fault_trials(recording: &Recording) -> Vec<FaultTrial> {
    let passing_ids =
        ids_with_verdict(recording, |_| true, |verdict| matches!(verdict, Verdict::Pass { .. }));
    let responses = ParsedResponses::from_recording(recording);
    let mut recording = recording.clone();
    let inject = |fault: Fault| {
        let effect = effect(&fault, &mut recording, &responses, &passing_ids);
        FaultTrial { fault, effect }
    };
    faults().into_iter().map(inject).collect()
}

/// Determines the effect of a fault. Changes the recording and restores it.
fn effect(
    fault: &Fault,
    recording: &mut Recording,
    responses: &ParsedResponses,
    passing_ids: &BTreeSet<String>,
) -> FaultEffect {
    let mut changes = InjectedChanges::compute(fault, recording, responses);
    if changes.is_empty() {
        return FaultEffect::Absent;
    }
    let can_notice = |id: &str| fault.violates.contains(&id) && passing_ids.contains(id);
    if !fault.violates.iter().any(|id| can_notice(id)) {
        return FaultEffect::Undecided;
    }
    changes.swap_with(recording);
    let failed = ids_with_verdict(recording, can_notice, |verdict| matches!(verdict, Verdict::Fail(_)));
    let warned = match failed.is_empty() {
        true => ids_with_verdict(recording, can_notice, |verdict| matches!(verdict, Verdict::Warn(_))),
        false => BTreeSet::new(),
    };
    changes.swap_with(recording);
    match (failed.is_empty(), warned.is_empty()) {
        (false, _) => FaultEffect::Noticed(failed),
        (true, false) => FaultEffect::Warned(warned),
        (true, true) => FaultEffect::Missed,
    }
}

/// Returns the ids of the selected statements with a matching verdict.
fn ids_with_verdict(
    recording: &Recording,
    is_selected: impl Fn(&str) -> bool,
    matches: impl Fn(&Verdict) -> bool,
) -> BTreeSet<String> {
    let rows = judge_with(checks(Profile::Spec).copied(), recording, is_selected, |_| false);
    rows.into_iter().filter(|row| matches(&row.verdict)).map(|row| row.id).collect()
}

/// Computes the power of a run.
pub fn power(recording: &Recording) -> Power {
    let mut chapters: BTreeMap<&str, Chapter> = BTreeMap::new();
    for FaultTrial { fault, effect } in fault_trials(recording) {
        let chapter = chapters.entry(fault.chapter()).or_default();
        chapter.known += 1;
        match effect {
            FaultEffect::Noticed(_) => chapter.noticed += 1,
            FaultEffect::Missed => chapter.missed.push(fault.to_string()),
            // A warning does not fail a CI job.
            FaultEffect::Warned(_) => chapter.missed.push(format!("{fault} (warning only)")),
            FaultEffect::Absent | FaultEffect::Undecided => {
                *chapter.needs.entry(fault.required_data()).or_default() += 1
            }
        }
    }
    let chapters: Vec<_> =
        chapters.into_iter().map(|(name, chapter)| Chapter { chapter: name.to_owned(), ..chapter }).collect();
    Power {
        noticed: chapters.iter().map(|chapter| chapter.noticed).sum(),
        known: chapters.iter().map(|chapter| chapter.known).sum(),
        chapters,
    }
}
