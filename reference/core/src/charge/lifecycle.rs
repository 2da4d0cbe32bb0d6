//! The life cycle of a charge. Its methods apply an input and return the [`ChargeChange`]s.
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
    charge::PaymentTolerances,
    error::ApiError,
    id::Code,
    money::Coin,
    sighting::{Depth, Disappearance, Sighting},
    time::{Span, Timestamp},
};

/// The time for which the rate of a new charge is locked (`open.charge.lock`).
pub const RATE_LOCK: Span = Span::mins(30);
/// The longest time after the end of the lock for which transfers seen in time hold a charge open (`open.charge.hold`).
pub const HOLD_MAX: Span = Span::hours(24);

/// A change of a charge. The book turns each into an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChargeChange {
    /// A transfer was seen in time.
    PaymentDetected {
        /// The transaction.
        txid: Arc<str>,
        /// Its amount.
        amount: Coin,
    },
    /// The confirmed amount is enough.
    Paid {
        /// The deciding transaction.
        txid: Arc<str>,
        /// The total received amount.
        received: Coin,
    },
    /// A confirmed payment falls short.
    Underpaid {
        /// The transaction.
        txid: Arc<str>,
        /// The total received amount.
        received: Coin,
    },
    /// A transfer to a charge that is expired, canceled or paid was seen.
    LatePayment {
        /// The transaction.
        txid: Arc<str>,
        /// Its amount.
        amount: Coin,
    },
    /// The lock ran out, and no transfers hold the charge open.
    Expired,
}

impl Charge {
    /// Opens a charge.
    pub fn open(now: Timestamp, code: Code, terms: Terms, tolerances: PaymentTolerances) -> Charge {
        Charge {
            code,
            terms: Arc::new(terms),
            tolerances,
            created_at: now,
            expires_at: now.plus(RATE_LOCK),
            status: ChargeStatus::Pending,
            transfers: Vec::new(),
            refunds: Vec::new(),
            paid_at: None,
        }
    }

    /// Returns a charge paid by one transfer with this number of confirmations: the sample of test deliveries.
    pub(crate) fn sample_paid(
        now: Timestamp,
        code: Code,
        terms: Terms,
        tolerances: PaymentTolerances,
        confirmations: u32,
    ) -> Charge {
        let txid = "0".repeat(64).into();
        let amount = terms.asset_amount;
        let mut charge = Charge::open(now, code, terms, tolerances);
        charge.transfers.push(Transfer {
            txid,
            output: 0,
            amount,
            confirmations,
            height: 0,
            disappearance: None,
            is_credited: true,
            seen_at: now,
            confirmed_at: Some(now),
            standing: Standing::OnTime,
            is_late_reported: false,
            is_underpaid_reported: false,
        });
        charge.status = ChargeStatus::Paid;
        charge.paid_at = Some(now);
        charge
    }

