//! The calls of a record: each is made in the model, and its answer compared.

use std::collections::BTreeMap;

use reference_core::{
    asset::{Asset, Currency},
    mode::Mode,
    time::Timestamp,
};
use serde::{Deserialize, de::IgnoredAny};

use super::{
    Follower, Object,
    asked::{Asked, CustomField, cents, read},
    faults::{self, FaultSet},
};
use crate::{
    law::Law,
    model::{Account, ChargeView, Details, LinkModel, Order, Pricing, RepeatKind, Terms, money},
    witness::{BookId, RecordedCall},
    workload::Fault,
};

#[derive(Deserialize)]
struct MadeAnswer {
    data: MadeObject,
}

#[derive(Deserialize)]
struct MadeObject {
    id: String,
    amount: Option<String>,
    currency: Option<String>,
    accepted_assets: Option<Vec<String>>,
    max_payments: Option<u32>,
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
    account: String,
    mode: String,
    secret: String,
}

#[derive(Deserialize)]
struct PayAnswer {
    txid: String,
}

/// The expected price of a charge.
struct ChargePrice {
    /// `None` if nobody can say.
    cents: Option<u64>,
    /// `None` if nobody said.
    currency: Option<String>,
    /// The link that it is opened by, as a number in its book.
    link: Option<usize>,
}

/// Returns the bytes that idempotency compares: the query and the body.
fn request_of(call: &RecordedCall) -> Vec<u8> {
    [call.query.as_deref().unwrap_or_default().as_bytes(), b"\n", &call.body].concat()
}

