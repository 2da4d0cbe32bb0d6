//! Tests of the player against scripted responses.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::script::Script;

/// A stage with fixed responses and scripted events. It records the requests, except those that read events
/// or create keys.
struct ScriptedStage {
    now: String,
    calls: Vec<String>,
    happened: Vec<Value>,
}

impl ScriptedStage {
    fn new() -> ScriptedStage {
        ScriptedStage {
            now: "2026-01-05T09:00:00.000000Z".to_owned(),
            calls: Vec::new(),
            happened: Vec::new(),
        }
    }

    fn events_after(&self, read: u64) -> &[Value] {
        &self.happened[usize::try_from(read).expect("the number fits into usize").min(self.happened.len())..]
    }

    fn respond(&mut self, call: &StageRequest<'_>) -> (u16, Value) {
        let charge = json!({
            "id": "abcabcabcabc", "status": "pending", "asset": "BTC", "asset_amount": "0.002",
            "remaining_amount": "0.0015", "expires_at": "2026-01-05T09:30:00.000000Z",
        });
        match (call.method, call.path) {
            (_, "/sandbox/world") => {
                (200, json!({ "account": "acme", "keys": { "live": "L", "test": "T" } }))
            }
            (_, "/sandbox/keys") => (200, json!({ "key": { "id": "k", "secret": "S" } })),
            (_, "/sandbox/advance") => {
                let to = call.body.and_then(|body| body.get("to")).and_then(Value::as_str);
                self.now = to.expect("the request has a target time").to_owned();
                let read = call.body.and_then(|body| body.get("after")).and_then(Value::as_u64);
                (
                    200,
                    json!({ "now": self.now, "happened": self.events_after(read.expect("the request has `after`")) }),
                )
            }
            ("GET", path) if path.starts_with("/sandbox/happenings?after=") => {
                let read = path["/sandbox/happenings?after=".len()..].parse().expect("a number");
                (200, json!({ "happened": self.events_after(read) }))
            }
            (_, "/sandbox/pay") => (200, json!({ "txid": "beef", "now": self.now })),
            ("POST", "/v1/charges/abcabcabcabc/cancel") => (409, json!({ "message": "Too late." })),
            ("POST", "/v1/charges") => (201, json!({ "data": charge })),
            ("GET", "/v1/charges/abcabcabcabc") => (200, json!({ "data": charge })),
            ("GET", "/v1/account") => (200, json!({ "meta": { "mode": "live" }, "links": { "next": null } })),
            _ => (404, json!({ "message": "Not found." })),
        }
    }
}

impl Stage for ScriptedStage {
    fn call(&mut self, call: &StageRequest<'_>) -> Result<StageResponse, StageError> {
        let (status, body) = self.respond(call);
        if !call.path.starts_with("/sandbox/happenings") && call.path != "/sandbox/keys" {
            let at = &self.now["2026-01-05T".len()..];
            let request_body = call.body.map(Value::to_string).unwrap_or_default();
            let bearer = call.bearer.unwrap_or("-");
            self.calls.push(
                format!("{at} {bearer} {} {} {request_body}", call.method, call.path).trim_end().to_owned(),
            );
        }
        Ok(StageResponse { status, headers: Vec::new(), body: body.to_string().into_bytes().into() })
    }
}

const OPEN: &str = "  - open: { charge: c1, asset: BTC, amount: 49.90 EUR }\n";

fn script(steps: &str) -> Script {
    let source = format!("title: A scenario\nsteps:\n{steps}\n");
    Script::parse("scenario.yaml", &source).unwrap_or_else(|error| panic!("{error}"))
}

/// Plays steps, and returns the recorded requests after the one that creates the world.
#[track_caller]
fn calls_of(steps: &str) -> String {
    let mut stage = ScriptedStage::new();
    play(&script(steps), None, &mut stage).unwrap_or_else(|error| panic!("{error}"));
    stage.calls[1..].join("\n")
}

/// Plays steps that must fail, and returns the cause and the message.
#[track_caller]
fn error_of(steps: &str) -> (Cause, String) {
    let error = play(&script(steps), None, &mut ScriptedStage::new()).expect_err("the run stops");
    (error.cause, error.to_string())
}

