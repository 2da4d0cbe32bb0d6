//! The life cycle of a charge: state and input in, changes out.
//!
//! ```text
//!              transfer confirmed, within tolerance
//!   pending ──────────────────────────────────────────▶ paid
//!    │  │ │    transfer confirmed, too little              ▲ ▲
//!    │  │ └────────────────▶ underpaid ──(rest confirmed)──┘ │ late payment accepted
//!    │  └─ lock ran out ──────────┴─▶ expired ───────────────┤
//!    └─ canceled ─────────────────────▶ canceled ────────────┘
//! ```

use std::{collections::BTreeMap, sync::Arc};

use super::{Charge, ChargeStatus, Standing, Terms, Transfer};
use crate::{
    charge::Bounds,
    error::ApiError,
    id::Code,
    money::Coin,
    sighting::{Depth, Gone, Sighting},
    time::{Span, Timestamp},
};

/// The time for which the rate of a new charge is locked (`open.charge.lock`).
pub const LOCK: Span = Span::mins(30);
/// The longest time for which transfers on time hold a charge open after its lock (`open.charge.hold`).
pub const HOLD_MAX: Span = Span::hours(24);

/// A change of a charge. The book turns each into an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChargeChange {
    /// A transfer that is on time was seen.
    PaymentDetected {
        /// The transaction.
        txid: Arc<str>,
        /// Its amount.
        amount: Coin,
    },
    /// Enough is confirmed.
    Paid {
        /// The deciding transaction.
        txid: Arc<str>,
        /// Received in total.
        received: Coin,
    },
    /// A confirmed payment falls short.
    Underpaid {
        /// The transaction.
        txid: Arc<str>,
        /// Received in total.
        received: Coin,
    },
    /// Money arrived that the charge no longer waits for.
    LatePayment {
        /// The transaction.
        txid: Arc<str>,
        /// Its amount.
        amount: Coin,
    },
    /// The lock ran out.
    Expired,
}

impl Charge {
    /// A charge that was just opened.
    pub fn open(now: Timestamp, code: Code, terms: Terms, bounds: Bounds) -> Charge {
        Charge {
            code,
            terms: Arc::new(terms),
            bounds,
            created_at: now,
            expires_at: now.plus(LOCK),
            status: ChargeStatus::Pending,
            transfers: Vec::new(),
            refunds: Vec::new(),
            paid_at: None,
        }
    }

    /// A charge that was paid by one transfer, with this number of confirmations: the sample of test deliveries.
    pub(crate) fn sample_paid(
        now: Timestamp,
        code: Code,
        terms: Terms,
        bounds: Bounds,
        confirmations: u32,
    ) -> Charge {
        let txid = "0".repeat(64).into();
        let amount = terms.asset_amount;
        let mut charge = Charge::open(now, code, terms, bounds);
        charge.transfers.push(Transfer {
            txid,
            output: 0,
            amount,
            confirmations,
            height: 0,
            gone: None,
            credited: true,
            seen_at: now,
            confirmed_at: Some(now),
            standing: Standing::OnTime,
            told_late: false,
            told_short: false,
        });
        charge.status = ChargeStatus::Paid;
        charge.paid_at = Some(now);
        charge
    }

