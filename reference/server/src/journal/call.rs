//! The records of a journal: one call of the host per line, after a digest of its outcome.
//!
//! A world is a deterministic state machine, so its calls are all that has to be stored. A request that only reads is
//! recorded only if it counts against a rate limit or a scheduled event was due.

use std::{borrow::Cow, net::IpAddr};

use reference_core::{
    mode::Mode,
    outbox::{AttemptReport, AttemptResult, HttpTrace, SentHeaders},
    time::Timestamp,
};
use reference_wire::{Request, bearer};
use serde::{Deserialize, Serialize};
use simulator::sandbox::{AdmittedRecord, AttemptId, PendingRecord, Sandbox, Setup};

use super::outcome::{BeforeCall, CallResult, OutcomeDigest};

/// A call of the host. `at` is the service time in microseconds since 1970.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum HostCall<'a> {
    /// The clock moved, and everything due by then happened.
    Advance { at: u64 },
    /// A key was authenticated, which counts a request against its rate limit.
    Admit { at: u64, authorization: Option<TextOrBytes<'a>> },
    /// A request that was not authenticated before.
    Respond { at: u64, request: RecordedRequest<'a> },
    /// An authenticated request.
    RespondAs {
        at: u64,
        #[serde(rename = "who")]
        admitted: AdmittedRecord,
        request: RecordedRequest<'a>,
    },
    /// A call that moves the clock continued after a pause.
    #[serde(rename = "go_on")]
    Continue { at: u64, pending: PendingRecord },
    /// A delivery attempt ended.
    #[serde(rename = "ended")]
    AttemptEnded { at: u64, id: AttemptId, report: Box<ReportRecord> },
    /// A host name was resolved.
    #[serde(rename = "name")]
    NameResolved { host: Cow<'a, str>, addresses: Vec<IpAddr> },
    /// The server forwards deliveries for a host name.
    #[serde(rename = "own_way")]
    NameForwarded { host: Cow<'a, str> },
    /// The world replaced another one. It continues the era (the number of replaced worlds) and the numbers of the delivery
    /// attempts.
    #[serde(rename = "succeed")]
    ContinueLineage { era: u32, attempts: u64 },
}

/// A request of an API client.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordedRequest<'a> {
    method: Cow<'a, str>,
    path: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    query: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    authorization: Option<TextOrBytes<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content_type: Option<TextOrBytes<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<TextOrBytes<'a>>,
    /// The start of links in the response.
    base: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "TextOrBytes::is_empty")]
    body: TextOrBytes<'a>,
}

/// Bytes, stored as text if they are UTF-8.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum TextOrBytes<'a> {
    Text(Cow<'a, str>),
    Raw(Cow<'a, [u8]>),
}

impl<'a> TextOrBytes<'a> {
    pub(crate) fn from_slice(bytes: &'a [u8]) -> TextOrBytes<'a> {
        str::from_utf8(bytes).map_or(TextOrBytes::Raw(bytes.into()), |text| TextOrBytes::Text(text.into()))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            TextOrBytes::Text(text) => text.as_bytes(),
            TextOrBytes::Raw(bytes) => bytes,
        }
    }

    fn is_empty(&self) -> bool {
        self.as_bytes().is_empty()
    }
}

impl Default for TextOrBytes<'_> {
    fn default() -> Self {
        TextOrBytes::Text("".into())
    }
}

impl<'a> RecordedRequest<'a> {
    pub(crate) fn from_request(request: &Request<'a>) -> RecordedRequest<'a> {
        RecordedRequest {
            method: request.method.into(),
            path: request.path.into(),
            query: request.query.map(Cow::from),
            authorization: request.authorization.map(TextOrBytes::from_slice),
            content_type: request.content_type.map(TextOrBytes::from_slice),
            idempotency_key: request.idempotency_key.map(TextOrBytes::from_slice),
            base: request.base.into(),
            body: TextOrBytes::from_slice(request.body),
        }
    }

    fn to_request(&self) -> Request<'_> {
        Request {
            method: &self.method,
            path: &self.path,
            query: self.query.as_deref(),
            authorization: self.authorization.as_ref().map(TextOrBytes::as_bytes),
            content_type: self.content_type.as_ref().map(TextOrBytes::as_bytes),
            idempotency_key: self.idempotency_key.as_ref().map(TextOrBytes::as_bytes),
            base: &self.base,
            body: self.body.as_bytes(),
        }
    }
}

