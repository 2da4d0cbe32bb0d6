//! The fuzz target `request`: requests to the reference service, as the HTTP server passes them to it.
//!
//! The bytes are a sequence of requests with a line `%%` between them. Each is a head and, if there is a body, an empty
//! line and the body:
//!
//! ```text
//! POST /v1/charges/{pending}/refunds?page=1
//! authorization: live
//! content-type: application/json
//!
//! {"amount":"0.001"}
//! ```
//!
//! In `authorization`, `live` and `test` stand for the keys of the two modes. A name in braces stands for the id of an
//! object; the function `add_objects` lists the names.

use std::sync::LazyLock;

use reference_core::{
    account::{AccountKind, Settings},
    asset::{Asset, Currency},
    command::{BookCommand, Command, CommandResult, Visit},
    dialect::Dialect,
    event::EventType,
    id::{AccountNo, Code},
    mode::Mode,
    money::{Coin, Rate},
    rng::Seed,
    service::ServiceConfig,
    sighting::{Depth, Sighting},
    time::{Span, Timestamp},
    wallet::WalletCache,
};
use reference_wire::{Api, Request, Response};
use serde_json::{Value, json};

/// 2026-09-20T10:00:00Z.
const START_TIME: Timestamp = Timestamp(1_789_898_400_000_000);
/// The base URL of the API, with which links in responses start.
const BASE: &str = "https://api.svc.example";
/// The seed of the service for every input, so that all inputs share one cache of derived addresses.
const SEED: Seed = Seed(7);
/// The cache of derived addresses.
static WALLETS: LazyLock<WalletCache> = LazyLock::new(|| WalletCache::new(SEED));

/// The largest number of requests per input; further ones are ignored.
const REQUESTS_MAX: usize = 8;
/// The statuses of all responses that the service may send.
const STATUSES: [u16; 12] = [200, 201, 400, 401, 404, 405, 409, 413, 415, 422, 429, 503];

/// Sends the requests, checks the responses, and checks that reads and refused requests change nothing and that a
/// repeated read gets the same response.
pub(crate) fn feed(bytes: &[u8]) {
    let mut service = FilledService::open();
    for part in split(bytes, b"\n%%\n").take(REQUESTS_MAX) {
        let Some(fuzzed) = FuzzedRequest::parse(part, &service) else { continue };
        let before = service.observable_state();
        let response = service.send(&fuzzed);
        if let Err(violation) = check_response(&response) {
            panic!(
                "{violation}\n\n{fuzzed:?}\n\n{} {}",
                response.status,
                String::from_utf8_lossy(&response.body)
            );
        }
        let is_read = matches!(fuzzed.method.as_str(), "GET" | "HEAD");
        if is_read || response.status >= 400 {
            assert!(
                service.observable_state() == before,
                "the request changed the state: {fuzzed:?} -> {}",
                response.status
            );
        }
        if is_read {
            assert_eq!(
                service.send(&fuzzed),
                response,
                "two responses to the same request differ: {fuzzed:?}"
            );
        }
    }
}

/// Checks the invariants of a response.
fn check_response(response: &Response) -> Result<(), String> {
    let Response { status, headers, body } = response;
    if !STATUSES.contains(status) {
        return Err(format!("the status is {status}"));
    }
    let body: Value =
        serde_json::from_slice(body).map_err(|error| format!("the body is not JSON: {error}"))?;
    if *status >= 400 {
        if body["message"].as_str().is_none_or(str::is_empty) {
            return Err("an error response without a message".to_owned());
        }
        if body["errors"].is_object() != (*status == 422) {
            return Err("`errors` must be in 422 responses, and in no others".to_owned());
        }
    } else if body["data"].is_null() {
        return Err("a success response without data".to_owned());
    }
    for (header, expected_status) in [("allow", 405), ("www-authenticate", 401), ("retry-after", 429)] {
        if headers.iter().any(|(name, _)| *name == header) != (*status == expected_status) {
            return Err(format!(
                "the header {header} must be in {expected_status} responses, and in no others"
            ));
        }
    }
    // A header value must be printable ASCII.
    match headers.iter().find(|(_, value)| !value.bytes().all(|byte| (0x20..0x7f).contains(&byte))) {
        Some((name, value)) => Err(format!("the header {name} is {value:?}")),
        None => Ok(()),
    }
}

