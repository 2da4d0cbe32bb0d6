//! The addresses of a server: the listening address, the public URL, and the start of links.

use std::{
    borrow::Cow,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use http::Uri;

use crate::config::SandboxAccess;

/// The public URL of the server, as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PublicUrl {
    /// The URL without a trailing slash.
    text: String,
    /// The length of the origin in `text`; the rest is the path prefix.
    origin_len: usize,
    host: String,
}

impl PublicUrl {
    /// Parses `https://pay.example:8443/prefix`.
    pub(crate) fn parse(text: &str) -> Result<PublicUrl, String> {
        let invalid = || {
            format!(
                "the public address is `{text}`; use `http://` or `https://`, a host, optionally a port and a path"
            )
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(invalid)?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let host = Authority::parse(authority).ok_or_else(invalid)?.host.to_string();
        // `Uri` checks the characters of the path, but also accepts a query.
        let is_valid_path = path.parse::<Uri>().is_ok_and(|uri| uri.query().is_none()) && !path.contains('#');
        if !matches!(scheme, "http" | "https") || !(path.is_empty() || is_valid_path) {
            return Err(invalid());
        }
        let origin_len = scheme.len() + "://".len() + authority.len();
        Ok(PublicUrl { text: text.trim_end_matches('/').to_string(), origin_len, host })
    }

    pub(crate) fn origin(&self) -> &str {
        &self.text[..self.origin_len]
    }

    /// Returns the path after the origin: `/prefix`, or empty.
    fn prefix(&self) -> &str {
        &self.text[self.origin_len..]
    }
}

/// A host and an optional port, as in a `Host` header. Contains only characters that are safe in a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Authority<'a> {
    pub(crate) host: &'a str,
}

impl<'a> Authority<'a> {
    /// Parses `shop.example:8080`, `127.0.0.1` or `[::1]:8080`.
    pub(crate) fn parse(text: &'a str) -> Option<Authority<'a>> {
        let host_end = match text.strip_prefix('[') {
            Some(inside) => {
                let end = inside.find(']')?;
                inside[..end].parse::<Ipv6Addr>().ok()?;
                // Both brackets count.
                end + 2
            }
            None => {
                let end = text.find(':').unwrap_or(text.len());
                let is_allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
                (end > 0 && text[..end].bytes().all(is_allowed)).then_some(end)?
            }
        };
        let (host, port) = text.split_at(host_end);
        let is_valid_port = match port.strip_prefix(':') {
            Some(digits) => digits.bytes().all(|b| b.is_ascii_digit()) && digits.parse::<u16>().is_ok(),
            None => port.is_empty(),
        };
        is_valid_port.then_some(Authority { host })
    }

    /// Returns the IP address if the host is one.
    pub(crate) fn ip(self) -> Option<IpAddr> {
        self.host.trim_matches(['[', ']']).parse().ok()
    }
}

/// The addresses of one server.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    /// The URL of the listening address, to which clients on this machine can connect.
    listening: String,
    port: u16,
    public: Option<PublicUrl>,
    access: SandboxAccess,
    /// The start of the world's paths after the public prefix: `/w/abc`; empty for the first world.
    world_prefix: String,
    /// The URL that is shown to users: the public URL or the listening URL, followed by `world_prefix`.
    url: String,
    /// `true` if the server accepts https besides http.
    has_tls: bool,
}

