//! [`Reason`]: why a signature is invalid. Each reason has a stable name, a message and a remedy.

use std::fmt;

use super::rewriting::Rewriting;

/// The maximum difference between a delivery's time and the receiver's clock, in seconds.
pub const TOLERANCE_SECS: u64 = 300;

/// A reason why a signature is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is no signature header.
    HeaderMissing {
        /// The name of the header.
        name: String,
        /// A header with another prefix that also ends in `-Signature`.
        similar: Option<String>,
    },
    /// There is more than one signature header.
    HeaderRepeated {
        /// The number of occurrences.
        times: usize,
    },
    /// The value of the header is not ASCII text.
    HeaderNotText,
    /// A part of the header is not `name=value`.
    PartForm {
        /// The part, shortened.
        got: String,
    },
    /// The header has no `t`.
    TimeMissing,
    /// The header has more than one `t`.
    TimeRepeated,
    /// `t` is not a whole number.
    TimeForm {
        /// The actual value, shortened.
        got: String,
    },
    /// `t` is in a smaller unit than seconds.
    TimeNotSeconds {
        /// The unit.
        unit: TimeUnit,
    },
    /// The header has no `v1`.
    SignatureMissing,
    /// `v1` is not hexadecimal.
    SignatureForm {
        /// The actual value, shortened.
        got: String,
    },
    /// `v1` is a digest of the right size in another encoding.
    SignatureEncoding {
        /// The encoding.
        encoding: Encoding,
    },
    /// `v1` does not have the size of a SHA-256 digest.
    DigestLength {
        /// The actual number of bytes.
        bytes: usize,
    },
    /// The signature matches the body after a change.
    BodyRewritten {
        /// The change.
        how: Rewriting,
    },
    /// The body was signed without the time.
    BodyOnly,
    /// Time and body were signed, but not joined as `<t>.<body>`.
    TimeJoined {
        /// The way in which they were joined.
        how: MessageLayout,
    },
    /// The signed time is in seconds, but the time in the header is not.
    TimeSignedInSeconds,
    /// The signature is a plain hash of secret and message, without HMAC.
    PlainHash,
    /// The key is the secret without `whsec_`.
    SecretPrefixDropped,
    /// The key is the receiver's secret with `whsec_` before it.
    SecretPrefixAdded,
    /// The key is the decoded secret, not its text.
    SecretDecoded {
        /// The encoding.
        from: Encoding,
    },
    /// The secret of one side has white space at an end.
    SecretPadded {
        /// The side with the white space.
        side: PaddedSide,
    },
    /// The signature matches a secret of the other mode.
    OtherMode {
        /// The name of that secret.
        secret: String,
    },
    /// The signature matches no known secret in any known construction.
    WrongSecret {
        /// The names of the secrets that were tried.
        tried: Vec<String>,
    },
    /// The time is too long ago.
    Stale {
        /// The difference in seconds.
        by_secs: u64,
    },
    /// The time is too far ahead.
    Future {
        /// The difference in seconds.
        by_secs: u64,
    },
}

/// A unit of time other than seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// A thousandth of a second.
    Milliseconds,
    /// A millionth of a second.
    Microseconds,
    /// A billionth of a second.
    Nanoseconds,
}

/// An encoding of bytes as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Base64, in either alphabet.
    Base64,
    /// Hexadecimal.
    Hex,
    /// Hexadecimal with at least one upper-case digit.
    UpperCaseHex,
}

/// A way of joining time and body other than `<t>.<body>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageLayout {
    /// Without a separator.
    Directly,
    /// With this separator.
    SeparatedBy(char),
    /// As `<delivery id>.<t>.<body>`.
    AfterDeliveryId,
    /// As `<t>.<delivery id>.<body>`.
    BeforeDeliveryId,
    /// The body before the time.
    BodyFirst,
}

/// The side whose secret has white space at an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaddedSide {
    /// The secret of the receiver.
    Receiver,
    /// The secret of the sender.
    Sender,
}

