//! [`Router`]: selects from the head of a request the part of the server that responds, and calls it.
//!
//! Holds the state that all connections share. Contains no handler.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Version,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST},
    request::Parts,
};
use hyper::body::Incoming;
use reference_core::dialect::Dialect;
use reference_wire::{Response, fields::Fields};
use simulator::{
    api::ScenarioResponse,
    sandbox::{self, AdmittedRequest},
};
use tokio::time::Instant;

#[cfg(feature = "mcp")]
use crate::mcp::Mcp;
use crate::{
    activity::Activity,
    backend::Backend,
    body::RequestBody,
    compression, forwards,
    log::Exchange,
    metrics::Metrics,
    openapi::OpenApiDocument,
    pages::{self, PageRequest, Pages, docs::Docs, home},
    refusal::Refusal,
    response::{self, HttpResponse, ResponseBody},
    sandbox_access::{self, ConnectionAddrs},
    snapshots,
    world::RequestHead,
    worlds::{Worlds, api},
};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
#[cfg(feature = "mcp")]
const INDEX: &str = r#"{"api":"/v1","sandbox":"/sandbox","dashboard":"/dashboard","docs":"/docs","mcp":"/mcp","openapi":"/openapi.json","health":"/healthz","metrics":"/metrics"}"#;
#[cfg(not(feature = "mcp"))]
const INDEX: &str = r#"{"api":"/v1","sandbox":"/sandbox","dashboard":"/dashboard","docs":"/docs","openapi":"/openapi.json","health":"/healthz","metrics":"/metrics"}"#;
/// The media type of metrics for clients that do not accept OpenMetrics; they ignore the lines that only OpenMetrics
/// defines.
const METRICS_TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// The state that all connections share.
pub(crate) struct Router {
    /// The first world, which also holds the shared state.
    pub(crate) backend: Arc<Backend>,
    worlds: Arc<Worlds>,
    pub(crate) metrics: Arc<Metrics>,
    document: OpenApiDocument,
    docs: Docs,
    #[cfg(feature = "mcp")]
    mcp: Mcp,
    pages: Arc<Pages>,
}

/// The part of the server that a path belongs to.
enum Area {
    Api,
    Sandbox,
    Hosted,
    Dashboard,
    Asset,
    Index,
    Health,
    Metrics,
    Document,
    Docs,
    #[cfg(feature = "mcp")]
    Mcp,
}

impl Area {
    fn from_path(path: &str) -> Option<Area> {
        // The first segment is not decoded: `/%761` is not `/v1`.
        let rest = path.strip_prefix('/')?;
        match rest.split_once('/').map_or((rest, None), |(first, rest)| (first, Some(rest))) {
            ("v1", _) => Some(Area::Api),
            ("sandbox", _) => Some(Area::Sandbox),
            ("c" | "pay" | "i", Some(_)) => Some(Area::Hosted),
            ("dashboard", _) => Some(Area::Dashboard),
            ("assets", Some(_)) => Some(Area::Asset),
            ("", None) => Some(Area::Index),
            ("healthz", None) => Some(Area::Health),
            ("metrics", None) => Some(Area::Metrics),
            ("docs", _) => Some(Area::Docs),
            ("openapi.json", None) => Some(Area::Document),
            #[cfg(feature = "mcp")]
            ("mcp", None) => Some(Area::Mcp),
            _ => None,
        }
    }
}

impl Router {
    /// Creates a router; fails if the operating system provides no randomness.
    pub(crate) fn new(
        worlds: Arc<Worlds>,
        dialect: &Dialect,
        metrics: Arc<Metrics>,
    ) -> Result<Router, getrandom::Error> {
        let backend = Arc::clone(worlds.first());
        Ok(Router {
            #[cfg(feature = "mcp")]
            mcp: Mcp::new(&backend.bounds),
            pages: Arc::new(Pages::new(&backend.bounds, dialect, Arc::clone(&worlds))?),
            backend,
            worlds,
            metrics,
            document: OpenApiDocument::new(dialect),
            docs: Docs::default(),
        })
    }