impl Addresses {
    pub(crate) fn new(bound: SocketAddr, public: Option<PublicUrl>, access: SandboxAccess) -> Addresses {
        let mut reachable = bound;
        // Clients cannot connect to the unspecified address, but to loopback.
        if bound.ip().is_unspecified() {
            reachable.set_ip(match bound.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        let listening = format!("http://{reachable}");
        let url = public.as_ref().map_or(&listening, |public| &public.text).clone();
        let world_prefix = String::new();
        Addresses { listening, port: bound.port(), public, access, world_prefix, url, has_tls: false }
    }

    /// Changes the scheme of the listening URL to https. A public URL stays as configured.
    pub(crate) fn with_tls(mut self) -> Addresses {
        self.listening = self.listening.replacen("http://", "https://", 1);
        if self.public.is_none() {
            self.url = format!("{}{}", self.listening, self.world_prefix);
        }
        self.has_tls = true;
        self
    }

    fn scheme(&self) -> &'static str {
        if self.has_tls { "https://" } else { "http://" }
    }

    /// Returns the addresses of a world that was opened on request.
    pub(crate) fn for_world(&self, id: &str) -> Addresses {
        let world_prefix = format!("/w/{id}");
        Addresses { url: format!("{}{world_prefix}", self.url), world_prefix, ..self.clone() }
    }

    /// Returns the id of the world; `None` for the first world of the server.
    pub(crate) fn world_id(&self) -> Option<&str> {
        self.world_prefix.strip_prefix("/w/")
    }

    /// Returns the URL at which clients on this machine reach the server directly, without a proxy.
    pub(crate) fn listening_url(&self) -> &str {
        &self.listening
    }

    /// Returns the URL that is shown to users.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the start of links in the response to a request with this `Host` header: the public URL if there is one,
    /// otherwise the requested address if it is valid.
    pub(crate) fn base_url(&self, authority: Option<&str>) -> Cow<'_, str> {
        match authority {
            _ if self.public.is_some() => self.url().into(),
            Some(requested) if self.listening[self.scheme().len()..] == *requested => self.url().into(),
            Some(requested) if Authority::parse(requested).is_some() => {
                format!("{}{requested}{}", self.scheme(), self.world_prefix).into()
            }
            _ => self.url().into(),
        }
    }

