//! Charges of a book: opening, payment, cancellation.

use std::collections::BTreeMap;

use super::{Book, BookContext, wallets::UnusedAddress};
use crate::{
    asset::{Asset, Currency},
    call::{ChargeDraft, RefundDraft},
    charge::{Charge, ChargeChange, ChargeStatus, CustomField, Customer, PaymentTolerances, Terms},
    endpoint::{Endpoint, EndpointStatus},
    error::{ApiError, FieldErrors},
    event::{Details, EventType, Subject},
    id::{ChargeNo, Code, InvoiceNo, LinkNo},
    money::{Coin, Fiat, Rate},
    sighting::Sighting,
    time::Timestamp,
};

/// The content of a new charge, before its rate and address are known.
pub(super) struct Order {
    pub(super) asset: Asset,
    pub(super) amount: Fiat,
    pub(super) currency: Currency,
    pub(super) link: Option<LinkNo>,
    pub(super) invoice: Option<InvoiceNo>,
    pub(super) customer: Customer,
    pub(super) description: Option<String>,
    pub(super) metadata: crate::charge::Metadata,
    pub(super) custom_fields: Vec<CustomField>,
}

/// The rate, the amount due and the address for an order.
pub(super) struct Quote {
    rate: Rate,
    due: Coin,
    address: UnusedAddress,
}

impl Book {
    /// Opens a charge from an API request.
    pub(crate) fn create_charge(
        &mut self,
        context: &BookContext<'_>,
        draft: ChargeDraft,
    ) -> Result<ChargeNo, ApiError> {
        let order = match &draft.link {
            Some(code) => {
                // A link of the other mode is treated like an unknown one (`isolation.not_found`).
                let link = Code::parse(code).and_then(|code| self.find_link(code).ok()).ok_or_else(|| {
                    ApiError::field("payment_link", "The selected payment_link is invalid.")
                })?;
                self.order_from_link(context, link, draft)?
            }
            None if !draft.custom_fields.is_empty() => {
                let message = "The custom_fields field is only allowed with a payment_link.";
                return Err(ApiError::field("custom_fields", message));
            }
            None => {
                let amount =
                    draft.amount.ok_or_else(|| ApiError::field("amount", "The amount field is required."))?;
                Order {
                    asset: draft.asset,
                    amount,
                    currency: draft.currency.unwrap_or(context.settings.default_currency),
                    link: None,
                    invoice: None,
                    customer: draft.customer,
                    description: draft.description,
                    metadata: draft.metadata,
                    custom_fields: draft.custom_fields,
                }
            }
        };
        self.open_charge(context, order)
    }

    /// Opens a charge: locks the rate, reserves an address and records `charge.created`. An error changes nothing.
    pub(super) fn open_charge(
        &mut self,
        context: &BookContext<'_>,
        order: Order,
    ) -> Result<ChargeNo, ApiError> {
        let Quote { rate, due: asset_amount, address } = self.quote_order(context, &order)?;
        let Order { asset, amount, currency, .. } = order;
        let deposit_address = self.wallets.reserve(address);
        let no = ChargeNo::from_index(self.charges.len());
        let code = Code::draw(&self.rng_keys.charge, u64::from(no.0));
        let terms = Terms {
            asset,
            fiat_amount: amount,
            fiat_currency: currency,
            rate,
            asset_amount,
            deposit_address,
            link: order.link,
            invoice: order.invoice,
            customer: order.customer.if_not_empty(),
            description: order.description,
            metadata: order.metadata,
            custom_fields: order.custom_fields,
        };
        let tolerances = PaymentTolerances {
            underpayment: context.settings.underpayment_tolerance,
            overpayment: context.settings.overpayment_threshold,
        };
        let charge = Charge::open(context.now, code, terms, tolerances);
        let pending = ChargeStatus::Pending as usize;
        self.charge_codes.insert(code, no);
        self.addresses.insert(&charge.terms.deposit_address, no);
        self.locks.insert((charge.expires_at, no));
        self.charges_by_status.push(no.0, pending);
        if let Some(link) = charge.terms.link {
            self.links[link.index()].charges.push(no.0, pending);
        }
        if let Some(invoice) = charge.terms.invoice {
            self.invoice_mut(invoice).charges.push(no);
        }
        self.charges.push(charge);
        self.charge_changes.push(0);
        self.confirming_assets.push(None);
        self.record(context, EventType::ChargeCreated, Subject::Charge(no), Details::None);
        Ok(no)
    }

