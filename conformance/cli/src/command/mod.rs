//! One module for each command, and their shared parts.

pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod fuzz;
pub(crate) mod judge;
pub(crate) mod load;
pub(crate) mod play;
pub(crate) mod receiver;
mod recipe;
pub(crate) mod serve;
mod served_world;
pub(crate) mod sweep;
pub(crate) mod trigger;

use tokio::runtime::Runtime;
use url::{Host, ParseError, Url};

use crate::Failure;

/// Creates the async runtime of a command.
fn runtime() -> Result<Runtime, Failure> {
    Runtime::new().map_err(|error| Failure::machine(format!("cannot start the async runtime: {error}")))
}

/// Reads the environment variable that an option names.
fn environment_variable(name: &str) -> Result<String, Failure> {
    std::env::var(name).map_err(|_| {
        Failure::usage(format!(
            "the environment variable `{name}` is not set, or not UTF-8; set it: export {name}=…"
        ))
    })
}

/// Parses an http or https URL with a host. The error message suggests `example`.
fn parse_http_url(text: &str, example: &str) -> Result<Url, Failure> {
    let suggestion = match with_scheme(text) {
        Some(address) => format!("did you mean `{address}`?"),
        None => format!("example: {example}"),
    };
    let url = Url::parse(text).map_err(|error| {
        let why = match error {
            ParseError::RelativeUrlWithoutBase => "it does not begin with https://".to_owned(),
            error => error.to_string(),
        };
        Failure::usage(format!("`{text}` is not an address: {why}; {suggestion}"))
    })?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(Failure::usage(format!("`{text}` is not an http or https address; {suggestion}")));
    }
    Ok(url)
}

/// Returns an address with the scheme that it lacks: `https://` for a name with a dot, `http://`
/// for this machine. `None` if it has a scheme, or is neither of these.
fn with_scheme(text: &str) -> Option<String> {
    if text.contains("://") {
        return None;
    }
    let url = Url::parse(&format!("https://{text}")).ok()?;
    let is_local = match url.host()? {
        Host::Domain(name) => name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    };
    let is_address = is_local || text.split(['/', ':']).next().is_some_and(|host| host.contains('.'));
    is_address.then(|| format!("{}://{text}", if is_local { "http" } else { "https" }))
}

/// Draws a random seed that is short enough to be typed.
fn random_seed() -> Result<u64, Failure> {
    getrandom::u32()
        .map(u64::from)
        .map_err(|error| Failure::machine(format!("cannot draw a random seed: {error}")))
}
