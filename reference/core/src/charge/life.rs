//! The life of a charge: state and input in, what happened out.
//!
//! ```text
//!              transfer confirmed, within tolerance
//!   pending ──────────────────────────────────────────▶ paid
//!    │  │ │    transfer confirmed, too little              ▲ ▲
//!    │  │ └────────────────▶ underpaid ──(rest confirmed)──┘ │ late payment accepted
//!    │  └─ lock ran out ──────────┴─▶ expired ───────────────┤
//!    └─ canceled ─────────────────────▶ canceled ────────────┘
//! ```

use std::sync::Arc;

use super::{Charge, ChargeStatus, Refund, Standing, Terms, Transfer};
use crate::{
    charge::Bounds,
    error::ApiError,
    id::Code,
    money::Coin,
    sighting::{Depth, Sighting},
    time::{Span, Timestamp},
};

/// How long the rate of a new charge is locked (`open.charge.lock`).
pub const LOCK: Span = Span::mins(30);

/// What a charge has to tell, in order. The book turns each into an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
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

    /// A charge that was paid by one transfer at once: the sample of test deliveries.
    pub fn sample_paid(now: Timestamp, code: Code, terms: Terms, bounds: Bounds) -> Charge {
        let txid = "0".repeat(64).into();
        let amount = terms.asset_amount;
        let mut charge = Charge::open(now, code, terms, bounds);
        charge.transfers.push(Transfer {
            txid,
            output: 0,
            amount,
            confirmations: 1,
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

    /// What the watcher saw at one moment of transfers to this charge's address, in its coin.
    ///
    /// Judged together: one block may hold several payments, and they count as one if that is enough.
    /// Only the end of a hold comes before what is first seen in that moment, as the end of the lock does.
    pub fn on_sightings<'s>(
        &mut self,
        now: Timestamp,
        sightings: impl IntoIterator<Item = &'s Sighting>,
        required: u32,
    ) -> Vec<Happened> {
        let mut told = Vec::new();
        let (mut touched, mut unknown) = (Vec::new(), Vec::new());
        for sighting in sightings {
            match self.place(sighting) {
                Some(place) => {
                    self.transfers[place].take_depth(now, sighting.depth, required);
                    self.retell_lateness(place, &mut told);
                    touched.push(place);
                }
                None => unknown.push(sighting),
            }
        }
        if now >= self.expires_at && !self.is_held(required) {
            self.settle(&touched, required, &mut told);
            self.expire_if_nothing_holds(now, required, &mut told);
        }
        for sighting in unknown {
            // What vanished before it was ever seen never happened here; nor did a transfer of nothing.
            let never_was = matches!(sighting.depth, Depth::Gone(_)) || sighting.amount == Coin::ZERO;
            let place = match self.place(sighting) {
                Some(place) => place,
                None if never_was => continue,
                None => self.meet(now, sighting, &mut told),
            };
            self.transfers[place].take_depth(now, sighting.depth, required);
            touched.push(place);
        }
        self.settle(&touched, required, &mut told);
        self.expire_if_nothing_holds(now, required, &mut told);
        told
    }

    fn place(&self, sighting: &Sighting) -> Option<usize> {
        self.transfers.iter().position(|t| *t.txid == *sighting.txid && t.output == sighting.output)
    }

    /// The lock has run out, or a timer thinks so.
    pub fn on_lock_end(&mut self, now: Timestamp, required: u32) -> Vec<Happened> {
        let mut told = Vec::new();
        self.expire_if_nothing_holds(now, required, &mut told);
        told
    }

    /// Calls the charge off: only while it waits, and no transfer was ever seen.
    pub fn cancel(&mut self) -> Result<(), ApiError> {
        if self.status != ChargeStatus::Pending {
            return Err(ApiError::conflict(format!(
                "Only a pending charge can be canceled; this one is {}.",
                self.status.as_str()
            )));
        }
        if self.was_touched() {
            return Err(ApiError::conflict("A payment to this charge was seen, so it can't be canceled."));
        }
        self.status = ChargeStatus::Canceled;
        Ok(())
    }

    /// Notes money that the merchant sent back: in total never more than was received.
    pub fn refund(&mut self, refund: Refund) -> Result<(), ApiError> {
        let left = self.received().less(self.refunded());
        if refund.amount == Coin::ZERO {
            return Err(ApiError::field("amount", "The amount field must be greater than 0."));
        }
        if refund.amount > left {
            return Err(ApiError::field(
                "amount",
                format!(
                    "The amount field must not be greater than {left}, what was received and not refunded yet."
                ),
            ));
        }
        self.refunds.push(refund);
        Ok(())
    }

    /// The account owner takes late money: the named transaction, or all that is confirmed.
    pub fn accept_late(&mut self, txid: Option<&str>, required: u32) -> Result<Vec<Happened>, ApiError> {
        if !matches!(self.status, ChargeStatus::Expired | ChargeStatus::Canceled) {
            return Err(ApiError::conflict(format!(
                "Late payments are accepted on expired and canceled charges; this one is {}.",
                self.status.as_str()
            )));
        }
        let mut taken = Vec::new();
        for (place, transfer) in self.transfers.iter_mut().enumerate() {
            let meant = txid.is_none_or(|txid| *txid == *transfer.txid);
            if meant && transfer.standing == Standing::Late && transfer.is_confirmed(required) {
                transfer.standing = Standing::Accepted;
                // What fell short before fell out since; that it is taken now is news again.
                transfer.told_short = false;
                transfer.credited = true;
                taken.push(place);
            }
        }
        if taken.is_empty() {
            return Err(ApiError::conflict("There is no confirmed late payment to accept on this charge."));
        }
        let mut told = Vec::new();
        self.weigh(&taken, required, &mut told);
        Ok(told)
    }

    /// A transfer is seen for the first time. Says its place.
    fn meet(&mut self, now: Timestamp, sighting: &Sighting, told: &mut Vec<Happened>) -> usize {
        let standing = match self.status {
            ChargeStatus::Pending | ChargeStatus::Underpaid => Standing::OnTime,
            ChargeStatus::Expired | ChargeStatus::Canceled => Standing::Late,
            ChargeStatus::Paid => Standing::Extra,
        };
        let (txid, amount) = (Arc::from(sighting.txid.as_str()), sighting.amount);
        told.push(match standing {
            Standing::OnTime => Happened::PaymentDetected { txid: Arc::clone(&txid), amount },
            _ => Happened::LatePayment { txid: Arc::clone(&txid), amount },
        });
        // Most charges are paid at once: room for more would be a tenth of what is kept of them.
        if self.transfers.is_empty() {
            self.transfers.reserve_exact(1);
        }
        self.transfers.push(Transfer {
            txid,
            output: sighting.output,
            amount,
            confirmations: 0,
            gone: None,
            credited: false,
            seen_at: now,
            confirmed_at: None,
            standing,
            told_late: standing != Standing::OnTime,
            told_short: false,
        });
        self.transfers.len() - 1
    }

    /// A late transfer that was gone when it became late is announced when it comes back.
    fn retell_lateness(&mut self, place: usize, told: &mut Vec<Happened>) {
        let transfer = &mut self.transfers[place];
        if transfer.standing == Standing::Late && transfer.is_alive() && !transfer.told_late {
            transfer.told_late = true;
            told.push(Happened::LatePayment { txid: transfer.txid.clone(), amount: transfer.amount });
        }
    }

    /// Credits what is confirmed now, and takes back what no longer is.
    fn settle(&mut self, touched: &[usize], required: u32, told: &mut Vec<Happened>) {
        let paid = self.status == ChargeStatus::Paid;
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
            } else if transfer.credited && !confirmed && !paid {
                // What a paid charge was paid with stays counted, whatever the chain does later.
                transfer.credited = false;
                credited.retain(|&earlier| earlier != place);
            }
        }
        self.weigh(&credited, required, told);
    }

    /// Something was credited: is it enough?
    fn weigh(&mut self, credited: &[usize], required: u32, told: &mut Vec<Happened>) {
        let Some(&last) = credited.last() else { return };
        if self.status == ChargeStatus::Paid {
            return;
        }
        let accepted = self.transfers.iter().any(|t| t.credited && t.standing == Standing::Accepted);
        if !self.status.is_open() && !accepted {
            return;
        }
        let received = self.received();
        let txid = self.transfers[last].txid.clone();
        if received.covers(self.terms.asset_amount, self.bounds.tolerance) {
            self.status = ChargeStatus::Paid;
            self.paid_at = self.transfers.iter().filter(|t| t.credited).filter_map(|t| t.confirmed_at).max();
            // What was still on its way to an open charge is now more than was asked for.
            for transfer in &mut self.transfers {
                if !transfer.credited {
                    transfer.standing = Standing::Extra;
                    // Nobody may report a buried transfer again, and a paid charge accepts nothing.
                    transfer.credited = transfer.is_confirmed(required);
                }
            }
            told.push(Happened::Paid { txid, received: self.received() });
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
            told.push(Happened::Underpaid { txid, received });
        }
    }

    /// A transfer seen before the lock ran out holds the charge open until it is confirmed or gone.
    fn is_held(&self, required: u32) -> bool {
        self.transfers.iter().any(|t| {
            t.standing == Standing::OnTime
                && t.is_alive()
                && t.seen_at < self.expires_at
                && !t.is_confirmed(required)
        })
    }

    fn expire_if_nothing_holds(&mut self, now: Timestamp, required: u32, told: &mut Vec<Happened>) {
        if !self.status.is_open() || now < self.expires_at || self.is_held(required) {
            return;
        }
        self.status = ChargeStatus::Expired;
        told.push(Happened::Expired);
        // What is still on its way came too late after all.
        for transfer in &mut self.transfers {
            if transfer.standing == Standing::OnTime && !transfer.credited {
                transfer.standing = Standing::Late;
                if transfer.is_alive() {
                    transfer.told_late = true;
                    told.push(Happened::LatePayment { txid: transfer.txid.clone(), amount: transfer.amount });
                }
            }
        }
    }
}
