//! The names of coins and networks, and the payment URIs in QR codes.

/// The common names of coins. Other coins are shown by their codes.
const NAMES: &[(&str, &str)] = &[
    ("BTC", "Bitcoin"),
    ("LTC", "Litecoin"),
    ("DOGE", "Dogecoin"),
    ("BCH", "Bitcoin Cash"),
    ("ETH", "Ether"),
    ("XMR", "Monero"),
    ("SOL", "Solana"),
    ("USDT", "Tether USD"),
    ("USDC", "USD Coin"),
];

/// The symbols of coins; letters where few fonts have the symbol.
const SYMBOLS: &[(&str, &str)] = &[
    ("BTC", "B"),
    ("LTC", "Ł"),
    ("DOGE", "Ð"),
    ("BCH", "B"),
    ("ETH", "Ξ"),
    ("XMR", "ɱ"),
    ("SOL", "◎"),
    ("USDT", "₮"),
    ("USDC", "$"),
];

/// The names of networks.
const NETWORKS: &[(&str, &str)] = &[
    ("bitcoin", "Bitcoin"),
    ("litecoin", "Litecoin"),
    ("dogecoin", "Dogecoin"),
    ("bitcoin-cash", "Bitcoin Cash"),
    ("ethereum", "Ethereum"),
    ("monero", "Monero"),
    ("solana", "Solana"),
    ("tron", "Tron"),
    ("base", "Base"),
    ("polygon", "Polygon"),
    ("bsc", "BNB Smart Chain"),
];

/// A network that is compatible with Ethereum, with the ids of its main and test chain.
struct EvmNetwork {
    name: &'static str,
    live_chain_id: u32,
    test_chain_id: u32,
}

const EVM_NETWORKS: [EvmNetwork; 4] = [
    EvmNetwork { name: "ethereum", live_chain_id: 1, test_chain_id: 11_155_111 },
    EvmNetwork { name: "base", live_chain_id: 8_453, test_chain_id: 84_532 },
    EvmNetwork { name: "polygon", live_chain_id: 137, test_chain_id: 80_002 },
    EvmNetwork { name: "bsc", live_chain_id: 56, test_chain_id: 97 },
];

/// The contracts of tokens on the main networks. Test networks have many tokens of the same name, so there a QR code
/// contains the address only.
const CONTRACTS: &[(&str, &str)] = &[
    ("USDT", "0xdAC17F958D2ee523a2206206994597C13D831ec7"),
    ("USDC", "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"),
    ("USDC_BASE", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"),
    ("USDC_POLYGON", "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359"),
    ("USDT_BSC", "0x55d398326f99059fF775485246999027B3197955"),
    ("USDT_TRON", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"),
];

fn find<'t>(table: &[(&str, &'t str)], key: &str) -> Option<&'t str> {
    table.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
}

/// Returns the unit of a coin: `USDT` for `USDT_TRON`.
pub(super) fn unit(asset: &str) -> &str {
    asset.split_once('_').map_or(asset, |(unit, _)| unit)
}

pub(super) fn name(asset: &str) -> &str {
    find(NAMES, unit(asset)).unwrap_or(asset)
}

/// Returns the symbol that is shown beside the coin's name; its first letter by default.
pub(super) fn symbol(asset: &str) -> &str {
    find(SYMBOLS, unit(asset)).unwrap_or_else(|| asset.get(..1).unwrap_or_default())
}

pub(super) fn network_name(network: &str) -> &str {
    find(NETWORKS, network).unwrap_or(network)
}

/// Returns `true` if the coin is a token.
pub(super) fn is_token(asset: &str) -> bool {
    matches!(unit(asset), "USDT" | "USDC")
}

/// The address, amount and coin of a payment.
pub(super) struct PaymentRequest<'a> {
    pub(super) asset: &'a str,
    pub(super) network: &'a str,
    pub(super) decimals: usize,
    pub(super) is_live: bool,
    pub(super) address: &'a str,
    /// The amount in whole coins, as a decimal.
    pub(super) amount: &'a str,
}

/// Returns the URI for wallets; the address alone if there is no common format.
pub(super) fn uri(request: &PaymentRequest<'_>) -> String {
    let PaymentRequest { asset, network, is_live, address, amount, .. } = request;
    let contract = find(CONTRACTS, asset).filter(|_| *is_live);
    match (*network, contract) {
        ("bitcoin" | "litecoin" | "dogecoin", _) => format!("{network}:{address}?amount={amount}"),
        // The addresses include the scheme.
        ("bitcoin-cash", _) => format!("{address}?amount={amount}"),
        ("monero", _) => format!("monero:{address}?tx_amount={amount}"),
        ("solana", _) => format!("solana:{address}?amount={amount}"),
        ("tron", Some(token)) => format!("tron:{address}?token={token}&amount={amount}"),
        _ => eip681_uri(request, contract).unwrap_or_else(|| (*address).to_owned()),
    }
}

