//! The trials against correct and faulty handlers, over real sockets.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::Value;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate, matchers::method};

use conformance_model::mode::Mode;
use conformance_model::secret::Secret;
use conformance_receiver::{Diagnosis, Keyring, ReceivedRequest, WebhookNames, diagnose};

use super::{
    ActionCounter, HandlerOutcome, HandlerPlan, Progress, TrialObjects, TrialStatement, test_handler,
};

const SECRET: &str = "whsec_0123456789abcdefghijklmnopqrstuv";

/// The faults of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    VerifiesNoSignature,
    VerifiesReformattedBody,
    IgnoresSignatureTime,
    StoresNoEventIds,
    DeduplicatesByDeliveryId,
    StoresEventIdsLate,
    ActsOnChargeAndInvoice,
    ActsInEveryMode,
    ActsOnTestDeliveries,
    RefusesUnknownTypes,
    FailsOnNulls,
    RefusesLateEvents,
    FailsOnMalformedSignatures,
    RespondsWithRedirect,
    RefusesEverything,
    AcceptsBodyOnlySignatures,
}

/// The state of the merchant's shop.
#[derive(Default)]
struct Shop {
    /// The time at which each event id was stored, for deduplication.
    stored_at: BTreeMap<String, Instant>,
    /// The codes of the charges whose creation was reported.
    created: BTreeSet<String>,
    /// The number of actions by the code of the charge.
    action_counts: BTreeMap<String, u64>,
}

#[derive(Clone)]
struct Handler {
    fault: Fault,
    shop: Arc<Mutex<Shop>>,
}

/// The time until the handler with a race condition stores an event id.
const STORE_DELAY: Duration = Duration::from_millis(200);

impl Handler {
    fn verifies(&self, request: &Request) -> bool {
        let headers =
            request.headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().into())).collect();
        // The body as a program would write it that parses JSON and keeps the order of the members.
        let text = String::from_utf8_lossy(&request.body);
        let rewritten =
            text.replace("\\u0061", "a").replace("\" : \"", "\":\"").replace("{ \n", "{").into_bytes();
        let verified_body =
            if self.fault == Fault::VerifiesReformattedBody { &rewritten } else { &request.body };
        let received = ReceivedRequest {
            at: time::OffsetDateTime::now_utc(),
            method: "POST".to_owned(),
            path: "/".to_owned(),
            headers,
            body: verified_body.as_slice().into(),
        };
        let keyring = Keyring {
            names: WebhookNames::default(),
            secrets: vec![("OWN".to_owned(), Secret::new(SECRET))],
            other_endpoints: Vec::new(),
        };
        let signed_at = received
            .header_text("x-service-signature")
            .and_then(|header| header.strip_prefix("t=")?.split(',').next()?.parse().ok());
        let now = match self.fault {
            Fault::IgnoresSignatureTime => signed_at.unwrap_or_default(),
            _ => received.unix_secs(),
        };
        match diagnose(&received, &keyring, now) {
            Diagnosis::Verified { .. } => true,
            Diagnosis::NotVerified { reasons, .. } => {
                self.fault == Fault::AcceptsBodyOnlySignatures
                    && reasons == [conformance_receiver::Reason::BodyOnly]
            }
            Diagnosis::NotJudged => false,
        }
    }

    fn handle(&self, request: &Request) -> u16 {
        let fault = self.fault;
        if fault == Fault::RefusesEverything {
            return 401;
        }
        if fault == Fault::FailsOnMalformedSignatures
            && request
                .headers
                .get("x-service-signature")
                .is_some_and(|header| !header.to_str().unwrap_or("").contains(",v1="))
        {
            return 500;
        }
        let Ok(body) = serde_json::from_slice::<Value>(&request.body) else { return 400 };
        if fault != Fault::VerifiesNoSignature && !self.verifies(request) {
            return 401;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kind = text(&body["event"]);
        if fault == Fault::RespondsWithRedirect {
            return 302;
        }
        if fault == Fault::RefusesUnknownTypes && kind == "charge.celebrated" {
            return 422;
        }
        let charge = &body["data"]["charge"];
        if fault == Fault::FailsOnNulls && charge.is_object() && charge["customer_email"].is_null() {
            return 500;
        }
        let mut shop = self.shop.lock().unwrap();
        let code = match kind.as_str() {
            "charge.paid" if !charge["invoice"].is_null() && fault != Fault::ActsOnChargeAndInvoice => {
                return 204;
            }
            "charge.paid" => text(&charge["code"]),
            "invoice.paid" => text(&body["data"]["invoice"]["charges"][0]["code"]),
            "charge.created" => {
                let code = text(&charge["code"]);
                let is_late = shop.action_counts.contains_key(&code);
                shop.created.insert(code);
                return if fault == Fault::RefusesLateEvents && is_late { 409 } else { 204 };
            }
            _ => return 204,
        };
        if body["mode"] != "live" && fault != Fault::ActsInEveryMode
            || body["test"] == true && fault != Fault::ActsOnTestDeliveries
        {
            return 204;
        }
        let key = match fault {
            Fault::DeduplicatesByDeliveryId => text(&body["id"]),
            _ => text(&body["event_id"]),
        };
        let is_known = shop.stored_at.get(&key).is_some_and(|stored_at| match fault {
            Fault::StoresNoEventIds => false,
            Fault::StoresEventIdsLate => stored_at.elapsed() > STORE_DELAY,
            _ => true,
        });
        if !is_known {
            shop.stored_at.insert(key, Instant::now());
            *shop.action_counts.entry(code).or_default() += 1;
        }
        204
    }
}

