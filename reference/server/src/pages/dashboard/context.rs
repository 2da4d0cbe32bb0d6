//! One request's view of the dashboard: where it is, and how it asks the world.

use bytes::Bytes;
use reference_core::time::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;
use simulator::api::{
    DeliveryAnswer, DeliveryList, DeliveryRecord, EndpointList, EndpointRecord, KeyList, KeyRecord,
};

use super::{
    draft::{Complaint, Draft},
    pieces,
    place::{Page, Place, Query},
};
use crate::{
    pages::{
        Asker, Site,
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
        format!("{state}{title} · {account} {mode}")
    }

    /// The address of the API.
    pub(super) fn api(&self) -> String {
        format!("{}/v1", self.site.base)
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
            "curl -s -H \"Authorization: Bearer $KEY\" -H 'Content-Type: application/json' -d '{body}' {}{path}",
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

    /// Asks the world to show something. A refusal of the world's is a page that is not there.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Refusal> {
        match self.send("GET", path, None).await? {
            Ok(body) => serde_json::from_slice(&body).map_err(|_| Refusal::Broken),
            Err(_) => Err(Refusal::NotFound),
        }
    }

    /// The same of this place's book: `rest` is `/charges`, as after `/v1`.
    pub(super) async fn book<T: DeserializeOwned>(&self, rest: &str) -> Result<T, Refusal> {
        let Place { account, mode } = &self.place;
        self.get(&format!("/sandbox/books/{account}/{mode}{rest}")).await
    }

    /// Asks the world to do something.
    pub(super) async fn act(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Result<Value, Complaint>, Refusal> {
        Ok(match self.send(method, path, body).await? {
            Ok(body) => Ok(serde_json::from_slice(&body).map_err(|_| Refusal::Broken)?),
            Err(complaint) => Err(complaint),
        })
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Result<Bytes, Complaint>, Refusal> {
        let (status, body) = self.asker.respond(method, path, body).await?;
        if status.is_success() {
            return Ok(Ok(body));
        }
        Complaint::read(status, &body).map(Err)
    }

    /// The endpoints of this place's book, oldest first.
    pub(super) async fn endpoints(&self) -> Result<Vec<EndpointRecord>, Refusal> {
        let all: EndpointList = self.get("/sandbox/endpoints").await?;
        let own = |endpoint: &EndpointRecord| {
            endpoint.account == self.place.account
                && endpoint.mode.as_str() == self.place.mode
                && endpoint.status != "removed"
        };
        Ok(all.endpoints.into_iter().filter(own).collect())
    }

    /// One of them.
    pub(super) async fn endpoint(&self, id: &str) -> Result<EndpointRecord, Refusal> {
        self.endpoints()
            .await?
            .into_iter()
            .find(|endpoint| endpoint.id.as_str() == id)
            .ok_or(Refusal::NotFound)
    }

    /// The keys of this place's book, newest first.
    pub(super) async fn keys(&self) -> Result<Vec<KeyRecord>, Refusal> {
        let all: KeyList = self.get("/sandbox/keys").await?;
        let own = |key: &KeyRecord| key.account == self.place.account && key.mode.as_str() == self.place.mode;
        Ok(all.keys.into_iter().rev().filter(own).collect())
    }

    /// A delivery of this place's book.
    pub(super) async fn delivery(&self, id: &str) -> Result<DeliveryRecord, Refusal> {
        let DeliveryAnswer { delivery } = self.get(&format!("/sandbox/deliveries/{id}")).await?;
        let own = delivery.account == self.place.account && delivery.mode.as_str() == self.place.mode;
        if own { Ok(delivery) } else { Err(Refusal::NotFound) }
    }

    /// Deliveries of this place's book, newest first. `rest`: more of the query, with an ampersand before it.
    pub(super) async fn deliveries(&self, limit: usize, rest: &str) -> Result<Vec<DeliveryRecord>, Refusal> {
        let Place { account, mode } = &self.place;
        let path = format!("/sandbox/deliveries?account={account}&mode={mode}&limit={limit}{rest}");
        let DeliveryList { deliveries } = self.get(&path).await?;
        Ok(deliveries)
    }
}
