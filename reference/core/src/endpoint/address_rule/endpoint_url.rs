//! The rules for an endpoint's URL that need no name resolution.
//!
//! The URL standard's own parser reads the URL, because it decodes `127.1`, `0x7f000001` and full-width digits.
//! The URL is then rebuilt from its parts, so the stored URL is the one that was checked.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use url::Url;

use super::{Refusal, URL_BYTES_MAX, check_address};

const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;
const PORT_HTTPS: u16 = 443;

/// The zone whose names only the simulated network resolves.
const SIMULATED_ZONE: &str = "sim";

/// Zones that are not part of the open internet, by RFC 6761, 6762 (with appendix G), 7686, 8375 and
/// ICANN's reservation of `internal`. `example`, `test` and `invalid` are left to the resolver.
const LOCAL_ZONES: &[&str] = &[
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "home.arpa",
    "lan",
    "onion",
];

/// Names of the metadata services. Most resolve to refused addresses anyway; refusing the name when
/// it is typed shows the owner the reason.
const METADATA_NAMES: &[&str] = &[
    "metadata.google.internal",
    "metadata.goog",
    "metadata",
    "instance-data",
    "instance-data.ec2.internal",
    "metadata.azure.internal",
    "metadata.packet.net",
    "metadata.platformequinix.com",
    "metadata.tencentyun.com",
    "api.metadata.cloud.ibm.com",
];

/// The URL of a webhook endpoint. Public as far as can be checked without resolving its host name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointUrl {
    text: String,
    host: Host,
    port: u16,
    path_start: usize,
}

/// The host of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Host {
    /// A name, in lower-case ASCII and without a trailing dot.
    Name(String),
    /// A public IP address.
    Address(IpAddr),
}

impl EndpointUrl {
    fn from_parts(host: Host, port: u16, target: &str) -> EndpointUrl {
        let authority = match port {
            PORT_HTTPS => host.to_string(),
            _ => format!("{host}:{port}"),
        };
        let text = format!("https://{authority}{target}");
        EndpointUrl { path_start: text.len() - target.len(), text, host, port }
    }

    /// Returns the host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Returns the port; 443 by default.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the value of the `Host` header: the host, and the port unless it is 443.
    pub fn authority(&self) -> &str {
        &self.text["https://".len()..self.path_start]
    }

    /// Returns path and query, as in the request line.
    pub fn path_and_query(&self) -> &str {
        &self.text[self.path_start..]
    }

    /// Returns `true` if the host belongs to the simulated network (`shop.sim`), to which the rule for resolved
    /// addresses does not apply.
    pub fn is_simulated(&self) -> bool {
        matches!(&self.host, Host::Name(name) if is_in_zone(name, SIMULATED_ZONE))
    }
}

/// The whole URL in its normalized form. Parsing it again gives the same URL.
impl fmt::Display for EndpointUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Address(IpAddr::V4(ip)) => ip.fmt(f),
            Host::Address(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
        }
    }
}

/// Parses and checks a URL as its owner typed it.
///
/// # Errors
///
/// The first [`Refusal`] that applies: a URL that is too long, has an ambiguous character, is unreadable, is not https,
/// has a user name, a fragment or port 0, names a host that cannot be public, or is too long in its normalized form.
pub fn parse_endpoint_url(text: &str) -> Result<EndpointUrl, Refusal> {
    if text.len() > URL_BYTES_MAX {
        return Err(Refusal::TooLong { bytes: text.len() });
    }
    if let Some(c) = text.chars().find(|&c| c == '\\' || c.is_whitespace() || c.is_control()) {
        return Err(Refusal::Character(c));
    }
    let url = Url::parse(text).map_err(Refusal::Unreadable)?;
    if url.scheme() != "https" {
        return Err(Refusal::NotHttps { scheme: url.scheme().to_owned() });
    }
    // The parsed URL does not show an empty user name (`https://@host`), so the text is checked.
    if has_at_sign_before_host(text) {
        return Err(Refusal::UserInfo);
    }
    if url.fragment().is_some() {
        return Err(Refusal::Fragment);
    }
    let port = url.port().unwrap_or(PORT_HTTPS);
    if port == 0 {
        return Err(Refusal::PortZero);
    }
    let host = match url.host() {
        None => return Err(Refusal::Unreadable(url::ParseError::EmptyHost)),
        Some(url::Host::Domain(name)) => Host::Name(parse_host_name(name)?),
        Some(url::Host::Ipv4(ip)) => Host::Address(check_literal(ip.into())?),
        Some(url::Host::Ipv6(ip)) => Host::Address(check_literal(ip.into())?),
    };
    let endpoint =
        EndpointUrl::from_parts(host, port, &url[url::Position::BeforePath..url::Position::AfterQuery]);
    // Percent-encoding and punycode make text longer than it was typed.
    if endpoint.text.len() > URL_BYTES_MAX {
        return Err(Refusal::TooLong { bytes: endpoint.text.len() });
    }
    Ok(endpoint)
}

fn has_at_sign_before_host(text: &str) -> bool {
    let (_, rest) = text.split_once(':').expect("a parsed URL has a scheme");
    let authority = rest.trim_start_matches('/').split(['/', '?', '#']).next();
    authority.is_some_and(|authority| authority.contains('@'))
}

fn check_literal(ip: IpAddr) -> Result<IpAddr, Refusal> {
    check_address(ip)?;
    Ok(ip)
}

fn parse_host_name(name: &str) -> Result<String, Refusal> {
    // One dot at the end stands for the DNS root and is redundant. A second one would be an empty label.
    let host = name.strip_suffix('.').unwrap_or(name).to_owned();
    let label_fits = |label: &str| (1..=LABEL_BYTES_MAX).contains(&label.len());
    if host.len() > NAME_BYTES_MAX || !host.split('.').all(label_fits) {
        return Err(Refusal::BadName { host });
    }
    if METADATA_NAMES.contains(&host.as_str()) {
        return Err(Refusal::MetadataName { host });
    }
    if let Some(zone) = LOCAL_ZONES.iter().find(|zone| is_in_zone(&host, zone)) {
        return Err(Refusal::LocalName { host, zone });
    }
    if !host.contains('.') {
        return Err(Refusal::SingleLabel { host });
    }
    Ok(host)
}

fn is_in_zone(host: &str, zone: &str) -> bool {
    host.strip_suffix(zone).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}
