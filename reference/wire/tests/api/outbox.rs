//! Deliveries: the schedule of attempts, their number and content, resends, and cancellation.

use reference_core::{
    book::Notice,
    command::{BookCommand, CommandResult},
    endpoint::EndpointStatus,
    event::EventType,
    id::{AccountNo, Code},
    mode::Mode,
    outbox::{AttemptResult, Delivery, DeliveryState},
    time::Span,
};
use reference_wire::AttemptRequest;
use serde_json::{Value, json};

use crate::test_service::{MEMPOOL, TICK, TestRequest, TestService, confirmed};

const URL: &str = "https://shop.example/hook";
const SUCCESS: AttemptResult = AttemptResult::Response(200);
const FAILURE: AttemptResult = AttemptResult::Response(500);

/// Returns a service with one live endpoint that subscribes to new charges only.
fn service_with_endpoint() -> (TestService, Code) {
    let mut service = TestService::new();
    let endpoint = service.add_endpoint(Mode::Live, URL, &[EventType::ChargeCreated]);
    (service, endpoint)
}

/// An attempt in flight, with the account and mode of its book.
struct InFlight {
    account: AccountNo,
    mode: Mode,
    request: AttemptRequest,
}

#[track_caller]
fn start_attempt(service: &mut TestService) -> InFlight {
    let (account, mode, request) = service.poll_delivery().expect("an attempt is due");
    InFlight { account, mode, request }
}

fn report_attempt(service: &mut TestService, attempt: &InFlight, result: AttemptResult) {
    let book = (attempt.account, attempt.mode);
    service.api.service.on_attempt_result(service.now, book, attempt.request.delivery, result);
}

#[test]
fn a_failed_delivery_is_tried_14_times_on_schedule() {
    let (mut service, _) = service_with_endpoint();
    service.create_charge();
    let delays_in_minutes = [1, 5, 30, 60, 120, 240, 480, 600, 600, 600, 600, 600, 600];
    let mut first: Option<AttemptRequest> = None;
    for number in 1..=14_u32 {
        let attempt = start_attempt(&mut service);
        assert_eq!(attempt.request.attempt, number);
        assert!(service.poll_delivery().is_none(), "the delivery is in flight");
        let earlier = first.get_or_insert(attempt.request.clone());
        assert_eq!(
            (earlier.id, &earlier.body),
            (attempt.request.id, &attempt.request.body),
            "all attempts have the same id and body"
        );
        service.wait(Span::secs(15));
        report_attempt(&mut service, &attempt, AttemptResult::TimedOut);
        let Some(&minutes) = delays_in_minutes.get(number as usize - 1) else { break };
        let delay = Span::mins(minutes);
        let next = service.now.plus(delay);
        let delivery = service.book(Mode::Live).outbox().get(attempt.request.delivery);
        assert_eq!(delivery.state, DeliveryState::Waiting(next), "after attempt {number}");
        service.wait_until(next.minus(TICK));
        assert!(service.poll_delivery().is_none(), "no attempt is due a microsecond earlier");
        service.wait(TICK);
    }
    let book = service.book(Mode::Live);
    let delivery = book.outbox().iter().next().unwrap();
    assert_eq!((delivery.state, delivery.attempts.len()), (DeliveryState::Failed, 14));
    assert_eq!(book.outbox().next_due(), None);
    service.wait(Span::days(1));
    assert!(service.poll_delivery().is_none());
}

#[test]
fn only_2xx_is_success() {
    #[track_caller]
    fn check(result: AttemptResult, is_delivered: bool) {
        let (mut service, _) = service_with_endpoint();
        service.create_charge();
        let attempt = start_attempt(&mut service);
        report_attempt(&mut service, &attempt, result.clone());
        let state = service.book(Mode::Live).outbox().get(attempt.request.delivery).state;
        assert_eq!(state == DeliveryState::Delivered, is_delivered, "{result:?}");
        assert_eq!(matches!(state, DeliveryState::Waiting(_)), !is_delivered, "{result:?}");
    }
    for status in [200, 201, 202, 204, 299] {
        check(AttemptResult::Response(status), true);
    }
    for status in [0, 100, 199, 300, 301, 302, 307, 308, 400, 401, 404, 410, 429, 500, 503, 600] {
        check(AttemptResult::Response(status), false);
    }
    check(AttemptResult::TimedOut, false);
    check(AttemptResult::Unreachable("connection refused".to_owned()), false);
    check(AttemptResult::NotPublic("the name resolves to 10.0.0.1".to_owned()), false);
}

