//! https and http on the same address: the first byte of a connection decides between them.

use std::{fmt, io, sync::Arc, time::Duration};

use rustls::ServerConfig;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// The first byte of a TLS handshake; no HTTP method starts with it.
const HANDSHAKE_BYTE: u8 = 0x16;

/// The server's certificate and key, both in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct TlsIdentity {
    /// The server's certificate, followed by the intermediate certificates in order.
    pub certificates: Vec<u8>,
    /// The private key of the certificate.
    pub key: Vec<u8>,
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsIdentity(…)")
    }
}

impl TlsIdentity {
    /// Creates the acceptor from the certificate and the key. Fails if one is invalid or they do not match.
    pub(crate) fn acceptor(&self) -> io::Result<TlsAcceptor> {
        let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidInput, message);
        let chain = CertificateDer::pem_slice_iter(&self.certificates)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| invalid(format!("the server's certificate is invalid: {error}")))?;
        if chain.is_empty() {
            return Err(invalid("the server's certificate contains no `BEGIN CERTIFICATE` block".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| {
            invalid(format!("the server's private key is invalid: {error}; it must be PEM"))
        })?;
        // Explicit, so that no process-wide default changes the protocol.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| {
                invalid(format!("the certificate and the key of the server do not match: {error}"))
            })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// A connection with or without TLS.
pub(crate) enum TlsOrPlain {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Peeks at the first byte and performs the TLS handshake if the byte starts one. Returns `None` if the client sends no
/// byte in time, or if the handshake fails or takes too long.
pub(crate) async fn accept_tls_or_plain(
    acceptor: &TlsAcceptor,
    stream: TcpStream,
    timeout_after: Duration,
) -> Option<TlsOrPlain> {
    let opened = async {
        let mut first = [0];
        match stream.peek(&mut first).await {
            Ok(1) if first[0] == HANDSHAKE_BYTE => {
                acceptor.accept(stream).await.ok().map(|stream| TlsOrPlain::Tls(Box::new(stream)))
            }
            _ => Some(TlsOrPlain::Plain(stream)),
        }
    };
    timeout(timeout_after, opened).await.ok().flatten()
}
