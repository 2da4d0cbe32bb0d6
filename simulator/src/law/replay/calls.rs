//! The replay of recorded calls: each is repeated in the model, and its response compared.

use std::collections::BTreeMap;

use reference_core::{
    asset::{Asset, Currency},
    mode::Mode,
    time::Timestamp,
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    ModelReplay, Object,
    faults::{self, FaultSet},
    request_fields::{RequestFields, read},
};
use crate::{
    law::Law,
    model::{
        Account, ChargeTexts, Details, InvoiceDraft, InvoiceTexts, LinkModel, Order, RepeatKind, Terms, money,
    },
    record::{BookId, RecordedCall},
    workload::Fault,
};

#[derive(Deserialize)]
struct MadeAnswer {
    data: MadeObject,
}

#[derive(Deserialize)]
struct MadeObject {
    id: String,
}

#[derive(Deserialize)]
struct ChosenCharge {
    charge: String,
}

#[derive(Deserialize)]
struct AccountAnswer {
    account: String,
    keys: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct KeyCreated {
    key: KeyMade,
}

#[derive(Deserialize)]
struct KeyMade {
    id: String,
    account: String,
    mode: String,
    #[serde(default)]
    secret: String,
    #[serde(default)]
    hint: String,
}

#[derive(Deserialize)]
struct KeysListed {
    keys: Vec<KeyMade>,
}

#[derive(Deserialize)]
struct PayAnswer {
    txid: String,
}

/// The expected price of a charge, and its origin.
struct ChargePrice {
    cents: u64,
    currency: Currency,
    /// The link that opens it, as a number in its book.
    link: Option<usize>,
    /// The invoice that it pays, as a number in its book.
    invoice: Option<usize>,
}

/// Returns the bytes that idempotency compares: the query and the body.
fn request_of(call: &RecordedCall) -> Vec<u8> {
    [call.query.as_deref().unwrap_or_default().as_bytes(), b"\n", &call.body].concat()
}

impl ModelReplay<'_> {
    /// Repeats a call in the model and checks its response.
    pub(super) fn call(&mut self, at: Timestamp, call: &RecordedCall) {
        if !self.judge_key(at, call) || (call.path.starts_with("/v1/") && is_limited(call)) {
            return;
        }
        if self.is_of_other_book(at, call) {
            return;
        }
        if call.path == "/sandbox/keys" && call.method == "GET" {
            self.learn_keys(call);
        }
        self.is_judged = false;
        if call.method != "GET" {
            if self.is_repeat(at, call) {
                return;
            }
            self.act(at, call);
        }
        self.judge_answer(at, call);
        if !self.is_judged && call.path.starts_with("/v1/") {
            *self.findings.unjudged.entry(kind_of(call)).or_default() += 1;
        }
    }

    fn act(&mut self, at: Timestamp, call: &RecordedCall) {
        let fields: RequestFields = read(&call.body).unwrap_or_default();
        let parts: Vec<&str> = call.path.trim_matches('/').split('/').collect();
        match (call.method.as_str(), parts.as_slice()) {
            ("POST", ["v1", "charges"]) => self.open(at, call, &fields),
            ("POST", ["v1", "invoices"]) => self.issue(at, call, &fields),
            ("POST", ["v1", "payment-links"]) => self.make_link(at, call),
            (_, ["v1", "payment-links", code, rest @ ..]) if call.status < 300 => {
                self.change_link(at, code, rest, call);
            }
            ("POST", ["v1" | "sandbox", _, code, act]) => match self.objects.get(*code).copied() {
                Some((id, Object::Charge(no))) => self.act_on_charge(at, (id, no, code), act, call, &fields),
                Some((id, Object::Invoice(no))) => {
                    self.act_on_invoice(at, (id, no, code), act, call, &fields)
                }
                Some((id, Object::Link(no))) => match *act {
                    "view" if call.status == 200 => self.model.at(id).1.links[no].views += 1,
                    "choose" => self.choose_by_link(at, (id, no), call, &fields),
                    _ => {}
                },
                None if call.status == 200 => self.sandbox_call(at, &parts[1..], call, fields),
                None => {}
            },
            (_, ["sandbox", rest @ ..]) if call.status == 200 => self.sandbox_call(at, rest, call, fields),
            _ => {}
        }
    }

