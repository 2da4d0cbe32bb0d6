//! Posts one delivery, as a careful sender does: nothing is followed, and nobody is waited for longer than that.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use tokio::time::timeout;
use url::Url;

use super::run::Heard;
use crate::target::{connector::Connector, innermost, trust};

const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// So much of an answer is shown.
const SHOWN_CHARS_MAX: usize = 200;

/// The way to one handler.
#[derive(Clone)]
pub(super) struct Way {
    client: Client<Connector, Full<Bytes>>,
    url: Url,
    time_limit: Duration,
}

impl Way {
    pub(super) fn to(url: &Url, time_limit: Duration, ca_pem: Option<&str>) -> Way {
        let tls = (url.scheme() == "https").then(|| trust::tls(ca_pem));
        // Every delivery comes over a connection of its own, as from a queue's many workers.
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .build(Connector::new(time_limit, tls));
        Way { client, url: url.clone(), time_limit }
    }

    pub(super) async fn post(&self, headers: Vec<(String, String)>, body: Vec<u8>) -> Heard {
        match timeout(self.time_limit, self.exchange(headers, body)).await {
            Ok(Ok(heard)) => heard,
            Ok(Err(why)) => Heard::Nothing(why),
            Err(_) => Heard::Nothing(format!("no complete answer within {} s", self.time_limit.as_secs())),
        }
    }

    async fn exchange(&self, headers: Vec<(String, String)>, body: Vec<u8>) -> Result<Heard, String> {
        let mut request = Request::post(self.url.as_str())
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| error.to_string())?;
        for (name, value) in headers {
            let name = HeaderName::try_from(name).map_err(|error| error.to_string())?;
            let value = HeaderValue::try_from(value).map_err(|error| error.to_string())?;
            request.headers_mut().append(name, value);
        }
        let (head, body) = self.client.request(request).await.map_err(|err| innermost(&err))?.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX);
        let body = body
            .collect()
            .await
            .map_err(|err| format!("an answer cut short: {}", innermost(err.as_ref())))?;
        let text = String::from_utf8_lossy(&body.to_bytes()).chars().take(SHOWN_CHARS_MAX).collect();
        Ok(Heard::Status(head.status.as_u16(), text))
    }
}
