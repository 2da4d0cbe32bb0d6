//! Causes deliveries in a world: registers endpoints of every kind, and causes an event of each type.

use std::{
    collections::BTreeSet,
    fmt,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use conformance::{
    DeliverySource, DeliveryTrigger, Endpoint, Mode, Registration, Secret, TriggerFuture,
    TriggeredDeliveries, Webhooks,
    receiver::{BackgroundReceiver, WebhookNames},
};
use reference_core::event::EventType;
use reference_server::Forward;
use serde_json::{Value, json};
use simulator::play::{Stage, StageRequest};
use tokio::runtime::Runtime;

use super::webhooks::FORBIDDEN_URLS;
use crate::{Failure, config::Config, remote::RemoteStage};

/// The origin of the built-in server's endpoints.
pub(super) const ENDPOINT_ORIGIN: &str = "https://shop.example";
/// A coin that the populated world does not use, so that its charges are distinguishable.
const ASSET: &str = "ETH";
/// A number of blocks that confirms a payment in both modes.
const CONFIRMING_BLOCKS: u32 = 20;
/// Longer than the rate lock of a charge, and than the delay of the first retries of a delivery.
const PAST_RATE_LOCK: &str = "31m";

/// Starts a receiver on a free port of this machine.
pub(super) fn start_receiver(runtime: &Runtime) -> Result<BackgroundReceiver, Failure> {
    runtime
        .block_on(BackgroundReceiver::start((std::net::Ipv4Addr::LOCALHOST, 0).into()))
        .map_err(|error| Failure::unreachable(format!("cannot start a webhook receiver: {error}")))
}

/// Returns the forward from the endpoints' public host to the receiver.
pub(super) fn forward_to_receiver(to: SocketAddr) -> Forward {
    Forward::parse(&format!("{ENDPOINT_ORIGIN}=http://{to}")).expect("a valid host and address")
}

/// Returns the plan for the deliveries of a world to endpoints at `origin`.
pub(super) fn webhook_plan(
    receiver: &Arc<BackgroundReceiver>,
    stage: &Arc<Mutex<RemoteStage>>,
    origin: &str,
    config: &Config,
) -> Result<Webhooks, Failure> {
    let dialect = config.dialect.clone();
    let names = WebhookNames { header_prefix: dialect.header_prefix, user_agent: dialect.user_agent };
    let trigger: Arc<dyn DeliveryTrigger> =
        Arc::new(AllEvents { stage: Arc::clone(stage), origin: origin.to_owned() });
    let source = DeliverySource::Receiver {
        receiver: Arc::clone(receiver),
        // The trigger returns when all deliveries have ended.
        receive_for: std::time::Duration::ZERO,
        trigger: Some(trigger),
    };
    Ok(Webhooks { names, source, public_url: None })
}

/// An endpoint that the receiver serves.
struct EndpointSpec {
    path: &'static str,
    mode: Mode,
    /// The event types of the endpoint; all if empty.
    events: &'static [&'static str],
    /// The responses of the receiver, in the format of `receiver listen --answer`.
    responses: &'static str,
}

const fn endpoint(
    path: &'static str,
    mode: Mode,
    events: &'static [&'static str],
    responses: &'static str,
) -> EndpointSpec {
    EndpointSpec { path, mode, events, responses }
}

/// An endpoint of each kind: with all and with some event types, with redirects, and with a failure.
const ENDPOINTS: [EndpointSpec; 6] = [
    endpoint("/live", Mode::Live, &[], "200"),
    endpoint("/test", Mode::Test, &[], "200"),
    endpoint("/live-some", Mode::Live, &["charge.paid", "invoice.paid"], "200"),
    endpoint("/test-some", Mode::Test, &["charge.canceled", "invoice.viewed"], "200"),
    endpoint("/moved", Mode::Live, &["charge.canceled", "charge.expired"], "302,307"),
    endpoint("/weak", Mode::Test, &["charge.canceled"], "500,200"),
];