/// A parsed request of the input.
#[derive(Debug)]
struct FuzzedRequest {
    method: String,
    path: String,
    query: Option<String>,
    authorization: Option<Vec<u8>>,
    content_type: Option<Vec<u8>>,
    idempotency_key: Option<Vec<u8>>,
    body: Vec<u8>,
}

impl FuzzedRequest {
    /// Parses a request and fills in keys and ids. Returns `None` if the first line is not UTF-8 text with a space,
    /// which the HTTP server would reject.
    fn parse(part: &[u8], service: &FilledService) -> Option<FuzzedRequest> {
        let (head, body) = match find_bytes(part, b"\n\n") {
            Some(end) => (&part[..end], &part[end + 2..]),
            None => (part, &[][..]),
        };
        let mut lines = split(head, b"\n");
        let first = service.fill_in_ids(std::str::from_utf8(lines.next()?).ok()?);
        let (method, target) = first.split_once(' ')?;
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (target, None),
        };
        let mut fuzzed = FuzzedRequest {
            method: method.to_owned(),
            path: path.to_owned(),
            query,
            authorization: None,
            content_type: None,
            idempotency_key: None,
            body: body.to_owned(),
        };
        if let Ok(text) = std::str::from_utf8(body) {
            fuzzed.body = service.fill_in_ids(text).into_bytes();
        }
        for line in lines {
            let Some(end) = find_bytes(line, b": ") else { continue };
            let (name, value) = (&line[..end], line[end + 2..].to_owned());
            match name {
                b"authorization" => {
                    fuzzed.authorization = Some(service.authorization(&value).unwrap_or(value))
                }
                b"content-type" => fuzzed.content_type = Some(value),
                b"idempotency-key" => fuzzed.idempotency_key = Some(value),
                _ => {}
            }
        }
        Some(fuzzed)
    }
}

fn find_bytes(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

fn split<'a>(bytes: &'a [u8], separator: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = Some(bytes);
    std::iter::from_fn(move || {
        let bytes_left = rest?;
        let (part, after) = match find_bytes(bytes_left, separator) {
            Some(index) => (&bytes_left[..index], Some(&bytes_left[index + separator.len()..])),
            None => (bytes_left, None),
        };
        rest = after;
        Some(part)
    })
}

/// A service with an object of every kind.
struct FilledService {
    api: Api,
    now: Timestamp,
    account: AccountNo,
    /// The API keys of the modes, in the order of [`Mode::ALL`].
    keys: [String; 2],
    /// The names in braces, with the ids of their objects.
    ids: Vec<(&'static str, String)>,
}

impl FilledService {
    fn open() -> FilledService {
        let config = ServiceConfig {
            seed: SEED,
            dialect: Dialect::default(),
            public_url: "https://pay.svc.example".to_owned(),
            rate_limit: None,
            wallet_cache: Some(WALLETS.clone()),
            key_tag: String::new(),
        };
        let mut api = Api::new(config);
        let account = api
            .service
            .open_account(START_TIME, "acme", AccountKind::Organization, Settings::new("Acme"))
            .expect("the first account's id is unused");
        // Without a rate for DOGE, a charge in it gets a 503.
        for currency in [Currency::Eur, Currency::Usd] {
            for asset in Asset::ALL.into_iter().filter(|asset| *asset != Asset::Doge) {
                let rate = Some(Rate::parse("60000").expect("the constant is a rate"));
                api.service.on_rate(START_TIME, asset, currency, rate);
            }
        }
        let mut service =
            FilledService { api, now: START_TIME, account, keys: Default::default(), ids: Vec::new() };
        service.keys = Mode::ALL.map(|mode| match service.execute(mode, Command::CreateKey) {
            CommandResult::Key(_, key) => key.reveal().to_owned(),
            other => unreachable!("CreateKey returns a key, not {other:?}"),
        });
        service.add_objects();
        service
    }

