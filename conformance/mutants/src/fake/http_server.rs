//! Serves a [`FakeServer`] over HTTP/1, with or without TLS.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use time::OffsetDateTime;
use time::macros::{datetime, format_description};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use url::form_urlencoded;

use super::{EditableResponse, FakeServer, Request};

/// The time at which the server's clock starts.
const EPOCH: OffsetDateTime = datetime!(2026-01-01 0:00 UTC);

/// [`EPOCH`] in seconds since 1970.
pub(crate) const EPOCH_UNIX_SECONDS: u64 = 1_767_225_600;

/// The HTTP settings of the server.
#[derive(Clone, Copy, Default)]
pub struct HttpSettings {
    /// `true` for chunked bodies.
    pub chunked: bool,
    /// `true` if the server closes each connection after one response.
    pub closes_after_response: bool,
    /// `true` for HTTP/1.0 responses.
    pub http_1_0: bool,
    /// `true` for header names in title case.
    pub title_case: bool,
    /// `true` if responses have no `Date`.
    pub omits_date: bool,
    /// The number of responses on a connection after which the server closes it.
    pub responses_per_connection: Option<u64>,
    /// The number of responses, on all connections together, after which the server closes the connection of the last one.
    pub close_every: Option<u64>,
}

/// A status that makes the server close the connection without a response, as in nginx.
pub const CLOSE_WITHOUT_RESPONSE: u16 = 444;

/// Starts the server on a free port. Returns its base URL.
pub async fn serve(server: FakeServer) -> String {
    serve_shared(server).await.0
}

/// Starts the server on a free port. Returns its base URL, and the server, whose mutex is poisoned if a request handler
/// panics.
pub(crate) async fn serve_shared(mut server: FakeServer) -> (String, Arc<Mutex<FakeServer>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    server.origin = format!("http://{}", listener.local_addr().expect("the listener has an address"));
    let base = format!("{}{}", server.origin, server.prefix);
    let server = Arc::new(Mutex::new(server));
    let shared = Arc::clone(&server);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve_connection(Arc::clone(&server), stream));
        }
    });
    (base, shared)
}

/// Starts the server with TLS under the name `localhost`. Returns its port.
pub async fn serve_tls(mut server: FakeServer, tls: TlsAcceptor) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let port = listener.local_addr().expect("the listener has an address").port();
    server.origin = format!("https://localhost:{port}");
    let server = Arc::new(Mutex::new(server));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (tls, server) = (tls.clone(), Arc::clone(&server));
            tokio::spawn(async move {
                // A client that does not trust the certificate disconnects here.
                if let Ok(stream) = tls.accept(stream).await {
                    serve_connection(server, stream).await;
                }
            });
        }
    });
    port
}

async fn serve_connection(server: Arc<Mutex<FakeServer>>, stream: impl AsyncRead + AsyncWrite + Unpin) {
    let settings = server.lock().expect("no request handler panics").http_settings;
    let response_count = AtomicU64::new(0);
    let service = service_fn(move |request| {
        let mut server = server.lock().expect("no request handler panics");
        let on_connection = response_count.fetch_add(1, Ordering::Relaxed) + 1;
        let mut response = respond(&mut server, &request);
        server.response_count += 1;
        let is_last = settings.responses_per_connection.is_some_and(|max| on_connection >= max)
            || settings.close_every.is_some_and(|n| server.response_count.is_multiple_of(n));
        if is_last {
            response.headers_mut().insert("connection", http::HeaderValue::from_static("close"));
        }
        // An error closes the connection without a response.
        let is_closed = response.status().as_u16() == CLOSE_WITHOUT_RESPONSE;
        std::future::ready(if is_closed {
            Err(io::ErrorKind::ConnectionAborted.into())
        } else {
            Ok::<_, io::Error>(response)
        })
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    // hyper would take the time of the system clock.
    http.auto_date_header(false);
    http.title_case_headers(settings.title_case).keep_alive(!settings.closes_after_response);
    // Clients may disconnect at any time.
    let _ = http.serve_connection(TokioIo::new(stream), service).await;
}

fn respond(server: &mut FakeServer, request: &http::Request<Incoming>) -> Response<ResponseBody> {
    let authorization = request.headers().get("authorization").and_then(|value| value.to_str().ok());
    let query = request.uri().query().unwrap_or_default();
    let request = Request {
        mode: None,
        method: request.method().to_string(),
        authorization: authorization.map(str::to_owned),
        // Paths with another prefix get 404.
        path: request.uri().path().strip_prefix(server.prefix).unwrap_or("/nowhere").to_owned(),
        query: form_urlencoded::parse(query.as_bytes()).into_owned().collect::<BTreeMap<_, _>>(),
        raw_query: query.to_owned(),
    };
    let EditableResponse { status, headers, body, raw } = server.respond(request);
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    // U+FFFD is sent as the byte 0xff, which is invalid in UTF-8.
    let text = raw.unwrap_or_else(|| body.to_string());
    let parts: Vec<_> = text.split(char::REPLACEMENT_CHARACTER).map(str::as_bytes).collect();
    let full = Full::from(parts.join(&0xff));
    let body = ResponseBody { full, chunked: server.http_settings.chunked };
    let mut response = response.body(body).expect("the head is valid");
    if server.http_settings.http_1_0 {
        *response.version_mut() = http::Version::HTTP_10;
    }
    response
}

/// A body with or without a known length.
struct ResponseBody {
    full: Full<Bytes>,
    chunked: bool,
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.full).poll_frame(cx)
    }

    fn size_hint(&self) -> SizeHint {
        if self.chunked { SizeHint::default() } else { self.full.size_hint() }
    }
}

/// Formats a time of the clock, in microseconds since 2026-01-01, as an API timestamp.
pub fn timestamp(micros: u64) -> String {
    let time = EPOCH + std::time::Duration::from_micros(micros);
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");
    time.format(format).expect("the format applies to every time")
}

/// Formats a time in seconds since 2026-01-01 as an HTTP date.
pub fn http_date(seconds: u64) -> String {
    let time = EPOCH + std::time::Duration::from_secs(seconds);
    let format = format_description!(
        "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
    );
    time.format(format).expect("the format applies to every date")
}