/// A trigger that registers the endpoints and causes an event of each type in both modes.
struct AllEvents {
    stage: Arc<Mutex<RemoteStage>>,
    /// The origin of the endpoints.
    origin: String,
}

impl fmt::Debug for AllEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AllEvents")
    }
}

impl AllEvents {
    /// Runs `calls` on the world, on a blocking thread: the stage has its own runtime, which cannot
    /// start inside another.
    async fn call_world<T: Send + 'static>(
        &self,
        calls: impl FnOnce(&mut SandboxCalls<'_>) -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let stage = Arc::clone(&self.stage);
        let task = tokio::task::spawn_blocking(move || {
            calls(&mut SandboxCalls {
                stage: &mut stage.lock().expect("no call panics while it holds the lock"),
            })
        });
        task.await.map_err(|error| error.to_string())?
    }
}

impl DeliveryTrigger for AllEvents {
    fn trigger<'a>(&'a self, receiver: &'a BackgroundReceiver) -> TriggerFuture<'a> {
        Box::pin(async move {
            for EndpointSpec { path, responses, .. } in ENDPOINTS {
                receiver.set_responses(path, responses.parse()?);
            }
            let origin = self.origin.clone();
            let (endpoints, registrations) = self.call_world(move |calls| calls.register(&origin)).await?;
            endpoints.into_iter().for_each(|endpoint| receiver.declare(endpoint));
            self.call_world(|calls| {
                calls.cause_every_type(Mode::Live)?;
                calls.cause_every_type(Mode::Test)?;
                // The response comes when all due deliveries have ended.
                calls.advance("1s")
            })
            .await?;
            Ok(TriggeredDeliveries { settled: true, registrations })
        })
    }
}

/// Calls of the API and the sandbox as merchant, customer and chain.
struct SandboxCalls<'a> {
    stage: &'a mut RemoteStage,
}

