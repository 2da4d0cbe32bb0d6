//! A way round for development: a public-looking host stands for a server on the developer's own machine.
//!
//! The address rule is not touched: it judges every other host as ever, and the delivery log says what it would
//! have said to this one.

use std::{fmt, net::IpAddr};

use reference_core::endpoint::address_rule::{self, EndpointUrl, Host};
use url::Url;

/// `https://shop.example=http://127.0.0.1:3000`: what is posted to the one host and port goes to the other.
///
/// Only the connection is another. The `Host` header, and with an `https` target the name that the
/// certificate must have, stay those of the endpoint, as with curl's `--connect-to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    host: Host,
    port: u16,
    pub(super) target: Target,
}

/// Where a forward leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) is_encrypted: bool,
    pub(super) host: Host,
    pub(super) port: u16,
}

impl Forward {
    /// Reads `https://host[:port]=http[s]://host[:port]`.
    ///
    /// # Errors
    ///
    /// A sentence with what is wrong, what is allowed and an example. A password in the text is not repeated.
    pub fn parse(text: &str) -> Result<Forward, String> {
        const FORM: &str = "a forward is `https://shop.example=http://127.0.0.1:3000`";
        let (from, to) = text.split_once('=').ok_or_else(|| format!("`{text}` has no `=`; {FORM}"))?;
        let source = address_rule::judge_url(from).map_err(|refusal| format!("`{from}`: {refusal}"))?;
        if source.is_simulated() {
            return Err(format!("`{from}` is a host of the simulated network, which nothing leaves; {FORM}"));
        }
        if source.path() != "/" {
            return Err(format!("`{from}` has a path; a forward takes a host with all its paths"));
        }
        Ok(Forward { host: source.host().clone(), port: source.port(), target: Target::parse(to)? })
    }

    /// Whether it is the way to this endpoint.
    pub(super) fn serves(&self, url: &EndpointUrl) -> bool {
        self.host == *url.host() && self.port == url.port()
    }
}

impl Target {
    fn parse(text: &str) -> Result<Target, String> {
        const FORM: &str = "a forward leads to `http://host[:port]` or `https://host[:port]`";
        let url = Url::parse(text).map_err(|error| format!("`{text}`: {error}; {FORM}"))?;
        let is_encrypted = match url.scheme() {
            "http" => false,
            "https" => true,
            other => return Err(format!("`{text}` has the scheme `{other}`; {FORM}")),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(format!("the target carries a user name or password; {FORM}"));
        }
        if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
            return Err(format!("`{text}` has a path, and the endpoint's own path is used; {FORM}"));
        }
        let host = match url.host() {
            Some(url::Host::Domain(name)) => Host::Name(name.to_owned()),
            Some(url::Host::Ipv4(ip)) => Host::Address(ip.into()),
            Some(url::Host::Ipv6(ip)) => Host::Address(ip.into()),
            None => return Err(format!("`{text}` has no host; {FORM}")),
        };
        let port = url.port_or_known_default().filter(|port| *port != 0);
        Ok(Target { is_encrypted, host, port: port.ok_or_else(|| format!("`{text}` has port 0; {FORM}"))? })
    }

    /// For the delivery log: where the post went instead, and what the address rule says to that.
    pub(super) fn note(&self, ip: IpAddr) -> String {
        match address_rule::judge_address(ip) {
            Ok(()) => format!("forwarded to {self}"),
            Err(refusal) => {
                format!("forwarded to {self}; the address rule refuses {ip}: {}", refusal.rule())
            }
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, usual) = if self.is_encrypted { ("https", 443) } else { ("http", 80) };
        write!(f, "{scheme}://{}", self.host)?;
        if self.port == usual { Ok(()) } else { write!(f, ":{}", self.port) }
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
        let found = Forward::parse(text).map_or_else(|error| format!("error: {error}"), |f| f.to_string());
        assert_eq!(found, expected);
    }

    #[test]
    fn a_forward_reads_as_it_is_written() {
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
        let error = Forward::parse(text).expect_err(text);
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn a_forward_that_cannot_be_meant_is_refused() {
        check_refused("https://shop.example", "has no `=`");
        check_refused("http://shop.example=http://127.0.0.1", "only `https` is allowed");
        check_refused("https://localhost=http://127.0.0.1", "a public host name");
        check_refused("https://10.0.0.1=http://127.0.0.1", "a private address");
        check_refused("https://shop.sim=http://127.0.0.1", "simulated network");
        check_refused("https://shop.example/hooks=http://127.0.0.1", "has a path");
        check_refused("https://shop.example=", "leads to");
        check_refused("https://shop.example=ftp://127.0.0.1", "the scheme `ftp`");
        check_refused("https://shop.example=http://127.0.0.1/hooks", "has a path");
        check_refused("https://shop.example=http://127.0.0.1:0", "port 0");
        check_refused("https://shop.example=http://me:secret@127.0.0.1", "user name");
    }

    #[test]
    fn a_password_is_not_repeated() {
        let error = Forward::parse("https://shop.example=http://me:hunter2@127.0.0.1").expect_err("refused");
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[track_caller]
    fn check_way(forward: &str, url: &str, expected: bool) {
        let forward = Forward::parse(forward).expect("forwards in tests are good");
        assert_eq!(forward.serves(&address_rule::judge_url(url).expect("a good URL")), expected, "{url}");
    }

    #[test]
    fn a_forward_serves_one_host_and_port_with_all_paths() {
        let forward = "https://shop.example=http://127.0.0.1";
        check_way(forward, "https://shop.example/hooks?a=1", true);
        check_way(forward, "https://shop.example:443", true);
        check_way(forward, "https://shop.example:8443", false);
        check_way(forward, "https://other.shop.example", false);
    }

    #[track_caller]
    fn check_note(forward: &str, ip: [u8; 4], expected: &str) {
        let forward = Forward::parse(forward).expect("forwards in tests are good");
        assert_eq!(forward.target.note(ip.into()), expected);
    }

    #[test]
    fn the_note_says_what_the_rule_would_have_said() {
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
