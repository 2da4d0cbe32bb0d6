//! [`Target`]: the server of a load test. Connects to it, and writes requests as bytes.

use std::net::{SocketAddr, ToSocketAddrs};

use tokio::time::Instant;
use url::Url;

use crate::{
    connection::{Connection, RequestError, ResponseSummary},
    plan::{Plan, StartError},
    stream::{Stream, Tls},
};

/// The size in bytes from which the rest of a body is no longer stored by [`Target::send`].
const BODY_MAX: usize = 4 * 1024 * 1024;

/// The server under load.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) url: Url,
    addresses: Vec<SocketAddr>,
    tls: Option<Tls>,
    /// The `Host` header.
    authority: String,
    /// The prefix of every path, without a slash at the end.
    prefix: String,
}

impl Target {
    /// Creates a target, and resolves its host name.
    pub(crate) fn resolve(plan: &Plan) -> Result<Target, StartError> {
        let url = plan.url.clone();
        let usage_error = |reason: &str| {
            StartError::Usage(format!(
                "the address is `{url}`: {reason}; allowed: http:// or https:// and a host, such as http://127.0.0.1:8402"
            ))
        };
        let host =
            url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| usage_error("it has no host"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(usage_error("it contains a user name or password"));
        }
        let tls = match url.scheme() {
            "http" => None,
            "https" => Some(Tls::new(host, plan.ca_pem.as_deref()).map_err(StartError::Usage)?),
            _ => return Err(usage_error("its scheme is neither http nor https")),
        };
        let port = url.port_or_known_default().ok_or_else(|| usage_error("it has no port"))?;
        let addresses: Vec<_> = (host.trim_matches(['[', ']']), port)
            .to_socket_addrs()
            .map_err(|error| StartError::Unreachable(format!("`{host}` cannot be resolved: {error}")))?
            .collect();
        let authority = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let prefix = url.path().trim_end_matches('/').to_owned();
        Ok(Target { url, addresses, tls, authority, prefix })
    }

    /// Returns a `GET` as bytes.
    pub(crate) fn get(&self, path: &str, key: Option<&str>) -> Vec<u8> {
        self.request("GET", &format!("{}{path}", self.prefix), key, None)
    }

    /// Returns a `POST` of JSON as bytes.
    pub(crate) fn post(&self, path: &str, key: Option<&str>, body: &str) -> Vec<u8> {
        self.request("POST", &format!("{}{path}", self.prefix), key, Some(body))
    }

    fn request(&self, method: &str, path: &str, key: Option<&str>, body: Option<&str>) -> Vec<u8> {
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.authority);
        if let Some(key) = key {
            text.push_str(&format!("Authorization: Bearer {key}\r\n"));
        }
        if let Some(body) = body {
            text.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()));
        }
        text.push_str("\r\n");
        text.push_str(body.unwrap_or_default());
        text.into_bytes()
    }

    /// Returns the part of the head that all deliveries to the URL share.
    pub(crate) fn post_head(&self, user_agent: &str) -> String {
        let path = match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        };
        format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {user_agent}\r\nContent-Type: application/json\r\n",
            self.authority
        )
    }

    /// Opens a connection.
    pub(crate) async fn connect(&self) -> Result<Connection, RequestError> {
        let stream = tokio::time::timeout(
            crate::connection::REQUEST_TIMEOUT,
            Stream::connect(&self.addresses, self.tls.as_ref()),
        );
        match stream.await {
            Ok(Ok(stream)) => Ok(Connection::new(stream)),
            Ok(Err(error)) => Err(RequestError::from_io_error(&error)),
            Err(_) => Err(RequestError::TimedOut),
        }
    }

    /// Sends one request before the run, and returns the response and its body.
    pub(crate) async fn send(&self, request: &[u8]) -> Result<(ResponseSummary, Vec<u8>), StartError> {
        let unreachable =
            |error: RequestError| StartError::Unreachable(format!("`{}`: {}", self.url, error.as_str()));
        let mut body = Vec::new();
        let mut connection = self.connect().await.map_err(unreachable)?;
        let response = connection.send_with_sink(Instant::now(), request, |part| {
            if body.len() < BODY_MAX {
                body.extend_from_slice(part);
            }
        });
        Ok((response.await.map_err(unreachable)?, body))
    }
}
