//! [`PageContext`]: the context of one dashboard request, through which pages read the world.

use reference_core::{error::ApiError, id::Code, mode::Mode, time::Timestamp};
use simulator::{
    api::{DeliveryRecord, EndpointRecord, KeyRecord},
    sandbox::DeliveryFilter,
};
use uuid::Uuid;

use super::{
    access::FORM_TOKEN_FIELD,
    draft::Draft,
    fragments,
    paths::{BookId, Page, Query},
};
use crate::{
    pages::{
        Site, WorldClient,
        book::BookReader,
        formats::{self, TimeFormats as _},
    },
    refusal::Refusal,
};

/// The client, book (account and mode), page and query of a dashboard request.
pub(super) struct PageContext {
    pub(super) client: WorldClient,
    pub(super) site: Site,
    pub(super) book_id: BookId,
    pub(super) page: Page,
    pub(super) query: Query,
    /// The input of a refused form.
    pub(super) draft: Draft,
}

impl PageContext {
    pub(super) fn new(
        client: WorldClient,
        book_id: BookId,
        page: Page,
        query: Query,
    ) -> Result<PageContext, Refusal> {
        let site = client.site()?;
        Ok(PageContext { client, site, book_id, page, query, draft: Draft::default() })
    }

    /// Returns the time of the service clock.
    pub(super) fn now(&self) -> &Timestamp {
        &self.site.now
    }

    /// Returns a link to a path in this account and mode.
    pub(super) fn to(&self, rest: impl AsRef<str>) -> String {
        self.site.to(&self.book_id.path(rest.as_ref()))
    }

    /// Returns the path of this page, for forms that return to it.
    pub(super) fn page_path(&self) -> String {
        self.page.path()
    }

    /// Returns the form token.
    pub(super) fn form_token(&self) -> &str {
        self.client.pages.dashboard.form_token()
    }

    /// Returns the hidden fields of every form: the form token, and the page to return to.
    pub(super) fn hidden(&self) -> fragments::Html {
        fragments::hidden(&[(FORM_TOKEN_FIELD, self.form_token()), ("back", &self.page_path())])
    }

    /// Returns the time of the service clock, to the second.
    pub(super) fn clock(&self) -> String {
        self.now().date_time()
    }

    /// Returns the speed of the clock and its distance from real time: `60 times as fast, 2 days ahead of real time`.
    pub(super) fn clock_speed(&self) -> String {
        let offset = formats::clock_offset(self.site.now, self.site.real_time);
        match (self.site.speed, offset) {
            (1, None) => "real time".to_owned(),
            (1, Some(offset)) => offset,
            (0, offset) => format!("frozen, {}", offset.as_deref().unwrap_or("at real time")),
            (speed, offset) => {
                format!("{speed} times as fast, {}", offset.as_deref().unwrap_or("at real time"))
            }
        }
    }

    /// Returns the title of the browser's tab: the state of the object, the page, the account and mode, and the world.
    pub(super) fn tab_title(&self, state: Option<&str>, title: &str) -> String {
        let BookId { account, mode } = &self.book_id;
        let state = state.map(|state| format!("{} · ", state.replace('_', " "))).unwrap_or_default();
        let world = self.world_label().map(|label| format!(" · world {label}")).unwrap_or_default();
        format!("{state}{title} · {account} {mode}{world}")
    }

    /// Returns the name of the world, or its id if it has no name; `None` for the first one of the server.
    pub(super) fn world_label(&self) -> Option<String> {
        let id = self.client.backend.addresses.world_id()?;
        let world = Code::parse(id).and_then(|id| self.client.pages.worlds.get(id));
        Some(world.and_then(|world| world.name.clone()).unwrap_or_else(|| id.to_owned()))
    }

    /// Returns the URL of the API.
    pub(super) fn api_url(&self) -> String {
        format!("{}/v1", self.site.base)
    }

