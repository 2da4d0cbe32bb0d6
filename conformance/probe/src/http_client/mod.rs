//! The HTTP client of the suite. It sends any method, headers and body, and returns the response. It follows no
//! redirects, and retries no request that it started to send. hyper sends a request over another connection only if
//! the server closed the reused one before the request was started.

mod connector;
mod content_coding;
pub(crate) mod trust;

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use url::Url;

use conformance_model::body::Body;
use conformance_model::recording::{ExchangeOutcome, MALFORMED_PREFIX, ReceivedResponse};

use self::connector::Connector;
use self::content_coding::decode;

/// The reuse of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    /// Requests share connections, as those of an API client.
    Reused,
    /// Each request opens a connection, as the workers of many job queues do.
    PerRequest,
}

/// An HTTP client of one server. Clones share its connections.
#[derive(Clone)]
pub struct HttpClient {
    client: Client<Connector, Full<Bytes>>,
    time_limit: Duration,
    body_bytes_max: usize,
}

impl HttpClient {
    /// Creates a client of the server at a base address. `ca_pem`: additional trusted certificates. `time_limit`: the
    /// longest time of a request with its response. `body_bytes_max`: the largest accepted body.
    pub fn new(
        base: &Url,
        connections: Connections,
        time_limit: Duration,
        body_bytes_max: usize,
        ca_pem: Option<&str>,
    ) -> HttpClient {
        let tls = (base.scheme() == "https").then(|| trust::tls_connector(ca_pem));
        let mut builder = Client::builder(TokioExecutor::new());
        if connections == Connections::PerRequest {
            builder.pool_max_idle_per_host(0);
        }
        HttpClient { client: builder.build(Connector::new(time_limit, tls)), time_limit, body_bytes_max }
    }

    /// Sends a request to an absolute address. Returns [`ExchangeOutcome::NoResponse`] with the reason if the request
    /// is not valid HTTP or gets no complete response.
    pub async fn send(
        &self,
        method: &str,
        address: &str,
        headers: &[(String, String)],
        body: Vec<u8>,
    ) -> ExchangeOutcome {
        let exchange = self.send_unlimited(method, address, headers, body);
        match tokio::time::timeout(self.time_limit, exchange).await {
            Ok(Ok(response)) => ExchangeOutcome::Answered(response),
            Ok(Err(why)) => ExchangeOutcome::NoResponse(why),
            Err(_) => {
                ExchangeOutcome::NoResponse(format!("no complete response within {:?}", self.time_limit))
            }
        }
    }

    /// Sends a request without a time limit. The error is the reason why there is no response.
    async fn send_unlimited(
        &self,
        method: &str,
        address: &str,
        headers: &[(String, String)],
        body: Vec<u8>,
    ) -> Result<ReceivedResponse, String> {
        let invalid_request =
            |error: &dyn std::fmt::Display| format!("the request is not valid HTTP: {error}");
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() =
            Method::from_bytes(method.as_bytes()).map_err(|error| invalid_request(&error))?;
        *request.uri_mut() = address.parse::<Uri>().map_err(|error| invalid_request(&error))?;
        for (name, value) in headers {
            let name = HeaderName::try_from(name).map_err(|error| invalid_request(&error))?;
            let value = HeaderValue::try_from(value).map_err(|error| invalid_request(&error))?;
            request.headers_mut().append(name, value);
        }
        let (head, body) =
            self.client.request(request).await.map_err(|err| no_head_reason(&err))?.into_parts();
        let status = head.status.as_u16();
        let body = Limited::new(body, self.body_bytes_max).collect().await.map_err(|err| {
            if err.is::<LengthLimitError>() {
                format!("{status} with a body of more than {} bytes", self.body_bytes_max)
            } else {
                format!("{MALFORMED_PREFIX} {status} with a body cut short: {}", innermost(err.as_ref()))
            }
        })?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let headers = head
            .headers
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes())))
            .collect();
        let (headers, body) = decode(headers, body.to_bytes().into(), self.body_bytes_max);
        Ok(ReceivedResponse { status, headers, body: Body::from_bytes(&body) })
    }
}

/// hyper's messages for an invalid header of a response. Its error type does not distinguish them.
const HEADER_ERRORS: [&str; 3] =
    ["invalid HTTP header parsed", "invalid content-length parsed", "unexpected transfer-encoding parsed"];

/// Returns the reason why no response head could be read. A header field that hyper cannot parse is malformed HTTP;
/// other errors may mean that the server does not speak HTTP.
fn no_head_reason(err: &(dyn Error + 'static)) -> String {
    let why = innermost(err);
    if HEADER_ERRORS.contains(&why.as_str()) { format!("{MALFORMED_PREFIX} {why}") } else { why }
}

/// Returns the message of the innermost error, which has the cause.
fn innermost(err: &(dyn Error + 'static)) -> String {
    let mut err = err;
    while let Some(source) = err.source() {
        err = source;
    }
    err.to_string()
}
