//! The service hears something else of the chains than what the watchers say.

use std::collections::{BTreeMap, BTreeSet};

use reference_core::{
    asset::Asset,
    mode::Mode,
    money::Coin,
    sighting::{Depth, Gone, Sighting},
    time::{Span, Timestamp},
    wire::http::{Request, Response},
};
use serde_json::Value;
use simulator::{law::Law, tamper::Tamper};

use crate::Bug;

/// Spoils what the watchers say.
struct Notices<F>(F);

impl<F: FnMut(Timestamp, &mut Vec<Sighting>) + Send> Tamper for Notices<F> {
    fn sightings(&mut self, now: Timestamp, notices: &mut Vec<Sighting>) -> Timestamp {
        (self.0)(now, notices);
        now
    }
}

fn spoil(change: impl FnMut(Timestamp, &mut Vec<Sighting>) + Send + 'static) -> Box<dyn Tamper> {
    Box::new(Notices(change))
}

fn each(mut change: impl FnMut(&mut Sighting) -> bool + Send + 'static) -> Box<dyn Tamper> {
    spoil(move |_, notices| notices.retain_mut(|notice| change(notice)))
}

type Place = (String, u32);

fn place(notice: &Sighting) -> Place {
    (notice.txid.clone(), notice.output)
}

/// What merchants were told of their charges: coin, mode, end of the lock, by address.
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
            // Deposit addresses of the modes look different, and `tb1`, `bc1` and the like say which is which; here
            // it is enough that the live chain is the usual one.
            self.known.insert(text("deposit_address").to_owned(), (asset, Mode::Live, end));
        }
    }
}

/// Money after the end of the lock is never heard of.
#[derive(Default)]
struct LateMoneyLost {
    charges: Charges,
    heard: BTreeSet<Place>,
}

impl Tamper for LateMoneyLost {
    fn response(&mut self, _: Timestamp, request: &Request<'_>, response: &mut Response) {
        if request.method == "POST" && request.path == "/v1/charges" {
            self.charges.learn(response);
        }
    }

    fn sightings(&mut self, now: Timestamp, notices: &mut Vec<Sighting>) -> Timestamp {
        notices.retain(|notice| {
            let end = self.charges.known.get(&notice.address).map(|(_, _, end)| *end);
            end.is_none_or(|end| now < end) && self.heard.insert(place(notice))
                || self.heard.contains(&place(notice))
        });
        now
    }
}

/// What is seen in the last microsecond of the lock is heard as if the lock were over.
#[derive(Default)]
struct LastMomentIsLate {
    charges: Charges,
}

impl Tamper for LastMomentIsLate {
    fn response(&mut self, _: Timestamp, request: &Request<'_>, response: &mut Response) {
        if request.method == "POST" && request.path == "/v1/charges" {
            self.charges.learn(response);
        }
    }

    fn sightings(&mut self, now: Timestamp, notices: &mut Vec<Sighting>) -> Timestamp {
        let next = now.plus(Span(1));
        let ends = |notice: &Sighting| self.charges.known.get(&notice.address).is_some_and(|it| it.2 == next);
        if notices.iter().any(ends) { next } else { now }
    }
}

/// Another coin at an address counts as its own.
#[derive(Default)]
struct AnyCoinCounts {
    charges: Charges,
}

impl Tamper for AnyCoinCounts {
    fn response(&mut self, _: Timestamp, request: &Request<'_>, response: &mut Response) {
        if request.method == "POST" && request.path == "/v1/charges" {
            self.charges.learn(response);
        }
    }

