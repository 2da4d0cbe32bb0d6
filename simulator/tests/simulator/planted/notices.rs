//! Planted faults in the sightings that reach the service.

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
    tamper::{PostFate, Tamper},
};

use super::{PlantedFault, demo};

/// A fault in the sightings.
struct Notices<F>(F);

impl<F: FnMut(Timestamp, &mut Vec<Sighting>) + Send> Tamper for Notices<F> {
    fn on_sightings(&mut self, now: Timestamp, notices: &mut Vec<Sighting>) -> Timestamp {
        (self.0)(now, notices);
        now
    }
}

fn change_notices(change: impl FnMut(Timestamp, &mut Vec<Sighting>) + Send + 'static) -> Box<dyn Tamper> {
    Box::new(Notices(change))
}

fn filter_notices(mut change: impl FnMut(&mut Sighting) -> bool + Send + 'static) -> Box<dyn Tamper> {
    change_notices(move |_, notices| notices.retain_mut(|notice| change(notice)))
}

type Outpoint = (String, u32);

fn outpoint(notice: &Sighting) -> Outpoint {
    (notice.txid.clone(), notice.output)
}

/// The charges that merchants know: coin, mode and end of the lock, by address.
#[derive(Default)]
struct Charges {
    known: BTreeMap<String, (Asset, Mode, Timestamp)>,
}

impl Charges {
    fn learn(&mut self, response: &Response) {
        let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        let charge = &body["data"];
        let text = |key: &str| charge[key].as_str().unwrap_or_default();
        if let (Some(asset), Some(end)) = (Asset::parse(text("asset")), Timestamp::parse(text("expires_at")))
        {
            // The addresses of both modes look different, but here only the live chain matters.
            self.known.insert(text("deposit_address").to_owned(), (asset, Mode::Live, end));
        }
    }
}

/// A fault: transfers after the end of the lock are not reported.
#[derive(Default)]
struct LateMoneyLost {
    charges: Charges,
    reported: BTreeSet<Outpoint>,
}

impl Tamper for LateMoneyLost {
    fn on_response(&mut self, _: Timestamp, request: &Request<'_>, response: &mut Response) {
        if request.method == "POST" && request.path == "/v1/charges" {
            self.charges.learn(response);
        }
    }

    fn on_sightings(&mut self, now: Timestamp, notices: &mut Vec<Sighting>) -> Timestamp {
        notices.retain(|notice| {
            let end = self.charges.known.get(&notice.address).map(|(_, _, end)| *end);
            end.is_none_or(|end| now < end) && self.reported.insert(outpoint(notice))
                || self.reported.contains(&outpoint(notice))
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
            self.charges.learn(response);
        }
    }

    fn on_sightings(&mut self, now: Timestamp, notices: &mut Vec<Sighting>) -> Timestamp {
        let next = now.plus(Span(1));
        let ends = |notice: &Sighting| {
            self.charges.known.get(&notice.address).is_some_and(|charge| charge.2 == next)
        };
        if notices.iter().any(ends) { next } else { now }
    }
}

/// A fault: another coin at an address counts as the charge's.
#[derive(Default)]
struct AnyCoinCounts {
    charges: Charges,
}

impl Tamper for AnyCoinCounts {
    fn on_response(&mut self, _: Timestamp, request: &Request<'_>, response: &mut Response) {
        if request.method == "POST" && request.path == "/v1/charges" {
            self.charges.learn(response);
        }
    }

    fn on_sightings(&mut self, now: Timestamp, notices: &mut Vec<Sighting>) -> Timestamp {
        for notice in notices {
            if let Some((asset, ..)) = self.charges.known.get(&notice.address)
                && notice.asset != *asset
            {
                notice.asset = *asset;
                notice.amount = Coin::unit(*asset);
            }
        }
        now
    }
}

const CHAIN: &[Invariant] =
    &[Confirmations, PaidMoney, LockEnd, LateMoney, Tolerance, Conservation, Edges, Once, SameObject];
/// A fault: a fee bump is reported a moment after the removal of the replaced transaction.
#[derive(Default)]
struct BumpComesLater {
    reported: BTreeSet<Outpoint>,
    later: Vec<Sighting>,
}

impl Tamper for BumpComesLater {
    fn on_sightings(&mut self, now: Timestamp, notices: &mut Vec<Sighting>) -> Timestamp {
        let is_bumped = notices.iter().any(|notice| notice.depth == Depth::Gone(Disappearance::Replaced));
        let (fresh, known): (Vec<Sighting>, Vec<Sighting>) =
            std::mem::take(notices).into_iter().partition(|notice| self.reported.insert(outpoint(notice)));
        notices.append(&mut self.later);
        notices.extend(known);
        if is_bumped {
            self.later = fresh
        } else {
            notices.extend(fresh)
        }
        now
    }
}

/// A fault: a transfer first seen during a hold gets the time of the transfer that holds the charge.
#[derive(Default)]
struct HoldTakesMore {
    charges: Charges,
    reported: BTreeMap<Outpoint, Sighting>,
}

impl Tamper for HoldTakesMore {
    fn on_response(&mut self, _: Timestamp, request: &Request<'_>, response: &mut Response) {
        if request.method == "POST" && request.path == "/v1/charges" {
            self.charges.learn(response);
        }
    }

