//! The webhook sender of the fake server: records events, and delivers them to subscribed endpoints.

use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use conformance::EVENT_TYPES;
use conformance::receiver::{BackgroundReceiver, WebhookNames};
use conformance::{
    DeliverySource, DeliveryTrigger, Endpoint, Mode, Registration, Secret, TriggerFuture,
    TriggeredDeliveries, Webhooks,
};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::FakeServer;
use super::book::{Book, EVENT_ID_FACTOR};

/// The Unix time in every signature.
pub(crate) const SIGNED_AT: u64 = 1_767_603_600;
/// The event types to which the endpoints `/live-some` and `/test-some` are subscribed.
const PAID_TYPES: [&str; 2] = ["charge.paid", "invoice.paid"];

/// A delivery of one event to one endpoint, before it is sent.
pub struct Delivery {
    /// The mode of the event.
    pub mode: Mode,
    /// The event type.
    pub event_type: String,
    /// The event as the API shows it.
    pub event: Value,
    /// The path of the endpoint.
    pub path: String,
}

/// The HTTP request of a delivery.
pub struct DeliveryRequest {
    /// The method.
    pub method: String,
    /// The path of the endpoint.
    pub path: String,
    /// The headers in order, without `Host` and those for the length of the body.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// `true` if the body is chunked.
    pub chunked: bool,
}

impl DeliveryRequest {
    /// Sets a header.
    pub fn set_header(&mut self, name: &str, value: &str) {
        self.remove_header(name);
        self.headers.push((name.into(), value.into()));
    }

    /// Removes a header.
    pub fn remove_header(&mut self, name: &str) {
        self.headers.retain(|(header, _)| header != name);
    }
}

/// A function that returns the value of the signature header. `t` is the Unix time of the signature.
pub type Sign = fn(secret: &str, t: u64, body: &[u8]) -> String;

/// A change of the body of a delivery.
pub type ChangeBody = Box<dyn Fn(&Delivery, &mut Value) + Send + Sync>;

/// The webhook sender of the service, which is correct by default.
pub struct Sender {
    /// The change of the body before it is signed.
    pub change_body: ChangeBody,
    /// The change of the request after it was signed.
    pub change_request: fn(&Delivery, &mut DeliveryRequest),
    /// Returns the value of the signature header.
    pub sign: Sign,
    /// Returns `true` if an event of this mode and type is delivered to an endpoint.
    pub delivers: fn(&Endpoint, mode: Mode, event_type: &str) -> bool,
    /// Returns the signing secret of an endpoint.
    pub secret: fn(path: &str) -> String,
    /// Returns `true` for a redirect status that the sender follows.
    pub follows_redirect: fn(status: &str) -> bool,
    /// The number of times that each delivery is sent, regardless of the responses. A response with 500 causes a retry
    /// in addition.
    pub attempts: usize,
    /// `true` if a retry has a new delivery id.
    pub retry_has_new_id: bool,
    /// `true` if the newest delivery is sent first.
    pub sends_newest_first: bool,
    /// Returns `true` if the address of a new endpoint is accepted.
    pub accepts_address: fn(&str) -> bool,
    /// `true` if the suite runs its quick check, without a burst. Faults of deliveries need none.
    pub uses_quick_check: bool,
    /// `true` if the trigger reports that all deliveries were sent.
    pub reports_settled: bool,
}

impl Default for Sender {
    fn default() -> Sender {
        Sender {
            change_body: Box::new(|_, _| {}),
            change_request: |_, _| {},
            sign: |secret, t, body| {
                format!("t={t},v1={}", hex::encode(hmac_sha256(secret, &signed_text(t, body))))
            },
            delivers: |endpoint, mode, event_type| {
                endpoint.mode == Some(mode)
                    && endpoint.events.as_ref().is_some_and(|types| types.contains(event_type))
            },
            secret: secret_of,
            follows_redirect: |_| false,
            attempts: 1,
            retry_has_new_id: false,
            sends_newest_first: false,
            accepts_address: |address| {
                let is_private =
                    ["localhost", "127.", "10.", "169.254."].iter().any(|prefix| address.contains(prefix));
                address.starts_with("https://") && !is_private
            },
            uses_quick_check: true,
            reports_settled: true,
        }
    }
}

