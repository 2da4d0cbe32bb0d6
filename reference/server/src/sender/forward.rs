//! [`Forward`] and [`LocalHandler`]: deliveries for a public-looking host go to a server on the developer's machine.
//!
//! The address rule still applies to every host without a forward. For a forwarded host, the delivery log states the
//! decision of the rule about the target.

use std::{fmt, net::IpAddr};

use reference_core::endpoint::address_rule::{self, EndpointUrl, Host, Range, Refusal};
use url::Url;

/// A forward, such as `https://shop.example=http://127.0.0.1:3000`: deliveries for the first host and port go to the
/// second.
///
/// Only the connection differs. The `Host` header, and with an `https` target the name in the certificate, stay those
/// of the endpoint, as with curl's `--connect-to`. The forward of a [`LocalHandler`] uses the name of its target instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    host: Host,
    port: u16,
    pub(super) target: Target,
}

/// The target of a forward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) is_encrypted: bool,
    pub(super) host: Host,
    pub(super) port: u16,
    pub(super) name_source: NameSource,
}

/// The source of the name in the `Host` header and in the certificate of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameSource {
    /// The name of the endpoint, as with curl's `--connect-to`.
    Endpoint,
    /// The target's own name: development servers reject requests for unknown names.
    Target,
}

/// A webhook handler on the developer's machine, and the public-looking URL of its endpoints.
///
/// ```
/// use reference_server::LocalHandler;
///
/// let handler = LocalHandler::parse("http://localhost:3000/hooks").unwrap();
/// assert_eq!(handler.url(), "https://localhost-3000.example/hooks");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalHandler {
    target_url: String,
    url: String,
    pub(crate) forward: Forward,
}

/// The reason why a string is not a forward, or not the URL of a handler: a message for the user. Never contains a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForwardError {
    /// The forward has no `=`.
    Format(String),
    /// The URL of the endpoints, before the `=`, is invalid.
    Source(String),
    /// The URL of the target or of the handler is invalid.
    Target(String),
}

impl fmt::Display for ForwardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ForwardError::Format(message) | ForwardError::Source(message) | ForwardError::Target(message)) =
            self;
        f.write_str(message)
    }
}

impl std::error::Error for ForwardError {}

impl Forward {
    /// Parses `https://host[:port]=http[s]://host[:port]`.
    ///
    /// # Errors
    ///
    /// [`ForwardError`] names the URL that is invalid.
    pub fn parse(text: &str) -> Result<Forward, ForwardError> {
        const FORMAT: &str = "a forward is `https://shop.example=http://127.0.0.1:3000`";
        let no_separator = || ForwardError::Format(format!("`{text}` has no `=`; {FORMAT}"));
        let (from, to) = text.split_once('=').ok_or_else(no_separator)?;
        let source = address_rule::parse_endpoint_url(from)
            .map_err(|refusal| ForwardError::Source(format!("`{from}`: {refusal}")))?;
        if source.is_simulated() {
            let message = format!(
                "`{from}` is a host of the simulated network, whose deliveries are not sent over the real network; {FORMAT}"
            );
            return Err(ForwardError::Source(message));
        }
        if source.path_and_query() != "/" {
            let message = format!("`{from}` has a path; a forward applies to all paths of a host");
            return Err(ForwardError::Source(message));
        }
        Ok(Forward { host: source.host().clone(), port: source.port(), target: Target::parse(to)? })
    }

    /// Returns `true` if the forward applies to this endpoint.
    pub(super) fn applies_to(&self, url: &EndpointUrl) -> bool {
        self.host == *url.host() && self.port == url.port()
    }
}

/// The top-level domain of names for local handlers: it is reserved, so no real name collides.
const HANDLER_DOMAIN: &str = "example";
const HANDLER_PORT: u16 = 443;

impl LocalHandler {
    /// Parses `http[s]://host[:port][/path][?query]`.
    ///
    /// # Errors
    ///
    /// [`ForwardError::Target`].
    pub fn parse(text: &str) -> Result<LocalHandler, ForwardError> {
        const FORMAT: &str = "a handler is `http://localhost:3000/hooks`";
        let url = Url::parse(text)
            .map_err(|error| ForwardError::Target(format!("not a URL ({error}); {FORMAT}")))?;
        let (path, query) = (url.path(), url.query().map(|query| format!("?{query}")).unwrap_or_default());
        let mut target = Target::from_url(&url, FORMAT)?;
        target.name_source = NameSource::Target;
        let label_char = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let label: String = format!("{}-{}", target.host, target.port).chars().map(label_char).collect();
        let name = format!("{}.{HANDLER_DOMAIN}", label.trim_matches('-'));
        let target_url = format!("{target}{path}{query}");
        let url = format!("https://{name}{path}{query}");
        address_rule::parse_endpoint_url(&url)
            .map_err(|refusal| ForwardError::Target(format!("`{target_url}`: {refusal}")))?;
        let forward = Forward { host: Host::Name(name), port: HANDLER_PORT, target };
        Ok(LocalHandler { target_url, url, forward })
    }

