//! [`Service`]: the inputs and outputs of the state machine. The crate documentation explains its rules of time.
//! Must not contain: rules about charges, invoices or deliveries; they are methods of `Book`.

use serde::{Deserialize, Serialize};

use crate::{
    account::{Account, AccountKind, Settings},
    asset::{Asset, Currency},
    book::{Book, BookContext, Notice},
    call::{Call, CallResult, List},
    command::{Command, CommandResult, Visit, VisitResult, WalletInput},
    dialect::Dialect,
    error::ApiError,
    exchange::Exchange,
    heights::ChainHeights,
    id::{AccountNo, Code, DeliveryNo},
    key::{KeyRing, KeySource, Principal},
    mode::Mode,
    money::Rate,
    outbox::AttemptReport,
    page::{Page, PageRequest},
    rng::Seed,
    sighting::Sighting,
    time::Timestamp,
    wallet::{Wallet, WalletCache},
};

/// The configuration of a service.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServiceConfig {
    /// The seed of every code, id, key and secret.
    pub seed: Seed,
    /// The brand names in keys and headers.
    pub dialect: Dialect,
    /// The base URL of hosted pages, without a slash at the end.
    pub public_url: String,
    /// Requests per minute and key; `None` for no limit.
    pub rate_limit: Option<u32>,
    /// The built-in wallets of new accounts, shared by several services; `None` to derive them from the seed.
    #[serde(skip)]
    pub wallet_cache: Option<WalletCache>,
    /// The tag after the mode in every key, by which a host of several services finds the key's service: at most
    /// `KEY_TAG_MAX` letters and digits; empty for none.
    pub key_tag: String,
}

/// The crypto payment service.
#[derive(Serialize, Deserialize)]
pub struct Service {
    config: ServiceConfig,
    accounts: Vec<Account>,
    keys: KeyRing,
    exchange: Exchange,
    heights: ChainHeights,
    now: Timestamp,
}

/// An admitted request.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Admission {
    /// The account and mode of the key.
    pub principal: Principal,
    /// The rate limit and the remaining requests; `None` without a limit.
    pub quota: Option<Quota>,
}

/// The rate limit of a key, and the part that is left.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Quota {
    /// Requests per minute.
    pub limit: u32,
    /// The remaining requests.
    pub remaining: u32,
}

impl Service {
    /// Creates a service without accounts.
    pub fn new(config: ServiceConfig) -> Service {
        Service {
            config,
            accounts: Vec::new(),
            keys: KeyRing::default(),
            exchange: Exchange::default(),
            heights: ChainHeights::default(),
            now: Timestamp(0),
        }
    }

    /// Rebuilds the indexes of a restored service, and sets the part of the configuration that belongs to the host.
    pub fn resume(&mut self, public_url: String, wallet_cache: Option<WalletCache>) {
        self.config = ServiceConfig { public_url, wallet_cache, ..self.config.clone() };
        self.accounts.iter_mut().for_each(Account::rebuild_indexes);
    }

    /// Returns the configuration.
    pub fn config(&self) -> &ServiceConfig {
        &self.config
    }

    /// Authenticates a request and counts it towards the rate limit: `auth.every_path`, `limits.refused`.
    ///
    /// # Errors
    ///
    /// [`ApiError::Unauthenticated`] without a quota, or [`ApiError::RateLimited`] with the key's quota.
    pub fn admit(
        &mut self,
        now: Timestamp,
        bearer: Option<&[u8]>,
    ) -> Result<Admission, (ApiError, Option<Quota>)> {
        self.advance_clock(now);
        let no = bearer.and_then(|text| self.keys.find(text)).ok_or((ApiError::Unauthenticated, None))?;
        let Principal { account, mode, .. } = self.keys.get(no).principal;
        self.process_due(now, account, mode);
        let key = self.keys.get_mut(no);
        let quota = match self.config.rate_limit {
            None => None,
            Some(limit) => match key.rate_window.admit(now, limit) {
                Ok(remaining) => Some(Quota { limit, remaining }),
                Err(retry_after_secs) => {
                    let message = format!("Too many requests: at most {limit} a minute with one key.").into();
                    let error = ApiError::RateLimited { message, retry_after_secs };
                    return Err((error, Some(Quota { limit, remaining: 0 })));
                }
            },
        };
        Ok(Admission { principal: key.principal, quota })
    }

