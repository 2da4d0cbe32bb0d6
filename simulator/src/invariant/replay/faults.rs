//! The faults of a world around each event: sweeps report which combinations of fault and event they covered.
//!
//! Example: a reorganisation of the BTC chain counts as a fault of every BTC charge for the following hour.

use std::collections::BTreeMap;

use reference_core::{
    asset::Asset,
    mode::Mode,
    time::{Span, Timestamp},
};

use super::request_fields::RequestFields;
use crate::{record::RecordedCall, workload::Fault};

/// The time after a momentary fault during which it still counts as active.
const AFTERMATH: Span = Span::hours(1);

/// A set of faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultSet(u64);

impl FaultSet {
    /// Returns the set of one fault.
    pub fn single(fault: Fault) -> FaultSet {
        FaultSet(1 << fault as u64)
    }

    /// Returns the union of two sets.
    #[must_use]
    pub fn union(self, other: FaultSet) -> FaultSet {
        FaultSet(self.0 | other.0)
    }

    /// Returns `true` if the set contains the fault.
    pub fn contains(self, fault: Fault) -> bool {
        self.0 & (1 << fault as u64) != 0
    }

    /// Returns `true` if the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<Fault> for FaultSet {
    fn from_iter<T: IntoIterator<Item = Fault>>(faults: T) -> FaultSet {
        faults.into_iter().fold(FaultSet::default(), |all, fault| all.union(FaultSet::single(fault)))
    }
}

/// The chain of a coin in a mode.
type ChainId = (Mode, Asset);

/// The faults of a world so far, with their times.
#[derive(Default)]
pub(super) struct FaultTracker {
    /// The faults of each transaction.
    transactions: BTreeMap<String, FaultSet>,
    /// The faults of each chain that last until a request ends them.
    lasting: BTreeMap<ChainId, FaultSet>,
    /// The time of each momentary fault's last occurrence on a chain.
    momentary: BTreeMap<ChainId, BTreeMap<Fault, Timestamp>>,
    /// The time of each momentary fault's last occurrence in the whole world.
    world_wide: BTreeMap<Fault, Timestamp>,
    /// The faults of each merchant's host.
    merchants: BTreeMap<String, FaultSet>,
}

impl FaultTracker {
    /// Returns the faults of a transaction.
    pub(super) fn transaction_faults(&self, txid: &str) -> FaultSet {
        self.transactions.get(txid).copied().unwrap_or_default()
    }

    /// Adds faults of a transaction.
    pub(super) fn add_transaction_faults(&mut self, txid: &str, faults: FaultSet) {
        let transaction_faults = self.transactions.entry(txid.to_owned()).or_default();
        *transaction_faults = transaction_faults.union(faults);
    }

    /// Records a momentary fault of the whole world.
    pub(super) fn record_world_fault(&mut self, at: Timestamp, fault: Fault) {
        self.world_wide.insert(fault, at);
    }

    /// Records a momentary fault of a chain.
    fn record_chain_fault(&mut self, at: Timestamp, chain: ChainId, fault: Fault) {
        self.momentary.entry(chain).or_default().insert(fault, at);
    }

    /// Starts or ends a lasting fault of a chain.
    fn set_lasting(&mut self, chain: ChainId, fault: Fault, is_active: bool) {
        let faults = self.lasting.entry(chain).or_default();
        let bit = FaultSet::single(fault).0;
        faults.0 = if is_active { faults.0 | bit } else { faults.0 & !bit };
    }