impl SandboxCalls<'_> {
    fn call(
        &mut self,
        method: &str,
        path: &str,
        bearer: Option<&str>,
        body: &Value,
    ) -> Result<(u16, Value), String> {
        let call = StageRequest { method, path, bearer, headers: &[], body: Some(body) };
        let response = self.stage.call(&call).map_err(|error| error.to_string())?;
        Ok((response.status, response.json()))
    }

    /// Sends a POST request that must succeed, and returns the JSON of the response.
    fn post(&mut self, path: &str, bearer: Option<&str>, body: &Value) -> Result<Value, String> {
        match self.call("POST", path, bearer, body)? {
            (200..=299, response) => Ok(response),
            (status, response) => Err(format!("POST {path} responded with {status}: {response}")),
        }
    }

    fn advance(&mut self, by: &str) -> Result<(), String> {
        self.post("/sandbox/advance", None, &json!({ "by": by })).map(drop)
    }

    /// Registers every endpoint, and tries to register the URLs that must be refused.
    fn register(&mut self, origin: &str) -> Result<(Vec<Endpoint>, Vec<Registration>), String> {
        let mut endpoints = Vec::new();
        let mut registrations = Vec::new();
        for EndpointSpec { path, mode, events, .. } in ENDPOINTS {
            let url = format!("{origin}{path}");
            let all = EventType::ALL.map(EventType::as_str);
            let events: BTreeSet<String> = if events.is_empty() { &all } else { events }
                .iter()
                .map(|event| (*event).to_owned())
                .collect();
            let body = json!({ "url": url, "mode": mode.as_str(), "events": events });
            let (response, registration) = self.try_to_register(&url, true, &body)?;
            let secret = response["endpoint"]["secret"].as_str().map(Secret::new);
            endpoints.push(Endpoint {
                path: path.to_owned(),
                mode: Some(mode),
                events: Some(events),
                secret,
            });
            registrations.push(registration);
        }
        for url in FORBIDDEN_URLS {
            let body = json!({ "url": url, "mode": Mode::Test.as_str() });
            registrations.push(self.try_to_register(url, false, &body)?.1);
        }
        Ok((endpoints, registrations))
    }

    /// Requests the registration of an endpoint. Returns the response, and the registration with the
    /// decision of the service. `is_public` is `true` if the URL is reachable from the internet.
    fn try_to_register(
        &mut self,
        url: &str,
        is_public: bool,
        body: &Value,
    ) -> Result<(Value, Registration), String> {
        let (status, response) = self.call("POST", "/sandbox/endpoints", None, body)?;
        let accepted = (200..300).contains(&status);
        let summary = if accepted { status.to_string() } else { format!("{status} {}", response["message"]) };
        let registration =
            Registration { address: url.to_owned(), public: is_public, accepted, response: summary };
        Ok((response, registration))
    }

    /// Causes an event of each of the 13 types. Uses a separate key, because the check measures the rate
    /// limits of the others.
    fn cause_every_type(&mut self, mode: Mode) -> Result<(), String> {
        // In test mode, e-mails go to members of the account only.
        let world = self.call("GET", "/sandbox", None, &json!({}))?.1;
        let member = &world["accounts"][0]["members"][0];
        let key = self.post("/sandbox/keys", None, &json!({ "mode": mode.as_str() }))?;
        let key = text(&key["key"]["secret"]);
        let canceled = self.create_charge(&key)?;
        self.post(&format!("/v1/charges/{canceled}/cancel"), Some(&key), &json!({}))?;

        let (paid, underpaid, expired) =
            (self.create_charge(&key)?, self.create_charge(&key)?, self.create_charge(&key)?);
        self.pay(&json!({ "charge": paid }))?;
        self.pay(&json!({ "charge": underpaid, "share": "0.5" }))?;
        let invoice_body = json!({
            "customer_name": "Ann", "customer_email": member,
            "amount": "12.00", "currency": "EUR", "send_email": true,
        });
        let invoice = text(&self.post("/v1/invoices", Some(&key), &invoice_body)?["data"]["code"]);
        self.post(&format!("/sandbox/invoices/{invoice}/view"), None, &json!({}))?;
        let chosen =
            self.post(&format!("/sandbox/invoices/{invoice}/choose"), None, &json!({ "asset": ASSET }))?;
        self.pay(&json!({ "charge": chosen["charge"] }))?;
        self.post(
            "/sandbox/mine",
            None,
            &json!({ "asset": ASSET, "mode": mode.as_str(), "blocks": CONFIRMING_BLOCKS, "at_once": true }),
        )?;
        let refund = json!({ "amount": "0.00001", "reason": "One cup was broken" });
        self.post(&format!("/v1/charges/{paid}/refunds"), Some(&key), &refund)?;
        let invoice_body = json!({ "customer_name": "Ann", "amount": "13.00", "currency": "EUR" });
        let invoice = text(&self.post("/v1/invoices", Some(&key), &invoice_body)?["data"]["code"]);
        self.post(&format!("/v1/invoices/{invoice}/void"), Some(&key), &json!({}))?;

        // Also sends the retries of failed deliveries.
        self.advance(PAST_RATE_LOCK)?;
        self.pay(&json!({ "charge": expired }))
    }

    fn create_charge(&mut self, key: &str) -> Result<String, String> {
        let charge = json!({
            "asset": ASSET, "amount": "10.00", "currency": "EUR", "customer_email": "ann@example.com",
            "description": "Tea", "metadata": { "order": "1" },
        });
        Ok(text(&self.post("/v1/charges", Some(key), &charge)?["data"]["code"]))
    }

    fn pay(&mut self, body: &Value) -> Result<(), String> {
        self.post("/sandbox/pay", None, body).map(drop)
    }
}

/// Returns a JSON string; the empty string for another value.
fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