    /// Executes an API call of an admitted key.
    ///
    /// # Errors
    ///
    /// [`ApiError::NotFound`], `Conflict`, `Invalid`, `RateLimited` or `NoRate`.
    pub fn on_call(
        &mut self,
        now: Timestamp,
        principal: &Principal,
        call: Call,
    ) -> Result<CallResult, ApiError> {
        self.advance_clock(now);
        self.process_due(now, principal.account, principal.mode);
        match call {
            Call::List { list, page, anchor } => self.list(now, principal, list, page, anchor),
            call => self.execute(now, (principal.account, principal.mode), call),
        }
    }

    /// Executes a call other than a list.
    fn execute(
        &mut self,
        now: Timestamp,
        (account, mode): (AccountNo, Mode),
        call: Call,
    ) -> Result<CallResult, ApiError> {
        let (book, context) = self.book_mut(now, account, mode);
        Ok(match call {
            Call::CreateCharge(draft) => CallResult::Charge(book.create_charge(&context, *draft)?),
            Call::CancelCharge(code) => {
                let no = book.find_charge(code)?;
                book.cancel_charge(&context, no, None)?;
                CallResult::Charge(no)
            }
            Call::RefundCharge(code, draft) => {
                let no = book.find_charge(code)?;
                book.refund_charge(&context, no, draft)?;
                CallResult::Charge(no)
            }
            Call::CreateLink(draft) => CallResult::Link(book.create_link(&context, *draft)?),
            Call::ChangeLink(code, draft) => {
                let no = book.find_link(code)?;
                book.change_link(&context, no, *draft)?;
                CallResult::Link(no)
            }
            Call::ArchiveLink(code) => {
                let no = book.find_link(code)?;
                book.set_archived(&context, no, true);
                CallResult::Link(no)
            }
            Call::RestoreLink(code) => {
                let no = book.find_link(code)?;
                book.set_archived(&context, no, false);
                CallResult::Link(no)
            }
            Call::CreateInvoice(draft) => CallResult::Invoice(book.create_invoice(&context, *draft)?),
            Call::SendInvoice(code) => {
                let no = book.find_invoice(code)?;
                book.send_invoice(&context, no)?;
                CallResult::Invoice(no)
            }
            Call::VoidInvoice(code) => {
                let no = book.find_invoice(code)?;
                book.void_invoice(&context, no)?;
                CallResult::Invoice(no)
            }
            call => read(book, call)?,
        })
    }

    /// Returns a page of a list. Page 1 without an anchor shows the list as it is now; later pages show it as it was
    /// at their anchor, or at the key's last read of page 1 (`paging.stable`).
    fn list(
        &mut self,
        now: Timestamp,
        principal: &Principal,
        list: List,
        page: PageRequest,
        anchor: Option<String>,
    ) -> Result<CallResult, ApiError> {
        let book = self.accounts[principal.account.index()].book(principal.mode);
        let memory = &mut self.keys.get_mut(principal.key).page_memory;
        let key = (list.clone(), page.per_page);
        let (is_first, has_anchor) = (page.page == 1, anchor.is_some());
        let remembered = if is_first { None } else { memory.recall(now, &key) };
        let result = list_page(book, list, page, anchor, remembered)?;
        // Page 1 sets the remembered anchor, and every read renews it.
        if let CallResult::Page { page, .. } = &result
            && !has_anchor
            && (is_first || remembered.is_some())
        {
            memory.remember(now, key, page.last, page.anchor);
        }
        Ok(result)
    }

    /// Executes a call that only reads, without changing the key's remembered anchors: for `HEAD`.
    ///
    /// # Errors
    ///
    /// As [`on_call`](Service::on_call); [`ApiError::MethodNotAllowed`] for a call that writes.
    pub fn peek(&self, now: Timestamp, principal: &Principal, call: Call) -> Result<CallResult, ApiError> {
        let book = self.accounts[principal.account.index()].book(principal.mode);
        match call {
            Call::List { list, page, anchor } => {
                let key = (list, page.per_page);
                let memory = &self.keys.get(principal.key).page_memory;
                let remembered = if page.page == 1 { None } else { memory.recall(now, &key) };
                list_page(book, key.0, page, anchor, remembered)
            }
            call => read(book, call),
        }
    }

    /// Executes a call of the dashboard that only reads. Later pages are stable only with an explicit anchor.
    ///
    /// # Errors
    ///
    /// As [`on_call`](Service::on_call); [`ApiError::MethodNotAllowed`] for a call that writes.
    pub fn owner_read(&self, (account, mode): (AccountNo, Mode), call: Call) -> Result<CallResult, ApiError> {
        let book = self.accounts[account.index()].book(mode);
        match call {
            Call::List { list, page, anchor } => list_page(book, list, page, anchor, None),
            call => read(book, call),
        }
    }