/// Fails every attempt until no retry is left.
fn fail_all_attempts(service: &mut TestService) {
    while let Some(due) = service.book(Mode::Live).outbox().next_due() {
        service.wait_until(due.max(service.now));
        service.attempt_all(&FAILURE);
    }
}

/// Returns the states of all live deliveries, oldest first.
fn states(service: &TestService) -> Vec<&'static str> {
    service.book(Mode::Live).outbox().iter().map(|delivery| delivery.state.as_str()).collect()
}

#[test]
fn fifteen_failed_deliveries_in_a_row_disable_the_endpoint() {
    let (mut service, endpoint) = service_with_endpoint();
    for _ in 0..15 {
        service.create_charge();
    }
    // A sixteenth, shortly after the others.
    let first = start_attempt(&mut service);
    report_attempt(&mut service, &first, FAILURE);
    service.wait(Span::mins(10));
    service.create_charge();
    service.api.service.take_notices();
    fail_all_attempts(&mut service);
    assert_eq!(service.endpoint(Mode::Live, endpoint).status, EndpointStatus::Disabled);
    let states = states(&service);
    assert_eq!(states.iter().filter(|state| **state == "failed").count(), 15);
    assert_eq!(states[15], "canceled", "disabling the endpoint cancels waiting deliveries");
    let notices = service.api.service.take_notices();
    assert_eq!(
        notices.iter().filter(|(_, _, notice)| matches!(notice, Notice::EndpointDisabled(_))).count(),
        1
    );
    service.create_charge();
    assert!(service.poll_delivery().is_none(), "a disabled endpoint receives nothing");
    assert_eq!(service.book(Mode::Live).outbox().iter().count(), 16);
}

#[test]
fn a_success_resets_the_count_of_failed_deliveries() {
    let (mut service, endpoint) = service_with_endpoint();
    for (failures, status) in
        [(14, EndpointStatus::Enabled), (14, EndpointStatus::Enabled), (15, EndpointStatus::Disabled)]
    {
        for _ in 0..failures {
            service.create_charge();
            fail_all_attempts(&mut service);
        }
        assert_eq!(service.endpoint(Mode::Live, endpoint).status, status);
        service.create_charge();
        service.attempt_all(&SUCCESS);
    }
    let enable = BookCommand::ChangeEndpoint { id: endpoint, url: None, events: None, enabled: Some(true) };
    service.run_command(Mode::Live, enable).unwrap();
    for _ in 0..14 {
        service.create_charge();
        fail_all_attempts(&mut service);
    }
    assert_eq!(
        service.endpoint(Mode::Live, endpoint).status,
        EndpointStatus::Enabled,
        "enabling the endpoint resets the count"
    );
}

#[test]
fn a_rotated_secret_signs_from_the_next_attempt_on() {
    let (mut service, endpoint) = service_with_endpoint();
    service.create_charge();
    let attempt = start_attempt(&mut service);
    let old = attempt.request.secret.reveal().to_owned();
    assert!(old.starts_with("whsec_") && old.len() == 6 + 32, "{old}");
    service.run_command(Mode::Live, BookCommand::RotateSecret(endpoint)).unwrap();
    report_attempt(&mut service, &attempt, FAILURE);
    service.wait(Span::mins(1));
    let again = start_attempt(&mut service).request;
    assert_ne!(again.secret.reveal(), old);
    assert_eq!(again.secret.reveal(), service.endpoint(Mode::Live, endpoint).secret.reveal());
    assert_eq!(
        (again.id, again.body),
        (attempt.request.id, attempt.request.body),
        "id and body do not change"
    );
}

/// Resends a delivery; returns 200 or the status of the error.
fn resend(service: &mut TestService, mode: Mode, attempt: &AttemptRequest) -> u16 {
    match service.run_command(mode, BookCommand::Resend(attempt.id)) {
        Ok(CommandResult::Delivery(id)) => {
            assert_eq!(id, attempt.id);
            200
        }
        Ok(other) => panic!("a resend returns the delivery: {other:?}"),
        Err(error) => error.status(),
    }
}

