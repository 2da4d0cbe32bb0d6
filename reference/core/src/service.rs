//! The service: the only place that changes anything.
//!
//! Every input first lets everything happen that was due by then, so an expiry comes before a
//! sighting of the same microsecond. Inputs never carry a `now` that falls.

use crate::{
    account::{Account, AccountKind, Settings},
    action::{Act, Action, Done, Seen, Visit},
    asset::{Asset, Currency},
    book::{Book, Circumstances, Notice, Post},
    call::{Answer, Call, List},
    dialect::Dialect,
    draw::Seed,
    error::ApiError,
    exchange::Exchange,
    id::{AccountNo, Code, DeliveryNo},
    key::{KeyRing, Principal},
    mode::Mode,
    money::Rate,
    outbox::Landing,
    page::{Ask, Page},
    sighting::Sighting,
    time::Timestamp,
    wallet::{Vault, Wallet},
};

/// What a service is started with.
#[derive(Clone, Debug)]
pub struct Start {
    /// What every code, id, key and secret is drawn from.
    pub seed: Seed,
    /// The names in keys and headers.
    pub dialect: Dialect,
    /// Where hosted pages are reached, without a slash at the end.
    pub public_url: String,
    /// Requests per minute and key; nothing for no limit.
    pub rate_limit: Option<u32>,
    /// Wallets of new accounts that many services share; from the seed if there is none.
    pub vault: Option<Vault>,
}

/// The crypto payment service.
pub struct Service {
    start: Start,
    accounts: Vec<Account>,
    keys: KeyRing,
    exchange: Exchange,
    now: Timestamp,
}

/// A key that was let in.
#[derive(Clone, Copy, Debug)]
pub struct Admission {
    /// Who asks.
    pub principal: Principal,
    /// The limit and how many more requests it lets through now; nothing without a limit.
    pub quota: Option<Quota>,
}

/// A key's place in its limit.
#[derive(Clone, Copy, Debug)]
pub struct Quota {
    /// Requests per minute.
    pub limit: u32,
    /// How many are left.
    pub remaining: u32,
}

impl Service {
    /// A service without accounts.
    pub fn new(start: Start) -> Service {
        Service {
            start,
            accounts: Vec::new(),
            keys: KeyRing::default(),
            exchange: Exchange::default(),
            now: Timestamp(0),
        }
    }

    /// What it was started with.
    pub fn start(&self) -> &Start {
        &self.start
    }

    /// Who asks, and may they: `auth.refused`, `limits.rate`.
    pub fn admit(
        &mut self,
        now: Timestamp,
        bearer: Option<&[u8]>,
    ) -> Result<Admission, (ApiError, Option<Quota>)> {
        self.on_tick(now);
        let no = bearer.and_then(|text| self.keys.find(text)).ok_or((ApiError::UnknownKey, None))?;
        let key = self.keys.get_mut(no);
        let quota = match self.start.rate_limit {
            None => None,
            Some(limit) => match key.window.admit(now, limit) {
                Ok(remaining) => Some(Quota { limit, remaining }),
                Err(retry_after_secs) => {
                    let message = format!("Too many requests: at most {limit} a minute with one key.").into();
                    return Err((
                        ApiError::TooMany { message, retry_after_secs },
                        Some(Quota { limit, remaining: 0 }),
                    ));
                }
            },
        };
        Ok(Admission { principal: key.principal, quota })
    }

