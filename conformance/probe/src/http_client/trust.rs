//! The CA certificates that are trusted for https targets: public ones, those of the machine, and those of the
//! operator. Also the messages for failed TLS handshakes.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{CertificateError, ClientConfig, Error, RootCertStore};
use tokio_rustls::TlsConnector;

/// Parses the CA certificates of a PEM text, at least one. The error is a message for the operator.
pub(crate) fn parse_certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let parsed: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let parsed = parsed.map_err(|err| format!("the CA file is not PEM: {err}"))?;
    let mut roots = RootCertStore::empty();
    for certificate in &parsed {
        roots
            .add(certificate.clone())
            .map_err(|err| format!("the CA file contains an invalid certificate: {err}"))?;
    }
    if parsed.is_empty() {
        return Err("the CA file contains no certificate; allowed: PEM, `-----BEGIN CERTIFICATE-----`".into());
    }
    Ok(parsed)
}

/// Returns a TLS connector with all trusted certificates. `Plan::validate` has checked the CA file.
pub(super) fn tls_connector(ca_pem: Option<&str>) -> TlsConnector {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    // If the machine has no certificates, only the public ones are used.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots.add_parsable_certificates(ca_pem.and_then(|pem| parse_certificates(pem).ok()).unwrap_or_default());
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring supports TLS 1.2 and 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    TlsConnector::from(Arc::new(config))
}

/// Returns the message for a failed TLS handshake, with the remedy if one is known.
pub(super) fn tls_error_message(host: &str, err: &Error) -> String {
    match err {
        // `BadSignature`: the issuer has the name of a trusted CA and another key.
        Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            format!(
                "the certificate of `{host}` is not signed by a trusted CA; if its CA is your own, name the \
                 CA's file with --cacert"
            )
        }
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => format!("the certificate is not valid for the name `{host}`: {err}"),
        Error::InvalidCertificate(_) => format!("the certificate of `{host}` is refused: {err}"),
        Error::InvalidMessage(_) => {
            format!("`{host}` does not use TLS on this port ({err}); use http:// if the address has no TLS")
        }
        _ => format!("no TLS with `{host}`: {err}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pem: &str, expected: &str) {
        let message = parse_certificates(pem).expect_err("the CA file is refused");
        assert!(message.contains(expected), "{message}");
    }

    #[test]
    fn a_ca_file_without_valid_certificates_is_refused() {
        check("", "contains no certificate");
        check("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "contains no certificate");
        check("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "an invalid certificate");
        check("-----BEGIN CERTIFICATE-----\nAAAA\n", "is not PEM");
    }
}
