//! [`EchoWorld`]: a world that echoes its requests, so that tests check what the server passes to the world.

use std::borrow::Cow;

use reference_core::time::{Span, Timestamp};
use reference_server::World;
use reference_wire::{Request, Response};
use simulator::sandbox::{FirstKeys, Progress, Setup};
use tokio::sync::mpsc::UnboundedSender;

/// Responds to every request with one line that describes it, except on some paths: `/v1/bug` panics, `/v1/due` sets a
/// timer to a span from now, `/v1/long` responds with a number of bytes, `/v1/now` with the time, `/v1/public` with the
/// public URL, `/sandbox/advance` advances the clock by a span, `/sandbox/world` restarts at 1970.
pub(crate) struct EchoWorld {
    now: Timestamp,
    due: Option<Timestamp>,
    /// The number of worlds so far: `/sandbox/world` starts another.
    worlds: u32,
    public_url: String,
    /// Receives the time whenever the timer wakes the world.
    woken: UnboundedSender<Timestamp>,
}

impl EchoWorld {
    pub(crate) fn new(setup: &Setup, woken: UnboundedSender<Timestamp>) -> EchoWorld {
        EchoWorld { now: setup.start, due: None, worlds: 1, public_url: setup.public_url.clone(), woken }
    }
}

impl World for EchoWorld {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.due
    }

    fn advance_to(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        if let Some(due) = self.due.take_if(|due| *due <= now) {
            // The test may have dropped the receiver.
            let _ = self.woken.send(due);
        }
    }

    fn respond(&mut self, now: Timestamp, request: &Request<'_>) -> Progress {
        self.now = self.now.max(now);
        let body = String::from_utf8_lossy(request.body);
        let span = || Span::parse(&body).expect("tests send spans");
        let response_body = match request.path {
            "/v1/bug" => panic!("requested by the test"),
            "/v1/due" => {
                self.due = Some(self.now.plus(span()));
                "due".to_string()
            }
            "/v1/long" => "x".repeat(body.parse().expect("tests send lengths")),
            "/v1/now" => self.now.to_string(),
            "/v1/public" => self.public_url.clone(),
            "/sandbox/advance" => {
                self.now = self.now.plus(span());
                self.now.to_string()
            }
            "/sandbox/world" => {
                self.worlds += 1;
                self.now = Timestamp(0);
                "another world".to_string()
            }
            _ => description(request),
        };
        let headers = vec![("x-world", self.worlds.to_string())];
        Progress::Done(Response { status: 200, headers, body: response_body.into_bytes().into() })
    }

    fn first_keys(&self) -> FirstKeys {
        FirstKeys { live: format!("live{}", self.worlds), test: format!("test{}", self.worlds) }
    }
}

/// Returns the line that describes a request.
fn description(request: &Request<'_>) -> String {
    format!(
        "{} {} ?{} auth={} type={} key={} base={} body={}",
        request.method,
        request.path,
        request.query.unwrap_or("-"),
        header_text(request.authorization),
        header_text(request.content_type),
        header_text(request.idempotency_key),
        request.base,
        String::from_utf8_lossy(request.body),
    )
}

/// Returns the value of a header; `-` if it is missing.
fn header_text(header: Option<&[u8]>) -> Cow<'_, str> {
    header.map_or("-".into(), String::from_utf8_lossy)
}
