//! The server over real sockets and the raw wire.

mod bounds;
mod dashboard;
mod framing;
mod life;
mod mirror;
mod money;
mod order;
mod people;
mod rooms;
mod samples;
mod slices;
mod streams;
mod time;
mod tls;
mod worlds;

use mirror::Mirror;
use reference_core::time::Timestamp;
use reference_server::{ClockKind, Config, Server};
use testkit::AsyncConnection as Client;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

fn config(clock: ClockKind) -> Config {
    Config { clock, ..crate::config() }
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
