//! [`BenchDriver`]: opens and pays charges and delivers their events in the service alone, without chains, network or
//! sockets.

use std::collections::BTreeSet;

use reference_core::{
    account::{AccountKind, Settings},
    asset::{Asset, Currency},
    call::{Call, CallResult, ChargeDraft},
    charge::Customer,
    command::{BookCommand, Command, CommandResult},
    dialect::Dialect,
    event::EventType,
    id::{AccountNo, ChargeNo},
    mode::Mode,
    money::{Fiat, Rate},
    outbox::AttemptResult,
    rng::Seed,
    service::ServiceConfig,
    sighting::{Depth, Sighting},
    time::{Span, Timestamp},
};
use reference_wire::{Api, Response};

/// The start of every transaction id: 48 of the 64 hexadecimal digits. The number of the transaction follows.
const TXID_PREFIX: &str = "000000000000000000000000000000000000000000000000";

/// A service with one account, which is used in test mode.
pub struct BenchDriver {
    api: Api,
    account: AccountNo,
    authorization: String,
    asset: Asset,
    /// The current time of the simulated clock.
    now: Timestamp,
    /// The number of transactions so far.
    transactions: u64,
    /// The number of deliveries so far.
    deliveries: usize,
    /// The id of the payment link from which new charges are opened, if any.
    link: Option<String>,
}

impl BenchDriver {
    /// Creates a driver whose charges are in this coin, and whose account has this many endpoints for all events.
    pub fn new(asset: Asset, endpoints: usize) -> BenchDriver {
        let now = Timestamp::parse("2026-01-05T09:00:00Z").expect("the constant is valid");
        let mut api = Api::new(ServiceConfig {
            seed: Seed(1),
            dialect: Dialect::default(),
            public_url: "https://pay.example".to_owned(),
            rate_limit: None,
            wallet_cache: None,
            key_tag: String::new(),
        });
        api.service.on_rate(now, asset, Currency::Eur, Rate::parse("60000").ok());
        let account = api
            .service
            .open_account(now, "acme", AccountKind::Organization, Settings::new("Acme"))
            .expect("the first account's name is free");
        let mode = Mode::Test;
        let result = api.service.on_command(now, (account, mode), Command::CreateKey);
        let Ok(CommandResult::Key(_, key)) = result else { unreachable!("CreateKey returns a key") };
        let authorization = format!("Bearer {}", key.reveal());
        for n in 0..endpoints {
            let url = format!("https://shop{n}.sim/hooks");
            let command = BookCommand::AddEndpoint { url, events: BTreeSet::from(EventType::ALL) };
            api.service.on_command(now, (account, mode), command).expect("the URL is a valid endpoint");
        }
        BenchDriver { api, account, authorization, asset, now, transactions: 0, deliveries: 0, link: None }
    }

    /// Advances the clock by this span.
    pub fn advance(&mut self, span: Span) {
        self.now = self.now.plus(span);
    }

    /// Creates a payment link for all further charges and returns its id.
    pub fn use_link(&mut self) -> String {
        let link = self.send(
            "POST",
            "/v1/payment-links",
            r#"{"title":"Tea","pricing_type":"fixed","amount":"49.90","currency":"EUR"}"#,
        );
        let link: serde_json::Value = serde_json::from_slice(&link.body).expect("responses are JSON");
        let id = link["data"]["id"].as_str().expect("a link has an id").to_owned();
        self.link = Some(id.clone());
        id
    }

    /// Opens a charge and returns its number.
    pub fn open_charge(&mut self) -> ChargeNo {
        let draft = ChargeDraft {
            asset: self.asset,
            amount: Fiat::parse("49.90").ok(),
            currency: Some(Currency::Eur),
            link: self.link.clone(),
            customer: Customer::default(),
            description: Some("order 7".to_owned()),
            metadata: Vec::new(),
            custom_fields: Vec::new(),
        };
        let bearer = reference_wire::bearer(Some(self.authorization.as_bytes()));
        let principal = self.api.service.admit(self.now, bearer).expect("the new key is valid").principal;
        match self.api.service.on_call(self.now, &principal, Call::CreateCharge(Box::new(draft))) {
            Ok(CallResult::Charge(no)) => no,
            other => unreachable!("CreateCharge returns a charge, not {other:?}"),
        }
    }

    /// Pays a charge: the transfer is reported four times, with more confirmations each time. The first report has
    /// none, the last has at least the required number.
    pub fn pay(&mut self, no: ChargeNo) {
        let charge = self.api.service.account(self.account).book(Mode::Test).charge(no);
        let required = self.asset.required_confirmations(Mode::Test);
        let mut sighting = Sighting {
            mode: Mode::Test,
            asset: self.asset,
            address: charge.terms.deposit_address.clone(),
            // Formatting all 64 digits would take a twentieth of the time that a charge takes.
            txid: format!("{TXID_PREFIX}{:016x}", self.transactions),
            output: 0,
            amount: charge.terms.asset_amount,
            depth: Depth::Confirmations(0),
            height: 0,
        };
        self.transactions += 1;
        for confirmations in [0, 1, 2, required.max(3)] {
            sighting.depth = Depth::Confirmations(confirmations);
            self.api.service.on_sightings(self.now, std::slice::from_ref(&sighting));
        }
    }

    /// Makes all due delivery attempts: writes and signs each body, and reports the response 200. Returns the total
    /// size of the bodies and signatures in bytes.
    pub fn deliver(&mut self) -> usize {
        let mut bytes = 0;
        while let Some((account, mode, attempt)) = self.api.poll_delivery(self.now) {
            let signature = attempt.secret.sign(self.now.unix_secs(), &attempt.body);
            bytes += attempt.body.len() + signature.len();
            self.deliveries += 1;
            self.api.service.on_attempt_result(
                self.now,
                (account, mode),
                attempt.delivery,
                AttemptResult::Response(200),
            );
        }
        bytes
    }

    /// Opens a charge, pays it, and makes its deliveries.
    pub fn complete_charge(&mut self) {
        let no = self.open_charge();
        self.pay(no);
        self.deliver();
        // The service's notices of events and e-mails would accumulate in memory.
        self.api.service.take_notices();
        // Any short span, so that charges have different times.
        self.advance(Span::micros(10));
    }

    /// Returns the number of deliveries so far.
    pub fn delivery_count(&self) -> usize {
        self.deliveries
    }

    /// Sends a `GET` request that must succeed.
    pub fn get(&mut self, path: &str) -> Response {
        self.send("GET", path, "")
    }

    fn send(&mut self, method: &str, path: &str, body: &str) -> Response {
        let request = crate::request(method, path, &self.authorization, body);
        let response = self.api.respond(self.now, &request);
        assert!(response.status < 300, "{path}: {}", String::from_utf8_lossy(&response.body));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_has_three_events_and_as_many_deliveries() {
        for asset in [Asset::Sol, Asset::Btc] {
            let mut driver = BenchDriver::new(asset, 1);
            driver.complete_charge();
            driver.complete_charge();
            let page: serde_json::Value = serde_json::from_slice(&driver.get("/v1/events?per_page=3").body)
                .expect("responses are JSON");
            let types: Vec<_> = (0..3).filter_map(|n| page["data"][n]["type"].as_str()).collect();
            assert_eq!(types, ["charge.paid", "charge.payment_detected", "charge.created"]);
            assert_eq!((page["meta"]["total"].as_u64(), driver.delivery_count()), (Some(6), 6));
        }
    }
}
