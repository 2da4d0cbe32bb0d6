//! Causes the deliveries of a world: endpoints of every kind, and an event of each type.

use std::{
    collections::BTreeSet,
    fmt,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use conformance::{
    DeliveryTrigger, Endpoint, Mode, Registration, Secret, Source, TriggerFuture, TriggeredDeliveries,
    Webhooks,
    receiver::{BackgroundReceiver, Names},
};
use reference_core::event::EventType;
use reference_server::Forward;
use serde_json::{Value, json};
use simulator::play::{Call, Stage};
use tokio::runtime::Runtime;

use super::receiving::REFUSED;
use crate::{Failure, config::Config, remote::RemoteStage};

/// The origin of the built-in server's endpoints.
pub(super) const ORIGIN: &str = "https://shop.example";
/// A coin that the populated world does not use, so that its charges are distinguishable.
const ASSET: &str = "ETH";
/// The number of blocks, enough confirmations for both modes.
const BLOCKS: u32 = 20;
/// Longer than a charge's rate lock and the first retries of a delivery.
const LOCK: &str = "31m";

/// Starts a receiver on a free port of this machine.
pub(super) fn receiver(runtime: &Runtime) -> Result<BackgroundReceiver, Failure> {
    runtime
        .block_on(BackgroundReceiver::start((std::net::Ipv4Addr::LOCALHOST, 0).into()))
        .map_err(|error| Failure::unreachable(format!("cannot start a webhook receiver: {error}")))
}

/// Returns the forward from the endpoints' public host to the receiver.
pub(super) fn forward_to_receiver(to: SocketAddr) -> Forward {
    Forward::parse(&format!("{ORIGIN}=http://{to}")).expect("a valid host and address")
}

/// Returns the plan for the deliveries of a world to endpoints of an origin.
pub(super) fn webhooks(
    receiver: &Arc<BackgroundReceiver>,
    stage: &Arc<Mutex<RemoteStage>>,
    origin: &str,
    config: &Config,
) -> Result<Webhooks, Failure> {
    let dialect = config.dialect.clone();
    let names = Names { header_prefix: dialect.header_prefix, user_agent: dialect.user_agent };
    let trigger: Arc<dyn DeliveryTrigger> =
        Arc::new(AllEvents { stage: Arc::clone(stage), origin: origin.to_owned() });
    let source = Source::Receiver {
        receiver: Arc::clone(receiver),
        receive_for: std::time::Duration::ZERO,
        trigger: Some(trigger),
    };
    Ok(Webhooks { names, source, public_url: None })
}

/// An endpoint of each kind: its path, mode, event types (all if empty), and responses.
const ENDPOINTS: [(&str, Mode, &[&str], &str); 6] = [
    ("/live", Mode::Live, &[], "200"),
    ("/test", Mode::Test, &[], "200"),
    ("/live-some", Mode::Live, &["charge.paid", "invoice.paid"], "200"),
    ("/test-some", Mode::Test, &["charge.canceled", "invoice.viewed"], "200"),
    ("/moved", Mode::Live, &["charge.canceled", "charge.expired"], "302,307"),
    ("/weak", Mode::Test, &["charge.canceled"], "500,200"),
];

/// Causes an event of each type in both modes.
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
    /// Calls the world during the check, on a blocking thread: the stage has its own runtime, which cannot start inside
    /// another.
    async fn call_world<T: Send + 'static>(
        &self,
        calls: impl FnOnce(&mut SandboxCalls<'_>) -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let stage = Arc::clone(&self.stage);
        let task = tokio::task::spawn_blocking(move || {
            calls(&mut SandboxCalls { stage: &mut stage.lock().expect("calls do not panic") })
        });
        task.await.map_err(|error| error.to_string())?
    }
}