    /// Applies the sightings that the chain watcher reported at one time: transfers to this charge's address in its coin.
    ///
    /// They are applied together: several payments of one block count as one if their sum is enough. If the lock or
    /// the hold ends in the same microsecond, its end is applied first. A fee-bumped replacement of at least the same
    /// amount counts as seen when the original was.
    pub fn on_sightings<'s>(
        &mut self,
        now: Timestamp,
        sightings: impl IntoIterator<Item = &'s Sighting>,
        required: u32,
    ) -> Vec<ChargeChange> {
        let mut changes = Vec::new();
        let (mut updated, mut unknown) = (Vec::new(), Vec::new());
        let mut replaced = Vec::new();
        for sighting in sightings {
            match self.transfer_index(sighting) {
                Some(index) => {
                    let transfer = &mut self.transfers[index];
                    if sighting.depth == Depth::Absent(Disappearance::Replaced) && transfer.is_present() {
                        replaced.push(index);
                    }
                    transfer.apply_depth(now, sighting, required);
                    self.report_lateness(index, &mut changes);
                    updated.push(index);
                }
                None => unknown.push(sighting),
            }
        }
        // Transfers of zero are ignored.
        unknown.retain(|sighting| sighting.amount > Coin::ZERO);
        let bumps = self.fee_bumps(&replaced, &unknown);
        let bump_of = |sighting: &Sighting| bumps.iter().find(|(txid, _)| *txid == sighting.txid);
        let (bumped, new): (Vec<_>, Vec<_>) =
            unknown.into_iter().partition(|sighting| bump_of(sighting).is_some());
        for sighting in bumped {
            let (_, first_seen) = bump_of(sighting).expect("the partition selected fee bumps");
            updated.extend(self.apply_sighting(now, *first_seen, sighting, required, &mut changes));
        }
        self.end_hold(now, &updated, required, &mut changes);
        for sighting in new {
            updated.extend(self.apply_sighting(now, now, sighting, required, &mut changes));
        }
        self.update_credits(&updated, required, &mut changes);
        self.expire_unless_held(now, &mut changes);
        changes
    }

    /// Matches each transaction with an index in `replaced` to the first transaction in `new` that pays at least as
    /// much and is not matched yet. Returns the ids of the matched ones, each with the time at which the transaction
    /// that it replaces was first seen.
    fn fee_bumps<'s>(&self, replaced: &[usize], new: &[&'s Sighting]) -> Vec<(&'s str, Timestamp)> {
        let mut bumps: Vec<(&str, Timestamp)> = Vec::new();
        for (nth, &index) in replaced.iter().enumerate() {
            let old = &self.transfers[index];
            let amounts_of_old = |indexes: &[usize]| -> Vec<Coin> {
                let transfers = indexes.iter().map(|&index| &self.transfers[index]);
                transfers
                    .filter(|transfer| transfer.txid == old.txid)
                    .map(|transfer| transfer.amount)
                    .collect()
            };
            // Another output of the same transaction was matched before.
            if !amounts_of_old(&replaced[..nth]).is_empty() {
                continue;
            }
            let replaced_amount: Coin = amounts_of_old(replaced).into_iter().sum();
            let is_replacement = |txid: &&str| {
                bumps.iter().all(|(matched, _)| matched != txid)
                    && amount_paid_by(new, txid) >= replaced_amount
            };
            if let Some(txid) = new.iter().map(|sighting| sighting.txid.as_str()).find(is_replacement) {
                bumps.push((txid, old.seen_at));
            }
        }
        bumps
    }

    /// Adds or updates the transfer of a sighting; returns its index, or `None` if it vanished before it was seen.
    fn apply_sighting(
        &mut self,
        now: Timestamp,
        first_seen: Timestamp,
        sighting: &Sighting,
        required: u32,
        changes: &mut Vec<ChargeChange>,
    ) -> Option<usize> {
        let index = match self.transfer_index(sighting) {
            Some(index) => index,
            None if matches!(sighting.depth, Depth::Absent(_)) => return None,
            None => self.add_transfer(first_seen, sighting, changes),
        };
        self.transfers[index].apply_depth(now, sighting, required);
        Some(index)
    }

    /// Expires a charge whose lock and hold are over, before new transfers are applied. The updated transfers are
    /// credited first.
    fn end_hold(
        &mut self,
        now: Timestamp,
        updated: &[usize],
        required: u32,
        changes: &mut Vec<ChargeChange>,
    ) {
        if now >= self.expires_at && !self.is_held_open(now) {
            self.update_credits(updated, required, changes);
            self.expire_unless_held(now, changes);
        }
    }

    fn transfer_index(&self, sighting: &Sighting) -> Option<usize> {
        self.transfers.iter().position(|t| *t.txid == *sighting.txid && t.output == sighting.output)
    }

    /// Expires the charge if its lock and its hold are over.
    pub(crate) fn on_lock_end(&mut self, now: Timestamp) -> Vec<ChargeChange> {
        let mut changes = Vec::new();
        self.expire_unless_held(now, &mut changes);
        changes
    }

    /// Returns the time at which the charge expires at the latest.
    pub(crate) fn hold_end(&self) -> Timestamp {
        self.expires_at.plus(HOLD_MAX)
    }

    /// Cancels the charge: only while it is pending, and no transfer is present or credited.
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
        // A vanished transfer that comes back is late.
        for transfer in &mut self.transfers {
            transfer.standing = Standing::Late;
        }
        Ok(())
    }

    /// Credits confirmed late transfers: those of the named transaction, or all. A transfer that was refunded in full
    /// stays late.
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
        let is_selected = |transfer: &Transfer| {
            txid.is_none_or(|txid| *txid == *transfer.txid)
                && transfer.standing == Standing::Late
                && transfer.is_confirmed(required)
        };
        let selected: Vec<usize> =
            (0..self.transfers.len()).filter(|&index| is_selected(&self.transfers[index])).collect();
        let accepted: Vec<usize> =
            selected.iter().copied().filter(|&index| !self.is_late_and_refunded(index)).collect();
        if accepted.is_empty() {
            return Err(ApiError::conflict(match selected.is_empty() {
                true => "There is no confirmed late payment to accept on this charge.",
                false => "The late payment was refunded already, so it can't be accepted.",
            }));
        }
        for &index in &accepted {
            let transfer = &mut self.transfers[index];
            transfer.standing = Standing::Accepted;
            // A transfer that fell short before is reported again once it is accepted.
            transfer.is_underpaid_reported = false;
            transfer.is_credited = true;
        }
        let mut changes = Vec::new();
        self.update_payment_status(&accepted, required, &mut changes);
        Ok(changes)
    }

    /// Adds a transfer that was first seen at `first_seen`; returns its index.
    fn add_transfer(
        &mut self,
        first_seen: Timestamp,
        sighting: &Sighting,
        changes: &mut Vec<ChargeChange>,
    ) -> usize {
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
            disappearance: None,
            is_credited: false,
            seen_at: first_seen,
            confirmed_at: None,
            standing,
            is_late_reported: standing != Standing::OnTime,
            is_underpaid_reported: false,
        });
        self.transfers.len() - 1
    }

    /// Reports a late transfer once, when it is present.
    fn report_lateness(&mut self, index: usize, changes: &mut Vec<ChargeChange>) {
        let transfer = &mut self.transfers[index];
        if transfer.standing == Standing::Late && transfer.is_present() && !transfer.is_late_reported {
            transfer.is_late_reported = true;
            changes.push(ChargeChange::LatePayment { txid: transfer.txid.clone(), amount: transfer.amount });
        }
    }

    /// Credits confirmed transfers and reverses the credit of unconfirmed ones.
    fn update_credits(&mut self, updated: &[usize], required: u32, changes: &mut Vec<ChargeChange>) {
        let mut credited = Vec::new();
        for &index in updated {
            let transfer = &mut self.transfers[index];
            let is_creditable = match transfer.standing {
                Standing::Late => false,
                Standing::OnTime | Standing::Accepted | Standing::Extra => true,
            };
            let is_confirmed = transfer.is_confirmed(required);
            if is_creditable && is_confirmed && !transfer.is_credited {
                transfer.is_credited = true;
                credited.push(index);
            } else if !is_confirmed {
                transfer.is_credited = false;
            }
        }
        self.update_payment_status(&credited, required, changes);
    }

    /// Sets the status after transfers were credited: paid, or underpaid if an open charge still lacks money.
    fn update_payment_status(&mut self, credited: &[usize], required: u32, changes: &mut Vec<ChargeChange>) {
        let Some(&last) = credited.last() else { return };
        if self.status == ChargeStatus::Paid {
            return;
        }
        // A closed charge has credit only from transfers that fell short while it was open, and from accepted ones.
        let txid = self.transfers[last].txid.clone();
        if self.counted_amount().covers(self.terms.asset_amount, self.tolerances.underpayment) {
            self.status = ChargeStatus::Paid;
            self.paid_at =
                self.transfers.iter().filter(|t| t.is_credited).filter_map(|t| t.confirmed_at).max();
            // Transfers to an open charge that are still pending now exceed the amount due.
            for index in 0..self.transfers.len() {
                if !self.transfers[index].is_credited && !self.is_late_and_refunded(index) {
                    let transfer = &mut self.transfers[index];
                    transfer.standing = Standing::Extra;
                    // No later sighting may come for a confirmed transfer, so it is credited now.
                    transfer.is_credited = transfer.is_confirmed(required);
                }
            }
            changes.push(ChargeChange::Paid { txid, received: self.received_amount() });
            return;
        }
        if self.status.is_open() {
            self.status = ChargeStatus::Underpaid;
        }
        let mut has_unreported = false;
        for &index in credited {
            has_unreported |= !std::mem::replace(&mut self.transfers[index].is_underpaid_reported, true);
        }
        if has_unreported {
            changes.push(ChargeChange::Underpaid { txid, received: self.received_amount() });
        }
    }

    /// Returns `true` if transfers seen in time hold the charge open after its lock: together they are enough, and the
    /// longest hold is not over. A smaller amount does not suffice; otherwise a tiny payment would keep the rate
    /// locked.
    fn is_held_open(&self, now: Timestamp) -> bool {
        let on_time = self.transfers.iter().filter(|t| t.standing == Standing::OnTime && t.is_present());
        let on_time_amount: Coin = on_time.map(|transfer| transfer.amount).sum();
        let on_time_amount = on_time_amount.saturating_sub(self.refunded_received_amount());
        now < self.hold_end() && on_time_amount.covers(self.terms.asset_amount, self.tolerances.underpayment)
    }

    /// Expires an open charge whose lock is over, unless transfers hold it open.
    fn expire_unless_held(&mut self, now: Timestamp, changes: &mut Vec<ChargeChange>) {
        if !self.status.is_open() || now < self.expires_at || self.is_held_open(now) {
            return;
        }
        self.status = ChargeStatus::Expired;
        changes.push(ChargeChange::Expired);
        // Unconfirmed transfers become late.
        for transfer in &mut self.transfers {
            if transfer.standing == Standing::OnTime && !transfer.is_credited {
                transfer.standing = Standing::Late;
                if transfer.is_present() {
                    transfer.is_late_reported = true;
                    changes.push(ChargeChange::LatePayment {
                        txid: transfer.txid.clone(),
                        amount: transfer.amount,
                    });
                }
            }
        }
    }
}

/// Returns the amount that a transaction pays with its outputs that are on the chain or in the mempool. An output that
/// is reported twice counts once.
fn amount_paid_by(sightings: &[&Sighting], txid: &str) -> Coin {
    let is_present =
        |sighting: &&&Sighting| sighting.txid == txid && !matches!(sighting.depth, Depth::Absent(_));
    let outputs: BTreeMap<u32, Coin> =
        sightings.iter().filter(is_present).map(|sighting| (sighting.output, sighting.amount)).collect();
    outputs.into_values().sum()
}