impl Respond for Handler {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let status = self.handle(request);
        let response = ResponseTemplate::new(status);
        if status == 302 { response.insert_header("location", "/elsewhere") } else { response }
    }
}

impl ActionCounter for Handler {
    fn prepare(&mut self, objects: &TrialObjects) -> Result<(), String> {
        assert_eq!(objects.charge.len(), 12, "the code of a charge has 12 characters");
        Ok(())
    }

    fn action_count(&mut self, objects: &TrialObjects) -> Result<u64, String> {
        Ok(self.shop.lock().unwrap().action_counts.get(&objects.charge).copied().unwrap_or(0))
    }
}

struct Quiet;

impl Progress for Quiet {
    fn on_trial(&mut self, _: &str, _: usize, _: usize) {}
}

fn plan(url: &str) -> HandlerPlan {
    HandlerPlan {
        url: url.parse().expect("an address"),
        secret: Secret::new(SECRET),
        other_mode_secret: None,
        mode: Mode::Live,
        names: WebhookNames::default(),
        sample_charge: None,
        only: Vec::new(),
        skip: Vec::new(),
        without_actions: false,
        strict: false,
        seed: 7,
        time_limit: Duration::from_secs(5),
        settle_time: Duration::from_millis(20),
        ca_pem: None,
        interrupt: Default::default(),
    }
}

/// Tests a handler with this fault.
async fn attempt_with(
    fault: Fault,
    change: impl FnOnce(&mut HandlerPlan),
    counts_actions: bool,
) -> HandlerOutcome {
    let handler = Handler { fault, shop: Arc::default() };
    let server = MockServer::start().await;
    Mock::given(method("POST")).respond_with(handler.clone()).mount(&server).await;
    let mut plan = plan(&server.uri());
    change(&mut plan);
    let mut action_counter = handler;
    let action_counter: Option<&mut dyn ActionCounter> =
        if counts_actions { Some(&mut action_counter) } else { None };
    test_handler(&plan, action_counter, &mut Quiet).await
}

/// Returns the ids of the statements with a failure or warning.
fn violated_statements(outcome: &HandlerOutcome) -> Vec<&'static str> {
    outcome
        .rows
        .iter()
        .filter(|row| matches!(row.verdict.as_str(), "fail" | "warn"))
        .map(|row| row.id)
        .collect()
}

#[tokio::test]
async fn a_correct_handler_passes_every_trial() {
    let outcome = attempt_with(Fault::None, |_| {}, true).await;
    assert_eq!(violated_statements(&outcome), [""; 0]);
    assert_eq!((outcome.exit_code(), outcome.is_complete()), (0, true), "{outcome:#?}");
    assert_eq!(outcome.rows.len(), super::statements().count());
}

