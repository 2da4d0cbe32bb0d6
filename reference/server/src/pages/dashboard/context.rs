//! One request's view of the dashboard: where it is, and how it asks the world.

use reference_core::{error::ApiError, mode::Mode, time::Timestamp};
use simulator::{
    api::{DeliveryRecord, EndpointRecord, KeyRecord},
    sandbox::DeliveryFilter,
};
use uuid::Uuid;

use super::{
    draft::Draft,
    pieces,
    place::{Page, Place, Query},
};
use crate::{
    pages::{
        Asker, Site,
        book::BookReader,
        words::{self, MomentWords as _},
    },
    refusal::Refusal,
};

/// The context of a page: its place and its caller.
pub(super) struct PageContext {
    pub(super) asker: Asker,
    pub(super) site: Site,
    pub(super) place: Place,
    pub(super) page: Page,
    pub(super) query: Query,
    /// The text that was typed into a refused form.
    pub(super) draft: Draft,
}

impl PageContext {
    pub(super) fn new(asker: Asker, place: Place, page: Page, query: Query) -> Result<PageContext, Refusal> {
        let site = asker.site()?;
        Ok(PageContext { asker, site, place, page, query, draft: Draft::default() })
    }

    /// Returns the time of the service clock.
    pub(super) fn now(&self) -> &Timestamp {
        &self.site.now
    }

    /// A link to something in this place.
    pub(super) fn to(&self, rest: impl AsRef<str>) -> String {
        self.site.to(&self.place.path(rest.as_ref()))
    }

    /// The page that is shown, as forms name it to come back to.
    pub(super) fn here(&self) -> String {
        self.page.path()
    }

    /// Returns the form token.
    pub(super) fn form_word(&self) -> &str {
        self.asker.pages.dashboard.form_word()
    }

    /// Returns the hidden fields of every form: the form token, and the page to come back to.
    pub(super) fn hidden(&self) -> pieces::Html {
        pieces::hidden(&[("word", self.form_word()), ("back", &self.here())])
    }

    /// Returns the time of the service clock, to the second.
    pub(super) fn clock(&self) -> String {
        self.now().said()
    }

    /// Returns the speed of the clock, and its distance from real time.
    pub(super) fn pace(&self) -> String {
        let away = words::away(self.site.now, self.site.real);
        match (self.site.pace, away) {
            (1, None) => "real time".to_owned(),
            (1, Some(away)) => away,
            (0, away) => format!("frozen, {}", away.as_deref().unwrap_or("at real time")),
            (pace, away) => format!("{pace} times as fast, {}", away.as_deref().unwrap_or("at real time")),
        }
    }

    /// Returns the title of the browser's tab: the state of the object, and the page.
    pub(super) fn tab(&self, state: Option<&str>, title: &str) -> String {
        let Place { account, mode } = &self.place;
        let state = state.map(|state| format!("{} · ", state.replace('_', " "))).unwrap_or_default();
        let world = self.world().map(|id| format!(" · world {id}")).unwrap_or_default();
        format!("{state}{title} · {account} {mode}{world}")
    }

    /// Returns the id of the world; `None` for the first one of the server.
    pub(super) fn world(&self) -> Option<&str> {
        self.asker.backend.addresses.world_id()
    }

    /// The address of the API.
    pub(super) fn api(&self) -> String {
        format!("{}/v1", self.site.base)
    }

    /// Returns the shell variable with a key of this mode, under the name that `serve` prints.
    pub(super) fn key_variable(&self) -> &'static str {
        match self.place.mode {
            Mode::Live => "$CHARGEPROOF_LIVE_KEY",
            Mode::Test => "$CHARGEPROOF_TEST_KEY",
        }
    }

    /// Returns the line that reads `path` through the API, such as `/v1/events`.
    pub(super) fn curl_get(&self, path: &str) -> String {
        format!("curl -s -H \"Authorization: Bearer {}\" '{}{path}'", self.key_variable(), self.site.base)
    }

    /// A line that opens a charge.
    pub(super) fn curl_charge(&self) -> String {
        self.curl("/v1/charges", r#"{"asset":"BTC","amount":"49.90","currency":"EUR"}"#)
    }

    /// A line that issues an invoice.
    pub(super) fn curl_invoice(&self) -> String {
        let item = r#"{"description":"Consulting","quantity":"2","unit_amount":"80.00"}"#;
        let body =
            format!(r#"{{"customer_email":"customer@shop.example","currency":"EUR","items":[{item}]}}"#);
        self.curl("/v1/invoices", &body)
    }

    /// A line that makes a payment link.
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

    /// The line that pays what remains of a charge.
    pub(super) fn curl_pay(&self, code: &str) -> String {
        format!(
            "curl -s -H 'Content-Type: application/json' -d '{{\"charge\":\"{code}\"}}' {}/sandbox/pay",
            self.site.base
        )
    }

    /// The line that asks what happened.
    pub(super) fn curl_happenings(&self) -> String {
        format!("curl -s '{}/sandbox/happenings?after=0'", self.site.base)
    }

    /// Reads this place's book. What it does not hold is a page that is not there.
    pub(super) async fn read<T>(
        &self,
        view: impl Fn(&BookReader<'_>) -> Result<T, ApiError>,
    ) -> Result<T, Refusal> {
        let Place { account, mode } = &self.place;
        self.asker.read(|sandbox| view(&BookReader::of(sandbox, sandbox.find_book(account, *mode)?))).await
    }

    /// The endpoints of this place's book, oldest first.
    pub(super) async fn endpoints(&self) -> Result<Vec<EndpointRecord>, Refusal> {
        let mut endpoints = self.read(|book| Ok(book.sandbox.endpoints(book.place))).await?;
        endpoints.retain(|endpoint| endpoint.status != "removed");
        Ok(endpoints)
    }

    /// One of them.
    pub(super) async fn endpoint(&self, id: &str) -> Result<EndpointRecord, Refusal> {
        let mut endpoints = self.endpoints().await?.into_iter();
        endpoints.find(|endpoint| endpoint.id.as_str() == id).ok_or(Refusal::NotFound)
    }

    /// The keys of this place's book, newest first.
    pub(super) async fn keys(&self) -> Result<Vec<KeyRecord>, Refusal> {
        let Place { account, mode } = &self.place;
        let own = |key: &KeyRecord| key.account == *account && key.mode == *mode;
        let keys = self.read(|book| Ok(book.sandbox.keys())).await?;
        Ok(keys.into_iter().rev().filter(own).collect())
    }

    /// A delivery of this place's book.
    pub(super) async fn delivery(&self, id: &str) -> Result<DeliveryRecord, Refusal> {
        let id = Uuid::try_parse(id).map_err(|_| Refusal::NotFound)?;
        self.read(|book| book.sandbox.delivery(book.place, id)).await
    }

    /// Deliveries of this place's book, newest first.
    pub(super) async fn deliveries(
        &self,
        limit: usize,
        filter: DeliveryFilter,
    ) -> Result<Vec<DeliveryRecord>, Refusal> {
        self.read(|book| Ok(book.sandbox.deliveries(book.place, &filter, limit))).await
    }
}
