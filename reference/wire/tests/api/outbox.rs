//! Deliveries: their times, number of attempts, content, and cancellation.

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

use crate::test_service::{Call, MEMPOOL, TICK, TestService, confirmed};

const URL: &str = "https://shop.example/hook";
const FINE: AttemptResult = AttemptResult::Answered(200);
const BROKEN: AttemptResult = AttemptResult::Answered(500);

/// Returns a service with one live endpoint that subscribes to new charges only.
fn service_with_endpoint() -> (TestService, Code) {
    let mut service = TestService::new();
    let endpoint = service.add_endpoint(Mode::Live, URL, &[EventType::ChargeCreated]);
    (service, endpoint)
}

/// A sent post, with its account and mode.
type TakenPost = (AccountNo, Mode, AttemptRequest);

#[track_caller]
fn take_post(service: &mut TestService) -> TakenPost {
    service.poll_delivery().expect("a post is due")
}

fn report_attempt(service: &mut TestService, (account, mode, post): &TakenPost, outcome: AttemptResult) {
    service.api.service.on_attempt_result(service.now, (*account, *mode), post.delivery, outcome);
}

#[test]
fn a_failed_delivery_is_tried_14_times_on_schedule() {
    let (mut service, _) = service_with_endpoint();
    service.charge();
    let minutes = [1, 5, 30, 60, 120, 240, 480, 600, 600, 600, 600, 600, 600];
    let mut first: Option<AttemptRequest> = None;
    for attempt in 1..=14_u32 {
        let flight = take_post(&mut service);
        assert_eq!(flight.2.attempt, attempt);
        assert!(service.poll_delivery().is_none(), "it is in flight");
        let earlier = first.get_or_insert(flight.2.clone());
        assert_eq!(
            (earlier.id, &earlier.body),
            (flight.2.id, &flight.2.body),
            "one id and one body for all attempts"
        );
        service.wait(Span::secs(15));
        report_attempt(&mut service, &flight, AttemptResult::TimedOut);
        let Some(&minutes) = minutes.get(attempt as usize - 1) else { break };
        let delay = Span::mins(minutes);
        let next = service.now.plus(delay);
        let delivery = service.book(Mode::Live).outbox().get(flight.2.delivery);
        assert_eq!(delivery.state, DeliveryState::Waiting(next), "after attempt {attempt}");
        service.wait_until(next.minus(TICK));
        assert!(service.poll_delivery().is_none(), "not a microsecond early");
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
    fn check(outcome: AttemptResult, delivered: bool) {
        let (mut service, _) = service_with_endpoint();
        service.charge();
        let flight = take_post(&mut service);
        report_attempt(&mut service, &flight, outcome.clone());
        let state = service.book(Mode::Live).outbox().get(flight.2.delivery).state;
        assert_eq!(state == DeliveryState::Delivered, delivered, "{outcome:?}");
        assert_eq!(matches!(state, DeliveryState::Waiting(_)), !delivered, "{outcome:?}");
    }
    for status in [200, 201, 202, 204, 299] {
        check(AttemptResult::Answered(status), true);
    }
    for status in [0, 100, 199, 300, 301, 302, 307, 308, 400, 401, 404, 410, 429, 500, 503, 600] {
        check(AttemptResult::Answered(status), false);
    }
    check(AttemptResult::TimedOut, false);
    check(AttemptResult::Unreachable("connection refused".to_owned()), false);
    check(AttemptResult::Refused("the name resolves to 10.0.0.1".to_owned()), false);
}

/// Fails every post until nothing is due.
fn fail_all_posts(service: &mut TestService) {
    while let Some(due) = service.book(Mode::Live).outbox().next_due() {
        service.wait_until(due.max(service.now));
        service.attempt_all(&BROKEN);
    }
}

fn states(service: &TestService) -> Vec<&'static str> {
    service.book(Mode::Live).outbox().iter().map(|delivery| delivery.state.as_str()).collect()
}

