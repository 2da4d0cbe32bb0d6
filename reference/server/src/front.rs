//! The front of the house: looks at the head of a request, decides which room answers it, and hands it over.
//!
//! Everything that every connection shares is here. Changes nothing itself.

use std::sync::Arc;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Version,
    header::{AUTHORIZATION, CONTENT_TYPE, EXPECT, HOST},
    request::Parts,
};
use hyper::body::{Body, Incoming};
use reference_core::wire;

#[cfg(feature = "mcp")]
use crate::mcp::Mcp;
use crate::{
    address::Addresses,
    answer::{self, Answer},
    body,
    config::Bounds,
    gate::{self, Ends, Token},
    host::Host,
    metrics::Metrics,
    openapi::Document,
    pages::{self, Call, Streams, dashboard::Dashboard},
    refusal::Refusal,
};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
#[cfg(feature = "mcp")]
const INDEX: &str = r#"{"api":"/v1","sandbox":"/sandbox","dashboard":"/dashboard","mcp":"/mcp","openapi":"/openapi.json","health":"/healthz","metrics":"/metrics"}"#;
#[cfg(not(feature = "mcp"))]
const INDEX: &str = r#"{"api":"/v1","sandbox":"/sandbox","dashboard":"/dashboard","openapi":"/openapi.json","health":"/healthz","metrics":"/metrics"}"#;
const PROMETHEUS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// What all connections share.
pub(crate) struct Front {
    pub(crate) host: Arc<Host>,
    pub(crate) addresses: Addresses,
    pub(crate) token: Token,
    pub(crate) bounds: Bounds,
    pub(crate) metrics: Metrics,
    pub(crate) document: Document,
    #[cfg(feature = "mcp")]
    pub(crate) mcp: Mcp,
    pub(crate) streams: Streams,
    pub(crate) dashboard: Dashboard,
}

/// Who answers a path.
enum Room {
    Api,
    Sandbox,
    Hosted,
    Dashboard,
    Asset,
    Index,
    Health,
    Metrics,
    Document,
    #[cfg(feature = "mcp")]
    Mcp,
}

impl Room {
    fn of(path: &str) -> Option<Room> {
        // The first segment as it came: `/%761` is another path, and nobody's.
        let rest = path.strip_prefix('/')?;
        match rest.split_once('/').map_or((rest, None), |(first, rest)| (first, Some(rest))) {
            ("v1", _) => Some(Room::Api),
            ("sandbox", _) => Some(Room::Sandbox),
            ("c" | "pay" | "i", Some(_)) => Some(Room::Hosted),
            ("dashboard", _) => Some(Room::Dashboard),
            ("assets", Some(_)) => Some(Room::Asset),
            ("", None) => Some(Room::Index),
            ("healthz", None) => Some(Room::Health),
            ("metrics", None) => Some(Room::Metrics),
            ("openapi.json", None) => Some(Room::Document),
            #[cfg(feature = "mcp")]
            ("mcp", None) => Some(Room::Mcp),
            _ => None,
        }
    }
}

impl Front {
    /// Answers a request, whatever it is.
    pub(crate) async fn answer(self: &Arc<Self>, ends: Ends, request: Request<Incoming>) -> Answer {
        let (head, body) = request.into_parts();
        let answer = self.decide(ends, &head, body).await.unwrap_or_else(Refusal::answer);
        self.metrics.on_answer(answer.status());
        if head.method == Method::HEAD { answer::without_body(answer) } else { answer }
    }

    async fn decide(self: &Arc<Self>, ends: Ends, head: &Parts, body: Incoming) -> Result<Answer, Refusal> {
        let said = Said::of(&head.headers);
        let authority = called(head, said.host)?;
        let path = self.addresses.inside(head.uri.path());
        let room = Room::of(path).ok_or(Refusal::NotFound)?;
        match room {
            Room::Api | Room::Hosted | Room::Dashboard => {}
            Room::Sandbox => {
                gate::admit(ends, &head.headers, authority, &self.addresses, &self.token)?;
                if head.method == Method::POST && path == "/sandbox/world" && !self.host.is_frozen() {
                    return Err(Refusal::WorldNeedsFrozenClock);
                }
            }
            #[cfg(feature = "mcp")]
            Room::Mcp => {
                let authorization = said.authorization.once().map(HeaderValue::as_bytes);
                return Box::pin(self.answer_mcp(ends, head, authorization, authority, body)).await;
            }
            Room::Asset | Room::Index | Room::Health | Room::Metrics | Room::Document => {
                return if matches!(head.method, Method::GET | Method::HEAD) {
                    self.page(&room, path, authority)
                } else {
                    Err(Refusal::ReadOnly)
                };
            }
        }
        let body = self.read_body(&head.headers, body).await?;
        match room {
            // In boxes for the same reason.
            Room::Hosted => {
                let call = Call { front: self, ends, head, path, authority, body };
                return Box::pin(pages::hosted::answer(&call)).await;
            }
            Room::Dashboard => {
                let call = Call { front: self, ends, head, path, authority, body };
                return Box::pin(pages::dashboard::answer(&call)).await;
            }
            Room::Sandbox => gate::admit_body(&head.headers, &body)?,
            _ => {}
        }
        self.ask_world(head, &said, path, authority, &body).await
    }

