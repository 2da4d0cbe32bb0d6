//! HTML pages: the code that all pages share.
//!
//! A page contains no rule of the service. It reads objects of the core, and a form becomes a request to `/sandbox`.
//! Pages load nothing from other origins and run no script except the files under `/assets`; the content security
//! policy enforces both.

mod asset;
mod book;
pub(crate) mod dashboard;
pub(crate) mod docs;
pub(crate) mod form;
pub(crate) mod formats;
pub(crate) mod home;
pub(crate) mod hosted;
mod live;
pub(crate) mod objects;
pub(crate) mod qr;

use std::{collections::BTreeMap, sync::Arc};

use askama::Template;
use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Method, StatusCode,
    header::{ALLOW, CONTENT_SECURITY_POLICY, LOCATION, ORIGIN, REFERRER_POLICY, X_FRAME_OPTIONS},
    request::Parts,
};
use reference_core::{dialect::Dialect, error::ApiError, time::Timestamp};
use reference_wire::{Request, Response};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use simulator::sandbox::Sandbox;

pub(crate) use asset::{Asset, FRAME_CSS, FRAME_JS, ICON};
pub(crate) use live::{Part, Topic, stream_parts};
use {dashboard::Dashboard, form::Form, live::Streams};

use crate::{
    activity::Activity,
    backend::Backend,
    body::RequestBody,
    config::Bounds,
    refusal::Refusal,
    response::{self, HttpResponse},
    sandbox_access::{self, ConnectionAddrs},
    worlds::Worlds,
};

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
/// The content security policy. It forbids everything that is not listed: inline scripts and styles, frames, other
/// origins.
const CONTENT_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
);
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// The state that all requests for pages share.
pub(crate) struct Pages {
    streams: Streams,
    dashboard: Dashboard,
    worlds: Arc<Worlds>,
}

impl Pages {
    /// Creates the state; fails if the operating system provides no randomness.
    pub(crate) fn new(
        bounds: &Bounds,
        dialect: &Dialect,
        worlds: Arc<Worlds>,
    ) -> Result<Pages, getrandom::Error> {
        Ok(Pages { streams: Streams::new(bounds), dashboard: Dashboard::new(dialect)?, worlds })
    }
}

/// A request for a page, with everything that the response may depend on.
pub(crate) struct PageRequest<'a> {
    pub(crate) pages: &'a Arc<Pages>,
    /// The world of the page.
    pub(crate) backend: &'a Arc<Backend>,
    pub(crate) addrs: ConnectionAddrs,
    /// The connection of the request.
    pub(crate) activity: &'a Arc<Activity>,
    pub(crate) head: &'a Parts,
    /// The path without the public prefix.
    pub(crate) path: &'a str,
    /// The requested host.
    pub(crate) authority: Option<&'a str>,
    pub(crate) body: &'a RequestBody<'a>,
}

