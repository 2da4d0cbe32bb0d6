//! The only HTTP client. It asks once, follows nothing, and writes down what came.

mod connector;
pub(crate) mod line;
pub(crate) mod trust;

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use url::Url;

use conformance_model::recording::{Answer, Ending};

use self::connector::Connector;

/// A page of 100 events is far below this.
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// One server, asked over pooled connections.
#[derive(Clone)]
pub(crate) struct Target {
    client: Client<Connector, Full<Bytes>>,
    base: Url,
    time_limit: Duration,
}

impl Target {
    /// `ca_pem` holds certificates that are trusted besides the usual ones.
    pub(crate) fn new(base: &Url, time_limit: Duration, ca_pem: Option<&str>) -> Target {
        let tls = (base.scheme() == "https").then(|| trust::tls(ca_pem));
        let connector = Connector::new(time_limit, tls);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Target { client, base: base.clone(), time_limit }
    }

    /// Sends a GET for a path and query, with an `Authorization` value if there is one.
    pub(crate) async fn get(&self, path_and_query: &str, authorization: Option<&str>) -> Ending {
        self.ask(Method::GET, path_and_query, authorization, None).await
    }

    /// Sends a POST with a body of JSON.
    pub(crate) async fn post(&self, path_and_query: &str, authorization: Option<&str>, body: &str) -> Ending {
        self.ask(Method::POST, path_and_query, authorization, Some(body)).await
    }

    async fn ask(
        &self,
        method: Method,
        path_and_query: &str,
        authorization: Option<&str>,
        body: Option<&str>,
    ) -> Ending {
        let exchange = self.exchange(method, path_and_query, authorization, body);
        match tokio::time::timeout(self.time_limit, exchange).await {
            Ok(Ok(answer)) => Ending::Answered(answer),
            Ok(Err(why)) => Ending::Lost(why),
            Err(_) => Ending::Lost(format!("no complete answer within {:?}", self.time_limit)),
        }
    }

    async fn exchange(
        &self,
        method: Method,
        path_and_query: &str,
        authorization: Option<&str>,
        body: Option<&str>,
    ) -> Result<Answer, String> {
        let address = format!("{}{path_and_query}", self.base.origin().ascii_serialization());
        let mut request = Request::builder()
            .method(method)
            .uri(address)
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, concat!("chargeproof/", env!("CARGO_PKG_VERSION")));
        if let Some(value) = authorization {
            request = request.header(header::AUTHORIZATION, value);
        }
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let body = Full::new(Bytes::from(body.unwrap_or_default().to_owned()));
        let request = request.body(body).map_err(|err| format!("the request cannot be written: {err}"))?;

        let response = self.client.request(request).await.map_err(|err| innermost(&err))?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, BODY_BYTES_MAX).collect().await.map_err(|err| {
            if err.is::<LengthLimitError>() {
                format!("{} with a body of more than {BODY_BYTES_MAX} bytes", head.status.as_u16())
            } else {
                format!("{} and then a body cut short: {}", head.status.as_u16(), innermost(err.as_ref()))
            }
        })?;
        let headers = head
            .headers
            .iter()
            .map(|(name, value)| {
                (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
            })
            .collect();
        let body = String::from_utf8_lossy(&body.to_bytes()).into_owned();
        Ok(Answer { status: head.status.as_u16(), headers, body })
    }
}

/// The outer layers only say that a request failed; the innermost says why.
fn innermost(err: &(dyn Error + 'static)) -> String {
    let mut err = err;
    while let Some(source) = err.source() {
        err = source;
    }
    err.to_string()
}