    /// Records the faults that a successful sandbox request introduces or ends. `path` is the part after `/sandbox/`.
    pub(super) fn record_call(
        &mut self,
        at: Timestamp,
        path: &[&str],
        call: &RecordedCall,
        fields: &RequestFields,
    ) {
        let mode = fields.mode.as_deref().and_then(Mode::parse).unwrap_or(Mode::Test);
        let chain = fields.asset.as_deref().and_then(Asset::parse).map(|asset| (mode, asset));
        let txid = fields.txid.as_deref().unwrap_or_default();
        match (path, chain) {
            (["double-spend"], _) => self.add_transaction_faults(txid, FaultSet::single(Fault::DoubleSpend)),
            (["replace"], _) => self.add_transaction_faults(txid, FaultSet::single(Fault::Replace)),
            (["drop" | "rebroadcast"], _) => self.add_transaction_faults(txid, FaultSet::single(Fault::Drop)),
            (["reorg"], Some(chain)) => self.record_chain_fault(at, chain, Fault::Reorg),
            (["stall"], Some(chain)) => self.record_chain_fault(at, chain, Fault::Stall),
            (["congest"], Some(chain)) => {
                let is_congested = fields.empty.unwrap_or(0) + fields.full.unwrap_or(0) > 0;
                self.set_lasting(chain, Fault::Congestion, is_congested);
            }
            (["watchers"], Some(chain)) => {
                self.record_chain_fault(at, chain, Fault::Watcher);
                self.set_lasting(chain, Fault::Watcher, fields.notices.as_deref() != Some("up"));
            }
            (["merchants"], _) => {
                let behaviors = fields.answers.iter().map(String::as_str).chain(fields.state.as_deref());
                let host = fields.name.clone().unwrap_or_default();
                self.merchants.insert(host, behaviors.filter_map(merchant_fault).collect());
            }
            (["endpoints", _, "rotate"], _) => self.record_world_fault(at, Fault::Rotation),
            (["endpoints", ..], _) => self.record_world_fault(at, Fault::EndpointChange),
            (["accounts", _], _) if call.method == "PATCH" => self.record_world_fault(at, Fault::Settings),
            _ => {}
        }
    }

    /// Returns the current faults of the whole world.
    pub(super) fn world_faults(&self, now: Timestamp) -> FaultSet {
        let recent = recent_faults(&self.world_wide, now);
        self.merchants.values().fold(recent, |all, faults| all.union(*faults))
    }

    /// Returns the current faults of a chain and of the whole world, without those of single transfers.
    pub(super) fn chain_faults(&self, now: Timestamp, chain: ChainId) -> FaultSet {
        let lasting = self.lasting.get(&chain).copied().unwrap_or_default();
        let momentary = self.momentary.get(&chain);
        let recent = momentary.map_or(FaultSet::default(), |last_times| recent_faults(last_times, now));
        self.world_faults(now).union(lasting).union(recent)
    }
}

/// Returns the faults that still count as active, given the time of each fault's last occurrence.
fn recent_faults(last_times: &BTreeMap<Fault, Timestamp>, now: Timestamp) -> FaultSet {
    last_times.iter().filter(|(_, at)| now.since(**at) < AFTERMATH).map(|(fault, _)| *fault).collect()
}

/// Returns the faults that a payment introduces.
pub(super) fn payment_faults(fields: &RequestFields) -> FaultSet {
    let fee = match fields.fee.as_deref() {
        Some("low") => Some(Fault::LowFee),
        Some("stuck") => Some(Fault::Stuck),
        _ => None,
    };
    let unseen = (fields.unseen == Some(true)).then_some(Fault::Unseen);
    let outputs = fields.outputs.is_some_and(|outputs| outputs > 1).then_some(Fault::Outputs);
    [fee, unseen, outputs].into_iter().flatten().collect()
}

/// Returns the fault of a merchant's behaviour, as `POST /sandbox/merchants` names it; `None` if it has none.
fn merchant_fault(behavior: &str) -> Option<Fault> {
    match behavior {
        "up" => None,
        "lost" => Some(Fault::AnswerLost),
        "twice" => Some(Fault::DoublePost),
        "lagging" => Some(Fault::Lag),
        "down" | "slow" | "private" | "redirect" => Some(Fault::Outage),
        _ => Some(Fault::BadAnswer),
    }
}
