//! Searches for the message and the key of a signature: first the specified ones, then those with one fault, then those
//! with several.
//!
//! [`find`] signs every candidate message with every candidate key, and compares the results with the signatures of the
//! header. The match with the fewest faults is the diagnosis. For example, `<t>.<body>` signed with the secret without
//! its prefix has one fault, and a re-serialized body signed with that key has two.
//!
//! Must not contain: the rule for a verdict, or text for users.

use std::borrow::Cow;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256, Sha512};
use subtle::ConstantTimeEq;

use super::{
    base64,
    keyring::Keyring,
    reason::{Encoding, MessageLayout, PaddedSide, Reason},
    rewriting::{ParsedBody, Rewriting},
    signature_header::{DecodedSignature, SignatureHeader},
};

/// The maximum size of a body that is re-serialized and searched for more than one fault. Every candidate hashes the
/// whole body, and indenting can multiply its size.
const DEEP_SEARCH_BYTES_MAX: usize = 128 * 1024;
/// The prefix of every secret.
const PREFIX: &str = "whsec_";

/// A matching message and key, with their faults.
pub(super) struct SignatureMatch<'a> {
    /// The name of the secret.
    pub(super) secret: &'a str,
    pub(super) faults: Vec<Reason>,
}

/// Returns the match with the fewest faults.
pub(super) fn find<'a>(
    header: &SignatureHeader<'_>,
    delivery_id: Option<&str>,
    body: &[u8],
    keyring: &'a Keyring,
) -> Option<SignatureMatch<'a>> {
    let messages = messages(header, delivery_id, body);
    let keys = keys(keyring);
    let search = Search { header };
    let is_exact = |key: &&Key<'_>| key.fault.is_none();
    let (exact_keys, faulty_keys): (Vec<_>, Vec<_>) = keys.iter().partition(is_exact);
    let (exact_messages, faulty_messages) =
        messages.split_at(messages.iter().take_while(|message| message.faults.is_empty()).count());
    // `messages[0]` is the specified message; without a time, the body alone.
    // In both lists of keys, those of the receiver's endpoints precede those of other endpoints.
    search
        .find_hmac(&exact_keys, exact_messages)
        .or_else(|| search.find_hmac(&faulty_keys, exact_messages))
        .or_else(|| search.find_hmac(&exact_keys, faulty_messages))
        .or_else(|| search.find_plain_hash(&exact_keys, &messages[0]))
        .or_else(|| match body.len() {
            ..=DEEP_SEARCH_BYTES_MAX => search.find_hmac(&faulty_keys, faulty_messages),
            _ => None,
        })
        .or_else(|| search.find_sha512(&exact_keys, &messages))
        .or_else(|| search.find_sha512(&faulty_keys, exact_messages))
}

/// A candidate for the signed message.
struct Message<'a> {
    parts: Vec<Cow<'a, [u8]>>,
    faults: Vec<Reason>,
}

/// A candidate for the key.
struct Key<'a> {
    /// The name of the secret.
    secret: &'a str,
    bytes: Vec<u8>,
    is_of_other_endpoint: bool,
    fault: Option<Reason>,
}

struct Search<'s> {
    header: &'s SignatureHeader<'s>,
}

impl Search<'_> {
    /// Returns the first match of a message, signed with a key.
    fn find_hmac<'a>(&self, keys: &[&Key<'a>], messages: &[Message<'_>]) -> Option<SignatureMatch<'a>> {
        find_mac::<Hmac<Sha256>>(&self.header.signatures, keys, messages)
    }

    /// Returns the first match of a message, signed with a key and SHA-512.
    fn find_sha512<'a>(&self, keys: &[&Key<'a>], messages: &[Message<'_>]) -> Option<SignatureMatch<'a>> {
        match self.header.sha512_signatures.as_slice() {
            [] => None,
            signatures => find_mac::<Hmac<Sha512>>(signatures, keys, messages),
        }
    }

    /// Returns the first match of a plain hash of key and message, in either order.
    fn find_plain_hash<'a>(&self, keys: &[&Key<'a>], message: &Message<'_>) -> Option<SignatureMatch<'a>> {
        keys.iter().find_map(|key| {
            let mut key_first = Sha256::new_with_prefix(&key.bytes);
            let mut key_last = Sha256::new();
            for part in &message.parts {
                key_first.update(part);
                key_last.update(part);
            }
            key_last.update(&key.bytes);
            [key_first, key_last]
                .into_iter()
                .map(Digest::finalize)
                .find_map(|hash| match_signature(&self.header.signatures, key, &hash, &[Reason::PlainHash]))
        })
    }
}

/// Returns the first match of a message, signed with a key by this algorithm.
fn find_mac<'a, M: Mac + KeyInit>(
    signatures: &[DecodedSignature],
    keys: &[&Key<'a>],
    messages: &[Message<'_>],
) -> Option<SignatureMatch<'a>> {
    let mut candidates = messages.iter().flat_map(|message| keys.iter().map(move |key| (message, *key)));
    candidates.find_map(|(message, key)| {
        let mut mac = <M as KeyInit>::new_from_slice(&key.bytes).expect("HMAC accepts a key of any length");
        message.parts.iter().for_each(|part| mac.update(part));
        match_signature(signatures, key, &mac.finalize().into_bytes(), &message.faults)
    })
}