/// Returns the signed text: the time, a full stop, the body.
pub fn signed_text(t: u64, body: &[u8]) -> Vec<u8> {
    [t.to_string().as_bytes(), b".", body].concat()
}

/// Computes an HMAC-SHA256.
pub fn hmac_sha256(secret: &str, message: &[u8]) -> Vec<u8> {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC accepts a key of any length");
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

/// Returns the signing secret of the endpoint with this path.
pub fn secret_of(path: &str) -> String {
    format!("whsec_{:a<12}0123456789abcdefghij", path.trim_start_matches('/').replace('-', "x"))
}

/// Returns the endpoints: in each mode one for all event types and one for some, `/moved` in live mode, which redirects,
/// and `/weak` in test mode, whose first response is 500.
fn endpoints() -> Vec<Endpoint> {
    let set_of = |types: &[&str]| types.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let all = || set_of(&EVENT_TYPES);
    let endpoint = |path: &str, mode, events| Endpoint {
        path: path.to_owned(),
        mode: Some(mode),
        events: Some(events),
        secret: Some(Secret::new(secret_of(path))),
    };
    vec![
        endpoint("/live", Mode::Live, all()),
        endpoint("/test", Mode::Test, all()),
        endpoint("/live-some", Mode::Live, set_of(&PAID_TYPES)),
        endpoint("/test-some", Mode::Test, set_of(&PAID_TYPES)),
        endpoint("/moved", Mode::Live, set_of(&["charge.expired", "charge.canceled"])),
        endpoint("/weak", Mode::Test, set_of(&["charge.canceled"])),
    ]
}

/// Returns the charge of an event of this type, with all fields. Optional fields are null unless it is paid; only the
/// refunded charge has a payment link. `book_number` is a part of its code.
fn charge(book_number: u64, event_type: &str) -> Value {
    let (letter, status, is_paid) = match event_type {
        "charge.created" | "charge.payment_detected" => ("a", "pending", false),
        "charge.paid" => ("a", "paid", true),
        "charge.underpaid" => ("b", "underpaid", false),
        "charge.late_payment" | "charge.expired" => ("c", "expired", false),
        "charge.refunded" => ("d", "paid", true),
        _ => ("e", "canceled", false),
    };
    json!({
        "code": format!("hook{book_number}{letter}000001"),
        "status": status,
        "fiat_amount": "49.90",
        "fiat_currency": "EUR",
        "asset": "BTC",
        "asset_amount": "0.000761920000000000",
        "received_amount": if is_paid { json!("0.000761920000000000") } else { Value::Null },
        "customer_email": if is_paid { json!("ann@shop.example") } else { Value::Null },
        "description": if is_paid { json!("Two cups of tea") } else { Value::Null },
        "metadata": if is_paid { json!({ "order": "A-4711-B" }) } else { Value::Null },
        "payment_link": if letter == "d" { json!("tea000000001") } else { Value::Null },
        "paid_at": if is_paid { json!("2026-02-01T10:00:00.123456Z") } else { Value::Null },
    })
}

/// Returns the invoice of an event of this type.
fn invoice(book_number: u64, event_type: &str) -> Value {
    let status = match event_type {
        "invoice.paid" => "paid",
        "invoice.voided" => "void",
        _ => "open",
    };
    json!({
        "code": format!("hook{book_number}i{}00001", if status == "void" { "v" } else { "p" }),
        "number": "INV-0007",
        "status": status,
        "amount": "99.00",
        "currency": "EUR",
        "customer": { "name": "Ann Leerick", "email": "ann@shop.example" },
        "hosted_url": "https://pay.example/i/hook",
        "charges": if status == "paid" { json!([{ "code": format!("hook{book_number}a000001"), "status": "paid" }]) } else { json!([]) },
    })
}

/// Records one event of each type in a book, and returns the events.
fn record_events(book: &mut Book, book_number: u64) -> Vec<Value> {
    let mut events = Vec::new();
    for (number, event_type) in EVENT_TYPES.iter().enumerate() {
        let is_of_charge = event_type.starts_with("charge.");
        let event = json!({
            "id": format!("0190a5c6-7f3e-7cc{book_number}-8def-{:012x}", (number as u64 + 1) * EVENT_ID_FACTOR),
            "type": event_type,
            "details": {},
            "charge": if is_of_charge { charge(book_number, event_type) } else { Value::Null },
            "invoice": if is_of_charge { Value::Null } else { invoice(book_number, event_type) },
            "created_at": book.now.clone().unwrap_or_else(|| format!("2026-02-01T10:00:{number:02}.000000Z")),
        });
        book.events.insert(0, event.clone());
        events.push(event);
    }
    events
}

/// A trigger that records one event of each type and mode, delivers them to the receiver, and registers endpoints.
pub struct EventTrigger(pub Arc<Mutex<FakeServer>>);

impl fmt::Debug for EventTrigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventTrigger")
    }
}

