//! Tests of the table of routes, and of common properties of calls.

use reference_core::{
    rng::Seed,
    time::{Span, Timestamp},
};

use super::*;
use crate::sandbox::Setup;

pub(in crate::sandbox) fn world() -> Sandbox {
    Sandbox::new(&Setup::new(
        Seed(1),
        Timestamp::parse("2026-01-05T09:00:00Z").unwrap(),
        "https://pay.example",
    ))
}

/// Returns a request with a JSON body. `target` is the path and query.
fn request<'r>(method: &'r str, target: &'r str, body: &'r str) -> Request<'r> {
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    Request { query, ..Request::json("https://pay.example", method, path, body) }
}

/// Returns the status and the body of a response.
fn parse_response(response: &Response) -> (u16, Value) {
    (response.status, serde_json::from_slice(&response.body).expect("JSON"))
}

fn call(world: &mut Sandbox, method: &str, target: &str, body: &str) -> (u16, Value) {
    let now = world.now();
    parse_response(&world.respond(now, &request(method, target, body)))
}

#[track_caller]
fn call_ok(world: &mut Sandbox, method: &str, target: &str, body: &str) -> Value {
    let (status, response) = call(world, method, target, body);
    assert_eq!(status / 100, 2, "{method} {target} {body}: {response}");
    response
}

/// Creates an object by a request with the world's own live key; returns its id.
#[track_caller]
fn create_object(world: &mut Sandbox, path: &str, body: &str) -> String {
    let bearer = format!("Bearer {}", world.first_keys().live);
    let request = Request { authorization: Some(bearer.as_bytes()), ..request("POST", path, body) };
    let (status, response) = parse_response(&world.respond(world.now(), &request));
    assert_eq!(status, 201, "{path}: {response}");
    response["data"]["id"].as_str().expect("an id").to_owned()
}

/// Checks the status of a call in a new world, and that the body contains `part`.
#[track_caller]
fn check(method: &str, path: &str, body: &str, status: u16, part: &str) {
    let (actual, response) = call(&mut world(), method, path, body);
    assert_eq!(actual, status, "{method} {path} {body}: {response}");
    assert!(response.to_string().contains(part), "{part:?} in {response}");
}