    /// An API request of a key that was admitted.
    pub fn on_call(&mut self, now: Timestamp, who: &Principal, call: Call) -> Result<Answer, ApiError> {
        self.on_tick(now);
        let (book, at) = self.desk(now, who.account, who.mode);
        Ok(match call {
            Call::Account => Answer::Account,
            Call::List { list, ask, anchor } => return self.list(now, who, list, ask, anchor),
            Call::CreateCharge(draft) => Answer::Charge(book.create_charge(&at, *draft)?),
            Call::Charge(code) => Answer::Charge(book.find_charge(code)?),
            Call::CancelCharge(code) => {
                let no = book.find_charge(code)?;
                book.cancel_charge(&at, no, None)?;
                Answer::Charge(no)
            }
            Call::RefundCharge(code, draft) => {
                let no = book.find_charge(code)?;
                book.refund_charge(&at, no, draft)?;
                Answer::Charge(no)
            }
            Call::CreateLink(draft) => Answer::Link(book.create_link(&at, *draft)?),
            Call::Link(code) => Answer::Link(book.find_link(code)?),
            Call::ChangeLink(code, draft) => {
                let no = book.find_link(code)?;
                book.change_link(&at, no, *draft)?;
                Answer::Link(no)
            }
            Call::ArchiveLink(code) => {
                let no = book.find_link(code)?;
                book.set_archived(&at, no, true);
                Answer::Link(no)
            }
            Call::RestoreLink(code) => {
                let no = book.find_link(code)?;
                book.set_archived(&at, no, false);
                Answer::Link(no)
            }
            Call::CreateInvoice(draft) => Answer::Invoice(book.create_invoice(&at, *draft)?),
            Call::Invoice(code) => Answer::Invoice(book.find_invoice(code)?),
            Call::SendInvoice(code) => {
                let no = book.find_invoice(code)?;
                book.send_invoice(&at, no)?;
                Answer::Invoice(no)
            }
            Call::VoidInvoice(code) => {
                let no = book.find_invoice(code)?;
                book.void_invoice(&at, no)?;
                Answer::Invoice(no)
            }
            Call::Event(id) => Answer::Event(book.find_event(id)?),
        })
    }

    /// A page of a list. Page 1 without an anchor is fresh; later pages belong to the reading that
    /// their anchor, or the key's last page 1, began (`paging.stable`).
    fn list(
        &mut self,
        now: Timestamp,
        who: &Principal,
        list: List,
        ask: Ask,
        anchor: Option<String>,
    ) -> Result<Answer, ApiError> {
        let book = self.accounts[who.account.index()].book(who.mode);
        let listing = book.listing(&list);
        let memory = &mut self.keys.get_mut(who.key).memory;
        let place = (list.clone(), ask.per_page);
        let anchor = match anchor {
            Some(anchor) => Some(must_hold(book, &list, &anchor)?),
            None if ask.page == 1 => {
                let newest = listing.newest();
                memory.remember(now, place, newest);
                newest
            }
            None => memory.recall(now, &place).unwrap_or_else(|| listing.newest()),
        };
        let page = Page::cut(&listing, ask, anchor);
        let anchor = anchor.map(|member| book.public_id(&list, member));
        Ok(Answer::Page { list, page, anchor })
    }

    /// The account owner looks at a book in the dashboard: the calls of the API that only read, without a
    /// key. Nobody's place in a list is remembered, so a later page is steady by its anchor only.
    pub fn look(&self, (account, mode): (AccountNo, Mode), call: Call) -> Result<Answer, ApiError> {
        let book = self.accounts[account.index()].book(mode);
        Ok(match call {
            Call::Account => Answer::Account,
            Call::List { list, ask, anchor } => {
                let listing = book.listing(&list);
                let anchor = match anchor {
                    Some(anchor) => Some(must_hold(book, &list, &anchor)?),
                    None => listing.newest(),
                };
                let page = Page::cut(&listing, ask, anchor);
                let anchor = anchor.map(|member| book.public_id(&list, member));
                Answer::Page { list, page, anchor }
            }
            Call::Charge(code) => Answer::Charge(book.find_charge(code)?),
            Call::Link(code) => Answer::Link(book.find_link(code)?),
            Call::Invoice(code) => Answer::Invoice(book.find_invoice(code)?),
            Call::Event(id) => Answer::Event(book.find_event(id)?),
            _ => return Err(ApiError::WrongMethod { allow: "GET, HEAD" }),
        })
    }

