//! The table of coins, and the fiat currencies in which they are priced.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::time::Span;

/// The format of a coin's deposit addresses. A wallet serves every coin of its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AddressFormat {
    /// Bitcoin, native segwit (BIP-84): `bc1q…`, `tb1q…`.
    Bitcoin,
    /// Litecoin, native segwit (BIP-84): `ltc1q…`, `tltc1q…`.
    Litecoin,
    /// Dogecoin, pay to public key hash (BIP-44): `D…`, `n…`.
    Dogecoin,
    /// Bitcoin Cash, CashAddr pay to public key hash: `bitcoincash:q…`, `bchtest:q…`.
    BitcoinCash,
    /// Ethereum and compatible networks, EIP-55: `0x…`. The coins of this format share one wallet.
    Evm,
    /// Tron, base58check: `T…`.
    Tron,
    /// Solana, base58 of 32 bytes. The owner provides a list of addresses, because Ed25519 keys have no public
    /// derivation.
    Solana,
    /// Monero. The owner provides a list of subaddresses.
    Monero,
}

impl AddressFormat {
    /// Returns `true` if `text` is formatted as a transaction id of the networks with this address format: 64
    /// hexadecimal digits, after `0x` for [`AddressFormat::Evm`], or for [`AddressFormat::Solana`] the base58 of
    /// 64 bytes.
    pub fn is_txid(self, text: &str) -> bool {
        let is_hex = |text: &str| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
        match self {
            AddressFormat::Evm => text.strip_prefix("0x").is_some_and(is_hex),
            AddressFormat::Solana => {
                let mut bytes = [0; 64];
                bs58::decode(text).onto(&mut bytes) == Ok(64)
            }
            _ => is_hex(text),
        }
    }
}

macro_rules! assets {
    ($($variant:ident $code:literal $network:literal $format:ident decimals $decimals:literal
       block $block_ms:literal ms confirmations $live:literal $test:literal usd $usd_cents:literal;)*) => {
        /// A coin on one network (`open.asset.codes`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[allow(missing_docs, reason = "the variants are the coins' codes")]
        pub enum Asset { $($variant),* }

        impl Asset {
            /// Every coin, in the order in which they are listed.
            pub const ALL: [Asset; [$($live),*].len()] = [$(Asset::$variant),*];

            /// Returns the constants of this coin.
            pub const fn facts(self) -> &'static AssetFacts {
                match self {
                    $(Asset::$variant => const { &AssetFacts {
                        code: $code,
                        network: $network,
                        address_format: AddressFormat::$format,
                        decimals: $decimals,
                        block_time: Span::millis($block_ms),
                        confirmations_live: $live,
                        confirmations_test: $test,
                        typical_usd_cents: $usd_cents,
                    } }),*
                }
            }
        }
    };
}

/// The constants of a coin.
pub struct AssetFacts {
    /// The code in requests and responses: `USDT_TRON`.
    pub code: &'static str,
    /// The network, as used in explorer links: `tron`.
    pub network: &'static str,
    /// The format of its deposit addresses.
    pub address_format: AddressFormat,
    /// The number of decimal places of an amount, at most 18.
    pub decimals: u32,
    /// The typical time between two blocks.
    pub block_time: Span,
    /// The required confirmations in live mode.
    pub confirmations_live: u32,
    /// The required confirmations in test mode.
    pub confirmations_test: u32,
    /// The price around which the simulated market moves, in US cents per coin.
    pub typical_usd_cents: u64,
}

// Variant, code, network, address format, decimals, time between blocks, required confirmations in live and in test
// mode, typical price in US cents.
assets! {
    Btc         "BTC"          "bitcoin"      Bitcoin     decimals 8  block 600_000 ms confirmations 2 1  usd 6_500_000;
    Ltc         "LTC"          "litecoin"     Litecoin    decimals 8  block 150_000 ms confirmations 3 1  usd 8_500;
    Doge        "DOGE"         "dogecoin"     Dogecoin    decimals 8  block 60_000 ms  confirmations 6 2  usd 18;
    Bch         "BCH"          "bitcoin-cash" BitcoinCash decimals 8  block 600_000 ms confirmations 2 1  usd 45_000;
    Eth         "ETH"          "ethereum"     Evm         decimals 18 block 12_000 ms  confirmations 12 3 usd 320_000;
    Xmr         "XMR"          "monero"       Monero      decimals 12 block 120_000 ms confirmations 10 2 usd 16_000;
    Sol         "SOL"          "solana"       Solana      decimals 9  block 400 ms     confirmations 32 4 usd 15_000;
    Usdt        "USDT"         "ethereum"     Evm         decimals 6  block 12_000 ms  confirmations 12 3 usd 100;
    Usdc        "USDC"         "ethereum"     Evm         decimals 6  block 12_000 ms  confirmations 12 3 usd 100;
    UsdtTron    "USDT_TRON"    "tron"         Tron        decimals 6  block 3_000 ms   confirmations 20 5 usd 100;
    UsdcBase    "USDC_BASE"    "base"         Evm         decimals 6  block 2_000 ms   confirmations 15 4 usd 100;
    UsdcPolygon "USDC_POLYGON" "polygon"      Evm         decimals 6  block 2_000 ms   confirmations 64 8 usd 100;
    UsdtBsc     "USDT_BSC"     "bsc"          Evm         decimals 18 block 3_000 ms   confirmations 15 4 usd 100;
}

