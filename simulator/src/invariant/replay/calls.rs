//! The replay of recorded calls: each is repeated in the model, and its response compared.

use std::collections::BTreeMap;

use reference_core::{
    asset::{Asset, Currency},
    mode::Mode,
    time::Timestamp,
};
use serde::Deserialize;

use super::{
    ModelReplay, Object,
    faults::{self, FaultSet},
    request_fields::{RequestFields, read},
};
use crate::{
    invariant::Invariant,
    model::{Account, RepeatKind, WalletModel, money},
    record::{BookId, RecordedCall},
    workload::Fault,
};

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

/// Returns the bytes that idempotency compares: the query and the body.
fn request_of(call: &RecordedCall) -> Vec<u8> {
    [call.query.as_deref().unwrap_or_default().as_bytes(), b"\n", &call.body].concat()
}

impl ModelReplay<'_> {
    /// Repeats a call in the model and checks its response.
    pub(super) fn call(&mut self, at: Timestamp, call: &RecordedCall) {
        if let Some(call) = self.api_call_of_owner(call) {
            self.is_judged = false;
            if !self.is_of_other_book(at, &call) && !self.is_malformed(at, &call) {
                self.act(at, &call);
                self.judge_answer(at, &call);
            }
            return;
        }
        let is_api = call.is_api();
        if !self.judge_key(at, call) {
            if is_api && call.status == 401 {
                self.judge_form(at, call, None);
            }
            return;
        }
        if is_api {
            let is_admitted = self.limits.admit(at, call).is_none();
            self.judge_form(at, call, Some(self.limits.remaining_requests(call)));
            if !is_admitted || self.is_of_other_book(at, call) || self.is_malformed(at, call) {
                return;
            }
        }
        if call.path == "/sandbox/keys" && call.method == "GET" {
            self.learn_keys(call);
        }
        self.is_judged = false;
        if !matches!(call.method.as_str(), "GET" | "HEAD") {
            if self.is_repeat(at, call) {
                return;
            }
            self.act(at, call);
        }
        self.judge_answer(at, call);
        if !self.is_judged && is_api {
            *self.findings.unjudged.entry(kind_of(call)).or_default() += 1;
        }
    }

    /// Returns the request to the API that has the same effect and response as one of the account owner in the dashboard,
    /// under `/sandbox/books/{account}/{mode}/`. Its key is one of that book.
    fn api_call_of_owner(&self, call: &RecordedCall) -> Option<RecordedCall> {
        let mut parts = call.path.strip_prefix("/sandbox/books/")?.splitn(3, '/');
        let book = self.account(parts.next()?).zip(Mode::parse(parts.next()?))?;
        let path = format!("/v1/{}", parts.next()?);
        let key = self.bearers.iter().find(|(key, of)| **of == book && !self.revoked.contains(*key))?.0;
        Some(RecordedCall { path, bearer: Some(format!("Bearer {key}")), ..call.clone() })
    }

    fn act(&mut self, at: Timestamp, call: &RecordedCall) {
        let fields: RequestFields = read(&call.body).unwrap_or_default();
        let parts: Vec<&str> = call.path.trim_matches('/').split('/').collect();
        match (call.method.as_str(), parts.as_slice()) {
            ("POST", ["v1", "charges"]) => self.open(at, call, &fields),
            ("POST", ["v1", "invoices"]) => self.issue(at, call, &fields),
            ("POST", ["v1", "payment-links"]) => self.make_link(at, call),
            (_, ["v1", "payment-links", code, rest @ ..]) => self.change_link(at, code, rest, call),
            ("POST", ["sandbox", "endpoints", id, "test"]) => self.send_test(at, id, call),
            ("POST", ["sandbox", "deliveries", id, "resend"]) => self.resend(at, id, call),
            ("POST", ["v1" | "sandbox", _, code, act]) => match self.objects.get(*code).copied() {
                Some((id, Object::Charge(no))) => self.act_on_charge(at, (id, no, code), act, call, &fields),
                Some((id, Object::Invoice(no))) => {
                    self.act_on_invoice(at, (id, no, code), act, call, &fields)
                }
                Some((id, Object::Link(no))) => match *act {
                    "view" if call.status == 200 => {
                        self.model.account_and_book_mut(id).1.links[no].views += 1
                    }
                    "choose" => self.choose_by_link(at, (id, no), call, &fields),
                    _ => {}
                },
                None if call.status == 200 => self.sandbox_call(at, &parts[1..], call, fields),
                None => {}
            },
            ("PUT", ["sandbox", "wallets"]) => self.set_wallet(at, call, &fields),
            (_, ["sandbox", rest @ ..]) if call.status == 200 => self.sandbox_call(at, rest, call, fields),
            _ => {}
        }
    }

    /// Applies a successful sandbox call.
    fn sandbox_call(&mut self, at: Timestamp, path: &[&str], call: &RecordedCall, fields: RequestFields) {
        self.faults.record_call(at, path, call, &fields);
        self.call_about_deliveries(path, call, &fields);
        match (call.method.as_str(), path) {
            ("POST", ["accounts"]) => {
                let Some(AccountAnswer { account, keys }) = read(&call.answer) else { return };
                let mut terms = Account::new(&account, &account, at);
                terms.change(&read(&call.body).unwrap_or_default());
                let keys = keys.into_iter().filter_map(|(mode, key)| Some((key, Mode::parse(&mode)?)));
                self.open_account(terms, keys);
            }
            ("PATCH", ["accounts", id]) => {
                if let Some(no) = self.account(id) {
                    self.model.accounts[no].change(&read(&call.body).unwrap_or_default());
                }
            }
            ("DELETE", ["wallets"]) => {
                if let Some((id, asset)) = self.named_wallet(&fields) {
                    self.model.account_and_book_mut(id).1.wallets.remove(asset);
                }
            }
            ("POST", ["keys"]) => {
                let Some(KeyCreated { key }) = read(&call.answer) else { return };
                let book = self.named_book(&fields);
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

    /// Returns the book that a request names; by default, the test mode of the first account.
    pub(super) fn named_book(&self, fields: &RequestFields) -> Option<BookId> {
        let account = fields.account.as_deref().map_or(Some(0), |id| self.account(id));
        account.zip(fields.mode.as_deref().map_or(Some(Mode::Test), Mode::parse))
    }

    fn named_wallet(&self, fields: &RequestFields) -> Option<(BookId, Asset)> {
        self.named_book(fields).zip(fields.asset.as_deref().and_then(Asset::parse))
    }

    /// Sets a wallet, which must not be one of another account or mode.
    fn set_wallet(&mut self, at: Timestamp, call: &RecordedCall, fields: &RequestFields) {
        let Some((id, asset)) = self.named_wallet(fields) else { return };
        let wallet = match (&fields.key, &fields.addresses) {
            (Some(key), _) => WalletModel::Key { key: key.clone(), script: fields.script.clone() },
            (None, Some(list)) => WalletModel::List(list.clone()),
            (None, None) => return,
        };
        let has_charge = |other: &BookId| match &wallet {
            WalletModel::Key { .. } => false,
            WalletModel::List(list) => self.ids[other].addresses.iter().any(|address| list.contains(address)),
        };
        let is_elsewhere = self
            .model
            .books()
            .any(|(other, book)| other != id && (book.wallets.share(&wallet) || has_charge(&other)));
        let is_taken = call.status == 200;
        // Keys can be refused for other reasons, and so can strings that are not addresses.
        let is_address = |text: &String| {
            (32..=44).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        let is_faultless = match &wallet {
            WalletModel::Key { .. } => false,
            WalletModel::List(list) => !list.is_empty() && list.iter().all(is_address),
        };
        self.findings.check(Invariant::Conservation, Some(at), || {
            let shape = match is_elsewhere {
                true => "a wallet is accepted that another account or mode has or had",
                false => "a wallet is refused that no other account or mode has or had",
            };
            (is_elsewhere == is_taken && (is_taken || is_faultless))
                .then(|| (shape.to_owned(), format!("{} {asset} at {at}", id.1)))
        });
        if is_taken {
            self.model.account_and_book_mut(id).1.wallets.set(asset, wallet);
        }
    }

    fn set_rate(&mut self, at: Timestamp, fields: &RequestFields) {
        let asset = fields.asset.as_deref().and_then(Asset::parse);
        let Some(pair) = asset.zip(fields.currency.as_deref().and_then(Currency::parse)) else { return };
        let rate = fields.rate.as_deref().and_then(|text| money::parse_units(text, 8));
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
            let all = self.charge_faults.entry((id, no)).or_default();
            *all = all.with(FaultSet::single(Fault::WrongCoin));
        }
    }

    /// Checks that a key of another account or mode gets 404.
    fn is_of_other_book(&mut self, at: Timestamp, call: &RecordedCall) -> bool {
        let mut parts = call.path.trim_matches('/').split('/');
        let (Some("v1"), Some(_), Some(code)) = (parts.next(), parts.next(), parts.next()) else {
            return false;
        };
        let owner = self.objects.get(code).map(|(owner, _)| *owner);
        let Some((owner, asks)) = owner.zip(self.calling_book(call)).filter(|(owner, asks)| owner != asks)
        else {
            return false;
        };
        self.findings.check(Invariant::ModesApart, Some(at), || {
            (call.status != 404).then(|| {
                let owner_text = if owner.0 == asks.0 { "of the other mode" } else { "of another account" };
                let shape = format!("an act on an object {owner_text} is answered {}, not 404", call.status);
                (shape, format!("{} {} of {} by a {} key", call.method, call.path, owner.1, asks.1))
            })
        });
        true
    }

    /// Returns `true` if the request, or only its key, was used before: then it changes nothing.
    fn is_repeat(&mut self, at: Timestamp, call: &RecordedCall) -> bool {
        let Some((id, key)) = self.calling_book(call).zip(call.idempotency_key.as_ref()) else {
            return false;
        };
        let operation = format!("{} {}", call.method, call.path);
        let (scope, about) = (format!("{operation} {key}"), format!("{operation} at {at}"));
        let (book, request) = (self.model.account_and_book_mut(id).1, request_of(call));
        let given = match book.repeat(at, &scope, &request) {
            RepeatKind::First => {
                if (200..300).contains(&call.status) {
                    book.store_response(at, scope, request, self.answers.len());
                    self.answers.push((call.status, call.answer.clone()));
                }
                self.findings.check(Invariant::Once, Some(at), || {
                    call.is_replayed().then(|| ("a first request is marked as replayed".to_owned(), about))
                });
                return false;
            }
            RepeatKind::Same(answer) => Some(&self.answers[answer]),
            RepeatKind::Other => None,
        };
        let (fits, shape) = match given {
            Some((status, answer)) => (
                call.is_replayed() && (*status, answer) == (call.status, &call.answer),
                "a repeated request gets another response",
            ),
            None => (
                call.status == 409 && !call.is_replayed(),
                "an idempotency key of another request is accepted",
            ),
        };
        self.findings.check(Invariant::Once, Some(at), || {
            (!fits).then(|| (shape.to_owned(), format!("{about}, answered {}", call.status)))
        });
        true
    }
}

/// Returns the method, the path without ids, and the status of a call.
fn kind_of(call: &RecordedCall) -> String {
    let is_id = |part: &&str| part.len() >= 12 && part.bytes().any(|b| b.is_ascii_digit());
    let parts: Vec<&str> =
        call.path.split('/').map(|part| if is_id(&part) { "{id}" } else { part }).collect();
    format!("{} {} {}", call.method, parts.join("/"), call.status)
}
