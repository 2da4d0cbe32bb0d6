//! The server over real sockets and the raw wire.

mod bounds;
mod client;
mod dashboard;
mod framing;
mod life;
mod mirror;
mod rooms;
mod time;

use client::Client;
use mirror::Mirror;
use reference_core::{dialect::Dialect, draw::Seed, time::Timestamp};
use reference_server::{Bounds, ClockKind, Config, CourierConfig, Server};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

const START: Timestamp = Timestamp(1_789_898_741_000_000); // 2026-09-20T10:05:41Z

fn config(clock: ClockKind) -> Config {
    Config {
        dialect: Dialect::default(),
        address: ([127, 0, 0, 1], 0).into(),
        seed: Seed(1),
        start: Some(START),
        rate_limit: None,
        public_url: None,
        clock,
        bounds: Bounds::default(),
        courier: CourierConfig::default(),
    }
}

/// A server with a mirror in it, and what its timer does.
async fn start(config: Config) -> (Server, UnboundedReceiver<Timestamp>) {
    let (woken, hears) = unbounded_channel();
    let server = Server::start_with(config, |setup| Mirror::new(setup, woken)).await;
    (server.expect("loopback has a free port"), hears)
}

async fn frozen() -> (Server, Client) {
    let (server, _) = start(config(ClockKind::Frozen)).await;
    let client = Client::connect(server.address()).await;
    (server, client)
}