#[test]
fn fifteen_failed_deliveries_in_a_row_switch_the_endpoint_off() {
    let (mut service, endpoint) = service_with_endpoint();
    for _ in 0..15 {
        service.charge();
    }
    // A sixteenth, shortly after the others.
    let first = take_post(&mut service);
    report_attempt(&mut service, &first, BROKEN);
    service.wait(Span::mins(10));
    service.charge();
    service.api.service.take_notices();
    fail_all_posts(&mut service);
    assert_eq!(service.endpoint(Mode::Live, endpoint).status, EndpointStatus::Disabled);
    let states = states(&service);
    assert_eq!(states.iter().filter(|state| **state == "failed").count(), 15);
    assert_eq!(states[15], "canceled", "switching off cancels what waits");
    let notices = service.api.service.take_notices();
    assert_eq!(notices.iter().filter(|(_, _, notice)| matches!(notice, Notice::EndpointOff(_))).count(), 1);
    service.charge();
    assert!(service.poll_delivery().is_none(), "a disabled endpoint receives nothing");
    assert_eq!(service.book(Mode::Live).outbox().iter().count(), 16);
}

#[test]
fn a_success_starts_the_count_again() {
    let (mut service, endpoint) = service_with_endpoint();
    for (failures, status) in
        [(14, EndpointStatus::Enabled), (14, EndpointStatus::Enabled), (15, EndpointStatus::Disabled)]
    {
        for _ in 0..failures {
            service.charge();
            fail_all_posts(&mut service);
        }
        assert_eq!(service.endpoint(Mode::Live, endpoint).status, status);
        service.charge();
        service.attempt_all(&FINE);
    }
    let on = BookCommand::ChangeEndpoint { id: endpoint, url: None, events: None, enabled: Some(true) };
    service.run_command(Mode::Live, on).unwrap();
    for _ in 0..14 {
        service.charge();
        fail_all_posts(&mut service);
    }
    assert_eq!(
        service.endpoint(Mode::Live, endpoint).status,
        EndpointStatus::Enabled,
        "after it is enabled, it starts again"
    );
}

#[test]
fn a_rotated_secret_signs_from_the_next_attempt_on() {
    let (mut service, endpoint) = service_with_endpoint();
    service.charge();
    let flight = take_post(&mut service);
    let old = flight.2.secret.reveal().to_owned();
    assert!(old.starts_with("whsec_") && old.len() == 6 + 32, "{old}");
    service.run_command(Mode::Live, BookCommand::RotateSecret(endpoint)).unwrap();
    report_attempt(&mut service, &flight, BROKEN);
    service.wait(Span::mins(1));
    let again = take_post(&mut service).2;
    assert_ne!(again.secret.reveal(), old);
    assert_eq!(again.secret.reveal(), service.endpoint(Mode::Live, endpoint).secret.reveal());
    assert_eq!((again.id, again.body), (flight.2.id, flight.2.body), "nothing else changes");
}

fn resend(service: &mut TestService, mode: Mode, post: &AttemptRequest) -> u16 {
    match service.run_command(mode, BookCommand::Resend(post.id)) {
        Ok(CommandResult::Delivery(id)) => {
            assert_eq!(id, post.id);
            200
        }
        Ok(other) => panic!("a resend leads to a delivery: {other:?}"),
        Err(error) => error.status(),
    }
}

#[test]
fn a_resend_keeps_the_delivery_id_and_is_one_attempt() {
    let (mut service, endpoint) = service_with_endpoint();
    service.charge();
    let flight = take_post(&mut service);
    assert_eq!(resend(&mut service, Mode::Live, &flight.2), 409, "it is being posted right now");
    report_attempt(&mut service, &flight, FINE);
    assert_eq!(resend(&mut service, Mode::Test, &flight.2), 404);
    assert_eq!(resend(&mut service, Mode::Live, &flight.2), 200);
    let again = take_post(&mut service);
    assert_eq!((again.2.id, &again.2.body, again.2.attempt), (flight.2.id, &flight.2.body, 2));
    assert!(service.poll_delivery().is_none());
    assert_eq!(resend(&mut service, Mode::Live, &flight.2), 409, "it is being posted right now");
    report_attempt(&mut service, &again, BROKEN);
    assert_eq!(states(&service), ["delivered"], "a resend that fails changes nothing");
    fail_all_posts(&mut service);
    assert_eq!(attempts(&service, &flight), 2, "and is not repeated");
    let off = BookCommand::ChangeEndpoint { id: endpoint, url: None, events: None, enabled: Some(false) };
    service.run_command(Mode::Live, off).unwrap();
    assert_eq!(resend(&mut service, Mode::Live, &flight.2), 409);
}

fn attempts(service: &TestService, (.., post): &TakenPost) -> usize {
    service.book(Mode::Live).outbox().get(post.delivery).attempts.len()
}

