//! Keyed randomness: a draw is a function of what it is for, not the next number of one stream.
//!
//! Adding a feature, or leaving an actor out, moves nobody else's luck. Nothing here asks the
//! operating system for anything: the seed is an argument.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

/// What a whole run hangs on. The same seed gives the same bytes, anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Seed {
    /// The draws of one `entity` (an alias, or its parent and ordinal) in one `realm` (a mode, or
    /// the name of what both modes share) for one `purpose`.
    pub fn lot(self, realm: &str, entity: &str, purpose: &str) -> Lot {
        let mut hash = Sha256::new();
        hash.update(b"chargeproof draw 1\0");
        hash.update(self.0.to_be_bytes());
        for part in [realm, entity, purpose] {
            // The length first, so that no two triples spell the same bytes.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        Lot { key: hash.finalize().into() }
    }
}

/// All draws of one entity for one purpose, by number.
#[derive(Clone, PartialEq)]
pub struct Lot {
    key: [u8; 32],
}

impl std::fmt::Debug for Lot {
    /// Without the key, which API keys and secrets hang on.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lot(…)")
    }
}

impl Lot {
    /// Draw number `n`: an independent stream of its own.
    pub fn nth(&self, n: u64) -> Draw {
        let mut rng = ChaCha8Rng::from_seed(self.key);
        rng.set_stream(n);
        Draw { rng }
    }
}

/// The bits of one draw.
pub struct Draw {
    rng: ChaCha8Rng,
}

impl Draw {
    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.rng.next_u64()
    }

    /// An even choice of `0..end`. `end` must not be 0.
    pub fn below(&mut self, end: u64) -> u64 {
        // Lemire's method: the high half of a 128-bit product, redrawn in the rare biased corner.
        let mut product = u128::from(self.bits()) * u128::from(end);
        if (product as u64) < end {
            let threshold = end.wrapping_neg() % end;
            while (product as u64) < threshold {
                product = u128::from(self.bits()) * u128::from(end);
            }
        }
        (product >> 64) as u64
    }

    /// An even choice of `first..=last`.
    pub fn between(&mut self, first: u64, last: u64) -> u64 {
        assert!(first <= last, "a draw between {first} and {last} has nothing to choose from");
        match (last - first).checked_add(1) {
            Some(width) => first + self.below(width),
            None => self.bits(),
        }
    }

    /// Yes in `parts` of `whole` cases.
    pub fn chance(&mut self, parts: u64, whole: u64) -> bool {
        self.below(whole) < parts
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.rng.fill_bytes(bytes);
    }

    /// `N` bytes.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    /// `len` characters, each an even choice of `alphabet`.
    pub fn text(&mut self, len: usize, alphabet: &[u8]) -> String {
        (0..len).map(|_| char::from(alphabet[self.below(alphabet.len() as u64) as usize])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_depends_on_every_part_of_its_key() {
        let first = |seed, realm, entity, purpose, n| Seed(seed).lot(realm, entity, purpose).nth(n).bits();
        let base = first(1, "live", "c1", "code", 0);
        assert_eq!(base, first(1, "live", "c1", "code", 0));
        for other in [
            first(2, "live", "c1", "code", 0),
            first(1, "test", "c1", "code", 0),
            first(1, "live", "c2", "code", 0),
            first(1, "live", "c1", "key", 0),
            first(1, "live", "c1", "code", 1),
            first(1, "livec", "1", "code", 0),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn the_bytes_of_a_draw_are_fixed_for_all_time() {
        let mut draw = Seed(7).lot("test", "c1", "code").nth(3);
        assert_eq!(hex::encode(draw.bytes::<16>()), "372e82d0f2c895048d492d22cb514a3a");
    }

    #[test]
    fn choices_stay_in_range_and_reach_both_ends() {
        let mut draw = Seed(0).lot("", "", "").nth(0);
        let seen: std::collections::BTreeSet<u64> = (0..1000).map(|_| draw.between(3, 7)).collect();
        assert_eq!(seen, (3..=7).collect());
        assert_eq!(draw.between(9, 9), 9);
    }
}