    /// Applies a successful sandbox call.
    fn sandbox_call(&mut self, at: Timestamp, path: &[&str], call: &RecordedCall, fields: RequestFields) {
        self.faults.note(at, path, call, &fields);
        self.call_about_deliveries(at, path, call);
        match (call.method.as_str(), path) {
            ("POST", ["accounts"]) => {
                let Some(AccountAnswer { account, keys }) = read(&call.answer) else { return };
                let mut terms = Account::default();
                fields.change(&mut terms);
                let keys = keys.into_iter().filter_map(|(mode, key)| Some((key, Mode::parse(&mode)?)));
                self.open_account(account, terms, keys);
            }
            ("PATCH", ["accounts", id]) => {
                if let Some(no) = self.account(id) {
                    fields.change(&mut self.model.accounts[no]);
                }
            }
            ("POST", ["keys"]) => {
                let Some(KeyCreated { key }) = read(&call.answer) else { return };
                let book = self.account(&key.account).zip(Mode::parse(&key.mode));
                self.keys.insert(key.id, key.secret.clone());
                self.bearers.extend(book.map(|book| (key.secret, book)));
            }
            ("DELETE", ["keys", id]) => self.revoked.extend(self.keys.get(*id).cloned()),
            ("POST", ["rates"]) => self.set_rate(at, &fields),
            ("POST", ["pay"]) => self.pay(call, &fields),
            _ => {}
        }
    }

    /// Learns the ids of the keys that the world started with, by their last characters.
    fn learn_keys(&mut self, call: &RecordedCall) {
        let Some(KeysListed { keys }) = read(&call.answer) else { return };
        for KeyMade { id, hint, account, mode, .. } in keys {
            let book = self.account(&account).zip(Mode::parse(&mode));
            let is_it = |(text, of): &(&String, &BookId)| Some(**of) == book && text.ends_with(&hint);
            if let Some((bearer, _)) = self.bearers.iter().find(is_it) {
                self.keys.insert(id, bearer.clone());
            }
        }
    }

    fn set_rate(&mut self, at: Timestamp, fields: &RequestFields) {
        let asset = fields.asset.as_deref().and_then(Asset::parse);
        let Some(pair) = asset.zip(fields.currency.as_deref().and_then(Currency::parse)) else { return };
        let rate = fields.rate.as_deref().and_then(|text| money::read(text, 8));
        match self.model.rates.insert(pair, rate.and_then(|rate| u64::try_from(rate).ok())) {
            _ if fields.rate.is_none() => self.faults.strike_everywhere(at, Fault::RateGone),
            Some(_) => self.faults.strike_everywhere(at, Fault::RateMoves),
            // Setting the first rate of a coin is not a fault.
            None => {}
        }
    }

    fn pay(&mut self, call: &RecordedCall, fields: &RequestFields) {
        let Some(PayAnswer { txid }) = read(&call.answer) else { return };
        self.faults.touch(&txid, faults::of_payment(fields));
        let charge = fields.charge.as_ref().and_then(|code| self.objects.get(code).copied());
        let Some((id, Object::Charge(no))) = charge else { return };
        let own = self.model.book(id).charges[no].terms.asset.code();
        if fields.asset.as_deref().is_some_and(|asset| asset != own) {
            let all = self.of_charges.entry((id, no)).or_default();
            *all = all.with(FaultSet::only(Fault::WrongCoin));
        }
    }

    /// Checks that a key of another account or mode gets 404.
    fn is_of_other_book(&mut self, at: Timestamp, call: &RecordedCall) -> bool {
        let mut parts = call.path.trim_matches('/').split('/');
        let (Some("v1"), Some(_), Some(code)) = (parts.next(), parts.next(), parts.next()) else {
            return false;
        };
        let owner = self.objects.get(code).map(|(owner, _)| *owner);
        let Some((owner, asks)) = owner.zip(self.asker(call)).filter(|(owner, asks)| owner != asks) else {
            return false;
        };
        self.findings.check(Law::ModesApart, Some(at), || {
            (call.status != 404).then(|| {
                let whose = if owner.0 == asks.0 { "of the other mode" } else { "of another account" };
                let shape = format!("an act on an object {whose} is answered {}, not 404", call.status);
                (shape, format!("{} {} of {} by a {} key", call.method, call.path, owner.1, asks.1))
            })
        });
        true
    }