#[test]
fn a_resend_that_fails_leaves_the_schedule_as_it_was() {
    let (mut service, endpoint) = service_with_endpoint();
    service.charge();
    let flight = take_post(&mut service);
    report_attempt(&mut service, &flight, BROKEN);
    let first_retry = service.now.plus(Span::mins(1));
    // Resent twice while a retry waits: it is posted once at once, and the retry still waits.
    service.wait(Span::secs(1));
    assert_eq!(resend(&mut service, Mode::Live, &flight.2), 200);
    assert_eq!(resend(&mut service, Mode::Live, &flight.2), 200);
    let again = take_post(&mut service);
    assert!(service.poll_delivery().is_none());
    // After a loss in a restart, it is still a resend.
    service.api.service.restart(service.now);
    let again = (again.0, again.1, take_post(&mut service).2);
    report_attempt(&mut service, &again, BROKEN);
    let state = |service: &TestService| service.book(Mode::Live).outbox().get(flight.2.delivery).state;
    assert_eq!(state(&service), DeliveryState::Waiting(first_retry));
    // A retry that is due while a resend is in flight follows at once.
    assert_eq!(resend(&mut service, Mode::Live, &flight.2), 200);
    let slow = take_post(&mut service);
    service.wait(Span::mins(2));
    assert!(service.poll_delivery().is_none(), "it is posted once at a time");
    report_attempt(&mut service, &slow, BROKEN);
    assert_eq!(state(&service), DeliveryState::Waiting(service.now));
    fail_all_posts(&mut service);
    assert_eq!((states(&service), attempts(&service, &flight)), (vec!["failed"], 14 + 2));
    for (result, after) in [(BROKEN, "failed"), (FINE, "delivered")] {
        assert_eq!(resend(&mut service, Mode::Live, &flight.2), 200);
        let again = take_post(&mut service);
        report_attempt(&mut service, &again, result);
        fail_all_posts(&mut service);
        assert_eq!(states(&service), [after]);
    }
    assert_eq!(service.endpoint(Mode::Live, endpoint).failed_in_a_row, 0, "a success ends a row of failures");
    assert_eq!(attempts(&service, &flight), 14 + 4);
}

#[test]
fn disabling_cancels_a_resend_but_keeps_earlier_results() {
    for (first, after) in [(FINE, "delivered"), (BROKEN, "canceled")] {
        for in_flight in [false, true] {
            let (mut service, endpoint) = service_with_endpoint();
            service.charge();
            let flight = take_post(&mut service);
            report_attempt(&mut service, &flight, first.clone());
            assert_eq!(resend(&mut service, Mode::Live, &flight.2), 200);
            let again = in_flight.then(|| take_post(&mut service));
            let off =
                BookCommand::ChangeEndpoint { id: endpoint, url: None, events: None, enabled: Some(false) };
            service.run_command(Mode::Live, off).unwrap();
            if let Some(again) = again {
                report_attempt(&mut service, &again, BROKEN);
            }
            assert_eq!(states(&service), [after]);
            assert!(service.poll_delivery().is_none());
        }
    }
}

#[test]
fn a_test_delivery_goes_to_one_endpoint_only() {
    let (mut service, endpoint) = service_with_endpoint();
    service.add_endpoint(Mode::Live, "https://other.example/hook", &EventType::ALL);
    service.run_command(Mode::Live, BookCommand::SendTest(endpoint)).unwrap();
    let posts = service.attempt_all(&BROKEN);
    assert_eq!(posts.len(), 1);
    let body: Value = serde_json::from_slice(&posts[0].1.body).unwrap();
    assert_eq!(
        (&body["test"], &body["event_id"], &body["event"]),
        (&json!(true), &Value::Null, &json!("charge.paid"))
    );
    assert_eq!(body["id"], posts[0].1.id.to_string());
    service.wait(Span::mins(1));
    assert_eq!(service.attempt_all(&FINE).len(), 1, "it is repeated like any other");
    assert_eq!(service.run_command(Mode::Test, BookCommand::SendTest(endpoint)).unwrap_err().status(), 404);
    let off = BookCommand::ChangeEndpoint { id: endpoint, url: None, events: None, enabled: Some(false) };
    service.run_command(Mode::Live, off).unwrap();
    assert_eq!(service.run_command(Mode::Live, BookCommand::SendTest(endpoint)).unwrap_err().status(), 409);
}