    /// Creates the objects. That of `{foreign}` is in test mode, all others in live mode.
    fn add_objects(&mut self) {
        let url = "https://shop.example/hooks".to_owned();
        self.execute(Mode::Live, BookCommand::AddEndpoint { url, events: EventType::ALL.into() });
        let custom_fields = json!([{"label": "Size", "required": true}]);
        let link = json!({"title": "A hat", "pricing_type": "open", "custom_fields": custom_fields});
        let link = self.create(Mode::Live, "/v1/payment-links", &link);
        let charge = json!({"asset": "BTC", "amount": "150.00"});
        let pending = self.create(Mode::Live, "/v1/charges", &charge);
        let paid = self.create(Mode::Live, "/v1/charges", &charge);
        self.pay(&paid);
        let invoice = json!({"amount": "1", "customer_email": "ada@shop.example"});
        let invoice = self.create(Mode::Live, "/v1/invoices", &invoice);
        let code = Code::parse(&invoice).expect("an id is a code");
        self.api.service.on_visit(self.now, Visit::ViewInvoice(code)).expect("an open invoice");
        let foreign = self.create(Mode::Test, "/v1/charges", &charge);
        let book = self.api.service.account(self.account).book(Mode::Live);
        let all_events = reference_core::call::List::Events { kind: None, charge: None, invoice: None };
        let event = book.public_id(&all_events, 0);
        self.ids = vec![
            ("{link}", link),
            ("{pending}", pending),
            ("{paid}", paid),
            ("{invoice}", invoice),
            ("{foreign}", foreign),
            ("{event}", event),
        ];
    }

    /// Executes a valid command of the account owner.
    fn execute(&mut self, mode: Mode, command: impl Into<Command>) -> CommandResult {
        self.api.service.on_command(self.now, (self.account, mode), command).expect("a valid command")
    }

    /// Creates an object by an API request and returns its id.
    fn create(&mut self, mode: Mode, path: &str, body: &Value) -> String {
        let fuzzed = FuzzedRequest {
            method: "POST".to_owned(),
            path: path.to_owned(),
            query: None,
            authorization: self.authorization(mode.as_str().as_bytes()),
            content_type: Some(b"application/json".to_vec()),
            idempotency_key: None,
            body: body.to_string().into_bytes(),
        };
        let body: Value = serde_json::from_slice(&self.send(&fuzzed).body).expect("a response is JSON");
        body["data"]["id"].as_str().unwrap_or_else(|| panic!("no id in {body}")).to_owned()
    }

    /// Reports a confirmed transfer of 0.0025 BTC to a charge: the amount due for 150 EUR at a rate of 60,000.
    fn pay(&mut self, charge_id: &str) {
        let book = self.api.service.account(self.account).book(Mode::Live);
        let no = book
            .find_charge(Code::parse(charge_id).expect("an id is a code"))
            .expect("the charge was just created");
        let terms = &book.charge(no).terms;
        let sighting = Sighting {
            mode: Mode::Live,
            asset: terms.asset,
            address: terms.deposit_address.clone(),
            txid: "t1".to_owned(),
            output: 0,
            amount: Coin::parse("0.0025", terms.asset).expect("an amount"),
            depth: Depth::Confirmations(2),
            height: 0,
        };
        self.api.service.on_sightings(self.now, &[sighting]);
    }

    /// Returns the `Authorization` header with the key of a mode; `None` if the name is neither `live` nor `test`.
    fn authorization(&self, mode_name: &[u8]) -> Option<Vec<u8>> {
        let index = Mode::ALL.iter().position(|mode| mode.as_str().as_bytes() == mode_name)?;
        Some(format!("Bearer {}", self.keys[index]).into_bytes())
    }

    /// Replaces the names in braces with the ids.
    fn fill_in_ids(&self, text: &str) -> String {
        if !text.contains('{') {
            return text.to_owned();
        }
        self.ids.iter().fold(text.to_owned(), |text, (name, id)| text.replace(name, id))
    }

