//! https on the address that serves http: the first byte of a connection says which one it is.

use std::{fmt, io, sync::Arc, time::Duration};

use rustls::ServerConfig;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// The content type of a TLS handshake; no HTTP method begins with this byte.
const HANDSHAKE: u8 = 0x16;

/// The server's certificate and key, both in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct TlsIdentity {
    /// The server's certificate, and those between it and a root, in that order.
    pub certificates: Vec<u8>,
    /// Its private key.
    pub key: Vec<u8>,
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsIdentity(…)")
    }
}

impl TlsIdentity {
    /// Reads both. Fails if one is missing or they do not belong together.
    pub(crate) fn acceptor(&self) -> io::Result<TlsAcceptor> {
        let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        let chain = CertificateDer::pem_slice_iter(&self.certificates)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| invalid(format!("the certificate of the server: {error}")))?;
        if chain.is_empty() {
            return Err(invalid(
                "the certificate of the server holds no `BEGIN CERTIFICATE` block".to_owned(),
            ));
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|error| invalid(format!("the private key of the server: {error}; it takes PEM")))?;
        // Named, so that no process-wide default can change what is spoken.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| invalid(format!("the certificate and the key of the server: {error}")))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// A connection after its first byte.
pub(crate) enum TlsOrPlain {
    Plain(TcpStream),
    Secure(Box<TlsStream<TcpStream>>),
}

/// Looks at the first byte and shakes hands; `None` if the client spoke neither in time.
pub(crate) async fn open(
    acceptor: &TlsAcceptor,
    stream: TcpStream,
    patience: Duration,
) -> Option<TlsOrPlain> {
    let opened = async {
        let mut first = [0];
        match stream.peek(&mut first).await {
            Ok(1) if first[0] == HANDSHAKE => {
                acceptor.accept(stream).await.ok().map(|stream| TlsOrPlain::Secure(Box::new(stream)))
            }
            _ => Some(TlsOrPlain::Plain(stream)),
        }
    };
    timeout(patience, opened).await.ok().flatten()
}
