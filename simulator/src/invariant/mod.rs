//! The invariants, checked on the observable behaviour of a world and never on the service's internals.
//!
//! Every invariant names the requirements that it is based on. A violation has a shape: a text without names and
//! amounts that is the same for the same kind of fault, so that reports can group violations.
//!
//! [`ModelReplay`] compares a recorded world with the model; [`judge_books`], [`judge_lists`] and [`judge_limits`] check
//! the rest. All of them produce [`Findings`].

mod api_state;
mod book;
mod compare;
mod diff;
mod hmac;
mod limits;
mod lists;
mod page;
mod replay;

use std::{collections::BTreeMap, fmt};

use reference_core::time::Timestamp;

pub use self::{
    api_state::{ApiState, BookApiState, ReadDepth, Reader, path_and_query, read_api_state},
    book::{judge_addresses, judge_books},
    compare::{ReadingContext, compare_book, compare_delivery},
    limits::judge_limits,
    lists::{ModelBook, judge_lists},
    replay::{ExpectedEvent, FaultSet, ModelReplay, ReplayStart},
};

macro_rules! invariants {
    ($($(#[$meta:meta])* $variant:ident $number:literal $name:literal $rests_on:literal;)*) => {
        /// An invariant.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Invariant { $($(#[$meta])* $variant),* }

        impl Invariant {
            /// All invariants.
            pub const ALL: [Invariant; [$($number),*].len()] = [$(Invariant::$variant),*];

            /// Returns its number.
            pub const fn number(self) -> u32 {
                match self { $(Invariant::$variant => $number),* }
            }

            /// Returns its name in reports.
            pub const fn as_str(self) -> &'static str {
                match self { $(Invariant::$variant => $name),* }
            }

            /// Returns the ids of the statements that it is based on, separated by `, `: of the catalogue
            /// (`events.id`), or of the choices of the reference server (`open.charge.lock`).
            pub const fn rests_on(self) -> &'static str {
                match self { $(Invariant::$variant => $rests_on),* }
            }
        }
    };
}

invariants! {
    /// A status changes only by the allowed transitions, and a request gets the status that the object's
    /// state determines.
    Edges         1  "edges"         "open.charge.status, open.invoice.status, charges.paid_at";
    /// An event, a delivery, a settlement or an idempotent request happens exactly once.
    Once          2  "once"          "events.id, events.recorded, webhooks.delivery_id, invoices.settled, open.idempotency";
    /// Events and timelines are in the order of their times.
    Order         3  "order"         "events.timeline, events.created_at";
    /// A transfer counts when it has the required confirmations, and shows those of the active branch.
    Confirmations 4  "confirmations" "types.charge_paid, open.charge.confirmations";
    /// `received_amount` and `paid_at` agree with the credited transfers.
    PaidMoney     5  "paid_money"    "charges.received_amount, charges.paid_at";
    /// A charge expires when its rate lock ends, unless sufficient transfers hold it open.
    LockEnd       6  "lock_end"      "types.charge_expired, open.charge.lock";
    /// The amount due, underpayments and overpayments are computed exactly.
    Tolerance     7  "tolerance"     "types.charge_underpaid, open.charge.tolerance, open.charge.overpaid";
    /// A late transfer is reported, and counts only if the owner accepts it.
    LateMoney     8  "late_money"    "types.charge_late_payment";
    /// No money appears or disappears: balances, refunds and deposit addresses add up.
    Conservation  9  "conservation"  "charges.received_amount, isolation.deposit_addresses, types.charge_refunded";
    /// Each endpoint gets signed deliveries of its event types, at the scheduled times.
    Deliveries    10 "deliveries"    "webhooks.pushed, webhooks.signed, webhooks.subscribed, open.delivery.retry";
    /// An object is the same in all responses, events and deliveries.
    SameObject    11 "same_object"   "events.id, webhooks.event_id, webhooks.data";
    /// A key reaches only the objects of its own account and mode.
    ModesApart    12 "modes_apart"   "isolation.not_found, isolation.lists";
    /// Pages are stable and newest first, and contain each record once.
    Paging        13 "paging"        "paging.stable, paging.newest_first";
    /// A filtered list contains exactly the matching records.
    Filters       14 "filters"       "filters.combined, filters.total";
    /// The rate limits refuse exactly the requests beyond them, with an exact `Retry-After`.
    Limit         15 "limit"         "limits.served, limits.refused, limits.retry_after";
    /// A restart of the service loses nothing and repeats nothing.
    Restart       16 "restart"       "events.id, webhooks.delivery_id";
    /// No charge stays open and no delivery stays waiting forever.
    Liveness      17 "liveness"      "open.delivery.retry, open.charge.lock";
    /// Related worlds have related results.
    Metamorphic   18 "metamorphic"   "charges.status, charges.received_amount";
}

/// A violation of an invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant.
    pub invariant: Invariant,
    /// The kind of violation, without names and amounts.
    pub shape: String,
    /// The details in this world: object, time, expected and actual value.
    pub details: String,
    /// The time of the violation; `None` if it was found in the state at the end.
    pub at: Option<Timestamp>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invariant {} ({}) {}", self.invariant.number(), self.invariant.as_str(), self.shape)?;
        if !self.details.is_empty() {
            write!(f, ": {}", self.details)?;
        }
        Ok(())
    }
}

/// The minimum length of a code or id.
const CODE_MIN: usize = 12;

/// The violations found, and the number of checks of each invariant.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The violations.
    pub violations: Vec<Violation>,
    /// The number of checks of each invariant, in order.
    pub checks: [u64; Invariant::ALL.len()],
    /// The number of responses that no check covers, by method, path and status.
    pub unjudged: BTreeMap<String, u64>,
}

impl Findings {
    /// Performs one check of an invariant. `violation` returns the shape and the details of a violation.
    pub fn check(
        &mut self,
        invariant: Invariant,
        at: Option<Timestamp>,
        violation: impl FnOnce() -> Option<(String, String)>,
    ) {
        self.checks[invariant as usize] += 1;
        if let Some((shape, details)) = violation() {
            self.violations.push(Violation { invariant, shape, details, at });
        }
    }

    /// Adds the findings of another check.
    pub fn merge(&mut self, other: Findings) {
        self.violations.extend(other.violations);
        for (own, other) in self.checks.iter_mut().zip(other.checks) {
            *own += other;
        }
        for (call, count) in other.unjudged {
            *self.unjudged.entry(call).or_default() += count;
        }
    }

    /// Replaces codes and ids in the details by names, given as pairs of a name and a code or id.
    pub fn name_objects(&mut self, names: impl Iterator<Item = (String, String)>) {
        if self.violations.is_empty() {
            return;
        }
        // A name can stand for any saved value; a short one could be part of another word.
        for (name, code) in names.filter(|(_, code)| code.len() >= CODE_MIN) {
            for violation in self.violations.iter_mut().filter(|violation| violation.details.contains(&code))
            {
                violation.details = violation.details.replace(&code, &name);
            }
        }
    }

    /// Returns the number of checks of all invariants.
    pub fn total_checks(&self) -> u64 {
        self.checks.iter().sum()
    }
}
