//! A charge: commands, sightings and time are its inputs, events its outputs.
//!
//! A transfer *counts* when it has the required confirmations and its role allows it. Sufficient transfers that were seen
//! before the rate lock ended *hold* the charge open after it, for at most a day.

mod refund;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use reference_core::{
    asset::{Asset, Currency},
    mode::Mode,
    sighting::{Depth, Disappearance, Sighting},
    time::{Span, Timestamp},
};

pub(in crate::model) use self::refund::RefundModel;
use super::{money, texts::ChargeTexts};

/// The length of a rate lock.
pub const RATE_LOCK: Span = Span::mins(30);
/// The maximum time for which timely transfers hold a charge open after its lock.
pub const HOLD_MAX: Span = Span::hours(24);

/// The status of a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the API")]
pub enum Status {
    Pending,
    Underpaid,
    Paid,
    Expired,
    Canceled,
}

impl Status {
    /// Returns the name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::Underpaid => "underpaid",
            Status::Paid => "paid",
            Status::Expired => "expired",
            Status::Canceled => "canceled",
        }
    }

    /// Returns `true` for an open charge, which waits for payment.
    const fn is_open(self) -> bool {
        matches!(self, Status::Pending | Status::Underpaid)
    }
}

/// The terms of a charge, and its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The coin.
    pub asset: Asset,
    /// The price, in hundredths of the currency.
    pub cents: u64,
    /// The currency of the price.
    pub currency: Currency,
    /// Currency per coin, in units of 10⁻⁸.
    pub rate: u64,
    /// The payment link that opened it, as a number in its book.
    pub link: Option<usize>,
    /// The invoice that it pays, as a number in its book.
    pub invoice: Option<usize>,
}

/// The role of a transfer for its charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Seen before the rate lock expired, or a fee bump of such a transfer.
    OnTime,
    /// Seen later, or unconfirmed when the charge expired: it counts only if the owner accepts it.
    Late,
    /// Late, and accepted by the owner.
    Accepted,
    /// An additional transfer to a paid charge.
    Extra,
}

/// One output of one transaction.
#[derive(Clone, Debug)]
pub struct ChargeTransfer {
    /// The transaction.
    pub txid: String,
    /// The index of the output.
    pub output: u32,
    /// The amount in the coin's smallest units.
    pub units: u128,
    /// The confirmations at the last sighting; `None` if it disappeared.
    pub depth: Option<u32>,
    /// The height of the chain at the last sighting.
    height: u64,
    /// The reason why it disappeared; `None` if it exists.
    pub gone: Option<Disappearance>,
    pub(in crate::model) first_seen: Timestamp,
    /// The time at which it last reached the required confirmations. A reorganisation does not reset it.
    confirmed_at: Option<Timestamp>,
    role: Role,
    /// `true` if it is part of the received amount.
    pub is_counted: bool,
    /// `true` if an event has reported it as late.
    is_late_recorded: bool,
    /// `true` if an event has reported the received amount as insufficient because of it.
    is_underpayment_recorded: bool,
}

/// An expected event of a charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChargeEvent {
    /// A transfer was seen in time.
    Detected {
        /// The transaction.
        txid: String,
        /// The amount.
        units: u128,
    },
    /// The charge was paid.
    Paid {
        /// The deciding transaction.
        txid: String,
        /// The total received amount.
        units: u128,
    },
    /// The received amount is insufficient.
    Underpaid {
        /// The transaction.
        txid: String,
        /// The total received amount.
        units: u128,
    },
    /// A transfer arrived late.
    Late {
        /// The transaction.
        txid: String,
        /// The amount.
        units: u128,
    },
    /// The charge expired.
    Expired,
}

/// The state of the newest transfer to a charge at the time of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Situation {
    /// There is no transfer.
    NoTransfer,
    /// The newest transfer is in the mempool.
    Waiting,
    /// The newest transfer is in a block, with too few confirmations.
    InBlock,
    /// The newest transfer has the required confirmations.
    Confirmed,
    /// A reorganisation returned the newest transfer to the mempool after it was confirmed.
    Orphaned,
    /// The newest transfer disappeared.
    Gone,
}

