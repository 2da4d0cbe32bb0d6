//! `/sandbox/forwards`: webhook handlers on the developer's machine, added while the server runs.
//!
//! Endpoints still need public addresses: a handler gets a public-looking address, an endpoint in each mode is
//! registered with it, and deliveries to it go to the handler. Only callers on this machine may add a forward: the
//! token gives access to the simulated world, not to the network behind the server.

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header::ALLOW, request::Parts};
use reference_core::{error::ApiError, mode::Mode};
use reference_wire::{
    Request, Response,
    fields::{Fields, PROSE_MAX, TEXT_MAX},
};
use serde::Serialize;
use simulator::api::{EndpointList, EndpointRecord, EndpointRequest, EndpointResponse, json};

use crate::{
    backend::Backend,
    host::InternalError,
    refusal::Refusal,
    response::{self, HttpResponse},
    sender::LocalHandler,
};

/// The path of the requests that list and add forwards.
pub(crate) const PATH: &str = "/sandbox/forwards";

/// A handler on the developer's machine that receives the webhooks of both modes.
#[derive(Clone, Debug, Serialize)]
pub struct ForwardRecord {
    /// The URL of the handler: `http://localhost:3000/hooks`.
    pub to: String,
    /// The public-looking URL of its two endpoints: `https://localhost-3000.example/hooks`.
    pub url: String,
    /// The signing secret of live deliveries: `whsec_…`; `None` if the stored world already had the endpoint, because a
    /// secret is shown at creation only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live_secret: Option<String>,
    /// The signing secret of test deliveries, as `live_secret`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_secret: Option<String>,
}

/// Responds to a request of a caller with access to the sandbox. `is_local_caller`: the caller is on this machine.
pub(crate) async fn respond(
    backend: &Backend,
    head: &Parts,
    is_local_caller: bool,
    body: &Bytes,
) -> Result<HttpResponse, Refusal> {
    if matches!(head.method, Method::GET | Method::HEAD) {
        let forwards = backend.host.sender().map(|sender| sender.forwards()).unwrap_or_default();
        return Ok(json_response(backend, &serde_json::json!({ "forwards": forwards }))?);
    }
    if head.method != Method::POST {
        let mut response = Refusal::MethodNotAllowed.response();
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
        return Ok(response);
    }
    if !is_local_caller {
        return Err(Refusal::RemoteForward);
    }
    match parse_forward(body) {
        Err(error) => Ok(response::from_world(Response::refusal(&error))?),
        Ok((handler, account)) => match add_forward(backend, &handler, account).await? {
            Ok(forward) => Ok(json_response(backend, &serde_json::json!({ "forward": forward }))?),
            Err(error_response) => Ok(response::from_world(error_response)?),
        },
    }
}

/// Returns a response with these fields and the service time.
fn json_response(backend: &Backend, fields: &serde_json::Value) -> Result<HttpResponse, InternalError> {
    let mut fields = fields.clone();
    fields["now"] = backend.host.time_and_speed()?.0.to_string().into();
    Ok(response::json(StatusCode::OK, fields.to_string()))
}

/// Parses the handler of a new forward and the account it is for.
fn parse_forward(body: &[u8]) -> Result<(LocalHandler, Option<String>), ApiError> {
    let mut fields = Fields::read(body)?;
    fields.reject_unknown(&["to", "account"]);
    let (to, account) = (fields.required_text("to", PROSE_MAX), fields.text("account", TEXT_MAX));
    fields.finish()?;
    let handler = LocalHandler::parse(&to.unwrap_or_default())
        .map_err(|reason| ApiError::field("to", format!("The to field is invalid: {reason}.")))?;
    Ok((handler, account))
}