    /// Responds to a request and records it in the log and the metrics.
    pub(crate) async fn respond(
        &self,
        addrs: ConnectionAddrs,
        activity: &Arc<Activity>,
        request: Request<Incoming>,
    ) -> HttpResponse {
        let (head, body) = request.into_parts();
        let body = RequestBody::new(&head.headers, activity, &self.backend.bounds, body);
        let (started_at, mut api_body) = (Instant::now(), Bytes::new());
        let routing = RoutingHeaders::from_headers(&head.headers);
        let full_path = self.backend.addresses.without_prefix(head.uri.path());
        if self.worlds.has_waiting() {
            // Boxed, because no request needs it once all worlds are open.
            Box::pin(self.worlds.wait_for(full_path, routing.authorization.single())).await;
        }
        let world = self.worlds.select_world(full_path, routing.authorization.single());
        let (backend, path) =
            world.as_ref().map_or((&self.backend, full_path), |world| (world.backend(), world.path));
        let request = match &world {
            // A browser that returns to an ended world gets the page for unknown paths.
            Err(Refusal::UnknownWorld) if !home::accepts_html(&head) => Err(Refusal::UnknownWorld),
            Ok(_) | Err(Refusal::UnknownWorld) => requested_host(&head, routing.host)
                .map(|authority| WorldRequest { backend, head: &head, routing: &routing, path, authority }),
            Err(refusal) => Err(*refusal),
        };
        let result = match request {
            Err(refusal) => Err(refusal),
            Ok(request) if body.is_empty() && matches!(Area::from_path(path), Some(Area::Api)) => {
                request.call_world(None, &Bytes::new()).await
            }
            // Boxed, because requests without a body to the API would otherwise carry the state of this future.
            Ok(request) => Box::pin(self.route(&request, (addrs, activity), &body, &mut api_body)).await,
        };
        body.drain();
        let mut response = result.unwrap_or_else(Refusal::response);
        let response_body = match response.body() {
            ResponseBody::Complete(body) => body,
            ResponseBody::Stream { .. } => &Bytes::new(),
        };
        backend.requests.record(&Exchange {
            head: &head,
            authorization: routing.authorization.first(),
            path,
            body: &api_body,
            status: response.status(),
            response_headers: response.headers(),
            response_body,
            at: backend.host.latest_time(),
            took: started_at.elapsed(),
        });
        if head.method == Method::HEAD {
            response = response::without_body(response);
        } else if let ResponseBody::Complete(body) = response.body_mut() {
            match self.backend.in_flight.reserve(std::mem::take(body), activity).await {
                Some(reserved) => *body = reserved,
                None => response = Refusal::ResponseBudgetExceeded.response(),
            }
        }
        self.metrics.on_response(response.status(), started_at.elapsed());
        response
    }

    /// Responds to any request except those to the API without a body. `api_body` is set to the body of an API request,
    /// for the log.
    async fn route(
        &self,
        request: &WorldRequest<'_>,
        (addrs, activity): (ConnectionAddrs, &Arc<Activity>),
        body: &RequestBody<'_>,
        api_body: &mut Bytes,
    ) -> Result<HttpResponse, Refusal> {
        let WorldRequest { backend, head, path, authority, .. } = *request;
        let page_request =
            PageRequest { pages: &self.pages, backend, addrs, activity, head, path, authority, body };
        let Some(area) = Area::from_path(path) else {
            return home::not_found(&page_request);
        };
        match area {
            Area::Hosted => return pages::hosted::respond(&page_request).await,
            Area::Dashboard => return pages::dashboard::respond(&page_request).await,
            Area::Api => return request.call_api(body, api_body).await,
            Area::Sandbox => {
                sandbox_access::admit(addrs, head, authority, &backend.addresses, &backend.token)?;
                sandbox_access::admit_site(head)?;
                if head.method == Method::POST && path == "/sandbox/world" && !backend.host.is_frozen() {
                    return Err(Refusal::WorldNeedsFrozenClock);
                }
                if !body.is_empty()
                    && !is_server_path(path)
                    && let Err(error) = sandbox::check_head(head.method.as_str(), path)
                {
                    return Ok(response::from_world(Response::refusal(&error))?);
                }
            }
            #[cfg(feature = "mcp")]
            Area::Mcp => {
                let authorization = request.routing.authorization.single().map(HeaderValue::as_bytes);
                return self.mcp.respond(backend, addrs, head, authorization, authority, body).await;
            }
            Area::Asset | Area::Index | Area::Health | Area::Metrics | Area::Document | Area::Docs => {
                return match area {
                    _ if !matches!(head.method, Method::GET | Method::HEAD) => Err(Refusal::ReadOnly),
                    Area::Docs => pages::docs::docs(&page_request, &self.docs, &self.document)
                        .map(|response| compression::compress(response, &head.headers)),
                    Area::Document | Area::Asset => self
                        .public_page(&area, request)
                        .map(|response| compression::compress(response, &head.headers)),
                    Area::Index if home::accepts_html(head) => home::home(&page_request),
                    _ => self.public_page(&area, request),
                };
            }
        }
        let body = body.read().await?;
        if let Area::Sandbox = area {
            sandbox_access::admit_body(&head.headers, &body)?;
            if let Some(refusal) = query_error(head, path) {
                return Ok(response::from_world(refusal)?);
            }
            if path == forwards::PATH {
                let is_local_caller =
                    sandbox_access::is_trusted_caller(addrs, head, authority, &backend.addresses)?;
                return Box::pin(forwards::respond(backend, head, is_local_caller, &body)).await;
            }
            // Worlds are opened on the first world only.
            if api::is_worlds_path(path) && Arc::ptr_eq(backend, &self.backend) {
                return Box::pin(api::respond(&self.worlds, head, path, authority, &body)).await;
            }
        }
        Ok(scenario_as_yaml(head, path, request.call_world(None, &body).await?))
    }