impl Situation {
    /// All situations.
    pub const ALL: [Situation; 6] = [
        Situation::NoTransfer,
        Situation::Waiting,
        Situation::InBlock,
        Situation::Confirmed,
        Situation::Orphaned,
        Situation::Gone,
    ];

    /// Returns the name in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Situation::NoTransfer => "no transfer",
            Situation::Waiting => "in mempool",
            Situation::InBlock => "in a block",
            Situation::Confirmed => "confirmed",
            Situation::Orphaned => "orphaned",
            Situation::Gone => "gone",
        }
    }
}

/// The expected state of a charge.
#[derive(Clone, Debug)]
pub struct Charge {
    /// The terms.
    pub terms: Terms,
    /// The descriptive fields.
    pub texts: ChargeTexts,
    /// The time of opening.
    pub created_at: Timestamp,
    /// The amount due, in the coin's smallest units.
    pub due: u128,
    /// The underpayment tolerance, in hundredths of a percent.
    pub tolerance: u32,
    /// The overpayment threshold, in hundredths of a percent.
    pub threshold: u32,
    /// The required confirmations.
    pub required: u32,
    /// The time at which the rate lock expires.
    pub lock_ends_at: Timestamp,
    /// The status.
    pub status: Status,
    /// Transfers to its address, in its coin, in the order in which they were first seen.
    pub transfers: Vec<ChargeTransfer>,
    /// The refunds, in order of recording.
    pub(in crate::model) refunds: Vec<RefundModel>,
    /// The time at which the deciding transfer was confirmed.
    pub paid_at: Option<Timestamp>,
}

/// Returns the confirmations that a coin requires in a mode.
fn required_confirmations(asset: Asset, mode: Mode) -> u32 {
    let [live, test] = match asset.code() {
        "BTC" | "BCH" => [2, 1],
        "LTC" => [3, 1],
        "DOGE" => [6, 2],
        "XMR" => [10, 2],
        "SOL" => [32, 4],
        "USDT_TRON" => [20, 5],
        "USDC_BASE" | "USDT_BSC" => [15, 4],
        "USDC_POLYGON" => [64, 8],
        // Ethereum and the tokens on it.
        _ => [12, 3],
    };
    if mode == Mode::Live { live } else { test }
}

impl Charge {
    /// Opens a charge. `bounds` are the underpayment tolerance and the overpayment threshold, in hundredths of a percent.
    pub fn open(
        now: Timestamp,
        (terms, texts): (Terms, ChargeTexts),
        bounds: (u32, u32),
        mode: Mode,
    ) -> Charge {
        Charge {
            terms,
            texts,
            created_at: now,
            due: money::amount_due(terms.cents, terms.rate, terms.asset),
            tolerance: bounds.0,
            threshold: bounds.1,
            required: required_confirmations(terms.asset, mode),
            lock_ends_at: now.plus(RATE_LOCK),
            status: Status::Pending,
            transfers: Vec::new(),
            refunds: Vec::new(),
            paid_at: None,
        }
    }

    /// Returns the received amount.
    pub fn received_units(&self) -> u128 {
        self.transfers.iter().filter(|transfer| transfer.is_counted).map(|transfer| transfer.units).sum()
    }

    /// Returns the state of the newest transfer to the charge.
    pub fn situation(&self) -> Situation {
        let Some(newest) = self.transfers.last() else { return Situation::NoTransfer };
        match newest.depth {
            None => Situation::Gone,
            Some(0) if newest.confirmed_at.is_some() => Situation::Orphaned,
            Some(0) => Situation::Waiting,
            Some(depth) if depth < self.required => Situation::InBlock,
            Some(_) => Situation::Confirmed,
        }
    }

    /// Returns the confirmations of a transfer at a height of its chain. They continue to grow after it is confirmed.
    pub(in crate::model) fn confirmations(&self, transfer: &ChargeTransfer, height: u64) -> u64 {
        let sighted = u64::from(transfer.depth.unwrap_or(0));
        if self.is_confirmed(transfer) {
            height.max(transfer.height) - transfer.height + sighted
        } else {
            sighted
        }
    }