    /// Sends a request, one second after the previous one.
    fn send(&mut self, fuzzed: &FuzzedRequest) -> Response {
        self.now = self.now.plus(Span::secs(1));
        let request = Request {
            method: &fuzzed.method,
            path: &fuzzed.path,
            query: fuzzed.query.as_deref(),
            authorization: fuzzed.authorization.as_deref(),
            content_type: fuzzed.content_type.as_deref(),
            idempotency_key: fuzzed.idempotency_key.as_deref(),
            base: BASE,
            body: &fuzzed.body,
        };
        self.api.respond(self.now, &request)
    }

    /// Returns the state that reads and refused requests must not change: lists and the number of deliveries. It is
    /// always read as of `START_TIME`, so that the advance of the clock does not change it.
    fn observable_state(&self) -> String {
        let mut state = String::new();
        for mode in Mode::ALL {
            let book = self.api.service.account(self.account).book(mode);
            state.push_str(&format!("{} deliveries\n", book.outbox().iter().count()));
            for list in ["charges", "invoices", "payment-links", "events"] {
                let path = format!("/v1/{list}");
                let body = reference_wire::owner_read(
                    &self.api.service,
                    START_TIME,
                    (self.account, mode),
                    (&path, Some("per_page=100")),
                    BASE,
                );
                state.push_str(&String::from_utf8_lossy(&body.expect("a list is always read")));
            }
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn respond(text: &str) -> Response {
        let mut service = FilledService::open();
        let fuzzed =
            FuzzedRequest::parse(text.as_bytes(), &service).expect("the text starts with a request line");
        service.send(&fuzzed)
    }

    #[test]
    fn requests_are_split_and_get_the_expected_statuses() {
        let head = "authorization: live\ncontent-type: application/json\n";
        for (text, status) in [
            ("GET /v1/charges?status=paid\nauthorization: live".to_owned(), 200),
            ("GET /v1/charges/{paid}\nauthorization: live".to_owned(), 200),
            ("GET /v1/charges/{foreign}\nauthorization: live".to_owned(), 404),
            ("GET /v1/charges/{foreign}\nauthorization: test".to_owned(), 200),
            ("GET /v1/charges".to_owned(), 401),
            (format!("POST /v1/charges/{{pending}}/cancel\n{head}"), 200),
            (format!("POST /v1/charges/{{paid}}/refunds\n{head}\n{{\"amount\":\"0.001\"}}"), 201),
            (format!("POST /v1/charges\n{head}\n{{\"asset\":\"DOGE\",\"amount\":\"1\"}}"), 503),
            (format!("POST /v1/invoices/{{invoice}}/send\n{head}"), 200),
        ] {
            assert_eq!(respond(&text).status, status, "{text}");
        }
        assert_eq!(split(b"a\n%%\nb\n%%\n", b"\n%%\n").collect::<Vec<_>>(), [&b"a"[..], b"b", b""]);
    }

    #[test]
    fn an_invalid_response_is_detected() {
        let valid = Response { status: 200, headers: Vec::new(), body: b"{\"data\":[]}".as_slice().into() };
        assert_eq!(check_response(&valid), Ok(()));
        let body = |text: &str| Response { body: text.as_bytes().to_vec().into(), ..valid.clone() };
        let with_status = |status, text: &str| Response { status, ..body(text) };
        for invalid in [
            with_status(500, "{\"message\":\"Oops.\"}"),
            body("{\"data\":"),
            body("{}"),
            with_status(404, "{}"),
            with_status(404, "{\"message\":\"No.\",\"errors\":{}}"),
            with_status(422, "{\"message\":\"No.\"}"),
            with_status(405, "{\"message\":\"No.\"}"),
            Response { headers: vec![("x", "\u{7f}".to_owned())], ..valid.clone() },
        ] {
            assert!(check_response(&invalid).is_err(), "{invalid:?}");
        }
    }
}
