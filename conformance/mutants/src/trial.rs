//! [`Trial`]: the result of a run of the suite against a test server ([`Subject`]), compared with the expected failures.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use conformance::{Outcome, StatementResult, Verdict, uses_deliveries};

use crate::combination::Combination;
use crate::fake::{FakeServer, run, run_with};
use crate::{Mutant, TABLES, Variant};

/// The exit codes of a complete run: 0 if no statement failed, else 1.
const COMPLETE: &[u8] = &[0, 1];
/// The exit codes of a run that may be incomplete. The code 3 means that a required statement was not judged.
const COMPLETE_OR_NOT: &[u8] = &[0, 1, 3];

/// A test server, with the expected result.
pub struct Subject {
    /// The description of the fault, the legal choice or the combination.
    pub name: String,
    /// The statements that must fail. Empty for a correct server.
    pub violates: &'static [&'static str],
    /// The statements that may fail too.
    pub may_fail: &'static [&'static str],
    /// Runs the check. Returns a row per statement, with its verdict, or the reason why there is no usable result.
    run_check: Box<dyn Fn() -> Result<Vec<StatementResult>, String> + Send + Sync>,
}

/// The result of a run against a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The name of the subject.
    pub name: String,
    /// The statements that failed or warned.
    pub broken: BTreeSet<String>,
    /// The deviation from the expected result, if there is one.
    pub deviation: Option<String>,
}

impl From<&'static Mutant> for Subject {
    fn from(mutant: &'static Mutant) -> Subject {
        let Mutant { name, violates, may_fail, .. } = mutant;
        let run_check = Box::new(|| run_check(|server| mutant.inject(server), COMPLETE_OR_NOT));
        Subject { name: (*name).to_owned(), violates, may_fail, run_check }
    }
}

impl From<&'static Variant> for Subject {
    fn from(variant: &'static Variant) -> Subject {
        let Variant { name, warns, choose } = variant;
        Subject {
            name: (*name).to_owned(),
            violates: &[],
            may_fail: warns,
            run_check: Box::new(|| run_check(*choose, COMPLETE)),
        }
    }
}

impl From<Combination> for Subject {
    fn from(combination: Combination) -> Subject {
        let (name, may_fail) = (combination.to_string(), combination.variant.warns);
        let run_check = move || {
            let mut server = FakeServer::default();
            combination.prepare(&mut server);
            let outcome = run_with(server, |plan| plan.quick |= combination.is_quick);
            let has_no_burst = outcome.recording.no_burst.is_some();
            let is_allowed =
                |id: &str| (has_no_burst && id.starts_with("limits.")) || combination.may_leave_unjudged(id);
            let mut unjudged = outcome.rows.iter().filter(|row| row.is_unjudged_must());
            let may_be_incomplete = !combination.is_moderate() || unjudged.all(|row| is_allowed(&row.id));
            checked_rows(outcome, if may_be_incomplete { COMPLETE_OR_NOT } else { COMPLETE })
        };
        Subject { name, violates: &[], may_fail, run_check: Box::new(run_check) }
    }
}

/// Checks a changed server. Returns what [`checked_rows`] returns.
fn run_check(change: impl Fn(&mut FakeServer), exit_codes: &[u8]) -> Result<Vec<StatementResult>, String> {
    let mut server = FakeServer::default();
    change(&mut server);
    checked_rows(run(server), exit_codes)
}

/// Returns the rows of a run, or an error if it has none of these exit codes or exceeded its budget of requests.
fn checked_rows(outcome: Outcome, exit_codes: &[u8]) -> Result<Vec<StatementResult>, String> {
    let exit_code = outcome.exit_code();
    if !exit_codes.contains(&exit_code) {
        let unjudged = outcome.rows.iter().filter(|row| row.is_unjudged_must());
        let ids: Vec<_> = unjudged.map(|row| row.id.as_str()).collect();
        return Err(format!("exit code {exit_code}, {:?}, not judged: {}", outcome.stop, ids.join(", ")));
    }
    let (spent, allowed) = (&outcome.ledger, &outcome.budget);
    if spent.outside_bursts() > allowed.outside_bursts() || spent.in_bursts > allowed.burst {
        return Err(format!("the run exceeded its budget: spent {spent:?} of {allowed:?}"));
    }
    Ok(outcome.rows)
}

