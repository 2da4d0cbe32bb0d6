//! Parses signature headers, such as `t=1767603600,v1=5257a8…`: the faults of the format, and the signatures that are
//! readable despite them.

use super::{
    base64,
    reason::{Encoding, Reason, TimeUnit},
};

/// The maximum number of quoted characters in a message.
const QUOTE_MAX: usize = 80;
/// The size of a SHA-256 digest in bytes.
const DIGEST_BYTES: usize = 32;
/// The size of a SHA-512 digest in bytes.
const SHA512_BYTES: usize = 64;

/// A parsed signature header, valid or not.
#[derive(Debug, Default)]
pub(super) struct SignatureHeader<'a> {
    /// The faults of the header as a whole.
    pub(super) faults: Vec<Reason>,
    /// The value of `t`, verbatim.
    pub(super) time: Option<&'a str>,
    /// The value of `t`, converted to seconds.
    pub(super) unix_secs: Option<i64>,
    /// The signatures that could be decoded.
    pub(super) signatures: Vec<DecodedSignature>,
    /// The values of `v1` with the length of SHA-512, which is a fault of the header unless another `v1` is readable.
    pub(super) sha512_signatures: Vec<DecodedSignature>,
    /// `true` if there is a `v1` that is not empty, readable or not.
    pub(super) has_signature: bool,
    /// `true` if there is white space around a part.
    pub(super) has_white_space: bool,
}

/// A decoded signature, and the fault of its encoding.
#[derive(Debug)]
pub(super) struct DecodedSignature {
    pub(super) mac: Vec<u8>,
    pub(super) fault: Option<Reason>,
}

impl<'a> SignatureHeader<'a> {
    pub(super) fn parse(text: &'a str) -> SignatureHeader<'a> {
        let mut header = SignatureHeader::default();
        let (mut times, mut signature_values, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let mut invalid_part = None;
        for part in text.split(',') {
            let trimmed = part.trim();
            header.has_white_space |= trimmed.len() != part.len();
            match trimmed.split_once('=') {
                Some(("t", value)) => times.push(value),
                Some(("v1", value)) => signature_values.push(value),
                // Signatures of other versions than `v1` are allowed.
                Some((_, value)) => others.push(value),
                None => {
                    invalid_part.get_or_insert(trimmed);
                    others.push(trimmed);
                }
            }
        }
        if let Some(part) = invalid_part {
            header.faults.push(Reason::PartForm { got: quote(part) });
        }
        header.parse_time(&times);
        header.has_signature = signature_values.iter().any(|value| !value.is_empty());
        if signature_values.is_empty() {
            header.faults.push(Reason::SignatureMissing);
            // Another part may be the signature under another name, which the search can diagnose.
            let decoded = others.into_iter().filter_map(|value| decode_signature(value).ok());
            header.signatures.extend(decoded.filter(|signature| signature.mac.len() == DIGEST_BYTES));
            return header;
        }
        let mut faults = Vec::new();
        for value in signature_values {
            match decode_signature(value) {
                Ok(signature) if signature.mac.len() == SHA512_BYTES => {
                    faults.push(Reason::DigestLength { bytes: SHA512_BYTES });
                    header.sha512_signatures.push(signature);
                }
                Ok(signature) => header.signatures.push(signature),
                Err(fault) => faults.push(fault),
            }
        }
        // One readable `v1` suffices.
        if header.signatures.is_empty() {
            header.faults.extend(faults.into_iter().take(1));
        }
        header
    }

    /// Parses the first value of `t`. There must be exactly one.
    fn parse_time(&mut self, times: &[&'a str]) {
        let &[time, ref others @ ..] = times else {
            self.faults.push(Reason::TimeMissing);
            return;
        };
        if !others.is_empty() {
            self.faults.push(Reason::TimeRepeated);
        }
        self.time = Some(time);
        let number = match !time.is_empty() && time.bytes().all(|b| b.is_ascii_digit()) {
            true => time.parse::<i64>().ok(),
            false => None,
        };
        let Some(number) = number else {
            self.faults.push(Reason::TimeForm { got: quote(time) });
            return;
        };
        let (per_second, unit) = match number {
            // Seconds reach this number in the year 5138.
            ..100_000_000_000 => (1, None),
            100_000_000_000..100_000_000_000_000 => (1_000, Some(TimeUnit::Milliseconds)),
            100_000_000_000_000..100_000_000_000_000_000 => (1_000_000, Some(TimeUnit::Microseconds)),
            _ => (1_000_000_000, Some(TimeUnit::Nanoseconds)),
        };
        self.unix_secs = Some(number / per_second);
        self.faults.extend(unit.map(|unit| Reason::TimeNotSeconds { unit }));
    }
}

/// Decodes a signature of the length of SHA-256 or SHA-512 in hexadecimal or Base64.
fn decode_signature(text: &str) -> Result<DecodedSignature, Reason> {
    let (mac, encoding) = match hex::decode(text).ok().filter(|bytes| !bytes.is_empty()) {
        Some(mac) => {
            let is_upper_case = text.bytes().any(|b| b.is_ascii_uppercase());
            (mac, is_upper_case.then_some(Encoding::UpperCaseHex))
        }
        None => {
            // The sizes of MD5, SHA-1, SHA-256, SHA-384 and SHA-512 digests. Other Base64 is probably not a digest.
            let sizes = [16, 20, DIGEST_BYTES, 48, SHA512_BYTES];
            let mac = base64::decode(text).filter(|bytes| sizes.contains(&bytes.len()));
            (mac.ok_or_else(|| Reason::SignatureForm { got: quote(text) })?, Some(Encoding::Base64))
        }
    };
    if ![DIGEST_BYTES, SHA512_BYTES].contains(&mac.len()) {
        return Err(Reason::DigestLength { bytes: mac.len() });
    }
    Ok(DecodedSignature { mac, fault: encoding.map(|encoding| Reason::SignatureEncoding { encoding }) })
}

/// Returns the sender's text, truncated and with control characters escaped.
pub(super) fn quote(text: &str) -> String {
    let mut quoted: String = text.chars().take(QUOTE_MAX).flat_map(char::escape_debug).collect();
    if text.chars().nth(QUOTE_MAX).is_some() {
        quoted.push('…');
    }
    quoted
}
