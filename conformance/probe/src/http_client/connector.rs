//! Opens connections: TCP, and TLS for https.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use conformance_receiver::LimitedHead;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower_service::Service;

use super::trust::tls_error_message;

type ConnectError = Box<dyn Error + Send + Sync>;

/// Opens connections to one target.
#[derive(Clone)]
pub(super) struct Connector {
    tcp: HttpConnector,
    tls: Option<TlsConnector>,
}

impl Connector {
    pub(super) fn new(time_limit: Duration, tls: Option<TlsConnector>) -> Connector {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(time_limit));
        // Allows https: TLS is added here.
        tcp.enforce_http(false);
        Connector { tcp, tls }
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, ConnectError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.tcp.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        let tls = self.tls.clone();
        // An IPv6 address has brackets in a URI, but not in a server name.
        let host = address.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let tcp = self.tcp.call(address);
        Box::pin(async move {
            let tcp = tcp.await?.into_inner();
            let Some(tls) = tls else { return Ok(Stream::Plain(TokioIo::new(LimitedHead::new(tcp)))) };
            let name = ServerName::try_from(host.clone())
                .map_err(|_| format!("`{host}` is not a valid server name for TLS"))?;
            match tls.connect(name, tcp).await {
                Ok(stream) => Ok(Stream::Tls(Box::new(TokioIo::new(LimitedHead::new(stream))))),
                Err(err) => Err(tls_error(&host, err)),
            }
        })
    }
}

/// Returns the error for a TLS handshake that failed.
fn tls_error(host: &str, err: io::Error) -> ConnectError {
    match err.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>()) {
        Some(cause) => tls_error_message(host, cause).into(),
        None => format!("no TLS with `{host}`: {err}").into(),
    }
}

/// An open connection.
pub(super) enum Stream {
    Plain(TokioIo<LimitedHead<TcpStream>>),
    Tls(Box<TokioIo<LimitedHead<TlsStream<TcpStream>>>>),
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_read(cx, buffer),
        }
    }
}

impl Write for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
        }
    }
}
