//! How a signature was made, as far as the secrets at hand can tell. Says nothing about whether that is right.

use hmac::digest::Update;
use sha2::{Digest, Sha256};

use conformance_model::deliveries::{Difference, Signed};

use super::caught::Caught;
use super::diagnose::header_text;
use super::fit;
use super::header::Header;
use super::keyring::Keyring;
use super::reason::Reason;

/// What the keyring says of a request's signature. Its `secrets` are those of the endpoint that it came to,
/// `other_mode` holds those of the others.
pub fn construction(caught: &Caught, keyring: &Keyring) -> Signed {
    let Ok(text) = header_text(caught, &keyring.names) else { return Signed::Nothing };
    let header = Header::read(text);
    if header.claims.is_empty() {
        return match is_present(text) {
            true => Signed::Unknown,
            false => Signed::Nothing,
        };
    }
    let body = &caught.body.0;
    if header.claims.iter().any(|claim| open_hashes(header.time, body).contains(&claim.mac)) {
        return Signed::Openly;
    }
    if keyring.secrets.is_empty() && keyring.other_mode.is_empty() {
        return Signed::NoSecret;
    }
    let delivery = caught.text(&keyring.names.header("Delivery")).map(str::to_owned);
    match fit::find(&header, delivery.as_deref(), body, keyring) {
        Some(fit) => {
            let own = !fit.faults.iter().any(|fault| matches!(fault, Reason::OtherMode { .. }));
            let told = fit.faults.iter().filter(|fault| !matches!(fault, Reason::OtherMode { .. }));
            let difference = |it: &Reason| Difference { name: it.name().to_owned(), words: it.to_string() };
            Signed::By { own, differs: told.map(difference).collect() }
        }
        None if keyring.secrets.is_empty() => Signed::NoSecret,
        None => Signed::Unknown,
    }
}

/// Another signature than the suite can read is one all the same.
fn is_present(text: &str) -> bool {
    text.split(',').any(|part| part.trim().strip_prefix("v1=").is_some_and(|value| !value.is_empty()))
}

/// What anybody can work out without a secret.
fn open_hashes(time: Option<&str>, body: &[u8]) -> [[u8; 32]; 2] {
    let alone = Sha256::digest(body).into();
    let mut timed = Sha256::new();
    Update::update(&mut timed, time.unwrap_or_default().as_bytes());
    Update::update(&mut timed, b".");
    Update::update(&mut timed, body);
    [alone, timed.finalize().into()]
}