    /// Applies the watcher's sightings, at one moment, of transfers to this charge's address, in its coin.
    ///
    /// They are judged together: one block may hold several payments, and they count as one if that is enough. Of
    /// what happens in the same moment only the end of a hold comes first, as the end of the lock does. A fee bump
    /// keeps its time: a transaction that pays at least as much as one that it replaces counts as seen when that
    /// one was.
    pub fn on_sightings<'s>(
        &mut self,
        now: Timestamp,
        sightings: impl IntoIterator<Item = &'s Sighting>,
        required: u32,
    ) -> Vec<ChargeChange> {
        let mut changes = Vec::new();
        let (mut touched, mut unknown) = (Vec::new(), Vec::new());
        let mut replaced = Vec::new();
        for sighting in sightings {
            match self.place(sighting) {
                Some(place) => {
                    let transfer = &mut self.transfers[place];
                    if sighting.depth == Depth::Gone(Gone::Replaced) && transfer.is_alive() {
                        replaced.push(place);
                    }
                    transfer.take_depth(now, sighting, required);
                    self.report_lateness(place, &mut changes);
                    touched.push(place);
                }
                None => unknown.push(sighting),
            }
        }
        // What vanished before it was ever seen never happened here; nor did a transfer of nothing.
        unknown.retain(|sighting| sighting.amount > Coin::ZERO);
        let bumps = self.fee_bumps(&replaced, &unknown);
        let time_of = |sighting: &Sighting| bumps.iter().find(|(txid, _)| *txid == sighting.txid);
        let (bumped, new): (Vec<_>, Vec<_>) =
            unknown.into_iter().partition(|sighting| time_of(sighting).is_some());
        for sighting in bumped {
            let (_, first_seen) = time_of(sighting).expect("it was sorted out as a fee bump");
            touched.extend(self.see(now, *first_seen, sighting, required, &mut changes));
        }
        self.end_hold(now, &touched, required, &mut changes);
        for sighting in new {
            touched.extend(self.see(now, now, sighting, required, &mut changes));
        }
        self.settle(&touched, required, &mut changes);
        self.expire_if_nothing_holds(now, &mut changes);
        changes
    }

    /// The transactions of `new` that replace another one at this moment, and the time that each keeps.
    /// Each replaces one, and an output that is reported twice counts once.
    fn fee_bumps<'s>(&self, replaced: &[usize], new: &[&'s Sighting]) -> Vec<(&'s str, Timestamp)> {
        let mut bumps: Vec<(&str, Timestamp)> = Vec::new();
        for (nth, &place) in replaced.iter().enumerate() {
            let old = &self.transfers[place];
            let outputs = |places: &[usize]| -> Vec<Coin> {
                let transfers = places.iter().map(|&place| &self.transfers[place]);
                transfers
                    .filter(|transfer| transfer.txid == old.txid)
                    .map(|transfer| transfer.amount)
                    .collect()
            };
            if !outputs(&replaced[..nth]).is_empty() {
                continue;
            }
            let due: Coin = outputs(replaced).into_iter().sum();
            let stands_in =
                |txid: &&str| bumps.iter().all(|(known, _)| known != txid) && paid(new, txid) >= due;
            if let Some(txid) = new.iter().map(|sighting| sighting.txid.as_str()).find(stands_in) {
                bumps.push((txid, old.seen_at));
            }
        }
        bumps
    }

    /// Takes in what was not known when this moment began; `None` if it vanished before it was ever seen.
    fn see(
        &mut self,
        now: Timestamp,
        first_seen: Timestamp,
        sighting: &Sighting,
        required: u32,
        changes: &mut Vec<ChargeChange>,
    ) -> Option<usize> {
        let place = match self.place(sighting) {
            Some(place) => place,
            None if matches!(sighting.depth, Depth::Gone(_)) => return None,
            None => self.meet(first_seen, sighting, changes),
        };
        self.transfers[place].take_depth(now, sighting, required);
        Some(place)
    }

    /// A hold that ends now ends before anything new is seen.
    fn end_hold(
        &mut self,
        now: Timestamp,
        touched: &[usize],
        required: u32,
        changes: &mut Vec<ChargeChange>,
    ) {
        if now >= self.expires_at && !self.is_held(now) {
            self.settle(touched, required, changes);
            self.expire_if_nothing_holds(now, changes);
        }
    }

    fn place(&self, sighting: &Sighting) -> Option<usize> {
        self.transfers.iter().position(|t| *t.txid == *sighting.txid && t.output == sighting.output)
    }

    /// The lock or the longest hold has run out, or a timer thinks so.
    pub(crate) fn on_lock_end(&mut self, now: Timestamp) -> Vec<ChargeChange> {
        let mut changes = Vec::new();
        self.expire_if_nothing_holds(now, &mut changes);
        changes
    }

    /// Returns the time at which the charge expires at the latest, whatever holds it open.
    pub(crate) fn hold_end(&self) -> Timestamp {
        self.expires_at.plus(HOLD_MAX)
    }

    /// Cancels the charge: only while it is pending, and no transfer waits or is credited.
    ///
    /// # Errors
    ///
    /// [`ApiError::Conflict`] in every other state.
    pub fn cancel(&mut self) -> Result<(), ApiError> {
        if self.status != ChargeStatus::Pending {
            return Err(ApiError::conflict(format!(
                "Only a pending charge can be canceled; this one is {}.",
                self.status.as_str()
            )));
        }
        if !self.is_untouched() {
            return Err(ApiError::conflict("A payment to this charge was seen, so it can't be canceled."));
        }
        self.status = ChargeStatus::Canceled;
        // What has vanished may come back, and is late then.
        for transfer in &mut self.transfers {
            transfer.standing = Standing::Late;
        }
        Ok(())
    }

    /// Credits confirmed late transfers: those of the named transaction, or all. One that was refunded in full stays late.
    pub(crate) fn accept_late(
        &mut self,
        txid: Option<&str>,
        required: u32,
    ) -> Result<Vec<ChargeChange>, ApiError> {
        if !matches!(self.status, ChargeStatus::Expired | ChargeStatus::Canceled) {
            return Err(ApiError::conflict(format!(
                "Late payments are accepted on expired and canceled charges; this one is {}.",
                self.status.as_str()
            )));
        }
        let is_meant = |transfer: &Transfer| {
            txid.is_none_or(|txid| *txid == *transfer.txid)
                && transfer.standing == Standing::Late
                && transfer.is_confirmed(required)
        };
        let meant: Vec<usize> =
            (0..self.transfers.len()).filter(|&place| is_meant(&self.transfers[place])).collect();
        let taken: Vec<usize> = meant.iter().copied().filter(|&place| !self.was_sent_back(place)).collect();
        if taken.is_empty() {
            return Err(ApiError::conflict(match meant.is_empty() {
                true => "There is no confirmed late payment to accept on this charge.",
                false => "The late payment was refunded already, so it can't be accepted.",
            }));
        }
        for &place in &taken {
            let transfer = &mut self.transfers[place];
            transfer.standing = Standing::Accepted;
            // What fell short before fell out since; that it is taken now is news again.
            transfer.told_short = false;
            transfer.credited = true;
        }
        let mut changes = Vec::new();
        self.weigh(&taken, required, &mut changes);
        Ok(changes)
    }

    /// Adds a transfer that was first seen at `first_seen`. Returns its place.
    fn meet(&mut self, first_seen: Timestamp, sighting: &Sighting, changes: &mut Vec<ChargeChange>) -> usize {
        let standing = match self.status {
            ChargeStatus::Paid => Standing::Extra,
            status if status.is_open() && first_seen < self.expires_at => Standing::OnTime,
            _ => Standing::Late,
        };
        let (txid, amount) = (Arc::from(sighting.txid.as_str()), sighting.amount);
        changes.push(match standing {
            Standing::OnTime => ChargeChange::PaymentDetected { txid: Arc::clone(&txid), amount },
            _ => ChargeChange::LatePayment { txid: Arc::clone(&txid), amount },
        });
        // Most charges have one payment: capacity for more would be a tenth of their memory.
        if self.transfers.is_empty() {
            self.transfers.reserve_exact(1);
        }
        self.transfers.push(Transfer {
            txid,
            output: sighting.output,
            amount,
            confirmations: 0,
            height: sighting.height,
            gone: None,
            credited: false,
            seen_at: first_seen,
            confirmed_at: None,
            standing,
            told_late: standing != Standing::OnTime,
            told_short: false,
        });
        self.transfers.len() - 1
    }

    /// A late transfer that was gone when it became late is announced when it comes back.
    fn report_lateness(&mut self, place: usize, changes: &mut Vec<ChargeChange>) {
        let transfer = &mut self.transfers[place];
        if transfer.standing == Standing::Late && transfer.is_alive() && !transfer.told_late {
            transfer.told_late = true;
            changes.push(ChargeChange::LatePayment { txid: transfer.txid.clone(), amount: transfer.amount });
        }
    }

    /// Credits what is confirmed now, and takes back what no longer is.
    fn settle(&mut self, touched: &[usize], required: u32, changes: &mut Vec<ChargeChange>) {
        let mut credited = Vec::new();
        for &place in touched {
            let transfer = &mut self.transfers[place];
            let counts = match transfer.standing {
                Standing::Late => false,
                Standing::OnTime | Standing::Accepted | Standing::Extra => true,
            };
            let confirmed = transfer.is_confirmed(required);
            if counts && confirmed && !transfer.credited {
                transfer.credited = true;
                credited.push(place);
            } else if !confirmed {
                transfer.credited = false;
            }
        }
        self.weigh(&credited, required, changes);
    }

    /// Something was credited: is it enough?
    fn weigh(&mut self, credited: &[usize], required: u32, changes: &mut Vec<ChargeChange>) {
        let Some(&last) = credited.last() else { return };
        if self.status == ChargeStatus::Paid {
            return;
        }
        // A closed charge is credited again what fell short when it was open, and besides that only what was accepted.
        let txid = self.transfers[last].txid.clone();
        if self.counted().covers(self.terms.asset_amount, self.bounds.tolerance) {
            self.status = ChargeStatus::Paid;
            self.paid_at = self.transfers.iter().filter(|t| t.credited).filter_map(|t| t.confirmed_at).max();
            // Transfers to an open charge that are still pending now exceed the amount due.
            for place in 0..self.transfers.len() {
                if !self.transfers[place].credited && !self.was_sent_back(place) {
                    let transfer = &mut self.transfers[place];
                    transfer.standing = Standing::Extra;
                    // A confirmed transfer may not be reported again, and a paid charge accepts nothing.
                    transfer.credited = transfer.is_confirmed(required);
                }
            }
            changes.push(ChargeChange::Paid { txid, received: self.received() });
            return;
        }
        if self.status.is_open() {
            self.status = ChargeStatus::Underpaid;
        }
        let mut is_news = false;
        for &place in credited {
            is_news |= !std::mem::replace(&mut self.transfers[place].told_short, true);
        }
        if is_news {
            changes.push(ChargeChange::Underpaid { txid, received: self.received() });
        }
    }

    /// Transfers on time hold the charge open after its lock while they are together enough, but not for ever.
    /// Anything less would let one unit of dust keep the rate.
    fn is_held(&self, now: Timestamp) -> bool {
        let on_time = self.transfers.iter().filter(|t| t.standing == Standing::OnTime && t.is_alive());
        let coming: Coin = on_time.map(|transfer| transfer.amount).sum();
        let coming = coming.less(self.refunded_of_received());
        now < self.hold_end() && coming.covers(self.terms.asset_amount, self.bounds.tolerance)
    }

    fn expire_if_nothing_holds(&mut self, now: Timestamp, changes: &mut Vec<ChargeChange>) {
        if !self.status.is_open() || now < self.expires_at || self.is_held(now) {
            return;
        }
        self.status = ChargeStatus::Expired;
        changes.push(ChargeChange::Expired);
        // What is still on its way came too late after all.
        for transfer in &mut self.transfers {
            if transfer.standing == Standing::OnTime && !transfer.credited {
                transfer.standing = Standing::Late;
                if transfer.is_alive() {
                    transfer.told_late = true;
                    changes.push(ChargeChange::LatePayment {
                        txid: transfer.txid.clone(),
                        amount: transfer.amount,
                    });
                }
            }
        }
    }
}

/// Returns the amount that a transaction pays by those of its outputs that are present.
fn paid(sightings: &[&Sighting], txid: &str) -> Coin {
    let there = |sighting: &&&Sighting| sighting.txid == txid && !matches!(sighting.depth, Depth::Gone(_));
    let outputs: BTreeMap<u32, Coin> =
        sightings.iter().filter(there).map(|sighting| (sighting.output, sighting.amount)).collect();
    outputs.into_values().sum()
}