    /// Executes a command of the account owner in the dashboard of one account and mode.
    ///
    /// # Errors
    ///
    /// [`ApiError::NotFound`] for an object that is not in this book, [`ApiError::Invalid`] for invalid fields,
    /// [`ApiError::Conflict`] if the object's state does not allow it, and those of the call in [`Command::Call`].
    ///
    /// # Panics
    ///
    /// If `now` is earlier than at a previous input.
    pub fn on_command(
        &mut self,
        now: Timestamp,
        (account, mode): (AccountNo, Mode),
        command: impl Into<Command>,
    ) -> Result<CommandResult, ApiError> {
        self.advance_clock(now);
        self.process_due(now, account, mode);
        match command.into() {
            Command::CreateKey => Ok(self.create_key(now, account, mode)),
            Command::RevokeKey(id) => self.revoke_key(now, account, mode, id),
            Command::SetWallet { asset, input } => self.set_wallet(account, mode, asset, &input),
            Command::ChangeSettings(draft) => {
                self.accounts[account.index()].change_settings(*draft);
                Ok(CommandResult::Nothing)
            }
            Command::Call(call) => self.execute(now, (account, mode), call).map(CommandResult::Call),
            Command::Book(command) => {
                let (book, context) = self.book_mut(now, account, mode);
                book.on_command(&context, command)
            }
        }
    }

    /// Handles a customer's visit to a hosted page. The code of the page selects the book.
    ///
    /// # Errors
    ///
    /// [`ApiError::NotFound`] if no book has the code; otherwise the reason why the invoice or link opens no charge.
    pub fn on_visit(&mut self, now: Timestamp, visit: Visit) -> Result<VisitResult, ApiError> {
        self.advance_clock(now);
        let (Visit::ViewInvoice(code)
        | Visit::ChooseCoin { invoice: code, .. }
        | Visit::ViewLink(code)
        | Visit::PayLink { link: code, .. }) = &visit;
        let is_invoice_page = matches!(visit, Visit::ViewInvoice(_) | Visit::ChooseCoin { .. });
        let (account, mode) = self
            .books()
            .find(|(_, _, book)| match is_invoice_page {
                true => book.find_invoice(*code).is_ok(),
                false => book.find_link(*code).is_ok(),
            })
            .map(|(account, mode, _)| (account, mode))
            .ok_or(ApiError::NotFound)?;
        self.process_due(now, account, mode);
        let (book, context) = self.book_mut(now, account, mode);
        let charge = match visit {
            Visit::ViewInvoice(code) => {
                let no = book.find_invoice(code)?;
                book.record_invoice_view(&context, no);
                return Ok(VisitResult::Page);
            }
            Visit::ViewLink(code) => {
                let no = book.find_link(code)?;
                book.record_link_view(no);
                return Ok(VisitResult::Page);
            }
            Visit::ChooseCoin { invoice, asset } => {
                let no = book.find_invoice(invoice)?;
                book.choose_coin(&context, no, asset)?
            }
            Visit::PayLink { link, choice } => {
                let no = book.find_link(link)?;
                book.pay_link(&context, no, *choice)?
            }
        };
        Ok(VisitResult::Charge(account, mode, charge))
    }

    /// Applies the sightings that the chain watcher reported at one time. They are passed together, because one block
    /// may contain several payments to one charge.
    pub fn on_sightings(&mut self, now: Timestamp, sightings: &[Sighting]) {
        self.on_tick(now);
        sightings
            .iter()
            .for_each(|sighting| self.heights.raise(sighting.mode, sighting.asset, sighting.height));
        for account in AccountNo::first_n(self.accounts.len()) {
            for mode in Mode::ALL {
                let (book, context) = self.book_mut(now, account, mode);
                book.on_sightings(&context, sightings.iter().filter(|sighting| sighting.mode == mode));
            }
        }
    }

    /// Raises the height of a chain; a lower height is ignored. The host reports heights before it reads or changes
    /// charges, because confirmations depend on them.
    pub fn on_height(&mut self, mode: Mode, asset: Asset, height: u64) {
        self.heights.raise(mode, asset, height);
    }

    /// Returns the heights of the chains.
    pub fn heights(&self) -> &ChainHeights {
        &self.heights
    }

    /// Records the result of a delivery attempt.
    pub fn on_attempt_result(
        &mut self,
        now: Timestamp,
        (account, mode): (AccountNo, Mode),
        delivery: DeliveryNo,
        report: impl Into<AttemptReport>,
    ) {
        self.advance_clock(now);
        self.process_due(now, account, mode);
        self.book_mut(now, account, mode).0.on_attempt_result(now, delivery, report.into());
    }

