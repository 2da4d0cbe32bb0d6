//! `/mcp` over real sockets.
#![cfg(feature = "mcp")]

mod client;
mod doors;
mod protocol;
mod sandbox;
mod tools;

use reference_core::{dialect::Dialect, draw::Seed, time::Timestamp};
use reference_server::{Bounds, ClockKind, Config, CourierConfig, Server};

use crate::client::Client;

fn config() -> Config {
    Config {
        dialect: Dialect::default(),
        address: ([127, 0, 0, 1], 0).into(),
        seed: Seed(1),
        start: Some(Timestamp(1_789_898_741_000_000)), // 2026-09-20T10:05:41Z
        rate_limit: Some(120),
        public_url: None,
        clock: ClockKind::Frozen,
        bounds: Bounds::default(),
        courier: CourierConfig::default(),
    }
}

/// A server, a client with its live key and one with its test key.
async fn start(config: Config) -> (Server, Client, Client) {
    let server = Server::start(config).await.expect("loopback has a free port");
    let keys = server.first_keys().expect("it is well");
    let [live, test] = [keys.live, keys.test].map(|key| Client::new(server.address(), key));
    (server, live, test)
}