#[tokio::test]
async fn each_fault_violates_exactly_its_statements() {
    for (fault, expected) in [
        (
            Fault::VerifiesNoSignature,
            vec![
                "answers.tampered",
                "acts.tampered",
                "answers.wrong_secret",
                "acts.wrong_secret",
                "answers.unsigned",
                "acts.unsigned",
                "answers.time_changed",
                "answers.body_only",
                "answers.malformed",
                "answers.stale",
                "acts.stale",
                "answers.future",
            ],
        ),
        (Fault::VerifiesReformattedBody, vec!["answers.raw_body"]),
        (Fault::IgnoresSignatureTime, vec!["answers.stale", "acts.stale", "answers.future"]),
        (Fault::StoresNoEventIds, vec!["acts.retry", "acts.resent", "acts.together"]),
        (Fault::DeduplicatesByDeliveryId, vec!["acts.resent", "acts.together"]),
        (Fault::ActsOnChargeAndInvoice, vec!["acts.invoice"]),
        (Fault::ActsInEveryMode, vec!["acts.other_mode"]),
        (Fault::ActsOnTestDeliveries, vec!["acts.test_delivery"]),
        (Fault::RefusesUnknownTypes, vec!["answers.unknown_type"]),
        (Fault::FailsOnNulls, vec!["answers.nulls"]),
        (Fault::RefusesLateEvents, vec!["answers.order"]),
        (Fault::FailsOnMalformedSignatures, vec!["answers.calm"]),
        (Fault::AcceptsBodyOnlySignatures, vec!["answers.body_only"]),
    ] {
        let outcome = attempt_with(fault, |_| {}, true).await;
        assert_eq!(violated_statements(&outcome), expected, "{fault:?}");
        let has_failure = outcome.rows.iter().any(|row| row.verdict.as_str() == "fail");
        assert_eq!(outcome.exit_code(), u8::from(has_failure), "{fault:?}");
    }
}

#[tokio::test]
async fn warnings_count_as_failures_with_strict() {
    let only =
        |plan: &mut HandlerPlan| plan.only = vec!["answers.future".to_owned(), "answers.stale".to_owned()];
    let lenient = attempt_with(Fault::IgnoresSignatureTime, only, false).await;
    let strict = attempt_with(
        Fault::IgnoresSignatureTime,
        |plan| {
            only(plan);
            plan.strict = true;
        },
        false,
    )
    .await;
    let verdicts =
        |outcome: &HandlerOutcome| outcome.rows.iter().map(|row| row.verdict.as_str()).collect::<Vec<_>>();
    assert!(verdicts(&lenient).contains(&"warn"), "{:?}", verdicts(&lenient));
    assert_eq!((verdicts(&strict), strict.exit_code()), (vec!["fail"; lenient.rows.len()], 1));
}

#[tokio::test]
async fn a_race_between_two_deliveries_is_detected() {
    let outcome =
        attempt_with(Fault::StoresEventIdsLate, |plan| plan.only = vec!["acts.*".to_owned()], true).await;
    assert!(violated_statements(&outcome).contains(&"acts.together"), "{:?}", violated_statements(&outcome));
}

#[tokio::test]
async fn refusals_are_not_judged_if_everything_is_refused() {
    for fault in [Fault::RefusesEverything, Fault::RespondsWithRedirect] {
        let outcome = attempt_with(fault, |_| {}, true).await;
        assert_eq!(violated_statements(&outcome), ["answers.delivery", "acts.delivery"], "{fault:?}");
        let unjudged = outcome.rows.iter().filter(|row| row.verdict.as_str() == "not judged").count();
        assert_eq!(unjudged, outcome.rows.len() - 2, "{fault:?}");
    }
}

#[tokio::test]
async fn a_run_without_action_counts_is_incomplete_unless_actions_are_excluded() {
    let outcome = attempt_with(Fault::None, |_| {}, false).await;
    assert_eq!((outcome.exit_code(), violated_statements(&outcome).len()), (3, 0));
    let outcome = attempt_with(Fault::None, |plan| plan.without_actions = true, false).await;
    assert_eq!(outcome.exit_code(), 0);
    assert!(outcome.rows.iter().any(|row| row.verdict.as_str() == "left out"));
}

#[tokio::test]
async fn only_selected_statements_are_reported_but_the_first_trial_is_always_run() {
    let only = |name: &str| vec![name.to_owned()];
    let outcome =
        attempt_with(Fault::RefusesEverything, |plan| plan.only = only("answers.tampered"), true).await;
    assert_eq!(outcome.rows.len(), 1);
    assert_eq!(outcome.rows[0].verdict.as_str(), "not judged");
    let outcome = attempt_with(Fault::None, |plan| plan.only = only("answers.tampered"), true).await;
    assert_eq!((outcome.rows[0].verdict.as_str(), outcome.exit_code()), ("pass", 0));
}

#[tokio::test]
async fn a_missing_handler_is_unreachable() {
    let outcome = test_handler(&plan("http://127.0.0.1:9/hooks"), None, &mut Quiet).await;
    assert_eq!((outcome.exit_code(), outcome.rows.len()), (4, 0));
}

#[test]
fn statements_end_with_a_period_and_have_unique_ids() {
    let mut ids = BTreeSet::new();
    for TrialStatement { id, text, .. } in super::statements() {
        assert!(ids.insert(id), "two statements have the id {id}");
        assert!(text.ends_with('.'), "{id}: {text}");
        assert!(id.starts_with("answers.") || id.starts_with("acts."), "{id}");
    }
}