    /// Returns `true` if a transfer has the required confirmations.
    fn is_confirmed(&self, transfer: &ChargeTransfer) -> bool {
        transfer.depth.is_some_and(|depth| depth >= self.required)
    }

    /// Returns `true` if the timely transfers together are sufficient, and hold the charge open: until a day
    /// after the end of its lock.
    pub fn is_held(&self, now: Timestamp) -> bool {
        let timely = self
            .transfers
            .iter()
            .filter(|transfer| transfer.role == Role::OnTime && transfer.depth.is_some());
        let units: u128 = timely.map(|transfer| transfer.units).sum();
        let unrefunded = units.saturating_sub(self.refunds_of_received());
        now < self.lock_ends_at.plus(HOLD_MAX)
            && units > 0
            && money::is_enough(unrefunded, self.due, self.tolerance)
    }

    /// Applies a watcher's sightings of one moment to this charge. Returns the events that they cause.
    pub fn on_sightings(&mut self, now: Timestamp, sightings: &[&Sighting]) -> Vec<ChargeEvent> {
        let (mut events, mut changed) = (Vec::new(), Vec::new());
        let (known, mut new): (Vec<&Sighting>, Vec<&Sighting>) =
            sightings.iter().copied().partition(|sighting| self.find(sighting).is_some());
        let mut replaced: Vec<usize> = Vec::new();
        for sighting in known {
            let index = self.find(sighting).expect("a known sighting has a transfer");
            if sighting.depth == Depth::Absent(Disappearance::Replaced)
                && self.transfers[index].depth.is_some()
            {
                replaced.push(index);
            }
            self.record_depth(now, index, sighting);
            let transfer = &mut self.transfers[index];
            if transfer.role == Role::Late && transfer.depth.is_some() && !transfer.is_late_recorded {
                transfer.is_late_recorded = true;
                events.push(ChargeEvent::Late { txid: transfer.txid.clone(), units: transfer.units });
            }
            changed.push(index);
        }
        // A transfer of zero is ignored.
        new.retain(|sighting| sighting.amount.atto() > 0);
        let bumps = self.find_fee_bumps(&replaced, &new);
        let (bumped, new): (Vec<&Sighting>, Vec<&Sighting>) =
            new.into_iter().partition(|sighting| bumps.contains_key(sighting.txid.as_str()));
        for sighting in bumped {
            changed.extend(self.apply_sighting(now, bumps[sighting.txid.as_str()], sighting, &mut events));
        }
        // A hold that expires now does so before new transfers are processed.
        if now >= self.lock_ends_at && !self.is_held(now) {
            self.count_confirmed(&changed, &mut events);
            self.expire_if_due(now, &mut events);
        }
        for sighting in new {
            changed.extend(self.apply_sighting(now, now, sighting, &mut events));
        }
        self.count_confirmed(&changed, &mut events);
        self.expire_if_due(now, &mut events);
        events
    }

    /// Applies a sighting of a new transfer. Returns the index of the transfer, or `None` if it disappeared before it was
    /// seen.
    fn apply_sighting(
        &mut self,
        now: Timestamp,
        first_seen: Timestamp,
        sighting: &Sighting,
        events: &mut Vec<ChargeEvent>,
    ) -> Option<usize> {
        let index = match self.find(sighting) {
            Some(index) => index,
            None if matches!(sighting.depth, Depth::Absent(_)) => return None,
            None => self.add_transfer(first_seen, sighting, events),
        };
        self.record_depth(now, index, sighting);
        Some(index)
    }