#[test]
fn a_resend_keeps_the_delivery_id_and_is_one_attempt() {
    let (mut service, endpoint) = service_with_endpoint();
    service.create_charge();
    let attempt = start_attempt(&mut service);
    assert_eq!(resend(&mut service, Mode::Live, &attempt.request), 409, "an attempt is in flight");
    report_attempt(&mut service, &attempt, SUCCESS);
    assert_eq!(resend(&mut service, Mode::Test, &attempt.request), 404);
    assert_eq!(resend(&mut service, Mode::Live, &attempt.request), 200);
    let again = start_attempt(&mut service);
    assert_eq!(
        (again.request.id, &again.request.body, again.request.attempt),
        (attempt.request.id, &attempt.request.body, 2)
    );
    assert!(service.poll_delivery().is_none());
    assert_eq!(resend(&mut service, Mode::Live, &attempt.request), 409, "an attempt is in flight");
    report_attempt(&mut service, &again, FAILURE);
    assert_eq!(states(&service), ["delivered"], "a failed resend does not change the state");
    fail_all_attempts(&mut service);
    assert_eq!(attempt_count(&service, &attempt), 2, "a failed resend is not retried");
    let disable = BookCommand::ChangeEndpoint { id: endpoint, url: None, events: None, enabled: Some(false) };
    service.run_command(Mode::Live, disable).unwrap();
    assert_eq!(resend(&mut service, Mode::Live, &attempt.request), 409);
}

/// Returns the number of recorded attempts of a delivery.
fn attempt_count(service: &TestService, attempt: &InFlight) -> usize {
    service.book(Mode::Live).outbox().get(attempt.request.delivery).attempts.len()
}

#[test]
fn a_failed_resend_does_not_change_the_retry_schedule() {
    let (mut service, endpoint) = service_with_endpoint();
    service.create_charge();
    let attempt = start_attempt(&mut service);
    report_attempt(&mut service, &attempt, FAILURE);
    let first_retry = service.now.plus(Span::mins(1));
    // Two resends while a retry waits cause one attempt, and the retry still waits.
    service.wait(Span::secs(1));
    assert_eq!(resend(&mut service, Mode::Live, &attempt.request), 200);
    assert_eq!(resend(&mut service, Mode::Live, &attempt.request), 200);
    let again = start_attempt(&mut service);
    assert!(service.poll_delivery().is_none());
    // An attempt that was interrupted by a restart is repeated, still as a resend.
    service.api.service.restart(service.now);
    let again = InFlight { request: start_attempt(&mut service).request, ..again };
    report_attempt(&mut service, &again, FAILURE);
    let state = |service: &TestService| service.book(Mode::Live).outbox().get(attempt.request.delivery).state;
    assert_eq!(state(&service), DeliveryState::Waiting(first_retry));
    // A retry that becomes due while a resend is in flight is made right after it.
    assert_eq!(resend(&mut service, Mode::Live, &attempt.request), 200);
    let slow_resend = start_attempt(&mut service);
    service.wait(Span::mins(2));
    assert!(service.poll_delivery().is_none(), "a delivery has at most one attempt in flight");
    report_attempt(&mut service, &slow_resend, FAILURE);
    assert_eq!(state(&service), DeliveryState::Waiting(service.now));
    fail_all_attempts(&mut service);
    assert_eq!((states(&service), attempt_count(&service, &attempt)), (vec!["failed"], 14 + 2));
    for (result, after) in [(FAILURE, "failed"), (SUCCESS, "delivered")] {
        assert_eq!(resend(&mut service, Mode::Live, &attempt.request), 200);
        let again = start_attempt(&mut service);
        report_attempt(&mut service, &again, result);
        fail_all_attempts(&mut service);
        assert_eq!(states(&service), [after]);
    }
    assert_eq!(
        service.endpoint(Mode::Live, endpoint).failed_in_a_row,
        0,
        "a success resets the count of failures"
    );
    assert_eq!(attempt_count(&service, &attempt), 14 + 4);
}