    /// Returns the rate, the amount due and an unused address, if the charge can be opened.
    pub(super) fn quote_order(&self, context: &BookContext<'_>, order: &Order) -> Result<Quote, ApiError> {
        let &Order { asset, amount, currency, .. } = order;
        if amount == Fiat::ZERO {
            return Err(ApiError::field("amount", "The amount field must be greater than 0."));
        }
        if !self.wallets.accepts(asset) {
            let message = format!("The account has no wallet for {asset} in {} mode.", self.mode);
            return Err(ApiError::field("asset", message));
        }
        let rate = context
            .exchange
            .rate(asset, currency)
            .ok_or_else(|| ApiError::NoRate(format!("{asset}/{currency}")))?;
        let due = rate.quote(amount, asset).ok_or_else(|| {
            ApiError::field("amount", format!("The amount field is too large to be paid in {asset}."))
        })?;
        let is_used = |address: &str| self.charge_by_address(address).is_some();
        let address = self.wallets.next_address(asset, is_used).ok_or_else(|| {
            let message = format!("The wallet for {asset} has no unused address left; add some.");
            ApiError::field("asset", message)
        })?;
        Ok(Quote { rate, due, address })
    }

    /// Cancels a charge. `reason`: the reason in the event; `None` for an API request.
    pub(crate) fn cancel_charge(
        &mut self,
        context: &BookContext<'_>,
        no: ChargeNo,
        reason: Option<&'static str>,
    ) -> Result<(), ApiError> {
        self.charge_mut(no).cancel()?;
        self.update_indexes(no);
        let details = reason.map_or(Details::None, |reason| Details::Reason(reason.into()));
        self.record(context, EventType::ChargeCanceled, Subject::Charge(no), details);
        Ok(())
    }

    /// Records a refund. Expires the charge if the remaining transfers no longer hold it open.
    pub(crate) fn refund_charge(
        &mut self,
        context: &BookContext<'_>,
        no: ChargeNo,
        draft: RefundDraft,
    ) -> Result<(), ApiError> {
        let required = self.required_confirmations(no);
        let charge = self.charge_mut(no);
        let amount = Coin::parse(&draft.amount, charge.terms.asset)
            .map_err(|error| ApiError::field("amount", format!("The amount field {error}.")))?;
        let RefundDraft { txid, reason, .. } = draft;
        charge.refund(context.now, amount, (txid.clone(), reason.clone()), required)?;
        let details = Details::Refund { amount, txid, reason };
        self.record(context, EventType::ChargeRefunded, Subject::Charge(no), details);
        // The transfers that held the charge open may no longer be enough.
        let changes = self.charge_mut(no).on_lock_end(context.now);
        self.record_changes(context, no, changes);
        Ok(())
    }

    /// Accepts late payments: those of one transaction, or all if `txid` is `None`.
    pub(crate) fn accept_late(
        &mut self,
        context: &BookContext<'_>,
        no: ChargeNo,
        txid: Option<&str>,
    ) -> Result<(), ApiError> {
        let required = self.required_confirmations(no);
        let changes = self.charge_mut(no).accept_late(txid, required)?;
        self.record_changes(context, no, changes);
        Ok(())
    }