    fn sightings(&mut self, now: Timestamp, notices: &mut Vec<Sighting>) -> Timestamp {
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

pub(crate) fn bugs() -> Vec<Bug> {
    use Law::{
        Confirmations, Conservation, Deliveries, Edges, LateMoney, LockEnd, Once, Order, PaidMoney,
        SameObject, Tolerance,
    };
    const CHAIN: &[Law] =
        &[Confirmations, PaidMoney, LockEnd, LateMoney, Tolerance, Conservation, Edges, Once, SameObject];
    vec![
        Bug {
            name: "one confirmation too few",
            laws: CHAIN,
            make: || {
                each(|notice| {
                    if let Depth::Confirmations(n @ 1..) = &mut notice.depth {
                        *n += 1;
                    }
                    true
                })
            },
        },
        Bug {
            name: "one confirmation too many",
            laws: CHAIN,
            make: || {
                each(|notice| {
                    if let Depth::Confirmations(n @ 2..) = &mut notice.depth {
                        *n -= 1;
                    }
                    true
                })
            },
        },
        Bug {
            name: "an orphaned transaction stays counted",
            laws: CHAIN,
            make: || {
                let mut deepest: BTreeMap<Place, u32> = BTreeMap::new();
                each(move |notice| match notice.depth {
                    Depth::Confirmations(n) => {
                        let known = deepest.entry(place(notice)).or_default();
                        *known = n.max(*known);
                        n == *known
                    }
                    Depth::Gone(_) => true,
                })
            },
        },
        Bug {
            name: "what vanishes is not noticed",
            laws: CHAIN,
            make: || each(|notice| !matches!(notice.depth, Depth::Gone(_))),
        },
        Bug {
            name: "a double-spent transfer is confirmed",
            laws: CHAIN,
            make: || {
                each(|notice| {
                    if notice.depth == Depth::Gone(Gone::DoubleSpent) {
                        notice.depth = Depth::Confirmations(100);
                    }
                    true
                })
            },
        },
        Bug {
            name: "a replaced transfer is confirmed",
            laws: CHAIN,
            make: || {
                each(|notice| {
                    if notice.depth == Depth::Gone(Gone::Replaced) {
                        notice.depth = Depth::Confirmations(100);
                    }
                    true
                })
            },
        },
        Bug {
            name: "only the first output of a transaction counts",
            laws: CHAIN,
            make: || each(|notice| notice.output == 0),
        },
        Bug {
            name: "a transfer that is noticed twice counts twice",
            laws: CHAIN,
            make: || {
                spoil(|_, notices| {
                    let again: Vec<Sighting> = notices
                        .iter()
                        .map(|notice| Sighting { output: notice.output + 100, ..notice.clone() })
                        .collect();
                    notices.extend(again);
                })
            },
        },
        Bug {
            name: "one unit is lost of every transfer",
            laws: CHAIN,
            make: || {
                each(|notice| {
                    notice.amount = notice.amount.less(Coin::unit(notice.asset));
                    true
                })
            },
        },
        Bug {
            name: "transfers are only seen once a block holds them",
            laws: CHAIN,
            make: || {
                let mut known = BTreeSet::new();
                each(move |notice| {
                    notice.depth != Depth::Confirmations(0) && known.insert(place(notice))
                        || known.contains(&place(notice))
                })
            },
        },
        Bug {
            name: "transfers count as soon as they are seen",
            laws: CHAIN,
            make: || {
                each(|notice| {
                    if notice.depth == Depth::Confirmations(0) {
                        notice.depth = Depth::Confirmations(100);
                    }
                    true
                })
            },
        },
        Bug { name: "late money is lost", laws: CHAIN, make: || Box::<LateMoneyLost>::default() },
        Bug {
            name: "`≥` for `>` in the last moment of the lock",
            laws: &[LockEnd, LateMoney, Order, Confirmations, Edges, Deliveries],
            make: || Box::<LastMomentIsLate>::default(),
        },
        Bug { name: "another coin counts as its own", laws: CHAIN, make: || Box::<AnyCoinCounts>::default() },
        Bug {
            name: "a transfer that comes back is not heard of again",
            laws: CHAIN,
            make: || {
                let mut gone = BTreeSet::new();
                each(move |notice| match notice.depth {
                    Depth::Gone(_) => {
                        gone.insert(place(notice));
                        true
                    }
                    Depth::Confirmations(_) => !gone.contains(&place(notice)),
                })
            },
        },
    ]
}