#[test]
fn disabling_cancels_a_resend_but_keeps_earlier_results() {
    for (first, after) in [(SUCCESS, "delivered"), (FAILURE, "canceled")] {
        for in_flight in [false, true] {
            let (mut service, endpoint) = service_with_endpoint();
            service.create_charge();
            let attempt = start_attempt(&mut service);
            report_attempt(&mut service, &attempt, first.clone());
            assert_eq!(resend(&mut service, Mode::Live, &attempt.request), 200);
            let repeated = in_flight.then(|| start_attempt(&mut service));
            let disable =
                BookCommand::ChangeEndpoint { id: endpoint, url: None, events: None, enabled: Some(false) };
            service.run_command(Mode::Live, disable).unwrap();
            if let Some(repeated) = repeated {
                report_attempt(&mut service, &repeated, FAILURE);
            }
            assert_eq!(states(&service), [after]);
            assert!(service.poll_delivery().is_none());
        }
    }
}

#[test]
fn a_test_delivery_is_sent_to_one_endpoint_only() {
    let (mut service, endpoint) = service_with_endpoint();
    service.add_endpoint(Mode::Live, "https://other.example/hook", &EventType::ALL);
    service.run_command(Mode::Live, BookCommand::SendTest(endpoint)).unwrap();
    let attempts = service.attempt_all(&FAILURE);
    assert_eq!(attempts.len(), 1);
    let body: Value = serde_json::from_slice(&attempts[0].1.body).unwrap();
    assert_eq!(
        (&body["test"], &body["event_id"], &body["event"]),
        (&json!(true), &Value::Null, &json!("charge.paid"))
    );
    assert_eq!(body["id"], attempts[0].1.id.to_string());
    service.wait(Span::mins(1));
    assert_eq!(service.attempt_all(&SUCCESS).len(), 1, "a test delivery is retried like any other");
    assert_eq!(service.run_command(Mode::Test, BookCommand::SendTest(endpoint)).unwrap_err().status(), 404);
    let disable = BookCommand::ChangeEndpoint { id: endpoint, url: None, events: None, enabled: Some(false) };
    service.run_command(Mode::Live, disable).unwrap();
    assert_eq!(service.run_command(Mode::Live, BookCommand::SendTest(endpoint)).unwrap_err().status(), 409);
}

#[test]
fn a_disabled_or_removed_endpoint_gets_no_attempts() {
    for remove in [false, true] {
        let (mut service, endpoint) = service_with_endpoint();
        service.create_charge();
        service.create_charge();
        let attempt = start_attempt(&mut service);
        let command = match remove {
            true => BookCommand::RemoveEndpoint(endpoint),
            false => {
                BookCommand::ChangeEndpoint { id: endpoint, url: None, events: None, enabled: Some(false) }
            }
        };
        service.run_command(Mode::Live, command).unwrap();
        service.create_charge();
        assert!(service.poll_delivery().is_none());
        report_attempt(&mut service, &attempt, FAILURE);
        assert_eq!(states(&service), ["canceled", "canceled"], "a delivery in flight is not retried either");
        assert_eq!(resend(&mut service, Mode::Live, &attempt.request), 409);
        let enable =
            BookCommand::ChangeEndpoint { id: endpoint, url: None, events: None, enabled: Some(true) };
        let result = service.run_command(Mode::Live, enable).map(drop).map_err(|error| error.status());
        assert_eq!(result, if remove { Err(404) } else { Ok(()) });
        service.create_charge();
        assert_eq!(
            service.attempt_all(&SUCCESS).len(),
            usize::from(!remove),
            "only deliveries of later events"
        );
    }
}