impl DeliveryTrigger for EventTrigger {
    fn trigger<'a>(&'a self, receiver: &'a BackgroundReceiver) -> TriggerFuture<'a> {
        Box::pin(async move {
            for endpoint in endpoints() {
                receiver.declare(endpoint);
            }
            receiver.set_responses("/moved", "302,307".parse()?);
            receiver.set_responses("/weak", "500,200".parse()?);
            for delivery in self.planned_deliveries() {
                deliver(receiver.address(), delivery).await;
            }
            let (accepts_address, reports_settled) = {
                let server = self.0.lock().expect("no request handler panics");
                let sender = server.sender.as_ref().expect("the server has a sender");
                (sender.accepts_address, sender.reports_settled)
            };
            let addresses = [
                "https://shop.example/hooks",
                "https://localhost/hooks",
                "https://127.0.0.1/hooks",
                "https://10.0.0.1/hooks",
                "https://169.254.169.254/hooks",
                "https://shop.example@127.0.0.1/hooks",
                "http://hooks.example/",
            ];
            let registrations = addresses.map(|address| Registration {
                address: address.to_owned(),
                public: address == addresses[0],
                accepted: accepts_address(address),
                response: if accepts_address(address) { "200".into() } else { "422".into() },
            });
            Ok(TriggeredDeliveries { settled: reports_settled, registrations: registrations.to_vec() })
        })
    }
}

/// A delivery with all its requests.
struct PlannedDelivery {
    request: DeliveryRequest,
    follows_redirect: fn(status: &str) -> bool,
    /// The request after a response with 500.
    retry: DeliveryRequest,
}

impl EventTrigger {
    /// Records the events, and returns their deliveries in the order of sending.
    fn planned_deliveries(&self) -> Vec<PlannedDelivery> {
        let mut server = self.0.lock().expect("no request handler panics");
        let mut events = Vec::new();
        for (mode, book_number) in [(Mode::Live, 1), (Mode::Test, 2)] {
            let book = if mode == Mode::Live { &mut server.live } else { &mut server.test };
            events.extend(record_events(book, book_number).into_iter().map(|event| (mode, event)));
        }
        let sender = server.sender.as_ref().expect("the server has a sender");
        if sender.sends_newest_first {
            events.reverse();
        }
        let mut planned_deliveries = Vec::new();
        let mut number = 0;
        for (mode, event) in events {
            let event_type = event["type"].as_str().expect("the type is a string").to_owned();
            let is_recipient = |endpoint: &&Endpoint| (sender.delivers)(endpoint, mode, &event_type);
            for endpoint in endpoints().iter().filter(is_recipient) {
                number += 1;
                let (path, event) = (endpoint.path.clone(), event.clone());
                let delivery = Delivery { mode, event_type: event_type.clone(), event, path };
                for _ in 0..sender.attempts {
                    // No first attempt has a number above 1000.
                    let retry_number = number + if sender.retry_has_new_id { 1000 } else { 0 };
                    planned_deliveries.push(PlannedDelivery {
                        request: sender.request(&delivery, number),
                        follows_redirect: sender.follows_redirect,
                        retry: sender.request(&delivery, retry_number),
                    });
                }
            }
        }
        planned_deliveries
    }
}

