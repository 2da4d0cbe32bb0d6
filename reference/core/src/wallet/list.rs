//! The wallets of Solana and Monero: lists of addresses, entered by the owner or drawn.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{WalletError, base58, monero, name, needs_address_list, secret};
use crate::{
    asset::AddressFormat,
    mode::Mode,
    rng::{RngKey, Seed},
};

/// The length of a Solana address in bytes: it is the public key itself.
const SOLANA_LEN: usize = 32;

/// Checks one address of a list.
pub(super) fn validate(format: AddressFormat, mode: Mode, text: &str) -> Result<(), WalletError> {
    if secret::is_secret(text) {
        return Err(WalletError::PrivateKey);
    }
    match format {
        // The test networks use the same addresses as the main one.
        AddressFormat::Solana => match base58::decode_unchecked(text)?.len() {
            SOLANA_LEN => Ok(()),
            got => Err(WalletError::Length { got, expected: SOLANA_LEN }),
        },
        AddressFormat::Monero => monero::validate(mode, text),
        _ => Err(WalletError::NeedsKey(format)),
    }
}

/// The addresses that an owner listed: valid, not empty, without duplicates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct AddressList(Vec<String>);

impl AddressList {
    pub(super) fn parse<'a>(
        addresses: impl IntoIterator<Item = &'a str>,
        format: AddressFormat,
        mode: Mode,
    ) -> Result<AddressList, WalletError> {
        if !needs_address_list(format) {
            return Err(WalletError::NeedsKey(format));
        }
        let mut list = Vec::new();
        let mut positions = BTreeMap::new();
        for (address, position) in addresses.into_iter().zip(1..) {
            validate(format, mode, address)
                .map_err(|error| WalletError::Listed { position, reason: Box::new(error) })?;
            if let Some(first) = positions.insert(address, position) {
                return Err(WalletError::Repeated { position, first });
            }
            list.push(address.to_owned());
        }
        if list.is_empty() {
            return Err(WalletError::EmptyList);
        }
        Ok(AddressList(list))
    }

    pub(super) fn address(&self, n: u32) -> Option<String> {
        self.0.get(usize::try_from(n).ok()?).cloned()
    }

    pub(super) fn addresses(&self) -> &[String] {
        &self.0
    }

    pub(super) fn identity(&self) -> String {
        let mut hash = Sha256::new();
        for address in &self.0 {
            hash.update(address.as_bytes());
            hash.update(b"\n");
        }
        let hash: [u8; 32] = hash.finalize().into();
        format!("list-{}", hex::encode(&hash[..16]))
    }

    pub(super) fn overlaps(&self, other: &AddressList) -> bool {
        let own_addresses: std::collections::BTreeSet<_> = self.0.iter().collect();
        other.0.iter().any(|address| own_addresses.contains(address))
    }
}

/// An endless list of random addresses; each is drawn when it is needed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SeededList {
    address_key: RngKey,
    identity: String,
}

impl SeededList {
    pub(super) fn new(seed: Seed, realm: &str, format: AddressFormat, mode: Mode) -> SeededList {
        let entity = format!("{} {mode}", name(format));
        let rng_key = |purpose| seed.rng_key(realm, &entity, purpose);
        let identity = format!("drawn-{}", hex::encode(rng_key("identity").stream(0).bytes::<16>()));
        SeededList { address_key: rng_key("address"), identity }
    }

    /// Draws address `n`; `None` for the formats whose addresses are derived from a key.
    pub(super) fn address(&self, format: AddressFormat, mode: Mode, n: u32) -> Option<String> {
        let mut stream = self.address_key.stream(u64::from(n));
        match format {
            AddressFormat::Solana => Some(bs58::encode(stream.bytes::<SOLANA_LEN>()).into_string()),
            AddressFormat::Monero => Some(monero::subaddress(mode, &stream.bytes())),
            _ => None,
        }
    }

    pub(super) fn identity(&self) -> String {
        self.identity.clone()
    }
}
