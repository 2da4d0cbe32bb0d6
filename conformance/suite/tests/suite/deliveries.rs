//! Correct senders with different legal choices, stored deliveries, and reports without deliveries.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ::mutants::fake::sender::{Sender, hmac_sha256, secret_of, signed_text};
use ::mutants::fake::{FakeServer, LIVE_KEY, TEST_KEY, block_on, ids_with_verdicts, run_with};
use conformance::receiver::{BackgroundReceiver, RawBytes, ReceivedRequest, WebhookNames};
use conformance::{
    DeliverySource, Endpoint, Mode, Outcome, Part, Plan, Redaction, Secret, Webhooks, judge, report,
};
use serde_json::json;

fn server_with_sender(change: impl FnOnce(&mut Sender)) -> FakeServer {
    let mut sender = Sender::default();
    change(&mut sender);
    FakeServer { sender: Some(sender), ..FakeServer::default() }
}

/// Checks that all statements except the excluded burst are judged, and none is violated.
#[track_caller]
fn check_server(server: FakeServer) -> Outcome {
    let outcome = run_with(server, |_| {});
    let text = report::text(&outcome, report::Style::Plain);
    assert_eq!(ids_with_verdicts(&outcome, &["fail", "warn"]), Vec::<String>::new(), "{text}");
    let unjudged: Vec<_> = ids_with_verdicts(&outcome, &["not judged"])
        .into_iter()
        .filter(|id| !id.starts_with("limits."))
        .collect();
    assert_eq!(unjudged, Vec::<String>::new(), "{text}");
    let (spent, allowed) = (&outcome.ledger, &outcome.budget);
    assert!(spent.outside_bursts() <= allowed.outside_bursts(), "{spent:?}");
    outcome
}

#[track_caller]
fn check(change: impl FnOnce(&mut Sender)) -> Outcome {
    check_server(server_with_sender(change))
}

#[track_caller]
fn check_report(outcome: &Outcome, part: &str) {
    let text = report::text(outcome, report::Style::Plain);
    assert!(text.contains(part), "{part:?} in {text}");
}

#[test]
fn a_correct_sender_passes_everything() {
    let outcome = check(|_| {});
    check_report(&outcome, "after a 500 it was delivered again under the same id");
    check_report(&outcome, "after a 302 it was not delivered again");
    check_report(
        &outcome,
        "HMAC-SHA256 of `<t>.<body>` under the secret's text, in lower-case hexadecimal digits",
    );
    check_report(&outcome, "pending to paid");
}

#[test]
fn a_retry_may_have_a_new_id() {
    check_report(
        &check(|sender| sender.retry_has_new_id = true),
        "after a 500 it was delivered again under a new id",
    );
}

#[test]
fn deliveries_may_be_duplicated_and_reordered() {
    let outcome = check(|sender| {
        sender.attempts = 2;
        sender.sends_newest_first = true;
    });
    check_report(&outcome, "were delivered again although they had been accepted");
    check_report(&outcome, "not always as created");
}

#[test]
fn other_signature_constructions_pass() {
    check(|sender| {
        sender.sign = |secret, t, body| {
            format!("t={t},v1={}", hex::encode_upper(hmac_sha256(secret, &signed_text(t, body))))
        }
    });
    check(|sender| {
        sender.sign = |secret, t, body| {
            format!("v0=x, t={t}, v1={}", hex::encode(hmac_sha256(secret, &signed_text(t, body))))
        }
    });
    let outcome = check(|sender| {
        sender.sign = |secret, t, body| {
            let message = [t.to_string().as_bytes(), b":", body].concat();
            format!("t={t},v1={}", hex::encode(hmac_sha256(secret, &message)))
        };
    });
    check_report(&outcome, "as usual, but the signed text is `<t>:<body>`");
}