    /// The account owner does something in the dashboard.
    pub fn on_action(&mut self, now: Timestamp, action: Action) -> Result<Done, ApiError> {
        self.on_tick(now);
        let Action { account, mode, act } = action;
        match act {
            Act::CreateKey => return Ok(self.create_key(now, account, mode)),
            Act::RevokeKey(id) => return self.revoke_key(now, account, mode, id),
            Act::SetWallet { asset, payout } => {
                let wallet = self.accounts[account.index()].book(mode).payouts().read(asset, &payout)?;
                if self.is_wallet_elsewhere(account, mode, &wallet) {
                    let field = payout.field();
                    let message = format!("The {field} field is in use for another mode or account.");
                    return Err(ApiError::field(field, message));
                }
                self.desk(now, account, mode).0.set_wallet(asset, wallet);
                return Ok(Done::Nothing);
            }
            Act::ChangeSettings(draft) => {
                self.accounts[account.index()].settings.change(*draft);
                for mode in Mode::ALL {
                    self.book_mut(account, mode).fragments.forget_account();
                }
                return Ok(Done::Nothing);
            }
            _ => {}
        }
        let (book, at) = self.desk(now, account, mode);
        match act {
            Act::AddEndpoint { url, events } => Ok(Done::Endpoint(book.add_endpoint(&at, &url, events)?)),
            Act::ChangeEndpoint { id, url, events, enabled } => {
                let no = book.find_endpoint(id)?;
                book.change_endpoint(no, url.as_deref(), events, enabled)?;
                Ok(Done::Endpoint(no))
            }
            Act::RemoveEndpoint(id) => {
                let no = book.find_endpoint(id)?;
                book.remove_endpoint(no);
                Ok(Done::Nothing)
            }
            Act::RotateSecret(id) => {
                let no = book.find_endpoint(id)?;
                book.rotate_secret(no);
                Ok(Done::Endpoint(no))
            }
            Act::SendTest(id) => {
                let no = book.find_endpoint(id)?;
                Ok(Done::Delivery(book.send_test(&at, no)?))
            }
            Act::Resend(id) => book.resend(&at, id).map(|()| Done::Delivery(id)),
            Act::RemoveWallet(asset) => book.remove_wallet(asset).map(|()| Done::Nothing),
            Act::AcceptLate { charge, txid } => {
                let no = book.find_charge(charge)?;
                book.accept_late(&at, no, txid.as_deref()).map(|()| Done::Nothing)
            }
            Act::CancelCharge(code) => {
                let no = book.find_charge(code)?;
                book.cancel_charge(&at, no, Some("dashboard")).map(|()| Done::Nothing)
            }
            Act::SendInvoice(code) => {
                let no = book.find_invoice(code)?;
                book.send_invoice(&at, no).map(|()| Done::Nothing)
            }
            Act::VoidInvoice(code) => {
                let no = book.find_invoice(code)?;
                book.void_invoice(&at, no).map(|()| Done::Nothing)
            }
            Act::CreateKey | Act::RevokeKey(_) | Act::SetWallet { .. } | Act::ChangeSettings(_) => {
                unreachable!("handled above, beside the books")
            }
        }
    }