    /// Returns a response that depends on neither the caller nor the body.
    fn public_page(&self, area: &Area, request: &WorldRequest<'_>) -> Result<HttpResponse, Refusal> {
        let backend = request.backend;
        Ok(match area {
            Area::Asset => return pages::asset(request.path),
            Area::Document => response::json(
                StatusCode::OK,
                self.document.with_base_url(&backend.addresses.base_url(request.authority)),
            ),
            Area::Metrics => {
                let page = self.metrics.page(backend.host.time_and_next_due().ok(), self.worlds.totals());
                let page = page.map_err(|fmt::Error| Refusal::Broken)?;
                let accepts = request.head.headers.get(ACCEPT).and_then(|value| value.to_str().ok());
                let is_open_metrics =
                    accepts.is_some_and(|value| value.contains("application/openmetrics-text"));
                response::with_media_type(
                    StatusCode::OK,
                    if is_open_metrics { OPEN_METRICS } else { METRICS_TEXT },
                    page,
                )
            }
            Area::Health if backend.host.is_broken() => {
                response::json(StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"broken"}"#)
            }
            Area::Health => response::json(StatusCode::OK, r#"{"status":"ok"}"#),
            _ => response::json(StatusCode::OK, INDEX),
        })
    }
}

/// Converts a response with the world's scenario to a YAML file if the client accepts YAML; returns any other response
/// unchanged.
fn scenario_as_yaml(head: &Parts, path: &str, response: HttpResponse) -> HttpResponse {
    let accepts = |value: &HeaderValue| value.to_str().is_ok_and(|value| value.contains("application/yaml"));
    if path != snapshots::SCENARIO || !head.headers.get_all(ACCEPT).iter().any(accepts) {
        return response;
    }
    let ResponseBody::Complete(body) = response.body() else { return response };
    match serde_json::from_slice::<ScenarioResponse>(body) {
        Ok(ScenarioResponse { scenario, .. }) => {
            response::with_media_type(StatusCode::OK, response::YAML, scenario)
        }
        // An error response.
        Err(_) => response,
    }
}

/// Returns `true` if the server itself, not the world, handles a path under `/sandbox`.
fn is_server_path(path: &str) -> bool {
    path == forwards::PATH || api::is_worlds_path(path) || snapshots::is_snapshot_path(path)
}

/// Returns the error for query parameters of lists that the server itself returns: they have no filters.
fn query_error(head: &Parts, path: &str) -> Option<Response> {
    if !is_server_path(path) || !matches!(head.method, Method::GET | Method::HEAD) {
        return None;
    }
    let query = Fields::query_to_json(head.uri.query()).and_then(|query| Fields::require_empty(&query));
    query.err().map(|error| Response::refusal(&error))
}

/// A request for a world.
struct WorldRequest<'a> {
    backend: &'a Arc<Backend>,
    head: &'a Parts,
    routing: &'a RoutingHeaders<'a>,
    path: &'a str,
    authority: Option<&'a str>,
}

