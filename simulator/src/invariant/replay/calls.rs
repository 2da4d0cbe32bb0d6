//! The replay of recorded requests: each is applied to the model, and its response is checked.

use std::collections::BTreeMap;

use reference_core::{
    asset::{Asset, Currency},
    mode::Mode,
    time::Timestamp,
};
use serde::Deserialize;

use super::{
    ModelReplay, Object, ObjectRef,
    faults::{self, FaultSet},
    request_fields::{RequestFields, read},
};
use crate::{
    invariant::{CODE_MIN, Invariant},
    model::{Account, RepeatKind, WalletModel, money},
    record::{BookId, RecordedCall},
    workload::Fault,
};

/// The response of `POST /sandbox/accounts`, with the keys by mode.
#[derive(Deserialize)]
struct OpenedAccountResponse {
    account: String,
    keys: BTreeMap<String, String>,
}

/// The response of `POST /sandbox/keys`.
#[derive(Deserialize)]
struct CreatedKeyResponse {
    key: KeyFields,
}

/// The fields of an API key: a new key has a secret, a listed one a hint with its last characters.
#[derive(Deserialize)]
struct KeyFields {
    id: String,
    account: String,
    mode: String,
    #[serde(default)]
    secret: String,
    #[serde(default)]
    hint: String,
}

/// The response of `GET /sandbox/keys`.
#[derive(Deserialize)]
struct KeyListResponse {
    keys: Vec<KeyFields>,
}

/// The response of `POST /sandbox/pay`.
#[derive(Deserialize)]
struct PayResponse {
    txid: String,
}

/// A request with an `Idempotency-Key`.
struct KeyedRequest {
    book: BookId,
    /// The method and the path.
    operation: String,
    /// The method, the path and the key, under which the first response is stored.
    scope: String,
    /// The query and the body. A request with the same scope, but other content, gets 409.
    content: Vec<u8>,
}