#[test]
fn an_unknown_signature_construction_is_not_a_violation() {
    let outcome = run_with(
        server_with_sender(|sender| {
            sender.sign = |secret, t, body| {
                let doubled = [body, body].concat();
                format!("t={t},v1={}", hex::encode(hmac_sha256(secret, &signed_text(t, &doubled))))
            };
        }),
        |_| {},
    );
    assert_eq!(ids_with_verdicts(&outcome, &["fail", "warn"]), Vec::<String>::new());
    let unjudged = ids_with_verdicts(&outcome, &["not judged"]);
    assert!(unjudged.contains(&"webhooks.signed".to_owned()), "{unjudged:?}");
    check_report(&outcome, "check that the secret belongs to this endpoint");
}

#[test]
fn a_test_delivery_needs_no_event_and_no_subscription() {
    let outcome = check(|sender| {
        sender.delivers = |endpoint, mode, kind| {
            let is_subscribed = endpoint.events.as_ref().is_some_and(|events| events.contains(kind));
            endpoint.mode == Some(mode)
                && (is_subscribed || (kind == "charge.created" && endpoint.path == "/live-some"))
        };
        sender.change_body = Box::new(|delivery, body| {
            if delivery.path == "/live-some" && delivery.event_type == "charge.created" {
                body["test"] = json!(true);
                body["event_id"] = json!(null);
            }
        });
    });
    check_report(&outcome, "1 marked `\"test\": true`");
}

/// Checks that a stored run has the same report and contains no secret, and that redaction changes no verdict and
/// removes personal values.
#[track_caller]
fn check_stored(server: impl Fn() -> FakeServer) {
    let verdicts = |outcome: &Outcome| {
        let rows = outcome.rows.iter();
        rows.map(|row| format!("{} {}", row.id, row.verdict.as_str())).collect::<Vec<_>>()
    };
    let unredacted = run_with(server(), |_| {});
    for privacy in [None, Some(Redaction::new([1; 32])), Some(Redaction::new([2; 32]))] {
        let is_redacted = privacy.is_some();
        let outcome = run_with(server(), |plan| plan.redaction = privacy);
        assert_eq!(verdicts(&outcome), verdicts(&unredacted));
        let file = outcome.to_file();
        let parsed = Outcome::from_file(&file).expect("a stored run can be read");
        assert_eq!(report::json(&parsed), report::json(&outcome));
        assert_eq!(parsed.to_file(), file);
        for secret in
            [&LIVE_KEY[9..], &TEST_KEY[9..], &secret_of("/live")[6..], &secret_of("/test-some")[6..]]
        {
            assert!(!file.contains(secret), "a secret is in the file");
        }
        for part in ["Leerick", "ann@shop", "A-4711-B", "Two cups"] {
            assert_eq!(file.contains(part), !is_redacted, "{part}");
        }
    }
}

#[test]
fn stored_deliveries_have_equal_verdicts_and_no_secrets_or_personal_values() {
    check_stored(|| server_with_sender(|_| {}));
    check_stored(|| {
        server_with_sender(|sender| {
            // The worst case: the sender echoes all input.
            sender.change_request = |delivery, sent| {
                sent.set_header("X-Secret", &secret_of(&delivery.path));
                sent.set_header("X-Key", LIVE_KEY);
            };
        })
    });
    check_stored(|| server_with_sender(|sender| sender.change_request = |_, sent| sent.body.push(0xff)));
    check_stored(|| {
        server_with_sender(|sender| {
            sender.change_body = Box::new(|_, body| {
                if body["data"]["charge"].is_object() {
                    body["data"]["charge"]["fiat_amount"] = json!("49.9");
                    body["data"]["charge"]["received_amount"] = json!(0.1);
                }
            });
        })
    });
}

#[track_caller]
fn check_remedy(change: impl FnOnce(&mut Plan), id: &str, part: &str) {
    let outcome = run_with(FakeServer::default(), |plan| {
        plan.quick = true;
        plan.without.remove(&Part::Webhooks);
        change(plan);
    });
    assert_eq!(outcome.exit_code(), 3);
    assert!(ids_with_verdicts(&outcome, &["not judged"]).contains(&id.to_owned()), "{id}");
    check_report(&outcome, part);
}

