//! The stage of a scenario: the interface through which the player accesses a world. The main type is the trait
//! [`Stage`].

use std::fmt;

use bytes::Bytes;
use reference_core::{rng::Seed, time::Timestamp};
use reference_wire::{Request, Response};
use serde_json::Value;

use super::extract::extract_str;
use crate::{
    demo::DemoFault,
    sandbox::{Sandbox, Setup},
};

/// A request to a stage.
#[derive(Clone, Copy, Debug)]
pub struct StageRequest<'a> {
    /// `GET`, `POST`, …
    pub method: &'a str,
    /// The path and the query: `/v1/charges?page=2`.
    pub path: &'a str,
    /// The API key, if one is sent.
    pub bearer: Option<&'a str>,
    /// Other headers.
    pub headers: &'a [(String, String)],
    /// The body, which is sent as JSON.
    pub body: Option<&'a Value>,
}

/// The response of a stage.
#[derive(Clone, Debug)]
pub struct StageResponse {
    /// The status code.
    pub status: u16,
    /// Header names in lower case, and their values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

impl StageResponse {
    /// Returns the body as JSON; null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Returns the string at a JSON pointer such as `/data/id`; `None` if there is none.
    pub fn string_at(&self, pointer: &str) -> Option<String> {
        extract_str(&self.body, pointer)
    }

    /// Returns the value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The error of a world that could not be reached. This is not a failure of the service.
#[derive(Clone, Debug)]
pub struct StageError(pub String);

impl fmt::Display for StageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StageError {}

/// A world that responds to requests: in this process, or over HTTP.
pub trait Stage {
    /// Sends a request and waits for the response. A refusal is a response.
    ///
    /// # Errors
    ///
    /// [`StageError`] if there is no response.
    fn call(&mut self, request: &StageRequest<'_>) -> Result<StageResponse, StageError>;

    /// Returns the world if it is in this process and no transcript is written (in a dry run).
    fn local_world(&mut self) -> Option<&mut Sandbox> {
        None
    }
}

/// A world in this process, in virtual time.
pub struct LocalStage {
    sandbox: Sandbox,
    is_dry_run: bool,
}

/// The public URL of worlds in this process. It is never requested.
const BASE: &str = "https://pay.example";

impl LocalStage {
    /// Creates a stage whose world gets its seed and start from the script.
    pub fn new() -> LocalStage {
        let setup =
            Setup { rate_limit: Some(120), journal: true, ..Setup::new(Seed(1), Timestamp::default(), BASE) };
        LocalStage { sandbox: Sandbox::new(&setup), is_dry_run: false }
    }

    /// Creates a stage with a demo fault, which is kept when a script creates its world.
    pub fn with_fault(fault: &DemoFault) -> LocalStage {
        let mut stage = LocalStage::new();
        stage.sandbox.install_tamper((fault.make)());
        stage
    }

    /// Creates a stage around an existing world, without a transcript.
    pub(super) fn for_dry_run(sandbox: Sandbox) -> LocalStage {
        LocalStage { sandbox, is_dry_run: true }
    }

    /// Returns the world.
    pub(super) fn into_sandbox(self) -> Sandbox {
        self.sandbox
    }
}

impl Default for LocalStage {
    fn default() -> LocalStage {
        LocalStage::new()
    }
}

impl Stage for LocalStage {
    fn local_world(&mut self) -> Option<&mut Sandbox> {
        self.is_dry_run.then_some(&mut self.sandbox)
    }

    fn call(&mut self, call: &StageRequest<'_>) -> Result<StageResponse, StageError> {
        let (path, query) =
            call.path.split_once('?').map_or((call.path, None), |(path, query)| (path, Some(query)));
        let bearer = call.bearer.map(|key| format!("Bearer {key}"));
        let header = |name: &str| {
            let found = call.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.as_bytes())
        };
        let body = call.body.map(Value::to_string).unwrap_or_default();
        let json = call.body.map(|_| b"application/json".as_slice());
        let request = Request {
            method: call.method,
            path,
            query,
            authorization: header("authorization").or(bearer.as_deref().map(str::as_bytes)),
            content_type: header("content-type").or(json),
            idempotency_key: header("idempotency-key"),
            base: BASE,
            body: body.as_bytes(),
        };
        let now = self.sandbox.now();
        let Response { status, headers, body } = self.sandbox.respond(now, &request);
        let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Ok(StageResponse { status, headers, body })
    }
}