impl WorldRequest<'_> {
    /// Responds to an API request with a body: key, limit, path and method are checked before the body is read. Sets
    /// `api_body` to the body.
    async fn call_api(&self, body: &RequestBody<'_>, api_body: &mut Bytes) -> Result<HttpResponse, Refusal> {
        let WorldRequest { backend, head, routing, path, .. } = *self;
        let authorization = routing.authorization.single().map(HeaderValue::as_bytes);
        let known_head = RequestHead { method: head.method.as_str(), path, authorization };
        let admitted = match backend.host.admit_head(known_head)? {
            Ok(admitted) => admitted,
            Err(refusal) => return Ok(response::from_world(refusal)?),
        };
        match body.read().await {
            Ok(body) => {
                api_body.clone_from(&body);
                self.call_world(admitted, &body).await
            }
            Err(refusal) => {
                let quota = admitted.and_then(|admitted| admitted.quota());
                Ok(response::with_quota(refusal.response(), quota)?)
            }
        }
    }

    /// Passes a request to the world. `admitted`: the caller, if the request was already authenticated and counted.
    async fn call_world(
        &self,
        admitted: Option<AdmittedRequest>,
        body: &Bytes,
    ) -> Result<HttpResponse, Refusal> {
        let WorldRequest { backend, head, routing, path, authority } = *self;
        let request = reference_wire::Request {
            method: head.method.as_str(),
            path,
            query: head.uri.query(),
            authorization: routing.authorization.single().map(HeaderValue::as_bytes),
            content_type: routing.content_type.first().map(HeaderValue::as_bytes),
            idempotency_key: routing.idempotency_key.bytes_or_empty(),
            base: &backend.addresses.base_url(authority),
            body,
        };
        let host = &backend.host;
        Ok(response::from_world(match &admitted {
            Some(admitted) => host.respond_as(admitted, &request).await?,
            None => host.respond(&request).await?,
        })?)
    }
}

/// Returns the host that the client requested: the authority of an absolute target, or the `Host` header, which
/// HTTP/1.1 requires exactly once.
fn requested_host<'a>(head: &'a Parts, host: HeaderField<'a>) -> Result<Option<&'a str>, Refusal> {
    let host = match host {
        HeaderField::Once(host) => Some(host.to_str().map_err(|_| Refusal::HostHeader)?),
        HeaderField::Absent if head.version < Version::HTTP_11 => None,
        HeaderField::Absent | HeaderField::Repeated(_) => return Err(Refusal::HostHeader),
    };
    Ok(head.uri.authority().map(http::uri::Authority::as_str).or(host))
}

/// The headers that decide how a request is handled, collected in one pass: looking up each takes three times as long.
#[derive(Default)]
struct RoutingHeaders<'a> {
    host: HeaderField<'a>,
    authorization: HeaderField<'a>,
    content_type: HeaderField<'a>,
    idempotency_key: HeaderField<'a>,
}

/// The number of times that a header occurs, with its first value.
#[derive(Clone, Copy, Default)]
enum HeaderField<'a> {
    #[default]
    Absent,
    Once(&'a HeaderValue),
    /// The header occurs more than once; this is the first value.
    Repeated(&'a HeaderValue),
}

impl<'a> RoutingHeaders<'a> {
    fn from_headers(headers: &'a HeaderMap) -> RoutingHeaders<'a> {
        let mut routing = RoutingHeaders::default();
        for (name, value) in headers {
            match *name {
                HOST => routing.host.add(value),
                AUTHORIZATION => routing.authorization.add(value),
                CONTENT_TYPE => routing.content_type.add(value),
                _ if name == IDEMPOTENCY_KEY => routing.idempotency_key.add(value),
                _ => {}
            }
        }
        routing
    }
}

impl<'a> HeaderField<'a> {
    fn add(&mut self, value: &'a HeaderValue) {
        *self = self.first().map_or(HeaderField::Once(value), HeaderField::Repeated);
    }

    /// Returns the value if the header occurs exactly once.
    fn single(self) -> Option<&'a HeaderValue> {
        if let HeaderField::Once(value) = self { Some(value) } else { None }
    }

    /// Returns the value; empty if the header occurs more than once.
    fn bytes_or_empty(self) -> Option<&'a [u8]> {
        match self {
            HeaderField::Absent => None,
            HeaderField::Once(value) => Some(value.as_bytes()),
            HeaderField::Repeated(_) => Some(&[]),
        }
    }

    fn first(self) -> Option<&'a HeaderValue> {
        match self {
            HeaderField::Absent => None,
            HeaderField::Once(value) | HeaderField::Repeated(value) => Some(value),
        }
    }
}
