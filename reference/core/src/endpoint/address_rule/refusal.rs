//! The reasons for refusing an address: each has a name for logs and a sentence fragment for messages.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

/// The largest number of bytes of a URL.
pub const URL_BYTES_MAX: usize = 2_048;

/// The reason why an address may not receive webhooks.
///
/// Never contains the URL as typed, which may have a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// More bytes than a URL may have.
    TooLong {
        /// Its length in bytes.
        bytes: usize,
    },
    /// A character that some URL parsers drop or replace, so that two parsers may see different hosts.
    Character(char),
    /// Not a URL, or one with an invalid host.
    Unreadable(url::ParseError),
    /// Another scheme than `https`.
    NotHttps {
        /// Its scheme.
        scheme: String,
    },
    /// A user name or a password before the host.
    UserInfo,
    /// A fragment, which would never be sent.
    Fragment,
    /// Port 0.
    PortZero,
    /// A host name that is invalid in DNS.
    BadName {
        /// The host as parsed.
        host: String,
    },
    /// A host without a dot, which only a local network can resolve.
    SingleLabel {
        /// The host as parsed.
        host: String,
    },
    /// A host in a zone which is not part of the open internet.
    LocalName {
        /// The host as parsed.
        host: String,
        /// The zone it lies in.
        zone: &'static str,
    },
    /// A name under which a cloud serves the credentials of its machines.
    MetadataName {
        /// The host as parsed.
        host: String,
    },
    /// An address, typed or resolved, outside the open internet.
    NotPublic {
        /// The address.
        ip: IpAddr,
        /// The embedded IPv4 address that is not public, if that is the reason.
        inner: Option<Ipv4Addr>,
        /// The range that contains it.
        range: Range,
    },
    /// The name resolved to no address.
    Unresolved,
}

/// The range of an address that is not public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Range {
    /// The metadata service of a cloud provider.
    Metadata,
    /// `0.0.0.0` and `::`.
    Unspecified,
    /// "This network", 0.0.0.0/8.
    ThisNetwork,
    /// Loopback addresses.
    Loopback,
    /// RFC 1918.
    Private,
    /// Carrier-grade NAT, RFC 6598.
    Shared,
    /// Link-local addresses.
    LinkLocal,
    /// RFC 4193.
    UniqueLocal,
    /// The predecessor of unique-local, RFC 3879.
    SiteLocal,
    /// Multicast addresses.
    Multicast,
    /// The broadcast address.
    Broadcast,
    /// Addresses for documentation.
    Documentation,
    /// Benchmark networks, RFC 2544 and RFC 5180.
    Benchmark,
    /// Reserved for protocols: relays, tunnels, identifiers.
    Protocol,
    /// Reserved by IANA.
    Reserved,
}

impl Refusal {
    /// Returns the name of the violated rule, for logs and counters.
    pub const fn rule(&self) -> &'static str {
        match self {
            Refusal::TooLong { .. } => "too_long",
            Refusal::Character(_) => "character",
            Refusal::Unreadable(_) => "unreadable",
            Refusal::NotHttps { .. } => "not_https",
            Refusal::UserInfo => "user_info",
            Refusal::Fragment => "fragment",
            Refusal::PortZero => "port_zero",
            Refusal::BadName { .. } => "bad_name",
            Refusal::SingleLabel { .. } => "single_label",
            Refusal::LocalName { .. } => "local_name",
            Refusal::MetadataName { .. } => "metadata_name",
            Refusal::NotPublic { range, .. } => range.rule(),
            Refusal::Unresolved => "unresolved",
        }
    }
}

impl Range {
    /// Returns the name of the rule that refuses this range.
    pub const fn rule(self) -> &'static str {
        match self {
            Range::Metadata => "metadata",
            Range::Unspecified => "unspecified",
            Range::ThisNetwork => "this_network",
            Range::Loopback => "loopback",
            Range::Private => "private",
            Range::Shared => "shared",
            Range::LinkLocal => "link_local",
            Range::UniqueLocal => "unique_local",
            Range::SiteLocal => "site_local",
            Range::Multicast => "multicast",
            Range::Broadcast => "broadcast",
            Range::Documentation => "documentation",
            Range::Benchmark => "benchmark",
            Range::Protocol => "protocol",
            Range::Reserved => "reserved",
        }
    }

    const fn description(self) -> &'static str {
        match self {
            Range::Metadata => "a cloud metadata address",
            Range::Unspecified => "the unspecified address",
            Range::ThisNetwork => "an address of \"this network\"",
            Range::Loopback => "a loopback address",
            Range::Private => "a private address",
            Range::Shared => "a shared (carrier-grade NAT) address",
            Range::LinkLocal => "a link-local address",
            Range::UniqueLocal => "a unique-local address",
            Range::SiteLocal => "a site-local address",
            Range::Multicast => "a multicast address",
            Range::Broadcast => "the broadcast address",
            Range::Documentation => "a documentation address",
            Range::Benchmark => "a benchmarking address",
            Range::Protocol => "an address set aside for protocols",
            Range::Reserved => "a reserved address",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const PUBLIC_NAME: &str = "a public host name such as `hooks.shop.example` is allowed";
        match self {
            Refusal::TooLong { bytes } => {
                write!(f, "the URL has {bytes} bytes; at most {URL_BYTES_MAX} are allowed")
            }
            Refusal::Character(c) => write!(
                f,
                "the URL contains {c:?}; white space, control characters and backslashes must be percent-encoded"
            ),
            Refusal::Unreadable(reason) => {
                write!(f, "not a URL ({reason}); allowed is `https://host[:port]/path`")
            }
            Refusal::NotHttps { scheme } => write!(f, "the scheme is `{scheme}`; only `https` is allowed"),
            Refusal::UserInfo => {
                f.write_str("the URL carries a user name or password; only host, port, path and query are allowed")
            }
            Refusal::Fragment => f.write_str(
                "the URL carries a fragment (`#…`), which is never sent; only host, port, path and query are allowed",
            ),
            Refusal::PortZero => f.write_str("the port is `0`; 1 to 65535 are allowed"),
            Refusal::BadName { host } => write!(
                f,
                "`{host}` is not a host name; labels of 1 to 63 bytes are allowed, 253 bytes in all"
            ),
            Refusal::SingleLabel { host } => write!(f, "`{host}` is a name without a dot; {PUBLIC_NAME}"),
            Refusal::LocalName { host, zone } => {
                write!(f, "`{host}` is a local name (`{zone}`); {PUBLIC_NAME}")
            }
            Refusal::MetadataName { host } => write!(f, "`{host}` is a cloud metadata name; {PUBLIC_NAME}"),
            Refusal::NotPublic { ip, inner: Some(inner), range } => {
                write!(f, "`{ip}` contains `{inner}`, {}; only public addresses are allowed", range.description())
            }
            Refusal::NotPublic { ip, inner: None, range } => {
                write!(f, "`{ip}` is {}; only public addresses are allowed", range.description())
            }
            Refusal::Unresolved => {
                f.write_str("the name resolves to no address; a name with public addresses is allowed")
            }
        }
    }
}

impl std::error::Error for Refusal {}
