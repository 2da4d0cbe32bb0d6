//! A running server, from binding its socket to the last connection.

use std::{future::Future, io, net::SocketAddr, sync::Arc};

use reference_core::{draw::Seed, time::Timestamp};
use simulator::sandbox::{FirstKeys, Reach, Sandbox, Setup};
use tokio::{
    net::TcpListener,
    sync::oneshot,
    task::{JoinHandle, JoinSet},
};

use crate::{
    address::{Addresses, PublicUrl},
    clock::Clock,
    config::Config,
    front::Front,
    gate::Token,
    host::Host,
    listen,
    metrics::Metrics,
    world::World,
};

/// A running server. Dropping it cuts every connection off; [`Server::stop`] lets them finish.
pub struct Server {
    address: SocketAddr,
    seed: Seed,
    front: Arc<Front>,
    stop: oneshot::Sender<()>,
    listening: CutOnDrop,
    /// The timer of the world. Aborted on drop.
    _timer: JoinSet<()>,
}

impl Server {
    /// Binds, begins a world and serves it.
    ///
    /// Fails if the address cannot be bound, if the public address is not one, or if the operating system
    /// gives no randomness for the sandbox token.
    pub async fn start(config: Config) -> io::Result<Server> {
        Server::start_with(config, Sandbox::new).await
    }

    /// The same with a world of the caller's making. `setup`: what the configuration came to once the
    /// address was bound and the clock read.
    pub async fn start_with<W>(config: Config, begin: impl FnOnce(&Setup) -> W) -> io::Result<Server>
    where
        W: World + 'static,
    {
        let public = config.public_url.as_deref().map(PublicUrl::parse).transpose().map_err(invalid)?;
        let listener = TcpListener::bind(config.address).await?;
        let address = listener.local_addr()?;
        let addresses = Addresses::new(address, public);
        let token = Token::draw().map_err(|error| io::Error::other(error.to_string()))?;

        let mut clock = Clock::new(config.clock, config.start);
        let start = clock.read();
        let world = begin(&Setup {
            seed: config.seed,
            start: clock.at(start),
            public_url: addresses.url().to_string(),
            rate_limit: config.rate_limit,
            dialect: config.dialect,
            journal: false,
            reach: Reach::Simulated,
        });
        let host = Host::new(Box::new(world), clock);
        let front =
            Arc::new(Front { host, addresses, token, bounds: config.bounds, metrics: Metrics::default() });

        let mut timer = JoinSet::new();
        if !front.host.is_frozen() {
            let front = Arc::clone(&front);
            timer.spawn(async move { front.host.keep_time().await });
        }
        let (stop, stopped) = oneshot::channel();
        let listening = CutOnDrop(tokio::spawn(listen::accept(listener, Arc::clone(&front), stopped)));
        Ok(Server { address, seed: config.seed, front, stop, listening, _timer: timer })
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address to call it by: the public one, or `http://` and the one it listens on.
    pub fn url(&self) -> &str {
        self.front.addresses.url()
    }

    /// What the draws of its first world hang on.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// The keys that its present world started with; nothing once the world has met a bug of its own.
    pub fn first_keys(&self) -> Option<FirstKeys> {
        self.front.host.first_keys().ok()
    }

    /// What the service clock shows; nothing once the world has met a bug of its own.
    pub fn now(&self) -> Option<Timestamp> {
        self.front.host.times().ok().map(|(now, _)| now)
    }

    /// What opens `/sandbox` from another machine.
    pub fn sandbox_token(&self) -> &str {
        self.front.token.as_str()
    }

    /// Accepts no more, lets the requests that have begun finish, and ends; says how many connections had to
    /// be cut off because they took longer than [`Bounds::drain_time`](crate::Bounds::drain_time).
    pub async fn stop(self) -> usize {
        let Server { stop, mut listening, .. } = self;
        // An error means that it has stopped already.
        let _ = stop.send(());
        (&mut listening.0).await.unwrap_or(0)
    }

    /// Serves until `shutdown`, then stops.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> usize {
        shutdown.await;
        self.stop().await
    }
}

struct CutOnDrop(JoinHandle<usize>);

impl Drop for CutOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}
