//! [`HttpResponse`]: the HTTP responses of the server. Converts those of the world without copying the body, and
//! creates the server's own responses.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::LazyLock,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
};
use hyper::body::{Body, Frame, SizeHint};
use reference_core::service::Quota;
use reference_wire::{Response, quota_headers};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::host::InternalError;

/// The media type of scenario files.
pub(crate) const YAML: HeaderValue = HeaderValue::from_static("application/yaml");

/// A response as it is sent to the client.
pub(crate) type HttpResponse = http::Response<ResponseBody>;

/// The body of a response.
pub(crate) enum ResponseBody {
    /// A body that is fully in memory.
    Complete(Bytes),
    /// A stream of server-sent events.
    Stream {
        /// The chunks of the stream.
        chunks: mpsc::Receiver<Bytes>,
        /// Counts the stream towards the maximum until it is dropped.
        _permit: OwnedSemaphorePermit,
    },
}

impl From<Bytes> for ResponseBody {
    fn from(body: Bytes) -> ResponseBody {
        ResponseBody::Complete(body)
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            ResponseBody::Complete(body) if body.is_empty() => Poll::Ready(None),
            ResponseBody::Complete(body) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(body))))),
            ResponseBody::Stream { chunks, .. } => {
                chunks.poll_recv(cx).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            ResponseBody::Complete(body) => body.is_empty(),
            ResponseBody::Stream { .. } => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ResponseBody::Complete(body) => SizeHint::with_exact(body.len() as u64),
            ResponseBody::Stream { .. } => SizeHint::default(),
        }
    }
}

/// The headers of nearly all responses. Cloning the map takes half the time of building it.
static JSON_HEADERS: LazyLock<HeaderMap> = LazyLock::new(|| {
    HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        // Responses may contain keys and secrets.
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ])
});

/// Returns a JSON response.
pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> HttpResponse {
    let mut response = HttpResponse::new(ResponseBody::from(body.into()));
    *response.status_mut() = status;
    *response.headers_mut() = JSON_HEADERS.clone();
    response
}

/// Returns a response with a content type other than JSON.
pub(crate) fn with_media_type(
    status: StatusCode,
    content_type: HeaderValue,
    body: impl Into<Bytes>,
) -> HttpResponse {
    let mut response = json(status, body);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// Converts a response of the world.
pub(crate) fn from_world(response: Response) -> Result<HttpResponse, InternalError> {
    let status = StatusCode::from_u16(response.status).map_err(|_| InternalError)?;
    let mut http_response = json(status, response.body);
    let headers = http_response.headers_mut();
    for (name, value) in response.headers {
        let replaces = matches!(name, "content-type" | "cache-control");
        let name = static_name(name).ok_or(InternalError)?;
        let value = HeaderValue::try_from(value).map_err(|_| InternalError)?;
        if replaces {
            headers.insert(name, value);
        } else {
            headers.append(name, value);
        }
    }
    Ok(http_response)
}

/// Converts a header name without copying it, unlike `HeaderName::from_bytes`; `None` if it is invalid.
fn static_name(name: &'static str) -> Option<HeaderName> {
    let is_allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    // `from_static` panics for anything else.
    (!name.is_empty() && name.bytes().all(is_allowed)).then(|| HeaderName::from_static(name))
}

/// Adds the rate limit headers.
pub(crate) fn with_quota(
    mut response: HttpResponse,
    quota: Option<Quota>,
) -> Result<HttpResponse, InternalError> {
    for (name, value) in quota_headers(quota) {
        let value = HeaderValue::try_from(value).map_err(|_| InternalError)?;
        response.headers_mut().insert(HeaderName::from_static(name), value);
    }
    Ok(response)
}

/// Returns the response to `HEAD`: the same headers, with the length that the body would have had.
pub(crate) fn without_body(mut response: HttpResponse) -> HttpResponse {
    if let Some(length) = response.body().size_hint().exact() {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    *response.body_mut() = ResponseBody::from(Bytes::new());
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, headers: &[(&'static str, &str)]) -> Response {
        let headers = headers.iter().map(|(name, value)| (*name, value.to_string())).collect();
        Response { status, headers, body: b"{}".as_slice().into() }
    }

    #[track_caller]
    fn check(headers: &[(&'static str, &str)], name: &str, values: &[&str]) {
        let converted = from_world(response(200, headers)).expect("headers in tests are valid");
        let found: Vec<_> = converted.headers().get_all(name).iter().collect();
        assert_eq!(found, values);
    }

    #[test]
    fn a_response_is_json_unless_the_world_sets_another_type() {
        check(&[], "content-type", &["application/json"]);
        check(&[("content-type", "text/html")], "content-type", &["text/html"]);
    }

    #[test]
    fn a_response_is_not_cached_unless_the_world_allows_it() {
        check(&[], "cache-control", &["no-store"]);
        check(&[("cache-control", "max-age=60")], "cache-control", &["max-age=60"]);
    }

    #[test]
    fn repeated_headers_stay_repeated() {
        check(&[("link", "a"), ("link", "b")], "link", &["a", "b"]);
    }

    #[test]
    fn an_invalid_response_is_an_internal_error() {
        for invalid in [
            response(99, &[]),
            response(200, &[("no name", "x")]),
            response(200, &[("Upper-Case", "x")]),
            response(200, &[("", "x")]),
            response(200, &[("x-name", "two\r\nlines")]),
        ] {
            assert!(matches!(from_world(invalid), Err(InternalError)));
        }
    }
}
