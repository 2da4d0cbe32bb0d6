//! Access control for `/sandbox`: callers from loopback or with the token, and no pages of another origin.
//!
//! A browser on this machine also connects from loopback, whatever page it shows. So `Host` must be a name of this
//! server (DNS rebinding), `Origin`, if present, must be that of this server, a body must be JSON (which a page of
//! another origin cannot send without a preflight), and `Sec-Fetch-Site`, if present, must not name another site.

use std::net::IpAddr;

use http::{
    HeaderMap, HeaderName, Method, Version,
    header::{AUTHORIZATION, CONTENT_TYPE, ORIGIN},
    request::Parts,
};
use subtle::ConstantTimeEq;

use crate::{
    address::{Addresses, Authority},
    refusal::Refusal,
};

/// The header by which a browser reports if the requesting page belongs to the same site as this server.
pub(crate) const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SANDBOX_TOKEN: HeaderName = HeaderName::from_static("sandbox-token");
/// The headers that proxies, tunnels and balancers usually add.
const PROXY_HEADERS: [&str; 17] = [
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-port",
    "x-forwarded-server",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-original-forwarded-for",
    "x-envoy-external-address",
    "true-client-ip",
    "cf-connecting-ip",
    "cf-ray",
    "fly-client-ip",
    "fastly-client-ip",
];

/// The addresses of both ends of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionAddrs {
    /// The client's address.
    pub(crate) remote: IpAddr,
    /// The server's address that the client connected to.
    pub(crate) local: IpAddr,
}

/// The allowed length of a token; a shorter one could be guessed.
const TOKEN_BYTES: std::ops::RangeInclusive<usize> = 20..=200;

/// The number of random bytes in a generated token.
const GENERATED_BYTES: usize = 20;

/// The token for access to `/sandbox` from other machines.
pub(crate) struct SandboxToken(String);