#[test]
fn the_delivery_log_keeps_30_days() {
    let (mut service, endpoint) = service_with_endpoint();
    service.create_charge();
    let delivered = start_attempt(&mut service);
    report_attempt(&mut service, &delivered, SUCCESS);
    service.wait(Span::days(30));
    service.now = service.now.minus(TICK);
    service.create_charge();
    assert_eq!(states(&service), ["delivered", "waiting"]);
    service.wait(TICK);
    service.create_charge();
    assert_eq!(states(&service), ["waiting", "waiting"]);
    assert_eq!(resend(&mut service, Mode::Live, &delivered.request), 404);
    // A pending delivery is found by its number, although earlier ones were dropped.
    let attempts = service.attempt_all(&SUCCESS);
    assert_eq!(attempts.len(), 2);
    assert_eq!(states(&service), ["delivered", "delivered"]);
    for (_, attempt) in attempts {
        assert_eq!(resend(&mut service, Mode::Live, &attempt), 200);
    }
    let interrupted = start_attempt(&mut service);
    service.api.service.restart(service.now);
    assert_eq!(start_attempt(&mut service).request.id, interrupted.request.id);
    let log = service.book(Mode::Live).outbox();
    let ids = |deliveries: &mut dyn Iterator<Item = &Delivery>| {
        deliveries.map(|delivery| delivery.id).collect::<Vec<_>>()
    };
    let all = ids(&mut log.iter());
    assert_eq!(log.deliveries_before(Some(all[1])).map(|mut found| ids(&mut found)), Some(vec![all[0]]));
    assert_eq!(ids(&mut log.deliveries_opened_at(service.now)), all[1..]);
    assert_eq!(ids(&mut log.deliveries_opened_at(service.now.minus(TICK))), all[..1]);
    let disable = BookCommand::ChangeEndpoint { id: endpoint, url: None, events: None, enabled: Some(false) };
    service.run_command(Mode::Live, disable).unwrap();
    assert_eq!(states(&service), ["in_flight", "delivered"]);
}

#[test]
fn a_delivery_body_keeps_the_state_at_the_event() {
    let (mut service, _) = service_with_endpoint();
    let charge = service.create_charge();
    let before = start_attempt(&mut service);
    report_attempt(&mut service, &before, FAILURE);
    service.report_sighting(&charge, "a", "0.0025", MEMPOOL);
    service.report_sighting(&charge, "a", "0.0025", confirmed(2));
    assert_eq!(service.charge_status(&charge), "paid");
    service.wait(Span::mins(1));
    let after = start_attempt(&mut service).request;
    assert_eq!(after.body, before.request.body);
    let body: Value = serde_json::from_slice(&after.body).unwrap();
    assert_eq!(body["data"]["charge"]["status"], "pending");
    let event = service.get(&format!("/v1/events/{}", body["event_id"].as_str().unwrap())).data();
    assert_eq!(event["charge"]["status"], "paid", "the API shows the current state of the charge");
}

#[test]
fn an_event_is_delivered_to_the_endpoints_of_its_mode_that_subscribe_to_its_type() {
    let mut service = TestService::new();
    let created = service.add_endpoint(Mode::Live, "https://one.example/", &[EventType::ChargeCreated]);
    let all = service.add_endpoint(Mode::Live, "https://two.example/", &EventType::ALL);
    service.add_endpoint(Mode::Live, "https://three.example/", &[EventType::InvoicePaid]);
    let test = service.add_endpoint(Mode::Test, "https://one.example/", &EventType::ALL);
    let charge = service.create_charge();
    service.post(&format!("/v1/charges/{charge}/cancel"), &json!({}));
    let key = service.test_key.clone();
    service.send(
        &TestRequest::new("POST", "/v1/charges").key(&key).json(&json!({"asset": "BTC", "amount": "1"})),
    );
    let attempts = service.attempt_all(&SUCCESS);
    let delivered: Vec<(Mode, Code, &str)> = attempts
        .iter()
        .map(|(mode, attempt)| {
            (*mode, service.book(*mode).endpoint(attempt.endpoint).id, attempt.kind.as_str())
        })
        .collect();
    assert_eq!(
        delivered,
        [
            (Mode::Live, created, "charge.created"),
            (Mode::Live, all, "charge.created"),
            (Mode::Live, all, "charge.canceled"),
            (Mode::Test, test, "charge.created"),
        ]
    );
    let event_id = |attempt: &AttemptRequest| {
        serde_json::from_slice::<Value>(&attempt.body).unwrap()["event_id"].clone()
    };
    assert_eq!(event_id(&attempts[0].1), event_id(&attempts[1].1), "both deliveries have the same event");
    assert_ne!(attempts[0].1.id, attempts[1].1.id, "each endpoint has its own delivery");
    let modes: Vec<Value> = attempts
        .iter()
        .map(|(_, attempt)| serde_json::from_slice::<Value>(&attempt.body).unwrap()["mode"].clone())
        .collect();
    assert_eq!(modes, ["live", "live", "live", "test"]);
}

