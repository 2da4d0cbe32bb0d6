//! Planted faults in the sightings, which are the chain watchers' reports of transfers to the service. Each fault is a
//! [`Tamper`], which changes the sightings before the service receives them.

use std::collections::{BTreeMap, BTreeSet};

use reference_core::{
    asset::Asset,
    mode::Mode,
    money::Coin,
    sighting::{Depth, Disappearance, Sighting},
    time::{Span, Timestamp},
};
use reference_wire::{AttemptRequest, Request, Response};
use serde_json::Value;
use simulator::{
    invariant::Invariant::{
        self, Confirmations, Conservation, Deliveries, Edges, LateMoney, LockEnd, Once, Order, PaidMoney,
        SameObject, Tolerance,
    },
    tamper::{AttemptFate, Tamper},
};

use super::{PlantedFault, demo_fault};

/// A tamper that changes sightings.
struct ChangedSightings<F>(F);

impl<F: FnMut(Timestamp, &mut Vec<Sighting>) + Send> Tamper for ChangedSightings<F> {
    fn on_sightings(&mut self, now: Timestamp, sightings: &mut Vec<Sighting>) -> Timestamp {
        (self.0)(now, sightings);
        now
    }
}

fn change_sightings(change: impl FnMut(Timestamp, &mut Vec<Sighting>) + Send + 'static) -> Box<dyn Tamper> {
    Box::new(ChangedSightings(change))
}

/// Changes each sighting, and removes those for which `change` returns `false`.
fn retain_sightings(mut change: impl FnMut(&mut Sighting) -> bool + Send + 'static) -> Box<dyn Tamper> {
    change_sightings(move |_, sightings| sightings.retain_mut(|sighting| change(sighting)))
}

/// More confirmations than any coin requires.
const MANY_CONFIRMATIONS: u32 = 100;

/// The id of a transaction and the index of an output.
type Outpoint = (String, u32);

fn outpoint(sighting: &Sighting) -> Outpoint {
    (sighting.txid.clone(), sighting.output)
}

/// A charge of a merchant.
struct KnownCharge {
    asset: Asset,
    /// The end of the lock.
    expires_at: Timestamp,
}

/// The charges that merchants opened, by address.
#[derive(Default)]
struct Charges {
    known: BTreeMap<String, KnownCharge>,
}

impl Charges {
    /// Adds the charge of a response, if it has one.
    fn add(&mut self, response: &Response) {
        let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        let charge = &body["data"];
        let text = |key: &str| charge[key].as_str().unwrap_or_default();
        if let (Some(asset), Some(expires_at)) =
            (Asset::parse(text("asset")), Timestamp::parse(text("expires_at")))
        {
            self.known.insert(text("deposit_address").to_owned(), KnownCharge { asset, expires_at });
        }
    }
}

/// A fault: transfers after the end of the lock are not reported.
#[derive(Default)]
struct LateTransfersUnreported {
    charges: Charges,
    reported: BTreeSet<Outpoint>,
}

impl Tamper for LateTransfersUnreported {
    fn on_response(&mut self, _: Timestamp, request: &Request<'_>, response: &mut Response) {
        if request.method == "POST" && request.path == "/v1/charges" {
            self.charges.add(response);
        }
    }

    fn on_sightings(&mut self, now: Timestamp, sightings: &mut Vec<Sighting>) -> Timestamp {
        sightings.retain(|sighting| {
            let charge = self.charges.known.get(&sighting.address);
            if charge.is_none_or(|charge| now < charge.expires_at) {
                self.reported.insert(outpoint(sighting));
            }
            self.reported.contains(&outpoint(sighting))
        });
        now
    }
}

/// A fault: a transfer in the last microsecond of the lock is late.
#[derive(Default)]
struct LastMomentIsLate {
    charges: Charges,
}

impl Tamper for LastMomentIsLate {
    fn on_response(&mut self, _: Timestamp, request: &Request<'_>, response: &mut Response) {
        if request.method == "POST" && request.path == "/v1/charges" {
            self.charges.add(response);
        }
    }

    fn on_sightings(&mut self, now: Timestamp, sightings: &mut Vec<Sighting>) -> Timestamp {
        let next = now.plus(Span(1));
        let is_at_end = |sighting: &Sighting| {
            self.charges.known.get(&sighting.address).is_some_and(|charge| charge.expires_at == next)
        };
        if sightings.iter().any(is_at_end) { next } else { now }
    }
}