    /// Sets the rate of a pair; `None` if there is none.
    pub fn on_rate(&mut self, now: Timestamp, asset: Asset, currency: Currency, rate: Option<Rate>) {
        // Whatever is due by now does not depend on rates, so it need not be processed first.
        self.advance_clock(now);
        self.exchange.set(asset, currency, rate);
    }

    /// Processes everything due by `now`.
    pub fn on_tick(&mut self, now: Timestamp) {
        self.on_tick_in_part(now, u32::MAX);
    }

    /// Processes a part of what is due by `now`, so that a host can serve requests in between: at most `work_max`
    /// units, one for each lock that ends and each endpoint that is notified. Returns the number of units. There is
    /// more to do while [`next_tick`](Service::next_tick) is not later than `now`.
    pub fn on_tick_in_part(&mut self, now: Timestamp, work_max: u32) -> u32 {
        self.advance_clock(now);
        let mut work = 0_u32;
        for account in AccountNo::first_n(self.accounts.len()) {
            for mode in Mode::ALL {
                let (book, context) = self.book_mut(now, account, mode);
                work = work.saturating_add(book.end_locks(&context, work_max.saturating_sub(work)));
            }
        }
        work
    }

    fn advance_clock(&mut self, now: Timestamp) {
        assert!(now >= self.now, "the time passed by a host never decreases: {now} after {}", self.now);
        self.now = now;
    }

    /// Processes everything due by `now` in one book.
    fn process_due(&mut self, now: Timestamp, account: AccountNo, mode: Mode) {
        let (book, context) = self.book_mut(now, account, mode);
        book.end_locks(&context, u32::MAX);
    }

    /// Returns the time of the next tick, at which a lock ends or a delivery is due.
    pub fn next_tick(&self) -> Option<Timestamp> {
        self.books().filter_map(|(_, _, book)| book.next_tick()).min()
    }

    /// Returns the next due delivery, which is in flight until the result of its attempt is reported.
    pub fn poll_delivery(&mut self, now: Timestamp) -> Option<(AccountNo, Mode, DeliveryNo)> {
        for account in AccountNo::first_n(self.accounts.len()) {
            for mode in Mode::ALL {
                if let Some(delivery) = self.book_mut(now, account, mode).0.poll_delivery(now) {
                    return Some((account, mode, delivery));
                }
            }
        }
        None
    }

    /// Discards the volatile state, as a restart does: limiter windows, page anchors, and results of attempts in flight.
    pub fn restart(&mut self, now: Timestamp) {
        self.on_tick(now);
        self.keys.clear_volatile();
        for account in AccountNo::first_n(self.accounts.len()) {
            for mode in Mode::ALL {
                self.book_mut(now, account, mode).0.restart(now);
            }
        }
    }

    /// Opens an account and returns its number.
    ///
    /// # Errors
    ///
    /// [`ApiError::Invalid`] if `id` is not 1 to 40 characters of `a-z`, `0-9` and `-`; [`ApiError::Conflict`] if there is
    /// such an account already.
    pub fn open_account(
        &mut self,
        now: Timestamp,
        id: &str,
        kind: AccountKind,
        settings: Settings,
    ) -> Result<AccountNo, ApiError> {
        self.on_tick(now);
        let is_valid_id = (1..=40).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if !is_valid_id {
            return Err(ApiError::field("id", "The id field must be 1 to 40 of a-z, 0-9 and -."));
        }
        if self.find_account(id).is_some() {
            return Err(ApiError::conflict(format!("There is an account {id} already.")));
        }
        let no = AccountNo::from_index(self.accounts.len());
        let books =
            Mode::ALL.map(|mode| Book::new(self.config.seed, self.config.wallet_cache.as_ref(), id, mode));
        self.accounts.push(Account::new(now, id.to_owned(), kind, settings, books));
        Ok(no)
    }

    /// Returns an account by its number.
    pub fn account(&self, no: AccountNo) -> &Account {
        &self.accounts[no.index()]
    }

    /// Returns the number of the account with this id.
    pub fn find_account(&self, id: &str) -> Option<AccountNo> {
        self.accounts.iter().position(|account| *account.id == *id).map(AccountNo::from_index)
    }

    /// Returns all books, by account, live before test.
    pub fn books(&self) -> impl Iterator<Item = (AccountNo, Mode, &Book)> {
        self.accounts.iter().enumerate().flat_map(|(index, account)| {
            Mode::ALL.into_iter().map(move |mode| (AccountNo::from_index(index), mode, account.book(mode)))
        })
    }

    /// Returns all keys.
    pub fn keys(&self) -> &KeyRing {
        &self.keys
    }

