//! The run of a plan: its request budget, and the groups of probes in order.
//!
//! A [`Plan`] has the target, its keys and the allowed parts. The selected statements need groups of probes
//! ([`Group`]), and [`record`] runs these groups in sequence. Every request is recorded with its response and its
//! [`Purpose`](conformance_model::recording::Purpose). Another package computes verdicts from the recording alone.
//!
//! *Budget.* Each group has its worst case as a constant ([`Cost`]: requests with the live key, the test key, any
//! other, and the total). [`budget`] sums them before the first request, so that the operator of a production-like
//! system knows the cost of a check. Functional requests with the two keys stay well below the limit of 120 per
//! minute, so that a check cannot exhaust its quota. Bursts, retries, single objects and inserts have separate
//! bounds. A ledger counts the requests, and none beyond the budget is sent.
//!
//! *Order.* `Account` is first and checks the keys. `Burst` is next, because it exhausts the limit, and all later
//! groups then run in a fresh window. The groups that read follow. `Leaks` uses the rest of the budget. `Inserts`
//! and `Webhooks` are last, because they change the data that the others read. While a group runs, the session
//! reserves the fewest requests that later groups need (`reserved_requests`), so optional requests cannot use them.
//! A plan may exclude groups; statements that need them are not judged, with the reason.
//!
//! *Interruption.* After Ctrl-C no request is sent. The recording contains the completed requests of an interrupted
//! group, except for `Inserts` and `Webhooks`, whose partial results would be misleading.
//!
//! Example: `check --only 'isolation.*'` without a key of another account runs
//!
//! ```text
//! Account      the account behind each key               2 requests
//! Lists        pages of both modes, which show the ids   at most 34; 20 are reserved for Isolation and 1 for Leaks
//! Isolation    absent, foreign and absent ids            at most 26
//! Leaks        one event of each type, by the other key  the rest of the budget
//! ```
//!
//! This module must not contain a verdict, a judgement of a response beyond the choice of the next request, or a
//! request that is not in the budget.

use std::collections::BTreeSet;
use std::time::Duration;

use conformance_model::budget::{Budget, Cost, Ledger};
use conformance_model::group::Group;
use conformance_model::part::Part;
use conformance_model::recording::{NO_BURST_QUICK, Recording};
use conformance_model::verdict::Stop;

use crate::plan::Plan;
use crate::probes::{
    account, auth, burst, extended as choices, filters, inserts, isolation, leaks, lists, objects,
    second_key, webhooks,
};
use crate::progress::Progress;
use crate::session::{RETRIES_MAX, SINGLE_WAIT_MAX, Session, keyed_requests_max};
use crate::target_clock::TargetClock;

/// The result of a run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// The recorded exchanges and deliveries, without keys.
    pub recording: Recording,
    /// The reason why the run was stopped, if it was.
    pub stop: Option<Stop>,
    /// The budget.
    pub budget: Budget,
    /// The requests that were sent.
    pub ledger: Ledger,
    /// The completed groups, if the operator interrupted the run. The recording has the completed requests of the
    /// interrupted group, unless it changes data: partial results of such a group would be misleading.
    pub completed_if_interrupted: Option<BTreeSet<Group>>,
}

/// Runs groups of probes and records the responses.
///
/// `clock` must be that of the target. Needs a Tokio runtime with I/O and time.
pub async fn record(
    plan: &Plan,
    groups: &BTreeSet<Group>,
    clock: &mut dyn TargetClock,
    progress: &mut dyn Progress,
) -> RunResult {
    let budget = budget(groups, plan);
    let mut session = Session::new(plan, clock, progress, budget.clone(), wait_max(groups, plan));
    let mut completed = BTreeSet::new();
    let stop = match plan.validate() {
        Err(why) => Some(Stop::Configuration(why)),
        Ok(()) => {
            session.progress.on_budget(&budget);
            run_groups(&mut session, groups, &mut completed).await.err()
        }
    };
    let Session { recording, ledger, .. } = session;
    let interrupted = plan.interrupt.is_raised().then_some(completed);
    let stop = stop.filter(|_| interrupted.is_none());
    RunResult { recording, stop, budget, ledger, completed_if_interrupted: interrupted }
}