/// Returns the match if a signature of the header equals this MAC.
fn match_signature<'a>(
    signatures: &[DecodedSignature],
    key: &Key<'a>,
    mac: &[u8],
    faults: &[Reason],
) -> Option<SignatureMatch<'a>> {
    let is_equal = |signature: &&DecodedSignature| bool::from(signature.mac.ct_eq(mac));
    let equal_signatures = || signatures.iter().filter(is_equal);
    // The header may contain the same signature twice, once correctly encoded.
    let signature = equal_signatures()
        .find(|signature| signature.fault.is_none())
        .or_else(|| equal_signatures().next())?;
    let other_mode = key.is_of_other_endpoint.then(|| Reason::OtherMode { secret: key.secret.to_owned() });
    let key_faults = key.fault.iter().cloned().chain(other_mode);
    let faults = signature.fault.iter().chain(faults).cloned().chain(key_faults).collect();
    Some(SignatureMatch { secret: key.secret, faults })
}

/// Returns the candidates for the signed message: the specified one, then those with one fault, then those with two.
fn messages<'a>(
    header: &SignatureHeader<'a>,
    delivery_id: Option<&'a str>,
    body: &'a [u8],
) -> Vec<Message<'a>> {
    let mut messages = Vec::new();
    let mut add = |parts: &[&'a [u8]], faults: &[Reason]| {
        let parts = parts.iter().map(|part| Cow::Borrowed(*part)).collect();
        messages.push(Message { parts, faults: faults.to_vec() });
    };
    let time = header.time.map(str::as_bytes);
    if let Some(time) = time {
        let joined = |how| [Reason::TimeJoined { how }];
        add(&[time, b".", body], &[]);
        add(&[time, body], &joined(MessageLayout::Directly));
        for separator in [":", "|", "_", "-", ",", " ", "\n"] {
            let how =
                separator.chars().next().map(MessageLayout::SeparatedBy).expect("a separator is not empty");
            add(&[time, separator.as_bytes(), body], &joined(how));
        }
        if let Some(id) = delivery_id {
            add(&[id.as_bytes(), b".", time, b".", body], &joined(MessageLayout::AfterDeliveryId));
            add(&[time, b".", id.as_bytes(), b".", body], &joined(MessageLayout::BeforeDeliveryId));
        }
        add(&[body, b".", time], &joined(MessageLayout::BodyFirst));
    }
    add(&[body], &[Reason::BodyOnly]);
    let seconds = header.unix_secs.map(|secs| secs.to_string().into_bytes());
    let seconds = seconds.filter(|seconds| Some(seconds.as_slice()) != time);
    if let Some(seconds) = &seconds {
        let parts = vec![seconds.clone().into(), b".".into(), body.into()];
        messages.push(Message { parts, faults: vec![Reason::TimeSignedInSeconds] });
    }
    if body.len() > DEEP_SEARCH_BYTES_MAX {
        return messages;
    }
    let mut with_two_faults = Vec::new();
    let original = ParsedBody::new(body);
    for (text, how) in Rewriting::ALL.into_iter().filter_map(|how| Some((original.rewrite(how)?, how))) {
        let rewritten = Reason::BodyRewritten { how };
        if let Some(time) = time {
            let parts = vec![time.into(), b".".into(), text.clone().into()];
            messages.push(Message { parts, faults: vec![rewritten.clone()] });
        }
        if let Some(seconds) = &seconds {
            let parts = vec![seconds.clone().into(), b".".into(), text.clone().into()];
            with_two_faults
                .push(Message { parts, faults: vec![Reason::TimeSignedInSeconds, rewritten.clone()] });
        }
        // A signature of an empty message does not depend on the delivery.
        if how != Rewriting::Empty {
            with_two_faults
                .push(Message { parts: vec![text.into()], faults: vec![Reason::BodyOnly, rewritten] });
        }
    }
    messages.append(&mut with_two_faults);
    messages
}

/// Returns the candidates for the key: each secret as specified, and with each known fault.
fn keys(keyring: &Keyring) -> Vec<Key<'_>> {
    let mut keys = Vec::new();
    let own = keyring.secrets.iter().map(|named| (named, false));
    let others = keyring.other_endpoints.iter().map(|named| (named, true));
    for ((name, secret), is_of_other_endpoint) in own.chain(others) {
        let secret = secret.expose();
        let mut add = |bytes: &[u8], fault: Option<Reason>| {
            keys.push(Key { secret: name.as_str(), bytes: bytes.to_vec(), is_of_other_endpoint, fault });
        };
        add(secret.as_bytes(), None);
        let trimmed = secret.trim();
        if trimmed != secret {
            add(trimmed.as_bytes(), Some(Reason::SecretPadded { side: PaddedSide::Receiver }));
        }
        for end in ["\n", "\r\n", " "] {
            add(
                format!("{trimmed}{end}").as_bytes(),
                Some(Reason::SecretPadded { side: PaddedSide::Sender }),
            );
        }
        let without_prefix = match trimmed.strip_prefix(PREFIX) {
            Some(rest) => {
                add(rest.as_bytes(), Some(Reason::SecretPrefixDropped));
                rest
            }
            None => {
                let with_prefix = format!("{PREFIX}{trimmed}");
                add(with_prefix.as_bytes(), Some(Reason::SecretPrefixAdded));
                trimmed
            }
        };
        if let Ok(bytes) = hex::decode(without_prefix) {
            add(&bytes, Some(Reason::SecretDecoded { from: Encoding::Hex }));
        }
        for encoded in [without_prefix, trimmed] {
            if let Some(bytes) = base64::decode(encoded) {
                add(&bytes, Some(Reason::SecretDecoded { from: Encoding::Base64 }));
            }
        }
    }
    keys
}
