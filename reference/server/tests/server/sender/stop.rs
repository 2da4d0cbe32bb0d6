//! Deliveries in flight and waiting when the server stops.

use std::{net::IpAddr, sync::Arc, time::Duration};

use reference_core::{
    outbox::{AttemptReport, AttemptResult},
    time::Timestamp,
};
use reference_server::{Bounds, Config, SenderBounds, SenderConfig, Server, World};
use reference_wire::Request;
use serde_json::json;
use simulator::sandbox::{AttemptId, FirstKeys, OutgoingAttempt, PendingAdvance, Progress, Sandbox};
use tokio::sync::{
    Semaphore,
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};

use super::{
    add_endpoint, call, config,
    receiver::{Receiver, ReceiverBehavior},
    resolver::TestResolver,
    sender_config, shop_forward,
};

/// A sandbox that sends the result of every attempt to the test.
struct ReportingWorld(Sandbox, UnboundedSender<AttemptResult>);

impl World for ReportingWorld {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.0.next_due()
    }

    fn advance_to(&mut self, now: Timestamp) {
        self.0.advance_to(now);
    }

    fn respond(&mut self, now: Timestamp, request: &Request<'_>) -> Progress {
        self.0.call(now, request)
    }

    fn first_keys(&self) -> FirstKeys {
        self.0.first_keys()
    }

    fn continue_call(&mut self, now: Timestamp, pending: PendingAdvance) -> Progress {
        self.0.continue_call(now, pending)
    }

    fn take_outgoing(&mut self) -> Vec<OutgoingAttempt> {
        self.0.take_outgoing()
    }

    fn on_attempt_result(&mut self, now: Timestamp, id: AttemptId, report: AttemptReport) {
        self.1.send(report.result.clone()).expect("the test listens");
        self.0.on_attempt_result(now, id, report);
    }

    fn on_name_resolved(&mut self, host: &str, addresses: Vec<IpAddr>) {
        self.0.set_resolution(host, addresses);
    }

    fn declare_forwarded(&mut self, host: &str) {
        self.0.declare_forwarded(host);
    }
}

/// Starts a server that makes one attempt at a time and has `count` test deliveries for the receiver. Returns it and
/// the results of the attempts.
async fn start_busy_server(
    receiver: &Receiver,
    count: usize,
    drain_time: Duration,
) -> (Server, UnboundedReceiver<AttemptResult>) {
    let (reporter, reports) = unbounded_channel();
    let bounds = SenderBounds { attempts_per_host: 1, ..super::BOUNDS };
    let sender =
        SenderConfig { bounds, ..sender_config(&TestResolver::default(), &[shop_forward(receiver)]) };
    let config = Config { bounds: Bounds { drain_time, ..Bounds::default() }, ..config(sender) };
    let server = Server::start_with(config, |setup| ReportingWorld(Sandbox::new(setup), reporter)).await;
    let server = server.expect("loopback has a free port");
    let (_, response) = add_endpoint(&server, "https://shop.example").await;
    let path = format!("/sandbox/endpoints/{}/test", response["endpoint"]["id"].as_str().expect("an id"));
    for _ in 0..count {
        assert_eq!(call(&server, "POST", &path, &json!({})).await.0, 200);
    }
    (server, reports)
}

/// Returns the result of an attempt that the stop of the server prevented or interrupted.
fn stopped_result() -> AttemptResult {
    AttemptResult::Unreachable("the server stopped".to_owned())
}

#[tokio::test]
async fn a_stopping_server_finishes_running_attempts_and_starts_no_others() {
    let permits = Arc::new(Semaphore::new(0));
    let mut receiver = Receiver::http(ReceiverBehavior::RespondWithPermit(Arc::clone(&permits))).await;
    let (server, mut reports) = start_busy_server(&receiver, 3, Duration::from_secs(20)).await;
    receiver.next_request().await;
    let stopping = tokio::spawn(server.stop());
    assert_eq!(reports.recv().await, Some(stopped_result()));
    assert_eq!(reports.recv().await, Some(stopped_result()));
    permits.add_permits(3);
    assert_eq!(reports.recv().await, Some(AttemptResult::Response(200)));
    assert_eq!(stopping.await.expect("the server stops"), 0);
    assert_eq!(receiver.connections(), 1);
}

#[tokio::test]
async fn an_attempt_that_outlasts_the_drain_time_is_recorded_as_failed() {
    let mut receiver = Receiver::http(ReceiverBehavior::RespondAndHang("")).await;
    let (server, mut reports) = start_busy_server(&receiver, 1, Duration::from_millis(100)).await;
    receiver.next_request().await;
    server.stop().await;
    assert_eq!(reports.recv().await, Some(stopped_result()));
    assert_eq!(reports.recv().await, None, "the result is reported once");
}