#[test]
fn a_disabled_or_removed_endpoint_gets_nothing_more() {
    for remove in [false, true] {
        let (mut service, endpoint) = service_with_endpoint();
        service.charge();
        service.charge();
        let flight = take_post(&mut service);
        let act = match remove {
            true => BookCommand::RemoveEndpoint(endpoint),
            false => {
                BookCommand::ChangeEndpoint { id: endpoint, url: None, events: None, enabled: Some(false) }
            }
        };
        service.run_command(Mode::Live, act).unwrap();
        service.charge();
        assert!(service.poll_delivery().is_none());
        report_attempt(&mut service, &flight, BROKEN);
        assert_eq!(states(&service), ["canceled", "canceled"], "what was in flight is not repeated either");
        assert_eq!(resend(&mut service, Mode::Live, &flight.2), 409);
        let on = BookCommand::ChangeEndpoint { id: endpoint, url: None, events: None, enabled: Some(true) };
        let answer = service.run_command(Mode::Live, on).map(drop).map_err(|error| error.status());
        assert_eq!(answer, if remove { Err(404) } else { Ok(()) });
        service.charge();
        assert_eq!(service.attempt_all(&FINE).len(), usize::from(!remove), "only what happens from now on");
    }
}

#[test]
fn the_log_goes_back_30_days() {
    let (mut service, endpoint) = service_with_endpoint();
    service.charge();
    let delivered = take_post(&mut service);
    report_attempt(&mut service, &delivered, FINE);
    service.wait(Span::days(30));
    service.now = service.now.minus(TICK);
    service.charge();
    assert_eq!(states(&service), ["delivered", "waiting"]);
    service.wait(TICK);
    service.charge();
    assert_eq!(states(&service), ["waiting", "waiting"]);
    assert_eq!(resend(&mut service, Mode::Live, &delivered.2), 404);
    // A pending delivery is found by its number, although earlier ones were dropped.
    let posts = service.attempt_all(&FINE);
    assert_eq!(posts.len(), 2);
    assert_eq!(states(&service), ["delivered", "delivered"]);
    for (_, post) in posts {
        assert_eq!(resend(&mut service, Mode::Live, &post), 200);
    }
    let cut_off = take_post(&mut service);
    service.api.service.restart(service.now);
    assert_eq!(take_post(&mut service).2.id, cut_off.2.id);
    let log = service.book(Mode::Live).outbox();
    let ids = |deliveries: &mut dyn Iterator<Item = &Delivery>| {
        deliveries.map(|delivery| delivery.id).collect::<Vec<_>>()
    };
    let all = ids(&mut log.iter());
    assert_eq!(log.deliveries_before(Some(all[1])).map(|mut found| ids(&mut found)), Some(vec![all[0]]));
    assert_eq!(ids(&mut log.deliveries_opened_at(service.now)), all[1..]);
    assert_eq!(ids(&mut log.deliveries_opened_at(service.now.minus(TICK))), all[..1]);
    let off = BookCommand::ChangeEndpoint { id: endpoint, url: None, events: None, enabled: Some(false) };
    service.run_command(Mode::Live, off).unwrap();
    assert_eq!(states(&service), ["in_flight", "delivered"]);
}

#[test]
fn a_body_is_frozen_when_the_event_happens() {
    let (mut service, _) = service_with_endpoint();
    let charge = service.charge();
    let before = take_post(&mut service);
    report_attempt(&mut service, &before, BROKEN);
    service.report_sighting(&charge, "a", "0.0025", MEMPOOL);
    service.report_sighting(&charge, "a", "0.0025", confirmed(2));
    assert_eq!(service.status(&charge), "paid");
    service.wait(Span::mins(1));
    let after = take_post(&mut service).2;
    assert_eq!(after.body, before.2.body);
    let body: Value = serde_json::from_slice(&after.body).unwrap();
    assert_eq!(body["data"]["charge"]["status"], "pending");
    let event = service.get(&format!("/v1/events/{}", body["event_id"].as_str().unwrap())).data();
    assert_eq!(event["charge"]["status"], "paid", "but the API shows the charge as it is now");
}