impl DeliveryTrigger for AllEvents {
    fn trigger<'a>(&'a self, receiver: &'a BackgroundReceiver) -> TriggerFuture<'a> {
        Box::pin(async move {
            for (path, _, _, answers) in ENDPOINTS {
                receiver.answer(path, answers.parse()?);
            }
            let origin = self.origin.clone();
            let (endpoints, registrations) = self.call_world(move |calls| calls.register(&origin)).await?;
            endpoints.into_iter().for_each(|endpoint| receiver.declare(endpoint));
            self.call_world(|calls| {
                calls.cause_every_type(Mode::Live)?;
                calls.cause_every_type(Mode::Test)?;
                // Returns when all due deliveries have ended.
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
        let call = Call { method, path, bearer, headers: &[], body: Some(body) };
        let answer = self.stage.call(&call).map_err(|error| error.to_string())?;
        Ok((answer.status, answer.json()))
    }

    /// Performs a call that must succeed; otherwise there is nothing to deliver.
    fn post(&mut self, path: &str, bearer: Option<&str>, body: &Value) -> Result<Value, String> {
        match self.call("POST", path, bearer, body)? {
            (200..=299, answer) => Ok(answer),
            (status, answer) => Err(format!("POST {path} answered {status}: {answer}")),
        }
    }

    fn advance(&mut self, by: &str) -> Result<(), String> {
        self.post("/sandbox/advance", None, &json!({ "by": by })).map(drop)
    }

    /// Registers every kind of endpoint, and tries to register those that must be refused.
    fn register(&mut self, origin: &str) -> Result<(Vec<Endpoint>, Vec<Registration>), String> {
        let mut endpoints = Vec::new();
        let mut registrations = Vec::new();
        for (path, mode, events, _) in ENDPOINTS {
            let address = format!("{origin}{path}");
            let all = EventType::ALL.map(EventType::as_str);
            let events: BTreeSet<String> = if events.is_empty() { &all } else { events }
                .iter()
                .map(|event| (*event).to_owned())
                .collect();
            let body = json!({ "url": address, "mode": mode.as_str(), "events": events });
            let (answer, registration) = self.try_to_add(&address, true, &body)?;
            let secret = answer["endpoint"]["secret"].as_str().map(Secret::new);
            endpoints.push(Endpoint {
                path: path.to_owned(),
                mode: Some(mode),
                events: Some(events),
                secret,
            });
            registrations.push(registration);
        }
        for address in REFUSED {
            let body = json!({ "url": address, "mode": Mode::Test.as_str() });
            registrations.push(self.try_to_add(address, false, &body)?.1);
        }
        Ok((endpoints, registrations))
    }

    fn try_to_add(
        &mut self,
        address: &str,
        public: bool,
        body: &Value,
    ) -> Result<(Value, Registration), String> {
        let (status, answer) = self.call("POST", "/sandbox/endpoints", None, body)?;
        let accepted = (200..300).contains(&status);
        let answer_line =
            if accepted { status.to_string() } else { format!("{status} {}", answer["message"]) };
        let registration =
            Registration { address: address.to_owned(), public, accepted, answer: answer_line };
        Ok((answer, registration))
    }

    /// Causes all 13 types with a separate key, because the requests of the other keys are counted.
    fn cause_every_type(&mut self, mode: Mode) -> Result<(), String> {
        // In test mode only members receive e-mail.
        let world = self.call("GET", "/sandbox", None, &json!({}))?.1;
        let member = &world["accounts"][0]["members"][0];
        let key = self.post("/sandbox/keys", None, &json!({ "mode": mode.as_str() }))?;
        let key = text(&key["key"]["secret"]);
        let canceled = self.open(&key)?;
        self.post(&format!("/v1/charges/{canceled}/cancel"), Some(&key), &json!({}))?;

        let (paid, under, expired) = (self.open(&key)?, self.open(&key)?, self.open(&key)?);
        self.pay(&json!({ "charge": paid }))?;
        self.pay(&json!({ "charge": under, "share": "0.5" }))?;
        let issued = json!({
            "customer_name": "Ann", "customer_email": member,
            "amount": "12.00", "currency": "EUR", "send_email": true,
        });
        let invoice = text(&self.post("/v1/invoices", Some(&key), &issued)?["data"]["code"]);
        self.post(&format!("/sandbox/invoices/{invoice}/view"), None, &json!({}))?;
        let chosen =
            self.post(&format!("/sandbox/invoices/{invoice}/choose"), None, &json!({ "asset": ASSET }))?;
        self.pay(&json!({ "charge": chosen["charge"] }))?;
        self.post(
            "/sandbox/mine",
            None,
            &json!({ "asset": ASSET, "mode": mode.as_str(), "blocks": BLOCKS, "at_once": true }),
        )?;
        let back = json!({ "amount": "0.00001", "reason": "One cup was broken" });
        self.post(&format!("/v1/charges/{paid}/refunds"), Some(&key), &back)?;
        let issued = json!({ "customer_name": "Ann", "amount": "13.00", "currency": "EUR" });
        let invoice = text(&self.post("/v1/invoices", Some(&key), &issued)?["data"]["code"]);
        self.post(&format!("/v1/invoices/{invoice}/void"), Some(&key), &json!({}))?;

        // Includes the retries of failed deliveries.
        self.advance(LOCK)?;
        self.pay(&json!({ "charge": expired }))
    }

    fn open(&mut self, key: &str) -> Result<String, String> {
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

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