    /// Applies the sightings that the chain watcher reported at one time: those of one charge together, charges in
    /// order of their first sighting. Ignores addresses of other books, and stores transfers in another coin than the
    /// charge's as unmatched.
    pub(crate) fn on_sightings<'s>(
        &mut self,
        context: &BookContext<'_>,
        sightings: impl IntoIterator<Item = &'s Sighting>,
    ) {
        let mut matched: Vec<(ChargeNo, &Sighting)> = Vec::new();
        for sighting in sightings {
            let Some(no) = self.charge_by_address(&sighting.address) else { continue };
            if self.charge(no).terms.asset == sighting.asset {
                matched.push((no, sighting));
            } else {
                self.record_unmatched(sighting);
            }
        }
        // Grouped by a map, because one block may pay any number of charges. Usually there is one.
        if matched.len() > 1 {
            let mut first_index = BTreeMap::new();
            for (index, (no, _)) in matched.iter().enumerate() {
                first_index.entry(*no).or_insert(index);
            }
            matched.sort_by_key(|(no, _)| first_index[no]);
        }
        for group in matched.chunk_by(|(no, _), (other, _)| no == other) {
            let no = group[0].0;
            let required = self.required_confirmations(no);
            let sightings = group.iter().map(|(_, sighting)| *sighting);
            let charge = self.charge_mut(no);
            let changes = charge.on_sightings(context.now, sightings, required);
            self.confirming_assets[no.index()] =
                charge.has_confirmed_transfer(required).then_some(charge.terms.asset);
            self.record_changes(context, no, changes);
        }
    }

    /// Returns the time at which the next rate lock, or the hold that follows it, ends.
    pub(super) fn next_lock_end(&self) -> Option<Timestamp> {
        self.locks.first().map(|(end, _)| *end)
    }

    /// Ends rate locks that have run out, up to a bound of work: one unit for each lock, and one for each endpoint that may
    /// be notified. Returns the work done. A charge that is held open expires when the hold ends.
    pub(crate) fn end_locks(&mut self, context: &BookContext<'_>, work_max: u32) -> u32 {
        let work_of = |endpoint: &Endpoint| u32::from(endpoint.status == EndpointStatus::Enabled);
        let (work_per_lock, mut work) = (1 + self.endpoints.iter().map(work_of).sum::<u32>(), 0_u32);
        while work < work_max
            && let Some(&(end, no)) = self.locks.first()
            && end <= context.now
        {
            work = work.saturating_add(work_per_lock);
            self.locks.pop_first();
            let charge = self.charge_mut(no);
            let changes = charge.on_lock_end(context.now);
            // A charge that is still open is held, and its hold ends later.
            let next_end = charge.status().is_open().then(|| charge.hold_end());
            self.locks.extend(next_end.map(|end| (end, no)));
            self.record_changes(context, no, changes);
        }
        work
    }

    pub(super) fn required_confirmations(&self, no: ChargeNo) -> u32 {
        self.charge(no).terms.asset.required_confirmations(self.mode)
    }

    /// Updates the status of a charge in every index. Removes the locks of a charge that is no longer open.
    fn update_indexes(&mut self, no: ChargeNo) {
        let charge = &self.charges[no.index()];
        let (class, link) = (charge.status() as usize, charge.terms.link);
        let lock_ends = (!charge.status().is_open()).then(|| [charge.expires_at, charge.hold_end()]);
        self.charges_by_status.change(no.0, class);
        if let Some(link) = link {
            self.links[link.index()].charges.change(no.0, class);
        }
        for end in lock_ends.into_iter().flatten() {
            self.locks.remove(&(end, no));
        }
    }

    /// Records the changes of a charge as events. If it was paid, updates its invoice and its link.
    fn record_changes(&mut self, context: &BookContext<'_>, no: ChargeNo, changes: Vec<ChargeChange>) {
        if changes.is_empty() {
            return;
        }
        self.update_indexes(no);
        for change in changes {
            let is_paid = matches!(change, ChargeChange::Paid { .. });
            let (kind, details) = match change {
                ChargeChange::PaymentDetected { txid, amount } => {
                    (EventType::ChargePaymentDetected, Details::Transfer { txid, amount })
                }
                ChargeChange::LatePayment { txid, amount } => {
                    (EventType::ChargeLatePayment, Details::Transfer { txid, amount })
                }
                ChargeChange::Paid { txid, received } => {
                    (EventType::ChargePaid, Details::Received { amount: received, txid })
                }
                ChargeChange::Underpaid { txid, received } => {
                    (EventType::ChargeUnderpaid, Details::Received { amount: received, txid })
                }
                ChargeChange::Expired => (EventType::ChargeExpired, Details::None),
            };
            self.record(context, kind, Subject::Charge(no), details);
            if is_paid {
                self.on_charge_paid(context, no);
            }
        }
    }
}

impl Book {
    /// Settles the invoice of a paid charge. If the charge's link has reached `max_payments`, cancels the untouched
    /// charges of the link.
    fn on_charge_paid(&mut self, context: &BookContext<'_>, no: ChargeNo) {
        let charge = self.charge(no);
        let link = charge.terms.link;
        if let (Some(invoice), Some(paid_at)) = (charge.terms.invoice, charge.paid_at()) {
            self.settle_invoice(context, invoice, paid_at);
        }
        if let Some(link) = link
            && self.link(link).is_used_up()
        {
            self.cancel_untouched_charges(context, link);
        }
    }

    /// Cancels the pending charges of a link that are untouched: no transfer to them is present or credited.
    fn cancel_untouched_charges(&mut self, context: &BookContext<'_>, no: LinkNo) {
        let pending = Some(ChargeStatus::Pending as usize);
        let charges = &self.link(no).charges;
        let untouched: Vec<ChargeNo> = (0..charges.count(pending))
            .filter_map(|nth| charges.select(pending, nth))
            .map(ChargeNo)
            .filter(|no| self.charge(*no).is_untouched())
            .collect();
        for charge in untouched {
            self.cancel_charge(context, charge, Some("max_payments_reached"))
                .expect("an untouched pending charge can be canceled");
        }
    }
}

/// Adds an error for a required field if it is missing. `label`: the name of the field in the message.
pub(super) fn require_field(errors: &mut FieldErrors, is_missing: bool, field: &str, label: &str) {
    if is_missing {
        errors.add(field, format!("The {label} field is required."));
    }
}
