//! [`TestService`]: a service with a clock, rates and one account, and short methods for requests, sightings and actions.
//!
//! It uses only the public inputs and outputs of the service, as a host does.

use reference_core::{
    account::{AccountKind, Settings},
    asset::{Asset, Currency},
    book::Book,
    command::{BookCommand, Command, CommandResult, SettingsDraft, Visit, VisitResult},
    dialect::Dialect,
    endpoint::Endpoint,
    error::ApiError,
    event::EventType,
    id::{AccountNo, Code},
    mode::Mode,
    money::{Coin, Rate},
    outbox::AttemptResult,
    rng::Seed,
    service::ServiceConfig,
    sighting::{Depth, Disappearance, Sighting},
    time::{Span, Timestamp},
};
use reference_wire::{Api, AttemptRequest, Request, Response};
use serde_json::Value;

/// The time at the start of every test: 2026-09-20T10:00:00Z.
pub(crate) const START: Timestamp = Timestamp(1_789_898_400_000_000);
/// The base URL that clients use.
pub(crate) const BASE: &str = "https://api.svc.example";
/// The duration of a rate lock.
pub(crate) const LOCK: Span = Span::mins(30);
/// One microsecond.
pub(crate) const TICK: Span = Span::micros(1);

pub(crate) struct TestService {
    pub(crate) api: Api,
    /// The block height that reported sightings have.
    pub(crate) height: u64,
    pub(crate) now: Timestamp,
    /// The account that every test service has.
    pub(crate) acme: AccountNo,
    /// The live key of acme, with which most requests are sent.
    pub(crate) live_key: String,
    /// The test key of acme.
    pub(crate) test_key: String,
}

/// A request to be sent.
#[derive(Clone, Debug)]
pub(crate) struct TestRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: Option<String>,
    pub(crate) authorization: Option<Vec<u8>>,
    pub(crate) content_type: Option<Vec<u8>>,
    pub(crate) idempotency_key: Option<Vec<u8>>,
    pub(crate) body: Vec<u8>,
}

impl TestRequest {
    /// Creates a request without a key. The target may have a query after `?`.
    pub(crate) fn new(method: &str, target: &str) -> TestRequest {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (target, None),
        };
        TestRequest {
            method: method.to_owned(),
            path: path.to_owned(),
            query,
            authorization: None,
            content_type: None,
            idempotency_key: None,
            body: Vec::new(),
        }
    }

    pub(crate) fn key(mut self, key: &str) -> TestRequest {
        self.authorization = Some(format!("Bearer {key}").into_bytes());
        self
    }

    pub(crate) fn json(self, body: &Value) -> TestRequest {
        self.raw_body("application/json", body.to_string().into_bytes())
    }

    pub(crate) fn raw_body(mut self, content_type: &str, body: impl Into<Vec<u8>>) -> TestRequest {
        self.content_type = Some(content_type.as_bytes().to_vec());
        self.body = body.into();
        self
    }

    pub(crate) fn idempotency_key(mut self, idempotency_key: &str) -> TestRequest {
        self.idempotency_key = Some(idempotency_key.as_bytes().to_vec());
        self
    }
}

/// A received response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReceivedResponse(pub(crate) Response);

impl ReceivedResponse {
    pub(crate) fn status(&self) -> u16 {
        self.0.status
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.0.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.0.body).expect("responses are UTF-8")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.0.body).expect("responses are JSON")
    }

    /// Returns `data` of a successful response.
    #[track_caller]
    pub(crate) fn data(&self) -> Value {
        assert!((200..300).contains(&self.status()), "{} {}", self.status(), self.text());
        self.json()["data"].clone()
    }

    /// Returns the names of the invalid fields, sorted.
    pub(crate) fn invalid_fields(&self) -> Vec<String> {
        match &self.json()["errors"] {
            Value::Object(map) => map.keys().cloned().collect(),
            _ => Vec::new(),
        }
    }
}

impl TestService {
    /// Creates a service without a rate limit.
    pub(crate) fn new() -> TestService {
        TestService::with_seed_and_limit(Seed(7), None)
    }

    /// Creates a service with a limit of 120 requests per minute and key.
    pub(crate) fn with_rate_limit() -> TestService {
        TestService::with_seed_and_limit(Seed(7), Some(120))
    }

    pub(crate) fn with_seed_and_limit(seed: Seed, rate_limit: Option<u32>) -> TestService {
        let config = ServiceConfig {
            seed,
            dialect: Dialect::default(),
            public_url: "https://pay.svc.example".to_owned(),
            rate_limit,
            wallet_cache: None,
            key_tag: String::new(),
        };
        let mut api = Api::new(config);
        let acme = api
            .service
            .open_account(START, "acme", AccountKind::Organization, Settings::new("Acme"))
            .expect("a new id");
        for asset in Asset::ALL {
            // Round prices, so that amounts are easy to compute.
            let price = match asset {
                Asset::Btc => "60000",
                Asset::Eth => "3000",
                _ => "10",
            };
            for currency in [Currency::Eur, Currency::Usd] {
                api.service.on_rate(
                    START,
                    asset,
                    currency,
                    Some(Rate::parse(price).expect("the constant is valid")),
                );
            }
        }
        let mut service = TestService {
            api,
            height: 0,
            now: START,
            acme,
            live_key: String::new(),
            test_key: String::new(),
        };
        service.live_key = service.new_key(acme, Mode::Live);
        service.test_key = service.new_key(acme, Mode::Test);
        service
    }