    /// A customer opens or uses a hosted page. Its code says which book it belongs to.
    pub fn on_visit(&mut self, now: Timestamp, visit: Visit) -> Result<Seen, ApiError> {
        self.on_tick(now);
        let (Visit::ViewInvoice(code)
        | Visit::ChooseCoin { invoice: code, .. }
        | Visit::ViewLink(code)
        | Visit::PayLink { link: code, .. }) = &visit;
        let of_invoice = matches!(visit, Visit::ViewInvoice(_) | Visit::ChooseCoin { .. });
        let (account, mode) = self
            .books()
            .find(|(_, _, book)| match of_invoice {
                true => book.find_invoice(*code).is_ok(),
                false => book.find_link(*code).is_ok(),
            })
            .map(|(account, mode, _)| (account, mode))
            .ok_or(ApiError::NotFound)?;
        let (book, at) = self.desk(now, account, mode);
        let charge = match visit {
            Visit::ViewInvoice(code) => {
                let no = book.find_invoice(code)?;
                book.view_invoice(&at, no);
                return Ok(Seen::Page);
            }
            Visit::ViewLink(code) => {
                let no = book.find_link(code)?;
                book.view_link(no);
                return Ok(Seen::Page);
            }
            Visit::ChooseCoin { invoice, asset } => {
                let no = book.find_invoice(invoice)?;
                book.choose_coin(&at, no, asset)?
            }
            Visit::PayLink { link, choice } => {
                let no = book.find_link(link)?;
                book.pay_link(&at, no, *choice)?
            }
        };
        Ok(Seen::Charge(account, mode, charge))
    }

    /// What the chain watcher saw at one moment. Given together, because one block may hold several
    /// payments to one charge.
    pub fn on_sightings(&mut self, now: Timestamp, sightings: &[Sighting]) {
        self.on_tick(now);
        for account in AccountNo::first(self.accounts.len()) {
            for mode in Mode::ALL {
                let (book, at) = self.desk(now, account, mode);
                book.on_sightings(&at, sightings.iter().filter(|sighting| sighting.mode == mode));
            }
        }
    }

    /// A webhook post came back.
    pub fn on_outcome(
        &mut self,
        now: Timestamp,
        (account, mode): (AccountNo, Mode),
        delivery: DeliveryNo,
        landing: impl Into<Landing>,
    ) {
        self.on_tick(now);
        self.desk(now, account, mode).0.on_outcome(now, delivery, landing.into());
    }

    /// The market moved, or fell silent about a pair.
    pub fn on_rate(&mut self, now: Timestamp, asset: Asset, currency: Currency, rate: Option<Rate>) {
        self.on_tick(now);
        self.exchange.set(asset, currency, rate);
    }

    /// A timer is due.
    pub fn on_tick(&mut self, now: Timestamp) {
        assert!(now >= self.now, "a host never hands over a time that falls: {now} after {}", self.now);
        self.now = now;
        for account in AccountNo::first(self.accounts.len()) {
            for mode in Mode::ALL {
                let (book, at) = self.desk(now, account, mode);
                book.end_locks(&at);
            }
        }
    }

    /// When to wake the service: a lock ends, or a delivery is due.
    pub fn next_tick(&self) -> Option<Timestamp> {
        self.books().filter_map(|(_, _, book)| book.next_tick()).min()
    }

    /// The next delivery to post. Until its outcome comes back it is in flight.
    pub fn poll_delivery(&mut self, now: Timestamp) -> Option<(AccountNo, Mode, Post)> {
        for account in AccountNo::first(self.accounts.len()) {
            for mode in Mode::ALL {
                if let Some(post) = self.desk(now, account, mode).0.poll_delivery(now) {
                    return Some((account, mode, post));
                }
            }
        }
        None
    }

    /// What is lost when the service stops and starts again: limiter windows, places in lists, and
    /// the knowledge of how posts in flight ended.
    pub fn restart(&mut self, now: Timestamp) {
        self.on_tick(now);
        self.keys.forget_volatile();
        for account in AccountNo::first(self.accounts.len()) {
            for mode in Mode::ALL {
                self.desk(now, account, mode).0.restart(now);
            }
        }
    }

