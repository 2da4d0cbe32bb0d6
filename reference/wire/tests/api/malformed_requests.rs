//! Malformed and extreme requests. Each gets a valid response, and a refused one changes nothing.

use proptest::{collection::vec, option, prelude::*, sample::select};
use reference_core::{
    asset::Asset,
    command::Visit,
    mode::Mode,
    sighting::{Depth, Disappearance},
};
use serde::de::IgnoredAny;
use serde_json::json;

use crate::test_service::{MEMPOOL, ReceivedResponse, TestRequest, TestService, confirmed, parse_code};

/// Returns a service with an object of every kind, and their ids: a pending, an unconfirmed and a paid charge, a link, an
/// invoice, an event, a charge of the other mode, and an unknown id.
pub(crate) fn populated_service() -> (TestService, Vec<String>) {
    let mut service = TestService::new();
    let link = service.create("/v1/payment-links", &json!({"title": "A hat", "pricing_type": "open"}));
    let pending =
        service.create("/v1/charges", &json!({"asset": "BTC", "amount": "150", "payment_link": link}));
    let unconfirmed = service.create_charge();
    service.report_sighting(&unconfirmed, "a", "0.001", MEMPOOL);
    let paid = service.create_charge();
    service.report_sighting(&paid, "b", "0.0025", confirmed(2));
    let invoice =
        service.create("/v1/invoices", &json!({"amount": "1", "customer_email": "ada@shop.example"}));
    service.choose_coin(&invoice, Asset::Eth).unwrap();
    service.visit(Visit::ViewInvoice(parse_code(&invoice))).unwrap();
    let event = service.list("/v1/events")[0]["id"].as_str().unwrap().to_owned();
    let test = service.test_key.clone();
    let foreign = service.post_as(&test, "/v1/charges", &json!({"asset": "BTC", "amount": "1"})).data();
    let foreign = foreign["code"].as_str().unwrap().to_owned();
    (service, vec![pending, unconfirmed, paid, link, invoice, event, foreign, "aaaaaaaaaaaa".to_owned()])
}

/// Returns the state that a refused write must not change: the responses to reads, and the numbers of events, e-mails
/// and deliveries.
pub(crate) fn read_everything(service: &mut TestService) -> Vec<String> {
    let mut all = Vec::new();
    for key in [service.live_key.clone(), service.test_key.clone()] {
        for list in ["account", "charges?per_page=100", "invoices?per_page=100", "payment-links?per_page=100"]
        {
            all.push(
                service.send(&TestRequest::new("GET", &format!("/v1/{list}")).key(&key)).text().to_owned(),
            );
        }
        let events = service.send(&TestRequest::new("GET", "/v1/events?per_page=1").key(&key)).json();
        all.push(events["meta"]["total"].to_string());
    }
    for mode in Mode::ALL {
        let book = service.book(mode);
        all.push(format!(
            "{} mails, {} deliveries",
            book.mails().iter().count(),
            book.outbox().iter().count()
        ));
    }
    all
}

/// Checks the rules that every response follows, independent of the request.
pub(crate) fn check_response_rules(
    request: &TestRequest,
    response: &ReceivedResponse,
) -> Result<(), TestCaseError> {
    let status = response.status();
    prop_assert!(
        matches!(status, 200 | 201 | 400 | 401 | 404 | 405 | 409 | 413 | 415 | 422 | 429 | 503),
        "{status} for {request:?}"
    );
    prop_assert!(
        serde_json::from_slice::<IgnoredAny>(&response.0.body).is_ok(),
        "not JSON: {}",
        response.text()
    );
    if status >= 400 {
        let body = response.json();
        prop_assert!(body["message"].as_str().is_some_and(|message| !message.is_empty()));
        let errors = body["errors"].as_object();
        prop_assert_eq!(errors.is_some(), status == 422, "{}", response.text());
        prop_assert!(errors.is_none_or(|errors| errors.values().all(|list| list[0].is_string())));
    }
    prop_assert_eq!(response.header("allow").is_some(), status == 405);
    prop_assert_eq!(response.header("www-authenticate").is_some(), status == 401);
    // Too many requests, or no rate for the pair: both are temporary.
    prop_assert_eq!(response.header("retry-after").is_some(), matches!(status, 429 | 503));
    for (name, value) in &response.0.headers {
        prop_assert!(value.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{name}: {value:?}");
    }
    Ok(())
}

/// The names of fields that requests have.
pub(crate) const FIELDS: &[&str] = &[
    "asset",
    "amount",
    "currency",
    "payment_link",
    "customer",
    "customer_email",
    "customer_name",
    "description",
    "metadata",
    "custom_fields",
    "title",
    "pricing_type",
    "suggested_amounts",
    "min_amount",
    "max_amount",
    "accepted_assets",
    "success_url",
    "cancel_url",
    "collect_name",
    "require_email",
    "success_message",
    "expires_at",
    "max_payments",
    "items",
    "quantity",
    "unit_amount",
    "memo",
    "send_email",
    "due_at",
    "email",
    "label",
    "value",
    "required",
    "txid",
    "reason",
];
/// Names of fields that no request has.
const UNKNOWN_FIELDS: &[&str] = &["", "\u{0}", "a.b"];
/// Values of string fields, valid and invalid ones.
const STRINGS: &[&str] = &[
    "BTC",
    "XMR",
    "USDT_TRON",
    "EUR",
    "CHF",
    "open",
    "fixed",
    "1",
    "0.01",
    "150.00",
    "-1",
    "0",
    "1e5",
    "99999999999999999999",
    "ada@shop.example",
    "2026-10-15",
    "2026-10-15T00:00:00Z",
    "https://acme.example/",
    "Size",
    "",
    "x",
    "\u{0}\u{202e}",
    "{}",
];

/// Generates JSON, mostly of known field names and values, so that it is refused late. Some of it is invalid.
fn json_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        8 => select(STRINGS).prop_map(|string| json!(string).to_string()),
        2 => any::<i64>().prop_map(|n| n.to_string()),
        1 => select(&["null", "true", "false", "1e999", "0.50", "-0", "\"\\ud800\"", "nul", "\"\\u0000\""][..])
            .prop_map(str::to_owned),
        1 => ".{0,300}".prop_map(|text| json!(text).to_string()),
    ];
    leaf.prop_recursive(4, 40, 8, |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(","))),
            3 => vec((select([FIELDS, UNKNOWN_FIELDS].concat()), inner), 0..7).prop_map(|entries| {
                let entries: Vec<String> =
                    entries.into_iter().map(|(name, value)| format!("{}:{value}", json!(name))).collect();
                format!("{{{}}}", entries.join(","))
            }),
        ]
    })
}

