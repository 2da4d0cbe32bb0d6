//! [`Stream`]: a TCP connection with or without TLS.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// A TLS connector, and the expected name of the server.
#[derive(Clone)]
pub(crate) struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Tls {
    /// Creates a connector for HTTP/1.1 that trusts the public roots, those of the machine, and those in `ca_pem`.
    pub(crate) fn new(host: &str, ca_pem: Option<&str>) -> Result<Tls, String> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        // A machine may have no certificates, so errors are ignored.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(pem) = ca_pem {
            let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
                .collect::<Result<_, _>>()
                .map_err(|error| format!("the CA file is not PEM: {error}"))?;
            if certificates.is_empty() || roots.add_parsable_certificates(certificates).1 > 0 {
                return Err("the CA file contains an invalid certificate or none; it must be PEM".into());
            }
        }
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring supports TLS 1.2 and 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // In a URL, an IPv6 address is in brackets.
        let host = host.trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host.clone())
            .map_err(|_| format!("`{host}` is not a valid server name for TLS"))?;
        Ok(Tls { connector: TlsConnector::from(Arc::new(config)), name })
    }
}

/// A TCP connection with or without TLS.
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Connects to the first reachable address, with a TLS handshake if `tls` is given.
    pub(crate) async fn connect(addresses: &[SocketAddr], tls: Option<&Tls>) -> io::Result<Stream> {
        let tcp = TcpStream::connect(addresses).await?;
        // A request is one write, which Nagle's algorithm would only delay.
        tcp.set_nodelay(true)?;
        Ok(match tls {
            None => Stream::Plain(tcp),
            Some(tls) => Stream::Tls(Box::new(tls.connector.connect(tls.name.clone(), tcp).await?)),
        })
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_read(cx, buffer),
            Stream::Tls(tls) => Pin::new(tls).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_write(cx, bytes),
            Stream::Tls(tls) => Pin::new(tls).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
            Stream::Tls(tls) => Pin::new(tls).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Stream::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
        }
    }
}
