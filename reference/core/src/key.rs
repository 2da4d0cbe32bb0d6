//! API keys: shown once, stored as digests (`auth.shown_once`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    call::ListKey,
    id::{AccountNo, Code, KeyNo},
    limit::RateWindow,
    mode::Mode,
    page::PageMemory,
    rng::RngKey,
    time::Timestamp,
};

const SECRET_LEN: usize = 40;
/// The largest length of a key's tag, by which a host of several services finds the key's service. At least 28
/// characters stay random.
pub const KEY_TAG_MAX: usize = 12;
const SECRET_ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// The account and mode that a key belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// The account that the key belongs to.
    pub account: AccountNo,
    /// The key's mode: the only book it can reach.
    pub mode: Mode,
    /// The key itself, for its rate limit and its page anchors.
    pub key: KeyNo,
}

/// An API key, without its text.
#[derive(Debug, Serialize, Deserialize)]
pub struct ApiKey {
    /// Its id in the dashboard.
    pub id: Code,
    /// The account and mode.
    pub principal: Principal,
    /// The last four characters, to distinguish keys.
    pub hint: String,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The time of revocation.
    pub revoked_at: Option<Timestamp>,
    pub(crate) rate_window: RateWindow,
    pub(crate) page_memory: PageMemory<ListKey>,
}

/// The whole API key. Shown once; redacted in debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyText(String);

impl KeyText {
    /// Returns the text, to show it to its owner.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for KeyText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyText(…)")
    }
}

/// The parts of a new key's text.
pub struct KeySource<'a> {
    /// The start of the key: the prefix and the mode.
    pub start: &'a str,
    /// The tag after it, by which a host of several services finds the key's service.
    pub tag: &'a str,
    /// The key from which the random rest is drawn.
    pub rng_key: &'a RngKey,
    /// The number of keys that were created before in this account and mode.
    pub nth: u64,
}

/// Every key of the service.
#[derive(Default, Serialize, Deserialize)]
pub struct KeyRing {
    keys: Vec<ApiKey>,
    // Digests are compared, not keys: timing can reveal a digest at most, from which the key cannot be computed.
    by_digest: BTreeMap<[u8; 32], KeyNo>,
}

impl KeyRing {
    /// Creates a key of an account and mode. Returns its number and its text.
    ///
    /// # Panics
    ///
    /// If the tag is longer than [`KEY_TAG_MAX`].
    pub fn create(
        &mut self,
        now: Timestamp,
        (account, mode): (AccountNo, Mode),
        KeySource { start, tag, rng_key, nth }: KeySource<'_>,
    ) -> (KeyNo, KeyText) {
        assert!(tag.len() <= KEY_TAG_MAX, "a tag of {} characters leaves too few to a key", tag.len());
        let mut stream = rng_key.stream(nth);
        let text = format!("{start}{tag}{}", stream.text(SECRET_LEN - tag.len(), SECRET_ALPHABET));
        let no = KeyNo::from_index(self.keys.len());
        self.by_digest.insert(digest(text.as_bytes()), no);
        self.keys.push(ApiKey {
            // The highest bit selects a stream that is not used for the text of any key.
            id: Code::draw(rng_key, nth | (1 << 63)),
            principal: Principal { account, mode, key: no },
            hint: text[text.len() - 4..].to_owned(),
            created_at: now,
            revoked_at: None,
            rate_window: RateWindow::default(),
            page_memory: PageMemory::default(),
        });
        (no, KeyText(text))
    }

    /// Returns the number of the key with this text, unless it was revoked.
    pub fn find(&self, text: &[u8]) -> Option<KeyNo> {
        let no = *self.by_digest.get(&digest(text))?;
        self.get(no).revoked_at.is_none().then_some(no)
    }

    /// Returns `true` if this key ring created a key with this text, revoked or not.
    pub fn has_created(&self, text: &[u8]) -> bool {
        self.by_digest.contains_key(&digest(text))
    }

    /// Returns a key by its number.
    pub fn get(&self, no: KeyNo) -> &ApiKey {
        &self.keys[no.index()]
    }

    pub(crate) fn get_mut(&mut self, no: KeyNo) -> &mut ApiKey {
        &mut self.keys[no.index()]
    }

    /// Returns all keys, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &ApiKey> {
        self.keys.iter()
    }

    /// Discards the volatile state: limiter windows and remembered anchors.
    pub(crate) fn clear_volatile(&mut self) {
        for key in &mut self.keys {
            key.rate_window = RateWindow::default();
            key.page_memory = PageMemory::default();
        }
    }
}

fn digest(text: &[u8]) -> [u8; 32] {
    Sha256::digest(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    #[test]
    fn a_key_is_found_until_it_is_revoked_and_its_id_and_hint_do_not_reveal_it() {
        let rng_key = Seed(1).rng_key("live", "acme", "key");
        let mut ring = KeyRing::default();
        for nth in 0..3 {
            let source = KeySource { start: "svc_live_", tag: "tag", rng_key: &rng_key, nth };
            let (no, text) = ring.create(Timestamp(0), (AccountNo(0), Mode::Live), source);
            let text = text.reveal();
            let key = ring.get(no);
            assert_eq!((text.len(), text.strip_suffix(&key.hint).map(str::len)), (49, Some(45)));
            assert!(
                (0..3).all(|stream| key.id != Code::draw(&rng_key, stream)),
                "the id is not drawn from a stream of key texts"
            );
            assert_eq!((ring.find(text.as_bytes()), ring.has_created(text.as_bytes())), (Some(no), true));
            ring.get_mut(no).revoked_at = Some(Timestamp(0));
            assert_eq!((ring.find(text.as_bytes()), ring.has_created(text.as_bytes())), (None, true));
        }
        let ids: std::collections::BTreeSet<Code> = ring.iter().map(|key| key.id).collect();
        assert_eq!((ids.len(), ring.has_created(b"svc_live_other")), (3, false));
    }
}
