//! The replay of requests that open and change charges.

use reference_core::{
    asset::{Asset, Currency},
    mode::Mode,
    time::Timestamp,
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    ModelReplay, Object, ObjectRef,
    request_fields::{RequestFields, read},
};
use crate::{
    invariant::Invariant,
    model::{ChargeTexts, Details, LinkOrder, NextAddress, Terms, money, operation},
    record::{BookId, RecordedCall},
};

/// The response of a request that creates an object.
#[derive(Deserialize)]
pub(super) struct CreatedResponse {
    pub(super) data: CreatedObject,
}

#[derive(Deserialize)]
pub(super) struct CreatedObject {
    pub(super) id: String,
}

/// The response of a request that chooses a coin on the page of an invoice or a link.
#[derive(Deserialize)]
pub(super) struct ChosenChargeResponse {
    pub(super) charge: String,
}

/// The expected price of a charge, and its origin.
pub(super) struct ChargePrice {
    pub(super) cents: u64,
    pub(super) currency: Currency,
    /// The payment link of the charge, as a number in its book.
    pub(super) link: Option<usize>,
    /// The invoice that it pays, as a number in its book.
    pub(super) invoice: Option<usize>,
}

impl ModelReplay<'_> {
    /// Replays `POST /v1/charges`.
    pub(super) fn replay_open_charge(&mut self, now: Timestamp, call: &RecordedCall, fields: &RequestFields) {
        let Some(id) = self.calling_book(call) else { return };
        let link = fields.payment_link.as_deref().filter(|code| !code.is_empty());
        let price = match link.map(|code| self.objects.get(code).copied()) {
            None => {
                // Only a link has custom fields.
                let has_custom_fields =
                    fields.custom_fields.as_ref().is_some_and(|values| !values.is_empty());
                let price = fields.cents().filter(|cents| *cents > 0 && !has_custom_fields);
                if price.is_none() {
                    self.check_status(Invariant::Edges, now, ("open a charge", ""), 422, call.status);
                }
                price.map(|cents| ChargePrice {
                    cents,
                    currency: self.requested_currency(id, fields),
                    link: None,
                    invoice: None,
                })
            }
            Some(Some((owner, Object::Link(number)))) if owner == id => {
                self.price_of_link(now, (id, number), call, fields)
            }
            Some(_) => {
                self.check_status(Invariant::Edges, now, ("open a charge by a link", ""), 422, call.status);
                None
            }
        };
        let Some(price) = price else { return };
        self.check_terms(now, id, 201, &price, call, fields);
        if let Some(created) = read::<CreatedResponse>(&call.response_body).filter(|_| call.status == 201) {
            self.add_charge(now, &created.data.id, id, call, price);
        }
    }

    /// Returns the currency of a price: that of the request, or else the default of the account.
    pub(super) fn requested_currency(&self, id: BookId, fields: &RequestFields) -> Currency {
        let named = fields.currency.as_deref().and_then(Currency::parse);
        named.unwrap_or(self.model.accounts[id.0].default_currency)
    }

    /// Replays the choice of a coin on the page of a link, which opens a charge.
    pub(super) fn replay_choose_link_coin(
        &mut self,
        now: Timestamp,
        link: (BookId, usize),
        call: &RecordedCall,
        fields: &RequestFields,
    ) {
        let Some(price) = self.price_of_link(now, link, call, fields) else { return };
        self.check_terms(now, link.0, 200, &price, call, fields);
        if let Some(chosen) = read::<ChosenChargeResponse>(&call.response_body).filter(|_| call.status == 200)
        {
            self.add_charge(now, &chosen.charge, link.0, call, price);
        }
    }

    /// Returns the expected price of a charge opened by a link. If the request must be refused, checks its status and
    /// returns `None`.
    fn price_of_link(
        &mut self,
        now: Timestamp,
        (id, number): (BookId, usize),
        call: &RecordedCall,
        fields: &RequestFields,
    ) -> Option<ChargePrice> {
        let order = LinkOrder {
            asset: fields.asset.as_deref().and_then(Asset::parse),
            cents: fields.cents(),
            currency: fields.currency.as_deref().and_then(Currency::parse),
            custom_fields: fields
                .custom_fields
                .iter()
                .flatten()
                .map(|field| (field.label.clone(), field.value.clone().unwrap_or_default()))
                .collect(),
            has_email: fields.has_email(),
        };
        let book = self.model.book(id);
        match book.price(number, now, order) {
            Ok(cents) => {
                let currency = book.links[number].currency;
                Some(ChargePrice { cents, currency, link: Some(number), invoice: None })
            }
            Err(refusal) => {
                self.check_status(
                    Invariant::Edges,
                    now,
                    ("open a charge by a link", ""),
                    refusal,
                    call.status,
                );
                None
            }
        }
    }

    /// Checks that a charge is refused without a wallet, a rate or a free address, or if the amount is too large. `success`
    /// is the status of a success.
    fn check_terms(
        &mut self,
        now: Timestamp,
        id: BookId,
        success: u16,
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
            Some(Some(_)) => success,
            // The initial rates of the world are unknown.
            None if call.status == 503 => 503,
            None => success,
        };
        self.check_status(Invariant::Edges, now, ("open a charge", ""), expected, call.status);
    }

    /// Adds an opened charge to the model. Its address is read from the API, and so is its rate unless a request has set
    /// one.
    pub(super) fn add_charge(
        &mut self,
        now: Timestamp,
        code: &str,
        id: BookId,
        call: &RecordedCall,
        price: ChargePrice,
    ) {
        if self.objects.contains_key(code) {
            return;
        }
        let api_state = self.api_state;
        let Some((owner, view)) = api_state.charge(code) else {
            // An account without an observer key has unknown charges.
            if api_state.books.len() == Mode::ALL.len() * self.model.accounts.len() {
                self.findings.check(Invariant::Once, Some(now), || {
                    let shape = "an opened charge is missing from the list";
                    Some((shape.to_owned(), format!("{code}, opened at {now}")))
                });
            }
            return;
        };
        self.findings.check(Invariant::ModesApart, Some(now), || {
            (owner != id).then(|| ("a charge belongs to another book".to_owned(), code.to_owned()))
        });
        let body: Value = read(&call.body).unwrap_or_default();
        let Some(asset) = body["asset"].as_str().and_then(Asset::parse) else { return };
        let pair = (asset, price.currency);
        let rate_in_api =
            || u64::try_from(money::parse_units(&view.exchange_rate, money::RATE_DECIMALS)?).ok();
        let rate =
            self.model.rates.get(&pair).copied().flatten().or_else(rate_in_api).filter(|rate| *rate > 0);
        let Some(rate) = rate else {
            self.findings.check(Invariant::Tolerance, Some(now), || {
                Some(("the rate of a charge cannot be read".to_owned(), code.to_owned()))
            });
            return;
        };
        let next = self.model.book(id).wallets.next_address(asset, id.1, &self.ids[&id].addresses);
        let got = view.deposit_address.as_str();
        self.findings.check(Invariant::Conservation, Some(now), || match next {
            NextAddress::Listed(expected) if expected != got => {
                let shape = "a charge has another address than the next of its wallet's list";
                Some((shape.to_owned(), format!("{code}: expected {expected}, got {got}")))
            }
            NextAddress::Derived(expected) => {
                let has_prefix = expected.iter().any(|prefix| got.starts_with(prefix));
                let shape = "a charge has an address of another coin or network";
                (!has_prefix).then(|| {
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
        let number = match invoice {
            Some(_) => book.switch_asset(now, account, terms),
            None => book.open(now, account, (terms, ChargeTexts::read(&body))),
        };
        let ids = self.ids.get_mut(&id).expect("every book has ids");
        ids.charges.push(code.to_owned());
        ids.addresses.push(view.deposit_address.clone());
        self.objects.insert(code.to_owned(), (id, Object::Charge(number)));
        self.addresses.insert((id.1, asset, &view.deposit_address), (id, number));
    }

    /// Replays an action on a charge: `cancel`, `refunds` or `accept`.
    pub(super) fn replay_charge_action(
        &mut self,
        now: Timestamp,
        ObjectRef { book: id, number, code }: ObjectRef<'_>,
        action: &str,
        call: &RecordedCall,
        fields: &RequestFields,
    ) {
        let book = self.model.account_and_book_mut(id).1;
        let (invariant, success, result) = match action {
            "cancel" => {
                let details = match call.path.starts_with("/sandbox") {
                    true => Details::Reason("dashboard"),
                    false => Details::None,
                };
                (Invariant::Edges, 200, book.cancel(now, number, details))
            }
            "refunds" => {
                let decimals = book.charges[number].terms.asset.facts().decimals;
                let units = fields
                    .amount
                    .as_ref()
                    .and_then(|amount| operation::parse_units_strictly(amount, decimals));
                let txid_and_reason = (fields.txid.clone(), fields.reason.clone());
                let result =
                    units.ok_or(422).and_then(|units| book.refund(now, number, units, txid_and_reason));
                (Invariant::Conservation, 201, result)
            }
            "accept" => (Invariant::LateMoney, 200, book.accept(now, number, fields.txid.as_deref())),
            _ => return,
        };
        let expected = result.err().unwrap_or(success);
        // The name of the action `refunds` is `refund`.
        self.check_status(invariant, now, (action.trim_end_matches('s'), code), expected, call.status);
    }
}