    /// Returns `true` if the request, or only its key, was used before: then it changes nothing.
    fn is_repeat(&mut self, at: Timestamp, call: &RecordedCall) -> bool {
        let Some((id, key)) = self.asker(call).zip(call.idempotency_key.as_ref()) else { return false };
        let place = format!("{} {}", call.method, call.path);
        let (scope, about) = (format!("{place} {key}"), format!("{place} at {at}"));
        let (book, request) = (self.model.at(id).1, request_of(call));
        let given = match book.repeat(at, &scope, &request) {
            RepeatKind::First => {
                if (200..300).contains(&call.status) {
                    book.keep_answer(at, scope, request, self.answers.len());
                    self.answers.push((call.status, call.answer.clone()));
                }
                self.findings.check(Law::Once, Some(at), || {
                    call.replayed.then(|| ("a first request is marked as replayed".to_owned(), about))
                });
                return false;
            }
            RepeatKind::Same(answer) => Some(&self.answers[answer]),
            RepeatKind::Other => None,
        };
        let (fits, shape) = match given {
            Some((status, answer)) => (
                call.replayed && (*status, answer) == (call.status, &call.answer),
                "a repeated request gets another response",
            ),
            None => {
                (call.status == 409 && !call.replayed, "an idempotency key of another request is accepted")
            }
        };
        self.findings.check(Law::Once, Some(at), || {
            (!fits).then(|| (shape.to_owned(), format!("{about}, answered {}", call.status)))
        });
        true
    }

    fn open(&mut self, at: Timestamp, call: &RecordedCall, fields: &RequestFields) {
        let Some(id) = self.asker(call) else { return };
        let price = match fields.payment_link.as_deref().map(|code| self.objects.get(code).copied()) {
            None => fields.cents().map(|cents| ChargePrice {
                cents,
                currency: self.currency(id, fields),
                link: None,
                invoice: None,
            }),
            Some(Some((of, Object::Link(no)))) if of == id => self.price_of_link(at, (id, no), call, fields),
            Some(_) => {
                self.must_answer(Law::Edges, at, ("open by a link", ""), 422, call.status);
                None
            }
        };
        let Some(price) = price else { return };
        self.check_rate(at, 201, &price, call, fields);
        if let Some(made) = read::<MadeAnswer>(&call.answer).filter(|_| call.status == 201) {
            self.begin(at, &made.data.id, id, call, price);
        }
    }

    /// Returns the currency of a price.
    fn currency(&self, id: BookId, fields: &RequestFields) -> Currency {
        let named = fields.currency.as_deref().and_then(Currency::parse);
        named.unwrap_or(self.model.accounts[id.0].default_currency)
    }

    /// Opens a charge on the page of a link.
    fn choose_by_link(
        &mut self,
        at: Timestamp,
        link: (BookId, usize),
        call: &RecordedCall,
        fields: &RequestFields,
    ) {
        let Some(price) = self.price_of_link(at, link, call, fields) else { return };
        self.check_rate(at, 200, &price, call, fields);
        if let Some(chosen) = read::<ChosenCharge>(&call.answer).filter(|_| call.status == 200) {
            self.begin(at, &chosen.charge, link.0, call, price);
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
            answers: fields.custom_fields.iter().map(|field| field.label.clone()).collect(),
        };
        let book = self.model.book(id);
        match book.price(no, at, order) {
            Ok(cents) => {
                let currency = book.links[no].currency;
                Some(ChargePrice { cents, currency, link: Some(no), invoice: None })
            }
            Err(refusal) => {
                self.must_answer(Law::Edges, at, ("open by a link", ""), refusal, call.status);
                None
            }
        }
    }

    /// Checks that nothing is opened without a rate.
    fn check_rate(
        &mut self,
        at: Timestamp,
        good: u16,
        price: &ChargePrice,
        call: &RecordedCall,
        fields: &RequestFields,
    ) {
        let Some(asset) = fields.asset.as_deref().and_then(Asset::parse) else { return };
        if let Some(rate) = self.model.rates.get(&(asset, price.currency))
            && [good, 409, 503].contains(&call.status)
        {
            let expected = if rate.is_some() { good } else { 503 };
            self.must_answer(Law::Edges, at, ("open", ""), expected, call.status);
        }
    }