impl Asset {
    /// Returns the code in requests and responses.
    pub const fn code(self) -> &'static str {
        self.facts().code
    }

    /// Parses a code; case-sensitive.
    pub fn parse(code: &str) -> Option<Asset> {
        Asset::ALL.into_iter().find(|asset| asset.code() == code)
    }

    /// Returns the required confirmations (`open.charge.confirmations`).
    pub const fn required_confirmations(self, mode: crate::mode::Mode) -> u32 {
        match mode {
            crate::mode::Mode::Live => self.facts().confirmations_live,
            crate::mode::Mode::Test => self.facts().confirmations_test,
        }
    }
}

impl fmt::Display for Asset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

macro_rules! currencies {
    ($($variant:ident $code:literal $per_hundred_usd:literal;)*) => {
        /// A fiat currency with two decimal places.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[allow(missing_docs, reason = "the variants are ISO 4217 codes")]
        pub enum Currency { $($variant),* }

        impl Currency {
            /// Every currency, in the order in which they are listed.
            pub const ALL: [Currency; [$($per_hundred_usd),*].len()] = [$(Currency::$variant),*];

            /// Returns the ISO 4217 code.
            pub const fn code(self) -> &'static str {
                match self { $(Currency::$variant => $code),* }
            }

            /// Returns the number of units that 100 US dollars typically buy, in hundredths of a unit.
            pub const fn typical_per_hundred_usd(self) -> u64 {
                match self { $(Currency::$variant => $per_hundred_usd),* }
            }
        }
    };
}

// Variant, code, and the typical price of 100 US dollars in hundredths of a unit.
currencies! {
    Usd "USD" 10_000;
    Eur "EUR" 9_200;
    Gbp "GBP" 7_800;
    Chf "CHF" 8_800;
    Cad "CAD" 13_700;
    Aud "AUD" 15_200;
    Nzd "NZD" 16_600;
    Sek "SEK" 105_000;
    Nok "NOK" 108_000;
    Dkk "DKK" 68_600;
    Pln "PLN" 39_500;
    Czk "CZK" 231_000;
    Brl "BRL" 55_000;
    Mxn "MXN" 185_000;
    Inr "INR" 840_000;
    Sgd "SGD" 13_400;
}

impl Currency {
    /// Parses a code; case-sensitive.
    pub fn parse(code: &str) -> Option<Currency> {
        Currency::ALL.into_iter().find(|currency| currency.code() == code)
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_parsed_case_sensitively() {
        for asset in Asset::ALL {
            assert_eq!(Asset::parse(asset.code()), Some(asset));
            assert_eq!(Asset::parse(&asset.code().to_lowercase()), None);
            assert!(asset.facts().decimals <= 18, "a coin amount has at most 18 decimals");
        }
        for currency in Currency::ALL {
            assert_eq!(Currency::parse(currency.code()), Some(currency));
        }
    }

    #[test]
    fn transaction_ids_are_checked_against_the_format_of_their_network() {
        let hex = "ab".repeat(32);
        let base58 = bs58::encode([7_u8; 64]).into_string();
        for (format, text, expected) in [
            (AddressFormat::Bitcoin, hex.as_str(), true),
            (AddressFormat::Bitcoin, &hex[1..], false),
            (AddressFormat::Bitcoin, "../../evil", false),
            (AddressFormat::Evm, &format!("0x{hex}"), true),
            (AddressFormat::Evm, &hex, false),
            (AddressFormat::Tron, &hex, true),
            (AddressFormat::Solana, &base58, true),
            (AddressFormat::Solana, &base58[1..], false),
            (AddressFormat::Monero, "", false),
        ] {
            assert_eq!(format.is_txid(text), expected, "{format:?} {text}");
        }
    }
}