impl Subject {
    /// Returns the name of the input that a run needs to detect the fault: keys, a burst or deliveries.
    pub fn required_input(&self) -> &'static str {
        let needs = |id: &&str| match *id {
            "auth.revoked_key" => Some("a revoked key"),
            "isolation.second_account" => Some("a second account"),
            id if id.starts_with("limits.") => Some("a burst"),
            id if uses_deliveries(id) => Some("deliveries"),
            _ => None,
        };
        // If one statement needs no further input, the keys of both modes are enough to detect the fault with it.
        let inputs: Option<Vec<_>> = self.violates.iter().map(needs).collect();
        inputs.and_then(|inputs| inputs.first().copied()).unwrap_or("keys of both modes")
    }

    /// Runs the trial. A panic, of the server or the suite, is a deviation and does not count as a detected fault.
    pub fn run(&self) -> Trial {
        let rows = catch_unwind(AssertUnwindSafe(|| (self.run_check)()))
            .unwrap_or_else(|_| Err("the server or the suite panicked".to_owned()));
        match rows {
            Err(reason) => {
                Trial { name: self.name.clone(), broken: BTreeSet::new(), deviation: Some(reason) }
            }
            Ok(rows) => {
                let is_broken =
                    |row: &&StatementResult| matches!(row.verdict, Verdict::Fail(_) | Verdict::Warn(_));
                let broken = rows.iter().filter(is_broken).map(|row| row.id.clone()).collect();
                Trial { name: self.name.clone(), deviation: self.deviation(&rows, &broken), broken }
            }
        }
    }

    /// Describes the statements that should have failed and did not, and those that failed unexpectedly. Returns `None`
    /// if there are none of either.
    fn deviation(&self, rows: &[StatementResult], broken: &BTreeSet<String>) -> Option<String> {
        let with_evidence = |id: &str| match rows.iter().find(|row| row.id == id).map(|row| &row.verdict) {
            Some(Verdict::Fail(finding) | Verdict::Warn(finding)) => {
                format!("{id} (expected {}, got {})", finding.expected, finding.actual)
            }
            _ => id.to_owned(),
        };
        let missed: Vec<_> =
            self.violates.iter().filter(|id| !broken.contains(**id)).map(|id| (*id).to_owned()).collect();
        let is_allowed =
            |id: &&String| self.violates.contains(&id.as_str()) || self.may_fail.contains(&id.as_str());
        let false_alarms: Vec<_> =
            broken.iter().filter(|id| !is_allowed(id)).map(|id| with_evidence(id)).collect();
        let parts = [("survives", missed), ("false alarm of", false_alarms)];
        let parts = parts.into_iter().filter(|(_, ids)| !ids.is_empty());
        let parts: Vec<_> = parts.map(|(label, ids)| format!("{label} {}", ids.join(", "))).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// Returns all mutants.
pub fn mutants() -> Vec<Subject> {
    TABLES.iter().copied().flatten().map(Subject::from).collect()
}

/// Returns all variants.
pub fn variants() -> Vec<Subject> {
    crate::variants::TABLES.iter().copied().flatten().map(Subject::from).collect()
}

/// Returns random combinations of a correct server, traffic and infrastructure, always the same for a seed.
pub fn combinations(seed: u64, count: usize) -> Vec<Subject> {
    (0..count as u64).map(|number| Subject::from(Combination::from_seed(seed, number))).collect()
}

/// Runs trials on several threads, and reports each to `on_trial`. The results are in the order of the subjects.
pub fn run_trials(subjects: &[Subject], threads: usize, on_trial: impl Fn(&Trial) + Sync) -> Vec<Trial> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some((index, subject)) = next_subject(&next, subjects) {
                    let trial = subject.run();
                    on_trial(&trial);
                    results.lock().expect("no trial panics").push((index, trial));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("no trial panics");
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, trial)| trial).collect()
}

fn next_subject<'a>(next: &AtomicUsize, subjects: &'a [Subject]) -> Option<(usize, &'a Subject)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    subjects.get(index).map(|subject| (index, subject))
}

/// Returns the kill table: a line per server with the statements that failed or warned.
pub fn kill_table(trials: &[Trial]) -> String {
    let line = |trial: &Trial| {
        let broken: Vec<_> = trial.broken.iter().map(String::as_str).collect();
        format!("{:<74}  {}", trial.name, if broken.is_empty() { "-".to_owned() } else { broken.join(" ") })
    };
    trials.iter().map(|trial| line(trial) + "\n").collect()
}