#[test]
fn the_pace_passes_between_actions_and_after_the_last() {
    insta::assert_snapshot!(calls_of(&format!("{OPEN}  - pay: c1")), @r#"
    09:00:00.000000Z L POST /v1/charges {"amount":"49.90","asset":"BTC","currency":"EUR"}
    09:00:01.000000Z - POST /sandbox/advance {"after":0,"to":"2026-01-05T09:00:01.000000Z"}
    09:00:01.000000Z - POST /sandbox/pay {"charge":"abcabcabcabc"}
    09:00:02.000000Z - POST /sandbox/advance {"after":0,"to":"2026-01-05T09:00:02.000000Z"}
    "#);
}

#[test]
fn waiting_replaces_the_pace() {
    insta::assert_snapshot!(
        calls_of(&format!("{OPEN}  - until: {{ expiry: c1, offset: -1us }}\n  - pay: c1\n  - wait: 1us")),
        @r#"
    09:00:00.000000Z L POST /v1/charges {"amount":"49.90","asset":"BTC","currency":"EUR"}
    09:00:00.000000Z S GET /v1/charges/abcabcabcabc
    09:29:59.999999Z - POST /sandbox/advance {"after":0,"to":"2026-01-05T09:29:59.999999Z"}
    09:29:59.999999Z - POST /sandbox/pay {"charge":"abcabcabcabc"}
    09:30:00.000000Z - POST /sandbox/advance {"after":0,"to":"2026-01-05T09:30:00.000000Z"}
    "#
    );
}

#[test]
fn an_expectation_takes_no_time_and_uses_an_observer_key() {
    insta::assert_snapshot!(calls_of(&format!("{OPEN}  - expect: {{ c1: pending }}\n  - pay: c1")), @r#"
    09:00:00.000000Z L POST /v1/charges {"amount":"49.90","asset":"BTC","currency":"EUR"}
    09:00:00.000000Z S GET /v1/charges/abcabcabcabc
    09:00:01.000000Z - POST /sandbox/advance {"after":0,"to":"2026-01-05T09:00:01.000000Z"}
    09:00:01.000000Z - POST /sandbox/pay {"charge":"abcabcabcabc"}
    09:00:02.000000Z - POST /sandbox/advance {"after":0,"to":"2026-01-05T09:00:02.000000Z"}
    "#);
}

#[test]
fn over_and_short_are_relative_to_the_remaining_amount() {
    let pay = |size: &str| {
        let calls = calls_of(&format!("{OPEN}  - pay: {{ charge: c1, {size}: 0.00000001 }}"));
        calls.lines().find(|line| line.contains("/sandbox/pay")).map(str::to_owned)
    };
    let request = |amount: &str| {
        Some(format!(
            r#"09:00:01.000000Z - POST /sandbox/pay {{"amount":"{amount}","charge":"abcabcabcabc"}}"#
        ))
    };
    assert_eq!(pay("over"), request("0.00150001"));
    assert_eq!(pay("short"), request("0.00149999"));
}

#[test]
fn names_are_replaced_in_requests_and_links_lose_their_host() {
    let save = "  - request: { path: /v1/account, save: { mode: /meta/mode } }\n";
    let next = "  - request: { path: \"https://other.example/v1/${mode}?charge=${c1}\", key: test, expect: { status: 404 } }";
    insta::assert_snapshot!(calls_of(&format!("{OPEN}{save}{next}")), @r#"
    09:00:00.000000Z L POST /v1/charges {"amount":"49.90","asset":"BTC","currency":"EUR"}
    09:00:01.000000Z - POST /sandbox/advance {"after":0,"to":"2026-01-05T09:00:01.000000Z"}
    09:00:01.000000Z L GET /v1/account
    09:00:02.000000Z - POST /sandbox/advance {"after":0,"to":"2026-01-05T09:00:02.000000Z"}
    09:00:02.000000Z T GET /v1/live?charge=abcabcabcabc
    09:00:03.000000Z - POST /sandbox/advance {"after":0,"to":"2026-01-05T09:00:03.000000Z"}
    "#);
}

#[test]
fn an_unmet_expectation_shows_its_line_and_the_transcript() {
    let (cause, text) = error_of(&format!("{OPEN}  - expect: {{ c1: paid }}"));
    assert_eq!(cause, Cause::UnmetExpectation);
    insta::assert_snapshot!(text, @"
    error: status of c1 is not as expected
     --> scenario.yaml:4:19
      |
    4 |   - expect: { c1: paid }
      |                   ^^^^ is `pending`
      expected  paid
      actual    pending
    transcript until the failure:
            0.000s  open       c1 BTC 49.90 EUR                             -> 201 pending, due 0.002 BTC
    ");
}

#[test]
fn an_unexpected_refusal_stops_the_run() {
    let (cause, text) = error_of(&format!("{OPEN}  - cancel: c1"));
    assert_eq!(cause, Cause::UnmetExpectation);
    insta::assert_snapshot!(text, @"
    error: `cancel` had an unexpected result
     --> scenario.yaml:4:5
      |
    4 |   - cancel: c1
      |     ^^^^^^ is refused
      expected  granted
      actual    409 Too late.
    transcript until the failure:
            0.000s  open       c1 BTC 49.90 EUR                             -> 201 pending, due 0.002 BTC
    ");
    insta::assert_snapshot!(calls_of(&format!("{OPEN}  - cancel: {{ charge: c1, refused: 409 }}")), @r#"
    09:00:00.000000Z L POST /v1/charges {"amount":"49.90","asset":"BTC","currency":"EUR"}
    09:00:01.000000Z - POST /sandbox/advance {"after":0,"to":"2026-01-05T09:00:01.000000Z"}
    09:00:01.000000Z L POST /v1/charges/abcabcabcabc/cancel {}
    09:00:02.000000Z - POST /sandbox/advance {"after":0,"to":"2026-01-05T09:00:02.000000Z"}
    "#);
}

#[test]
fn an_unexpected_success_stops_the_run() {
    let steps = "  - open: { charge: c1, asset: BTC, amount: 49.90 EUR, refused: 503 }";
    let (cause, text) = error_of(steps);
    assert_eq!(cause, Cause::UnmetExpectation);
    insta::assert_snapshot!(text, @"
    error: `open` had an unexpected result
     --> scenario.yaml:3:5
      |
    3 |   - open: { charge: c1, asset: BTC, amount: 49.90 EUR, refused: 503 }
      |     ^^^^ is granted
      expected  refused with 503
      actual    201
    no events before the failure
    ");
}

#[test]
fn a_time_in_the_past_or_an_unknown_name_is_an_error() {
    let (cause, text) = error_of(&format!("{OPEN}  - wait: 1h\n  - until: {{ expiry: c1 }}"));
    assert_eq!(cause, Cause::Impossible);
    insta::assert_snapshot!(text, @"
    error: this time has passed
     --> scenario.yaml:5:22
      |
    5 |   - until: { expiry: c1 }
      |                      ^^ it was 2026-01-05T09:30:00.000000Z, and the clock shows 2026-01-05T10:00:00.000000Z
    transcript until the failure:
            0.000s  open       c1 BTC 49.90 EUR                             -> 201 pending, due 0.002 BTC
    ");
    let (cause, text) = error_of("  - resend: d1");
    assert_eq!(cause, Cause::Impossible);
    insta::assert_snapshot!(text, @"
    error: no object is named `d1` yet
     --> scenario.yaml:3:13
      |
    3 |   - resend: d1
      |             ^^ it has not appeared in this run
    no events before the failure
    ");
}

/// Resends a delivery in a real world, in which an endpoint received one delivery, `d1`. Checks that it succeeds, or
/// that the error contains a text.
#[track_caller]
fn check_resend(resend: &str, expected: Result<(), &str>) {
    let steps = format!("  - endpoint: shop\n  - test: shop\n  - wait: 1s\n  - resend: {resend}");
    let result = play(&script(&steps), None, &mut LocalStage::new());
    match (result, expected) {
        (Ok(summary), Ok(())) => {
            assert!(summary.transcript.contains("resend     d1"), "{}", summary.transcript)
        }
        (Err(error), Err(text)) => assert!(error.to_string().contains(text), "{error}"),
        (result, _) => panic!("{resend}: {result:?}"),
    }
}

#[test]
fn a_delivery_is_resent_by_its_name_or_that_of_its_endpoint() {
    check_resend("shop", Ok(()));
    check_resend("d1", Ok(()));
    check_resend("{ delivery: shop, status: delivered }", Ok(()));
    check_resend("{ delivery: shop, status: failed }", Err("there is nothing to resend"));
    check_resend("{ delivery: shop, refused: 409 }", Err("is granted"));
}

#[test]
fn a_refusal_that_a_step_cannot_expect_is_a_stage_failure() {
    let (cause, text) = error_of("  - endpoint: shop");
    assert_eq!(cause, Cause::UnmetExpectation, "the step `endpoint` can expect a refusal");
    assert!(text.contains("404 Not found."), "{text}");
    let (cause, text) = error_of("  - rate: { asset: BTC, currency: EUR, rate: off }");
    assert_eq!(cause, Cause::StageFailure);
    assert!(text.contains("POST /sandbox/rates responded with 404 Not found."), "{text}");
}

#[test]
fn events_become_lines_with_stable_names() {
    let mut stage = ScriptedStage::new();
    let at = |time: &str| format!("2026-01-05T09:{time}Z");
    stage.happened = vec![
        json!({ "n": 1, "at": at("00:00.000000"), "what": "event", "mode": "live", "account": "acme",
            "event": "00000000-0000-7000-8000-000000000001", "type": "charge.created", "subject": "abcabcabcabc", "details": {} }),
        json!({ "n": 2, "at": at("00:00.040000"), "what": "post", "mode": "live", "account": "acme",
            "endpoint": "wwwwwwwwwwww", "host": "shop.sim", "delivery": "00000000-0000-7000-8000-0000000000d1", "event": "00000000-0000-7000-8000-000000000001", "type": "charge.created",
            "subject": "abcabcabcabc", "attempt": 1, "answer": "unreachable", "next_at": at("01:00.040000") }),
        json!({ "n": 3, "at": at("00:01.000000"), "what": "transfer", "mode": "live", "asset": "BTC",
            "txid": "beef", "output": 0, "address": "bc1", "charge": "abcabcabcabc", "amount": "0.00150000",
            "state": "seen", "confirmations": 0, "required": 2 }),
        json!({ "n": 4, "at": at("00:01.000000"), "what": "event", "mode": "live", "account": "acme",
            "event": "00000000-0000-7000-8000-000000000002", "type": "charge.payment_detected", "subject": "abcabcabcabc",
            "details": { "amount": "0.001500000000000000", "txid": "beef" } }),
        json!({ "n": 5, "at": at("00:01.000001"), "what": "transfer", "mode": "test", "asset": "BTC",
            "txid": "cafe", "output": 1, "address": "tb1", "charge": null, "amount": "0.5",
            "state": "double_spent", "confirmations": 0, "required": 2 }),
        json!({ "n": 6, "at": at("00:01.000001"), "what": "reorg", "mode": "live", "asset": "BTC", "depth": 2 }),
        json!({ "n": 7, "at": at("00:01.000001"), "what": "restart" }),
    ];
    let summary = play(&script(OPEN), None, &mut stage).unwrap_or_else(|error| panic!("{error}"));
    let lines: Vec<&str> = summary.transcript.lines().collect();
    let (last, lines) = lines.split_last().expect("the digest is the last line");
    assert_eq!(*last, format!("digest {}", summary.digest));
    assert_eq!(summary.digest, digest(&format!("{}\n", lines.join("\n"))));
    insta::assert_snapshot!(lines.join("\n"), @"
         0.000s  event      e1 charge.created c2
         0.040s  POST w1    d1 e1 charge.created c2               try 1  -> unreachable
         1.000s  transfer   t1 0.0015 BTC to c2: seen, 0 of 2
         1.000s  event      e2 charge.payment_detected c2, amount 0.0015, txid t1
      1.000001s  transfer   t2:1 0.5 BTC to nobody here: double spent (test)
      1.000001s  reorg      BTC 2 deep
      1.000001s  restart
         0.000s  open       c1 BTC 49.90 EUR                             -> 201 pending, due 0.002 BTC
    ");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_mutated_scenario_never_panics(
        cut in any::<prop::sample::Index>(),
        length in 0_usize..6,
        patch in "[ -~]{0,2}",
    ) {
        const ORIGINAL: &str = include_str!("../../../scenarios/language/every_step.yaml");
        let from = ORIGINAL.floor_char_boundary(cut.index(ORIGINAL.len()));
        let to = ORIGINAL.floor_char_boundary((from + length).min(ORIGINAL.len()));
        let mutated = format!("{}{patch}{}", &ORIGINAL[..from], &ORIGINAL[to..]);
        if let Ok(script) = Script::parse("mutated.yaml", &mutated)
            && let Err(error) = play(&script, None, &mut LocalStage::new())
        {
            prop_assert!(error.to_string().contains("mutated.yaml"), "{error}");
        }
    }
}
