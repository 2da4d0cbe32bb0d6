//! The construction of a signature, as far as it can be derived with the known secrets, without a verdict.

use hmac::digest::Update;
use sha2::{Digest, Sha256};

use conformance_model::deliveries::{Difference, Signed};

use super::caught::Caught;
use super::diagnose::examined;
use super::keyring::Keyring;
use super::reason::Reason;

/// Returns the construction of a request's signature. The `secrets` of the keyring are those of the endpoint that
/// received it, `other_mode` holds the others.
pub fn construction(caught: &Caught, keyring: &Keyring) -> Signed {
    let Ok((header, fit)) = examined(caught, keyring) else { return Signed::Nothing };
    if header.claims.is_empty() {
        return if header.has_signature { Signed::Unknown } else { Signed::Nothing };
    }
    if header.claims.iter().any(|claim| open_hashes(header.time, &caught.body.0).contains(&claim.mac)) {
        return Signed::Openly;
    }
    match fit {
        Some(fit) => {
            let (others, own): (Vec<_>, Vec<_>) =
                fit.faults.into_iter().partition(|fault| matches!(fault, Reason::OtherMode { .. }));
            let difference = |it: &Reason| Difference { name: it.name().to_owned(), words: it.to_string() };
            Signed::By {
                own: others.is_empty(),
                differs: header.faults.iter().chain(&own).map(difference).collect(),
            }
        }
        None if keyring.secrets.is_empty() => Signed::NoSecret,
        None => Signed::Unknown,
    }
}

/// Returns the hashes that can be computed without a secret.
fn open_hashes(time: Option<&str>, body: &[u8]) -> [[u8; 32]; 2] {
    let alone = Sha256::digest(body).into();
    let mut timed = Sha256::new();
    Update::update(&mut timed, time.unwrap_or_default().as_bytes());
    Update::update(&mut timed, b".");
    Update::update(&mut timed, body);
    [alone, timed.finalize().into()]
}
