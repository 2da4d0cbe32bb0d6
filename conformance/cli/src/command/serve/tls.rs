//! `serve --tls`: the server's certificate, given or self-signed.

use std::{io::Write as _, net::SocketAddr, path::PathBuf};

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair};
use reference_server::TlsIdentity;

use crate::{
    Failure,
    args::Serve,
    files::{self, SETTINGS_MAX},
};

/// The certificate of the server, given or self-signed.
pub(super) struct Certificate {
    pub(super) identity: TlsIdentity,
    /// The file with the certificate that clients must trust.
    pub(super) path: PathBuf,
    /// Deletes the file of a self-signed certificate when the server ends.
    _temporary_file: Option<tempfile::TempPath>,
}

impl Certificate {
    /// Returns the certificate that the options select; `None` without `--tls` and `--tls-cert`.
    pub(super) fn from_args(args: &Serve, address: SocketAddr) -> Result<Option<Certificate>, Failure> {
        match (&args.tls_cert, &args.tls_key) {
            (Some(certificate), Some(key)) => {
                let read = |path: &PathBuf| {
                    files::read(path, SETTINGS_MAX).map_err(|error| files::cannot_read(path, &error))
                };
                let identity = TlsIdentity { certificates: read(certificate)?, key: read(key)? };
                Ok(Some(Certificate { identity, path: certificate.clone(), _temporary_file: None }))
            }
            _ if args.tls => create_self_signed(address).map(Some),
            _ => Ok(None),
        }
    }
}

/// Creates a self-signed certificate for this machine. Clients must be configured to trust it.
fn create_self_signed(address: SocketAddr) -> Result<Certificate, Failure> {
    let failed = |action: &str, error: &dyn std::fmt::Display| {
        Failure::machine(format!("can't {action} a certificate for `--tls`: {error}"))
    };
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let ip = address.ip().to_string();
    if !address.ip().is_unspecified() && !names.contains(&ip) {
        names.push(ip);
    }
    let mut params = CertificateParams::new(names).map_err(|error| failed("create", &error))?;
    params.distinguished_name.push(DnType::CommonName, "chargeproof serve");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate().map_err(|error| failed("create", &error))?;
    let pem = params.self_signed(&key).map_err(|error| failed("create", &error))?.pem();
    // A random name, so that no existing file is overwritten.
    let mut file = tempfile::Builder::new()
        .prefix("chargeproof-")
        .suffix(".pem")
        .tempfile()
        .map_err(|error| failed("store", &error))?;
    file.write_all(pem.as_bytes()).map_err(|error| failed("store", &error))?;
    let temporary_file = file.into_temp_path();
    let identity = TlsIdentity { certificates: pem.into_bytes(), key: key.serialize_pem().into_bytes() };
    Ok(Certificate { identity, path: temporary_file.to_path_buf(), _temporary_file: Some(temporary_file) })
}