#[test]
fn an_event_goes_to_each_endpoint_of_its_mode_that_asked_for_its_type() {
    let mut service = TestService::new();
    let created = service.add_endpoint(Mode::Live, "https://one.example/", &[EventType::ChargeCreated]);
    let all = service.add_endpoint(Mode::Live, "https://two.example/", &EventType::ALL);
    service.add_endpoint(Mode::Live, "https://three.example/", &[EventType::InvoicePaid]);
    let test = service.add_endpoint(Mode::Test, "https://one.example/", &EventType::ALL);
    let charge = service.charge();
    service.post(&format!("/v1/charges/{charge}/cancel"), &json!({}));
    let key = service.test.clone();
    service.send(&Call::new("POST", "/v1/charges").key(&key).json(&json!({"asset": "BTC", "amount": "1"})));
    let posts = service.attempt_all(&FINE);
    let seen: Vec<(Mode, Code, &str)> = posts
        .iter()
        .map(|(mode, post)| (*mode, service.book(*mode).endpoint(post.endpoint).id, post.kind.as_str()))
        .collect();
    assert_eq!(
        seen,
        [
            (Mode::Live, created, "charge.created"),
            (Mode::Live, all, "charge.created"),
            (Mode::Live, all, "charge.canceled"),
            (Mode::Test, test, "charge.created"),
        ]
    );
    let event_id =
        |post: &AttemptRequest| serde_json::from_slice::<Value>(&post.body).unwrap()["event_id"].clone();
    assert_eq!(event_id(&posts[0].1), event_id(&posts[1].1), "one event");
    assert_ne!(posts[0].1.id, posts[1].1.id, "but each endpoint has a delivery of its own");
    let modes: Vec<Value> = posts
        .iter()
        .map(|(_, post)| serde_json::from_slice::<Value>(&post.body).unwrap()["mode"].clone())
        .collect();
    assert_eq!(modes, ["live", "live", "live", "test"]);
}

#[test]
fn after_a_restart_a_post_in_flight_is_due_again_under_its_id() {
    let (mut service, _) = service_with_endpoint();
    service.charge();
    let flight = take_post(&mut service);
    service.wait(Span::secs(3));
    service.api.service.restart(service.now);
    let again = take_post(&mut service);
    assert_eq!(
        (again.2.id, again.2.attempt),
        (flight.2.id, 1),
        "the attempt that was cut off does not count"
    );
    service.api.service.restart(service.now);
    assert_eq!(service.attempt_all(&BROKEN).len(), 1);
    fail_all_posts(&mut service);
    let delivery = service.book(Mode::Live).outbox().get(flight.2.delivery);
    assert_eq!((delivery.state, delivery.attempts.len()), (DeliveryState::Failed, 14));
}

#[test]
fn next_tick_is_the_next_due_time() {
    let (mut service, _) = service_with_endpoint();
    assert_eq!(service.api.service.next_tick(), None);
    let end = service.now.plus(crate::test_service::LOCK);
    service.charge();
    assert_eq!(service.api.service.next_tick(), Some(service.now), "a post is due at once");
    service.attempt_all(&FINE);
    assert_eq!(service.api.service.next_tick(), Some(end));
}

#[test]
fn each_notified_endpoint_counts_as_work_of_an_ended_lock() {
    let (mut service, _) = service_with_endpoint();
    service.add_endpoint(Mode::Live, URL, &[EventType::ChargePaid]);
    let off = service.add_endpoint(Mode::Live, URL, &EventType::ALL);
    let off = BookCommand::ChangeEndpoint { id: off, url: None, events: None, enabled: Some(false) };
    service.run_command(Mode::Live, off).unwrap();
    for _ in 0..3 {
        service.charge();
    }
    service.wait(crate::test_service::LOCK);
    let work = [4, 9].map(|work_max| service.api.service.on_tick_in_part(service.now, work_max));
    assert_eq!(work, [6, 3]);
}

#[test]
fn a_book_has_50_endpoints_at_most_and_one_that_is_removed_makes_room() {
    let (mut service, first) = service_with_endpoint();
    let add = || BookCommand::AddEndpoint { url: URL.to_owned(), events: [EventType::ChargePaid].into() };
    let mut added = |mode| service.run_command(mode, add()).map_or_else(|error| error.status(), |_| 201);
    assert_eq!((1..=50).map(|_| added(Mode::Live)).collect::<Vec<_>>(), [vec![201; 49], vec![422]].concat());
    assert_eq!(added(Mode::Test), 201);
    service.run_command(Mode::Live, BookCommand::RemoveEndpoint(first)).unwrap();
    assert_eq!([0; 2].map(|_| service.run_command(Mode::Live, add()).is_ok()), [true, false]);
}

#[test]
fn an_address_that_is_not_public_is_refused_when_it_is_saved() {
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
    let none = BookCommand::AddEndpoint { url: URL.to_owned(), events: [].into() };
    assert_eq!(service.run_command(Mode::Live, none).unwrap_err().status(), 422);
}