    /// Creates a charge: by itself, by a link, or for an invoice. Its address is read from the API, and so is its rate
    /// unless a request has set one.
    fn begin(&mut self, at: Timestamp, code: &str, id: BookId, call: &RecordedCall, price: ChargePrice) {
        if self.objects.contains_key(code) {
            return;
        }
        let shown = self.shown;
        let Some((owner, seen)) = shown.charge(code) else {
            // The rest is unknown if an account has no observer key.
            if shown.books.len() == Mode::ALL.len() * self.accounts.len() {
                self.findings.check(Law::Once, Some(at), || {
                    let shape = "an opened charge is missing in the list";
                    Some((shape.to_owned(), format!("{code}, opened at {at}")))
                });
            }
            return;
        };
        self.findings.check(Law::ModesApart, Some(at), || {
            (owner != id).then(|| ("a charge belongs to another book".to_owned(), code.to_owned()))
        });
        let body: Value = read(&call.body).unwrap_or_default();
        let Some(asset) = body["asset"].as_str().and_then(Asset::parse) else { return };
        let pair = (asset, price.currency);
        let shown_rate = || u64::try_from(money::read(&seen.exchange_rate, 8)?).ok();
        let rate =
            self.model.rates.get(&pair).copied().flatten().or_else(shown_rate).filter(|rate| *rate > 0);
        let Some(rate) = rate else {
            self.findings.check(Law::Tolerance, Some(at), || {
                Some(("the rate of a charge cannot be read".to_owned(), code.to_owned()))
            });
            return;
        };
        let ChargePrice { cents, currency, link, invoice } = price;
        let terms = Terms { asset, cents, currency, rate, link, invoice };
        let (account, book) = self.model.at(id);
        let no = match invoice {
            Some(_) => book.switch(at, account, terms),
            None => book.open(at, account, (terms, ChargeTexts::read(&body))),
        };
        let ids = self.ids.get_mut(&id).expect("every book has names");
        ids.charges.push(code.to_owned());
        ids.addresses.push(seen.deposit_address.clone());
        self.objects.insert(code.to_owned(), (id, Object::Charge(no)));
        self.addresses.insert((id.1, asset, &seen.deposit_address), (id, no));
    }

    fn act_on_charge(
        &mut self,
        at: Timestamp,
        (id, no, code): (BookId, usize, &str),
        act: &str,
        call: &RecordedCall,
        fields: &RequestFields,
    ) {
        let book = self.model.at(id).1;
        let (law, good, done) = match act {
            "cancel" => {
                let why = match call.path.starts_with("/sandbox") {
                    true => Details::Reason("dashboard"),
                    false => Details::None,
                };
                (Law::Edges, 200, book.cancel(at, no, why))
            }
            "refunds" => {
                let decimals = book.charges[no].terms.asset.facts().decimals;
                let units = fields.amount.as_deref().and_then(|text| money::read(text, decimals));
                let more = (fields.txid.clone(), fields.reason.clone());
                let done = units.ok_or(422).and_then(|units| book.refund(at, no, units, more));
                (Law::Conservation, 201, done)
            }
            "accept" => (Law::LateMoney, 200, book.accept(at, no, fields.txid.as_deref())),
            _ => return,
        };
        let expected = done.err().unwrap_or(good);
        self.must_answer(law, at, (act.trim_end_matches('s'), code), expected, call.status);
    }

    fn issue(&mut self, at: Timestamp, call: &RecordedCall, fields: &RequestFields) {
        let Some(MadeAnswer { data }) = read(&call.answer).filter(|_| call.status == 201) else { return };
        let Some(id) = self.asker(call).filter(|_| !self.objects.contains_key(&data.id)) else { return };
        let (texts, sum) = InvoiceTexts::read(&read(&call.body).unwrap_or_default());
        let draft = InvoiceDraft {
            cents: fields.cents().unwrap_or(sum),
            currency: self.currency(id, fields),
            reader: fields.customer_email.clone().filter(|email| !email.is_empty()),
            texts,
        };
        let (account, book) = self.model.at(id);
        let issued = book.issue(at, account, draft.clone(), fields.send_email == Some(true));
        let no = match issued {
            Ok(no) => no,
            Err(_) => book.issue(at, account, draft, false).expect("nothing is mailed"),
        };
        self.ids.get_mut(&id).expect("every book has names").invoices.push(data.id.clone());
        self.must_answer(Law::Edges, at, ("issue", &data.id), issued.err().unwrap_or(201), call.status);
        self.objects.insert(data.id, (id, Object::Invoice(no)));
    }