impl ModelReplay<'_> {
    /// Applies a request to the model and checks its response.
    pub(super) fn replay_call(&mut self, now: Timestamp, call: &RecordedCall) {
        if let Some(call) = self.api_call_of_owner(call) {
            self.is_response_checked = false;
            match self.expected_refusal(&call) {
                Some(refusal) => self.check_refusal(now, &call, refusal),
                None => {
                    self.apply_call(now, &call);
                    self.check_response(now, &call);
                }
            }
            return;
        }
        let is_api = call.is_api();
        if is_api {
            let is_authorized = self.is_key_valid(call);
            self.check_authentication(now, call, is_authorized);
            if call.status == 401 {
                self.check_response_format(now, call, None);
            }
            if !is_authorized || call.status == 401 {
                return;
            }
            // `judge_limits` checks the response to a request above the rate limit.
            let is_above_limit = self.limits.admit(now, call).is_some();
            self.check_response_format(now, call, Some(self.limits.remaining_requests(call)));
            if is_above_limit {
                return;
            }
            if let Some(refusal) = self.expected_refusal(call) {
                return self.check_refusal(now, call, refusal);
            }
        }
        if call.path == "/sandbox/keys" && call.method == "GET" {
            self.record_key_ids(call);
        }
        self.is_response_checked = false;
        if !matches!(call.method.as_str(), "GET" | "HEAD") {
            if let Some(keyed) = self.keyed_request(call) {
                match self.model.book(keyed.book).repeat_kind(now, &keyed.scope, &keyed.content) {
                    RepeatKind::First => self.check_first_response(now, call, keyed),
                    RepeatKind::Same(stored) => {
                        return self.check_replayed_response(now, call, &keyed, stored);
                    }
                    RepeatKind::Other => return self.check_key_conflict(now, call, &keyed),
                }
            }
            self.apply_call(now, call);
        }
        self.check_response(now, call);
        if !self.is_response_checked && is_api {
            *self.findings.unjudged.entry(call_pattern(call)).or_default() += 1;
        }
    }

    /// Returns the `/v1` request that is equivalent to a request of the account owner under
    /// `/sandbox/books/{account}/{mode}/`, with a key of that book; `None` for other requests.
    fn api_call_of_owner(&self, call: &RecordedCall) -> Option<RecordedCall> {
        let mut parts = call.path.strip_prefix("/sandbox/books/")?.splitn(3, '/');
        let book = self.account_number(parts.next()?).zip(Mode::parse(parts.next()?))?;
        let path = format!("/v1/{}", parts.next()?);
        let key =
            self.books_by_key.iter().find(|(key, id)| **id == book && !self.revoked_keys.contains(*key))?.0;
        Some(RecordedCall { path, bearer: Some(format!("Bearer {key}")), ..call.clone() })
    }

    /// Applies a request to the model, if it changes anything.
    fn apply_call(&mut self, now: Timestamp, call: &RecordedCall) {
        let fields: RequestFields = read(&call.body).unwrap_or_default();
        let parts: Vec<&str> = call.path.trim_matches('/').split('/').collect();
        match (call.method.as_str(), parts.as_slice()) {
            ("POST", ["v1", "charges"]) => self.replay_open_charge(now, call, &fields),
            ("POST", ["v1", "invoices"]) => self.replay_issue_invoice(now, call, &fields),
            ("POST", ["v1", "payment-links"]) => self.replay_create_link(now, call),
            (_, ["v1", "payment-links", code, rest @ ..]) => self.replay_change_link(now, code, rest, call),
            ("POST", ["sandbox", "endpoints", id, "test"]) => self.replay_test_delivery(now, id, call),
            ("POST", ["sandbox", "deliveries", id, "resend"]) => self.replay_resend(now, id, call),
            ("POST", ["v1" | "sandbox", _, code, action]) => match self.objects.get(*code).copied() {
                Some((book, Object::Charge(number))) => {
                    self.replay_charge_action(now, ObjectRef { book, number, code }, action, call, &fields);
                }
                Some((book, Object::Invoice(number))) => {
                    self.replay_invoice_action(now, ObjectRef { book, number, code }, action, call, &fields);
                }
                Some((book, Object::Link(number))) => match *action {
                    "view" if call.status == 200 => {
                        self.model.account_and_book_mut(book).1.links[number].views += 1
                    }
                    "choose" => self.replay_choose_link_coin(now, (book, number), call, &fields),
                    _ => {}
                },
                None if call.status == 200 => self.apply_sandbox_call(now, &parts[1..], call, fields),
                None => {}
            },
            ("PUT", ["sandbox", "wallets"]) => self.set_wallet(now, call, &fields),
            (_, ["sandbox", rest @ ..]) if call.status == 200 => {
                self.apply_sandbox_call(now, rest, call, fields)
            }
            _ => {}
        }
    }

    /// Applies a successful request under `/sandbox/`; `path` is the part after it.
    fn apply_sandbox_call(
        &mut self,
        now: Timestamp,
        path: &[&str],
        call: &RecordedCall,
        fields: RequestFields,
    ) {
        self.faults.record_call(now, path, call, &fields);
        self.replay_endpoint_change(path, call, &fields);
        match (call.method.as_str(), path) {
            ("POST", ["accounts"]) => {
                let Some(OpenedAccountResponse { account, keys }) = read(&call.response_body) else { return };
                let mut opened = Account::new(&account, &account, now);
                opened.change(&read(&call.body).unwrap_or_default());
                let keys = keys.into_iter().filter_map(|(mode, key)| Some((key, Mode::parse(&mode)?)));
                self.open_account(opened, keys);
            }
            ("PATCH", ["accounts", id]) => {
                if let Some(number) = self.account_number(id) {
                    self.model.accounts[number].change(&read(&call.body).unwrap_or_default());
                }
            }
            ("DELETE", ["wallets"]) => {
                if let Some((id, asset)) = self.named_wallet(&fields) {
                    self.model.account_and_book_mut(id).1.wallets.remove(asset);
                }
            }
            ("POST", ["keys"]) => {
                let Some(CreatedKeyResponse { key }) = read(&call.response_body) else { return };
                let book = self.named_book(&fields);
                self.keys_by_id.insert(key.id, key.secret.clone());
                self.books_by_key.extend(book.map(|book| (key.secret, book)));
            }
            ("DELETE", ["keys", id]) => self.revoked_keys.extend(self.keys_by_id.get(*id).cloned()),
            ("POST", ["rates"]) => self.set_rate(now, &fields),
            ("POST", ["pay"]) => self.record_payment(call, &fields),
            _ => {}
        }
    }

    /// Records the ids of listed keys. The keys that an account has from its start are known, but not their ids, which
    /// only the list contains. It shows the last characters of each key.
    fn record_key_ids(&mut self, call: &RecordedCall) {
        let Some(KeyListResponse { keys }) = read(&call.response_body) else { return };
        for KeyFields { id, hint, account, mode, .. } in keys {
            let listed_book = self.account_number(&account).zip(Mode::parse(&mode));
            let is_this_key =
                |(key, book): &(&String, &BookId)| Some(**book) == listed_book && key.ends_with(&hint);
            if let Some((key, _)) = self.books_by_key.iter().find(is_this_key) {
                self.keys_by_id.insert(id, key.clone());
            }
        }
    }

    /// Returns the book that a request names; by default, the test mode of the first account.
    pub(super) fn named_book(&self, fields: &RequestFields) -> Option<BookId> {
        let account = fields.account.as_deref().map_or(Some(0), |id| self.account_number(id));
        account.zip(fields.mode.as_deref().map_or(Some(Mode::Test), Mode::parse))
    }

    /// Returns the book and the coin that a request about a wallet names.
    fn named_wallet(&self, fields: &RequestFields) -> Option<(BookId, Asset)> {
        self.named_book(fields).zip(fields.asset.as_deref().and_then(Asset::parse))
    }

    /// Sets a wallet, and checks that it is refused exactly if another account or mode uses or used it.
    fn set_wallet(&mut self, now: Timestamp, call: &RecordedCall, fields: &RequestFields) {
        let Some((id, asset)) = self.named_wallet(fields) else { return };
        let wallet = match (&fields.key, &fields.addresses) {
            (Some(key), _) => WalletModel::Key { key: key.clone(), script: fields.script.clone() },
            (None, Some(list)) => WalletModel::List(list.clone()),
            (None, None) => return,
        };
        let has_deposit_address = |other: &BookId| match &wallet {
            WalletModel::Key { .. } => false,
            WalletModel::List(list) => self.ids[other].addresses.iter().any(|address| list.contains(address)),
        };
        let is_used_elsewhere = self.model.books().any(|(other, book)| {
            other != id && (book.wallets.shares_with(&wallet) || has_deposit_address(&other))
        });
        let is_accepted = call.status == 200;
        // A refusal is judged only for lists of Solana addresses, recognised by their format: other wallets can be
        // refused for other reasons.
        let has_solana_format = |entry: &String| {
            (32..=44).contains(&entry.len()) && entry.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        let is_refusal_judged = match &wallet {
            WalletModel::Key { .. } => false,
            WalletModel::List(list) => !list.is_empty() && list.iter().all(has_solana_format),
        };
        self.findings.check(Invariant::Conservation, Some(now), || {
            let shape = match is_used_elsewhere {
                true => "a wallet is accepted although another account or mode uses or used it",
                false => "a wallet is refused although no other account or mode uses or used it",
            };
            (is_used_elsewhere == is_accepted && (is_accepted || is_refusal_judged))
                .then(|| (shape.to_owned(), format!("{} {asset} at {now}", id.1)))
        });
        if is_accepted {
            self.model.account_and_book_mut(id).1.wallets.set(asset, wallet);
        }
    }

    /// Sets or removes the rate of a coin in a currency.
    fn set_rate(&mut self, now: Timestamp, fields: &RequestFields) {
        let asset = fields.asset.as_deref().and_then(Asset::parse);
        let Some(pair) = asset.zip(fields.currency.as_deref().and_then(Currency::parse)) else { return };
        let rate = fields.rate.as_deref().and_then(|text| money::parse_units(text, money::RATE_DECIMALS));
        match self.model.rates.insert(pair, rate.and_then(|rate| u64::try_from(rate).ok())) {
            _ if fields.rate.is_none() => self.faults.record_world_fault(now, Fault::RateGone),
            Some(_) => self.faults.record_world_fault(now, Fault::RateMoves),
            // Setting the first rate of a coin is not a fault.
            None => {}
        }
    }

    /// Records the faults that a customer's payment introduces.
    fn record_payment(&mut self, call: &RecordedCall, fields: &RequestFields) {
        let Some(PayResponse { txid }) = read(&call.response_body) else { return };
        self.faults.add_transaction_faults(&txid, faults::payment_faults(fields));
        let charge = fields.charge.as_ref().and_then(|code| self.objects.get(code).copied());
        let Some((id, Object::Charge(number))) = charge else { return };
        let charge_asset = self.model.book(id).charges[number].terms.asset.code();
        if fields.asset.as_deref().is_some_and(|asset| asset != charge_asset) {
            let faults = self.charge_faults.entry((id, number)).or_default();
            *faults = faults.union(FaultSet::single(Fault::WrongCoin));
        }
    }

    /// Returns a request with an `Idempotency-Key` and a known API key; `None` for other requests.
    fn keyed_request(&self, call: &RecordedCall) -> Option<KeyedRequest> {
        let (book, key) = self.calling_book(call).zip(call.idempotency_key.as_ref())?;
        let operation = format!("{} {}", call.method, call.path);
        let content = [call.query.as_deref().unwrap_or_default().as_bytes(), b"\n", &call.body].concat();
        Some(KeyedRequest { book, scope: format!("{operation} {key}"), operation, content })
    }

    /// Checks that the response to the first request with a key is not marked as replayed. Stores a success.
    fn check_first_response(&mut self, now: Timestamp, call: &RecordedCall, keyed: KeyedRequest) {
        let KeyedRequest { book, operation, scope, content } = keyed;
        if (200..300).contains(&call.status) {
            let book = self.model.account_and_book_mut(book).1;
            book.store_response(now, scope, content, self.stored_responses.len());
            self.stored_responses.push((call.status, call.response_body.clone()));
        }
        self.findings.check(Invariant::Once, Some(now), || {
            let shape = "the response to a first request is marked as replayed";
            call.is_replayed().then(|| (shape.to_owned(), format!("{operation} at {now}")))
        });
    }

    /// Checks that a repeated request gets the stored response with the number `stored`.
    fn check_replayed_response(
        &mut self,
        now: Timestamp,
        call: &RecordedCall,
        keyed: &KeyedRequest,
        stored: usize,
    ) {
        let (status, body) = &self.stored_responses[stored];
        let is_same = call.is_replayed() && (*status, body) == (call.status, &call.response_body);
        self.findings.check(Invariant::Once, Some(now), || {
            let details = || format!("{} at {now}, status {}", keyed.operation, call.status);
            (!is_same).then(|| ("a repeated request gets another response".to_owned(), details()))
        });
    }

    /// Checks that a request with the key of another request gets 409.
    fn check_key_conflict(&mut self, now: Timestamp, call: &RecordedCall, keyed: &KeyedRequest) {
        let is_refused = call.status == 409 && !call.is_replayed();
        self.findings.check(Invariant::Once, Some(now), || {
            let details = || format!("{} at {now}, status {}", keyed.operation, call.status);
            (!is_refused).then(|| ("an idempotency key of another request is accepted".to_owned(), details()))
        });
    }
}

/// Returns the method, the path without ids, and the status of a call: `POST /v1/charges/{id}/cancel 200`.
fn call_pattern(call: &RecordedCall) -> String {
    let is_id = |part: &&str| part.len() >= CODE_MIN && part.bytes().any(|b| b.is_ascii_digit());
    let parts: Vec<&str> =
        call.path.split('/').map(|part| if is_id(&part) { "{id}" } else { part }).collect();
    format!("{} {} {}", call.method, parts.join("/"), call.status)
}
