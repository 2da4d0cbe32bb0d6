//! Runs a check: from the plan to the verdicts and the exit code.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use conformance_faults::{Power, power};
use conformance_judge::{checks, judge_selected};
use conformance_model::baseline::Baseline;
use conformance_model::budget::{Budget, Ledger};
use conformance_model::group::Group;
use conformance_model::part::Part;
use conformance_model::recording::Recording;
use conformance_model::selection::{Profile, Selection};
use conformance_model::verdict::{StatementResult, Stop, Verdict};
use conformance_probe::{ObjectPaths, Plan, Progress, RunResult, TargetClock, record};

/// The origin of a run. Recordings of older versions and of browsers lack some fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Origin {
    /// The version of the program that recorded it.
    pub version: Option<String>,
    /// The start of the run, in UTC: `2026-11-22T06:00:00Z`.
    pub started: Option<String>,
    /// The duration in real time.
    pub lasted: Option<Duration>,
    /// The groups of probes that were completed if the operator interrupted the run; `None` otherwise.
    pub interrupted: Option<BTreeSet<Group>>,
}

/// The gaps (required statements without a verdict) that do not fail a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AcceptedGaps {
    /// None.
    #[default]
    None,
    /// All gaps.
    All,
    /// The gaps of statements that need one of these parts.
    OfParts(BTreeSet<Part>),
}

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The recording of the run, without the keys.
    pub recording: Recording,
    /// The verdicts on the selected statements. Empty if the run was stopped.
    pub rows: Vec<StatementResult>,
    /// The selected statements.
    pub selection: Selection,
    /// The baseline of known failures.
    pub baseline: Baseline,
    /// The stale entries of the baseline, as messages. Any of them fails the run.
    pub stale_entries: Vec<String>,
    /// `true` if personal values and amounts are replaced.
    pub is_redacted: bool,
    /// The reason why the run was stopped, if it was.
    pub stop: Option<Stop>,
    /// The request budget.
    pub budget: Budget,
    /// The requests that were sent.
    pub ledger: Ledger,
    /// The origin of the run.
    pub origin: Origin,
    /// The gaps that do not fail the run.
    pub accepted_gaps: AcceptedGaps,
    /// The power of the run: the known faults that it would have noticed; `None` unless requested.
    pub power: Option<Power>,
}

impl Outcome {
    /// Judges a run by the selected statements.
    pub(crate) fn from_run(
        run: RunResult,
        selection: Selection,
        baseline: Baseline,
        is_redacted: bool,
    ) -> Outcome {
        let RunResult { recording, stop, budget, ledger, completed_if_interrupted: interrupted } = run;
        let origin = Origin { interrupted, ..Origin::default() };
        let mut rows = match stop {
            Some(_) => Vec::new(),
            None => judge_selected(
                &recording,
                selection.profile,
                |id| selection.selects(id),
                |id| selection.skips(id),
            ),
        };
        if let Some(completed) = &origin.interrupted {
            mark_unfinished(&mut rows, selection.profile, completed);
        }
        let stale_entries = baseline.apply(&mut rows);
        Outcome {
            recording,
            rows,
            selection,
            baseline,
            stale_entries,
            is_redacted,
            stop,
            budget,
            ledger,
            origin,
            accepted_gaps: AcceptedGaps::None,
            power: None,
        }
    }

    /// Adds the known faults that the run would have noticed. A run that was stopped has none.
    pub fn with_power(self) -> Outcome {
        let power = self.stop.is_none().then(|| power(&self.recording));
        Outcome { power, ..self }
    }

    /// Returns `true` if every selected check reported a verdict, and every required statement was judged.
    pub fn is_complete(&self) -> bool {
        !self.rows.is_empty()
            && self.rows.len() >= self.expected_check_count()
            && !self.rows.iter().any(StatementResult::is_unjudged_must)
    }

    /// Returns the number of selected checks. A run with fewer rows is incomplete.
    pub fn expected_check_count(&self) -> usize {
        checks(self.selection.profile).filter(|check| self.selection.selects(check.id)).count()
    }