    fn act_on_invoice(
        &mut self,
        at: Timestamp,
        (id, no, code): (BookId, usize, &str),
        act: &str,
        call: &RecordedCall,
        fields: &RequestFields,
    ) {
        let (account, book) = self.model.at(id);
        let done = match act {
            "send" => book.send(at, account, no),
            "void" => book.void(at, no),
            "view" => {
                book.view(at, no);
                Ok(())
            }
            "choose" => return self.choose(at, (id, no, code), call, fields),
            _ => return,
        };
        self.must_answer(Law::Edges, at, (act, code), done.err().unwrap_or(200), call.status);
    }

    fn choose(
        &mut self,
        at: Timestamp,
        (id, no, code): (BookId, usize, &str),
        call: &RecordedCall,
        fields: &RequestFields,
    ) {
        let Some(asset) = fields.asset.as_deref().and_then(Asset::parse) else { return };
        let same = match self.model.book(id).choose(no, asset) {
            Ok(same) => same,
            Err(refusal) => return self.must_answer(Law::Edges, at, ("choose", code), refusal, call.status),
        };
        let Some(chosen) = read::<ChosenCharge>(&call.answer).filter(|_| call.status == 200) else {
            // Without a wallet or a rate the world may refuse, which changes nothing.
            let may = matches!(call.status, 422 | 503) && same.is_none();
            let expected = if may { call.status } else { 200 };
            return self.must_answer(Law::Edges, at, ("choose", code), expected, call.status);
        };
        match same {
            None => {
                let invoice = &self.model.book(id).invoices[no];
                let (cents, currency) = (invoice.cents, invoice.currency);
                let price = ChargePrice { cents, currency, link: None, invoice: Some(no) };
                self.begin(at, &chosen.charge, id, call, price);
            }
            Some(open) => {
                let is_it = self.ids[&id].charges[open] == chosen.charge;
                self.findings.check(Law::Edges, Some(at), || {
                    let shape = "choosing the coin of the pending charge gives another charge";
                    (!is_it).then(|| (shape.to_owned(), code.to_owned()))
                });
            }
        }
    }

    fn make_link(&mut self, at: Timestamp, call: &RecordedCall) {
        let Some(id) = self.asker(call).filter(|_| call.status == 201) else { return };
        let Some(MadeAnswer { data }) = read(&call.answer) else { return };
        let (account, book) = self.model.at(id);
        let body = read(&call.body).unwrap_or_default();
        book.links.push(LinkModel::new(at, account.default_currency, &body));
        let no = book.links.len() - 1;
        self.ids.get_mut(&id).expect("every book has names").links.push(data.id.clone());
        self.objects.insert(data.id, (id, Object::Link(no)));
    }

    /// Archives, restores or changes a link.
    fn change_link(&mut self, at: Timestamp, code: &str, rest: &[&str], call: &RecordedCall) {
        let Some((id, Object::Link(no))) = self.objects.get(code).copied() else { return };
        let link = &mut self.model.at(id).1.links[no];
        match (call.method.as_str(), rest) {
            ("POST" | "DELETE", ["archive"]) => {
                link.archive(at, call.method == "POST");
            }
            ("PATCH", []) => link.change(at, &read(&call.body).unwrap_or_default()),
            _ => {}
        }
    }
}

/// Returns the method, the path without ids, and the status of a call.
fn kind_of(call: &RecordedCall) -> String {
    let is_id = |part: &&str| part.len() >= 12 && part.bytes().any(|b| b.is_ascii_digit());
    let parts: Vec<&str> =
        call.path.split('/').map(|part| if is_id(&part) { "{id}" } else { part }).collect();
    format!("{} {} {}", call.method, parts.join("/"), call.status)
}

/// Returns `true` if the rate limit refused a call; another invariant checks that.
fn is_limited(call: &RecordedCall) -> bool {
    call.status == 429 && call.retry_after.is_some() && !call.path.ends_with("/send")
}
