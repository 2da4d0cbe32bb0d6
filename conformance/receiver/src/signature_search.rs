//! The search for the message and key of a signature: first the specified ones, then with one fault, then with several.
//!
//! [`find`] tries every candidate key on every candidate message and compares with the signatures of the header. The
//! match with the fewest faults is the diagnosis: `<t>.<body>` signed with the secret without its prefix is one fault,
//! a re-serialized body signed so is two.
//!
//! Must not contain: the rule that decides on a verdict, or text for users.

use std::borrow::Cow;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{
    base64,
    header::{Claim, Header},
    keyring::Keyring,
    reason::{Encoding, Joined, Padding, Reason},
    rewriting::{ParsedBody, Rewriting},
};

/// The largest body that is rewritten and searched for more than one fault: every try hashes the whole body, and
/// indenting can multiply its size.
const DEEP_SEARCH_BYTES_MAX: usize = 128 * 1024;
const PREFIX: &str = "whsec_";

/// A matching message and key, with their faults.
pub(super) struct SignatureMatch<'a> {
    /// The name of the secret.
    pub(super) secret: &'a str,
    pub(super) faults: Vec<Reason>,
}

/// Returns the match with the fewest faults.
pub(super) fn find<'a>(
    header: &Header<'_>,
    delivery: Option<&str>,
    body: &[u8],
    keyring: &'a Keyring,
) -> Option<SignatureMatch<'a>> {
    let messages = messages(header, delivery, body);
    let keys = keys(keyring);
    let search = Search { header };
    let exact = |key: &&Key<'_>| key.fault.is_none();
    let (right, wrong): (Vec<_>, Vec<_>) = keys.iter().partition(exact);
    let (plain, changed) =
        messages.split_at(messages.iter().take_while(|message| message.faults.is_empty()).count());
    // Own secrets precede the other mode's in the list.
    search
        .find_hmac(&right, plain)
        .or_else(|| search.find_hmac(&wrong, plain))
        .or_else(|| search.find_hmac(&right, changed))
        .or_else(|| search.find_plain_hash(&right, &messages[0]))
        .or_else(|| match body.len() {
            ..=DEEP_SEARCH_BYTES_MAX => search.find_hmac(&wrong, changed),
            _ => None,
        })
}

/// A candidate for the signed message.
struct Message<'a> {
    parts: Vec<Cow<'a, [u8]>>,
    faults: Vec<Reason>,
}

/// A candidate for the key.
struct Key<'a> {
    secret: &'a str,
    bytes: Vec<u8>,
    other_mode: bool,
    fault: Option<Reason>,
}

struct Search<'s> {
    header: &'s Header<'s>,
}

impl Search<'_> {
    /// Tries every key with every message.
    fn find_hmac<'a>(&self, keys: &[&Key<'a>], messages: &[Message<'_>]) -> Option<SignatureMatch<'a>> {
        let mut tries = messages.iter().flat_map(|message| keys.iter().map(move |key| (message, *key)));
        tries.find_map(|(message, key)| {
            let mut mac =
                Hmac::<Sha256>::new_from_slice(&key.bytes).expect("HMAC accepts a key of any length");
            message.parts.iter().for_each(|part| mac.update(part));
            self.match_claim(key, &mac.finalize().into_bytes().into(), &message.faults)
        })
    }

    /// Tries the plain hash of secret and message, in either order.
    fn find_plain_hash<'a>(&self, keys: &[&Key<'a>], message: &Message<'_>) -> Option<SignatureMatch<'a>> {
        keys.iter().find_map(|key| {
            let mut before = Sha256::new_with_prefix(&key.bytes);
            let mut after = Sha256::new();
            for part in &message.parts {
                before.update(part);
                after.update(part);
            }
            after.update(&key.bytes);
            [before, after]
                .into_iter()
                .find_map(|hash| self.match_claim(key, &hash.finalize().into(), &[Reason::PlainHash]))
        })
    }

    /// Returns the match if a signature of the header equals this MAC.
    fn match_claim<'a>(
        &self,
        key: &Key<'a>,
        mac: &[u8; 32],
        faults: &[Reason],
    ) -> Option<SignatureMatch<'a>> {
        let fits = |claim: &&Claim| bool::from(claim.mac.ct_eq(mac));
        let claims = || self.header.claims.iter().filter(fits);
        // The header may contain the same signature twice, once correctly encoded.
        let claim = claims().find(|claim| claim.fault.is_none()).or_else(|| claims().next())?;
        let other_mode = key.other_mode.then(|| Reason::OtherMode { secret: key.secret.to_owned() });
        let of_key = key.fault.iter().cloned().chain(other_mode);
        let faults = claim.fault.iter().chain(faults).cloned().chain(of_key).collect();
        Some(SignatureMatch { secret: key.secret, faults })
    }
}