    /// Returns the handler at a URL that is refused only because it is on this machine or in a private network.
    pub(super) fn from_refused_url(text: &str) -> Option<LocalHandler> {
        let mut url = Url::parse(text).ok()?;
        let handler = LocalHandler::parse(url.as_str()).ok()?;
        // The rule decides about the host only if the scheme is allowed.
        let _ = url.set_scheme("https");
        let refusal = address_rule::parse_endpoint_url(url.as_str()).err()?;
        is_local(&refusal).then_some(handler)
    }

    /// Returns the URL of the handler, which deliveries go to.
    pub fn target(&self) -> &str {
        &self.target_url
    }

    /// Returns the public-looking URL for the handler's endpoints.
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// Returns `true` if an address was refused because it is on this machine or in a private network, where developers run
/// their handlers.
pub(super) fn is_local(refusal: &Refusal) -> bool {
    match refusal {
        Refusal::SingleLabel { .. } | Refusal::LocalName { .. } => true,
        Refusal::NotPublic { range, .. } => matches!(
            range,
            Range::Loopback | Range::Private | Range::Unspecified | Range::LinkLocal | Range::UniqueLocal
        ),
        _ => false,
    }
}

impl Target {
    fn parse(text: &str) -> Result<Target, ForwardError> {
        const FORMAT: &str = "the target of a forward is `http://host[:port]` or `https://host[:port]`";
        let url =
            Url::parse(text).map_err(|error| ForwardError::Target(format!("`{text}`: {error}; {FORMAT}")))?;
        let target = Target::from_url(&url, FORMAT)?;
        if url.path() != "/" || url.query().is_some() {
            return Err(ForwardError::Target(format!(
                "`{text}` has a path or a query, but deliveries use those of the endpoint; {FORMAT}"
            )));
        }
        Ok(target)
    }

    /// Parses the scheme, host and port of a URL. `format`: the allowed format, for errors.
    fn from_url(url: &Url, format: &str) -> Result<Target, ForwardError> {
        if !url.username().is_empty() || url.password().is_some() {
            return Err(ForwardError::Target(format!("the target has a user name or password; {format}")));
        }
        let is_encrypted = match url.scheme() {
            "http" => false,
            "https" => true,
            other => return Err(ForwardError::Target(format!("`{url}` has the scheme `{other}`; {format}"))),
        };
        if url.fragment().is_some() {
            return Err(ForwardError::Target(format!(
                "`{url}` has a fragment (`#…`), which is never sent; {format}"
            )));
        }
        let host = match url.host() {
            Some(url::Host::Domain(name)) => Host::Name(name.to_owned()),
            Some(url::Host::Ipv4(ip)) => Host::Address(ip.into()),
            Some(url::Host::Ipv6(ip)) => Host::Address(ip.into()),
            None => return Err(ForwardError::Target(format!("`{url}` has no host; {format}"))),
        };
        let port = url.port_or_known_default().filter(|port| *port != 0);
        let port = port.ok_or_else(|| ForwardError::Target(format!("`{url}` has port 0; {format}")))?;
        Ok(Target { is_encrypted, host, port, name_source: NameSource::Endpoint })
    }

    /// Returns the `Host` header for the target; `None` to use that of the endpoint.
    pub(super) fn authority(&self) -> Option<String> {
        let (default_port, Target { host, port, .. }) = (self.default_port(), self);
        match self.name_source {
            NameSource::Endpoint => None,
            NameSource::Target if *port == default_port => Some(host.to_string()),
            NameSource::Target => Some(format!("{host}:{port}")),
        }
    }

    fn default_port(&self) -> u16 {
        if self.is_encrypted { 443 } else { 80 }
    }

