//! `/mcp`: the API, and in test mode the simulated world, as tools of the Model Context Protocol.
//!
//! Uses the official SDK, which implements the revisions of the protocol. A tool call becomes an HTTP request to the
//! same world; this module contains no rule of the service. Keys and limits are those of the API: a request to this
//! path counts once, whatever it contains.

mod handler;
mod schema;
mod toolbox;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header::CONTENT_TYPE, request::Parts};
use http_body_util::{BodyExt, Full};
use rmcp::{
    ErrorData,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
    },
};
use simulator::sandbox::AdmittedRequest;

use self::handler::Handler;
use crate::{
    backend::Backend,
    body::RequestBody,
    config::Bounds,
    refusal::Refusal,
    response::{self, HttpResponse},
    sandbox_access::{self, ConnectionAddrs},
};

const JSON: &str = "application/json";

/// The client that calls a tool.
#[derive(Clone)]
struct Caller {
    /// The world of the caller's key.
    backend: Arc<Backend>,
    admitted: AdmittedRequest,
    /// The base URL of links in responses.
    base: String,
    /// `true` if the caller may use the sandbox tools.
    may_use_sandbox: bool,
}

/// The MCP server.
pub(crate) struct Mcp {
    service: StreamableHttpService<Handler, NeverSessionManager>,
}

impl Mcp {
    pub(crate) fn new(bounds: &Bounds) -> Mcp {
        // `Host`, `Origin` and keys are checked before the SDK is called.
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(bounds.body_bytes)
            .disable_allowed_hosts()
            .disable_allowed_origins();
        let sessions = Arc::new(NeverSessionManager::default());
        Mcp { service: StreamableHttpService::new(|| Ok(Handler), sessions, config) }
    }

    /// Responds to a request to `/mcp`.
    pub(crate) async fn respond(
        &self,
        backend: &Arc<Backend>,
        addrs: ConnectionAddrs,
        head: &Parts,
        authorization: Option<&[u8]>,
        authority: Option<&str>,
        body: &RequestBody<'_>,
    ) -> Result<HttpResponse, Refusal> {
        backend.host.wait_until_readable().await;
        let admitted = backend.host.admit(authorization)?;
        // Checked after `admit`, because rejected requests count against the rate limit too.
        let is_trusted = sandbox_access::is_trusted_caller(addrs, head, authority, &backend.addresses)?;
        let admitted = match admitted {
            Ok(admitted) => admitted,
            Err(refusal) => return Ok(response::from_world(refusal)?),
        };
        let may_use_sandbox = is_trusted || backend.token.matches_token_header(&head.headers);
        let caller = Caller {
            backend: Arc::clone(backend),
            admitted,
            base: backend.addresses.base_url(authority).into_owned(),
            may_use_sandbox: admitted.mode() == reference_core::mode::Mode::Test && may_use_sandbox,
        };
        let body = match body.read().await {
            Ok(body) => body,
            Err(refusal) => return Ok(response::with_quota(refusal.response(), admitted.quota())?),
        };
        let request_body = body.clone();
        let mut request = http::Request::new(Full::new(body));
        *request.method_mut() = head.method.clone();
        *request.uri_mut() = head.uri.clone();
        *request.headers_mut() = head.headers.clone();
        request.extensions_mut().insert(caller);
        let response = from_sdk_response(self.service.handle(request).await).await?;
        // The SDK responds to an invalid body with the status for a wrong content type.
        let is_invalid_body =
            response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE && is_json(&head.headers);
        let response = if is_invalid_body { invalid_body_response(&request_body) } else { response };
        Ok(response::with_quota(response, admitted.quota())?)
    }
}

/// Returns `true` if the content type is JSON, as the SDK reads it.
fn is_json(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(JSON.as_bytes()))
}

/// Returns the error for a body that is not one JSON-RPC message.
fn invalid_body_response(body: &[u8]) -> HttpResponse {
    let error = match serde_json::from_slice::<serde::de::IgnoredAny>(body) {
        Ok(_) => ErrorData::invalid_request("The body is not one message of JSON-RPC 2.0.", None),
        Err(error) => ErrorData::parse_error(format!("The body is not JSON: {error}."), None),
    };
    let message = serde_json::json!({ "jsonrpc": "2.0", "id": null, "error": error });
    response::json(StatusCode::BAD_REQUEST, message.to_string())
}

/// Converts a response of the SDK. Its errors are plain text; they become JSON like the other errors of this server.
async fn from_sdk_response(
    response: http::Response<http_body_util::combinators::BoxBody<Bytes, std::convert::Infallible>>,
) -> Result<HttpResponse, Refusal> {
    let (head, body) = response.into_parts();
    let content_type = head.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    // The SDK is configured for single responses, so it sends no event stream.
    if content_type.is_some_and(|value| value.starts_with(b"text/event-stream")) {
        return Err(Refusal::Broken);
    }
    let Ok(body) = body.collect().await;
    let body = body.to_bytes();
    let mut response = if body.is_empty() || is_json(&head.headers) {
        response::json(head.status, body)
    } else {
        let message = String::from_utf8_lossy(&body);
        response::json(head.status, serde_json::json!({ "message": message }).to_string())
    };
    for (name, value) in &head.headers {
        if name != CONTENT_TYPE {
            response.headers_mut().insert(name.clone(), value.clone());
        }
    }
    Ok(response)
}
