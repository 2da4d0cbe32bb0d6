//! The diagnosis of a delivery's signature.

use super::{
    header::{Header, quote},
    keyring::Keyring,
    reason::{Reason, TOLERANCE_SECS},
    received_request::{Names, ReceivedRequest},
    signature_search::{self, SignatureMatch},
};

/// The diagnosis of a delivery's signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Diagnosis {
    /// It is valid.
    Verified {
        /// The name of the secret that verifies it.
        secret: String,
    },
    /// It is invalid.
    NotVerified {
        /// The reasons, at least one, in the order in which to fix them.
        reasons: Vec<Reason>,
    },
    /// Its format and time are valid, but no secret is known to verify it with.
    NotJudged,
}

impl Diagnosis {
    /// Returns the reasons why it is invalid; empty otherwise.
    pub fn reasons(&self) -> &[Reason] {
        match self {
            Diagnosis::NotVerified { reasons } => reasons,
            Diagnosis::Verified { .. } | Diagnosis::NotJudged => &[],
        }
    }
}

/// Parses the header and searches for the secret and body that its signature matches. Receivers and checks both use it.
pub(super) fn examine_signature<'a>(
    received: &'a ReceivedRequest,
    keyring: &'a Keyring,
) -> Result<(Header<'a>, Option<SignatureMatch<'a>>), Reason> {
    let header = Header::read(signature_header(received, &keyring.names)?);
    let delivery = received.header_text(&keyring.names.header("Delivery")).map(str::to_owned);
    let fit = match keyring.is_empty() {
        true => None,
        false => signature_search::find(&header, delivery.as_deref(), &received.body.0, keyring),
    };
    Ok((header, fit))
}

/// Judges the signature of a request, at a receiver whose clock shows `now_unix` seconds.
pub fn diagnose(received: &ReceivedRequest, keyring: &Keyring, now_unix: i64) -> Diagnosis {
    let (header, fit) = match examine_signature(received, keyring) {
        Ok(examined) => examined,
        Err(reason) => return Diagnosis::NotVerified { reasons: vec![reason] },
    };
    let mut reasons = header.faults;
    let encoding_fault = header.claims.first().and_then(|claim| claim.fault.clone());
    let time_fault = header.unix_secs.and_then(|unix_secs| lateness(unix_secs, now_unix));
    match fit {
        _ if keyring.is_empty() => {
            reasons.extend(encoding_fault.into_iter().chain(time_fault));
            if reasons.is_empty() {
                return Diagnosis::NotJudged;
            }
        }
        Some(fit) => {
            reasons.extend(fit.faults.into_iter().chain(time_fault));
            if reasons.is_empty() {
                return Diagnosis::Verified { secret: fit.secret.to_owned() };
            }
        }
        // No signature could be parsed, which the reasons state already.
        None if header.claims.is_empty() => {}
        None => {
            reasons.extend(encoding_fault);
            // An unsigned time is not reported.
            let all = keyring.secrets.iter().chain(&keyring.other_mode);
            reasons.push(Reason::WrongSecret { tried: all.map(|(name, _)| name.clone()).collect() });
        }
    }
    Diagnosis::NotVerified { reasons }
}

/// Returns the single value of the signature header.
pub(super) fn signature_header<'a>(received: &'a ReceivedRequest, names: &Names) -> Result<&'a str, Reason> {
    let name = names.header("Signature");
    match received.header_values(&name).as_slice() {
        [] => {
            let similar = received
                .headers
                .iter()
                .map(|(own, _)| own)
                .find(|own| own.to_ascii_lowercase().ends_with("-signature"));
            Err(Reason::HeaderMissing { name, similar: similar.map(|own| quote(own)) })
        }
        [value] => match std::str::from_utf8(value) {
            Ok(text) if text.is_ascii() => Ok(text),
            _ => Err(Reason::HeaderNotText),
        },
        more => Err(Reason::HeaderRepeated { times: more.len() }),
    }
}

fn lateness(unix_secs: i64, now_unix: i64) -> Option<Reason> {
    let by_secs = unix_secs.abs_diff(now_unix);
    match by_secs > TOLERANCE_SECS {
        false => None,
        true if unix_secs < now_unix => Some(Reason::Stale { by_secs }),
        true => Some(Reason::Future { by_secs }),
    }
}
