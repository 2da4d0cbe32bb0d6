//! CashAddr, the address format of Bitcoin Cash.
//!
//! It has the alphabet of bech32 and a longer checksum: a BCH code of 40 bits over GF(2⁵).

const ALPHABET: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
const CHECKSUM_LEN: u32 = 8;
/// The version byte: pay to public key hash, 160 bits.
const P2PKH: u8 = 0;

/// Returns the address that pays to a public key's hash: `prefix:q…`.
pub(super) fn pay_to_public_key_hash(prefix: &str, hash: &[u8; 20]) -> String {
    let mut payload = vec![P2PKH];
    payload.extend(hash);
    let mut symbols = groups_of_five(&payload);
    let check = checksum(prefix, &symbols);
    symbols.extend((0..CHECKSUM_LEN).rev().map(|n| (check >> (5 * n)) as u8 & 31));

    let mut text = format!("{prefix}:");
    text.extend(symbols.iter().map(|&symbol| char::from(ALPHABET[usize::from(symbol)])));
    text
}

/// Returns the bits in groups of five, the last one padded with zeros.
fn groups_of_five(bytes: &[u8]) -> Vec<u8> {
    let bit = |n: usize| bytes.get(n / 8).is_some_and(|byte| byte >> (7 - n % 8) & 1 == 1);
    (0..bytes.len() * 8)
        .step_by(5)
        .map(|first| (first..first + 5).fold(0, |group, n| group << 1 | u8::from(bit(n))))
        .collect()
}

fn checksum(prefix: &str, symbols: &[u8]) -> u64 {
    let prefix = prefix.bytes().map(|byte| byte & 31).chain([0]);
    let checksum_space = [0; CHECKSUM_LEN as usize];
    polymod(prefix.chain(symbols.iter().copied()).chain(checksum_space))
}

/// Returns the remainder of a polynomial divided by the code's generator, plus one. The coefficients of the polynomial,
/// highest first, are 1 and `symbols`.
fn polymod(symbols: impl Iterator<Item = u8>) -> u64 {
    /// The constants that each bit of the outgoing symbol adds.
    const GENERATOR: [u64; 5] =
        [0x98_f2bc_8e61, 0x79_b76d_99e2, 0xf3_3e5f_b3c4, 0xae_2eab_e2a8, 0x1e_4f43_e470];
    let mut remainder = 1;
    for symbol in symbols {
        let top = remainder >> 35;
        remainder = (remainder & 0x07_ffff_ffff) << 5 ^ u64::from(symbol);
        for (n, feedback) in GENERATOR.iter().enumerate() {
            if top >> n & 1 == 1 {
                remainder ^= feedback;
            }
        }
    }
    remainder ^ 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(hash: &str, expected: &str) {
        let hash: [u8; 20] = hex::decode(hash).unwrap().try_into().unwrap();
        let (prefix, _) = expected.split_once(':').unwrap();
        assert_eq!(pay_to_public_key_hash(prefix, &hash), expected);
    }

    #[test]
    fn the_vectors_of_the_cashaddr_specification_match() {
        check(
            "f5bf48b397dae70be82b3cca4793f8eb2b6cdac9",
            "bitcoincash:qr6m7j9njldwwzlg9v7v53unlr4jkmx6eylep8ekg2",
        );
        check(
            "76a04053bda0a88bda5177b86a15c3b29f559873",
            "bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a",
        );
        check(
            "cb481232299cd5743151ac4b2d63ae198e7bb0a9",
            "bitcoincash:qr95sy3j9xwd2ap32xkykttr4cvcu7as4y0qverfuy",
        );
        check(
            "011f28e473c95f4013d7d53ec5fbc3b42df8ed10",
            "bitcoincash:qqq3728yw0y47sqn6l2na30mcw6zm78dzqre909m2r",
        );
    }

    #[test]
    fn the_polymod_of_a_valid_address_is_zero() {
        for text in [
            "bchtest:qqaz6s295ncfs53m86qj0uw6sl8u2kuw0ymst35fx4",
            "bchtest:pr6m7j9njldwwzlg9v7v53unlr4jkmx6eyvwc0uz5t",
            "bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a",
        ] {
            let (prefix, rest) = text.split_once(':').unwrap();
            let symbols = rest.bytes().map(|byte| ALPHABET.iter().position(|&c| c == byte).unwrap() as u8);
            assert_eq!(polymod(prefix.bytes().map(|byte| byte & 31).chain([0]).chain(symbols)), 0, "{text}");
        }
    }
}
