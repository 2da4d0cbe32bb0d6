//! A check from plan to rows, and what it means for the exit code.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::budget::{Budget, Ledger};
use crate::judge::{checks, rows};
use crate::plan::Plan;
use crate::probes::{Group, Session, account, auth, burst, isolation, lists};
use crate::progress::Progress;
use crate::recording::Recording;
use crate::verdict::{Row, Verdict};
use crate::waiter::Waiter;

/// Why a run ended before anything could be judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "stopped_by", content = "why", rename_all = "snake_case")]
pub enum Stop {
    /// Something in the plan is wrong: an address, a key, a name.
    Configuration(String),
    /// The target did not answer.
    Unreachable(String),
}

/// What a run has brought.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Everything that was asked and answered, without the keys.
    pub recording: Recording,
    /// The word on every selected statement. Empty if the run was stopped.
    pub rows: Vec<Row>,
    /// Why the run was stopped, if it was.
    pub stop: Option<Stop>,
    /// The worst case that was announced.
    pub budget: Budget,
    /// What was spent.
    pub ledger: Ledger,
}

impl Outcome {
    /// 0 all required statements judged and held, 1 a violation, 2 configuration, 3 incomplete,
    /// 4 target unreachable.
    pub fn exit_code(&self) -> u8 {
        match &self.stop {
            Some(Stop::Configuration(_)) => 2,
            Some(Stop::Unreachable(_)) => 4,
            None if self.rows.iter().any(|row| matches!(row.verdict, Verdict::Fail(_))) => 1,
            None if self.rows.is_empty() || self.rows.iter().any(Row::leaves_a_gap) => 3,
            None => 0,
        }
    }
}

/// Runs a plan: asks, records, judges.
///
/// The waiter's clock must be the one that the target goes by. Needs a Tokio runtime with I/O and time.
pub async fn check(plan: Plan, waiter: &mut dyn Waiter, progress: &mut dyn Progress) -> Outcome {
    let groups = groups(&plan);
    let budget = Budget::of(&groups);
    let mut session = Session::open(&plan, waiter, progress);
    let stop = match plan.validate() {
        Err(why) => Some(Stop::Configuration(why)),
        Ok(()) => {
            session.progress.budget(&budget);
            talk(&mut session, &groups).await.err().map(|closed| match closed {
                account::Closed::Configuration(why) => Stop::Configuration(why),
                account::Closed::Unreachable(why) => Stop::Unreachable(why),
            })
        }
    };
    let Session { recording, ledger, .. } = session;
    let rows = match stop {
        Some(_) => Vec::new(),
        None => rows(&recording, |id| plan.selects(id), |id| plan.skips(id)),
    };
    Outcome { recording, rows, stop, budget, ledger }
}

/// Judges a recording again, all statements of it.
pub fn judge(recording: &Recording) -> Vec<Row> {
    rows(recording, |_| true, |_| false)
}

/// The probes that the selected statements need.
fn groups(plan: &Plan) -> BTreeSet<Group> {
    let wanted = checks().filter(|check| plan.selects(check.id) && !plan.skips(check.id));
    let mut groups: BTreeSet<Group> = wanted.flat_map(|check| check.needs.iter().copied()).collect();
    groups.insert(Group::Account);
    if plan.quick {
        groups.remove(&Group::Burst);
    }
    if plan.second_key.is_none() {
        groups.remove(&Group::Second);
    }
    groups
}

async fn talk(session: &mut Session<'_>, groups: &BTreeSet<Group>) -> Result<(), account::Closed> {
    if session.plan.quick {
        session.recording.no_burst = Some("--quick leaves it out".into());
    }
    for group in groups {
        match group {
            Group::Account => account::probe(session).await?,
            Group::Burst => burst::probe(session).await,
            Group::Lists => lists::probe(session).await,
            Group::Isolation => isolation::probe(session).await,
            Group::Auth => auth::probe(session).await,
            Group::Second => isolation::probe_second(session).await,
        }
    }
    Ok(())
}
