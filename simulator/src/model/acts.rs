//! What people do, as the model hears of it: the calls that were made, and how they were answered.

use std::collections::BTreeMap;

use reference_core::{
    asset::Asset,
    mode::Mode,
    time::{Span, Timestamp},
};
use serde::Deserialize;

use super::{Invoice, InvoiceStatus, Model, Owned, Troubles, charge::Charge, link::Price, money};
use crate::{
    law::{ChargeSeen, Law},
    witness::{Call, Whose},
    workload::Fault,
};

#[derive(Deserialize)]
struct Made {
    data: Named,
}

#[derive(Deserialize)]
struct Named {
    id: String,
}

#[derive(Deserialize)]
struct Chosen {
    charge: String,
}

#[derive(Deserialize)]
struct Opened {
    account: String,
    keys: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Key {
    key: KeyMade,
}

#[derive(Deserialize)]
struct KeyMade {
    account: String,
    mode: String,
    secret: String,
}

/// What bodies of requests say, as far as it matters here.
#[derive(Default, Deserialize)]
pub(super) struct Asked {
    pub(super) asset: Option<String>,
    pub(super) currency: Option<String>,
    pub(super) accepted_assets: Option<Vec<String>>,
    pub(super) max_payments: Option<usize>,
    payment_link: Option<String>,
    description: Option<String>,
    metadata: Option<serde_json::Value>,
    mode: Option<String>,
    pub(super) amount: Option<String>,
    rate: Option<String>,
    txid: Option<String>,
    customer_email: Option<String>,
    send_email: Option<bool>,
    notices: Option<String>,
    empty: Option<u32>,
    full: Option<u32>,
    fee: Option<String>,
    outputs: Option<u32>,
    unseen: Option<bool>,
    charge: Option<String>,
    name: Option<String>,
    state: Option<String>,
    #[serde(default)]
    answers: Vec<String>,
    underpayment_tolerance: Option<String>,
    overpayment_threshold: Option<String>,
    members: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Sent {
    txid: String,
}

/// What accounts begin with, in hundredths of a percent.
pub(crate) const TOLERANCE: u32 = 100;
/// The same for what is overpaid.
pub(crate) const THRESHOLD: u32 = 300;
const HOUR: Span = Span::hours(1);
/// E-mails an hour, per account and mode.
const MAILS_AN_HOUR: usize = 100;

fn read<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}

/// Hundredths of a percent.
fn percent(text: &str) -> Option<u32> {
    money::read(text, 2).and_then(|n| u32::try_from(n).ok())
}

impl Model<'_> {
    /// A call: what it must have done, and what it must have been answered.
    pub(super) fn act(&mut self, at: Timestamp, call: &Call) {
        if call.status == 401 || (call.path.starts_with("/v1/") && self.is_limited(call)) {
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
            ("POST", ["v1", "charges", code, "cancel"]) => self.cancel(at, code, call, 409),
            ("POST", ["sandbox", "charges", code, "cancel"]) => self.cancel(at, code, call, 409),
            ("POST", ["v1", "charges", code, "refunds"]) => self.refund(at, code, call, &asked),
            ("POST", ["sandbox", "charges", code, "accept"]) => self.accept(at, code, call, &asked),
            ("POST", ["v1" | "sandbox", "invoices", code, "send"]) => self.send(at, code, call),
            ("POST", ["v1" | "sandbox", "invoices", code, "void"]) => self.void(at, code, call),
            ("POST", ["sandbox", "invoices", code, "view"]) => self.view(at, code, call),
            ("POST", ["sandbox", "invoices", code, "choose"]) => self.choose(at, code, call, &asked),
            ("POST", ["v1", "payment-links"]) => self.make_link(at, call, &asked),
            (_, ["v1", "payment-links", code, ..]) if call.status < 300 => self.change_link(code),
            ("POST", ["sandbox", "links", code, "choose"]) => self.choose_link(at, code, call, &asked),
            ("POST", ["sandbox", "accounts"]) if call.status == 200 => self.open_account(call, &asked),
            ("POST", ["sandbox", "keys"]) => {
                if let Some(Key { key }) = read(&call.answer) {
                    let whose = self.account(&key.account).zip(Mode::parse(&key.mode));
                    self.bearers.extend(whose.map(|whose| (key.secret, whose)));
                }
            }
            ("POST", ["sandbox", "rates"]) if call.status == 200 => {
                let pair = (asked.asset.unwrap_or_default(), asked.currency.unwrap_or_default());
                let is_gone = asked.rate.is_none();
                match self.rates.insert(pair, asked.rate) {
                    _ if is_gone => self.weather.strike_everywhere(at, Fault::RateGone),
                    Some(_) => self.weather.strike_everywhere(at, Fault::RateMoves),
                    // The first rate of a coin is no trouble.
                    None => {}
                }
            }
            ("PATCH", ["sandbox", "accounts", id]) if call.status == 200 => {
                self.weather.strike_everywhere(at, Fault::Settings);
                let Some(account) = self.accounts.iter_mut().find(|account| account.id == *id) else {
                    return;
                };
                let or =
                    |text: Option<String>, before| text.and_then(|text| percent(&text)).unwrap_or(before);
                account.tolerance = or(asked.underpayment_tolerance, account.tolerance);
                account.threshold = or(asked.overpayment_threshold, account.threshold);
                account.members = asked.members.unwrap_or_else(|| std::mem::take(&mut account.members));
            }
            (_, ["sandbox", rest @ ..]) if call.status == 200 => self.note_weather(at, rest, call, &asked),
            _ => {}
        }
    }