    /// Returns `true` if the run is incomplete, and the operator accepts every gap.
    pub(crate) fn are_gaps_accepted(&self) -> bool {
        let accepts = |row: &StatementResult| match &self.accepted_gaps {
            AcceptedGaps::None => false,
            AcceptedGaps::All => true,
            AcceptedGaps::OfParts(parts) => checks(self.selection.profile)
                .any(|check| check.id == row.id && parts.iter().any(|part| check.is_excluded_by(*part))),
        };
        !self.is_complete()
            && !self.rows.is_empty()
            && self.rows.len() >= self.expected_check_count()
            && self.rows.iter().filter(|row| row.is_unjudged_must()).all(accepts)
    }

    /// Returns the exit code: 0 all required statements were judged and hold, or the gaps are accepted; 1 a violation
    /// or a stale entry of the baseline; 2 configuration; 3 incomplete; 4 target unreachable; 130 interrupted.
    pub fn exit_code(&self) -> u8 {
        match &self.stop {
            _ if self.origin.interrupted.is_some() => 130,
            Some(Stop::Configuration(_)) => 2,
            Some(Stop::Unreachable(_)) => 4,
            None if self.rows.iter().any(|row| matches!(row.verdict, Verdict::Fail(_))) => 1,
            None if !self.stale_entries.is_empty() => 1,
            None if !self.is_complete() && !self.are_gaps_accepted() => 3,
            None => 0,
        }
    }
}

/// Runs a plan: sends the requests, records the responses and judges them.
///
/// `clock` is the clock of the target. Needs a Tokio runtime with I/O and time.
pub async fn check(plan: Plan, clock: &mut dyn TargetClock, progress: &mut dyn Progress) -> Outcome {
    let mut run = record(&plan, &required_groups(&plan), clock, progress).await;
    if let Some(redaction) = &plan.redaction {
        redaction.redact(&mut run.recording);
    }
    Outcome::from_run(run, plan.selection(), plan.baseline.clone(), plan.redaction.is_some())
}

/// Marks statements as not judged if an interrupt prevented requests that they need, unless the responses so far allow
/// a verdict. Statements that need an unfinished group of inserts or webhooks are never judged.
fn mark_unfinished(rows: &mut [StatementResult], profile: Profile, completed: &BTreeSet<Group>) {
    for row in rows {
        let Some(check) = checks(profile).find(|check| check.id == row.id) else { continue };
        let mut unfinished = check.needs.iter().filter(|group| !completed.contains(group));
        let is_unjudged = match &row.verdict {
            Verdict::NotJudged { .. } | Verdict::NotApplicable { .. } => unfinished.next().is_some(),
            Verdict::LeftOut { .. } => false,
            _ => unfinished.any(|group| matches!(group, Group::Inserts | Group::Webhooks)),
        };
        if is_unjudged {
            row.verdict = Verdict::NotJudged {
                why: "the run was interrupted before all its requests were sent".into(),
                remedy: "run it again".into(),
            };
        }
    }
}

/// Returns the groups of probes whose requests the selected statements need, if the plan has the keys and options for
/// them. The account is always read.
fn required_groups(plan: &Plan) -> BTreeSet<Group> {
    let selection = plan.selection();
    let selected =
        checks(plan.profile).filter(|check| selection.selects(check.id) && !selection.skips(check.id));
    let mut groups: BTreeSet<Group> =
        selected.flat_map(|check| check.needs.iter().chain(check.optional).copied()).collect();
    groups.insert(Group::Account);
    if plan.excluded_parts().contains(&Part::Burst) {
        groups.remove(&Group::Burst);
    }
    if plan.revoked_key.is_none() {
        groups.remove(&Group::Revoked);
    }
    if plan.second_key.is_none() {
        groups.remove(&Group::SecondKey);
    }
    if plan.create_request.is_none() && plan.hook.is_none() {
        groups.remove(&Group::Inserts);
    }
    if plan.paths == ObjectPaths::default() {
        groups.remove(&Group::Objects);
    }
    if plan.other_account_key.is_none() {
        groups.remove(&Group::OtherAccount);
    }
    if plan.webhooks.is_none() {
        groups.remove(&Group::Webhooks);
    }
    groups
}