impl Follower<'_> {
    /// A call: what it must have done, and what it must have been answered.
    pub(super) fn call(&mut self, at: Timestamp, call: &RecordedCall) {
        if call.status == 401 || (call.path.starts_with("/v1/") && is_limited(call)) {
            return;
        }
        if self.is_of_other_book(at, call) || call.method == "GET" || self.is_repeat(at, call) {
            return;
        }
        let asked: Asked = read(&call.body).unwrap_or_default();
        let parts: Vec<&str> = call.path.trim_matches('/').split('/').collect();
        match (call.method.as_str(), parts.as_slice()) {
            ("POST", ["v1", "charges"]) => self.open(at, call, &asked),
            ("POST", ["v1", "invoices"]) => self.issue(at, call, &asked),
            ("POST", ["v1", "payment-links"]) => self.make_link(at, call, &asked),
            (_, ["v1", "payment-links", code, rest @ ..]) if call.status < 300 => {
                self.change_link(code, rest, call, &asked);
            }
            ("POST", ["v1" | "sandbox", _, code, act]) => match self.objects.get(*code).copied() {
                Some((id, Object::Charge(no))) => self.act_on_charge(at, (id, no, code), act, call, &asked),
                Some((id, Object::Invoice(no))) => self.act_on_invoice(at, (id, no, code), act, call, &asked),
                Some((id, Object::Link(no))) => match *act {
                    "view" if call.status == 200 => self.model.at(id).1.links[no].views += 1,
                    "choose" => self.choose_by_link(at, (id, no), call, &asked),
                    _ => {}
                },
                None if call.status == 200 => self.sandbox_call(at, &parts[1..], call, asked),
                None => {}
            },
            (_, ["sandbox", rest @ ..]) if call.status == 200 => self.sandbox_call(at, rest, call, asked),
            _ => {}
        }
    }

    /// A call of the sandbox that was done.
    fn sandbox_call(&mut self, at: Timestamp, path: &[&str], call: &RecordedCall, asked: Asked) {
        self.faults.note(at, path, call, &asked);
        self.call_about_deliveries(at, path, call);
        match (call.method.as_str(), path) {
            ("POST", ["accounts"]) => {
                let Some(AccountAnswer { account, keys }) = read(&call.answer) else { return };
                let mut terms = Account::default();
                asked.change(&mut terms);
                let keys = keys.into_iter().filter_map(|(mode, key)| Some((key, Mode::parse(&mode)?)));
                self.open_account(account, terms, keys);
            }
            ("PATCH", ["accounts", id]) => {
                if let Some(no) = self.account(id) {
                    asked.change(&mut self.model.accounts[no]);
                }
            }
            ("POST", ["keys"]) => {
                let Some(KeyCreated { key }) = read(&call.answer) else { return };
                let book = self.account(&key.account).zip(Mode::parse(&key.mode));
                self.bearers.extend(book.map(|book| (key.secret, book)));
            }
            ("POST", ["rates"]) => self.set_rate(at, &asked),
            ("POST", ["pay"]) => self.pay(call, &asked),
            _ => {}
        }
    }

    fn set_rate(&mut self, at: Timestamp, asked: &Asked) {
        let asset = asked.asset.as_deref().and_then(Asset::parse);
        let Some(pair) = asset.zip(asked.currency.as_deref().and_then(Currency::parse)) else { return };
        let rate = asked.rate.as_deref().and_then(|text| money::read(text, 8));
        match self.model.rates.insert(pair, rate.and_then(|rate| u64::try_from(rate).ok())) {
            _ if asked.rate.is_none() => self.faults.strike_everywhere(at, Fault::RateGone),
            Some(_) => self.faults.strike_everywhere(at, Fault::RateMoves),
            // The first rate of a coin is no fault.
            None => {}
        }
    }

    fn pay(&mut self, call: &RecordedCall, asked: &Asked) {
        let Some(PayAnswer { txid }) = read(&call.answer) else { return };
        self.faults.touch(&txid, faults::of_payment(asked));
        let charge = asked.charge.as_ref().and_then(|code| self.objects.get(code).copied());
        let Some((id, Object::Charge(no))) = charge else { return };
        let own = self.model.book(id).charges[no].terms.asset.code();
        if asked.asset.as_deref().is_some_and(|asset| asset != own) {
            let all = self.of_charges.entry((id, no)).or_default();
            *all = all.with(FaultSet::only(Fault::WrongCoin));
        }
    }

    /// An act by a key of another account or of the other mode finds nothing.
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

    /// Returns `true` if a request, or only its key, came before: then it changes nothing.
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
                    call.replayed.then(|| ("a first request is answered as a repeated one".to_owned(), about))
                });
                return false;
            }
            RepeatKind::Same(answer) => Some(&self.answers[answer]),
            RepeatKind::Other => None,
        };
        let (fits, shape) = match given {
            Some((status, answer)) => (
                call.replayed && (*status, answer) == (call.status, &call.answer),
                "a request that is repeated is not answered as it was",
            ),
            None => (
                call.status == 409 && !call.replayed,
                "a key that was used for another request is not refused",
            ),
        };
        self.findings.check(Law::Once, Some(at), || {
            (!fits).then(|| (shape.to_owned(), format!("{about}, answered {}", call.status)))
        });
        true
    }

    fn open(&mut self, at: Timestamp, call: &RecordedCall, asked: &Asked) {
        let Some(id) = self.asker(call) else { return };
        let price = match asked.payment_link.as_deref().map(|code| self.objects.get(code).copied()) {
            None => Some(ChargePrice { cents: asked.cents(), currency: asked.currency.clone(), link: None }),
            Some(Some((of, Object::Link(no)))) if of == id => self.price_of_link(at, (id, no), call, asked),
            Some(_) => {
                self.must_answer(Law::Edges, at, ("open by a link", ""), 422, call.status);
                None
            }
        };
        let Some(price) = price else { return };
        self.check_rate(at, 201, &price, call, asked);
        if call.status == 201
            && let Some(made) = read::<MadeAnswer>(&call.answer)
        {
            self.begin(at, &made.data.id, Some(price), None);
            self.check_texts(at, &made.data.id, asked);
        }
    }

    /// A customer opens a charge on the page of a link.
    fn choose_by_link(&mut self, at: Timestamp, link: (BookId, usize), call: &RecordedCall, asked: &Asked) {
        let Some(price) = self.price_of_link(at, link, call, asked) else { return };
        self.check_rate(at, 200, &price, call, asked);
        if let Some(chosen) = read::<ChosenCharge>(&call.answer).filter(|_| call.status == 200) {
            self.begin(at, &chosen.charge, Some(price), None);
        }
    }

    /// Returns the expected price of a charge opened by a link; `None` if the request must be refused.
    fn price_of_link(
        &mut self,
        at: Timestamp,
        (id, no): (BookId, usize),
        call: &RecordedCall,
        asked: &Asked,
    ) -> Option<ChargePrice> {
        if self.unknown_links.contains(&(id, no)) {
            return Some(ChargePrice { cents: None, currency: None, link: Some(no) });
        }
        let order = Order {
            asset: asked.asset.as_deref().and_then(Asset::parse),
            cents: asked.cents(),
            currency: asked.currency.as_deref().and_then(Currency::parse),
            answers: asked.custom_fields.iter().map(|field| field.label.clone()).collect(),
        };
        let book = self.model.book(id);
        match book.price(no, at, order) {
            Ok(cents) => {
                let currency = book.links[no].currency.code().to_owned();
                Some(ChargePrice { cents: Some(cents), currency: Some(currency), link: Some(no) })
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
        asked: &Asked,
    ) {
        let asset = asked.asset.as_deref().and_then(Asset::parse);
        let Some(pair) = asset.zip(price.currency.as_deref().and_then(Currency::parse)) else { return };
        if let Some(rate) = self.model.rates.get(&pair)
            && [good, 409, 503].contains(&call.status)
        {
            let expected = if rate.is_some() { good } else { 503 };
            self.must_answer(Law::Edges, at, ("open", ""), expected, call.status);
        }
    }

    /// Checks that the merchant's texts on a charge are returned as they were written.
    fn check_texts(&mut self, at: Timestamp, code: &str, asked: &Asked) {
        let Some((_, seen)) = self.shown.charge(code) else { return };
        let same_text = asked.description.is_none() || seen.description == asked.description;
        let same_metadata = asked.metadata.as_ref().is_none_or(|asked| seen.metadata == *asked);
        for (same, shape) in [
            (same_text, "a description is another than was written"),
            (same_metadata, "metadata are others than were written"),
        ] {
            let about = || (!same).then(|| (shape.to_owned(), code.to_owned()));
            self.findings.check(Law::SameObject, Some(at), about);
        }
    }

    /// A charge begins, by itself, by a link, or for an invoice. What never changes of it is read where it is shown.
    fn begin(&mut self, at: Timestamp, code: &str, price: Option<ChargePrice>, invoice: Option<usize>) {
        if self.objects.contains_key(code) {
            return;
        }
        let shown = self.shown;
        let Some((id, seen)) = shown.charge(code) else {
            // Nobody may look at an account.
            if shown.books.len() == Mode::ALL.len() * self.accounts.len() {
                self.findings.check(Law::Once, Some(at), || {
                    let shape = "a charge that was opened is not in the list";
                    Some((shape.to_owned(), format!("{code}, opened at {at}")))
                });
            }
            return;
        };
        let terms = || {
            Some(Terms {
                asset: Asset::parse(&seen.asset)?,
                cents: cents(Some(&seen.fiat_amount))?,
                currency: Currency::parse(&seen.fiat_currency)?,
                rate: u64::try_from(money::read(&seen.exchange_rate, 8)?).ok()?,
                link: price.as_ref().and_then(|price| price.link),
                invoice,
            })
        };
        let Some(terms) = terms() else {
            self.findings.check(Law::Tolerance, Some(at), || {
                Some(("the terms of a charge cannot be read".to_owned(), code.to_owned()))
            });
            return;
        };
        self.check_terms(at, seen, &terms, price.as_ref());
        let (account, book) = self.model.at(id);
        let no = match invoice {
            Some(_) => book.switch(at, account, terms),
            None => book.open(at, account, terms),
        };
        let ids = self.ids.get_mut(&id).expect("every book has names");
        ids.charges.push(code.to_owned());
        ids.addresses.push(seen.deposit_address.clone());
        self.objects.insert(code.to_owned(), (id, Object::Charge(no)));
        self.addresses.insert((id.1, terms.asset, &seen.deposit_address), (id, no));
    }

    fn check_terms(&mut self, at: Timestamp, seen: &ChargeView, terms: &Terms, price: Option<&ChargePrice>) {
        let due = money::due(terms.cents, terms.rate, terms.asset);
        let decimals = terms.asset.facts().decimals;
        self.findings.check(Law::Tolerance, Some(at), || {
            (money::read(&seen.asset_amount, decimals) != Some(due)).then(|| {
                let expected = money::written(due, terms.asset);
                let what = format!("{}: expected {expected}, got {}", seen.code, seen.asset_amount);
                ("what is due is not the price by the rate, rounded up".to_owned(), what)
            })
        });
        let current = self.model.rates.get(&(terms.asset, terms.currency)).copied().flatten();
        self.findings.check(Law::Tolerance, Some(at), || {
            current
                .is_some_and(|rate| rate != terms.rate)
                .then(|| ("the rate is not that of the moment".to_owned(), format!("{} at {at}", seen.code)))
        });
        let Some(price) = price else { return };
        let is_same = price.cents.is_none_or(|cents| cents == terms.cents)
            && price.currency.as_ref().is_none_or(|currency| *currency == seen.fiat_currency);
        self.findings.check(Law::Tolerance, Some(at), || {
            (!is_same).then(|| {
                let what = format!("{}: {} {}", seen.code, seen.fiat_amount, seen.fiat_currency);
                ("a charge costs another price than was asked for".to_owned(), what)
            })
        });
    }

    fn act_on_charge(
        &mut self,
        at: Timestamp,
        (id, no, code): (BookId, usize, &str),
        act: &str,
        call: &RecordedCall,
        asked: &Asked,
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
                let units = asked.amount.as_deref().and_then(|text| money::read(text, decimals));
                let more = (asked.txid.clone(), asked.reason.clone());
                let done = units.ok_or(422).and_then(|units| book.refund(at, no, units, more));
                (Law::Conservation, 201, done)
            }
            "accept" => (Law::LateMoney, 200, book.accept(at, no, asked.txid.as_deref())),
            _ => return,
        };
        let expected = done.err().unwrap_or(good);
        self.must_answer(law, at, (act.trim_end_matches('s'), code), expected, call.status);
    }

    fn issue(&mut self, at: Timestamp, call: &RecordedCall, asked: &Asked) {
        let Some(MadeAnswer { data }) = read(&call.answer).filter(|_| call.status == 201) else { return };
        let Some(id) = self.asker(call).filter(|_| !self.objects.contains_key(&data.id)) else { return };
        let currency = asked.currency.as_deref().or(data.currency.as_deref()).and_then(Currency::parse);
        let amount = asked.amount.as_deref().or(data.amount.as_deref());
        let Some((cents, currency)) = cents(amount).zip(currency) else { return };
        let draft = (cents, currency, asked.customer_email.clone());
        let (account, book) = self.model.at(id);
        let issued = book.issue(at, account, draft.clone(), asked.send_email == Some(true));
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
        asked: &Asked,
    ) {
        let (account, book) = self.model.at(id);
        let done = match act {
            "send" => book.send(at, account, no),
            "void" => book.void(at, no),
            "view" => {
                book.view(at, no);
                Ok(())
            }
            "choose" => return self.choose(at, (id, no, code), call, asked),
            _ => return,
        };
        self.must_answer(Law::Edges, at, (act, code), done.err().unwrap_or(200), call.status);
    }

    fn choose(
        &mut self,
        at: Timestamp,
        (id, no, code): (BookId, usize, &str),
        call: &RecordedCall,
        asked: &Asked,
    ) {
        let Some(asset) = asked.asset.as_deref().and_then(Asset::parse) else { return };
        let same = match self.model.book(id).choose(no, asset) {
            Ok(same) => same,
            Err(refusal) => return self.must_answer(Law::Edges, at, ("choose", code), refusal, call.status),
        };
        let Some(chosen) = read::<ChosenCharge>(&call.answer).filter(|_| call.status == 200) else {
            // No wallet or no rate: the world may say no, and then nothing happens.
            let may = matches!(call.status, 422 | 503) && same.is_none();
            let expected = if may { call.status } else { 200 };
            return self.must_answer(Law::Edges, at, ("choose", code), expected, call.status);
        };
        match same {
            None => self.begin(at, &chosen.charge, None, Some(no)),
            Some(open) => {
                let is_it = self.ids[&id].charges[open] == chosen.charge;
                self.findings.check(Law::Edges, Some(at), || {
                    let shape = "the coin of the charge that waits gives another charge";
                    (!is_it).then(|| (shape.to_owned(), code.to_owned()))
                });
            }
        }
    }

    fn make_link(&mut self, at: Timestamp, call: &RecordedCall, asked: &Asked) {
        let Some(id) = self.asker(call).filter(|_| call.status == 201) else { return };
        let Some(MadeAnswer { data }) = read(&call.answer) else { return };
        let Some(currency) = data.currency.as_deref().and_then(Currency::parse) else { return };
        let is_same = asked.cents() == cents(data.amount.as_deref())
            && asked.accepted_assets == data.accepted_assets
            && asked.max_payments == data.max_payments;
        self.findings.check(Law::SameObject, Some(at), || {
            (!is_same)
                .then(|| ("a payment link has other terms than were asked for".to_owned(), data.id.clone()))
        });
        let (min, max) = (cents(asked.min_amount.as_deref()), cents(asked.max_amount.as_deref()));
        let coins = |coins: &Vec<String>| coins.iter().filter_map(|code| Asset::parse(code)).collect();
        let links = &mut self.model.at(id).1.links;
        links.push(LinkModel {
            pricing: asked.cents().map_or(Pricing::Open { min, max }, Pricing::Fixed),
            currency,
            coins: asked.accepted_assets.as_ref().map(coins),
            max_payments: asked.max_payments,
            questions: asked.custom_fields.iter().map(CustomField::question).collect(),
            expires_at: asked.expires_at.as_deref().and_then(Timestamp::parse),
            is_archived: false,
            views: 0,
        });
        let no = links.len() - 1;
        if !says_only(&call.body, &LINK_TERMS) {
            self.unknown_links.insert((id, no));
        }
        self.ids.get_mut(&id).expect("every book has names").links.push(data.id.clone());
        self.objects.insert(data.id, (id, Object::Link(no)));
    }

    /// A link is archived, restored or changed.
    fn change_link(&mut self, code: &str, rest: &[&str], call: &RecordedCall, asked: &Asked) {
        let Some((id, Object::Link(no))) = self.objects.get(code).copied() else { return };
        let link = &mut self.model.at(id).1.links[no];
        match (call.method.as_str(), rest) {
            ("POST" | "DELETE", ["archive"]) => link.is_archived = call.method == "POST",
            ("PATCH", []) if says_only(&call.body, &["max_payments"]) => {
                link.max_payments = asked.max_payments
            }
            ("GET", _) => {}
            _ => drop(self.unknown_links.insert((id, no))),
        }
    }
}

/// Returns `true` if the rate limit refused it; another invariant judges that.
fn is_limited(call: &RecordedCall) -> bool {
    call.status == 429 && call.retry_after.is_some() && !call.path.ends_with("/send")
}

/// The terms of a link that the model knows.
const LINK_TERMS: [&str; 10] = [
    "custom_fields",
    "title",
    "pricing_type",
    "amount",
    "currency",
    "accepted_assets",
    "max_payments",
    "min_amount",
    "max_amount",
    "expires_at",
];

/// Returns `true` if a request has no fields but those that the model knows.
fn says_only(body: &[u8], known: &[&str]) -> bool {
    let asked: BTreeMap<String, IgnoredAny> = serde_json::from_slice(body).unwrap_or_default();
    asked.keys().all(|name| known.contains(&name.as_str()))
}
