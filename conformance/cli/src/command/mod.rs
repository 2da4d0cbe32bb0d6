//! One module for each command, and what several of them need.

pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod fuzz;
pub(crate) mod judge;
pub(crate) mod load;
pub(crate) mod play;
pub(crate) mod receiver;
mod recipe;
pub(crate) mod serve;
mod served;
pub(crate) mod sweep;
pub(crate) mod trigger;

use tokio::runtime::Runtime;
use url::Url;

use crate::Failure;

/// The runtime of a command.
fn runtime() -> Result<Runtime, Failure> {
    Runtime::new().map_err(|error| Failure::machine(format!("cannot start the async runtime: {error}")))
}

/// The text of an environment variable that an option named.
fn variable(name: &str) -> Result<String, Failure> {
    std::env::var(name).map_err(|_| {
        Failure::usage(format!(
            "the environment variable `{name}` is not set to a text; set it: export {name}=…"
        ))
    })
}

/// An http or https address with a host, as the operator typed it. `example` is one that would do.
fn web_address(text: &str, example: &str) -> Result<Url, Failure> {
    let takes = format!("it takes one such as {example}");
    let url = Url::parse(text)
        .map_err(|error| Failure::usage(format!("`{text}` is not an address: {error}; {takes}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(Failure::usage(format!("`{text}` is not an http or https address; {takes}")));
    }
    Ok(url)
}

/// A random seed that is short enough to be typed again.
fn short_seed() -> Result<u64, Failure> {
    getrandom::u32().map(u64::from).map_err(|error| Failure::machine(format!("no random seed: {error}")))
}