impl Reason {
    /// Returns the stable name of the reason.
    pub fn name(&self) -> &'static str {
        match self {
            Reason::HeaderMissing { .. } => "header_missing",
            Reason::HeaderRepeated { .. } => "header_repeated",
            Reason::HeaderNotText => "header_not_text",
            Reason::PartForm { .. } => "part_form",
            Reason::TimeMissing => "time_missing",
            Reason::TimeRepeated => "time_repeated",
            Reason::TimeForm { .. } => "time_form",
            Reason::TimeNotSeconds { .. } => "time_not_seconds",
            Reason::SignatureMissing => "signature_missing",
            Reason::SignatureForm { .. } => "signature_form",
            Reason::SignatureEncoding { .. } => "signature_encoding",
            Reason::DigestLength { .. } => "digest_length",
            Reason::BodyRewritten { .. } => "body_rewritten",
            Reason::BodyOnly => "body_only",
            Reason::TimeJoined { .. } => "time_joined",
            Reason::TimeSignedInSeconds => "time_signed_in_seconds",
            Reason::PlainHash => "plain_hash",
            Reason::SecretPrefixDropped => "secret_prefix_dropped",
            Reason::SecretPrefixAdded => "secret_prefix_added",
            Reason::SecretDecoded { .. } => "secret_decoded",
            Reason::SecretPadded { .. } => "secret_padded",
            Reason::OtherMode { .. } => "other_mode",
            Reason::WrongSecret { .. } => "wrong_secret",
            Reason::Stale { .. } => "stale",
            Reason::Future { .. } => "future",
        }
    }

    /// Returns the remedy.
    pub fn remedy(&self) -> &'static str {
        match self {
            Reason::HeaderMissing { similar: Some(_), .. } => {
                "set the prefix of the sender with --header-prefix"
            }
            Reason::HeaderMissing { similar: None, .. } => {
                "send it with every delivery, and check whether a proxy removes it"
            }
            Reason::HeaderRepeated { .. } => "send one header; it may contain several `v1`",
            Reason::HeaderNotText | Reason::PartForm { .. } => {
                "write the header as `t=<unix seconds>,v1=<64 hexadecimal digits>`"
            }
            Reason::TimeMissing | Reason::TimeRepeated => "write one `t=<unix seconds>` into the header",
            Reason::TimeForm { .. } | Reason::TimeNotSeconds { .. } => {
                "write whole seconds since 1970, in the header and in the signed text"
            }
            Reason::SignatureMissing => "write `v1=<64 hexadecimal digits>` into the header",
            Reason::SignatureForm { .. } | Reason::SignatureEncoding { .. } => {
                "write the 32 bytes of the HMAC as 64 lower-case hexadecimal digits"
            }
            Reason::DigestLength { .. } => "use HMAC with SHA-256, and write all of its 32 bytes",
            Reason::BodyRewritten { .. } => {
                "serialize the body once; sign, send and verify exactly these bytes"
            }
            Reason::BodyOnly | Reason::TimeJoined { .. } => {
                "sign the time exactly as in the header, a period, and the raw body"
            }
            Reason::TimeSignedInSeconds => "write the signed seconds into the header, too",
            Reason::PlainHash => "use HMAC-SHA256 with the secret as its key",
            Reason::SecretPrefixDropped => "use the secret's whole text as the key, with `whsec_`",
            Reason::SecretPrefixAdded => "give the receiver the secret's whole text, with `whsec_`",
            Reason::SecretDecoded { .. } => "use the text of the secret as the key, without decoding it",
            Reason::SecretPadded { side: PaddedSide::Receiver } => {
                "remove the white space from the environment variable"
            }
            Reason::SecretPadded { side: PaddedSide::Sender } => {
                "trim the secret where the sender reads it: a file often ends in a line break"
            }
            Reason::OtherMode { .. } => "sign with the secret of the endpoint that the delivery is sent to",
            Reason::WrongSecret { .. } => {
                "copy the endpoint's secret again: each endpoint and each mode has its own, and it may have been rotated"
            }
            Reason::Stale { .. } => {
                "sign every attempt with its own time, and compare the clocks of both machines"
            }
            Reason::Future { .. } => "correct the sender's clock or the receiver's",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::HeaderMissing { name, similar: None } => write!(f, "the `{name}` header is missing"),
            Reason::HeaderMissing { name, similar: Some(similar) } => {
                write!(f, "the `{name}` header is missing, but there is a `{similar}` header")
            }
            Reason::HeaderRepeated { times } => write!(f, "the signature header occurs {times} times"),
            Reason::HeaderNotText => f.write_str("the signature header is not ASCII text"),
            Reason::PartForm { got } => write!(f, "`{got}` in the header is not `name=value`"),
            Reason::TimeMissing => f.write_str("the header has no `t`"),
            Reason::TimeRepeated => f.write_str("the header has more than one `t`"),
            Reason::TimeForm { got } => write!(f, "`t` is `{got}`; it must be a whole number of seconds"),
            Reason::TimeNotSeconds { unit } => write!(f, "`t` is in {unit}; it must be in seconds"),
            Reason::SignatureMissing => f.write_str("the header has no `v1`"),
            Reason::SignatureForm { got } => {
                write!(f, "`v1` is `{got}`; it must be 64 hexadecimal digits")
            }
            Reason::SignatureEncoding { encoding } => {
                write!(f, "`v1` is in {encoding}; it must be in lower-case hexadecimal digits")
            }
            Reason::DigestLength { bytes } => {
                let algorithm = match bytes {
                    16 => ", the length of MD5",
                    20 => ", the length of SHA-1",
                    48 => ", the length of SHA-384",
                    64 => ", the length of SHA-512",
                    _ => "",
                };
                write!(f, "`v1` has {bytes} bytes{algorithm}; SHA-256 has 32")
            }
            Reason::BodyRewritten { how } => write!(f, "the signature matches {how}, not the received body"),
            Reason::BodyOnly => f.write_str("only the body was signed, without the time"),
            Reason::TimeJoined { how } => write!(f, "the signed text is {how}; it must be `<t>.<body>`"),
            Reason::TimeSignedInSeconds => {
                f.write_str("the signed time is in seconds, but the time in the header is not")
            }
            Reason::PlainHash => f.write_str("secret and message were hashed together, without HMAC"),
            Reason::SecretPrefixDropped => f.write_str("it was signed with the secret without `whsec_`"),
            Reason::SecretPrefixAdded => {
                f.write_str("it was signed with `whsec_` before the receiver's secret")
            }
            Reason::SecretDecoded { from } => {
                write!(f, "it was signed with the secret decoded from {from}, not with its text")
            }
            Reason::SecretPadded { side: PaddedSide::Receiver } => {
                f.write_str("the receiver's secret has white space at one end, and the sender's does not")
            }
            Reason::SecretPadded { side: PaddedSide::Sender } => {
                f.write_str("the sender's secret has white space at its end, and the receiver's does not")
            }
            Reason::OtherMode { secret } => write!(f, "it was signed with the other mode's secret, {secret}"),
            Reason::WrongSecret { tried } => {
                write!(f, "the signature matches none of the secrets: {}", tried.join(", "))
            }
            Reason::Stale { by_secs } => {
                write!(f, "the time is {by_secs} s old; at most {TOLERANCE_SECS} s are accepted")
            }
            Reason::Future { by_secs } => {
                write!(f, "the time is {by_secs} s ahead; at most {TOLERANCE_SECS} s are accepted")
            }
        }
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TimeUnit::Milliseconds => "milliseconds",
            TimeUnit::Microseconds => "microseconds",
            TimeUnit::Nanoseconds => "nanoseconds",
        })
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Encoding::Base64 => "base64",
            Encoding::Hex => "hexadecimal",
            Encoding::UpperCaseHex => "upper-case hexadecimal digits",
        })
    }
}

impl fmt::Display for MessageLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessageLayout::Directly => f.write_str("`<t><body>`"),
            MessageLayout::SeparatedBy(separator) => write!(f, "`<t>{}<body>`", separator.escape_default()),
            MessageLayout::AfterDeliveryId => f.write_str("`<delivery id>.<t>.<body>`"),
            MessageLayout::BeforeDeliveryId => f.write_str("`<t>.<delivery id>.<body>`"),
            MessageLayout::BodyFirst => f.write_str("`<body>.<t>`"),
        }
    }
}
