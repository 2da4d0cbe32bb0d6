//! The power of a run: the known faults that its recording would have shown.
//!
//! A run in which every statement passes says little if the target has no data: without a second page, no fault of
//! paging can show. Power measures that. It answers, for each known fault of an implementation, "if the target had
//! this fault, would this run have noticed?", and it needs no second run, because a verdict is a pure function of
//! the recording.
//!
//! For each fault of the `grid` the recorded responses and deliveries that it reaches are changed as a server with
//! the fault would have sent them. The changed recording is judged again, by the statements that the fault breaks,
//! and is changed back. The result is one [`Reach`]:
//!
//! - `Noticed`: a statement that passed before now fails or warns. The fault counts towards the power.
//! - `Missed`: the recording changed and no statement noticed. A hole in the checks.
//! - `Absent`: no recorded response could have shown it. The report lists what the run lacks, for example "page 2
//!   of the list of charges in live mode".
//! - `Undecided`: every statement that could notice it already fails or was not judged.
//!
//! A [`Fault`] has a place (the rows of a list, a single event, a delivery, …), a position (page 2, the last page,
//! …) and a mode, and the grid crosses them: a fault that shows only on the last page of live charges is another
//! one than the same fault in test mode. Because of that the needs are exact, and an operator sees which data to
//! create.
//!
//! Example: in a recording of an account with 30 live charges and 10 test charges, at 25 on a page, the fault "page
//! 2 of the list of charges in live mode: its last record is missing" changes a recorded page, and `paging.length`
//! fails on the changed recording: noticed. The same fault in test mode is absent, because there is no page 2.
//!
//! The same faults are injected into the fake server that tests the suite. Must not contain: a request, a check of
//! its own, or a fault that only this suite's server can have.

use std::collections::{BTreeMap, BTreeSet};

use conformance_judge::{checks, rows_by};
use conformance_model::recording::Recording;
use conformance_model::selection::Profile;
use conformance_model::verdict::Verdict;
use serde::Serialize;

use crate::fault::Fault;
use crate::grid::faults;
use crate::spoil::{Readings, Spoiled};

/// The effect of one fault in a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It would have been noticed, by these statements.
    Noticed(BTreeSet<String>),
    /// It would have caused a warning and no failure, by these statements.
    Warned(BTreeSet<String>),
    /// Every statement that could notice it is broken, or was not judged, without it.
    Undecided,
    /// No recorded response could have shown it.
    Absent,
    /// It could have been seen, and no statement would have noticed it.
    Missed,
}

/// A fault, and what became of it.
pub struct Tried {
    /// The fault.
    pub fault: Fault,
    /// The effect in this recording.
    pub reach: Reach,
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
    /// The needs of the others, each with the number of faults that need it.
    pub needs: BTreeMap<String, usize>,
    /// Those that no statement would have noticed although the run could have seen them, or by a warning only.
    pub missed: Vec<String>,
}

/// Spoils a recording by every known fault in turn, and judges it again by the statements that must notice.
pub fn tried(recording: &Recording) -> Vec<Tried> {
    let sound = worded(recording, |_| true, |verdict| matches!(verdict, Verdict::Pass { .. }));
    let readings = Readings::of(recording);
    let mut recording = recording.clone();
    let try_one = |fault: Fault| {
        let reach = reach(&fault, &mut recording, &readings, &sound);
        Tried { fault, reach }
    };
    faults().into_iter().map(try_one).collect()
}

fn reach(fault: &Fault, recording: &mut Recording, readings: &Readings, sound: &BTreeSet<String>) -> Reach {
    let mut spoiled = Spoiled::by(fault, recording, readings);
    if spoiled.is_empty() {
        return Reach::Absent;
    }
    let able = |id: &str| fault.breaks.contains(&id) && sound.contains(id);
    if !fault.breaks.iter().any(|id| able(id)) {
        return Reach::Undecided;
    }
    spoiled.swap(recording);
    let failed = worded(recording, able, |verdict| matches!(verdict, Verdict::Fail(_)));
    let warned = match failed.is_empty() {
        true => worded(recording, able, |verdict| matches!(verdict, Verdict::Warn(_))),
        false => BTreeSet::new(),
    };
    spoiled.swap(recording);
    match (failed.is_empty(), warned.is_empty()) {
        (false, _) => Reach::Noticed(failed),
        (true, false) => Reach::Warned(warned),
        (true, true) => Reach::Missed,
    }
}

/// The selected statements whose verdict fits.
fn worded(
    recording: &Recording,
    selected: impl Fn(&str) -> bool,
    fits: impl Fn(&Verdict) -> bool,
) -> BTreeSet<String> {
    let rows = rows_by(checks(Profile::Spec).copied(), recording, selected, |_| false);
    rows.into_iter().filter(|row| fits(&row.verdict)).map(|row| row.id).collect()
}

/// The power of a run.
pub fn power(recording: &Recording) -> Power {
    let mut chapters: BTreeMap<&str, Chapter> = BTreeMap::new();
    for Tried { fault, reach } in tried(recording) {
        let chapter = chapters.entry(fault.chapter()).or_default();
        chapter.known += 1;
        match reach {
            Reach::Noticed(_) => chapter.noticed += 1,
            Reach::Missed => chapter.missed.push(fault.to_string()),
            // A job in CI stays green.
            Reach::Warned(_) => chapter.missed.push(format!("{fault} (a warning only)")),
            Reach::Absent | Reach::Undecided => *chapter.needs.entry(fault.needs()).or_default() += 1,
        }
    }
    let chapters: Vec<_> =
        chapters.into_iter().map(|(name, chapter)| Chapter { chapter: name.to_owned(), ..chapter }).collect();
    Power {
        noticed: chapters.iter().map(|it| it.noticed).sum(),
        known: chapters.iter().map(|it| it.known).sum(),
        chapters,
    }
}