/// A fault: a transfer in another coin counts as one unit of the charge's coin.
#[derive(Default)]
struct AnyCoinCounts {
    charges: Charges,
}

impl Tamper for AnyCoinCounts {
    fn on_response(&mut self, _: Timestamp, request: &Request<'_>, response: &mut Response) {
        if request.method == "POST" && request.path == "/v1/charges" {
            self.charges.add(response);
        }
    }

    fn on_sightings(&mut self, now: Timestamp, sightings: &mut Vec<Sighting>) -> Timestamp {
        for sighting in sightings {
            if let Some(charge) = self.charges.known.get(&sighting.address)
                && sighting.asset != charge.asset
            {
                sighting.asset = charge.asset;
                sighting.amount = Coin::unit(charge.asset);
            }
        }
        now
    }
}

/// The invariants about transfers and the charges that they pay.
const CHAIN: &[Invariant] =
    &[Confirmations, PaidMoney, LockEnd, LateMoney, Tolerance, Conservation, Edges, Once, SameObject];

/// A fault: a fee bump is reported after the removal of the replaced transaction, with the next sightings.
#[derive(Default)]
struct BumpReportedLater {
    reported: BTreeSet<Outpoint>,
    delayed: Vec<Sighting>,
}

impl Tamper for BumpReportedLater {
    fn on_sightings(&mut self, now: Timestamp, sightings: &mut Vec<Sighting>) -> Timestamp {
        let is_bumped =
            sightings.iter().any(|sighting| sighting.depth == Depth::Absent(Disappearance::Replaced));
        let (fresh, known): (Vec<Sighting>, Vec<Sighting>) = std::mem::take(sightings)
            .into_iter()
            .partition(|sighting| self.reported.insert(outpoint(sighting)));
        sightings.append(&mut self.delayed);
        sightings.extend(known);
        if is_bumped {
            self.delayed = fresh
        } else {
            sightings.extend(fresh)
        }
        now
    }
}

/// A fault: a transfer that is first seen after the end of the lock counts as seen when the charge's earlier transfer
/// was, because that one is reported as replaced by it.
#[derive(Default)]
struct HoldCoversNewTransfers {
    charges: Charges,
    reported: BTreeMap<Outpoint, Sighting>,
}

impl Tamper for HoldCoversNewTransfers {
    fn on_response(&mut self, _: Timestamp, request: &Request<'_>, response: &mut Response) {
        if request.method == "POST" && request.path == "/v1/charges" {
            self.charges.add(response);
        }
    }

    fn on_sightings(&mut self, now: Timestamp, sightings: &mut Vec<Sighting>) -> Timestamp {
        let mut changed = Vec::new();
        for sighting in sightings.iter() {
            let is_late =
                self.charges.known.get(&sighting.address).is_some_and(|charge| now >= charge.expires_at);
            if is_late && !self.reported.contains_key(&outpoint(sighting)) {
                let earlier = self.reported.values().find(|reported| reported.address == sighting.address);
                changed.extend(earlier.map(|reported| Sighting {
                    depth: Depth::Absent(Disappearance::Replaced),
                    ..reported.clone()
                }));
            }
        }
        self.reported.extend(sightings.iter().map(|sighting| (outpoint(sighting), sighting.clone())));
        changed.append(sightings);
        *sightings = changed;
        now
    }
}

/// A fault: the transfers of a paid charge stay credited after they vanished or left their block.
#[derive(Default)]
struct PaidStaysCredited {
    paid: BTreeSet<String>,
}

impl Tamper for PaidStaysCredited {
    fn on_attempt(&mut self, _: Timestamp, _: Mode, attempt: &mut AttemptRequest) -> AttemptFate {
        let body: Value = serde_json::from_slice(&attempt.body).unwrap_or_default();
        if body["event"] == "charge.paid" {
            let address = body["data"]["charge"]["deposit_address"].as_str().unwrap_or_default();
            self.paid.insert(address.to_owned());
        }
        AttemptFate::Unchanged
    }

    fn on_sightings(&mut self, now: Timestamp, sightings: &mut Vec<Sighting>) -> Timestamp {
        let is_in_block = |depth| !matches!(depth, Depth::Absent(_) | Depth::Confirmations(0));
        sightings.retain(|sighting| is_in_block(sighting.depth) || !self.paid.contains(&sighting.address));
        now
    }
}