    /// Returns the fee bumps among new transactions, with the times at which they count as seen. A fee bump pays at least as
    /// much as a transaction that was replaced at this moment, and counts as seen when that was.
    fn find_fee_bumps<'s>(&self, replaced: &[usize], new: &[&'s Sighting]) -> BTreeMap<&'s str, Timestamp> {
        let mut amounts: BTreeMap<&str, BTreeMap<u32, u128>> = BTreeMap::new();
        for sighting in new.iter().filter(|sighting| !matches!(sighting.depth, Depth::Absent(_))) {
            amounts.entry(&sighting.txid).or_default().insert(sighting.output, self.units(sighting));
        }
        let mut bumps = BTreeMap::new();
        let mut processed: Vec<&str> = Vec::new();
        for index in replaced {
            let ChargeTransfer { txid, first_seen, .. } = &self.transfers[*index];
            if processed.contains(&txid.as_str()) {
                continue;
            }
            processed.push(txid);
            let old_outputs = replaced
                .iter()
                .map(|index| &self.transfers[*index])
                .filter(|transfer| transfer.txid == *txid);
            let units: u128 = old_outputs.map(|transfer| transfer.units).sum();
            let pays_as_much = |sighting: &&&Sighting| {
                let txid = sighting.txid.as_str();
                !bumps.contains_key(txid)
                    && amounts.get(txid).is_some_and(|outputs| outputs.values().sum::<u128>() >= units)
            };
            if let Some(bump) = new.iter().find(pays_as_much) {
                bumps.insert(bump.txid.as_str(), *first_seen);
            }
        }
        bumps
    }

    /// Returns the amount of a sighting, in the coin's smallest units.
    fn units(&self, sighting: &Sighting) -> u128 {
        sighting.amount.atto() / money::atto_per_unit(self.terms.asset)
    }

    /// Returns the index of the transfer of a sighting, if it is known.
    fn find(&self, sighting: &Sighting) -> Option<usize> {
        self.transfers
            .iter()
            .position(|transfer| transfer.txid == sighting.txid && transfer.output == sighting.output)
    }

    /// Adds a transfer and its event. Returns its index.
    fn add_transfer(
        &mut self,
        first_seen: Timestamp,
        sighting: &Sighting,
        events: &mut Vec<ChargeEvent>,
    ) -> usize {
        let role = match self.status {
            Status::Paid => Role::Extra,
            status if status.is_open() && first_seen < self.lock_ends_at => Role::OnTime,
            _ => Role::Late,
        };
        let (txid, units) = (sighting.txid.clone(), self.units(sighting));
        events.push(match role {
            Role::OnTime => ChargeEvent::Detected { txid: txid.clone(), units },
            _ => ChargeEvent::Late { txid: txid.clone(), units },
        });
        self.transfers.push(ChargeTransfer {
            txid,
            output: sighting.output,
            units,
            depth: Some(0),
            height: sighting.height,
            gone: None,
            first_seen,
            confirmed_at: None,
            role,
            is_counted: false,
            is_late_recorded: role != Role::OnTime,
            is_underpayment_recorded: false,
        });
        self.transfers.len() - 1
    }

    /// Records the depth of a transfer.
    fn record_depth(&mut self, now: Timestamp, index: usize, sighting: &Sighting) {
        let required = self.required;
        let transfer = &mut self.transfers[index];
        let was_confirmed = transfer.depth.is_some_and(|depth| depth >= required);
        transfer.height = sighting.height;
        (transfer.depth, transfer.gone) = match sighting.depth {
            Depth::Confirmations(n) => (Some(n), None),
            Depth::Absent(reason) => (None, Some(reason)),
        };
        if !was_confirmed && transfer.depth.is_some_and(|depth| depth >= required) {
            transfer.confirmed_at = Some(now);
        }
    }

    /// Counts those of the changed transfers that are newly confirmed, and stops counting those that are not any more.
    fn count_confirmed(&mut self, changed: &[usize], events: &mut Vec<ChargeEvent>) {
        let mut newly_counted = Vec::new();
        for &index in changed {
            let is_confirmed = self.is_confirmed(&self.transfers[index]);
            let transfer = &mut self.transfers[index];
            if transfer.role == Role::Late {
                // The owner has to accept it first, which changes its role.
                continue;
            }
            if is_confirmed && !transfer.is_counted {
                transfer.is_counted = true;
                newly_counted.push(index);
            } else if !is_confirmed && transfer.is_counted {
                transfer.is_counted = false;
                newly_counted.retain(|other| *other != index);
            }
        }
        self.update_status(&newly_counted, events);
    }

    /// Decides after newly counted transfers whether the charge is paid or underpaid.
    fn update_status(&mut self, newly_counted: &[usize], events: &mut Vec<ChargeEvent>) {
        let Some(&last) = newly_counted.last() else { return };
        let has_accepted =
            self.transfers.iter().any(|transfer| transfer.is_counted && transfer.role == Role::Accepted);
        if self.status == Status::Paid || !(self.status.is_open() || has_accepted) {
            return;
        }
        let txid = self.transfers[last].txid.clone();
        if money::is_enough(self.effective_units(), self.due, self.tolerance) {
            let counted = self.transfers.iter().filter(|transfer| transfer.is_counted);
            self.paid_at = counted.filter_map(|transfer| transfer.confirmed_at).max();
            self.status = Status::Paid;
            for index in 0..self.transfers.len() {
                if !self.transfers[index].is_counted && !self.is_fully_refunded(index) {
                    self.transfers[index].role = Role::Extra;
                    self.transfers[index].is_counted = self.is_confirmed(&self.transfers[index]);
                }
            }
            events.push(ChargeEvent::Paid { txid, units: self.received_units() });
            return;
        }
        if self.status.is_open() {
            self.status = Status::Underpaid;
        }
        let mut is_new = false;
        for &index in newly_counted {
            is_new |= !self.transfers[index].is_underpayment_recorded;
            self.transfers[index].is_underpayment_recorded = true;
        }
        if is_new {
            events.push(ChargeEvent::Underpaid { txid, units: self.received_units() });
        }
    }

    /// Expires the charge if its lock has ended and nothing holds it open.
    pub fn expire_if_due(&mut self, now: Timestamp, events: &mut Vec<ChargeEvent>) {
        if !self.status.is_open() || now < self.lock_ends_at || self.is_held(now) {
            return;
        }
        self.status = Status::Expired;
        events.push(ChargeEvent::Expired);
        for transfer in &mut self.transfers {
            if transfer.role == Role::OnTime && !transfer.is_counted {
                transfer.role = Role::Late;
                if transfer.depth.is_some() {
                    transfer.is_late_recorded = true;
                    events.push(ChargeEvent::Late { txid: transfer.txid.clone(), units: transfer.units });
                }
            }
        }
    }

    /// Cancels the charge and returns `true` if it is untouched. A transfer that disappeared is late if it returns.
    pub fn cancel(&mut self) -> bool {
        let is_untouched = self.is_untouched();
        if is_untouched {
            self.status = Status::Canceled;
            self.transfers.iter_mut().for_each(|transfer| transfer.role = Role::Late);
        }
        is_untouched
    }

    /// Returns `true` if the charge is pending and has no transfer: any that was seen has disappeared.
    pub fn is_untouched(&self) -> bool {
        self.status == Status::Pending && self.transfers.iter().all(|transfer| transfer.depth.is_none())
    }

    /// Returns the status of a transfer in the API.
    pub fn transfer_status(&self, transfer: &ChargeTransfer) -> &'static str {
        match transfer.gone {
            Some(reason) => reason.as_str(),
            None if self.is_confirmed(transfer) => "confirmed",
            None => "pending",
        }
    }

    /// Returns `true` if the charge is open.
    pub fn is_open(&self) -> bool {
        self.status.is_open()
    }

    /// Accepts the confirmed late transfers that were not refunded in full: all, or those of one transaction.
    /// Returns `None` if there are none, or if the charge is neither expired nor canceled.
    pub fn accept(&mut self, txid: Option<&str>) -> Option<Vec<ChargeEvent>> {
        if !matches!(self.status, Status::Expired | Status::Canceled) {
            return None;
        }
        let is_selected = |transfer: &ChargeTransfer| {
            transfer.role == Role::Late && txid.is_none_or(|txid| txid == transfer.txid)
        };
        let accepted: Vec<usize> = (0..self.transfers.len())
            .filter(|index| {
                is_selected(&self.transfers[*index]) && self.is_confirmed(&self.transfers[*index])
            })
            .filter(|index| !self.is_fully_refunded(*index))
            .collect();
        if accepted.is_empty() {
            return None;
        }
        for &index in &accepted {
            let transfer = &mut self.transfers[index];
            (transfer.role, transfer.is_counted, transfer.is_underpayment_recorded) =
                (Role::Accepted, true, false);
        }
        let mut events = Vec::new();
        self.update_status(&accepted, &mut events);
        Some(events)
    }
}
