//! Forwards deliveries to the merchant's handler at a [`HandlerUrl`], and returns its responses.

use std::{
    net::{IpAddr, SocketAddr},
    str::FromStr,
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, time::timeout};
use url::Url;

use super::{head_limit::LimitedHead, received_request::ReceivedRequest};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The service waits as long for the response to a delivery.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);
const RESPONSE_BYTES_MAX: usize = 1024 * 1024;

/// The headers that apply to one connection only, and are not forwarded.
const HOP_BY_HOP_HEADERS: [HeaderName; 10] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::EXPECT,
    // Computed from the body.
    header::CONTENT_LENGTH,
];

/// The URL of a merchant's webhook handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerUrl {
    host: String,
    port: u16,
    authority: HeaderValue,
    path_and_query: String,
}

impl FromStr for HandlerUrl {
    type Err = String;

    /// Parses an `http://` URL. All deliveries are sent to its path.
    fn from_str(text: &str) -> Result<HandlerUrl, String> {
        let invalid = || {
            format!(
                "`{text}` is not the URL of a handler; allowed: an http:// URL such as http://127.0.0.1:3000/hooks"
            )
        };
        let url = Url::parse(text).map_err(|_| invalid())?;
        let host = url.host_str().filter(|_| url.scheme() == "http").ok_or_else(invalid)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(format!("the URL of `{host}` contains a user name or password; remove it"));
        }
        let port = url.port_or_known_default().ok_or_else(invalid)?;
        let authority = HeaderValue::try_from(format!("{host}:{port}")).map_err(|_| invalid())?;
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        Ok(HandlerUrl {
            host: host.trim_matches(['[', ']']).to_owned(),
            port,
            authority,
            path_and_query: format!("{}{query}", url.path()),
        })
    }
}

impl HandlerUrl {
    /// Returns `true` if this is probably the URL of a receiver at `address`, so that deliveries would loop: the port is
    /// the same, and the host is the same, `localhost`, a loopback address or `0.0.0.0`. Other names are not resolved.
    pub fn listens_on(&self, address: SocketAddr) -> bool {
        let is_this_machine = match self.host.parse::<IpAddr>() {
            Ok(ip) => ip.is_loopback() || ip.is_unspecified() || ip == address.ip(),
            Err(_) => self.host.eq_ignore_ascii_case("localhost"),
        };
        is_this_machine && self.port == address.port()
    }

    /// Sends a POST with the headers of the request, except the hop-by-hop ones and `Host`, and its raw body. The
    /// error is the reason why there is no response.
    pub(super) async fn forward(&self, received: &ReceivedRequest) -> Result<Response<Full<Bytes>>, String> {
        match timeout(RESPONSE_TIMEOUT, self.exchange(received)).await {
            Ok(result) => result,
            Err(_) => Err(format!("no complete response within {} s", RESPONSE_TIMEOUT.as_secs())),
        }
    }

    async fn exchange(&self, received: &ReceivedRequest) -> Result<Response<Full<Bytes>>, String> {
        let to_message = |error: hyper::Error| error.to_string();
        let stream = match timeout(CONNECT_TIMEOUT, TcpStream::connect((self.host.as_str(), self.port))).await
        {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(format!("no connection: {error}")),
            Err(_) => return Err(format!("no connection within {} s", CONNECT_TIMEOUT.as_secs())),
        };
        let stream = TokioIo::new(LimitedHead::new(stream));
        let (mut sender, connection) = http1::handshake(stream).await.map_err(to_message)?;
        // The task ends when `sender` is dropped.
        tokio::spawn(connection);
        let mut request = Request::post(&self.path_and_query)
            .body(Full::new(Bytes::copy_from_slice(&received.body.0)))
            .map_err(|error| error.to_string())?;
        for (name, value) in &received.headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            let value = HeaderValue::from_bytes(&value.0);
            // Names and values of a parsed request are valid.
            if let (Ok(name), Ok(value)) = (name, value) {
                request.headers_mut().append(name, value);
            }
        }
        remove_hop_by_hop_headers(request.headers_mut());
        request.headers_mut().insert(header::HOST, self.authority.clone());
        let (mut head, body) = sender.send_request(request).await.map_err(to_message)?.into_parts();
        let body = Limited::new(body, RESPONSE_BYTES_MAX);
        let body = body.collect().await.map_err(|error| format!("an incomplete response: {error}"))?;
        remove_hop_by_hop_headers(&mut head.headers);
        Ok(Response::from_parts(head, Full::new(body.to_bytes())))
    }
}

fn remove_hop_by_hop_headers(headers: &mut HeaderMap) {
    for name in HOP_BY_HOP_HEADERS {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_is_an_http_url() {
        let handler: HandlerUrl = "http://[::1]:3000/hooks?a=1".parse().unwrap();
        assert_eq!((handler.host.as_str(), handler.port), ("::1", 3000));
        assert_eq!(handler.path_and_query, "/hooks?a=1");
        for text in ["https://127.0.0.1/", "3000", "http://", "ftp://a/", "http://u:p@a/"] {
            assert!(text.parse::<HandlerUrl>().is_err(), "{text}");
        }
    }

    #[track_caller]
    fn check_listens_on(handler: &str, address: &str, expected: bool) {
        let handler: HandlerUrl = handler.parse().unwrap();
        assert_eq!(handler.listens_on(address.parse().unwrap()), expected);
    }

    #[test]
    fn a_loop_is_detected() {
        check_listens_on("http://localhost:3000", "127.0.0.1:3000", true);
        check_listens_on("http://127.0.0.1:3000/x", "0.0.0.0:3000", true);
        check_listens_on("http://10.0.0.1:3000", "10.0.0.1:3000", true);
        check_listens_on("http://127.0.0.1:3001", "127.0.0.1:3000", false);
        check_listens_on("http://shop.example:3000", "127.0.0.1:3000", false);
    }
}