    /// Opens an account.
    pub fn open_account(
        &mut self,
        now: Timestamp,
        id: &str,
        kind: AccountKind,
        settings: Settings,
    ) -> Result<AccountNo, ApiError> {
        self.on_tick(now);
        let is_slug = (1..=40).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if !is_slug {
            return Err(ApiError::field("id", "The id field must be 1 to 40 of a-z, 0-9 and -."));
        }
        if self.find_account(id).is_some() {
            return Err(ApiError::conflict(format!("There is an account {id} already.")));
        }
        let no = AccountNo::next(self.accounts.len());
        let books = Mode::ALL.map(|mode| Book::new(self.start.seed, self.start.vault.as_ref(), id, mode));
        self.accounts.push(Account::new(now, id.to_owned(), kind, settings, books));
        Ok(no)
    }

    /// An account by its number.
    pub fn account(&self, no: AccountNo) -> &Account {
        &self.accounts[no.index()]
    }

    /// The account with this slug.
    pub fn find_account(&self, id: &str) -> Option<AccountNo> {
        self.accounts.iter().position(|account| *account.id == *id).map(AccountNo::next)
    }

    /// Every book, in order of accounts, live before test.
    pub fn books(&self) -> impl Iterator<Item = (AccountNo, Mode, &Book)> {
        self.accounts.iter().enumerate().flat_map(|(place, account)| {
            Mode::ALL.into_iter().map(move |mode| (AccountNo::next(place), mode, account.book(mode)))
        })
    }

    /// Every key.
    pub fn keys(&self) -> &KeyRing {
        &self.keys
    }

    /// The current rates.
    pub fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    /// The time of the last input.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// What happened since this was last asked, by book.
    pub fn take_notices(&mut self) -> Vec<(AccountNo, Mode, Notice)> {
        let mut notices = Vec::new();
        for account in AccountNo::first(self.accounts.len()) {
            for mode in Mode::ALL {
                let (book, _) = self.accounts[account.index()].open_book(mode);
                notices.extend(book.take_notices().into_iter().map(|notice| (account, mode, notice)));
            }
        }
        notices
    }

    pub(crate) fn book_mut(&mut self, account: AccountNo, mode: Mode) -> &mut Book {
        self.accounts[account.index()].open_book(mode).0
    }

    /// A book, and what its changes depend on.
    fn desk(&mut self, now: Timestamp, account: AccountNo, mode: Mode) -> (&mut Book, Circumstances<'_>) {
        let (book, settings) = self.accounts[account.index()].open_book(mode);
        let exchange = &self.exchange;
        (book, Circumstances { now, settings, exchange, public_url: &self.start.public_url })
    }

    fn create_key(&mut self, now: Timestamp, account: AccountNo, mode: Mode) -> Done {
        let start = self.start.dialect.key_start(mode);
        let (book, _) = self.accounts[account.index()].open_book(mode);
        let nth = book.keys_made;
        book.keys_made += 1;
        let (no, text) = self.keys.create(now, (account, mode), (&start, book.key_lot(), nth));
        Done::Key(no, text)
    }

    fn revoke_key(
        &mut self,
        now: Timestamp,
        account: AccountNo,
        mode: Mode,
        id: Code,
    ) -> Result<Done, ApiError> {
        let no = self
            .keys
            .iter()
            .find(|key| key.id == id && key.principal.account == account && key.principal.mode == mode)
            .map(|key| key.principal.key)
            .ok_or(ApiError::NotFound)?;
        self.keys.get_mut(no).revoked_at.get_or_insert(now);
        Ok(Done::Nothing)
    }

    /// Another book uses, or used, this wallet: its addresses would be shared, or tell of the other mode.
    fn is_wallet_elsewhere(&self, account: AccountNo, mode: Mode, wallet: &Wallet) -> bool {
        self.books().any(|(a, m, book)| (a, m) != (account, mode) && book.knows_wallet(wallet))
    }
}

/// The record that a reader's anchor names.
fn must_hold(book: &Book, list: &List, anchor: &str) -> Result<u32, ApiError> {
    book.anchored(list, anchor).ok_or_else(|| ApiError::field("anchor", "The selected anchor is invalid."))
}
