//! The errors of wallets. No message repeats a secret.

use std::fmt;

use super::{Script, name, version::Version};
use crate::{asset::AddressFormat, mode::Mode};

/// The reason why a key or an address is refused. The message states the problem and, in most cases, what is allowed.
///
/// The message never contains the refused text, because a mistyped private key reveals most of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WalletError {
    /// A private key in some spelling.
    PrivateKey,
    /// Longer than any key or address.
    TooLong,
    /// A character outside the base58 alphabet.
    NotBase58,
    /// The checksum does not match: a typing error, or a part is missing.
    Checksum,
    /// Valid base58check of the wrong length.
    Length {
        /// The number of bytes in the text.
        got: usize,
        /// The expected number of bytes.
        expected: usize,
    },
    /// An extended key with unknown version bytes.
    UnknownVersion([u8; 4]),
    /// An extended key for another coin, or for another kind of address.
    OtherCoin {
        /// The kind of the given key: `dgub`.
        got: &'static str,
        /// The format of the wallet.
        format: AddressFormat,
        /// The mode the wallet is for.
        mode: Mode,
    },
    /// A key or an address of a network that is not this mode's.
    OtherNetwork {
        /// The kind of the given key or address: `tpub`, `stagenet address`.
        got: &'static str,
        /// The format of the wallet.
        format: AddressFormat,
        /// The mode the wallet is for.
        mode: Mode,
    },
    /// The key's prefix fits several address types, and `script` is missing.
    NeedsScript {
        /// The kind of the given key: `xpub`.
        got: &'static str,
    },
    /// The prefix of the key and `script` name different address types.
    OtherScript {
        /// The kind of the given key: `zpub`.
        got: &'static str,
        /// The script that the prefix determines.
        script: Script,
    },
    /// This coin has one kind of address only.
    NoScript(AddressFormat),
    /// The public key is not a point of the curve.
    NoPoint,
    /// A master key that claims to have a parent.
    Contradiction,
    /// A key below the account: its addresses would not be those that the owner's wallet watches.
    BelowAccount,
    /// A key at the maximum depth: nothing can be derived from it.
    TooDeep,
    /// This coin needs an extended public key, not addresses.
    NeedsKey(AddressFormat),
    /// This coin needs a list of addresses, not an extended public key.
    NeedsList(AddressFormat),
    /// An extended key has no address of this number.
    NoSuchAddress(u32),
    /// An integrated address, which contains a payment id and is not a separate address.
    IntegratedAddress,
    /// The text is not an address of this coin.
    NotAnAddress(AddressFormat),
    /// A list without an address.
    EmptyList,
    /// The same address a second time.
    Repeated {
        /// The position of the second one, from 1.
        position: usize,
        /// The position of the first one, from 1.
        first: usize,
    },
    /// An address of a list is refused.
    Listed {
        /// Its position, from 1.
        position: usize,
        /// The reason.
        reason: Box<WalletError>,
    },
}

impl WalletError {
    /// Returns `true` if the error is about the script rather than the key.
    pub const fn is_about_script(&self) -> bool {
        matches!(
            self,
            WalletError::NeedsScript { .. } | WalletError::OtherScript { .. } | WalletError::NoScript(_)
        )
    }
}

impl fmt::Display for WalletError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WalletError::PrivateKey => f.write_str(
                "this is a private key: never give it to a server; move the coins if anyone may have seen it, \
                 and give the extended public key",
            ),
            WalletError::TooLong => f.write_str("this is longer than any key or address"),
            WalletError::NotBase58 => {
                f.write_str("this is not base58: letters and digits without `0`, `O`, `I` and `l`")
            }
            WalletError::Checksum => {
                f.write_str("the checksum does not match: a character is wrong or missing; copy it again")
            }
            WalletError::Length { got, expected } => write!(f, "this has {got} bytes instead of {expected}"),
            WalletError::UnknownVersion(bytes) => {
                write!(f, "this begins with the bytes {}, which are not those of an extended key", hex::encode(bytes))
            }
            WalletError::OtherCoin { got, format, mode } => {
                write!(f, "this is a {got}; a {} wallet accepts {}", name(*format), AcceptedKeys(*format, *mode))
            }
            WalletError::OtherNetwork { got, format, mode } => {
                write!(f, "this is a {got}; a {} wallet in {mode} mode accepts {}", name(*format), AcceptedKeys(*format, *mode))
            }
            WalletError::NeedsScript { got } => {
                let [segwit, nested_segwit, legacy] = Script::ALL;
                let scripts = format_args!("{segwit} (native segwit), {nested_segwit} or {legacy}");
                write!(f, "wallets export an {got} for several kinds of address; select one: {scripts}")
            }
            WalletError::OtherScript { got, script } => {
                write!(f, "this is a {got}, whose address type is {script}; leave the script out, or give another key")
            }
            WalletError::NoScript(format) => {
                write!(f, "{} has one kind of address only; leave the script out", name(*format))
            }
            WalletError::NoPoint => f.write_str("this is not a valid key: its point is not on the curve"),
            WalletError::Contradiction => f.write_str("this is not a valid key: it has a parent and depth 0"),
            WalletError::BelowAccount => f.write_str(
                "this key is below the account level; give the account's own key, such as m/84'/0'/0' or m/44'/60'/0'",
            ),
            WalletError::TooDeep => f.write_str("this key is too deep in the hierarchy to derive addresses; give the account's own key"),
            WalletError::NeedsKey(format) => {
                write!(f, "a {} wallet needs an extended public key, not a list of addresses", name(*format))
            }
            WalletError::NeedsList(format) => {
                write!(f, "a {} wallet needs a list of addresses: its keys have no public derivation", name(*format))
            }
            WalletError::NoSuchAddress(n) => {
                write!(f, "there is no address {n}: an extended public key has addresses 0 to 2147483647")
            }
            WalletError::IntegratedAddress => {
                f.write_str("this is an integrated address, which contains a payment id; give subaddresses")
            }
            WalletError::NotAnAddress(format) => write!(f, "this is not a valid {} address", name(*format)),
            WalletError::EmptyList => f.write_str("the list is empty; give one address per line"),
            WalletError::Repeated { position, first } => {
                write!(f, "address {position} of the list is address {first} again; give each one once")
            }
            WalletError::Listed { position, reason } => write!(f, "address {position} of the list: {reason}"),
        }
    }
}

impl std::error::Error for WalletError {}

/// Displays the keys or addresses that a wallet of this format and mode accepts.
struct AcceptedKeys(AddressFormat, Mode);

impl fmt::Display for AcceptedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.1) {
            (AddressFormat::Solana, _) => f.write_str("addresses of 32 bytes in base58"),
            (AddressFormat::Monero, Mode::Live) => f.write_str("mainnet addresses (4…, 8…)"),
            (AddressFormat::Monero, Mode::Test) => f.write_str("stagenet addresses (5…, 7…)"),
            (format, mode) => {
                for (n, version) in Version::accepted_for(format, mode).enumerate() {
                    f.write_str(if n == 0 { "" } else { " or " })?;
                    f.write_str(version.prefix)?;
                }
                Ok(())
            }
        }
    }
}