/// Generates bodies: JSON, JSON with one changed byte, random bytes, deep lists, and none.
fn a_body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => json_text().prop_map(String::into_bytes),
        2 => (json_text(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(text, position, byte)| {
            let mut bytes = text.into_bytes();
            let position = position.index(bytes.len());
            bytes[position] = byte;
            bytes
        }),
        1 => vec(any::<u8>(), 0..200),
        1 => (1_usize..300_000).prop_map(|len| b"[".repeat(len)),
        1 => Just(Vec::new()),
    ]
}

/// Generates paths in which `{n}` is replaced by the id of the nth object of the populated service.
fn a_path() -> impl Strategy<Value = String> {
    let kind = select(&["charges", "payment-links", "invoices", "events", "account", "nowhere"][..]);
    let action = select(&["cancel", "refunds", "archive", "send", "void", "nothing", ""][..]);
    let id = prop_oneof![8 => (0_usize..8).prop_map(|n| format!("{{{n}}}")), 1 => "[ -~]{0,40}", 1 => "(%[0-9a-f]{2}){0,20}"];
    prop_oneof![
        4 => kind.clone().prop_map(|kind| format!("/v1/{kind}")),
        4 => (kind.clone(), id.clone()).prop_map(|(kind, id)| format!("/v1/{kind}/{id}")),
        6 => (kind, id, action).prop_map(|(kind, id, action)| format!("/v1/{kind}/{id}/{action}")),
        1 => "[ -~]{0,60}",
        1 => ".{0,60}",
    ]
}

/// Generates query strings; `{n}` as in [`a_path`].
fn a_query() -> impl Strategy<Value = String> {
    let name = select(
        &["page", "per_page", "status", "type", "charge", "invoice", "payment_link", "anchor", "x", ""][..],
    );
    let value = prop_oneof![
        3 => (0_usize..8).prop_map(|n| format!("{{{n}}}")),
        3 => select(&["1", "2", "0", "101", "paid", "pending", "open", "charge.paid", "-1", "", "%ff", "%", "%zz", "99999999999999999999"][..]).prop_map(str::to_owned),
        1 => any::<u64>().prop_map(|n| n.to_string()),
        1 => ".{0,40}",
    ];
    let pairs = vec((name, value), 0..5).prop_map(|pairs| {
        pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
    });
    prop_oneof![6 => pairs, 1 => ".{0,100}"]
}

prop_compose! {
    /// A request without a key, and the mode of the key that it gets.
    fn a_request()(
        method in prop_oneof![
            8 => select(&["GET", "POST", "POST", "PATCH", "DELETE", "HEAD", "PUT"][..]).prop_map(str::to_owned),
            1 => "[A-Za-z]{0,10}",
        ],
        path in a_path(),
        query in option::of(a_query()),
        key in prop_oneof![8 => Just(Some("live")), 3 => Just(Some("test")), 1 => Just(None)],
        raw_authorization in option::weighted(0.05, vec(any::<u8>(), 0..80)),
        content_type in prop_oneof![
            9 => Just(Some(b"application/json".to_vec())),
            1 => option::of(vec(any::<u8>(), 0..40)),
        ],
        idempotency_key in prop_oneof![
            3 => Just(None),
            2 => select(&["k1", "k2"][..]).prop_map(|key| Some(key.as_bytes().to_vec())),
            1 => vec(any::<u8>(), 0..300).prop_map(Some),
        ],
        body in a_body(),
    ) -> (TestRequest, Option<&'static str>) {
        let authorization = raw_authorization;
        let request = TestRequest { method, path, query, authorization, content_type, idempotency_key, body };
        (request, key)
    }
}