impl PageRequest<'_> {
    /// Reads the form in the body.
    pub(crate) async fn form(&self) -> Result<Form, Refusal> {
        Form::parse(&self.head.headers, &self.body.read().await?)
    }

    /// Returns the method, with `GET` for `HEAD`.
    pub(crate) fn method(&self) -> &Method {
        if self.head.method == Method::HEAD { &Method::GET } else { &self.head.method }
    }

    /// Returns `true` if the request shows the page to a person: neither `HEAD` nor a browser's prefetch.
    pub(crate) fn is_view(&self) -> bool {
        let purpose = self.head.headers.get("sec-purpose");
        let is_prefetch = purpose.is_some_and(|purpose| purpose.as_bytes().starts_with(b"prefetch"));
        self.head.method == Method::GET && !is_prefetch
    }

    /// Checks that the caller has access to the dashboard; hosted pages then show the test panel.
    pub(crate) fn admit_owner(&self) -> Result<(), Refusal> {
        dashboard::admit(self)
    }

    /// Checks that the caller may use `/sandbox`: this machine, or a caller with the token.
    pub(crate) fn admit(&self) -> Result<(), Refusal> {
        let PageRequest { backend, addrs, head, authority, .. } = self;
        sandbox_access::admit(*addrs, head, *authority, &backend.addresses, &backend.token)
    }

    /// Checks by the browser's headers that a form was sent from a page of this server. Other clients send no such
    /// headers, and no page can make them send requests.
    pub(crate) fn admit_form(&self) -> Result<(), Refusal> {
        let headers = &self.head.headers;
        let requested_host = self.authority.unwrap_or_default();
        let is_own = |origin: &HeaderValue| {
            origin.to_str().is_ok_and(|origin| self.backend.addresses.is_own_origin(origin, requested_host))
        };
        let is_same_origin = |site: &HeaderValue| site == "same-origin";
        let is_allowed = headers.get_all(ORIGIN).iter().all(is_own)
            && headers.get_all(sandbox_access::SEC_FETCH_SITE).iter().all(is_same_origin);
        if is_allowed { Ok(()) } else { Err(Refusal::ForeignForm) }
    }

    /// Returns a client of the world that outlives this request.
    pub(crate) fn client(&self) -> WorldClient {
        let base = self.backend.addresses.base_url(self.authority).into_owned();
        WorldClient {
            pages: Arc::clone(self.pages),
            backend: Arc::clone(self.backend),
            activity: Arc::clone(self.activity),
            base,
        }
    }

    /// Returns the context of every page.
    pub(crate) fn site(&self) -> Result<Site, Refusal> {
        self.client().site()
    }
}

/// A client of the world for pages.
#[derive(Clone)]
pub(crate) struct WorldClient {
    pub(crate) pages: Arc<Pages>,
    pub(crate) backend: Arc<Backend>,
    /// The connection of the response.
    activity: Arc<Activity>,
    base: String,
}

/// An error response of the world.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct ErrorResponse {
    #[serde(skip)]
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    /// The messages by field.
    #[serde(default)]
    pub(crate) errors: BTreeMap<String, Vec<String>>,
}

impl ErrorResponse {
    /// Parses an error response.
    pub(crate) fn from_response(response: &Response) -> Result<ErrorResponse, Refusal> {
        let status = StatusCode::from_u16(response.status).map_err(|_| Refusal::Broken)?;
        let error_response: ErrorResponse =
            serde_json::from_slice(&response.body).map_err(|_| Refusal::Broken)?;
        Ok(ErrorResponse { status, ..error_response })
    }
}

/// Serializes the body of a request to the world.
pub(crate) fn json(request: &impl Serialize) -> String {
    serde_json::to_string(request).expect("request bodies can be serialized")
}

impl WorldClient {
    /// Reads the world at the present time. An error of `view` becomes [`Refusal::NotFound`].
    pub(crate) async fn read<T>(&self, view: impl Fn(&Sandbox) -> Result<T, ApiError>) -> Result<T, Refusal> {
        let result = self.backend.host.read(view).await?;
        result.ok_or(Refusal::StorageUnavailable)?.map_err(|_| Refusal::NotFound)
    }

    /// Sends a request to the world, which records it like that of an HTTP client. Returns the parsed response, or the
    /// error response of the world.
    pub(crate) async fn send<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: &str,
    ) -> Result<Result<T, ErrorResponse>, Refusal> {
        let response = self.backend.host.respond(&Request::json(&self.base, method, path, body)).await?;
        if !matches!(response.status, 200..300) {
            return ErrorResponse::from_response(&response).map(Err);
        }
        serde_json::from_slice(&response.body).map(Ok).map_err(|_| Refusal::Broken)
    }

    /// Returns the context of every page.
    pub(crate) fn site(&self) -> Result<Site, Refusal> {
        let (now, speed) = self.backend.host.time_and_speed()?;
        Ok(Site {
            prefix: self.backend.addresses.prefix().to_owned(),
            base: self.base.clone(),
            now,
            speed,
            real_time: crate::clock::time_of_day(),
            form_token: self.pages.dashboard.form_token().to_owned(),
            live: None,
        })
    }
}