    pub(crate) fn open_account(&mut self, id: &str) -> AccountNo {
        self.api
            .service
            .open_account(self.now, id, AccountKind::Personal, Settings::new(id))
            .expect("a new id")
    }

    pub(crate) fn new_key(&mut self, account: AccountNo, mode: Mode) -> String {
        match self.api.service.on_command(self.now, (account, mode), Command::CreateKey) {
            Ok(CommandResult::Key(_, key)) => key.reveal().to_owned(),
            other => panic!("creating a key returns the key: {other:?}"),
        }
    }

    pub(crate) fn book(&self, mode: Mode) -> &Book {
        self.api.service.account(self.acme).book(mode)
    }

    // Time.

    pub(crate) fn wait(&mut self, span: Span) {
        self.now = self.now.plus(span);
    }

    pub(crate) fn wait_until(&mut self, time: Timestamp) {
        assert!(time >= self.now);
        self.now = time;
    }

    /// Processes everything due by now.
    pub(crate) fn tick(&mut self) {
        self.api.service.on_tick(self.now);
    }

    // Requests.

    pub(crate) fn send(&mut self, request: &TestRequest) -> ReceivedResponse {
        let wire_request = Request {
            method: &request.method,
            path: &request.path,
            query: request.query.as_deref(),
            authorization: request.authorization.as_deref(),
            content_type: request.content_type.as_deref(),
            idempotency_key: request.idempotency_key.as_deref(),
            base: BASE,
            body: &request.body,
        };
        ReceivedResponse(self.api.respond(self.now, &wire_request))
    }

    /// Sends a request with acme's live key.
    pub(crate) fn request(&mut self, method: &str, target: &str) -> ReceivedResponse {
        self.send(&TestRequest::new(method, target).key(&self.live_key.clone()))
    }

    pub(crate) fn get(&mut self, target: &str) -> ReceivedResponse {
        self.request("GET", target)
    }

    /// Sends a `POST` with acme's live key.
    pub(crate) fn post(&mut self, path: &str, body: &Value) -> ReceivedResponse {
        self.send(&TestRequest::new("POST", path).key(&self.live_key.clone()).json(body))
    }

    /// Sends a `POST` with another key.
    pub(crate) fn post_as(&mut self, key: &str, path: &str, body: &Value) -> ReceivedResponse {
        self.send(&TestRequest::new("POST", path).key(key).json(body))
    }

    /// Creates an object with acme's live key and returns its code.
    #[track_caller]
    pub(crate) fn create(&mut self, path: &str, body: &Value) -> String {
        code_of(&self.post(path, body).data())
    }

    /// Creates a live charge of 150.00 EUR in BTC and returns its code: 0.0025 BTC are due, 0.002475 are enough.
    #[track_caller]
    pub(crate) fn create_charge(&mut self) -> String {
        self.create("/v1/charges", &serde_json::json!({"asset": "BTC", "amount": "150.00"}))
    }

    #[track_caller]
    pub(crate) fn read_charge(&mut self, code: &str) -> Value {
        self.get(&format!("/v1/charges/{code}")).data()
    }

    #[track_caller]
    pub(crate) fn charge_status(&mut self, code: &str) -> String {
        string(&self.read_charge(code)["status"])
    }

    #[track_caller]
    pub(crate) fn read_invoice(&mut self, code: &str) -> Value {
        self.get(&format!("/v1/invoices/{code}")).data()
    }

    /// Returns the types of the live events of a charge, oldest first, without `charge.`, separated by spaces.
    #[track_caller]
    pub(crate) fn event_types(&mut self, code: &str) -> String {
        let mut events = self.list(&format!("/v1/events?charge={code}&per_page=100"));
        events.reverse();
        let types: Vec<String> =
            events.iter().map(|event| string(&event["type"]).replace("charge.", "")).collect();
        types.join(" ")
    }

    /// Returns the records of a page.
    #[track_caller]
    pub(crate) fn list(&mut self, target: &str) -> Vec<Value> {
        self.get(target).data().as_array().expect("a list").clone()
    }

    /// Returns the number of live records of a list.
    pub(crate) fn total(&mut self, path: &str) -> u64 {
        self.get(path).json()["meta"]["total"].as_u64().expect("every list has a total")
    }

    // The chain.

    /// Reports a sighting of a live transfer to a charge: output 0 of the transaction.
    pub(crate) fn report_sighting(&mut self, charge: &str, txid: &str, amount: &str, depth: Depth) {
        self.report_sightings(charge, &[(txid, amount, depth)]);
    }