    /// Returns the current rates.
    pub fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    /// Returns the notices recorded since the last call, by book.
    pub fn take_notices(&mut self) -> Vec<(AccountNo, Mode, Notice)> {
        let mut notices = Vec::new();
        for account in AccountNo::first_n(self.accounts.len()) {
            for mode in Mode::ALL {
                let (book, _) = self.accounts[account.index()].book_mut(mode);
                notices.extend(book.take_notices().into_iter().map(|notice| (account, mode, notice)));
            }
        }
        notices
    }

    /// Returns a book to change, with the context of the change.
    fn book_mut(&mut self, now: Timestamp, account: AccountNo, mode: Mode) -> (&mut Book, BookContext<'_>) {
        let (book, settings) = self.accounts[account.index()].book_mut(mode);
        let (exchange, heights) = (&self.exchange, &self.heights);
        (book, BookContext { now, settings, exchange, heights })
    }

    fn create_key(&mut self, now: Timestamp, account: AccountNo, mode: Mode) -> CommandResult {
        let start = self.config.dialect.key_start(mode);
        let (book, _) = self.accounts[account.index()].book_mut(mode);
        let nth = book.keys_created;
        book.keys_created += 1;
        let source = KeySource { start: &start, tag: &self.config.key_tag, rng_key: book.key_rng(), nth };
        let (no, key_text) = self.keys.create(now, (account, mode), source);
        CommandResult::Key(no, key_text)
    }

    fn revoke_key(
        &mut self,
        now: Timestamp,
        account: AccountNo,
        mode: Mode,
        id: Code,
    ) -> Result<CommandResult, ApiError> {
        let no = self
            .keys
            .iter()
            .find(|key| key.id == id && key.principal.account == account && key.principal.mode == mode)
            .map(|key| key.principal.key)
            .ok_or(ApiError::NotFound)?;
        self.keys.get_mut(no).revoked_at.get_or_insert(now);
        Ok(CommandResult::Nothing)
    }

    fn set_wallet(
        &mut self,
        account: AccountNo,
        mode: Mode,
        asset: Asset,
        input: &WalletInput,
    ) -> Result<CommandResult, ApiError> {
        let wallet = self.accounts[account.index()].book(mode).wallets().parse_wallet(asset, input)?;
        if self.is_wallet_used_elsewhere(account, mode, &wallet) {
            let field = input.field();
            let message = format!("The {field} field is in use for another mode or account.");
            return Err(ApiError::field(field, message));
        }
        self.accounts[account.index()].book_mut(mode).0.set_wallet(asset, wallet);
        Ok(CommandResult::Nothing)
    }

    /// Returns `true` if another book uses, or used, this wallet: two books would share its addresses.
    fn is_wallet_used_elsewhere(&self, account: AccountNo, mode: Mode, wallet: &Wallet) -> bool {
        let own = (account, mode);
        self.books().any(|(account, mode, book)| (account, mode) != own && book.has_used_wallet(wallet))
    }
}

/// Executes a call that only reads, other than a list.
fn read(book: &Book, call: Call) -> Result<CallResult, ApiError> {
    match call {
        Call::Account => Ok(CallResult::Account),
        Call::Charge(code) => book.find_charge(code).map(CallResult::Charge),
        Call::Link(code) => book.find_link(code).map(CallResult::Link),
        Call::Invoice(code) => book.find_invoice(code).map(CallResult::Invoice),
        Call::Event(id) => book.find_event(id).map(CallResult::Event),
        _ => Err(ApiError::MethodNotAllowed { allow: "GET, HEAD".into() }),
    }
}

/// Cuts a page from a list as it was when the client's anchor, or else `remembered`, was its newest record; without
/// either, as it is now.
fn list_page(
    book: &Book,
    list: List,
    page: PageRequest,
    anchor: Option<String>,
    remembered: Option<Option<u32>>,
) -> Result<CallResult, ApiError> {
    let listing = book.listing(&list);
    let newest = match anchor {
        Some(anchor) => Some(anchor_record(book, &list, &anchor)?),
        None => remembered.unwrap_or_else(|| listing.newest()),
    };
    let page = Page::from_listing(&listing, page, newest);
    let anchor = newest.map(|member| book.public_id(&list, member));
    Ok(CallResult::Page { list, page, anchor })
}

/// Returns the number of the record that a client's anchor names.
fn anchor_record(book: &Book, list: &List, anchor: &str) -> Result<u32, ApiError> {
    book.find_anchor(list, anchor).ok_or_else(|| ApiError::field("anchor", "The selected anchor is invalid."))
}