/// Adds a forward to a handler and registers its endpoints in both modes, unless the world already has them.
///
/// Returns an error response if the server sends no webhooks, the handler already has a forward, there are too many
/// forwards, or the world refuses an endpoint.
pub(crate) async fn add_forward(
    backend: &Backend,
    handler: &LocalHandler,
    account: Option<String>,
) -> Result<Result<ForwardRecord, Response>, InternalError> {
    let conflict = |reason: String| Ok(Err(Response::refusal(&ApiError::conflict(reason))));
    let Some(sender) = backend.host.sender() else {
        let reason = "This server delivers webhooks to the simulated network only, such as shop.sim.";
        return conflict(reason.to_owned());
    };
    let existing = find_endpoint(backend, handler).await?;
    if let Some(endpoint) = &existing
        && sender.forwards().contains(&handler.forward.to_string())
    {
        return conflict(format!(
            "{} is already the target of a forward, by endpoint {}. To get a new secret, call POST /sandbox/endpoints/{}/rotate.",
            handler.target(),
            endpoint.id,
            endpoint.id
        ));
    }
    let forward = match sender.add_forward(&handler.forward) {
        Ok(forward) => forward,
        Err(forwards_max) => {
            return conflict(format!(
                "There are {forwards_max} forwards, the maximum. A forward ends with its world: end worlds that you no longer \
                 need, or restart the server."
            ));
        }
    };
    let (to, url) = (handler.target().to_owned(), handler.url().to_owned());
    if existing.is_some() {
        backend.host.own_forward(forward);
        return Ok(Ok(ForwardRecord { to, url, live_secret: None, test_secret: None }));
    }
    let (mut secrets, mut created_ids) = (Vec::new(), Vec::new());
    for mode in [Mode::Live, Mode::Test] {
        let url = handler.url().to_owned();
        let body = EndpointRequest { account: account.clone(), mode: Some(mode), url, events: None };
        let response = call_world(backend, "POST", "/sandbox/endpoints", &json(&body).to_string()).await?;
        if response.status != 200 {
            for id in created_ids {
                call_world(backend, "DELETE", &format!("/sandbox/endpoints/{id}"), "").await?;
            }
            return Ok(Err(to_forward_error(response)));
        }
        let EndpointResponse { endpoint } =
            serde_json::from_slice(&response.body).map_err(|_| InternalError)?;
        created_ids.push(endpoint.id);
        secrets.push(endpoint.secret.ok_or(InternalError)?);
    }
    backend.host.own_forward(forward);
    let [live_secret, test_secret] = secrets.try_into().map_err(|_| InternalError)?;
    Ok(Ok(ForwardRecord { to, url, live_secret: Some(live_secret), test_secret: Some(test_secret) }))
}

/// Converts a 422 response for an endpoint to one for its forward, because the caller named no endpoint.
fn to_forward_error(endpoint_error: Response) -> Response {
    if endpoint_error.status != 422 {
        return endpoint_error;
    }
    let body: serde_json::Value = serde_json::from_slice(&endpoint_error.body).unwrap_or_default();
    let message = body["message"].as_str().unwrap_or_default();
    Response::refusal(&ApiError::field("to", format!("A forward needs an endpoint in each mode: {message}")))
}

/// Returns the existing endpoint of a handler, if there is one. With a second one, the handler would receive every
/// event twice.
async fn find_endpoint(
    backend: &Backend,
    handler: &LocalHandler,
) -> Result<Option<EndpointRecord>, InternalError> {
    let response = call_world(backend, "GET", "/sandbox/endpoints", "").await?;
    let EndpointList { endpoints } = serde_json::from_slice(&response.body).map_err(|_| InternalError)?;
    Ok(endpoints.into_iter().find(|endpoint| endpoint.url == handler.url() && endpoint.status != "removed"))
}

/// Sends a request to the world.
async fn call_world(
    backend: &Backend,
    method: &str,
    path: &str,
    body: &str,
) -> Result<Response, InternalError> {
    let request = Request::json(backend.addresses.url(), method, path, body);
    backend.host.respond(&request).await
}
