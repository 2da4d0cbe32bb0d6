//! [`CertificateAuthority`]: a certificate authority for tests, and self-signed certificates.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{self, ServerConfig, pki_types::PrivateKeyDer},
};

pub(crate) struct CertificateAuthority(CertifiedIssuer<'static, KeyPair>);

impl CertificateAuthority {
    pub(crate) fn new() -> CertificateAuthority {
        let mut params = CertificateParams::new(Vec::new()).expect("a certificate without names is valid");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        CertificateAuthority(CertifiedIssuer::self_signed(params, key).expect("the parameters are valid"))
    }

    pub(crate) fn pem(&self) -> Vec<u8> {
        self.0.pem().into_bytes()
    }

    /// Returns a TLS acceptor with a certificate for `name`.
    pub(crate) fn acceptor(&self, name: &str) -> TlsAcceptor {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new([name.to_owned()]).expect("the name is valid");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        acceptor(certificate, &key)
    }
}

/// Returns a TLS acceptor with a self-signed certificate.
pub(crate) fn self_signed(name: &str) -> TlsAcceptor {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new([name.to_owned()]).expect("the name is valid");
    acceptor(params.self_signed(&key).expect("a certificate"), &key)
}

fn acceptor(certificate: rcgen::Certificate, key: &KeyPair) -> TlsAcceptor {
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a private key");
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring supports the default protocol versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("certificate and key belong together");
    TlsAcceptor::from(Arc::new(config))
}
