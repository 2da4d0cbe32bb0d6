//! [`CheckedWorld`]: a world whose responses and webhooks are compared with the document.

use std::collections::{BTreeMap, BTreeSet};

use reference_core::{outbox::AttemptResult, rng::Seed, time::Timestamp};
use reference_wire::{Request, Response};
use serde_json::Value;
use simulator::sandbox::{Progress, Reach, Sandbox, Setup};

use super::document::{Document, Operation};

pub(crate) const BASE: &str = "http://127.0.0.1:8402";
/// A receiver outside of the simulated network, so that deliveries can be read.
pub(crate) const RECEIVER: &str = "https://hooks.example/";

pub(crate) struct CheckedWorld {
    sandbox: Sandbox,
    pub(crate) document: Document,
    pub(crate) live_key: String,
    pub(crate) test_key: String,
    /// The request, response and webhook bodies of the run, by the name of their example.
    pub(crate) examples: BTreeMap<String, Vec<u8>>,
    /// The operations and statuses that occurred.
    pub(crate) observed: BTreeSet<(Operation, u16)>,
    /// The event types that were delivered.
    pub(crate) delivered_types: BTreeSet<String>,
}

/// The key, headers and body of a request.
#[derive(Clone, Copy, Default)]
pub(crate) struct RequestParts<'a> {
    /// Empty for a request without a key.
    pub(crate) key: &'a str,
    /// `None` for `application/json`.
    pub(crate) content_type: Option<&'a str>,
    pub(crate) idempotency_key: Option<&'a str>,
    pub(crate) body: &'a [u8],
}

impl CheckedWorld {
    pub(crate) fn new() -> CheckedWorld {
        let mut sandbox = Sandbox::new(&Setup {
            rate_limit: Some(120),
            journal: true,
            reach: Reach::Network,
            ..Setup::new(
                Seed(1),
                Timestamp::parse("2026-01-05T09:00:00Z").expect("the start is a valid time"),
                BASE,
            )
        });
        sandbox.declare_forwarded("hooks.example");
        sandbox.enable_history();
        let keys = sandbox.first_keys();
        CheckedWorld {
            sandbox,
            document: Document::read(),
            live_key: keys.live,
            test_key: keys.test,
            examples: BTreeMap::new(),
            observed: BTreeSet::new(),
            delivered_types: BTreeSet::new(),
        }
    }

    /// Sends a request, compares the response with this status and the document, and stores its body as the example
    /// with this name, unless the name is empty.
    #[track_caller]
    pub(crate) fn record(
        &mut self,
        method: &str,
        target: &str,
        status: u16,
        parts: RequestParts<'_>,
        name: &str,
    ) -> Value {
        let response = self.send(method, target, parts);
        let path = target.split('?').next().unwrap_or(target);
        let text = String::from_utf8_lossy(&response.body).into_owned();
        assert_eq!(response.status, status, "{method} {target}: {text}");
        let body: Value = serde_json::from_slice(&response.body).expect("responses are JSON");
        let operation =
            self.document.find(method, path).unwrap_or_else(|| panic!("{method} {path} is not documented"));
        let verdict = self.document.validate_response(&operation, status, &body);
        verdict.unwrap_or_else(|error| panic!("{method} {target}: {error}\n{text}"));
        self.check_headers(&operation, &response);
        self.observed.insert((operation, status));
        if !name.is_empty() {
            self.examples.insert(name.to_owned(), response.body.into());
        }
        body
    }

    /// Checks that the headers of a response are documented. They do not include those that the HTTP server adds to
    /// every response.
    #[track_caller]
    fn check_headers(&self, operation: &Operation, response: &Response) {
        let documented = &self.document.definition(operation)["responses"][response.status.to_string()];
        let documented = match documented.get("$ref").and_then(Value::as_str) {
            Some(reference) => {
                self.document.value.pointer(&reference[1..]).expect("the reference has a target")
            }
            None => documented,
        };
        for (name, _) in &response.headers {
            let known = documented["headers"].as_object().into_iter().flat_map(|map| map.keys());
            assert!(
                known.clone().any(|known| known.eq_ignore_ascii_case(name)),
                "{operation:?}: header {name}"
            );
        }
    }

    fn send(&mut self, method: &str, target: &str, parts: RequestParts<'_>) -> Response {
        let (path, query) =
            target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let bearer = format!("Bearer {}", parts.key);
        let content_type = parts.content_type.unwrap_or("application/json");
        let request = Request {
            method,
            path,
            query,
            authorization: (!parts.key.is_empty()).then_some(bearer.as_bytes()),
            content_type: Some(content_type.as_bytes()),
            idempotency_key: parts.idempotency_key.map(str::as_bytes),
            base: BASE,
            body: parts.body,
        };
        let mut progress = self.sandbox.call(self.sandbox.now(), &request);
        loop {
            self.finish_attempts();
            match progress {
                Progress::Done(response) => return response,
                Progress::Waiting(pending) => {
                    progress = self.sandbox.continue_call(self.sandbox.now(), pending)
                }
            }
        }
    }

    /// Compares each webhook that leaves the simulated network with the document, stores the first of each type as an
    /// example, and reports success.
    fn finish_attempts(&mut self) {
        for dispatch in self.sandbox.take_outgoing() {
            let body: Value = serde_json::from_slice(&dispatch.request.body).expect("a webhook is JSON");
            let kind = body["event"].as_str().expect("a webhook names its type").to_owned();
            let verdict = self.document.validate_webhook(&kind, &body);
            verdict.unwrap_or_else(|error| panic!("webhook {kind}: {error}\n{body}"));
            let name = if body.get("test").is_some() { "test".to_owned() } else { kind.replace('.', "_") };
            self.examples.entry(format!("webhook_{name}")).or_insert(dispatch.request.body.into());
            self.delivered_types.insert(kind);
            self.sandbox.on_attempt_result(
                self.sandbox.now(),
                dispatch.id,
                AttemptResult::Response(200).into(),
            );
        }
    }
}

impl CheckedWorld {
    /// Returns the status and the `Allow` header of the response to an undocumented request.
    pub(crate) fn send_undocumented(
        &mut self,
        method: &str,
        path: &str,
        parts: RequestParts<'_>,
    ) -> (u16, Option<String>) {
        let response = self.send(method, path, parts);
        let allow = response.headers.into_iter().find(|(name, _)| *name == "allow").map(|(_, value)| value);
        (response.status, allow)
    }
}
