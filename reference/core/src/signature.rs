//! The signature of deliveries and its verification (`open.delivery.signature`).
//!
//! `v1` is the lower-case hexadecimal HMAC-SHA256 of `<t>.<raw body>`, keyed with the whole secret, `whsec_` included. Each
//! attempt is signed with its own time, by the host that sends it.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// The largest difference between a delivery's time and the receiver's clock, in seconds.
pub const TOLERANCE_SECS: u64 = 300;

/// A signing secret with its prepared HMAC state.
#[derive(Clone)]
pub struct Signer(Hmac<Sha256>);

impl Signer {
    /// Prepares a secret.
    pub fn new(secret: &str) -> Signer {
        Signer(Hmac::new_from_slice(secret.as_bytes()).expect("HMAC accepts a key of any length"))
    }

    /// Returns the value of the signature header: `t=<unix seconds>,v1=<hex>`.
    pub fn sign(&self, unix_secs: u64, body: &[u8]) -> String {
        let time = unix_secs.to_string();
        let mut digits = [0; 64];
        hex::encode_to_slice(self.mac(time.as_bytes(), body), &mut digits).expect("two digits for each byte");
        ["t=", &time, ",v1=", str::from_utf8(&digits).expect("digits are text")].concat()
    }

    fn mac(&self, time: &[u8], body: &[u8]) -> [u8; 32] {
        let mut mac = self.0.clone();
        mac.update(time);
        mac.update(b".");
        mac.update(body);
        mac.finalize().into_bytes().into()
    }
}

/// The reason why a signature is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignatureError {
    /// The header is not `t=<unix seconds>,v1=<64 hexadecimal digits>`.
    Malformed,
    /// The time is too far from the receiver's clock: a captured delivery may be replayed.
    Stale {
        /// The difference in seconds.
        off_by_secs: u64,
    },
    /// No `v1` of the header matches this body and secret.
    Mismatch,
}

impl fmt::Display for SignatureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SignatureError::Malformed => {
                f.write_str("the signature is not `t=<unix seconds>,v1=<64 hexadecimal digits>`")
            }
            SignatureError::Stale { off_by_secs } => {
                write!(
                    f,
                    "the signature's time is off by {off_by_secs} s; at most {TOLERANCE_SECS} s are accepted"
                )
            }
            SignatureError::Mismatch => f.write_str(
                "the signature does not match: check the secret, and that the raw body was signed",
            ),
        }
    }
}

impl std::error::Error for SignatureError {}

/// Verifies that `header` signs this raw `body` with `secret`, at about `now_unix_secs`.
///
/// The header may contain several `v1` parts; one match is enough. Compares in constant time.
///
/// # Errors
///
/// [`SignatureError::Malformed`] if the header is malformed, [`SignatureError::Mismatch`] if no signature matches, and
/// [`SignatureError::Stale`] if one matches but its time is more than [`TOLERANCE_SECS`] away.
pub fn verify(secret: &str, header: &str, body: &[u8], now_unix_secs: u64) -> Result<(), SignatureError> {
    let mut time = None;
    let mut signatures = Vec::new();
    for part in header.split(',') {
        match part.trim().split_once('=') {
            Some(("t", value)) if time.is_none() => time = Some(value),
            Some(("v1", value)) => signatures.push(value),
            // Other schemes may be added beside `v1`.
            Some((name, _)) if name != "t" => {}
            _ => return Err(SignatureError::Malformed),
        }
    }
    let time = time.ok_or(SignatureError::Malformed)?;
    let seconds: u64 = match time.bytes().all(|b| b.is_ascii_digit()) {
        true => time.parse().map_err(|_| SignatureError::Malformed)?,
        false => return Err(SignatureError::Malformed),
    };
    let signatures: Vec<[u8; 32]> = signatures
        .into_iter()
        .map(|text| {
            let mut bytes = [0; 32];
            hex::decode_to_slice(text, &mut bytes).map(|()| bytes)
        })
        .collect::<Result<_, _>>()
        .map_err(|_| SignatureError::Malformed)?;
    if signatures.is_empty() {
        return Err(SignatureError::Malformed);
    }
    let expected = Signer::new(secret).mac(time.as_bytes(), body);
    if !signatures.iter().any(|signature| bool::from(signature.ct_eq(&expected))) {
        return Err(SignatureError::Mismatch);
    }
    match seconds.abs_diff(now_unix_secs) {
        off_by_secs if off_by_secs > TOLERANCE_SECS => Err(SignatureError::Stale { off_by_secs }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_0123456789abcdefghijklmnopqrstuv";

    // Computed with OpenSSL: printf '%s' '1767603600.{"id":1}' | openssl dgst -sha256 -hmac "$SECRET"
    const VECTOR: &str = "t=1767603600,v1=7e63b104ea3f92627bcfa1f6a7cdb48dc78758c8da863304c0bfaa6cdebb89ca";

    #[test]
    fn signatures_match_those_of_openssl() {
        assert_eq!(Signer::new(SECRET).sign(1_767_603_600, b"{\"id\":1}"), VECTOR);
    }

    #[track_caller]
    fn check(header: &str, body: &[u8], now: u64, expected: Result<(), SignatureError>) {
        assert_eq!(verify(SECRET, header, body, now), expected, "{header}");
    }

    #[test]
    fn a_signature_verifies_only_with_its_body_time_and_secret() {
        let body = b"{\"id\":1}";
        let now = 1_767_603_600;
        check(VECTOR, body, now, Ok(()));
        check(VECTOR, body, now + 300, Ok(()));
        check(VECTOR, body, now - 300, Ok(()));
        check(VECTOR, body, now + 301, Err(SignatureError::Stale { off_by_secs: 301 }));
        check(VECTOR, b"{\"id\": 1}", now, Err(SignatureError::Mismatch));
        check(&VECTOR.replace("t=1767603600", "t=1767603601"), body, now, Err(SignatureError::Mismatch));
        check(&format!("{VECTOR},v1={}", "0".repeat(64)), body, now, Ok(()));
        check(&format!("{VECTOR},v0=00"), body, now, Ok(()));
        check(&format!("t=1,{VECTOR}"), body, now, Err(SignatureError::Malformed));
        assert_eq!(verify("whsec_other", VECTOR, body, now), Err(SignatureError::Mismatch));
    }

    #[test]
    fn malformed_headers_are_refused() {
        for header in ["", "t=,v1=", "v1=00", "t=1", "t=1,v1=zz", "t=-1,v1=00", "t=1,t=2,v1=00", "nonsense"] {
            check(header, b"", 1, Err(SignatureError::Malformed));
        }
    }
}