    /// Returns the note for the delivery log: the target, and the decision of the address rule about it.
    pub(super) fn log_note(&self, ip: IpAddr) -> String {
        match address_rule::check_address(ip) {
            Ok(()) => format!("forwarded to {self}"),
            Err(refusal) => {
                format!("forwarded to {self}; the address rule refuses {ip}: {}", refusal.rule())
            }
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_encrypted { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.host)?;
        if self.port == self.default_port() { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

impl fmt::Display for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            443 => write!(f, "https://{}={}", self.host, self.target),
            port => write!(f, "https://{}:{port}={}", self.host, self.target),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let found = Forward::parse(text)
            .map_or_else(|error| format!("error: {error}"), |forward| forward.to_string());
        assert_eq!(found, expected);
    }

    #[test]
    fn a_parsed_forward_displays_as_its_normalized_text() {
        for text in [
            "https://shop.example=http://127.0.0.1:3000",
            "https://shop.example:8443=https://localhost:3443",
            "https://shop.example=http://[::1]:3000",
        ] {
            check(text, text);
        }
        check("https://SHOP.example:443/=http://localhost:80/", "https://shop.example=http://localhost");
    }

    #[track_caller]
    fn check_refused(text: &str, part: &str) {
        let error = Forward::parse(text).expect_err(text).to_string();
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn an_invalid_forward_is_refused() {
        check_refused("https://shop.example", "has no `=`");
        check_refused("http://shop.example=http://127.0.0.1", "only `https` is allowed");
        check_refused("https://localhost=http://127.0.0.1", "a public host name");
        check_refused("https://10.0.0.1=http://127.0.0.1", "a private address");
        check_refused("https://shop.sim=http://127.0.0.1", "simulated network");
        check_refused("https://shop.example/hooks=http://127.0.0.1", "has a path");
        check_refused("https://shop.example=", "the target of a forward is");
        check_refused("https://shop.example=ftp://127.0.0.1", "the scheme `ftp`");
        check_refused("https://shop.example=http://127.0.0.1/hooks", "has a path");
        check_refused("https://shop.example=http://127.0.0.1:0", "port 0");
        check_refused("https://shop.example=http://me:secret@127.0.0.1", "user name");
    }

    #[test]
    fn a_password_is_not_repeated() {
        let error = Forward::parse("https://shop.example=http://me:hunter2@127.0.0.1")
            .expect_err("refused")
            .to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[track_caller]
    fn check_applies(forward: &str, url: &str, expected: bool) {
        let forward = Forward::parse(forward).expect("forwards in tests are valid");
        assert_eq!(
            forward.applies_to(&address_rule::parse_endpoint_url(url).expect("a good URL")),
            expected,
            "{url}"
        );
    }

    #[test]
    fn a_forward_applies_to_one_host_and_port_with_all_paths() {
        let forward = "https://shop.example=http://127.0.0.1";
        check_applies(forward, "https://shop.example/hooks?a=1", true);
        check_applies(forward, "https://shop.example:443", true);
        check_applies(forward, "https://shop.example:8443", false);
        check_applies(forward, "https://other.shop.example", false);
    }

    #[track_caller]
    fn check_handler(text: &str, url: &str, authority: &str) {
        let handler = LocalHandler::parse(text).expect(text);
        assert_eq!((handler.target(), handler.url()), (text, url));
        assert_eq!(handler.forward.target.authority().as_deref(), Some(authority));
        assert!(
            handler.forward.applies_to(&address_rule::parse_endpoint_url(url).expect("a good URL")),
            "{url}"
        );
    }

    #[test]
    fn a_local_handler_has_a_public_looking_url_and_its_own_host_header() {
        let name = "https://localhost-3000.example/hooks";
        check_handler("http://localhost:3000/hooks", name, "localhost:3000");
        check_handler("https://localhost:3000/hooks", name, "localhost:3000");
        check_handler("http://127.0.0.1/", "https://127-0-0-1-80.example/", "127.0.0.1");
        check_handler("http://[::1]:3000/a?b=c", "https://1--3000.example/a?b=c", "[::1]:3000");
        check_handler("http://shop.local/x", "https://shop-local-80.example/x", "shop.local");
    }

    #[test]
    fn an_invalid_handler_is_refused() {
        for (text, part) in [
            ("localhost:3000", "the scheme `localhost`"),
            ("3000", "not a URL"),
            ("ftp://localhost", "the scheme `ftp`"),
            ("http://me:hunter2@localhost", "user name"),
            ("http://localhost/#x", "a fragment"),
            ("http://localhost:0/", "port 0"),
        ] {
            let error = LocalHandler::parse(text).expect_err(text).to_string();
            assert!(error.contains(part) && error.contains("http://localhost:3000/hooks"), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn only_a_url_refused_for_being_local_becomes_a_local_handler() {
        let found = |text: &str| LocalHandler::from_refused_url(text).map(|handler| handler.target_url);
        for text in
            ["http://localhost:3000/hooks", "https://127.0.0.1/", "http://10.0.0.1/x", "http://shop:80/"]
        {
            assert!(found(text).is_some(), "{text}");
        }
        for text in [
            "http://shop.example/hooks",
            "http://169.254.169.254/",
            "http://me:pw@localhost/",
            "https://8.8.8.8",
            "x",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[track_caller]
    fn check_note(forward: &str, ip: [u8; 4], expected: &str) {
        let forward = Forward::parse(forward).expect("forwards in tests are valid");
        assert_eq!(forward.target.log_note(ip.into()), expected);
    }

    #[test]
    fn the_note_quotes_the_address_rule() {
        check_note(
            "https://shop.example=http://localhost:3000",
            [127, 0, 0, 1],
            "forwarded to http://localhost:3000; the address rule refuses 127.0.0.1: loopback",
        );
        check_note(
            "https://shop.example=https://stage.example",
            [8, 8, 8, 8],
            "forwarded to https://stage.example",
        );
    }
}