    /// An act by a key of another account or of the other mode finds nothing.
    fn is_of_other_book(&mut self, at: Timestamp, call: &Call) -> bool {
        let mut parts = call.path.trim_matches('/').split('/');
        let (Some("v1"), Some(_), Some(code)) = (parts.next(), parts.next(), parts.next()) else {
            return false;
        };
        let Some((owner, asks)) =
            self.owner(code).zip(self.asker(call)).filter(|(owner, asks)| owner != asks)
        else {
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

    /// Another account, with what accounts begin with.
    fn open_account(&mut self, call: &Call, asked: &Asked) {
        let Some(Opened { account, keys }) = read(&call.answer) else { return };
        let no = self.accounts.len();
        let or = |text: &Option<String>, usual| text.as_deref().and_then(percent).unwrap_or(usual);
        self.accounts.push(super::Account {
            id: account,
            tolerance: or(&asked.underpayment_tolerance, TOLERANCE),
            threshold: or(&asked.overpayment_threshold, THRESHOLD),
            members: asked.members.clone().unwrap_or_default(),
        });
        let keys = keys.into_iter().filter_map(|(mode, key)| Some((key, (no, Mode::parse(&mode)?))));
        self.bearers.extend(keys);
    }

    /// Whether the limit refused it; another law judges that.
    fn is_limited(&self, call: &Call) -> bool {
        call.status == 429 && call.retry_after.is_some() && !call.path.ends_with("/send")
    }

    fn note_weather(&mut self, at: Timestamp, path: &[&str], call: &Call, asked: &Asked) {
        let chain = asked
            .asset
            .as_deref()
            .and_then(Asset::parse)
            .map(|asset| (asked.mode.as_deref().and_then(Mode::parse).unwrap_or(Mode::Live), asset));
        let txid = asked.txid.as_deref().unwrap_or_default();
        match (path, chain) {
            (["pay"], _) => {
                let Some(Sent { txid }) = read(&call.answer) else { return };
                match asked.fee.as_deref() {
                    Some("low") => self.weather.touch(&txid, Fault::LowFee),
                    Some("stuck") => self.weather.touch(&txid, Fault::Stuck),
                    _ => {}
                }
                if asked.unseen == Some(true) {
                    self.weather.touch(&txid, Fault::Unseen);
                }
                if asked.outputs.is_some_and(|outputs| outputs > 1) {
                    self.weather.touch(&txid, Fault::Outputs);
                }
                let Some(owned) = asked.charge.as_ref().and_then(|code| self.charges.get_mut(code)) else {
                    return;
                };
                let own = owned.asset.code();
                if asked.asset.as_deref().is_some_and(|asset| asset != own) {
                    owned.troubles = owned.troubles.with(Troubles::only(Fault::WrongCoin));
                }
            }
            (["double-spend"], _) => self.weather.touch(txid, Fault::DoubleSpend),
            (["replace"], _) => self.weather.touch(txid, Fault::Replace),
            (["drop"], _) => self.weather.touch(txid, Fault::Drop),
            (["rebroadcast"], _) => self.weather.touch(txid, Fault::Drop),
            (["reorg"], Some(chain)) => self.weather.strike(at, chain, Fault::Reorg),
            (["stall"], Some(chain)) => self.weather.strike(at, chain, Fault::Stall),
            (["congest"], Some(chain)) => {
                let is_on = asked.empty.unwrap_or(0) + asked.full.unwrap_or(0) > 0;
                self.weather.last(chain, Fault::Congestion, is_on);
            }
            (["watchers"], Some(chain)) => {
                self.weather.strike(at, chain, Fault::Watcher);
                self.weather.last(chain, Fault::Watcher, asked.notices.as_deref() != Some("up"));
            }
            (["merchants"], _) => {
                let words = asked.answers.iter().map(String::as_str).chain(asked.state.as_deref());
                let troubles = words.fold(Troubles::default(), |all, word| match word {
                    "up" => all,
                    "lost" => all.with(Troubles::only(Fault::AnswerLost)),
                    "twice" => all.with(Troubles::only(Fault::DoublePost)),
                    "lagging" => all.with(Troubles::only(Fault::Lag)),
                    "down" | "slow" | "private" | "redirect" => all.with(Troubles::only(Fault::Outage)),
                    _ => all.with(Troubles::only(Fault::BadAnswer)),
                });
                self.weather.merchant(asked.name.as_deref().unwrap_or_default(), troubles);
            }
            (["endpoints", _, "rotate"], _) => self.weather.strike_everywhere(at, Fault::Rotation),
            (["endpoints", ..], _) => self.weather.strike_everywhere(at, Fault::EndpointChange),
            (["deliveries", ..], _) => self.weather.strike_everywhere(at, Fault::Resend),
            _ => {}
        }
    }

    fn open(&mut self, at: Timestamp, call: &Call, asked: &Asked) {
        let Some(whose) = self.asker(call) else { return };
        let Some(price) = self.judge_opening(at, whose, asked.payment_link.as_deref(), call, asked) else {
            return;
        };
        if call.status == 201
            && let Some(made) = read::<Made>(&call.answer)
        {
            self.begin(at, &made.data.id, Some(price));
            self.check_texts(at, &made.data.id, asked);
        }
    }

    /// A customer opens a charge on the page of a link.
    fn choose_link(&mut self, at: Timestamp, code: &str, call: &Call, asked: &Asked) {
        let whose = self.links.get(code).map(|link| link.whose());
        let Some(price) = whose.and_then(|whose| self.judge_opening(at, whose, Some(code), call, asked))
        else {
            return;
        };
        if let Some(chosen) = read::<Chosen>(&call.answer).filter(|_| call.status == 200) {
            self.begin(at, &chosen.charge, Some(price));
        }
    }

    /// What a charge that was asked for must cost; nothing if the request must be refused, or if nobody can say.
    fn judge_opening(
        &mut self,
        at: Timestamp,
        whose: Whose,
        link: Option<&str>,
        call: &Call,
        asked: &Asked,
    ) -> Option<Price> {
        let good = if link.is_some() && call.path.starts_with("/sandbox") { 200 } else { 201 };
        let price = match self.price(whose, link, asked) {
            Ok(price) => price,
            Err(refusal) => {
                if link.is_some() {
                    self.must_answer(at, "open by a link", "", refusal, call.status);
                }
                return None;
            }
        };
        let currency = price.currency.clone().unwrap_or_default();
        let pair = (asked.asset.clone().unwrap_or_default(), currency);
        if let Some(rate) = self.rates.get(&pair) {
            let expected = if rate.is_some() { good } else { 503 };
            if [good, 409, 503].contains(&call.status) {
                self.must_answer(at, "open", "", expected, call.status);
            }
        }
        Some(price)
    }

    /// What a merchant writes on a charge comes back as it was written.
    fn check_texts(&mut self, at: Timestamp, code: &str, asked: &Asked) {
        let Some((_, seen)) = self.shown.charge(code) else { return };
        if let Some(description) = &asked.description {
            self.findings.check(Law::SameObject, Some(at), || {
                (seen.description.as_ref() != Some(description))
                    .then(|| ("a description is another than was written".to_owned(), code.to_owned()))
            });
        }
        if let Some(metadata) = &asked.metadata {
            self.findings.check(Law::SameObject, Some(at), || {
                (seen.metadata != *metadata)
                    .then(|| ("metadata are others than were written".to_owned(), code.to_owned()))
            });
        }
    }

    /// A charge begins. What never changes of it is read where it is shown.
    fn begin(&mut self, at: Timestamp, code: &str, price: Option<Price>) {
        if self.charges.contains_key(code) {
            return;
        }
        let Some(((account, mode), seen)) = self.shown.charge(code) else {
            if self.shown.books.len() < Mode::ALL.len() * self.accounts.len() {
                // An account that nobody looks at.
                return;
            }
            self.findings.check(Law::Once, Some(at), || {
                Some((
                    "a charge that was opened is not in the list".to_owned(),
                    format!("{code}, opened at {at}"),
                ))
            });
            return;
        };
        let Some(asset) = Asset::parse(&seen.asset) else { return };
        self.check_terms(at, seen, asset);
        if let Some(price) = price {
            self.check_price(at, seen, &price);
        }
        let decimals = asset.facts().decimals;
        let due = money::read(&seen.asset_amount, decimals).unwrap_or(0);
        let Some(terms) = self.accounts.get(account) else { return };
        let bounds = (terms.tolerance, terms.threshold);
        let charge = Charge::open(at, due, bounds, asset.required_confirmations(mode));
        self.addresses.insert((mode, asset, &seen.deposit_address), code.to_owned());
        self.ends.insert((charge.end, self.charges.len(), code.to_owned()));
        let (invoice, link) = (seen.invoice.clone(), seen.payment_link.clone());
        let owned = Owned { account, mode, asset, charge, invoice, link, troubles: Troubles::default() };
        self.charges.insert(code.to_owned(), owned);
        self.event_of_charge(at, code, "charge.created", None);
    }

    fn check_price(&mut self, at: Timestamp, seen: &ChargeSeen, price: &Price) {
        let is_same = price.amount.is_none_or(|cents| money::read(&seen.fiat_amount, 2) == Some(cents))
            && price.currency.as_ref().is_none_or(|currency| *currency == seen.fiat_currency);
        self.findings.check(Law::Tolerance, Some(at), || {
            (!is_same).then(|| {
                let what = format!("{}: {} {}", seen.code, seen.fiat_amount, seen.fiat_currency);
                ("a charge costs another price than was asked for".to_owned(), what)
            })
        });
        self.findings.check(Law::SameObject, Some(at), || {
            (price.link != seen.payment_link)
                .then(|| ("a charge names another payment link".to_owned(), seen.code.clone()))
        });
    }

    fn check_terms(&mut self, at: Timestamp, seen: &ChargeSeen, asset: Asset) {
        let code = &seen.code;
        let rate = money::read(&seen.exchange_rate, 8);
        let cents = money::read(&seen.fiat_amount, 2);
        let shown = money::read(&seen.asset_amount, asset.facts().decimals);
        let worked_out = rate.zip(cents).and_then(|(rate, cents)| {
            Some(money::due(u64::try_from(cents).ok()?, u64::try_from(rate).ok()?, asset))
        });
        self.findings.check(Law::Tolerance, Some(at), || {
            (worked_out.is_none() || worked_out != shown).then(|| {
                let expected =
                    worked_out.map_or_else(|| "?".to_owned(), |units| money::written(units, asset));
                let what = format!("{code}: expected {expected}, got {}", seen.asset_amount);
                ("what is due is not the price by the rate, rounded up".to_owned(), what)
            })
        });
        let pair = (seen.asset.clone(), seen.fiat_currency.clone());
        if let Some(Some(current)) = self.rates.get(&pair) {
            let current = money::read(current, 8);
            self.findings.check(Law::Tolerance, Some(at), || {
                (current != rate)
                    .then(|| ("the rate is not that of the moment".to_owned(), format!("{code} at {at}")))
            });
        }
        let (opened, end) = (at.to_string(), at.plus(super::LOCK).to_string());
        self.findings.same(Law::Order, "created_at of a charge", code, &opened, &seen.created_at);
        self.findings.same(Law::LockEnd, "expires_at of a charge", code, &end, &seen.expires_at);
    }

    fn cancel(&mut self, at: Timestamp, code: &str, call: &Call, refused: u16) {
        let Some(owned) = self.charges.get_mut(code) else { return };
        let may = owned.charge.cancel();
        self.must_answer(at, "cancel", code, if may { 200 } else { refused }, call.status);
        if may {
            self.event_of_charge(at, code, "charge.canceled", None);
        }
    }

    fn refund(&mut self, at: Timestamp, code: &str, call: &Call, asked: &Asked) {
        let Some(owned) = self.charges.get_mut(code) else { return };
        let decimals = owned.asset.facts().decimals;
        let units = asked.amount.as_deref().and_then(|text| money::read(text, decimals));
        let may = units.is_some_and(|units| owned.charge.refund(units));
        let expected = if may { 201 } else { 422 };
        self.findings.check(Law::Conservation, Some(at), || {
            (expected != call.status).then(|| {
                let shape = format!("refund is answered {}, not {expected}", call.status);
                (shape, format!("{code} at {at}, {}", asked.amount.as_deref().unwrap_or("nothing")))
            })
        });
        if may {
            self.event_of_charge(at, code, "charge.refunded", units.map(|units| (String::new(), units)));
        }
    }

    fn accept(&mut self, at: Timestamp, code: &str, call: &Call, asked: &Asked) {
        let Some(owned) = self.charges.get_mut(code) else { return };
        let tales = owned.charge.take_late(asked.txid.as_deref());
        let expected = if tales.is_some() { 200 } else { 409 };
        self.findings.check(Law::LateMoney, Some(at), || {
            (expected != call.status).then(|| {
                let shape = format!("accept is answered {}, not {expected}", call.status);
                (shape, format!("{code} at {at}"))
            })
        });
        self.tell(at, code, tales.unwrap_or_default());
    }

    fn issue(&mut self, at: Timestamp, call: &Call, asked: &Asked) {
        let Some(Made { data }) = read(&call.answer).filter(|_| call.status == 201) else { return };
        if self.invoices.contains_key(&data.id) {
            return;
        }
        let Some(whose) = self.asker(call) else { return };
        let invoice = Invoice::issue(asked.customer_email.clone());
        self.invoices.insert(data.id.clone(), (whose, invoice));
        self.event_of_invoice(at, &data.id, "invoice.created");
        if asked.send_email == Some(true) {
            self.mail(at, &data.id);
        }
    }

    fn send(&mut self, at: Timestamp, code: &str, call: &Call) {
        let Some((whose, invoice)) = self.invoices.get(code) else { return };
        let members = &self.accounts[whose.0].members;
        let is_member = |to: &String| members.iter().any(|member| member.eq_ignore_ascii_case(to));
        let has_reader = invoice.reader.as_ref().is_some_and(|to| whose.1 == Mode::Live || is_member(to));
        let recent = |mails: &Vec<Timestamp>| mails.iter().filter(|sent| at.since(**sent) < HOUR).count();
        let is_full = self.mails.get(whose).is_some_and(|mails| recent(mails) >= MAILS_AN_HOUR);
        let refusal = invoice.may_send(at, has_reader).or(is_full.then_some(429));
        self.must_answer(at, "send", code, refusal.unwrap_or(200), call.status);
        if refusal.is_none() {
            self.mail(at, code);
        }
    }

    fn mail(&mut self, at: Timestamp, code: &str) {
        let (whose, invoice) = self.invoices.get_mut(code).expect("an invoice that is known");
        invoice.send(at);
        self.mails.entry(*whose).or_default().push(at);
        self.event_of_invoice(at, code, "invoice.sent");
    }

    fn view(&mut self, at: Timestamp, code: &str, call: &Call) {
        let Some((_, invoice)) = self.invoices.get_mut(code) else { return };
        let first = invoice.view();
        self.must_answer(at, "view", code, 200, call.status);
        if first {
            self.event_of_invoice(at, code, "invoice.viewed");
        }
    }

    /// The charge of an invoice that waits, if there is one.
    fn waiting_charge(&self, invoice: &Invoice) -> Option<String> {
        invoice.charges.iter().find(|code| self.charges[*code].charge.waits()).cloned()
    }

    fn void(&mut self, at: Timestamp, code: &str, call: &Call) {
        let Some((_, invoice)) = self.invoices.get(code) else { return };
        let open = self.waiting_charge(invoice);
        let is_free = open.as_ref().is_none_or(|code| self.charges[code].charge.is_untouched());
        let may = invoice.status == InvoiceStatus::Open && is_free;
        self.must_answer(at, "void", code, if may { 200 } else { 409 }, call.status);
        if !may {
            return;
        }
        self.invoices.get_mut(code).expect("looked at above").1.status = InvoiceStatus::Void;
        if let Some(charge) = open {
            self.owned(&charge).charge.cancel();
            self.event_of_charge(at, &charge, "charge.canceled", None);
        }
        self.event_of_invoice(at, code, "invoice.voided");
    }

    fn choose(&mut self, at: Timestamp, code: &str, call: &Call, asked: &Asked) {
        let Some((_, invoice)) = self.invoices.get(code) else { return };
        let open = self.waiting_charge(invoice);
        let wanted = asked.asset.as_deref().unwrap_or_default();
        let same = open.as_ref().is_some_and(|code| self.charges[code].asset.code() == wanted);
        let is_free = open.as_ref().is_none_or(|code| self.charges[code].charge.is_untouched());
        let is_open = invoice.status == InvoiceStatus::Open;
        if !is_open || (!same && !is_free) {
            self.must_answer(at, "choose", code, 409, call.status);
            return;
        }
        let Some(chosen) = read::<Chosen>(&call.answer).filter(|_| call.status == 200) else {
            // No wallet or no rate: the world may say no, and then nothing happens.
            let no = matches!(call.status, 422 | 503);
            self.must_answer(at, "choose", code, if no && !same { call.status } else { 200 }, call.status);
            return;
        };
        if same {
            self.findings.check(Law::Edges, Some(at), || {
                (open.as_ref() != Some(&chosen.charge)).then(|| {
                    ("the coin of the charge that waits gives another charge".to_owned(), code.to_owned())
                })
            });
            return;
        }
        if let Some(earlier) = open {
            self.owned(&earlier).charge.cancel();
            self.event_of_charge(at, &earlier, "charge.canceled", None);
        }
        self.begin(at, &chosen.charge, None);
        if self.charges.contains_key(&chosen.charge) {
            let charges = &mut self.invoices.get_mut(code).expect("looked at above").1.charges;
            charges.push(chosen.charge);
        }
    }
}