/// The context of every page.
pub(crate) struct Site {
    /// The start of links without the origin.
    prefix: String,
    /// The start of absolute links.
    pub(crate) base: String,
    /// The time of the service clock.
    pub(crate) now: Timestamp,
    /// The speed of the clock in seconds per second of real time.
    pub(crate) speed: u64,
    pub(crate) real_time: Timestamp,
    /// The token of forms that act with the rights of the server's owner.
    pub(crate) form_token: String,
    /// The address of the page's stream of live updates, if it has one.
    pub(crate) live: Option<String>,
}

impl Site {
    /// Returns a path of this server as a link.
    pub(crate) fn to(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    /// Returns the address of an asset.
    pub(crate) fn asset(&self, asset: &Asset) -> String {
        format!("{}/assets/{}", self.prefix, asset.file_name())
    }

    /// Returns the service time in milliseconds since 1970, for scripts.
    pub(crate) fn now_ms(&self) -> u64 {
        self.now.0 / 1_000
    }
}

/// Responds to `/assets/{file_name}`.
pub(crate) fn asset(path: &str) -> Result<HttpResponse, Refusal> {
    let file_name = path.strip_prefix("/assets/").ok_or(Refusal::NotFound)?;
    if let Some(brand_css) = hosted::brand_css(file_name) {
        return Ok(brand_css);
    }
    let all = [
        &FRAME_CSS,
        &FRAME_JS,
        &ICON,
        &hosted::HOSTED_CSS,
        &hosted::HOSTED_JS,
        &dashboard::DASHBOARD_CSS,
        &docs::DOCS_CSS,
        &docs::DOCS_JS,
    ];
    let asset = all.into_iter().find(|asset| asset.file_name() == file_name).ok_or(Refusal::NotFound)?;
    Ok(asset.response())
}

/// Returns the response with a page.
pub(crate) fn html(status: StatusCode, page: &impl Template) -> Result<HttpResponse, Refusal> {
    let text = page.render().map_err(|_| Refusal::Broken)?;
    let mut response = response::with_media_type(status, HTML, text);
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, CONTENT_POLICY);
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
    // Not `no-referrer`, because browsers would then send `Origin: null` with this server's forms.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    Ok(response)
}

/// Returns a redirect (303) to a path of this world, without its prefix.
pub(crate) fn see_other(site: &Site, path: &str) -> Result<HttpResponse, Refusal> {
    redirect(&site.to(path))
}

/// Returns a redirect (303) to a path of this server, with all prefixes.
pub(crate) fn redirect(to: &str) -> Result<HttpResponse, Refusal> {
    let mut response = response::with_media_type(StatusCode::SEE_OTHER, HTML, Bytes::new());
    let location = HeaderValue::try_from(to).map_err(|_| Refusal::Broken)?;
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}

/// Returns the error response of a page that does not accept the method. `methods`: the allowed ones.
pub(crate) fn method_not_allowed(methods: &'static str) -> HttpResponse {
    let mut response = Refusal::MethodNotAllowed.response();
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    response
}

#[cfg(test)]
mod tests {
    use http::header::CACHE_CONTROL;

    use super::*;

    #[test]
    fn a_file_is_found_only_by_its_current_name() {
        let response = asset(&format!("/assets/{}", FRAME_CSS.file_name())).expect("the style sheet exists");
        assert_eq!(response.headers()[CACHE_CONTROL], asset::CACHE_FOREVER);
        for path in
            ["/assets/", "/assets/frame.css", "/assets/frame-000000000000.css", "/assets/../frame.css"]
        {
            assert!(matches!(asset(path), Err(Refusal::NotFound)), "{path}");
        }
    }
}
