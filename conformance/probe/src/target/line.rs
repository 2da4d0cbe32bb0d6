//! A way to say anything that HTTP can carry: any method, headers and body. Nothing is followed, nothing is repeated.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::time::timeout;
use url::Url;

use conformance_model::recording::{Answer, Ending};

use super::connector::Connector;
use super::{innermost, trust};

/// Whether connections are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    /// As a client of an API does.
    Kept,
    /// One for each request, as from a queue's many workers.
    Fresh,
}

/// The way to one server.
#[derive(Clone)]
pub struct Line {
    client: Client<Connector, Full<Bytes>>,
    time_limit: Duration,
    body_bytes_max: usize,
}

impl Line {
    /// Connections to the server of a base address. `ca_pem` holds certificates that are trusted besides the
    /// usual ones; no body of more than `body_bytes_max` bytes is read.
    pub fn to(
        base: &Url,
        connections: Connections,
        time_limit: Duration,
        body_bytes_max: usize,
        ca_pem: Option<&str>,
    ) -> Line {
        let tls = (base.scheme() == "https").then(|| trust::tls(ca_pem));
        let mut builder = Client::builder(TokioExecutor::new());
        if connections == Connections::Fresh {
            builder.pool_max_idle_per_host(0);
        }
        Line { client: builder.build(Connector::new(time_limit, tls)), time_limit, body_bytes_max }
    }

    /// Sends one request to an absolute address. What can't be written as HTTP ends as lost, with the reason.
    pub async fn send(
        &self,
        method: &str,
        address: &str,
        headers: &[(String, String)],
        body: Vec<u8>,
    ) -> Ending {
        match timeout(self.time_limit, self.exchange(method, address, headers, body)).await {
            Ok(Ok(answer)) => Ending::Answered(answer),
            Ok(Err(why)) => Ending::Lost(why),
            Err(_) => Ending::Lost(format!("no complete answer within {} s", self.time_limit.as_secs())),
        }
    }

    async fn exchange(
        &self,
        method: &str,
        address: &str,
        headers: &[(String, String)],
        body: Vec<u8>,
    ) -> Result<Answer, String> {
        let unwritable = |error: &dyn std::fmt::Display| format!("the request cannot be written: {error}");
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::from_bytes(method.as_bytes()).map_err(|error| unwritable(&error))?;
        *request.uri_mut() = address.parse::<Uri>().map_err(|error| unwritable(&error))?;
        for (name, value) in headers {
            let name = HeaderName::try_from(name).map_err(|error| unwritable(&error))?;
            let value = HeaderValue::try_from(value).map_err(|error| unwritable(&error))?;
            request.headers_mut().append(name, value);
        }
        let (head, body) = self.client.request(request).await.map_err(|err| innermost(&err))?.into_parts();
        let body = Limited::new(body, self.body_bytes_max);
        let body = body
            .collect()
            .await
            .map_err(|err| format!("an answer cut short: {}", innermost(err.as_ref())))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let headers = head
            .headers
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes())))
            .collect();
        Ok(Answer { status: head.status.as_u16(), headers, body: text(&body.to_bytes()) })
    }
}
