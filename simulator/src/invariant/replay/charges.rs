//! The replay of calls that open and change charges.

use reference_core::{
    asset::{Asset, Currency},
    mode::Mode,
    time::Timestamp,
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    ModelReplay, Object,
    request_fields::{RequestFields, read},
};
use crate::{
    invariant::Invariant,
    model::{ChargeTexts, Details, NextAddress, Order, Terms, money, operation},
    record::{BookId, RecordedCall},
};

/// The response of a request that creates an object.
#[derive(Deserialize)]
pub(super) struct CreatedAnswer {
    pub(super) data: CreatedObject,
}

#[derive(Deserialize)]
pub(super) struct CreatedObject {
    pub(super) id: String,
}

#[derive(Deserialize)]
pub(super) struct ChosenCharge {
    pub(super) charge: String,
}

/// The expected price of a charge, and its origin.
pub(super) struct ChargePrice {
    pub(super) cents: u64,
    pub(super) currency: Currency,
    /// The link that opens it, as a number in its book.
    pub(super) link: Option<usize>,
    /// The invoice that it pays, as a number in its book.
    pub(super) invoice: Option<usize>,
}

impl ModelReplay<'_> {
    pub(super) fn open(&mut self, at: Timestamp, call: &RecordedCall, fields: &RequestFields) {
        let Some(id) = self.calling_book(call) else { return };
        let link = fields.payment_link.as_deref().filter(|code| !code.is_empty());
        let price = match link.map(|code| self.objects.get(code).copied()) {
            None => {
                let is_asked = fields.custom_fields.as_ref().is_some_and(|answers| !answers.is_empty());
                let price = fields.cents().filter(|cents| *cents > 0 && !is_asked);
                if price.is_none() {
                    self.check_status(Invariant::Edges, at, ("open", ""), 422, call.status);
                }
                price.map(|cents| ChargePrice {
                    cents,
                    currency: self.currency(id, fields),
                    link: None,
                    invoice: None,
                })
            }
            Some(Some((of, Object::Link(no)))) if of == id => self.price_of_link(at, (id, no), call, fields),
            Some(_) => {
                self.check_status(Invariant::Edges, at, ("open by a link", ""), 422, call.status);
                None
            }
        };
        let Some(price) = price else { return };
        self.check_terms(at, id, 201, &price, call, fields);
        if let Some(made) = read::<CreatedAnswer>(&call.answer).filter(|_| call.status == 201) {
            self.create_charge(at, &made.data.id, id, call, price);
        }
    }

    /// Returns the currency of a price.
    pub(super) fn currency(&self, id: BookId, fields: &RequestFields) -> Currency {
        let named = fields.currency.as_deref().and_then(Currency::parse);
        named.unwrap_or(self.model.accounts[id.0].default_currency)
    }

    /// Opens a charge on the page of a link.
    pub(super) fn choose_by_link(
        &mut self,
        at: Timestamp,
        link: (BookId, usize),
        call: &RecordedCall,
        fields: &RequestFields,
    ) {
        let Some(price) = self.price_of_link(at, link, call, fields) else { return };
        self.check_terms(at, link.0, 200, &price, call, fields);
        if let Some(chosen) = read::<ChosenCharge>(&call.answer).filter(|_| call.status == 200) {
            self.create_charge(at, &chosen.charge, link.0, call, price);
        }
    }

    /// Returns the expected price of a charge opened by a link; `None` if the request must be refused.
    fn price_of_link(
        &mut self,
        at: Timestamp,
        (id, no): (BookId, usize),
        call: &RecordedCall,
        fields: &RequestFields,
    ) -> Option<ChargePrice> {
        let order = Order {
            asset: fields.asset.as_deref().and_then(Asset::parse),
            cents: fields.cents(),
            currency: fields.currency.as_deref().and_then(Currency::parse),
            answers: fields
                .custom_fields
                .iter()
                .flatten()
                .map(|field| (field.label.clone(), field.value.clone().unwrap_or_default()))
                .collect(),
            has_email: fields.has_email(),
        };
        let book = self.model.book(id);
        match book.price(no, at, order) {
            Ok(cents) => {
                let currency = book.links[no].currency;
                Some(ChargePrice { cents, currency, link: Some(no), invoice: None })
            }
            Err(refusal) => {
                self.check_status(Invariant::Edges, at, ("open by a link", ""), refusal, call.status);
                None
            }
        }
    }

    /// Checks that nothing is opened without a wallet, a rate and an address.
    fn check_terms(
        &mut self,
        at: Timestamp,
        id: BookId,
        good: u16,
        price: &ChargePrice,
        call: &RecordedCall,
        fields: &RequestFields,
    ) {
        let Some(asset) = fields.asset.as_deref().and_then(Asset::parse) else { return };
        let wallets = &self.model.book(id).wallets;
        let rate = self.model.rates.get(&(asset, price.currency));
        let expected = match rate {
            _ if !wallets.accepts(asset) => 422,
            Some(None) => 503,
            _ if wallets.next_address(asset, id.1, &self.ids[&id].addresses) == NextAddress::Exhausted => 422,
            Some(Some(rate)) if money::exceeds_maximum(price.cents, *rate, asset) => 422,
            Some(Some(_)) => good,
            // The initial rates of the world are unknown.
            None if call.status == 503 => 503,
            None => good,
        };
        self.check_status(Invariant::Edges, at, ("open", ""), expected, call.status);
    }

    /// Creates a charge: by itself, by a link, or for an invoice. Its address is read from the API, and so is its rate
    /// unless a request has set one.
    pub(super) fn create_charge(
        &mut self,
        at: Timestamp,
        code: &str,
        id: BookId,
        call: &RecordedCall,
        price: ChargePrice,
    ) {
        if self.objects.contains_key(code) {
            return;
        }
        let shown = self.shown;
        let Some((owner, seen)) = shown.charge(code) else {
            // The rest is unknown if an account has no observer key.
            if shown.books.len() == Mode::ALL.len() * self.model.accounts.len() {
                self.findings.check(Invariant::Once, Some(at), || {
                    let shape = "an opened charge is missing in the list";
                    Some((shape.to_owned(), format!("{code}, opened at {at}")))
                });
            }
            return;
        };
        self.findings.check(Invariant::ModesApart, Some(at), || {
            (owner != id).then(|| ("a charge belongs to another book".to_owned(), code.to_owned()))
        });
        let body: Value = read(&call.body).unwrap_or_default();
        let Some(asset) = body["asset"].as_str().and_then(Asset::parse) else { return };
        let pair = (asset, price.currency);
        let shown_rate = || u64::try_from(money::parse_units(&seen.exchange_rate, 8)?).ok();
        let rate =
            self.model.rates.get(&pair).copied().flatten().or_else(shown_rate).filter(|rate| *rate > 0);
        let Some(rate) = rate else {
            self.findings.check(Invariant::Tolerance, Some(at), || {
                Some(("the rate of a charge cannot be read".to_owned(), code.to_owned()))
            });
            return;
        };
        let next = self.model.book(id).wallets.next_address(asset, id.1, &self.ids[&id].addresses);
        self.findings.check(Invariant::Conservation, Some(at), || match next {
            NextAddress::Listed(expected) if expected != seen.deposit_address => {
                let shape = "a charge has another address than the next of its wallet's list";
                let got = &seen.deposit_address;
                Some((shape.to_owned(), format!("{code}: expected {expected}, got {got}")))
            }
            NextAddress::Derived(expected) => {
                let got = &seen.deposit_address;
                let is_of_mode = expected.iter().any(|prefix| got.starts_with(prefix));
                let shape = "a charge has an address of another coin or network";
                (!is_of_mode).then(|| {
                    (
                        shape.to_owned(),
                        format!("{code}: expected one of {}…, got {got}", expected.join("…, ")),
                    )
                })
            }
            _ => None,
        });
        let ChargePrice { cents, currency, link, invoice } = price;
        let terms = Terms { asset, cents, currency, rate, link, invoice };
        let (account, book) = self.model.account_and_book_mut(id);
        let no = match invoice {
            Some(_) => book.switch(at, account, terms),
            None => book.open(at, account, (terms, ChargeTexts::read(&body))),
        };
        let ids = self.ids.get_mut(&id).expect("every book has ids");
        ids.charges.push(code.to_owned());
        ids.addresses.push(seen.deposit_address.clone());
        self.objects.insert(code.to_owned(), (id, Object::Charge(no)));
        self.addresses.insert((id.1, asset, &seen.deposit_address), (id, no));
    }

    pub(super) fn act_on_charge(
        &mut self,
        at: Timestamp,
        (id, no, code): (BookId, usize, &str),
        act: &str,
        call: &RecordedCall,
        fields: &RequestFields,
    ) {
        let book = self.model.account_and_book_mut(id).1;
        let (invariant, good, done) = match act {
            "cancel" => {
                let why = match call.path.starts_with("/sandbox") {
                    true => Details::Reason("dashboard"),
                    false => Details::None,
                };
                (Invariant::Edges, 200, book.cancel(at, no, why))
            }
            "refunds" => {
                let decimals = book.charges[no].terms.asset.facts().decimals;
                let units = fields.amount.as_ref().and_then(|amount| operation::units(amount, decimals));
                let more = (fields.txid.clone(), fields.reason.clone());
                let done = units.ok_or(422).and_then(|units| book.refund(at, no, units, more));
                (Invariant::Conservation, 201, done)
            }
            "accept" => (Invariant::LateMoney, 200, book.accept(at, no, fields.txid.as_deref())),
            _ => return,
        };
        let expected = done.err().unwrap_or(good);
        self.check_status(invariant, at, (act.trim_end_matches('s'), code), expected, call.status);
    }
}
