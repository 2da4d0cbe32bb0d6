//! Keyed randomness: every stream of random numbers is a function of the seed, an entity and a purpose.
//!
//! There is no shared generator, so adding a feature or removing an actor changes no other stream. The operating system's
//! entropy is never used: the seed is an argument.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The seed of a run. The same seed gives the same bytes on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seed(pub u64);

impl Seed {
    /// Returns the key of one `entity` (a name, or the name of its parent and a number) in one `realm` (a mode, or a
    /// name for objects that both modes share) for one `purpose`.
    pub fn rng_key(self, realm: &str, entity: &str, purpose: &str) -> RngKey {
        let mut hash = Sha256::new();
        // Separates these hashes from those of other programs and versions.
        hash.update(b"chargeproof draw 1\0");
        hash.update(self.0.to_be_bytes());
        for part in [realm, entity, purpose] {
            // Each part is preceded by its length, so that no two triples give the same bytes.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        RngKey { key: hash.finalize().into() }
    }
}

/// A key of random streams: one entity for one purpose. Its streams are numbered.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct RngKey {
    key: [u8; 32],
}

impl std::fmt::Debug for RngKey {
    /// Redacted: API keys and webhook secrets derive from the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RngKey(…)")
    }
}

impl RngKey {
    /// Returns stream number `n`, independent of all others.
    pub fn stream(&self, n: u64) -> RngStream {
        let mut rng = ChaCha8Rng::from_seed(self.key);
        rng.set_stream(n);
        RngStream { rng }
    }
}

/// A stream of random numbers.
pub struct RngStream {
    rng: ChaCha8Rng,
}

impl RngStream {
    /// Returns the next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.rng.next_u64()
    }

    /// Returns a uniformly distributed number in `0..end`. `end` must not be 0.
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

    /// Returns a uniformly distributed number in `first..=last`.
    ///
    /// # Panics
    ///
    /// If `first` is greater than `last`.
    pub fn between(&mut self, first: u64, last: u64) -> u64 {
        assert!(first <= last, "an empty range: {first} to {last}");
        match (last - first).checked_add(1) {
            Some(width) => first + self.below(width),
            None => self.bits(),
        }
    }

    /// Returns `true` with probability `parts` / `whole`.
    pub fn chance(&mut self, parts: u64, whole: u64) -> bool {
        self.below(whole) < parts
    }

    /// Fills `bytes` with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.rng.fill_bytes(bytes);
    }

    /// Returns the next `N` random bytes.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    /// Returns `len` characters, each drawn uniformly from `alphabet`.
    pub fn text(&mut self, len: usize, alphabet: &[u8]) -> String {
        (0..len).map(|_| char::from(alphabet[self.below(alphabet.len() as u64) as usize])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_depends_on_every_part_of_its_key() {
        let first =
            |seed, realm, entity, purpose, n| Seed(seed).rng_key(realm, entity, purpose).stream(n).bits();
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
    fn the_bytes_of_a_stream_never_change() {
        let mut stream = Seed(7).rng_key("test", "c1", "code").stream(3);
        assert_eq!(hex::encode(stream.bytes::<16>()), "372e82d0f2c895048d492d22cb514a3a");
    }

    #[test]
    fn numbers_between_two_bounds_include_both() {
        let mut stream = Seed(0).rng_key("", "", "").stream(0);
        let drawn: std::collections::BTreeSet<u64> = (0..1000).map(|_| stream.between(3, 7)).collect();
        assert_eq!(drawn, (3..=7).collect());
        assert_eq!(stream.between(9, 9), 9);
    }

    /// Checks that bits are drawn again only where they would favour some numbers.
    #[track_caller]
    fn check_below(end: u64, expected_redraws: std::ops::RangeInclusive<u32>) {
        const DRAWS: u32 = 1_000;
        let stream = || Seed(4).rng_key("test", "below", "bias").stream(0);
        let (mut draw, mut bits, mut redraws) = (stream(), stream(), 0);
        for n in 0..DRAWS {
            let expected = loop {
                let product = u128::from(bits.bits()) * u128::from(end);
                if product % (1 << 64) >= (1 << 64) % u128::from(end) {
                    break (product >> 64) as u64;
                }
                redraws += 1;
            };
            assert_eq!(draw.below(end), expected, "draw {n} below {end}");
        }
        assert!(expected_redraws.contains(&redraws), "{redraws} redraws below {end}");
    }

    #[test]
    fn numbers_below_a_bound_are_unbiased() {
        check_below(1, 0..=0);
        check_below(1 << 63, 0..=0);
        check_below(6, 0..=0);
        // A quarter of all draws is rejected, and nearly a half: about 333 and 1,000 redraws for 1,000 numbers.
        check_below(3 << 62, 250..=420);
        check_below((1 << 63) + 1, 800..=1_250);
    }
}