#[test]
fn an_attempt_interrupted_by_a_restart_is_repeated_with_its_id() {
    let (mut service, _) = service_with_endpoint();
    service.create_charge();
    let attempt = start_attempt(&mut service);
    service.wait(Span::secs(3));
    service.api.service.restart(service.now);
    let again = start_attempt(&mut service);
    assert_eq!(
        (again.request.id, again.request.attempt),
        (attempt.request.id, 1),
        "the interrupted attempt does not count"
    );
    service.api.service.restart(service.now);
    assert_eq!(service.attempt_all(&FAILURE).len(), 1);
    fail_all_attempts(&mut service);
    let delivery = service.book(Mode::Live).outbox().get(attempt.request.delivery);
    assert_eq!((delivery.state, delivery.attempts.len()), (DeliveryState::Failed, 14));
}

#[test]
fn next_tick_is_the_time_of_the_next_attempt_or_expiry() {
    let (mut service, _) = service_with_endpoint();
    assert_eq!(service.api.service.next_tick(), None);
    let end = service.now.plus(crate::test_service::LOCK);
    service.create_charge();
    assert_eq!(service.api.service.next_tick(), Some(service.now), "an attempt is due at once");
    service.attempt_all(&SUCCESS);
    assert_eq!(service.api.service.next_tick(), Some(end));
}

#[test]
fn the_work_of_an_expiry_includes_the_enabled_endpoints() {
    let (mut service, _) = service_with_endpoint();
    service.add_endpoint(Mode::Live, URL, &[EventType::ChargePaid]);
    let disabled = service.add_endpoint(Mode::Live, URL, &EventType::ALL);
    let disable = BookCommand::ChangeEndpoint { id: disabled, url: None, events: None, enabled: Some(false) };
    service.run_command(Mode::Live, disable).unwrap();
    for _ in 0..3 {
        service.create_charge();
    }
    service.wait(crate::test_service::LOCK);
    // Each expiry is three units of work: the lock, and two enabled endpoints. The bound is checked before each.
    let work = [4, 9].map(|work_max| service.api.service.on_tick_in_part(service.now, work_max));
    assert_eq!(work, [6, 3]);
}

#[test]
fn a_book_has_at_most_50_endpoints_without_removed_ones() {
    let (mut service, first) = service_with_endpoint();
    let add = || BookCommand::AddEndpoint { url: URL.to_owned(), events: [EventType::ChargePaid].into() };
    let mut add_status = |mode| service.run_command(mode, add()).map_or_else(|error| error.status(), |_| 201);
    assert_eq!(
        (1..=50).map(|_| add_status(Mode::Live)).collect::<Vec<_>>(),
        [vec![201; 49], vec![422]].concat()
    );
    assert_eq!(add_status(Mode::Test), 201);
    service.run_command(Mode::Live, BookCommand::RemoveEndpoint(first)).unwrap();
    assert_eq!([0; 2].map(|_| service.run_command(Mode::Live, add()).is_ok()), [true, false]);
}

#[test]
fn an_endpoint_url_that_is_not_public_is_refused() {
    let (mut service, endpoint) = service_with_endpoint();
    let add =
        |url: &str| BookCommand::AddEndpoint { url: url.to_owned(), events: [EventType::ChargePaid].into() };
    for url in [
        "http://shop.example/",
        "https://localhost/",
        "https://10.0.0.1/",
        "https://[::1]/",
        "https://u:p@shop.example/",
        "nonsense",
        "",
    ] {
        let error = service.run_command(Mode::Live, add(url)).unwrap_err();
        assert_eq!(error.status(), 422, "{url}");
        let change = BookCommand::ChangeEndpoint {
            id: endpoint,
            url: Some(url.to_owned()),
            events: None,
            enabled: Some(false),
        };
        assert_eq!(service.run_command(Mode::Live, change).unwrap_err().status(), 422, "{url}");
    }
    assert_eq!(
        service.endpoint(Mode::Live, endpoint).status,
        EndpointStatus::Enabled,
        "a refused change changes nothing"
    );
    let without_events = BookCommand::AddEndpoint { url: URL.to_owned(), events: [].into() };
    assert_eq!(service.run_command(Mode::Live, without_events).unwrap_err().status(), 422);
}