impl SandboxToken {
    /// Draws a random token from the operating system.
    pub(crate) fn generate() -> Result<SandboxToken, getrandom::Error> {
        let mut bytes = [0; GENERATED_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(SandboxToken(format!("sandbox_{}", hex::encode(bytes))))
    }

    /// Parses a configured token. The error message does not repeat it.
    pub(crate) fn parse(text: &str) -> Result<SandboxToken, String> {
        let is_allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~');
        if TOKEN_BYTES.contains(&text.len()) && text.bytes().all(is_allowed) {
            return Ok(SandboxToken(text.to_owned()));
        }
        Err(format!(
            "the sandbox token is invalid ({} bytes); use {} to {} letters, digits, -, _, . and ~",
            text.len(),
            TOKEN_BYTES.start(),
            TOKEN_BYTES.end(),
        ))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns `true` if the header `Sandbox-Token` has the token. `Authorization` may then hold an API key.
    pub(crate) fn matches_token_header(&self, headers: &HeaderMap) -> bool {
        single_value(headers, SANDBOX_TOKEN).is_some_and(|value| bool::from(value.ct_eq(self.0.as_bytes())))
    }

    fn matches_bearer(&self, headers: &HeaderMap) -> bool {
        let value = single_value(headers, AUTHORIZATION).unwrap_or_default();
        let Some((scheme, secret)) = value.split_at_checked("Bearer ".len()) else { return false };
        scheme.eq_ignore_ascii_case(b"Bearer ") && bool::from(secret.ct_eq(self.0.as_bytes()))
    }
}

/// Returns the value of a header that occurs exactly once.
fn single_value(headers: &HeaderMap, name: HeaderName) -> Option<&[u8]> {
    let mut all = headers.get_all(name).iter();
    let value = all.next()?;
    all.next().is_none().then_some(value.as_bytes())
}

/// Checks that the caller may use `/sandbox`. `authority`: the host that was requested.
pub(crate) fn admit(
    addrs: ConnectionAddrs,
    head: &Parts,
    authority: Option<&str>,
    addresses: &Addresses,
    token: &SandboxToken,
) -> Result<(), Refusal> {
    let is_local_caller = is_trusted_caller(addrs, head, authority, addresses)?;
    // `Authorization` may hold the API key that selects the world.
    let has_token = || token.matches_bearer(&head.headers) || token.matches_token_header(&head.headers);
    if is_local_caller || has_token() { Ok(()) } else { Err(Refusal::MissingToken) }
}

/// Checks the host and the origin of a request. Returns `true` if the caller is on this machine and needs no token.
pub(crate) fn is_trusted_caller(
    addrs: ConnectionAddrs,
    head: &Parts,
    authority: Option<&str>,
    addresses: &Addresses,
) -> Result<bool, Refusal> {
    let requested_host = authority.filter(|authority| !authority.is_empty());
    let host = match requested_host {
        Some(authority) => Some(Authority::parse(authority).ok_or(Refusal::UnknownHost)?),
        None => None,
    };
    let is_local_name = host.is_none_or(|host| is_this_machine(host, addrs.local));
    if !is_local_name && !host.is_some_and(|host| addresses.is_public_host(host.host)) {
        return Err(Refusal::UnknownHost);
    }
    let is_own = |origin: &http::HeaderValue| {
        origin
            .to_str()
            .is_ok_and(|origin| addresses.is_own_origin(origin, requested_host.unwrap_or_default()))
    };
    if !head.headers.get_all(ORIGIN).iter().all(is_own) {
        return Err(Refusal::ForeignOrigin);
    }
    let from_loopback = addrs.remote.to_canonical().is_loopback();
    Ok(from_loopback && is_local_name && addresses.trusts_loopback() && !is_proxied(head))
}

/// Returns `true` if a request has headers of a proxy. Behind a proxy on this machine every client comes from loopback.
/// Proxies that add no header usually send HTTP/1.0, which hardly any client still uses.
fn is_proxied(head: &Parts) -> bool {
    head.version < Version::HTTP_11 || PROXY_HEADERS.iter().any(|name| head.headers.contains_key(*name))
}

/// Refuses requests that a browser sends for a page of another site, with or without a body. Following a link is
/// allowed.
pub(crate) fn admit_site(head: &Parts) -> Result<(), Refusal> {
    let has =
        |name: HeaderName, expected: &str| head.headers.get_all(name).iter().any(|value| value == expected);
    let is_foreign = has(SEC_FETCH_SITE, "cross-site") || has(SEC_FETCH_SITE, "same-site");
    let is_link = matches!(head.method, Method::GET | Method::HEAD) && has(SEC_FETCH_MODE, "navigate");
    if is_foreign && !is_link { Err(Refusal::ForeignOrigin) } else { Ok(()) }
}

/// Checks that a body for `/sandbox` is JSON by its content type.
pub(crate) fn admit_body(headers: &HeaderMap, body: &[u8]) -> Result<(), Refusal> {
    let is_json = |value: &http::HeaderValue| {
        let media_type = value.as_bytes().split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
        media_type.eq_ignore_ascii_case(b"application/json")
    };
    if body.is_empty() || headers.get(CONTENT_TYPE).is_some_and(is_json) {
        Ok(())
    } else {
        Err(Refusal::SandboxNotJson)
    }
}

/// Returns `true` if a host is `localhost`, a loopback address, or the server's address of this connection.
fn is_this_machine(host: Authority<'_>, local: IpAddr) -> bool {
    match host.ip() {
        Some(ip) => ip.to_canonical().is_loopback() || ip.to_canonical() == local.to_canonical(),
        None => host.host.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{address::PublicUrl, config::SandboxAccess};

    /// The configuration of the server and the protocol of the request.
    #[derive(Clone, Copy, Debug)]
    enum TestCase {
        /// A server without a public address.
        Local,
        /// The same, requested with HTTP/1.0.
        OldProtocol,
        /// A server with a public address.
        Public,
        /// With a public address, but trusting callers from loopback.
        TrustLoopback,
    }

    const TOKEN: &str = "sandbox_0123456789";

    /// Returns the decision for a caller at `remote` that connected to 192.0.2.1 (or to loopback from loopback).
    /// `header_lines` include `Host`.
    fn decision_for(
        remote: &str,
        header_lines: &[(&'static str, &str)],
        case: TestCase,
    ) -> Result<(), Refusal> {
        let remote: IpAddr = remote.parse().expect("addresses in tests are valid");
        let local = if remote.to_canonical().is_loopback() { remote } else { [192, 0, 2, 1].into() };
        let mut headers = HeaderMap::new();
        for (name, value) in header_lines {
            headers.append(*name, value.parse().expect("headers in tests are valid"));
        }
        let public = PublicUrl::parse("https://pay.example/shop").expect("the public address is valid");
        let (public, version, access) = match case {
            TestCase::Local => (None, Version::HTTP_11, SandboxAccess::default()),
            TestCase::OldProtocol => (None, Version::HTTP_10, SandboxAccess::default()),
            TestCase::Public => (Some(public), Version::HTTP_11, SandboxAccess::default()),
            TestCase::TrustLoopback => (Some(public), Version::HTTP_11, SandboxAccess::TrustLoopback),
        };
        let addresses = Addresses::new(([0, 0, 0, 0], 8080).into(), public, access);
        let authority =
            headers.get("host").map(|host| host.to_str().expect("hosts in tests are ASCII").to_string());
        let token = SandboxToken(TOKEN.to_string());
        let (mut head, ()) = http::Request::new(()).into_parts();
        (head.headers, head.version) = (headers, version);
        admit(ConnectionAddrs { remote, local }, &head, authority.as_deref(), &addresses, &token)
    }

    /// Checks the decision of a server with a public address that trusts callers from loopback.
    #[track_caller]
    fn check(remote: &str, header_lines: &[(&'static str, &str)], expected: Result<(), Refusal>) {
        assert_eq!(
            decision_for(remote, header_lines, TestCase::TrustLoopback),
            expected,
            "{remote} {header_lines:?}"
        );
    }

    const BEARER: (&str, &str) = ("authorization", "Bearer sandbox_0123456789");

    #[test]
    fn this_machine_is_admitted_by_its_own_names() {
        for host in ["localhost", "LocalHost:9999", "127.0.0.1:8080", "127.8.8.8", "[::1]:8080"] {
            check("127.0.0.1", &[("host", host)], Ok(()));
        }
        check("::1", &[("host", "[::1]:8080")], Ok(()));
        check("::ffff:127.0.0.1", &[("host", "localhost:8080")], Ok(()));
        check("127.0.0.1", &[], Ok(()));
        check("127.0.0.1", &[("host", "")], Ok(()));
    }

    #[test]
    fn a_foreign_host_name_is_refused_even_with_the_token() {
        for host in
            ["evil.example", "localhost.evil.example", "192.0.2.7", "a b", "0.0.0.0", "127.0.0.1.nip.example"]
        {
            check("127.0.0.1", &[("host", host)], Err(Refusal::UnknownHost));
            check("127.0.0.1", &[("host", host), BEARER], Err(Refusal::UnknownHost));
        }
    }

    #[test]
    fn another_machine_needs_the_token() {
        for host in ["192.0.2.1:8080", "pay.example", "PAY.example:443", "localhost:8080"] {
            check("192.0.2.9", &[("host", host)], Err(Refusal::MissingToken));
            check("192.0.2.9", &[("host", host), BEARER], Ok(()));
        }
    }

    #[test]
    fn a_request_through_a_local_proxy_needs_the_token() {
        check("127.0.0.1", &[("host", "pay.example")], Err(Refusal::MissingToken));
        check("127.0.0.1", &[("host", "pay.example"), BEARER], Ok(()));
        for proxy_header in PROXY_HEADERS.map(|name| (name, "192.0.2.9")) {
            check("127.0.0.1", &[("host", "127.0.0.1:8080"), proxy_header], Err(Refusal::MissingToken));
            check("127.0.0.1", &[("host", "127.0.0.1:8080"), proxy_header, BEARER], Ok(()));
        }
    }

    #[test]
    fn with_a_public_address_every_caller_needs_the_token() {
        for host in ["localhost:8080", "127.0.0.1:8080", "pay.example"] {
            let header_lines = [("host", host)];
            assert_eq!(
                decision_for("127.0.0.1", &header_lines, TestCase::Public),
                Err(Refusal::MissingToken),
                "{host}"
            );
            assert_eq!(
                decision_for("127.0.0.1", &[header_lines[0], BEARER], TestCase::Public),
                Ok(()),
                "{host}"
            );
        }
        let header_lines = [("host", "localhost:8080")];
        assert_eq!(decision_for("127.0.0.1", &header_lines, TestCase::Local), Ok(()));
        assert_eq!(
            decision_for("127.0.0.1", &header_lines, TestCase::OldProtocol),
            Err(Refusal::MissingToken)
        );
        assert_eq!(decision_for("127.0.0.1", &[header_lines[0], BEARER], TestCase::OldProtocol), Ok(()));
    }

    #[test]
    fn only_the_exact_token_is_accepted() {
        for wrong in [
            "Bearer sandbox_012345678",
            "Bearer sandbox_01234567890",
            "Basic sandbox_0123456789",
            "Bearer ",
            "",
            "é",
        ] {
            let header_lines = [("host", "192.0.2.1"), ("authorization", wrong)];
            check("192.0.2.9", &header_lines, Err(Refusal::MissingToken));
        }
        check("192.0.2.9", &[("host", "192.0.2.1"), ("authorization", "bearer sandbox_0123456789")], Ok(()));
        check("192.0.2.9", &[("host", "192.0.2.1"), BEARER, BEARER], Err(Refusal::MissingToken));
    }

    #[test]
    fn pages_of_this_server_are_admitted_and_others_are_refused() {
        let host = ("host", "localhost:8080");
        check("127.0.0.1", &[host, ("origin", "http://localhost:8080")], Ok(()));
        check("127.0.0.1", &[host, ("origin", "https://pay.example")], Ok(()));
        for origin in
            ["null", "", "http://localhost:9999", "http://localhost", "http://evil.example", "localhost:8080"]
        {
            check("127.0.0.1", &[host, ("origin", origin)], Err(Refusal::ForeignOrigin));
            check("127.0.0.1", &[host, ("origin", origin), BEARER], Err(Refusal::ForeignOrigin));
        }
        let both = [host, ("origin", "http://localhost:8080"), ("origin", "http://evil.example")];
        check("127.0.0.1", &both, Err(Refusal::ForeignOrigin));
        check("127.0.0.1", &[("origin", "http://")], Err(Refusal::ForeignOrigin));
    }

    #[track_caller]
    fn check_body(content_type: Option<&str>, body: &str, expected: Result<(), Refusal>) {
        let mut headers = HeaderMap::new();
        if let Some(kind) = content_type {
            headers.insert(CONTENT_TYPE, kind.parse().expect("headers in tests are valid"));
        }
        assert_eq!(admit_body(&headers, body.as_bytes()), expected, "{content_type:?} {body}");
    }

    #[test]
    fn a_body_must_have_the_content_type_of_json() {
        check_body(Some("application/json"), "{}", Ok(()));
        check_body(Some("Application/JSON ; charset=utf-8"), "{}", Ok(()));
        check_body(None, "", Ok(()));
        for kind in
            [None, Some("text/plain"), Some("application/jsonx"), Some("application/x-www-form-urlencoded")]
        {
            check_body(kind, "{}", Err(Refusal::SandboxNotJson));
        }
    }

    #[test]
    fn a_configured_token_has_20_to_200_allowed_characters() {
        for valid in ["0123456789abcdefghij", "A-b_c.d~0123456789xyz", &"x".repeat(200)] {
            assert_eq!(SandboxToken::parse(valid).map(|token| token.0), Ok(valid.to_owned()));
        }
        for invalid in ["", "0123456789abcdefghi", "0123456789abcdefghij ", &"x".repeat(201)] {
            let error = SandboxToken::parse(invalid).map(|token| token.0).expect_err(invalid);
            assert!(error.contains("use 20 to 200"), "{error}");
        }
    }

    #[test]
    fn every_generated_token_is_different() {
        let (one, other) = (
            SandboxToken::generate().expect("the system has randomness"),
            SandboxToken::generate().expect("the system has randomness"),
        );
        assert_ne!(one.as_str(), other.as_str());
        assert_eq!(one.as_str().len(), "sandbox_".len() + 2 * GENERATED_BYTES);
    }
}
