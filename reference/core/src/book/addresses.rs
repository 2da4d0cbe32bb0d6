//! The index from deposit address to charge.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::id::ChargeNo;

/// The index from address to charge of a book. Stores hashes only; the addresses themselves are in the charges.
#[derive(Default)]
pub(super) struct Addresses {
    table: HashTable<Entry>,
    hasher: DefaultHashBuilder,
}

struct Entry {
    /// Stored, so that the table can grow without reading every charge.
    hash: u64,
    no: ChargeNo,
}

impl Addresses {
    /// Returns the number of the charge with this address; `address_of` returns the address of a charge.
    pub(super) fn find<'a>(
        &self,
        address: &str,
        address_of: impl Fn(ChargeNo) -> &'a str,
    ) -> Option<ChargeNo> {
        let hash = self.hasher.hash_one(address);
        let found = self.table.find(hash, |entry| entry.hash == hash && address_of(entry.no) == address)?;
        Some(found.no)
    }

    /// Adds the address of a new charge, which no other charge may have.
    pub(super) fn insert(&mut self, address: &str, no: ChargeNo) {
        let hash = self.hasher.hash_one(address);
        self.table.insert_unique(hash, Entry { hash, no }, |entry| entry.hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn find_returns_the_charge_with_exactly_this_address() {
        let texts: Vec<String> = (0..500).map(|n| format!("address{}", n * n)).collect();
        let mut addresses = Addresses::default();
        let find = |addresses: &Addresses, text: &str| addresses.find(text, |no| &texts[no.index()]);
        for (index, address) in texts.iter().enumerate() {
            assert_eq!(find(&addresses, address), None);
            addresses.insert(address, ChargeNo::from_index(index));
        }
        for (index, address) in texts.iter().enumerate() {
            assert_eq!(find(&addresses, address), Some(ChargeNo::from_index(index)));
        }
        assert_eq!(find(&addresses, "address2"), None);
    }
}