/// The report on a delivery attempt: its result and the HTTP exchange.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReportRecord {
    result: ResultRecord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace: Option<TraceRecord>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ResultRecord {
    #[serde(rename = "answered")]
    Response(u16),
    Unreachable(String),
    TimedOut,
    #[serde(rename = "refused")]
    NotPublic(String),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TraceRecord {
    address: Option<String>,
    request_headers: Vec<(String, String)>,
    response_headers: Vec<(String, String)>,
    response_body: String,
    note: Option<String>,
    took_ms: Option<u64>,
}

impl From<AttemptReport> for ReportRecord {
    fn from(report: AttemptReport) -> ReportRecord {
        ReportRecord {
            result: match report.result {
                AttemptResult::Response(status) => ResultRecord::Response(status),
                AttemptResult::Unreachable(why) => ResultRecord::Unreachable(why),
                AttemptResult::TimedOut => ResultRecord::TimedOut,
                AttemptResult::NotPublic(why) => ResultRecord::NotPublic(why),
            },
            trace: report.trace.map(|trace| {
                let HttpTrace { address, request_headers, response_headers, response_body, note, took_ms } =
                    *trace;
                let SentHeaders::Stored(request_headers) = request_headers else {
                    unreachable!("an attempt over the real network records its headers")
                };
                TraceRecord { address, request_headers, response_headers, response_body, note, took_ms }
            }),
        }
    }
}

impl From<ReportRecord> for AttemptReport {
    fn from(record: ReportRecord) -> AttemptReport {
        AttemptReport {
            result: match record.result {
                ResultRecord::Response(status) => AttemptResult::Response(status),
                ResultRecord::Unreachable(why) => AttemptResult::Unreachable(why),
                ResultRecord::TimedOut => AttemptResult::TimedOut,
                ResultRecord::NotPublic(why) => AttemptResult::NotPublic(why),
            },
            trace: record.trace.map(|trace| {
                let TraceRecord { address, request_headers, response_headers, response_body, note, took_ms } =
                    trace;
                Box::new(HttpTrace {
                    address,
                    request_headers: SentHeaders::Stored(request_headers),
                    response_headers,
                    response_body,
                    note,
                    took_ms,
                })
            }),
        }
    }
}

/// The translation of keys and addresses from a world to its branch.
pub(crate) struct BranchTranslation {
    /// The starts of live and test keys, such as `svc_live_`.
    key_starts: [String; 2],
    /// The tag in the keys of the world, which is also its id in paths; empty for the first world.
    from_tag: String,
    /// The tag of the branch.
    to_tag: String,
}

impl BranchTranslation {
    pub(crate) fn new(from: &Setup, to: &Setup) -> BranchTranslation {
        let key_starts = Mode::ALL.map(|mode| from.dialect.key_start(mode));
        BranchTranslation { key_starts, from_tag: from.key_tag.clone(), to_tag: to.key_tag.clone() }
    }

    /// Translates a call of the world into one of the branch. Its outcome may differ.
    pub(crate) fn translate_call<'a>(&self, mut call: HostCall<'a>) -> HostCall<'a> {
        match &mut call {
            HostCall::Admit { authorization, .. } => self.translate_key(authorization),
            HostCall::Respond { request, .. } | HostCall::RespondAs { request, .. } => {
                self.translate_key(&mut request.authorization);
                let base =
                    if self.from_tag.is_empty() { None } else { request.base.strip_suffix(&self.from_tag) };
                let base = base.and_then(|base| base.strip_suffix("/w/")).unwrap_or(&request.base);
                request.base = format!("{base}/w/{}", self.to_tag).into();
            }
            _ => {}
        }
        call
    }

    /// Translates a key: the tag of the branch replaces that of the world. The random part is truncated so that the key
    /// keeps its length.
    fn translate_key(&self, authorization: &mut Option<TextOrBytes<'_>>) {
        let translated = || {
            let text = str::from_utf8(bearer(authorization.as_ref().map(TextOrBytes::as_bytes))?).ok()?;
            let (start, secret) =
                self.key_starts.iter().find_map(|start| Some((start, text.strip_prefix(start)?)))?;
            let random = secret.strip_prefix(&*self.from_tag)?;
            let random = random.get(..secret.len().checked_sub(self.to_tag.len())?)?;
            Some(format!("Bearer {start}{}{random}", self.to_tag))
        };
        if let Some(translated) = translated() {
            *authorization = Some(TextOrBytes::Text(translated.into()));
        }
    }
}