    /// Returns a path without the public prefix, if it has one. The world's prefix stays.
    pub(crate) fn without_prefix<'p>(&self, path: &'p str) -> &'p str {
        let prefix = self.public.as_ref().map_or("", PublicUrl::prefix);
        match path.strip_prefix(prefix) {
            Some("") => "/",
            Some(rest) if rest.starts_with('/') => rest,
            _ => path,
        }
    }

    /// Returns `true` if a request from loopback counts as sent on this machine, not through a tunnel or proxy on it.
    pub(crate) fn trusts_loopback(&self) -> bool {
        self.public.is_none() || self.access == SandboxAccess::TrustLoopback
    }

    /// Returns the listening port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the start of the paths of links: the public prefix and the world's prefix, such as `/prefix/w/abc`.
    /// Empty without either.
    pub(crate) fn prefix(&self) -> &str {
        let origin_len = self.public.as_ref().map_or(self.listening.len(), |public| public.origin_len);
        &self.url[origin_len..]
    }

    /// Returns `true` if `host` is that of the public URL.
    pub(crate) fn is_public_host(&self, host: &str) -> bool {
        self.public.as_ref().is_some_and(|public| public.host.eq_ignore_ascii_case(host))
    }

    /// Returns `true` if an `Origin` header names the requested host, `authority`, or the public URL.
    pub(crate) fn is_own_origin(&self, origin: &str, authority: &str) -> bool {
        let https_host = origin.strip_prefix("https://").filter(|_| self.has_tls);
        let host = origin.strip_prefix("http://").or(https_host).filter(|host| !host.is_empty());
        host.is_some_and(|host| host.eq_ignore_ascii_case(authority))
            || self.public.as_ref().is_some_and(|public| public.origin().eq_ignore_ascii_case(origin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_authority(text: &str, host: Option<&str>) {
        assert_eq!(Authority::parse(text).map(|authority| authority.host), host, "{text}");
    }

    #[test]
    fn an_authority_is_a_host_with_an_optional_port() {
        check_authority("shop.example", Some("shop.example"));
        check_authority("my_service:8080", Some("my_service"));
        check_authority("127.0.0.1:80", Some("127.0.0.1"));
        check_authority("[::1]:8080", Some("[::1]"));
        check_authority("[::1]", Some("[::1]"));
    }

    #[test]
    fn anything_else_is_not_an_authority() {
        for text in [
            "", ":80", "a:", "a:+1", "a:65536", "a:1:2", "a b", "user@a", "a/b", "a\"", "<a>", "é", "[::1",
            "[::1]x", "[a]", "[]", "::1", "a%41",
        ] {
            check_authority(text, None);
        }
    }

    fn addresses(bound: &str, public: Option<&str>) -> Addresses {
        let public = public.map(|text| PublicUrl::parse(text).expect("public addresses in tests are valid"));
        let bound = bound.parse().expect("bound addresses in tests are valid");
        Addresses::new(bound, public, SandboxAccess::default())
    }

    #[track_caller]
    fn check_base(bound: &str, public: Option<&str>, requested_host: Option<&str>, base: &str) {
        assert_eq!(addresses(bound, public).base_url(requested_host), base);
    }

    #[test]
    fn links_start_with_the_requested_host() {
        check_base("127.0.0.1:8080", None, Some("127.0.0.1:8080"), "http://127.0.0.1:8080");
        check_base("127.0.0.1:8080", None, Some("localhost:8080"), "http://localhost:8080");
        check_base("127.0.0.1:8080", None, Some("a\"><script>"), "http://127.0.0.1:8080");
        check_base("127.0.0.1:8080", None, Some(""), "http://127.0.0.1:8080");
        check_base("127.0.0.1:8080", None, None, "http://127.0.0.1:8080");
        check_base("0.0.0.0:8080", None, None, "http://127.0.0.1:8080");
        check_base("[::]:8080", None, None, "http://[::1]:8080");
    }

    #[test]
    fn links_start_with_the_public_address_if_there_is_one() {
        let public = Some("https://pay.example/shop/");
        check_base("127.0.0.1:8080", public, Some("localhost:8080"), "https://pay.example/shop");
        check_base("127.0.0.1:8080", public, None, "https://pay.example/shop");
    }

    #[test]
    fn with_tls_links_use_https_and_both_schemes_are_own_origins() {
        let addresses = addresses("127.0.0.1:8080", None).with_tls();
        assert_eq!(addresses.url(), "https://127.0.0.1:8080");
        for (requested_host, base) in [
            (Some("127.0.0.1:8080"), "https://127.0.0.1:8080"),
            (Some("localhost:8080"), "https://localhost:8080"),
            (None, "https://127.0.0.1:8080"),
        ] {
            assert_eq!(addresses.base_url(requested_host), base);
        }
        for (origin, is_own) in [
            ("https://localhost:8080", true),
            ("http://localhost:8080", true),
            ("https://localhost:9999", false),
            ("https://", false),
        ] {
            assert_eq!(addresses.is_own_origin(origin, "localhost:8080"), is_own, "{origin}");
        }
    }

    #[track_caller]
    fn check_prefix_removal(public: &str, path: &str, expected: &str) {
        assert_eq!(addresses("127.0.0.1:8080", Some(public)).without_prefix(path), expected);
    }

    #[test]
    fn the_public_prefix_is_stripped_only_before_a_slash() {
        check_prefix_removal("https://pay.example/shop", "/shop/v1/charges", "/v1/charges");
        check_prefix_removal("https://pay.example/shop/", "/shop/v1/charges", "/v1/charges");
        check_prefix_removal("https://pay.example/shop", "/v1/charges", "/v1/charges");
        check_prefix_removal("https://pay.example/shop", "/shop", "/");
        check_prefix_removal("https://pay.example/shop", "/shopping", "/shopping");
        check_prefix_removal("https://pay.example/shop", "/v1/shop/v1", "/v1/shop/v1");
        check_prefix_removal("https://pay.example", "/v1/charges", "/v1/charges");
        check_prefix_removal("https://pay.example", "*", "*");
    }

    #[test]
    fn a_public_address_that_cannot_start_a_link_is_refused() {
        for text in [
            "",
            "pay.example",
            "ftp://pay.example",
            "http://",
            "https://a/?x=1",
            "https://a/#x",
            "https://a?x",
            "https://u@a",
            "https://a/ b",
        ] {
            let found = PublicUrl::parse(text);
            assert!(found.as_ref().is_err_and(|message| message.contains(&format!("`{text}`"))), "{found:?}");
        }
    }
}
