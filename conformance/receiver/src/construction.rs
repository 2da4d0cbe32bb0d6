//! [`signature_status`]: how a request was signed, as far as the known secrets show it. It is no verdict.

use hmac::digest::Update;
use sha2::{Digest, Sha256};

use conformance_model::deliveries::{Difference, SignatureStatus};

use super::diagnose::examine_signature;
use super::keyring::Keyring;
use super::reason::Reason;
use super::received_request::ReceivedRequest;

/// Determines whether a known secret signed a request, and the differences from the specified construction. In the
/// keyring, `secrets` must be those of the endpoint that received the request, and `other_endpoints` all others.
pub fn signature_status(received: &ReceivedRequest, keyring: &Keyring) -> SignatureStatus {
    let Ok((header, signature_match)) = examine_signature(received, keyring) else {
        return SignatureStatus::Missing;
    };
    if header.signatures.is_empty() && signature_match.is_none() {
        return if header.has_signature { SignatureStatus::Unknown } else { SignatureStatus::Missing };
    }
    if header.signatures.iter().any(|signature| {
        secretless_hashes(header.time, &received.body.0).iter().any(|hash| signature.mac == hash)
    }) {
        return SignatureStatus::WithoutSecret;
    }
    match signature_match {
        Some(found) => {
            let (endpoint_faults, construction_faults): (Vec<_>, Vec<_>) =
                found.faults.into_iter().partition(|fault| matches!(fault, Reason::OtherMode { .. }));
            let difference =
                |reason: &Reason| Difference { name: reason.name().to_owned(), clause: reason.to_string() };
            SignatureStatus::Matches {
                own: endpoint_faults.is_empty(),
                differences: header.faults.iter().chain(&construction_faults).map(difference).collect(),
            }
        }
        None if keyring.secrets.is_empty() => SignatureStatus::NoSecret,
        None => SignatureStatus::Unknown,
    }
}

/// Returns the hashes that can be computed without a secret.
fn secretless_hashes(time: Option<&str>, body: &[u8]) -> [[u8; 32]; 2] {
    let body_hash = Sha256::digest(body).into();
    let mut time_and_body_hash = Sha256::new();
    Update::update(&mut time_and_body_hash, time.unwrap_or_default().as_bytes());
    Update::update(&mut time_and_body_hash, b".");
    Update::update(&mut time_and_body_hash, body);
    [body_hash, time_and_body_hash.finalize().into()]
}