/// Returns the request budget of a plan.
pub fn budget(groups: &BTreeSet<Group>, plan: &Plan) -> Budget {
    let has_burst = groups.contains(&Group::Burst);
    let next_minute = if plan.thorough { burst::NEXT_MINUTE_MAX } else { 0 };
    let next_minute_wait = if plan.thorough { burst::NEXT_MINUTE_WAIT } else { Duration::ZERO };
    let wait = if has_burst { burst::WAIT_USUAL + next_minute_wait } else { Duration::ZERO };
    // The receiver runs during the other waits.
    let with_receiver = |other_waits: Duration| match groups.contains(&Group::Webhooks) {
        true => webhooks::wait_max(plan, other_waits),
        false => other_waits,
    };
    let mut functional = Cost::default();
    let costs = groups.iter().filter(|group| **group != Group::Leaks).map(|group| cost(*group));
    for cost in costs {
        functional.live += cost.live;
        functional.test += cost.test;
        functional.other += cost.other;
        functional.total += cost.total;
    }
    // Optional requests use the rest of the budget.
    if groups.contains(&Group::Leaks) {
        let leaks = cost(Group::Leaks).total;
        functional.total += leaks;
        functional.live += leaks;
        functional.test += leaks;
    }
    if groups.contains(&Group::Inserts) {
        functional.other += inserts::refused_writes(plan);
        functional.total += inserts::refused_writes(plan);
    }
    let after_deliveries = if groups.contains(&Group::Webhooks) { cost(Group::Webhooks).total } else { 0 };
    let keyed_max = keyed_requests_max(plan) + after_deliveries;
    functional.total = functional.total.min(keyed_max + functional.other);
    functional.live = functional.live.min(keyed_max);
    functional.test = functional.test.min(keyed_max);
    Budget {
        functional,
        burst: if has_burst { burst::REQUESTS_MAX + next_minute } else { 0 },
        repeats: RETRIES_MAX,
        objects: if groups.contains(&Group::Objects) { objects::requests(plan) } else { 0 },
        extended: if groups.contains(&Group::Extended) { choices::REQUESTS_MAX } else { 0 },
        inserts: if groups.contains(&Group::Inserts) { inserts::requests(plan) } else { 0 },
        writes: if groups.contains(&Group::Inserts) { inserts::writes(plan) } else { 0 },
        wait: with_receiver(wait),
        wait_worst: with_receiver(wait_max(groups, plan)),
    }
}

/// Returns the longest wait of a plan's probes, without the receiver.
fn wait_max(groups: &BTreeSet<Group>, plan: &Plan) -> Duration {
    match (groups.contains(&Group::Burst), plan.thorough) {
        (true, true) => burst::WAIT_MAX + burst::NEXT_MINUTE_WAIT,
        (true, false) => burst::WAIT_MAX,
        (false, _) => SINGLE_WAIT_MAX,
    }
}

/// Returns the most requests of a group, without bursts and retries.
fn cost(group: Group) -> Cost {
    match group {
        Group::Account => account::COST,
        Group::Burst | Group::Extended | Group::Inserts | Group::Objects => Cost::default(),
        Group::Lists => lists::COST,
        Group::Filters => filters::COST,
        Group::Isolation => isolation::COST,
        Group::Auth => auth::COST,
        Group::Revoked => auth::REVOKED_COST,
        Group::SecondKey => second_key::COST,
        Group::OtherAccount => isolation::OTHER_ACCOUNT_COST,
        Group::Leaks => leaks::COST,
        Group::Webhooks => webhooks::COST,
    }
}

/// Returns the number of requests with the two keys that are reserved for a group.
fn reserved_requests(group: Group) -> u32 {
    match group {
        Group::Filters => filters::REQUESTS_MIN,
        Group::Isolation => isolation::REQUESTS_MIN,
        Group::Auth => auth::COST.test,
        Group::OtherAccount => isolation::OTHER_ACCOUNT_COST.total - isolation::OTHER_ACCOUNT_COST.other,
        Group::Leaks => 1,
        _ => 0,
    }
}

/// Runs the groups in order until the end, an error or an interrupt.
async fn run_groups(
    session: &mut Session<'_>,
    groups: &BTreeSet<Group>,
    completed: &mut BTreeSet<Group>,
) -> Result<(), Stop> {
    if session.plan.excluded_parts().contains(&Part::Burst) {
        let reason = if session.plan.quick { NO_BURST_QUICK } else { "--without burst leaves it out" };
        session.recording.no_burst = Some(reason.into());
    }
    for group in groups {
        // The later groups may take minutes, in which the window would end. They get another one.
        if *group > Group::Leaks {
            burst::send_closing_burst(session).await;
        }
        session.reserved =
            groups.iter().filter(|later| *later > group).map(|later| reserved_requests(*later)).sum();
        let start = session.position();
        let result = probe(session, *group).await;
        if session.plan.interrupt.is_raised() {
            match group {
                Group::Inserts | Group::Webhooks => session.roll_back(start),
                _ => session.remove_unsent(),
            }
            break;
        }
        result?;
        completed.insert(*group);
        if *group == Group::Account && groups.contains(&Group::Webhooks) {
            webhooks::read_existing_events(session).await;
            if groups.contains(&Group::Objects) && session.receiving_since.is_some() {
                objects::read_watched(session).await;
            }
        }
    }
    if !session.plan.interrupt.is_raised() {
        burst::send_closing_burst(session).await;
    }
    Ok(())
}

/// Runs the probes of a group.
async fn probe(session: &mut Session<'_>, group: Group) -> Result<(), Stop> {
    match group {
        Group::Account => account::probe(session).await?,
        Group::Burst => burst::probe(session).await,
        Group::Lists => lists::probe(session).await,
        Group::Filters => filters::probe(session).await,
        Group::Isolation => isolation::probe(session).await,
        Group::Auth => auth::probe(session).await,
        Group::Revoked => auth::probe_revoked(session).await,
        Group::SecondKey => second_key::probe(session).await,
        Group::Extended => choices::probe(session).await,
        Group::Inserts => inserts::probe(session).await,
        Group::Objects => objects::probe(session).await,
        Group::Leaks => leaks::probe(session).await,
        Group::OtherAccount => isolation::probe_other_account(session).await,
        Group::Webhooks => webhooks::probe(session).await,
    }
    Ok(())
}