/// The faults, each with the invariants of which one must be the first to be violated.
pub(super) const FAULTS: &[PlantedFault] = &[
    PlantedFault::new(
        "a fee-bumped replacement is reported late",
        &[Confirmations, Conservation, LateMoney, LockEnd, PaidMoney, Edges, Order],
        || Box::<BumpReportedLater>::default(),
    ),
    PlantedFault::new("a transfer after the end of the lock counts during the hold", CHAIN, || {
        Box::<HoldCoversNewTransfers>::default()
    }),
    PlantedFault::new("a paid charge still counts a vanished transfer", CHAIN, || {
        Box::<PaidStaysCredited>::default()
    }),
    PlantedFault::new("one confirmation too many is reported", CHAIN, || demo_fault("one-confirmation-more")),
    PlantedFault::new("one confirmation too few is reported", CHAIN, || {
        retain_sightings(|sighting| {
            // The first confirmation remains, because a transfer with none is not in a block.
            if let Depth::Confirmations(n @ 2..) = &mut sighting.depth {
                *n -= 1;
            }
            true
        })
    }),
    PlantedFault::new("an orphaned transaction stays counted", CHAIN, || {
        // A report with fewer confirmations than before is dropped.
        let mut deepest: BTreeMap<Outpoint, u32> = BTreeMap::new();
        retain_sightings(move |sighting| match sighting.depth {
            Depth::Confirmations(n) => {
                let known = deepest.entry(outpoint(sighting)).or_default();
                *known = n.max(*known);
                n == *known
            }
            Depth::Absent(_) => true,
        })
    }),
    PlantedFault::new("a vanished transfer is not reported", CHAIN, || demo_fault("vanished-unheard")),
    PlantedFault::new("a double-spent transfer is confirmed", CHAIN, || {
        retain_sightings(|sighting| {
            if sighting.depth == Depth::Absent(Disappearance::DoubleSpent) {
                sighting.depth = Depth::Confirmations(MANY_CONFIRMATIONS);
            }
            true
        })
    }),
    PlantedFault::new("a replaced transfer is confirmed", CHAIN, || {
        retain_sightings(|sighting| {
            if sighting.depth == Depth::Absent(Disappearance::Replaced) {
                sighting.depth = Depth::Confirmations(MANY_CONFIRMATIONS);
            }
            true
        })
    }),
    PlantedFault::new("only the first output of a transaction counts", CHAIN, || {
        retain_sightings(|sighting| sighting.output == 0)
    }),
    PlantedFault::new("a transfer that is reported twice counts twice", CHAIN, || {
        change_sightings(|_, sightings| {
            // The second report is of another output.
            let again: Vec<Sighting> = sightings
                .iter()
                .map(|sighting| Sighting { output: sighting.output + 100, ..sighting.clone() })
                .collect();
            sightings.extend(again);
        })
    }),
    PlantedFault::new("every transfer is one unit too small", CHAIN, || {
        retain_sightings(|sighting| {
            sighting.amount = sighting.amount.saturating_sub(Coin::unit(sighting.asset));
            true
        })
    }),
    PlantedFault::new("transfers are not reported before their first block", CHAIN, || {
        let mut reported = BTreeSet::new();
        retain_sightings(move |sighting| {
            if sighting.depth != Depth::Confirmations(0) {
                reported.insert(outpoint(sighting));
            }
            reported.contains(&outpoint(sighting))
        })
    }),
    PlantedFault::new("transfers count as soon as they are seen", CHAIN, || {
        retain_sightings(|sighting| {
            if sighting.depth == Depth::Confirmations(0) {
                sighting.depth = Depth::Confirmations(MANY_CONFIRMATIONS);
            }
            true
        })
    }),
    PlantedFault::new("late payments are not reported", CHAIN, || Box::<LateTransfersUnreported>::default()),
    PlantedFault::new(
        "a transfer in the last microsecond of the lock is late",
        &[LockEnd, LateMoney, Order, Confirmations, Edges, Deliveries],
        || Box::<LastMomentIsLate>::default(),
    ),
    PlantedFault::new("a payment in another coin counts", CHAIN, || Box::<AnyCoinCounts>::default()),
    PlantedFault::new("a transfer that comes back is not reported again", CHAIN, || {
        let mut vanished = BTreeSet::new();
        retain_sightings(move |sighting| match sighting.depth {
            Depth::Absent(_) => {
                vanished.insert(outpoint(sighting));
                true
            }
            Depth::Confirmations(_) => !vanished.contains(&outpoint(sighting)),
        })
    }),
];