    fn on_sightings(&mut self, now: Timestamp, notices: &mut Vec<Sighting>) -> Timestamp {
        let mut gone = Vec::new();
        for notice in notices.iter() {
            let is_late = self.charges.known.get(&notice.address).is_some_and(|charge| now >= charge.2);
            if is_late && !self.reported.contains_key(&outpoint(notice)) {
                let held = self.reported.values().find(|reported| reported.address == notice.address);
                gone.extend(held.map(|reported| Sighting {
                    depth: Depth::Gone(Disappearance::Replaced),
                    ..reported.clone()
                }));
            }
        }
        self.reported.extend(notices.iter().map(|notice| (outpoint(notice), notice.clone())));
        gone.append(notices);
        *notices = gone;
        now
    }
}

/// A fault: a transfer stays credited after it disappeared.
#[derive(Default)]
struct PaidIsForGood {
    paid: BTreeSet<String>,
}

impl Tamper for PaidIsForGood {
    fn on_post(&mut self, _: Timestamp, _: Mode, post: &mut AttemptRequest) -> PostFate {
        let body: Value = serde_json::from_slice(&post.body).unwrap_or_default();
        if body["event"] == "charge.paid" {
            let address = body["data"]["charge"]["deposit_address"].as_str().unwrap_or_default();
            self.paid.insert(address.to_owned());
        }
        PostFate::Unchanged
    }

    fn on_sightings(&mut self, now: Timestamp, notices: &mut Vec<Sighting>) -> Timestamp {
        let falls = |depth| matches!(depth, Depth::Gone(_) | Depth::Confirmations(0));
        notices.retain(|notice| !(falls(notice.depth) && self.paid.contains(&notice.address)));
        now
    }
}

pub(super) const FAULTS: &[PlantedFault] = &[
    PlantedFault::new(
        "a fee-bumped replacement is reported late",
        &[Confirmations, Conservation, LateMoney, LockEnd, PaidMoney, Edges, Order],
        || Box::<BumpComesLater>::default(),
    ),
    PlantedFault::new("a transfer after the deadline counts during the hold", CHAIN, || {
        Box::<HoldTakesMore>::default()
    }),
    PlantedFault::new("a paid charge still counts a vanished transfer", CHAIN, || {
        Box::<PaidIsForGood>::default()
    }),
    PlantedFault::new("one confirmation too few", CHAIN, || demo("one-confirmation-more")),
    PlantedFault::new("one confirmation too many", CHAIN, || {
        filter_notices(|notice| {
            if let Depth::Confirmations(n @ 2..) = &mut notice.depth {
                *n -= 1;
            }
            true
        })
    }),
    PlantedFault::new("an orphaned transaction stays counted", CHAIN, || {
        let mut deepest: BTreeMap<Outpoint, u32> = BTreeMap::new();
        filter_notices(move |notice| match notice.depth {
            Depth::Confirmations(n) => {
                let known = deepest.entry(outpoint(notice)).or_default();
                *known = n.max(*known);
                n == *known
            }
            Depth::Gone(_) => true,
        })
    }),
    PlantedFault::new("a vanished transfer is not reported", CHAIN, || demo("vanished-unheard")),
    PlantedFault::new("a double-spent transfer is confirmed", CHAIN, || {
        filter_notices(|notice| {
            if notice.depth == Depth::Gone(Disappearance::DoubleSpent) {
                notice.depth = Depth::Confirmations(100);
            }
            true
        })
    }),
    PlantedFault::new("a replaced transfer is confirmed", CHAIN, || {
        filter_notices(|notice| {
            if notice.depth == Depth::Gone(Disappearance::Replaced) {
                notice.depth = Depth::Confirmations(100);
            }
            true
        })
    }),
    PlantedFault::new("only the first output of a transaction counts", CHAIN, || {
        filter_notices(|notice| notice.output == 0)
    }),
    PlantedFault::new("a transfer that is noticed twice counts twice", CHAIN, || {
        change_notices(|_, notices| {
            let again: Vec<Sighting> = notices
                .iter()
                .map(|notice| Sighting { output: notice.output + 100, ..notice.clone() })
                .collect();
            notices.extend(again);
        })
    }),
    PlantedFault::new("every transfer is one unit too small", CHAIN, || {
        filter_notices(|notice| {
            notice.amount = notice.amount.saturating_sub(Coin::unit(notice.asset));
            true
        })
    }),
    PlantedFault::new("transfers are not reported before their first block", CHAIN, || {
        let mut known = BTreeSet::new();
        filter_notices(move |notice| {
            notice.depth != Depth::Confirmations(0) && known.insert(outpoint(notice))
                || known.contains(&outpoint(notice))
        })
    }),
    PlantedFault::new("transfers count as soon as they are seen", CHAIN, || {
        filter_notices(|notice| {
            if notice.depth == Depth::Confirmations(0) {
                notice.depth = Depth::Confirmations(100);
            }
            true
        })
    }),
    PlantedFault::new("late payments are not reported", CHAIN, || Box::<LateMoneyLost>::default()),
    PlantedFault::new(
        "`≥` instead of `>` at the end of the lock",
        &[LockEnd, LateMoney, Order, Confirmations, Edges, Deliveries],
        || Box::<LastMomentIsLate>::default(),
    ),
    PlantedFault::new("a payment in another coin counts", CHAIN, || Box::<AnyCoinCounts>::default()),
    PlantedFault::new("a transfer that comes back is not reported again", CHAIN, || {
        let mut gone = BTreeSet::new();
        filter_notices(move |notice| match notice.depth {
            Depth::Gone(_) => {
                gone.insert(outpoint(notice));
                true
            }
            Depth::Confirmations(_) => !gone.contains(&outpoint(notice)),
        })
    }),
];
