//! [`diagnose`]: judges the signature of a delivery.

use super::{
    keyring::Keyring,
    reason::{Reason, TOLERANCE_SECS},
    received_request::{ReceivedRequest, WebhookNames},
    signature_header::{SignatureHeader, quote},
    signature_search::{self, SignatureMatch},
};

/// The diagnosis of a delivery's signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Diagnosis {
    /// The signature is valid.
    Verified {
        /// The name of the secret that verifies it.
        secret: String,
    },
    /// The signature is invalid.
    NotVerified {
        /// The reasons, at least one, in the order in which to fix them.
        reasons: Vec<Reason>,
    },
    /// The format and the time are valid, but no secret is known to verify the signature.
    NotJudged,
}

impl Diagnosis {
    /// Returns the reasons why the signature is invalid; empty if it is valid or was not judged.
    pub fn reasons(&self) -> &[Reason] {
        match self {
            Diagnosis::NotVerified { reasons } => reasons,
            Diagnosis::Verified { .. } | Diagnosis::NotJudged => &[],
        }
    }
}

/// Parses the signature header, and searches for the secret and the message that match a signature. The match is
/// `None` if there is none, or no secret is known.
pub(super) fn examine_signature<'a>(
    received: &'a ReceivedRequest,
    keyring: &'a Keyring,
) -> Result<(SignatureHeader<'a>, Option<SignatureMatch<'a>>), Reason> {
    let header = SignatureHeader::parse(signature_header(received, &keyring.names)?);
    let delivery_id = received.header_text(&keyring.names.header("Delivery")).map(str::to_owned);
    let signature_match = match keyring.is_empty() {
        true => None,
        false => signature_search::find(&header, delivery_id.as_deref(), &received.body.0, keyring),
    };
    Ok((header, signature_match))
}

/// Judges the signature of a request, at a receiver whose clock shows `now_unix` seconds.
pub fn diagnose(received: &ReceivedRequest, keyring: &Keyring, now_unix: i64) -> Diagnosis {
    let (header, signature_match) = match examine_signature(received, keyring) {
        Ok(examined) => examined,
        Err(reason) => return Diagnosis::NotVerified { reasons: vec![reason] },
    };
    let mut reasons = header.faults;
    let encoding_fault = header.signatures.first().and_then(|signature| signature.fault.clone());
    let time_fault = header.unix_secs.and_then(|unix_secs| time_fault(unix_secs, now_unix));
    match signature_match {
        _ if keyring.is_empty() => {
            reasons.extend(encoding_fault.into_iter().chain(time_fault));
            if reasons.is_empty() {
                return Diagnosis::NotJudged;
            }
        }
        Some(found) => {
            reasons.extend(found.faults.into_iter().chain(time_fault));
            if reasons.is_empty() {
                return Diagnosis::Verified { secret: found.secret.to_owned() };
            }
        }
        // No signature could be decoded, which the reasons state already.
        None if header.signatures.is_empty() => {}
        None => {
            reasons.extend(encoding_fault);
            // The time is not judged, because no known secret signed it.
            let tried = keyring.secrets.iter().chain(&keyring.other_endpoints);
            reasons.push(Reason::WrongSecret { tried: tried.map(|(name, _)| name.clone()).collect() });
        }
    }
    Diagnosis::NotVerified { reasons }
}

/// Returns the value of the signature header. It must occur once, and be ASCII.
pub(super) fn signature_header<'a>(
    received: &'a ReceivedRequest,
    names: &WebhookNames,
) -> Result<&'a str, Reason> {
    let name = names.header("Signature");
    match received.header_values(&name).as_slice() {
        [] => {
            let similar = received
                .headers
                .iter()
                .map(|(header, _)| header)
                .find(|header| header.to_ascii_lowercase().ends_with("-signature"));
            Err(Reason::HeaderMissing { name, similar: similar.map(|header| quote(header)) })
        }
        [value] => match std::str::from_utf8(value) {
            Ok(text) if text.is_ascii() => Ok(text),
            _ => Err(Reason::HeaderNotText),
        },
        values => Err(Reason::HeaderRepeated { times: values.len() }),
    }
}

/// Returns the reason if the time of a signature differs by more than [`TOLERANCE_SECS`] from the receiver's clock.
fn time_fault(unix_secs: i64, now_unix: i64) -> Option<Reason> {
    let by_secs = unix_secs.abs_diff(now_unix);
    match by_secs > TOLERANCE_SECS {
        false => None,
        true if unix_secs < now_unix => Some(Reason::Stale { by_secs }),
        true => Some(Reason::Future { by_secs }),
    }
}
