//! The trusted certificate authorities.

use std::{io, sync::Arc};

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, pem::PemObject};

/// Returns the TLS client configuration with Mozilla's root certificates, the operating system's, and `extra` ones in
/// PEM.
///
/// Fails if `extra` contains no certificate, because a root that is silently missing would be noticed much later.
pub(super) fn client_config(extra: Option<&[u8]>) -> io::Result<ClientConfig> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    // Roots that the operating system cannot list or rustls cannot parse are skipped.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(pem) = extra {
        let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        let mut count = 0;
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate =
                certificate.map_err(|error| invalid(format!("the extra root certificates: {error}")))?;
            roots
                .add(certificate)
                .map_err(|error| invalid(format!("the extra root certificates: {error}")))?;
            count += 1;
        }
        if count == 0 {
            return Err(invalid(
                "the extra root certificates contain no `BEGIN CERTIFICATE` block".to_owned(),
            ));
        }
    }
    // Explicit, so that no process-wide default changes the protocol.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_refused(pem: &str, part: &str) {
        let error = client_config(Some(pem.as_bytes())).expect_err("no certificate").to_string();
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn invalid_roots_are_refused() {
        check_refused("", "contain no `BEGIN CERTIFICATE` block");
        check_refused("-----BEGIN CERTIFICATE-----\n%%%\n-----END CERTIFICATE-----\n", "the extra root");
        check_refused("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "the extra root");
    }

    #[test]
    fn without_extra_roots_the_default_ones_are_trusted() {
        assert!(client_config(None).is_ok());
    }
}