fn webhooks_from(source: DeliverySource) -> Webhooks {
    Webhooks { names: WebhookNames::default(), source, public_url: None }
}

#[test]
fn without_a_receiver_deliveries_are_not_judged_and_the_remedy_is_shown() {
    check_remedy(|_| {}, "webhooks.post", "receive them with `--receiver ADDR:PORT`");
    check_remedy(|_| {}, "endpoints.address", "`--register COMMAND`");
    let outcome = run_with(FakeServer::default(), |_| {});
    assert_eq!(outcome.exit_code(), 0);
    let left_out = ids_with_verdicts(&outcome, &["left out"]);
    assert!(left_out.iter().any(|id| id == "charges.asset_amount") && left_out.len() > 30, "{left_out:?}");
    check_report(&outcome, "--without webhooks");
}

fn captured_requests(signature: &str) -> Vec<ReceivedRequest> {
    let body = json!({
        "id": "0190a5c7-7f3e-7ddd-8def-000000000001",
        "event_id": FakeServer::default().test.events[0]["id"],
        "event": FakeServer::default().test.events[0]["type"],
        "mode": "test",
        "created_at": "2026-02-01T10:00:00.000000Z",
        "data": { "invoice": {} },
    });
    let delivery = json!({
        "at": "2026-02-01T10:00:01.000000Z",
        "method": "POST",
        "path": "/test",
        "headers": [["X-Service-Signature", signature]],
        "body": body.to_string(),
    });
    let other_request = json!({
        "at": "2026-02-01T10:00:02.000000Z",
        "method": "GET",
        "path": "/robots.txt",
        "headers": [],
        "body": "",
    });
    [delivery, other_request].map(|request| serde_json::from_value(request).expect("a request")).to_vec()
}

fn endpoint(path: &str, mode: Mode) -> Endpoint {
    Endpoint { path: path.into(), mode: Some(mode), events: None, secret: Some(Secret::new(secret_of(path))) }
}

#[test]
fn captured_deliveries_are_judged_as_far_as_possible() {
    let outcome = run_with(FakeServer::default(), |plan| {
        plan.quick = true;
        plan.without.remove(&Part::Webhooks);
        let endpoints = vec![endpoint("/live", Mode::Live), endpoint("/test", Mode::Test)];
        plan.webhooks = Some(webhooks_from(DeliverySource::Captured {
            received: captured_requests("t=1,v1=ab"),
            endpoints,
        }));
    });
    let failed = ids_with_verdicts(&outcome, &["fail"]);
    for id in ["webhooks.content_type", "webhooks.user_agent", "webhooks.delivery_id", "invoices.fields"] {
        assert!(failed.contains(&id.to_owned()), "{id} in {failed:?}");
    }
    for id in ["webhooks.event_id", "webhooks.body", "webhooks.post"] {
        assert!(ids_with_verdicts(&outcome, &["pass"]).contains(&id.to_owned()), "{id}");
    }
    for id in ["webhooks.pushed", "webhooks.redirects", "charges.asset_amount"] {
        assert!(ids_with_verdicts(&outcome, &["not judged"]).contains(&id.to_owned()), "{id}");
    }
    let deliveries = outcome.recording.deliveries.as_ref().expect("deliveries");
    assert_eq!((deliveries.received.len(), deliveries.other_requests), (1, 1));
    assert_eq!(deliveries.received[0].headers[0].1, RawBytes(b"t=1,v1=ab".to_vec()));
}

#[test]
fn a_receiver_and_without_webhooks_are_mutually_exclusive() {
    let outcome = run_with(server_with_sender(|_| {}), |plan| {
        plan.without.insert(Part::Webhooks);
    });
    assert_eq!(outcome.exit_code(), 2);
}