/// Replaces `{n}` by ids, and adds the live or the test key, unless the request has random credentials.
fn with_ids_and_key(
    (request, key): &(TestRequest, Option<&str>),
    service: &TestService,
    ids: &[String],
) -> TestRequest {
    let fill = |text: &str| {
        ids.iter().enumerate().fold(text.to_owned(), |text, (n, id)| text.replace(&format!("{{{n}}}"), id))
    };
    let mut request = request.clone();
    request.path = fill(&request.path);
    request.query = request.query.map(|query| fill(&query));
    let key = match key {
        Some("live") => &service.live_key,
        Some(_) => &service.test_key,
        None => return request,
    };
    if request.authorization.is_none() { request.key(key) } else { request }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_request_gets_a_valid_response_and_a_refused_one_changes_nothing(requests in vec(a_request(), 1..24)) {
        let (mut service, ids) = populated_service();
        let mut before = read_everything(&mut service);
        for request in &requests {
            let request = with_ids_and_key(request, &service, &ids);
            let response = service.send(&request);
            check_response_rules(&request, &response)?;
            let after = read_everything(&mut service);
            let is_read = matches!(request.method.as_str(), "GET" | "HEAD");
            let is_replayed = response.header("idempotent-replayed").is_some();
            if response.status() >= 400 || is_read || is_replayed {
                prop_assert_eq!(&after, &before, "{:?} changed something", request);
            }
            before = after;
        }
    }

    #[test]
    fn a_charge_with_a_malformed_field_is_created_or_refused_without_changes(name in select([FIELDS, UNKNOWN_FIELDS].concat()), value in json_text()) {
        let (mut service, _) = populated_service();
        let live = service.live_key.clone();
        let other_fields = match name {
            "asset" => "\"amount\":\"1\"".to_owned(),
            "amount" => "\"asset\":\"BTC\"".to_owned(),
            _ => "\"asset\":\"BTC\",\"amount\":\"1\"".to_owned(),
        };
        let body = format!("{{{other_fields},{}:{value}}}", json!(name));
        let before = read_everything(&mut service);
        let request = TestRequest::new("POST", "/v1/charges").key(&live).raw_body("application/json", body);
        let response = service.send(&request);
        check_response_rules(&request, &response)?;
        let after = read_everything(&mut service);
        prop_assert_eq!(after != before, response.status() == 201, "{}", response.text());
    }

    #[test]
    fn no_sighting_panics(
        sightings in vec((0_usize..3, "[a-z0-9]{0,80}", 0_u32..3, any::<u128>(), any::<u32>(), 0_usize..5), 1..40),
    ) {
        let (mut service, ids) = populated_service();
        // `variant` 0 is a double-spent transfer, 4 one of the other mode.
        for (nth, txid, output, amount, confirmations, variant) in sightings {
            let charge = service.book(Mode::Live).find_charge(parse_code(&ids[nth])).unwrap();
            let terms = service.book(Mode::Live).charge(charge).terms.clone();
            let amount_end = reference_core::money::Coin::MAX.atto() + 1;
            let sighting = reference_core::sighting::Sighting {
                mode: if variant == 4 { Mode::Test } else { Mode::Live },
                asset: if output == 2 { Asset::Xmr } else { terms.asset },
                address: terms.deposit_address.clone(),
                txid,
                output,
                amount: reference_core::money::Coin::new(amount % amount_end).unwrap(),
                depth: match variant {
                    0 => Depth::Absent(Disappearance::DoubleSpent),
                    _ => Depth::Confirmations(confirmations),
                },
                height: 0,
            };
            service.api.service.on_sightings(service.now, &[sighting]);
            let response = service.get(&format!("/v1/charges/{}", ids[nth]));
            prop_assert_eq!(response.status(), 200);
        }
        read_everything(&mut service);
    }
}

#[test]
fn at_most_20_unknown_keys_are_reported() {
    let mut service = TestService::new();
    let customer: serde_json::Map<_, _> = (0..20_000).map(|n| (format!("{n:05}"), json!(1))).collect();
    let response =
        service.post("/v1/charges", &json!({"asset": "BTC", "amount": "10", "customer": customer}));
    assert_eq!(response.status(), 422);
    assert_eq!(response.json()["errors"].as_object().map(serde_json::Map::len), Some(20));
}