/// A line of a journal.
pub(crate) struct JournalLine<'a> {
    /// `None` if an earlier version of the program wrote it.
    pub(crate) outcome: Option<OutcomeDigest>,
    pub(crate) call: HostCall<'a>,
}

impl<'a> JournalLine<'a> {
    /// Parses a line; `None` if it is invalid.
    pub(crate) fn parse(line: &'a [u8]) -> Option<JournalLine<'a>> {
        let line = line.strip_suffix(b"\n")?;
        if line.starts_with(b"[") {
            let (outcome, call) = serde_json::from_slice(line).ok()?;
            return Some(JournalLine { outcome: Some(outcome), call });
        }
        Some(JournalLine { outcome: None, call: serde_json::from_slice(line).ok()? })
    }
}

impl HostCall<'_> {
    /// Returns the journal line of the call.
    pub(crate) fn to_line(&self, outcome: OutcomeDigest) -> Vec<u8> {
        let mut line = serde_json::to_vec(&(outcome, self)).expect("strings and numbers are JSON");
        line.push(b'\n');
        line
    }

    /// Repeats the call on a world.
    ///
    /// Returns the outcome; `None` if the record names an object that this world does not have.
    pub(crate) fn replay(self, sandbox: &mut Sandbox) -> Option<OutcomeDigest> {
        let before = BeforeCall::from_sandbox(sandbox);
        let progress;
        let result = match self {
            HostCall::Advance { at } => {
                sandbox.advance_to(Timestamp(at));
                CallResult::Nothing
            }
            HostCall::Admit { at, authorization } => {
                drop(sandbox.admit(Timestamp(at), authorization.as_ref().map(TextOrBytes::as_bytes)));
                CallResult::Nothing
            }
            HostCall::Respond { at, request } => {
                progress = sandbox.call(Timestamp(at), &request.to_request());
                (&progress).into()
            }
            HostCall::RespondAs { at, admitted: admitted_record, request } => {
                let admitted = sandbox.restore_admitted(&admitted_record)?;
                progress = sandbox.call_as(Timestamp(at), &admitted, &request.to_request());
                (&progress).into()
            }
            HostCall::Continue { at, pending } => {
                let pending = sandbox.restore_pending(&pending)?;
                progress = sandbox.continue_call(Timestamp(at), pending);
                (&progress).into()
            }
            HostCall::AttemptEnded { at, id, report } => {
                sandbox.on_attempt_result(Timestamp(at), id, AttemptReport::from(*report));
                CallResult::Nothing
            }
            HostCall::NameResolved { host, addresses } => {
                sandbox.set_resolution(&host, addresses);
                CallResult::NothingAtAnyTime
            }
            HostCall::NameForwarded { host } => {
                sandbox.declare_forwarded(&host);
                CallResult::NothingAtAnyTime
            }
            HostCall::ContinueLineage { era, attempts } => {
                sandbox.continue_lineage((era.into(), attempts));
                CallResult::NothingAtAnyTime
            }
        };
        Some(before.outcome(sandbox, result))
    }

    /// Describes the call in a message: its kind, and its time by the service clock if it has one.
    pub(crate) fn label(&self) -> String {
        let timed = |kind: String, at: u64| format!("{kind}, {}", Timestamp(at));
        match self {
            HostCall::Advance { at } => timed("an advance of the clock".to_owned(), *at),
            HostCall::Admit { at, .. } => timed("the authentication of a request".to_owned(), *at),
            HostCall::Respond { at, request } | HostCall::RespondAs { at, request, .. } => {
                timed(format!("{} {}", request.method, request.path), *at)
            }
            HostCall::Continue { at, .. } => {
                timed("the continuation of a call that moves the clock".to_owned(), *at)
            }
            HostCall::AttemptEnded { at, .. } => timed("the end of a delivery attempt".to_owned(), *at),
            HostCall::NameResolved { host, .. } | HostCall::NameForwarded { host } => {
                format!("the address of {host}")
            }
            HostCall::ContinueLineage { .. } => "a restored snapshot".to_owned(),
        }
    }
}
