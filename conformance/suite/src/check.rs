//! A check from plan to rows, and what it means for the exit code.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::baseline::Baseline;
use crate::budget::{Budget, Ledger};
use crate::catalogue::{extended, fits};
use crate::judge::{checks, rows};
use crate::plan::{Paths, Plan};
use crate::probes::{
    Group, Session, account, auth, burst, extended as choices, filters, inserts, isolation, leaks, lists,
    objects, second, webhooks,
};
use crate::progress::Progress;
use crate::recording::Recording;
use crate::verdict::{Row, Verdict};
use crate::waiter::Waiter;

/// Why a run ended before anything could be judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "stopped_by", content = "why", rename_all = "snake_case")]
pub enum Stop {
    /// Something in the plan is wrong: an address, a key, a name.
    Configuration(String),
    /// The target did not answer.
    Unreachable(String),
}

/// What a run asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// What the specification says, and nothing else.
    #[default]
    Spec,
    /// Also what the reference server chose where the specification leaves a choice.
    Extended,
}

/// Which statements a run is about. Patterns may hold `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// What is asked for at all.
    #[serde(default)]
    pub profile: Profile,
    /// Only the statements that fit one of these; all if there are none.
    pub only: Vec<String>,
    /// Not the statements that fit one of these.
    pub skip: Vec<String>,
}

impl Selection {
    /// Whether every pattern names something that is judged; otherwise says which one does not.
    pub fn validate(&self) -> Result<(), String> {
        let known = |pattern: &&String| checks(self.profile).any(|check| fits(pattern, check.id));
        match self.only.iter().chain(&self.skip).find(|pattern| !known(pattern)) {
            None => Ok(()),
            Some(pattern) if extended().keys().any(|id| fits(pattern, id)) => {
                Err(format!("`{pattern}` names choices of the reference server; say --profile extended too"))
            }
            Some(pattern) => Err(format!(
                "no statement that is judged is called `{pattern}`; `chargeproof check --list` names them"
            )),
        }
    }

    fn selects(&self, id: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|pattern| fits(pattern, id))
    }

    fn skips(&self, id: &str) -> bool {
        self.skip.iter().any(|pattern| fits(pattern, id))
    }
}

/// What a run has brought.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Everything that was asked and answered, without the keys.
    pub recording: Recording,
    /// The word on every selected statement. Empty if the run was stopped.
    pub rows: Vec<Row>,
    /// Which statements were asked for.
    pub selection: Selection,
    /// The failures that were known beforehand.
    pub baseline: Baseline,
    /// What is wrong with the baseline. Any fault fails the run.
    pub faults: Vec<String>,
    /// Whether personal values and amounts are hidden.
    pub private: bool,
    /// Why the run was stopped, if it was.
    pub stop: Option<Stop>,
    /// The worst case that was announced.
    pub budget: Budget,
    /// What was spent.
    pub ledger: Ledger,
}

impl Outcome {
    /// Judges what was recorded.
    pub(crate) fn of(
        recording: Recording,
        selection: Selection,
        baseline: Baseline,
        private: bool,
        stop: Option<Stop>,
        budget: Budget,
        ledger: Ledger,
    ) -> Outcome {
        let mut rows = match stop {
            Some(_) => Vec::new(),
            None => rows(&recording, selection.profile, |id| selection.selects(id), |id| selection.skips(id)),
        };
        let faults = baseline.apply(&mut rows);
        Outcome { recording, rows, selection, baseline, faults, private, stop, budget, ledger }
    }

    /// Whether every check that was asked for said something, and every required one was judged.
    pub fn is_complete(&self) -> bool {
        !self.rows.is_empty()
            && self.rows.len() >= self.expected()
            && !self.rows.iter().any(Row::leaves_a_gap)
    }

    /// How many checks were asked for. A report that has fewer rows has lost some.
    pub fn expected(&self) -> usize {
        checks(self.selection.profile).filter(|check| self.selection.selects(check.id)).count()
    }

    /// 0 all required statements judged and held, 1 a violation, 2 configuration, 3 incomplete,
    /// 4 target unreachable.
    pub fn exit_code(&self) -> u8 {
        match &self.stop {
            Some(Stop::Configuration(_)) => 2,
            Some(Stop::Unreachable(_)) => 4,
            None if self.rows.iter().any(|row| matches!(row.verdict, Verdict::Fail(_))) => 1,
            None if !self.faults.is_empty() => 1,
            None if !self.is_complete() => 3,
            None => 0,
        }
    }
}

/// Runs a plan: asks, records, judges.
///
/// The waiter's clock must be the one that the target goes by. Needs a Tokio runtime with I/O and time.
pub async fn check(plan: Plan, waiter: &mut dyn Waiter, progress: &mut dyn Progress) -> Outcome {
    let groups = groups(&plan);
    let budget = Budget::of(&groups, &plan);
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
    let Session { mut recording, ledger, .. } = session;
    if let Some(veil) = &plan.privacy {
        veil.cover(&mut recording);
    }
    let private = plan.privacy.is_some();
    Outcome::of(recording, plan.selection(), plan.baseline.clone(), private, stop, budget, ledger)
}

/// Judges a recording again, all statements of it.
pub fn judge(recording: &Recording) -> Vec<Row> {
    rows(recording, Profile::Spec, |_| true, |_| false)
}

/// The probes that the selected statements need.
fn groups(plan: &Plan) -> BTreeSet<Group> {
    let selection = plan.selection();
    let wanted =
        checks(plan.profile).filter(|check| selection.selects(check.id) && !selection.skips(check.id));
    let mut groups: BTreeSet<Group> = wanted.flat_map(|check| check.needs.iter().copied()).collect();
    groups.insert(Group::Account);
    if plan.quick {
        groups.remove(&Group::Burst);
    }
    if plan.second_key.is_none() {
        groups.remove(&Group::Second);
    }
    if plan.writes.is_none() && plan.hook.is_none() {
        groups.remove(&Group::Inserts);
    }
    if plan.paths == Paths::default() {
        groups.remove(&Group::Objects);
    }
    if plan.other_account_key.is_none() {
        groups.remove(&Group::Other);
    }
    if plan.webhooks.is_none() {
        groups.remove(&Group::Webhooks);
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
            Group::Filters => filters::probe(session).await,
            Group::Isolation => isolation::probe(session).await,
            Group::Auth => auth::probe(session).await,
            Group::Second => second::probe(session).await,
            Group::Extended => choices::probe(session).await,
            Group::Inserts => inserts::probe(session).await,
            Group::Objects => objects::probe(session).await,
            Group::Leaks => leaks::probe(session).await,
            Group::Other => isolation::probe_other(session).await,
            Group::Webhooks => webhooks::probe(session).await,
        }
    }
    Ok(())
}
