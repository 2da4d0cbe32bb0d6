//! [`RemoteStage`]: runs scenarios and single calls on a running reference server, over HTTP.

use conformance::receiver::LimitedHead;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{Request, body::Bytes, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use simulator::play::{Stage, StageError, StageRequest, StageResponse};
use tokio::{
    net::TcpStream,
    runtime::{Builder, Runtime},
    time::{Duration, timeout},
};
use url::Url;

/// The time limit of a call. Sandbox calls that advance the clock far take several seconds.
const TIME_LIMIT: Duration = Duration::from_secs(60);
const RESPONSE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A client of a reference server with one connection and one call at a time.
pub(crate) struct RemoteStage {
    runtime: Runtime,
    /// The host and the port.
    host: String,
    /// The path of the server's URL, without a trailing `/`.
    prefix: String,
    time_limit: Duration,
    connection: Option<http1::SendRequest<Full<Bytes>>>,
}

impl RemoteStage {
    /// Creates a client for a URL such as `http://127.0.0.1:8402`.
    pub(crate) fn new(text: &str) -> Result<RemoteStage, String> {
        let url = Url::parse(text).map_err(|error| format!("`{text}` is not an address: {error}"))?;
        if url.scheme() != "http" {
            return Err(format!("`{text}` is not the URL of a reference server; use an http:// URL"));
        }
        let host = url.host_str().ok_or_else(|| format!("`{text}` has no host"))?;
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("cannot start the async runtime: {error}"))?;
        Ok(RemoteStage {
            runtime,
            host: format!("{host}:{}", url.port_or_known_default().unwrap_or(80)),
            prefix: url.path().trim_end_matches('/').to_owned(),
            time_limit: TIME_LIMIT,
            connection: None,
        })
    }

    /// Sets the time limit of each call.
    pub(crate) fn with_time_limit(self, time_limit: Duration) -> RemoteStage {
        RemoteStage { time_limit, ..self }
    }
}

impl Stage for RemoteStage {
    fn call(&mut self, call: &StageRequest<'_>) -> Result<StageResponse, StageError> {
        let RemoteStage { runtime, host, prefix, time_limit, connection } = self;
        let response = runtime.block_on(async {
            timeout(*time_limit, send(host, prefix, connection, call))
                .await
                .map_err(|_| format!("no response within {} s", time_limit.as_secs()))?
        });
        response.map_err(|why| StageError(format!("http://{host}{prefix}{}: {why}", call.path)))
    }
}

async fn send(
    host: &str,
    prefix: &str,
    connection: &mut Option<http1::SendRequest<Full<Bytes>>>,
    call: &StageRequest<'_>,
) -> Result<StageResponse, String> {
    let to_message = |error: hyper::Error| error.to_string();
    let mut sender = match connection.take() {
        Some(sender) if !sender.is_closed() => sender,
        _ => {
            let stream = TcpStream::connect(host).await.map_err(|error| error.to_string())?;
            stream.set_nodelay(true).map_err(|error| error.to_string())?;
            let stream = TokioIo::new(LimitedHead::new(stream));
            let (sender, connection) = http1::handshake(stream).await.map_err(to_message)?;
            tokio::spawn(connection);
            sender
        }
    };
    let body = call.body.map(serde_json::Value::to_string).unwrap_or_default();
    // Links of the server already contain its prefix.
    let path = call.path.strip_prefix(prefix).filter(|rest| rest.starts_with('/')).unwrap_or(call.path);
    let mut request = Request::builder()
        .method(call.method)
        .uri(format!("{prefix}{path}"))
        .header(header::HOST, host)
        .header(header::ACCEPT, "application/json");
    let has_header = |name: &str| call.headers.iter().any(|(header, _)| header.eq_ignore_ascii_case(name));
    if let Some(key) = call.bearer.filter(|_| !has_header("authorization")) {
        request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
    }
    if call.body.is_some() && !has_header("content-type") {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    for (name, value) in call.headers {
        request = request.header(name, value);
    }
    let request = request.body(Full::new(Bytes::from(body))).map_err(|error| error.to_string())?;
    let response = sender.send_request(request).await.map_err(to_message)?;
    let (parts, body) = response.into_parts();
    let body =
        Limited::new(body, RESPONSE_BYTES_MAX).collect().await.map_err(|error| error.to_string())?.to_bytes();
    *connection = Some(sender);
    let headers = parts
        .headers
        .iter()
        .map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        })
        .collect();
    Ok(StageResponse { status: parts.status.as_u16(), headers, body })
}