    /// Reports simultaneous sightings of live transfers to a charge: transaction ids, amounts and depths.
    pub(crate) fn report_sightings(&mut self, charge: &str, transfers: &[(&str, &str, Depth)]) {
        let charge = self.book(Mode::Live).find_charge(parse_code(charge)).expect("a charge of this service");
        let charge = self.book(Mode::Live).charge(charge);
        let sighting = |&(txid, amount, depth): &(&str, &str, Depth)| Sighting {
            mode: Mode::Live,
            asset: charge.terms.asset,
            address: charge.terms.deposit_address.clone(),
            txid: txid.to_owned(),
            output: 0,
            amount: Coin::parse(amount, charge.terms.asset).expect("an amount of the charge's coin"),
            depth,
            height: self.height,
        };
        let sightings: Vec<Sighting> = transfers.iter().map(sighting).collect();
        self.api.service.on_sightings(self.now, &sightings);
    }

    // The dashboard and the hosted pages.

    /// Executes a command of acme's owner in this mode.
    pub(crate) fn run_command(
        &mut self,
        mode: Mode,
        command: impl Into<Command>,
    ) -> Result<CommandResult, ApiError> {
        self.api.service.on_command(self.now, (self.acme, mode), command)
    }

    pub(crate) fn change_settings(&mut self, draft: SettingsDraft) {
        self.run_command(Mode::Live, Command::ChangeSettings(Box::new(draft)))
            .expect("the settings are valid");
    }

    /// Accepts late payments of a live charge: those of this transaction, or all that are confirmed.
    pub(crate) fn accept_late_payments(&mut self, charge: &str, txid: Option<&str>) -> Result<(), ApiError> {
        let command = BookCommand::AcceptLate { charge: parse_code(charge), txid: txid.map(str::to_owned) };
        self.run_command(Mode::Live, command).map(drop)
    }

    pub(crate) fn visit(&mut self, visit: Visit) -> Result<VisitResult, ApiError> {
        self.api.service.on_visit(self.now, visit)
    }

    /// Chooses a coin on the page of a live invoice, and returns the code of the charge.
    pub(crate) fn choose_coin(&mut self, invoice: &str, asset: Asset) -> Result<String, ApiError> {
        match self.visit(Visit::ChooseCoin { invoice: parse_code(invoice), asset })? {
            VisitResult::Charge(account, mode, no) => {
                Ok(self.api.service.account(account).book(mode).charge(no).code.to_string())
            }
            VisitResult::Page => panic!("choosing a coin leads to a charge"),
        }
    }

    // Deliveries.

    pub(crate) fn add_endpoint(&mut self, mode: Mode, url: &str, events: &[EventType]) -> Code {
        let events = events.iter().copied().collect();
        match self.run_command(mode, BookCommand::AddEndpoint { url: url.to_owned(), events }) {
            Ok(CommandResult::Endpoint(no)) => self.book(mode).endpoint(no).id,
            other => panic!("adding an endpoint returns it: {other:?}"),
        }
    }

    pub(crate) fn endpoint(&self, mode: Mode, id: Code) -> &Endpoint {
        self.book(mode).endpoints().iter().find(|endpoint| endpoint.id == id).expect("the endpoint was added")
    }

    /// Starts the next delivery attempt that is due now.
    pub(crate) fn poll_delivery(&mut self) -> Option<(AccountNo, Mode, AttemptRequest)> {
        self.api.poll_delivery(self.now)
    }

    /// Makes all delivery attempts that are due now, each with this result; returns their modes and requests.
    pub(crate) fn attempt_all(&mut self, result: &AttemptResult) -> Vec<(Mode, AttemptRequest)> {
        let mut attempts = Vec::new();
        while let Some((account, mode, attempt)) = self.poll_delivery() {
            let book = (account, mode);
            self.api.service.on_attempt_result(self.now, book, attempt.delivery, result.clone());
            attempts.push((mode, attempt));
        }
        attempts
    }
}

/// The depth of an unconfirmed transfer.
pub(crate) const MEMPOOL: Depth = Depth::Confirmations(0);
pub(crate) const DROPPED: Depth = Depth::Absent(Disappearance::Dropped);

pub(crate) const fn confirmed(confirmations: u32) -> Depth {
    Depth::Confirmations(confirmations)
}

#[track_caller]
pub(crate) fn parse_code(text: &str) -> Code {
    Code::parse(text).expect("a code")
}

/// Returns the text of a JSON string.
#[track_caller]
pub(crate) fn string(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is a string")).to_owned()
}

#[track_caller]
pub(crate) fn code_of(object: &Value) -> String {
    string(&object["code"])
}

/// Returns JSON with line breaks and indentation. The order of fields and the notation of numbers do not change.
pub(crate) fn indent_json(body: &[u8]) -> String {
    let text = std::str::from_utf8(body).expect("JSON is UTF-8");
    let mut out = String::new();
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let mut chars = text.chars().peekable();
    let start_line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(c) = chars.next() {
        if in_string {
            out.push(c);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '{' | '[' => {
                out.push(c);
                if let Some(end) = chars.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    start_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth -= 1;
                start_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                start_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            '"' => {
                out.push(c);
                in_string = true;
            }
            other => out.push(other),
        }
    }
    out
}