#[test]
fn a_receiver_without_deliveries_reports_it() {
    block_on(async {
        let mut plan =
            ::mutants::fake::plan(&::mutants::fake::http_server::serve(FakeServer::default()).await);
        plan.quick = true;
        plan.without.remove(&Part::Webhooks);
        let receiver = BackgroundReceiver::start(([127, 0, 0, 1], 0).into()).await.expect("a free port");
        plan.webhooks = Some(webhooks_from(DeliverySource::Receiver {
            receiver: Arc::new(receiver),
            receive_for: Duration::from_secs(60),
            trigger: None,
        }));
        let outcome =
            conformance::check(plan, &mut ::mutants::fake::Clock::default(), &mut conformance::Silent).await;
        assert_eq!(outcome.exit_code(), 3);
        check_report(&outcome, "no delivery arrived within");
        check_report(&outcome, "add its public address as an endpoint");
    });
}

#[test]
fn two_endpoints_at_one_address_are_not_a_violation() {
    // Every second delivery to an address is signed with the secret of the other endpoint.
    let outcome = run_with(
        server_with_sender(|sender| {
            sender.attempts = 2;
            sender.sign = |secret, t, body| {
                static SIGNATURES: AtomicU32 = AtomicU32::new(0);
                let uses_other = SIGNATURES.fetch_add(1, Ordering::Relaxed) / 2 % 2 == 1;
                let secret = if uses_other { secret_of("/elsewhere") } else { secret.to_owned() };
                format!("t={t},v1={}", hex::encode(hmac_sha256(&secret, &signed_text(t, body))))
            };
        }),
        |_| {},
    );
    assert_eq!(ids_with_verdicts(&outcome, &["fail", "warn"]), Vec::<String>::new());
    assert!(ids_with_verdicts(&outcome, &["not judged"]).contains(&"webhooks.signed".to_owned()));
}

/// Checks the verdict on `webhooks.pushed` if the receiver runs longer, without knowing the number of deliveries.
#[track_caller]
fn check_pushed(delivers: fn(&Endpoint, Mode, &str) -> bool, longer: Duration, expected: &str) {
    let outcome = run_with(
        server_with_sender(|sender| {
            sender.delivers = delivers;
            sender.reports_settled = false;
        }),
        |_| {},
    );
    let mut recording = outcome.recording;
    let deliveries = recording.deliveries.as_mut().expect("the run has deliveries");
    deliveries.duration += longer;
    // A refused delivery may delay the next ones.
    deliveries.received.iter_mut().for_each(|delivery| delivery.response_status = Some(200));
    let rows = judge(&recording);
    let row = rows.iter().find(|row| row.id == "webhooks.pushed").expect("a row");
    assert_eq!(row.verdict.as_str(), expected, "{:?}", row.verdict);
}

fn is_subscribed(endpoint: &Endpoint, mode: Mode, kind: &str) -> bool {
    endpoint.mode == Some(mode) && endpoint.events.as_ref().is_some_and(|events| events.contains(kind))
}

#[test]
fn a_late_delivery_is_not_yet_a_violation() {
    const MINUTE: Duration = Duration::from_secs(60);
    const UNDERPAID: &str = "charge.underpaid";
    check_pushed(is_subscribed, MINUTE, "pass");
    let missing_once = |endpoint: &Endpoint, mode, kind: &str| {
        is_subscribed(endpoint, mode, kind) && !(kind == UNDERPAID && endpoint.path == "/live")
    };
    check_pushed(missing_once, Duration::ZERO, "not judged");
    check_pushed(missing_once, MINUTE, "not judged");
    check_pushed(missing_once, MINUTE * 11, "fail");
    // Missing at both endpoints, so in both modes.
    let missing_always =
        |endpoint: &Endpoint, mode, kind: &str| is_subscribed(endpoint, mode, kind) && kind != UNDERPAID;
    check_pushed(missing_always, Duration::ZERO, "not judged");
    check_pushed(missing_always, MINUTE, "fail");
}