/// Returns the URI by EIP-681; `None` for another network, a token without a known contract, or an amount that is not a
/// multiple of the smallest unit.
fn eip681_uri(request: &PaymentRequest<'_>, contract: Option<&str>) -> Option<String> {
    let network = EVM_NETWORKS.iter().find(|network| network.name == request.network)?;
    let chain = if request.is_live { network.live_chain_id } else { network.test_chain_id };
    let units = smallest_units(request.amount, request.decimals)?;
    let address = request.address;
    match contract {
        Some(contract) => {
            Some(format!("ethereum:{contract}@{chain}/transfer?address={address}&uint256={units}"))
        }
        None if is_token(request.asset) => None,
        None => Some(format!("ethereum:{address}@{chain}?value={units}")),
    }
}

/// Converts an amount to the smallest unit by moving the decimal point; `None` if it has more than `decimals` places.
fn smallest_units(amount: &str, decimals: usize) -> Option<String> {
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
    if fraction.len() > decimals {
        return None;
    }
    let digits = format!("{whole}{fraction:0<decimals$}");
    let units = digits.trim_start_matches('0');
    Some(if units.is_empty() { "0".to_owned() } else { units.to_owned() })
}

#[cfg(test)]
mod tests {
    use sha3::{Digest, Keccak256};

    use super::*;

    #[track_caller]
    fn check(asset: &str, network: &str, (decimals, is_live): (usize, bool), amount: &str, expected: &str) {
        let request = PaymentRequest { asset, network, decimals, is_live, address: "ADDRESS", amount };
        assert_eq!(uri(&request), expected);
    }

    #[test]
    fn coins_with_their_own_network_have_their_own_scheme() {
        check("BTC", "bitcoin", (8, true), "0.0025", "bitcoin:ADDRESS?amount=0.0025");
        check("BTC", "bitcoin", (8, false), "0.0025", "bitcoin:ADDRESS?amount=0.0025");
        check("LTC", "litecoin", (8, true), "1", "litecoin:ADDRESS?amount=1");
        check("DOGE", "dogecoin", (8, true), "150.5", "dogecoin:ADDRESS?amount=150.5");
        check("BCH", "bitcoin-cash", (8, true), "0.1", "ADDRESS?amount=0.1");
        check("XMR", "monero", (12, true), "0.3", "monero:ADDRESS?tx_amount=0.3");
        check("SOL", "solana", (9, true), "0.4", "solana:ADDRESS?amount=0.4");
    }

    #[test]
    fn coins_of_evm_networks_use_the_smallest_unit() {
        check("ETH", "ethereum", (18, true), "0.015", "ethereum:ADDRESS@1?value=15000000000000000");
        check("ETH", "ethereum", (18, false), "2", "ethereum:ADDRESS@11155111?value=2000000000000000000");
        check(
            "USDC_BASE",
            "base",
            (6, true),
            "49.9",
            "ethereum:0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913@8453/transfer?address=ADDRESS&uint256=49900000",
        );
        check("USDC_BASE", "base", (6, false), "49.9", "ADDRESS");
    }

    #[test]
    fn tron_names_the_token() {
        let live = "tron:ADDRESS?token=TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t&amount=49.9";
        check("USDT_TRON", "tron", (6, true), "49.9", live);
        check("USDT_TRON", "tron", (6, false), "49.9", "ADDRESS");
    }

    #[test]
    fn amounts_are_converted_to_the_smallest_unit() {
        for (amount, decimals, expected) in [
            ("1", 6, Some("1000000")),
            ("0.000001", 6, Some("1")),
            ("12.5", 1, Some("125")),
            ("0", 6, Some("0")),
            ("0.0000001", 6, None),
        ] {
            assert_eq!(smallest_units(amount, decimals).as_deref(), expected, "{amount}");
        }
    }

    /// EIP-55: the case of each letter encodes a bit of a hash.
    #[test]
    fn contract_addresses_have_valid_checksums() {
        for (asset, contract) in CONTRACTS.iter().filter(|(_, contract)| contract.starts_with("0x")) {
            let lowercase = contract[2..].to_ascii_lowercase();
            let hash = hex::encode(Keccak256::digest(lowercase.as_bytes()));
            let checksummed: String = lowercase
                .chars()
                .zip(hash.chars())
                .map(|(c, hash_digit)| if hash_digit > '7' { c.to_ascii_uppercase() } else { c })
                .collect();
            assert_eq!(*contract, format!("0x{checksummed}"), "{asset}");
        }
    }

    #[test]
    fn every_coin_and_network_has_a_name() {
        for asset in reference_core::asset::Asset::ALL {
            let (code, network) = (asset.code(), asset.facts().network);
            assert!(find(NAMES, unit(code)).is_some() && find(NETWORKS, network).is_some(), "{code}");
        }
    }
}