#[test]
fn the_response_to_an_invalid_call_states_what_is_allowed() {
    check("POST", "/sandbox/advance", r#"{"by":"1y"}"#, 422, "30s, 250us or 1h30m");
    check("POST", "/sandbox/advance", r#"{"to":"today"}"#, 422, "2026-01-05T09:00:00Z");
    check("POST", "/sandbox/advance", r#"{"to":"2025-01-01T00:00:00Z"}"#, 422, "cannot be moved back");
    check("POST", "/sandbox/advance", "{}", 422, "Give either by");
    check("POST", "/sandbox/advance", r#"{"by":"1s","fast":true}"#, 422, "fast field is not known here");
    check("POST", "/sandbox/advance", "[1]", 400, "not a JSON object");
    // Some clients encode an empty map as a list.
    check("POST", "/sandbox/advance", "[]", 422, "Give either by");
    check("POST", "/sandbox/stall", r#"{"asset":"BTC","for":"long"}"#, 422, "30s or 2h");
    check("POST", "/sandbox/pay", r#"{"charge":"aaaaaaaaaaaa"}"#, 422, "charge is invalid");
    check("POST", "/sandbox/drop", r#"{"txid":"00"}"#, 422, "no chain has");
    check("POST", "/sandbox/reorg", r#"{"asset":"BTC"}"#, 422, "depth field is required");
    check(
        "PUT",
        "/sandbox/wallets",
        r#"{"asset":"BTC","key":"xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHi"}"#,
        422,
        "private key",
    );
    check("POST", "/sandbox/endpoints", r#"{"url":"https://shop.example"}"#, 422, "such as shop.sim");
    check("POST", "/sandbox/restart", "", 409, "no journal");
    check("GET", "/sandbox/advance", "", 405, "POST");
    check("GET", "/sandbox/nowhere", "", 404, "Not found.");
}

#[test]
fn null_and_empty_strings_count_as_missing() {
    let mut world = world();
    for advance in [r#"{"by":"1s","to":""}"#, r#"{"by":null,"to":"2026-01-05T09:00:02Z"}"#] {
        call_ok(&mut world, "POST", "/sandbox/advance", advance);
    }
    check("POST", "/sandbox/advance", r#"{"by":null,"to":""}"#, 422, "Give either by");
    let charge =
        create_object(&mut world, "/v1/charges", r#"{"asset":"BTC","amount":"49.90","currency":"EUR"}"#);
    let pay = format!(r#"{{"charge":"{charge}","mode":null,"address":""}}"#);
    call_ok(&mut world, "POST", "/sandbox/pay", &pay);
}

#[test]
fn a_path_has_one_route_that_lists_all_its_methods() {
    let segments = |path: &'static str| -> Vec<&str> {
        path.split('/').map(|part| if part.starts_with('{') { "{}" } else { part }).collect()
    };
    let paths: std::collections::BTreeSet<_> = ROUTES.iter().map(|route| segments(route.path)).collect();
    assert_eq!(paths.len(), ROUTES.len());
    for route in ROUTES {
        let methods: Vec<&str> = route.methods.iter().map(|route_method| route_method.method).collect();
        assert_eq!(route.allow.replace("GET, HEAD", "GET"), methods.join(", "), "{}", route.path);
    }
}

/// Returns a path with an id in place of the braces: the one in `ids` with a matching start of the path.
fn fill_path(path: &str, ids: &[(&str, String)]) -> String {
    let id = ids.iter().find(|(start, _)| path.starts_with(start)).map_or("acme", |(_, id)| id);
    path.replace("{id}", id).replace("{account}/{mode}", "acme/live")
}

#[test]
fn every_call_but_get_refuses_unknown_fields() {
    let mut world = world();
    let endpoint =
        call_ok(&mut world, "POST", "/sandbox/endpoints", r#"{"mode":"live","url":"https://shop.sim"}"#);
    let endpoint = endpoint["endpoint"]["id"].as_str().unwrap().to_owned();
    let test = call_ok(&mut world, "POST", &format!("/sandbox/endpoints/{endpoint}/test"), "");
    let key = call_ok(&mut world, "POST", "/sandbox/keys", r#"{"mode":"live"}"#);
    let ids = [
        ("/sandbox/endpoints", endpoint),
        ("/sandbox/deliveries", test["delivery"].as_str().unwrap().to_owned()),
        ("/sandbox/keys", key["key"]["id"].as_str().unwrap().to_owned()),
        (
            "/sandbox/charges",
            create_object(&mut world, "/v1/charges", r#"{"asset":"BTC","amount":"1","currency":"EUR"}"#),
        ),
        (
            "/sandbox/invoices",
            create_object(
                &mut world,
                "/v1/invoices",
                r#"{"amount":"1","currency":"EUR","customer_name":"Ann"}"#,
            ),
        ),
        (
            "/sandbox/links",
            create_object(
                &mut world,
                "/v1/payment-links",
                r#"{"title":"Tea","pricing_type":"open","currency":"EUR"}"#,
            ),
        ),
    ];
    for route in ROUTES {
        for method in route.methods.iter().filter(|method| method.method != "GET") {
            let path = fill_path(route.path, &ids);
            let (status, response) = call(&mut world, method.method, &path, r#"{"strange":1}"#);
            assert_eq!(status, 422, "{} {path}: {response}", method.method);
            assert!(response["errors"]["strange"].is_array(), "{} {path}: {response}", method.method);
        }
    }
}

/// An unknown filter value must not return an empty list, which would look like a result.
#[test]
fn unknown_filters_are_refused_with_the_allowed_values() {
    let mut world = world();
    for (path, message) in [
        (
            "/sandbox/deliveries?status=late",
            "the allowed values are waiting, in_flight, delivered, failed, canceled",
        ),
        ("/sandbox/deliveries?mode=LIVE", "the allowed values are live, test"),
        ("/sandbox/deliveries?state=failed", "The state field is not known here"),
        ("/sandbox/mails?mode=both", "the allowed values are live, test"),
        ("/sandbox/mails?limit=few", "The limit field must be"),
        ("/sandbox/mails?mode=live&mode=test", "The mode field must be given once"),
        ("/sandbox/happenings?after=x", "The after field must be"),
        ("/sandbox/keys?mode=test", "The mode field is not known here"),
        ("/sandbox/books/acme/live/late?status=open", "The status field is not known here"),
        ("/sandbox/books/acme/live/search?query=x", "The query field is not known here"),
        ("/sandbox/books/acme/live/charges?status=late", "the allowed values are pending"),
    ] {
        let (status, response) = call(&mut world, "GET", path, "");
        assert!(status == 422 && response.to_string().contains(message), "{path}: {response}");
    }
}

#[test]
fn calls_without_a_mode_apply_to_test_mode() {
    let mut world = world();
    for (path, body, mode) in [
        ("/sandbox/keys", "{}", "/key/mode"),
        ("/sandbox/endpoints", r#"{"url":"https://shop.sim"}"#, "/endpoint/mode"),
    ] {
        let created = call_ok(&mut world, "POST", path, body);
        assert_eq!(created.pointer(mode), Some(&"test".into()), "{created}");
    }
    let before = call_ok(&mut world, "GET", "/sandbox", "");
    call_ok(&mut world, "POST", "/sandbox/mine", r#"{"asset":"BTC","at_once":true}"#);
    let after = call_ok(&mut world, "GET", "/sandbox", "");
    let height = |world: &Value, mode: &str| {
        let chains = world["chains"].as_array().expect("a list of chains");
        let chain = chains.iter().find(|chain| chain["asset"] == "BTC" && chain["mode"] == mode);
        chain.expect("a BTC chain")["height"].as_u64().expect("a height")
    };
    assert_eq!(height(&before, "test") + 1, height(&after, "test"));
    assert_eq!(height(&before, "live"), height(&after, "live"));
}

#[test]
fn a_wallet_shows_its_first_address() {
    let mut world = world();
    let wallets = call_ok(&mut world, "GET", "/sandbox/wallets", "");
    let is_sol = |wallet: &&Value| wallet["asset"] == "SOL" && wallet["mode"] == "live";
    let wallet = wallets["wallets"].as_array().unwrap().iter().find(is_sol).unwrap().clone();
    let address = wallet["first_address"].as_str().expect("a world starts with wallets").to_owned();
    let body = format!(r#"{{"mode":"live","asset":"SOL","addresses":["{address}"]}}"#);
    let response = call_ok(&mut world, "PUT", "/sandbox/wallets", &body);
    let wallet = &response["wallet"];
    assert_eq!((&wallet["first_address"], &wallet["listed"]), (&address.into(), &1.into()));
}

/// The account m/44'/0'/0' of the common test mnemonic.
const XPUB: &str = "xpub6BosfCnifzxcFwrSzQiqu2DBVTshkCXacvNsWGYJVVhhawA7d4R5WSWGFNbi8Aw6ZRc1brxMyWMzG3DSSSSoekkudhUd9yLb6qx39T9nMdj";

#[test]
fn the_address_type_of_an_xpub_must_be_given() {
    let mut world = world();
    let body =
        |asset: &str, script: &str| format!(r#"{{"mode":"live","asset":"{asset}","key":"{XPUB}"{script}}}"#);
    let (status, response) = call(&mut world, "PUT", "/sandbox/wallets", &body("BTC", ""));
    assert_eq!(status, 422);
    assert!(response["errors"]["script"][0].as_str().unwrap().contains("p2sh-p2wpkh or p2pkh"), "{response}");
    for (script, prefix) in
        [("p2wpkh", "bc1q"), ("p2sh-p2wpkh", "3"), ("p2pkh", "1LqBGSKuX5yYUonjxT5qGfpUsXKYYWeabA")]
    {
        let script_field = format!(r#","script":"{script}""#);
        let wallet = &call_ok(&mut world, "PUT", "/sandbox/wallets", &body("BTC", &script_field))["wallet"];
        assert_eq!(wallet["script"], script);
        assert!(wallet["first_address"].as_str().unwrap().starts_with(prefix), "{wallet}");
    }
    // The next charge has an address of the last type, and a payment to it is detected.
    let charge = create_object(&mut world, "/v1/charges", r#"{"asset":"BTC","amount":"1","currency":"EUR"}"#);
    call_ok(&mut world, "POST", "/sandbox/pay", &format!(r#"{{"charge":"{charge}"}}"#));
    call_ok(
        &mut world,
        "POST",
        "/sandbox/mine",
        r#"{"mode":"live","asset":"BTC","blocks":2,"at_once":true}"#,
    );
    let charge = call_ok(&mut world, "GET", &format!("/sandbox/books/acme/live/charges/{charge}"), "");
    assert_eq!(charge["data"]["status"], "paid", "{charge}");
    assert!(charge["data"]["deposit_address"].as_str().unwrap().starts_with('1'), "{charge}");
    for (body, part) in [
        (body("DOGE", r#","script":"p2pkh""#), "one kind of address only"),
        (body("BTC", r#","script":"p2tr""#), "the allowed values are p2wpkh, p2sh-p2wpkh, p2pkh"),
        (r#"{"asset":"SOL","addresses":["a"],"script":"p2pkh"}"#.to_owned(), "give it together with key"),
    ] {
        check("PUT", "/sandbox/wallets", &body, 422, part);
    }
}

#[test]
fn an_account_shows_its_business_until_the_business_is_removed() {
    let mut world = world();
    let settings =
        r#"{"support_phone":"+49 30 2","business":{"legal_name":"Acme GmbH","address":{"country":"DE"}}}"#;
    call_ok(&mut world, "PATCH", "/sandbox/accounts/acme", settings);
    let account =
        |world: &mut Sandbox| call_ok(world, "GET", "/sandbox/books/acme/live/account", "")["data"].clone();
    let current = account(&mut world);
    assert_eq!(current["support_phone"], "+49 30 2");
    assert_eq!(current["business"]["legal_name"], "Acme GmbH");
    assert_eq!(current["business"]["address"]["country"], "DE");
    assert_eq!(current["business"]["tax_id"], Value::Null);
    for removal in [r#"{"support_phone":null,"business":null}"#, r#"{"business":{"address":{}}}"#] {
        call_ok(&mut world, "PATCH", "/sandbox/accounts/acme", removal);
        assert_eq!(account(&mut world)["business"], Value::Null, "{removal}");
    }
    assert_eq!(account(&mut world)["support_phone"], Value::Null);
    for (settings, part) in [
        (r#"{"business":{"vat":"1"}}"#, "business.vat field is not known here"),
        (
            r#"{"business":{"address":{"country":"de"}}}"#,
            "business.address.country field must be a two-letter",
        ),
        (r#"{"business":"Acme"}"#, "business field must be an object"),
    ] {
        check("PATCH", "/sandbox/accounts/acme", settings, 422, part);
    }
}

#[test]
fn observers_stay_when_a_world_is_replaced() {
    let mut world = world();
    world.disable_log();
    call_ok(&mut world, "POST", "/sandbox/world", r#"{"seed":2}"#);
    let key = call_ok(&mut world, "POST", "/sandbox/keys", r#"{"mode":"live"}"#);
    assert_eq!(key["happened"], Value::Null, "the log stays disabled: {key}");
    world.start_recording(crate::record::Detail::Bytes);
    call_ok(&mut world, "POST", "/sandbox/world", r#"{"seed":3}"#);
    call_ok(&mut world, "POST", "/sandbox/keys", r#"{"mode":"live"}"#);
    let entries = world.take_record().entries;
    let calls =
        entries.iter().filter(|entry| matches!(entry.observation, crate::record::Observation::Call(_)));
    assert_eq!(calls.count(), 2);
}

#[test]
fn a_refunded_late_payment_is_resolved() {
    let mut world = world();
    let charge =
        create_object(&mut world, "/v1/charges", r#"{"asset":"BTC","amount":"100","currency":"EUR"}"#);
    call_ok(&mut world, "POST", "/sandbox/advance", r#"{"by":"31m"}"#);
    for amount in ["0.001", "0.002"] {
        let pay = format!(r#"{{"charge":"{charge}","amount":"{amount}"}}"#);
        call_ok(&mut world, "POST", "/sandbox/pay", &pay);
    }
    call_ok(
        &mut world,
        "POST",
        "/sandbox/mine",
        r#"{"mode":"live","asset":"BTC","blocks":2,"at_once":true}"#,
    );
    for (refund, unresolved) in [(None, 2), (Some("0.0005"), 2), (Some("0.0005"), 1), (Some("0.002"), 0)] {
        if let Some(amount) = refund {
            let body = format!(r#"{{"amount":"{amount}"}}"#);
            create_object(&mut world, &format!("/v1/charges/{charge}/refunds"), &body);
        }
        let late = call_ok(&mut world, "GET", "/sandbox/books/acme/live/late", "");
        let late = late["late"].as_array().unwrap();
        assert_eq!(late.len(), unresolved, "{late:?}");
        let counts = call_ok(&mut world, "GET", "/sandbox/books/acme/live", "");
        assert_eq!(counts["late"], unresolved, "{counts}");
        let path = format!("/sandbox/books/acme/live/charges/{charge}/transfers");
        let transfers = call_ok(&mut world, "GET", &path, "");
        let transfers = transfers["transfers"].as_array().unwrap();
        let sent_back = transfers.iter().filter(|transfer| transfer["sent_back"] == true).count();
        assert_eq!(sent_back + unresolved, 2, "{transfers:?}");
        if unresolved == 1 {
            assert_eq!(late[0]["amount"], "0.002", "the first transfer is refunded first: {late:?}");
        }
    }
}

#[test]
fn a_repeated_sighting_is_logged_once() {
    let mut world = world();
    let charge =
        create_object(&mut world, "/v1/charges", r#"{"asset":"BTC","amount":"100","currency":"EUR"}"#);
    call_ok(&mut world, "POST", "/sandbox/watchers", r#"{"mode":"live","asset":"BTC","notices":"twice"}"#);
    call_ok(&mut world, "POST", "/sandbox/pay", &format!(r#"{{"charge":"{charge}"}}"#));
    for _ in 0..2 {
        call_ok(
            &mut world,
            "POST",
            "/sandbox/mine",
            r#"{"mode":"live","asset":"BTC","blocks":1,"at_once":true}"#,
        );
    }
    let happened = call_ok(&mut world, "GET", "/sandbox/happenings?after=0", "")["happened"].clone();
    let states: Vec<_> = happened
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["txid"].is_string())
        .map(|event| &event["state"])
        .collect();
    assert_eq!(states, ["seen", "confirmed"], "{happened}");
}

#[test]
fn a_limit_of_mails_applies_to_the_total() {
    let mut world = world();
    call_ok(&mut world, "POST", "/sandbox/accounts", r#"{"id":"bakery"}"#);
    let invoice = r#"{"amount":"1","currency":"EUR","customer_email":"ann@example.com","send_email":true}"#;
    create_object(&mut world, "/v1/invoices", invoice);
    call_ok(&mut world, "POST", "/sandbox/advance", r#"{"by":"1s"}"#);
    let newest = create_object(&mut world, "/v1/invoices", invoice);
    let mails = |world: &mut Sandbox, target: &str| call_ok(world, "GET", target, "")["mails"].clone();
    assert_eq!(mails(&mut world, "/sandbox/mails").as_array().map(Vec::len), Some(2));
    let limited = mails(&mut world, "/sandbox/mails?limit=1");
    assert_eq!(limited.as_array().map(Vec::len), Some(1));
    assert_eq!(limited[0]["invoice"], newest);
}

#[test]
fn an_attempt_inside_the_simulated_network_shows_its_headers() {
    let mut world = world();
    let endpoint = call_ok(
        &mut world,
        "POST",
        "/sandbox/endpoints",
        r#"{"mode":"live","url":"https://shop.sim/hooks"}"#,
    );
    let id = endpoint["endpoint"]["id"].as_str().unwrap();
    let test = call_ok(&mut world, "POST", &format!("/sandbox/endpoints/{id}/test"), "{}");
    call_ok(&mut world, "POST", "/sandbox/advance", r#"{"by":"1s"}"#);
    let path = format!("/sandbox/deliveries/{}", test["delivery"].as_str().unwrap());
    let attempt = call_ok(&mut world, "GET", &path, "")["delivery"]["attempts"][0].clone();
    let headers: Vec<String> = attempt["request_headers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|header| format!("{}: {}", header["name"].as_str().unwrap(), header["value"].as_str().unwrap()))
        .collect();
    assert_eq!(headers[0], "Host: shop.sim");
    assert_eq!(headers[4], "X-Service-Event: charge.paid");
    assert!(headers[6].starts_with("X-Service-Signature: t="), "{headers:?}");

    // A recorded request does not change with its endpoint.
    let endpoint_path = format!("/sandbox/endpoints/{id}");
    call_ok(&mut world, "POST", &format!("{endpoint_path}/rotate"), "{}");
    call_ok(&mut world, "PATCH", &endpoint_path, r#"{"url":"https://other.sim/hooks"}"#);
    assert_eq!(call_ok(&mut world, "GET", &path, "")["delivery"]["attempts"][0], attempt);
}

#[test]
fn a_jump_of_the_clock_is_bounded() {
    let check_refused = |world: &mut Sandbox, body: &str, part: &str| {
        let (status, response) = call(world, "POST", "/sandbox/advance", body);
        assert!(status == 422 && response.to_string().contains(part), "{body}: {status} {response}");
    };
    let mut world = world();
    check_refused(&mut world, r#"{"by":"99999999h"}"#, "at most 3653 days");
    check_refused(&mut world, r#"{"to":"2040-01-01T00:00:00Z"}"#, "at most 3653 days");
    let late_start = r#"{"start":"8999-06-01T00:00:00Z"}"#;
    call_ok(&mut world, "POST", "/sandbox/world", late_start);
    check_refused(&mut world, r#"{"by":"3000d"}"#, "not past 9000-01-01");
    call_ok(&mut world, "POST", "/sandbox/advance", r#"{"by":"100d"}"#);
}

#[test]
fn a_call_with_a_key_moves_the_clock_by_at_most_366_days() {
    let mut world = world();
    let bearer = format!("Bearer {}", world.first_keys().test);
    let admitted = world.admit(world.now(), Some(bearer.as_bytes())).expect("the key is valid");
    for (by, status) in [("367d", 422), ("366d", 200)] {
        let body = format!(r#"{{"by":"{by}"}}"#);
        let Progress::Done(response) =
            world.call_as(world.now(), &admitted, &request("POST", "/sandbox/advance", &body))
        else {
            panic!("a call without outside attempts completes")
        };
        assert_eq!(response.status, status, "{by}");
    }
}

/// Returns a world with one endpoint that is down and this number of deliveries to it.
fn world_with_failing_deliveries(deliveries: u32) -> Sandbox {
    let mut world = world();
    let endpoint =
        call_ok(&mut world, "POST", "/sandbox/endpoints", r#"{"mode":"live","url":"https://shop.sim"}"#);
    call_ok(&mut world, "POST", "/sandbox/merchants", r#"{"name":"shop","state":"down","answers":[]}"#);
    let test = format!("/sandbox/endpoints/{}/test", endpoint["endpoint"]["id"].as_str().unwrap());
    for _ in 0..deliveries {
        call_ok(&mut world, "POST", &test, "");
    }
    world
}

#[test]
fn a_response_has_a_bounded_number_of_events_and_the_field_next() {
    let mut world = world_with_failing_deliveries(100);
    let mut response = call_ok(&mut world, "POST", "/sandbox/advance", r#"{"by":"10d"}"#);
    let mut count = response["happened"].as_array().map_or(0, Vec::len);
    assert_eq!(count, EVENTS_MAX);
    while let Some(next) = response["next"].as_u64() {
        response = call_ok(&mut world, "GET", &format!("/sandbox/happenings?after={next}"), "");
        let more = response["happened"].as_array().map_or(0, Vec::len);
        if more == 0 {
            break;
        }
        count += more;
    }
    assert_eq!(count as u64, world.log().count());
}

#[test]
fn other_calls_are_served_while_a_call_moves_the_clock_far() {
    let mut world = world_with_failing_deliveries(250);
    world.work_in_slices();
    let (start, body) = (world.now(), r#"{"by":"10d"}"#);
    let mut progress = world.call(start, &request("POST", "/sandbox/advance", body));
    let (mut slices, mut events) = (0, world.log().count());
    while let Progress::Waiting(pending) = progress {
        assert!(!pending.awaits_attempt());
        let now = world.now();
        let overview = match world.call(now, &request("GET", "/sandbox", "")) {
            Progress::Done(response) => parse_response(&response).1,
            Progress::Waiting(_) => panic!("a read completes at once"),
        };
        assert_eq!(overview["now"], world.now().to_string());
        progress = world.continue_call(now, pending);
        let count = world.log().count();
        // A slice has a budget of 200 units of work, each of which causes a few events.
        assert!(count - events <= 1_000, "{} events in one slice", count - events);
        (slices, events) = (slices + 1, count);
    }
    assert!(slices >= 7, "{slices}");
    let Progress::Done(response) = progress else { unreachable!("the loop ends when the call is done") };
    assert_eq!(parse_response(&response).0, 200);
    assert_eq!(world.now(), start.plus(Span::days(10)));
    // Sliced work gives the same events at the same times.
    let mut unsliced = world_with_failing_deliveries(250);
    call_ok(&mut unsliced, "POST", "/sandbox/advance", body);
    let times = |world: &Sandbox| world.log().events_after(0).map(|event| event.at).collect::<Vec<_>>();
    assert_eq!(times(&world), times(&unsliced));
}

#[test]
fn a_healed_watcher_reports_lost_sightings() {
    let mut world = world();
    let code =
        create_object(&mut world, "/v1/charges", r#"{"asset":"LTC","amount":"10.00","currency":"EUR"}"#);
    call_ok(&mut world, "POST", "/sandbox/watchers", r#"{"asset":"LTC","mode":"live","notices":"lost"}"#);
    call_ok(&mut world, "POST", "/sandbox/pay", &format!(r#"{{"charge":"{code}"}}"#));
    call_ok(&mut world, "POST", "/sandbox/mine", r#"{"mode":"live","asset":"LTC","blocks":3}"#);
    let status = |world: &mut Sandbox| {
        call_ok(world, "GET", &format!("/sandbox/books/acme/live/charges/{code}"), "")["data"]["status"]
            .take()
    };
    assert_eq!(status(&mut world), "pending", "the sightings are lost");
    assert!(world.next_service_due().is_some(), "the rate lock has not expired");
    world.heal();
    assert_eq!(status(&mut world), "paid");
}
