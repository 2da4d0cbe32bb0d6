//! `/mcp` over real sockets.

mod access;
mod account_scope;
mod client;
mod protocol;
mod sandbox;
mod tools;

use client::Client;
use reference_server::{Config, Server};

fn config() -> Config {
    Config { rate_limit: Some(120), ..crate::config() }
}

/// Starts a server; returns a client with its live key and one with its test key.
async fn start(config: Config) -> (Server, Client, Client) {
    let server = Server::start(config).await.expect("loopback has a free port");
    let keys = server.first_keys().expect("the world has no internal error");
    let [live, test] = [keys.live, keys.test].map(|key| Client::new(server.address(), key));
    (server, live, test)
}
