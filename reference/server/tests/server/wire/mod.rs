//! The HTTP server over real sockets.

mod bounds;
mod browsers;
mod dashboard;
mod echo_world;
mod error_order;
mod framing;
mod lifecycle;
mod long_calls;
mod reversed_payments;
mod routing;
mod samples;
mod streams;
mod time;
mod tls;
mod worlds;

use echo_world::EchoWorld;
use reference_core::time::Timestamp;
use reference_server::{ClockKind, Config, Server};
use testkit::AsyncConnection as Client;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

fn config(clock: ClockKind) -> Config {
    Config { clock, ..crate::config() }
}

/// Starts a server with an [`EchoWorld`]; also returns the times at which the timer wakes it.
async fn start(config: Config) -> (Server, UnboundedReceiver<Timestamp>) {
    let (woken, wakeups) = unbounded_channel();
    let server = Server::start_with(config, |setup| EchoWorld::new(setup, woken)).await;
    (server.expect("loopback has a free port"), wakeups)
}

/// Starts a server with an [`EchoWorld`] and a frozen clock, and connects to it.
async fn start_frozen() -> (Server, Client) {
    let (server, _) = start(config(ClockKind::Frozen)).await;
    let client = Client::connect(server.address()).await;
    (server, client)
}
