//! The construction of a signature, determined with the known secrets, without a verdict.

use hmac::digest::Update;
use sha2::{Digest, Sha256};

use conformance_model::deliveries::{Difference, SignatureStatus};

use super::diagnose::examine_signature;
use super::keyring::Keyring;
use super::reason::Reason;
use super::received_request::ReceivedRequest;

/// Returns the secret that signed a request, and the differences to the specified construction. In the keyring,
/// `secrets` are those of the endpoint that received the request, `other_mode` all others.
pub fn signature_status(received: &ReceivedRequest, keyring: &Keyring) -> SignatureStatus {
    let Ok((header, fit)) = examine_signature(received, keyring) else { return SignatureStatus::Nothing };
    if header.claims.is_empty() {
        return if header.has_signature { SignatureStatus::Unknown } else { SignatureStatus::Nothing };
    }
    if header.claims.iter().any(|claim| secretless_hashes(header.time, &received.body.0).contains(&claim.mac))
    {
        return SignatureStatus::WithoutSecret;
    }
    match fit {
        Some(fit) => {
            let (others, own): (Vec<_>, Vec<_>) =
                fit.faults.into_iter().partition(|fault| matches!(fault, Reason::OtherMode { .. }));
            let difference =
                |reason: &Reason| Difference { name: reason.name().to_owned(), words: reason.to_string() };
            SignatureStatus::By {
                own: others.is_empty(),
                differs: header.faults.iter().chain(&own).map(difference).collect(),
            }
        }
        None if keyring.secrets.is_empty() => SignatureStatus::NoSecret,
        None => SignatureStatus::Unknown,
    }
}

/// Returns the hashes that can be computed without a secret.
fn secretless_hashes(time: Option<&str>, body: &[u8]) -> [[u8; 32]; 2] {
    let alone = Sha256::digest(body).into();
    let mut timed = Sha256::new();
    Update::update(&mut timed, time.unwrap_or_default().as_bytes());
    Update::update(&mut timed, b".");
    Update::update(&mut timed, body);
    [alone, timed.finalize().into()]
}
