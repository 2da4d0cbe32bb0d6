//! The grid: all known faults, each injected into the recording of one run against a correct server.
//!
//! The table of the known faults (those of `conformance_faults`) that the suite misses is a golden file, so that a
//! change of its coverage is visible.

use std::collections::BTreeMap;
use std::fmt::Write;

use conformance::{Caller, Mode};
use conformance_faults::{Fault, FaultEffect, FaultTrial, ObservedRequest, fault_trials};

use crate::fake::book::Book;
use crate::fake::sender::Sender;
use crate::fake::{FakeServer, LIVE_KEY, Request, SECOND_KEY, TEST_KEY, run};

/// Returns a correct server that has more events than the longest page and sends deliveries.
pub fn server_with_long_lists() -> FakeServer {
    FakeServer {
        live: Book::with_long_lists(1, 64),
        test: Book::with_long_lists(2, 61),
        sender: Some(Sender { uses_quick_check: false, ..Sender::default() }),
        ..FakeServer::default()
    }
}

/// Makes a correct server inject this fault into its responses.
pub fn inject(fault: Fault, server: &mut FakeServer) {
    server.rewrite_responses(move |request, response| {
        let key = request.authorization.as_deref().and_then(|value| value.strip_prefix("Bearer "));
        let caller = match key {
            Some(LIVE_KEY) => Caller::Own(Mode::Live),
            Some(TEST_KEY) => Caller::Own(Mode::Test),
            Some(SECOND_KEY) => Caller::SecondKey,
            _ => return,
        };
        let Request { path, query, .. } = request;
        fault.inject(&ObservedRequest { caller, path, query, side: None }, response);
    });
}

/// Injects each known fault into the recording of a run with all keys and a receiver, and judges the result.
pub fn grid() -> Vec<FaultTrial> {
    fault_trials(&run(server_with_long_lists()).recording)
}

/// Returns the golden table: the number of noticed faults, the numbers by chapter, and the faults that were missed, not
/// shown or not judged.
pub fn grid_table(trials: &[FaultTrial]) -> String {
    let mut chapters: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    let (mut missed_lines, mut other_lines) = (String::new(), String::new());
    for trial in trials {
        let [noticed, missed, not_shown, not_judged] = chapters.entry(trial.fault.chapter()).or_default();
        let ids = trial.fault.violates.join(" ");
        match &trial.effect {
            FaultEffect::Noticed(_) | FaultEffect::Warned(_) => *noticed += 1,
            FaultEffect::Missed => {
                *missed += 1;
                _ = writeln!(missed_lines, "{}  ({ids})", trial.fault);
            }
            FaultEffect::Absent => {
                *not_shown += 1;
                _ = writeln!(other_lines, "{}", trial.fault);
            }
            FaultEffect::Undecided => {
                *not_judged += 1;
                _ = writeln!(other_lines, "{}  (not judged: {ids})", trial.fault);
            }
        }
    }
    let noticed: usize = chapters.values().map(|counts| counts[0]).sum();
    let mut text = format!("{noticed} of {} known faults are noticed\n\n", trials.len());
    _ = writeln!(
        text,
        "{:<12}{:>9}{:>9}{:>11}{:>12}",
        "chapter", "noticed", "missed", "not shown", "not judged"
    );
    for (name, [noticed, missed, not_shown, not_judged]) in chapters {
        _ = writeln!(text, "{name:<12}{noticed:>9}{missed:>9}{not_shown:>11}{not_judged:>12}");
    }
    _ = writeln!(text, "\nmissed: the fault changes a response, and no statement failed\n{missed_lines}");
    _ = writeln!(text, "not shown: the fault changes no response of this run\n{other_lines}");
    text
}