    /// Returns the shell variable with a key of this mode, under the name that `serve` prints.
    pub(super) fn key_variable(&self) -> &'static str {
        match self.book_id.mode {
            Mode::Live => "$CHARGEPROOF_LIVE_KEY",
            Mode::Test => "$CHARGEPROOF_TEST_KEY",
        }
    }

    /// Returns a curl command that reads `path` through the API, such as `/v1/events`.
    pub(super) fn curl_get(&self, path: &str) -> String {
        format!("curl -s -H \"Authorization: Bearer {}\" '{}{path}'", self.key_variable(), self.site.base)
    }

    /// Returns a curl command that opens a charge.
    pub(super) fn curl_charge(&self) -> String {
        self.curl("/v1/charges", r#"{"asset":"BTC","amount":"49.90","currency":"EUR"}"#)
    }

    /// Returns a curl command that issues an invoice.
    pub(super) fn curl_invoice(&self) -> String {
        let item = r#"{"description":"Consulting","quantity":"2","unit_amount":"80.00"}"#;
        let body =
            format!(r#"{{"customer_email":"customer@shop.example","currency":"EUR","items":[{item}]}}"#);
        self.curl("/v1/invoices", &body)
    }

    /// Returns a curl command that creates a payment link.
    pub(super) fn curl_link(&self) -> String {
        let body = r#"{"title":"A cup of coffee","pricing_type":"fixed","amount":"3.50","currency":"EUR"}"#;
        self.curl("/v1/payment-links", body)
    }

    fn curl(&self, path: &str, body: &str) -> String {
        format!(
            "curl -s -H \"Authorization: Bearer {}\" -H 'Content-Type: application/json' -d '{body}' {}{path}",
            self.key_variable(),
            self.site.base
        )
    }

    /// Returns a curl command that pays the rest of a charge.
    pub(super) fn curl_pay(&self, code: &str) -> String {
        format!(
            "curl -s -H 'Content-Type: application/json' -d '{{\"charge\":\"{code}\"}}' {}/sandbox/pay",
            self.site.base
        )
    }

    /// Returns a curl command that lists the history of the world.
    pub(super) fn curl_happenings(&self) -> String {
        format!("curl -s '{}/sandbox/happenings?after=0'", self.site.base)
    }

    /// Reads this book. An unknown object is [`Refusal::NotFound`].
    pub(super) async fn read<T>(
        &self,
        view: impl Fn(&BookReader<'_>) -> Result<T, ApiError>,
    ) -> Result<T, Refusal> {
        let BookId { account, mode } = &self.book_id;
        self.client.read(|sandbox| view(&BookReader::new(sandbox, sandbox.find_book(account, *mode)?))).await
    }

    /// Returns the endpoints of this book that were not removed, oldest first.
    pub(super) async fn endpoints(&self) -> Result<Vec<EndpointRecord>, Refusal> {
        let mut endpoints = self.read(|book| Ok(book.sandbox.endpoints(book.account_and_mode))).await?;
        endpoints.retain(|endpoint| endpoint.status != "removed");
        Ok(endpoints)
    }

    /// Returns the endpoint of this book with this id.
    pub(super) async fn endpoint(&self, id: &str) -> Result<EndpointRecord, Refusal> {
        let mut endpoints = self.endpoints().await?.into_iter();
        endpoints.find(|endpoint| endpoint.id.as_str() == id).ok_or(Refusal::NotFound)
    }

    /// Returns the keys of this book, newest first.
    pub(super) async fn keys(&self) -> Result<Vec<KeyRecord>, Refusal> {
        let BookId { account, mode } = &self.book_id;
        let is_own = |key: &KeyRecord| key.account == *account && key.mode == *mode;
        let keys = self.read(|book| Ok(book.sandbox.keys())).await?;
        Ok(keys.into_iter().rev().filter(is_own).collect())
    }

    /// Returns a delivery of this book.
    pub(super) async fn delivery(&self, id: &str) -> Result<DeliveryRecord, Refusal> {
        let id = Uuid::try_parse(id).map_err(|_| Refusal::NotFound)?;
        self.read(|book| book.sandbox.delivery(book.account_and_mode, id)).await
    }

    /// Returns the newest deliveries of this book that match the filter, at most `limit`, newest first.
    pub(super) async fn deliveries(
        &self,
        limit: usize,
        filter: DeliveryFilter,
    ) -> Result<Vec<DeliveryRecord>, Refusal> {
        self.read(|book| Ok(book.sandbox.deliveries(book.account_and_mode, &filter, limit))).await
    }
}