impl Sender {
    /// Returns a paid charge of a mode.
    pub fn charge(mode: Mode) -> Value {
        charge(if mode == Mode::Live { 1 } else { 2 }, "charge.paid")
    }

    /// Returns the signed request of a delivery. The number is a part of the delivery id.
    fn request(&self, delivery: &Delivery, number: u64) -> DeliveryRequest {
        let id = format!("0190a5c7-7f3e-7ddd-8def-{number:012x}");
        let subject = if delivery.event_type.starts_with("charge.") { "charge" } else { "invoice" };
        let mut body = json!({
            "id": id,
            "event_id": delivery.event["id"],
            "event": delivery.event_type,
            "mode": delivery.mode.as_str(),
            "created_at": delivery.event["created_at"],
            "data": { subject: delivery.event[subject] },
        });
        (self.change_body)(delivery, &mut body);
        let body = body.to_string().into_bytes();
        let signature = (self.sign)(&(self.secret)(&delivery.path), SIGNED_AT, &body);
        let headers = [
            ("Content-Type", "application/json"),
            ("User-Agent", "Service-Webhooks/1.0"),
            ("X-Service-Event", &delivery.event_type),
            ("X-Service-Delivery", &id),
            ("X-Service-Signature", &signature),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let (method, path) = ("POST".to_owned(), delivery.path.clone());
        let mut request = DeliveryRequest { method, path, headers, body, chunked: false };
        (self.change_request)(delivery, &mut request);
        request
    }
}

/// Sends a delivery, follows a redirect if the sender does, and retries once after 500.
async fn deliver(address: SocketAddr, delivery: PlannedDelivery) {
    let PlannedDelivery { request, follows_redirect, retry } = delivery;
    let response = send(address, &request).await;
    let status = response.split(' ').nth(1).unwrap_or_default();
    if matches!(status, "302" | "307") && follows_redirect(status) {
        let location = response.lines().find_map(|line| line.strip_prefix("location: "));
        let path = location.expect("a redirect has a location").to_owned();
        // A 307 preserves the request; after a 302, clients send a GET.
        let (method, headers, body) = match status {
            "307" => (request.method.clone(), request.headers.clone(), request.body.clone()),
            _ => ("GET".into(), vec![("User-Agent".into(), "Service-Webhooks/1.0".into())], Vec::new()),
        };
        send(address, &DeliveryRequest { method, path, headers, body, chunked: false }).await;
    }
    if status == "500" {
        send(address, &retry).await;
    }
}

/// Sends a request on a new connection, and returns the whole response.
async fn send(address: SocketAddr, request: &DeliveryRequest) -> String {
    let mut stream = TcpStream::connect(address).await.expect("the receiver listens");
    let mut message = format!("{} {} HTTP/1.1\r\nHost: here\r\n", request.method, request.path).into_bytes();
    for (name, value) in &request.headers {
        message.extend(format!("{name}: {value}\r\n").into_bytes());
    }
    if request.chunked {
        message.extend(b"Transfer-Encoding: chunked\r\n\r\n");
        for chunk in request.body.chunks(100) {
            message.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
            message.extend(chunk);
            message.extend(b"\r\n");
        }
        message.extend(b"0\r\n\r\n");
    } else {
        message.extend(format!("Content-Length: {}\r\n\r\n", request.body.len()).into_bytes());
        message.extend(&request.body);
    }
    stream.write_all(&message).await.expect("the receiver reads the request");
    let mut response = Vec::new();
    stream.read_to_end(&mut response).await.expect("the receiver responds");
    String::from_utf8(response).expect("the response is UTF-8")
}

/// Starts a receiver on a free port, and returns the webhook settings with a trigger that sends the server's deliveries
/// to it.
pub async fn start_receiver(server: &Arc<Mutex<FakeServer>>) -> Webhooks {
    let receiver = BackgroundReceiver::start(([127, 0, 0, 1], 0).into()).await.expect("a port is free");
    Webhooks {
        names: WebhookNames::default(),
        source: DeliverySource::Receiver {
            receiver: Arc::new(receiver),
            receive_for: std::time::Duration::from_secs(60),
            trigger: Some(Arc::new(EventTrigger(Arc::clone(server)))),
        },
        public_url: None,
    }
}
