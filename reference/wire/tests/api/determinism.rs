//! The same seed and the same inputs give the same bytes, the modes are independent, and time never decreases. Also
//! the formats of account ids, keys, codes and event ids.

use proptest::{collection::vec, prelude::*, sample::select};
use reference_core::{
    account::{AccountKind, Settings},
    asset::Asset,
    command::{BookCommand, Visit},
    event::EventType,
    mode::Mode,
    outbox::AttemptResult,
    rng::Seed,
    time::Span,
};
use serde_json::{Value, json};

use crate::test_service::{TICK, TestRequest, TestService, parse_code};

/// An operation in one mode.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    /// Creates a charge in a coin.
    CreateCharge(&'static str),
    CreateLink,
    CreateInvoice,
    /// Chooses a coin for the newest invoice.
    ChooseCoin(&'static str),
    ViewInvoice,
    /// Reports a payment of the newest charge with this number of confirmations.
    PayCharge(u32),
    CancelCharge,
    RefundCharge,
    AcceptLatePayment,
    /// Sends `GET` to a path.
    Read(&'static str),
    AddEndpoint,
    SendTest,
    RotateSecret,
    /// Makes all due delivery attempts of both modes, each with this status.
    AttemptAll(u16),
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => select(&["BTC", "ETH", "XMR", "USDT_TRON"][..]).prop_map(Op::CreateCharge),
        1 => Just(Op::CreateLink),
        2 => Just(Op::CreateInvoice),
        2 => select(&["BTC", "LTC"][..]).prop_map(Op::ChooseCoin),
        1 => Just(Op::ViewInvoice),
        4 => (0_u32..20).prop_map(Op::PayCharge),
        1 => Just(Op::CancelCharge),
        1 => Just(Op::RefundCharge),
        1 => Just(Op::AcceptLatePayment),
        3 => select(&["/v1/account", "/v1/charges?per_page=2", "/v1/charges?page=2&per_page=2", "/v1/events", "/v1/invoices"][..])
            .prop_map(Op::Read),
        1 => Just(Op::AddEndpoint),
        1 => Just(Op::SendTest),
        1 => Just(Op::RotateSecret),
        4 => select(&[200_u16, 500][..]).prop_map(Op::AttemptAll),
    ]
}

/// A run of operations on a service.
struct Run {
    service: TestService,
    /// The responses, command results and delivery attempts of each mode, in order and with their times.
    observations: [Vec<String>; 2],
}

impl Run {
    fn new(seed: u64) -> Run {
        Run {
            service: TestService::with_seed_and_limit(Seed(seed), Some(120)),
            observations: [Vec::new(), Vec::new()],
        }
    }

    fn record_observation(&mut self, mode: Mode, text: String) {
        self.observations[mode as usize].push(format!("{} {text}", self.service.now));
    }

    /// Sends a request with the key of a mode, and records the response.
    fn call(&mut self, mode: Mode, method: &str, target: &str, body: Option<Value>) {
        let key =
            if mode == Mode::Live { self.service.live_key.clone() } else { self.service.test_key.clone() };
        let mut request = TestRequest::new(method, target).key(&key);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = self.service.send(&request);
        let text = format!("{} {:?} {}", response.status(), response.0.headers, response.text());
        self.record_observation(mode, text);
    }

    fn newest_charge(&self, mode: Mode) -> Option<String> {
        let list = reference_core::call::List::Charges { status: None, link: None };
        let book = self.service.book(mode);
        book.listing(&list).newest().map(|member| book.public_id(&list, member))
    }

    fn newest_invoice(&self, mode: Mode) -> Option<String> {
        let list = reference_core::call::List::Invoices { status: None };
        let book = self.service.book(mode);
        book.listing(&list).newest().map(|member| book.public_id(&list, member))
    }

    fn run_command(&mut self, mode: Mode, command: BookCommand) {
        let result = self.service.run_command(mode, command);
        self.record_observation(mode, format!("{result:?}"));
    }

    fn visit(&mut self, mode: Mode, visit: Visit) {
        let result = self.service.visit(visit);
        self.record_observation(mode, format!("{result:?}"));
    }

    fn pay(&mut self, mode: Mode, charge: &str, depth: u32) {
        let book = self.service.book(mode);
        let charge =
            book.charge(book.find_charge(parse_code(charge)).expect("the book has its newest charge"));
        let sighting = reference_core::sighting::Sighting {
            mode,
            asset: charge.terms.asset,
            address: charge.terms.deposit_address.clone(),
            // Only three transactions, so that sightings often repeat one with another depth.
            txid: format!("t{}", depth % 3),
            output: 0,
            amount: charge.terms.asset_amount,
            depth: reference_core::sighting::Depth::Confirmations(depth),
            height: 0,
        };
        self.service.api.service.on_sightings(self.service.now, &[sighting]);
    }

    /// Makes all due delivery attempts of both modes, each with this status. Records each attempt for its own mode,
    /// and the operation itself for `mode`.
    fn attempt_all(&mut self, mode: Mode, status: u16) {
        let attempts = self.service.attempt_all(&AttemptResult::Response(status));
        for (attempt_mode, attempt) in attempts {
            let (secret, body) = (attempt.secret.reveal(), String::from_utf8_lossy(&attempt.body));
            self.record_observation(attempt_mode, format!("{} {secret} {body}", attempt.id));
        }
        self.record_observation(mode, "all attempts made".to_owned());
    }

    /// Performs an operation; one that lacks its object does nothing.
    fn perform(&mut self, mode: Mode, op: Op) {
        let charge = self.newest_charge(mode);
        let invoice = self.newest_invoice(mode);
        let endpoint = self.service.book(mode).endpoints().last().map(|endpoint| endpoint.id);
        match (op, charge, invoice, endpoint) {
            (Op::CreateCharge(asset), ..) => {
                self.call(mode, "POST", "/v1/charges", Some(json!({"asset": asset, "amount": "12.34"})));
            }
            (Op::CreateLink, ..) => {
                self.call(mode, "POST", "/v1/payment-links", Some(json!({"title": "A hat", "amount": "1"})));
            }
            (Op::CreateInvoice, ..) => self.call(mode, "POST", "/v1/invoices", Some(json!({"amount": "5"}))),
            (Op::ChooseCoin(asset), _, Some(invoice), _) => {
                let asset = Asset::parse(asset).expect("the operation has a coin code");
                self.visit(mode, Visit::ChooseCoin { invoice: parse_code(&invoice), asset });
            }
            (Op::ViewInvoice, _, Some(invoice), _) => {
                self.visit(mode, Visit::ViewInvoice(parse_code(&invoice)))
            }
            (Op::PayCharge(depth), Some(charge), ..) => self.pay(mode, &charge, depth),
            (Op::CancelCharge, Some(charge), ..) => {
                self.call(mode, "POST", &format!("/v1/charges/{charge}/cancel"), None);
            }
            (Op::RefundCharge, Some(charge), ..) => {
                let path = format!("/v1/charges/{charge}/refunds");
                self.call(mode, "POST", &path, Some(json!({"amount": "0.0001"})));
            }
            (Op::AcceptLatePayment, Some(charge), ..) => {
                self.run_command(mode, BookCommand::AcceptLate { charge: parse_code(&charge), txid: None });
            }
            (Op::Read(target), ..) => self.call(mode, "GET", target, None),
            (Op::AddEndpoint, ..) => {
                let url = "https://shop.example/hook".to_owned();
                self.run_command(mode, BookCommand::AddEndpoint { url, events: EventType::ALL.into() });
            }
            (Op::SendTest, _, _, Some(endpoint)) => self.run_command(mode, BookCommand::SendTest(endpoint)),
            (Op::RotateSecret, _, _, Some(endpoint)) => {
                self.run_command(mode, BookCommand::RotateSecret(endpoint))
            }
            (Op::AttemptAll(status), ..) => self.attempt_all(mode, status),
            _ => {}
        }
    }
}

/// Operations, each with the time before it and its mode.
type Script = Vec<(Span, Mode, Op)>;

fn any_script() -> impl Strategy<Value = Script> {
    let wait = select(vec![Span(0), Span(0), Span(1), Span::secs(20), Span::mins(31)]);
    vec((wait, select(&Mode::ALL[..]), any_op()), 1..60)
}

/// Runs the operations of the script that are in these modes.
fn run(seed: u64, script: &Script, modes: &[Mode]) -> Run {
    let mut run = Run::new(seed);
    for &(wait, mode, op) in script {
        run.service.wait(wait);
        // A host wakes the service when something is due, independent of calls.
        run.service.tick();
        if modes.contains(&mode) {
            run.perform(mode, op);
        }
    }
    run
}

/// Returns the id and the body of each delivery of a mode.
fn deliveries(run: &Run, mode: Mode) -> Vec<(String, String)> {
    let book = run.service.book(mode);
    let body = |delivery| {
        String::from_utf8_lossy(&reference_wire::delivery_body(
            book,
            delivery,
            &run.service.api.service.config().public_url,
        ))
        .into_owned()
    };
    book.outbox().iter().map(|delivery| (delivery.id.to_string(), body(delivery))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_same_inputs_give_the_same_bytes(seed in any::<u64>(), script in any_script()) {
        prop_assert_eq!(run(seed, &script, &Mode::ALL).observations, run(seed, &script, &Mode::ALL).observations);
    }

    /// Checks that the results of one mode are the same without the operations of the other.
    #[test]
    fn the_modes_do_not_interfere(seed in any::<u64>(), script in any_script()) {
        // `AttemptAll` makes the attempts of both modes, so it would always interfere. The test above covers it.
        let script: Script = script.into_iter().filter(|(_, _, op)| !matches!(op, Op::AttemptAll(_))).collect();
        let both = run(seed, &script, &Mode::ALL);
        for mode in Mode::ALL {
            let alone = run(seed, &script, &[mode]);
            prop_assert_eq!(&alone.observations[mode as usize], &both.observations[mode as usize]);
            prop_assert!(deliveries(&alone, mode) == deliveries(&both, mode), "the deliveries differ");
        }
    }
}

#[test]
fn another_seed_gives_other_keys_codes_addresses_and_event_ids() {
    let ids = |seed: u64| {
        let mut service = TestService::with_seed_and_limit(Seed(seed), None);
        let charge = service.create_charge();
        let object = service.read_charge(&charge);
        [
            service.live_key.clone(),
            charge,
            object["deposit_address"].to_string(),
            service.list("/v1/events")[0]["id"].to_string(),
        ]
    };
    for (one, other) in ids(1).into_iter().zip(ids(2)) {
        assert_ne!(one, other);
    }
}

#[test]
fn account_ids_are_unique_and_1_to_40_lowercase_letters_digits_and_hyphens() {
    let mut service = TestService::new();
    let (longest, too_long) = ("a".repeat(40), "a".repeat(41));
    for (id, status) in [
        ("a-1", 201),
        ("z9", 201),
        (longest.as_str(), 201),
        (too_long.as_str(), 422),
        ("", 422),
        ("Bolt", 422),
        ("a_b", 422),
        ("b\u{fc}cher", 422),
        // The account of every `TestService`.
        ("acme", 409),
    ] {
        let account =
            service.api.service.open_account(service.now, id, AccountKind::Personal, Settings::new(id));
        assert_eq!(account.map_or_else(|error| error.status(), |_| 201), status, "{id}");
    }
}

#[test]
#[should_panic(expected = "the time passed by a host never decreases")]
fn time_never_decreases() {
    let mut service = TestService::new();
    service.now = service.now.minus(TICK);
    service.tick();
}

#[test]
fn keys_codes_and_event_ids_have_the_documented_format() {
    let mut service = TestService::new();
    let charge = service.create_charge();
    assert!(
        charge.len() == 12 && charge.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()),
        "{charge}"
    );
    for (key, prefix) in [(&service.live_key, "svc_live_"), (&service.test_key, "svc_test_")] {
        let rest = key.strip_prefix(prefix).expect("the prefix names the mode");
        assert!(rest.len() == 40 && rest.bytes().all(|b| b.is_ascii_alphanumeric()), "{rest}");
    }
    let event = service.list("/v1/events")[0]["id"].as_str().expect("a string").to_owned();
    assert_eq!(event.as_bytes()[14], b'7', "a UUID of version 7: {event}");
}
