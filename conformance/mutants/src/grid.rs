//! The grid: all known faults, injected into the recording of one run against a correct server.
//!
//! A fault that the run does not notice survives. The table of survivors is a golden file, so that changes of a check's
//! coverage are visible.

use std::collections::BTreeMap;
use std::fmt::Write;

use conformance::{Caller, Mode};
use conformance_faults::{Fault, FaultEffect, FaultTrial, ObservedRequest, fault_trials};

use crate::fake::book::Book;
use crate::fake::sender::Sender;
use crate::fake::{FakeServer, LIVE_KEY, Request, SECOND_KEY, TEST_KEY, run};

/// Returns a correct server that has more records than the longest page and sends deliveries.
pub fn server_with_long_lists() -> FakeServer {
    FakeServer {
        live: Book::with_long_lists(1, 64),
        test: Book::with_long_lists(2, 61),
        sender: Some(Sender { quick: false, ..Sender::default() }),
        ..FakeServer::default()
    }
}

/// Makes a correct server inject this fault into its responses.
pub fn inject(fault: Fault, server: &mut FakeServer) {
    server.rewrite(move |request, reply| {
        let key = request.authorization.as_deref().and_then(|text| text.strip_prefix("Bearer "));
        let caller = match key {
            Some(LIVE_KEY) => Caller::Own(Mode::Live),
            Some(TEST_KEY) => Caller::Own(Mode::Test),
            Some(SECOND_KEY) => Caller::Second,
            _ => return,
        };
        let Request { path, query, .. } = request;
        fault.inject(&ObservedRequest { caller, path, query, side: None }, reply);
    });
}

/// Tries all known faults in the recording of a run with all keys and a receiver.
pub fn grid() -> Vec<FaultTrial> {
    fault_trials(&run(server_with_long_lists()).recording)
}

/// Returns the golden table: numbers by chapter, then all survivors with the reason.
pub fn grid_table(all: &[FaultTrial]) -> String {
    let mut chapters: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    let (mut missed, mut absent) = (String::new(), String::new());
    for checked in all {
        let [noticed, not_noticed, not_shown, undecided] =
            chapters.entry(checked.fault.chapter()).or_default();
        let ids = checked.fault.breaks.join(" ");
        match &checked.effect {
            FaultEffect::Noticed(_) | FaultEffect::Warned(_) => *noticed += 1,
            FaultEffect::Missed => {
                *not_noticed += 1;
                _ = writeln!(missed, "{}  ({ids})", checked.fault);
            }
            FaultEffect::Absent => {
                *not_shown += 1;
                _ = writeln!(absent, "{}", checked.fault);
            }
            FaultEffect::Undecided => {
                *undecided += 1;
                _ = writeln!(absent, "{}  (not judged: {ids})", checked.fault);
            }
        }
    }
    let noticed: usize = chapters.values().map(|value| value[0]).sum();
    let mut text = format!("{noticed} of {} known faults are noticed\n\n", all.len());
    _ = writeln!(
        text,
        "{:<12}{:>9}{:>9}{:>11}{:>12}",
        "chapter", "noticed", "missed", "not shown", "not judged"
    );
    for (name, [noticed, missed, absent, undecided]) in chapters {
        _ = writeln!(text, "{name:<12}{noticed:>9}{missed:>9}{absent:>11}{undecided:>12}");
    }
    _ = writeln!(text, "\nmissed: the fault changes a response, and no statement failed\n{missed}");
    _ = writeln!(text, "not shown: the fault changes no response of this run\n{absent}");
    text
}