/// Returns the candidates for the signed message: the specified one, then those with one fault, then those with two.
fn messages<'a>(header: &Header<'a>, delivery: Option<&'a str>, body: &'a [u8]) -> Vec<Message<'a>> {
    let mut messages = Vec::new();
    let mut add = |parts: &[&'a [u8]], faults: &[Reason]| {
        let parts = parts.iter().map(|part| Cow::Borrowed(*part)).collect();
        messages.push(Message { parts, faults: faults.to_vec() });
    };
    let time = header.time.map(str::as_bytes);
    if let Some(time) = time {
        let joined = |how| [Reason::TimeJoined { how }];
        add(&[time, b".", body], &[]);
        add(&[time, body], &joined(Joined::Directly));
        for mark in [":", "|", "_", "-", ",", " ", "\n"] {
            let by = mark.chars().next().map(Joined::By).expect("a mark is a character");
            add(&[time, mark.as_bytes(), body], &joined(by));
        }
        if let Some(id) = delivery {
            add(&[id.as_bytes(), b".", time, b".", body], &joined(Joined::AfterDeliveryId));
        }
        add(&[body, b".", time], &joined(Joined::BodyFirst));
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
    let mut second = Vec::new();
    let original = ParsedBody::new(body);
    for (text, how) in Rewriting::ALL.into_iter().filter_map(|how| Some((original.rewrite(how)?, how))) {
        let rewritten = Reason::BodyRewritten { how };
        if let Some(time) = time {
            let parts = vec![time.into(), b".".into(), text.clone().into()];
            messages.push(Message { parts, faults: vec![rewritten.clone()] });
        }
        if let Some(seconds) = &seconds {
            let parts = vec![seconds.clone().into(), b".".into(), text.clone().into()];
            second.push(Message { parts, faults: vec![Reason::TimeSignedInSeconds, rewritten.clone()] });
        }
        // The signature of an empty message proves nothing.
        if how != Rewriting::Empty {
            second.push(Message { parts: vec![text.into()], faults: vec![Reason::BodyOnly, rewritten] });
        }
    }
    messages.append(&mut second);
    messages
}

/// Returns the candidates for the key: each secret as it is, and as it is often misread.
fn keys(keyring: &Keyring) -> Vec<Key<'_>> {
    let mut keys = Vec::new();
    let own = keyring.secrets.iter().map(|named| (named, false));
    let others = keyring.other_mode.iter().map(|named| (named, true));
    for ((name, secret), other_mode) in own.chain(others) {
        let text = secret.expose();
        let mut add = |bytes: &[u8], fault: Option<Reason>| {
            keys.push(Key { secret: name.as_str(), bytes: bytes.to_vec(), other_mode, fault });
        };
        add(text.as_bytes(), None);
        let trimmed = text.trim();
        if trimmed != text {
            add(trimmed.as_bytes(), Some(Reason::SecretPadded { whose: Padding::Receiver }));
        }
        for end in ["\n", "\r\n", " "] {
            add(format!("{trimmed}{end}").as_bytes(), Some(Reason::SecretPadded { whose: Padding::Sender }));
        }
        let tail = match trimmed.strip_prefix(PREFIX) {
            Some(tail) => {
                add(tail.as_bytes(), Some(Reason::SecretPrefixDropped));
                tail
            }
            None => {
                let whole = format!("{PREFIX}{trimmed}");
                add(whole.as_bytes(), Some(Reason::SecretPrefixAdded));
                trimmed
            }
        };
        if let Ok(bytes) = hex::decode(tail) {
            add(&bytes, Some(Reason::SecretDecoded { from: Encoding::Hex }));
        }
        for encoded in [tail, trimmed] {
            if let Some(bytes) = base64::decode(encoded) {
                add(&bytes, Some(Reason::SecretDecoded { from: Encoding::Base64 }));
            }
        }
    }
    keys
}