    pub(crate) async fn read_body(&self, headers: &HeaderMap, body: Incoming) -> Result<Bytes, Refusal> {
        if body.is_end_stream() {
            return Ok(Bytes::new());
        }
        // In a box, because most requests have no body, and every one would carry the room for reading it.
        Box::pin(body::read(body, headers.contains_key(EXPECT), &self.bounds)).await
    }

    async fn ask_world(
        &self,
        head: &Parts,
        said: &Said<'_>,
        path: &str,
        authority: Option<&str>,
        body: &Bytes,
    ) -> Result<Answer, Refusal> {
        let request = wire::http::Request {
            method: head.method.as_str(),
            path,
            query: head.uri.query(),
            authorization: said.authorization.once().map(HeaderValue::as_bytes),
            content_type: said.content_type.first().map(HeaderValue::as_bytes),
            idempotency_key: said.idempotency_key.first().map(HeaderValue::as_bytes),
            base: &self.addresses.base(authority),
            body,
        };
        answer::of_world(self.host.respond(&request).await?)
    }

    fn page(&self, room: &Room, path: &str, authority: Option<&str>) -> Result<Answer, Refusal> {
        Ok(match room {
            Room::Asset => return pages::asset(path),
            Room::Document => answer::json(StatusCode::OK, self.document.at(&self.addresses.base(authority))),
            Room::Metrics => {
                answer::own(StatusCode::OK, PROMETHEUS, self.metrics.page(self.host.times().ok()))
            }
            Room::Health if self.host.is_broken() => {
                answer::json(StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"broken"}"#)
            }
            Room::Health => answer::json(StatusCode::OK, r#"{"status":"ok"}"#),
            _ => answer::json(StatusCode::OK, INDEX),
        })
    }
}

/// What the client called us: the authority of an absolute target, or the `Host` header.
fn called<'a>(head: &'a Parts, host: Header<'a>) -> Result<Option<&'a str>, Refusal> {
    let host = match host {
        Header::Once(host) => Some(host.to_str().map_err(|_| Refusal::HostHeader)?),
        Header::Absent if head.version < Version::HTTP_11 => None,
        Header::Absent | Header::Repeated(_) => return Err(Refusal::HostHeader),
    };
    Ok(head.uri.authority().map(http::uri::Authority::as_str).or(host))
}

/// The headers that most requests are answered by, found in one walk: looking each up costs three times as much.
#[derive(Default)]
struct Said<'a> {
    host: Header<'a>,
    authorization: Header<'a>,
    content_type: Header<'a>,
    idempotency_key: Header<'a>,
}

/// A header of a request.
#[derive(Clone, Copy, Default)]
enum Header<'a> {
    #[default]
    Absent,
    Once(&'a HeaderValue),
    /// It came more than once, with this first.
    Repeated(&'a HeaderValue),
}

impl<'a> Said<'a> {
    fn of(headers: &'a HeaderMap) -> Said<'a> {
        let mut said = Said::default();
        for (name, value) in headers {
            match *name {
                HOST => said.host.add(value),
                AUTHORIZATION => said.authorization.add(value),
                CONTENT_TYPE => said.content_type.add(value),
                _ if name == IDEMPOTENCY_KEY => said.idempotency_key.add(value),
                _ => {}
            }
        }
        said
    }
}

impl<'a> Header<'a> {
    fn add(&mut self, value: &'a HeaderValue) {
        *self = self.first().map_or(Header::Once(value), Header::Repeated);
    }

    /// The value, if nobody can be in doubt which was meant.
    fn once(self) -> Option<&'a HeaderValue> {
        if let Header::Once(value) = self { Some(value) } else { None }
    }

    fn first(self) -> Option<&'a HeaderValue> {
        match self {
            Header::Absent => None,
            Header::Once(value) | Header::Repeated(value) => Some(value),
        }
    }
}
