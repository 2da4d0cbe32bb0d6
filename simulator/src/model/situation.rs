//! What goes wrong around a charge, so that a report can say which faults met which events.

use std::collections::BTreeMap;

use reference_core::{
    asset::Asset,
    mode::Mode,
    time::{Span, Timestamp},
};

use crate::workload::Fault;

/// So long after a fault that has no end of its own it still counts as around.
const AFTERMATH: Span = Span::hours(1);

/// A set of faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Troubles(u64);

impl Troubles {
    /// This one alone.
    pub fn only(fault: Fault) -> Troubles {
        Troubles(1 << fault as u64)
    }

    /// Both.
    #[must_use]
    pub fn with(self, other: Troubles) -> Troubles {
        Troubles(self.0 | other.0)
    }

    /// Whether it is among them.
    pub fn has(self, fault: Fault) -> bool {
        self.0 & (1 << fault as u64) != 0
    }

    /// Nothing went wrong.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// What goes wrong in a world, and since when or until when.
#[derive(Default)]
pub(super) struct Weather {
    /// What was done to a transaction.
    transactions: BTreeMap<String, Troubles>,
    /// Faults of a chain that last until they are mended.
    lasting: BTreeMap<(Mode, Asset), Troubles>,
    /// When a fault last struck a chain.
    struck: BTreeMap<(Mode, Asset), BTreeMap<Fault, Timestamp>>,
    /// When a fault last struck everybody.
    everywhere: BTreeMap<Fault, Timestamp>,
    /// Merchants that are in trouble.
    merchants: BTreeMap<String, Troubles>,
}

impl Weather {
    pub(super) fn of(&self, txid: &str) -> Troubles {
        self.transactions.get(txid).copied().unwrap_or_default()
    }

    pub(super) fn touch(&mut self, txid: &str, fault: Fault) {
        let before = self.of(txid);
        self.transactions.insert(txid.to_owned(), before.with(Troubles::only(fault)));
    }

    pub(super) fn strike(&mut self, at: Timestamp, chain: (Mode, Asset), fault: Fault) {
        self.struck.entry(chain).or_default().insert(fault, at);
    }

    pub(super) fn last(&mut self, chain: (Mode, Asset), fault: Fault, is_on: bool) {
        let troubles = self.lasting.entry(chain).or_default();
        troubles.0 =
            if is_on { troubles.0 | Troubles::only(fault).0 } else { troubles.0 & !Troubles::only(fault).0 };
    }

    pub(super) fn strike_everywhere(&mut self, at: Timestamp, fault: Fault) {
        self.everywhere.insert(fault, at);
    }

    pub(super) fn restarted(&mut self, at: Timestamp) {
        self.strike_everywhere(at, Fault::Restart);
    }

    pub(super) fn merchant(&mut self, host: &str, troubles: Troubles) {
        self.merchants.insert(host.to_owned(), troubles);
    }

    /// What is wrong with the whole world now.
    pub(super) fn everywhere(&self, now: Timestamp) -> Troubles {
        let recent = self.everywhere.iter().filter(|(_, at)| now.since(**at) < AFTERMATH);
        let recent = recent.fold(Troubles::default(), |all, (fault, _)| all.with(Troubles::only(*fault)));
        self.merchants.values().fold(recent, |all, troubles| all.with(*troubles))
    }

    /// What is wrong around a charge now, beside what befell its own transfers.
    pub(super) fn around(&self, now: Timestamp, mode: Mode, asset: Asset) -> Troubles {
        let mut all = self.everywhere(now);
        if let Some(lasting) = self.lasting.get(&(mode, asset)) {
            all = all.with(*lasting);
        }
        for (fault, at) in self.struck.get(&(mode, asset)).into_iter().flatten() {
            if now.since(*at) < AFTERMATH {
                all = all.with(Troubles::only(*fault));
            }
        }
        all
    }
}
