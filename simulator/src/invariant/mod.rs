//! The invariants, checked on the observable behaviour of a world and never on the service's internals.
//!
//! Every invariant names the requirements that it is based on. A violation has a shape: the same text for the same
//! kind of fault, without names and amounts, so that many failures are grouped into few.

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
    api_state::{ApiState, BookApiState, Depth, Reader, path_and_query, read_api_state},
    book::{judge_addresses, judge_books},
    compare::{BookReading, compare_book, compare_delivery},
    limits::judge_limits,
    lists::{ModelBook, judge_lists},
    replay::{ExpectedEvent, FaultSet, ModelReplay, ReplayStart},
};

macro_rules! invariants {
    ($($variant:ident $number:literal $word:literal $rests_on:literal;)*) => {
        /// An invariant.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "the words say it")]
        pub enum Invariant { $($variant),* }

        impl Invariant {
            /// All invariants.
            pub const ALL: [Invariant; [$($number),*].len()] = [$(Invariant::$variant),*];

            /// Returns its number.
            pub const fn number(self) -> u32 {
                match self { $(Invariant::$variant => $number),* }
            }

            /// Returns its name in reports.
            pub const fn as_str(self) -> &'static str {
                match self { $(Invariant::$variant => $word),* }
            }

            /// Returns the statements that it is based on, separated by `, `: of the catalogue (`events.id`), or of the
            /// choices of the reference server (`open.charge.lock`).
            pub const fn rests_on(self) -> &'static str {
                match self { $(Invariant::$variant => $rests_on),* }
            }
        }
    };
}

invariants! {
    Edges         1  "edges"         "open.charge.status, open.invoice.status, charges.paid_at";
    Once          2  "once"          "events.id, events.recorded, webhooks.delivery_id, invoices.settled, open.idempotency";
    Order         3  "order"         "events.timeline, events.created_at";
    Confirmations 4  "confirmations" "types.charge_paid, open.charge.confirmations";
    PaidMoney     5  "paid_money"    "charges.received_amount, charges.paid_at";
    LockEnd       6  "lock_end"      "types.charge_expired, open.charge.lock";
    Tolerance     7  "tolerance"     "types.charge_underpaid, open.charge.tolerance, open.charge.overpaid";
    LateMoney     8  "late_money"    "types.charge_late_payment";
    Conservation  9  "conservation"  "charges.received_amount, isolation.deposit_addresses, types.charge_refunded";
    Deliveries    10 "deliveries"    "webhooks.pushed, webhooks.signed, webhooks.subscribed, open.delivery.retry";
    SameObject    11 "same_object"   "events.id, webhooks.event_id, webhooks.data";
    ModesApart    12 "modes_apart"   "isolation.not_found, isolation.lists";
    Paging        13 "paging"        "paging.stable, paging.newest_first";
    Filters       14 "filters"       "filters.combined, filters.total";
    Limit         15 "limit"         "limits.served, limits.refused, limits.retry_after";
    Restart       16 "restart"       "events.id, webhooks.delivery_id";
    Liveness      17 "liveness"      "open.delivery.retry, open.charge.lock";
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
    /// The time, if it has one.
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

/// The length of the shortest code or id.
const CODE_MIN: usize = 12;

/// The violations found, and the number of checks of each invariant.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The violations.
    pub violations: Vec<Violation>,
    /// The number of checks of each invariant, in order.
    pub checks: [u64; Invariant::ALL.len()],
    /// The number of responses that no rule covers, by method, path and status.
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
        if let Some((shape, what)) = violation() {
            self.violations.push(Violation { invariant, shape, details: what, at });
        }
    }

    /// Adds the findings of another check.
    pub fn absorb(&mut self, other: Findings) {
        self.violations.extend(other.violations);
        for (own, other) in self.checks.iter_mut().zip(other.checks) {
            *own += other;
        }
        for (answer, n) in other.unjudged {
            *self.unjudged.entry(answer).or_default() += n;
        }
    }

    /// Replaces codes and ids in the details by names, given as pairs of a name and a code or id.
    pub fn name_objects(&mut self, names: impl Iterator<Item = (String, String)>) {
        if self.violations.is_empty() {
            return;
        }
        // A saved value can be any text, so short ones stay.
        for (name, code) in names.filter(|(_, code)| code.len() >= CODE_MIN) {
            for violation in self.violations.iter_mut().filter(|violation| violation.details.contains(&code))
            {
                violation.details = violation.details.replace(&code, &name);
            }
        }
    }

    /// Returns the number of checks.
    pub fn total(&self) -> u64 {
        self.checks.iter().sum()
    }
}
