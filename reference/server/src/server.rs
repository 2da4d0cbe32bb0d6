//! A running server, from binding its socket to the last connection.

use std::{future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

use reference_core::{draw::Seed, time::Timestamp};
use simulator::sandbox::{FirstKeys, Reach, Sandbox, Setup};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
    task::{JoinHandle, JoinSet},
    time::Instant,
};

#[cfg(feature = "mcp")]
use crate::mcp::Mcp;
use crate::{
    address::{Addresses, PublicUrl},
    clock::Clock,
    config::Config,
    courier::{Courier, Fleet},
    front::Front,
    gate::Token,
    host::{Exit, Host},
    listen,
    metrics::Metrics,
    openapi::Document,
    pages::{Streams, dashboard::Dashboard},
    world::World,
};

/// A running server. Dropping it cuts every connection off; [`Server::stop`] lets them finish.
pub struct Server {
    address: SocketAddr,
    seed: Seed,
    front: Arc<Front>,
    stop: oneshot::Sender<()>,
    listening: CutOnDrop<usize>,
    /// The timer of the world. Aborted on drop.
    timer: JoinSet<()>,
    /// Nothing if the world's deliveries stay inside.
    fleet: Option<(CutOnDrop<()>, oneshot::Sender<Duration>)>,
}

impl Server {
    /// Binds, begins a world and serves it.
    ///
    /// Fails if the address cannot be bound, if the public address is not one, if the operating system gives
    /// no randomness for the sandbox token, or if the courier is told nonsense.
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
        let no_randomness = |error: getrandom::Error| io::Error::other(error.to_string());
        let token = Token::draw().map_err(no_randomness)?;
        let dashboard = Dashboard::new(&config.dialect).map_err(no_randomness)?;

        let reach = config.courier.reach;
        let (dispatches, to_post) = mpsc::unbounded_channel();
        let exit = match reach {
            Reach::Simulated => None,
            Reach::Abroad => {
                Some(Exit { courier: Arc::new(Courier::new(&config.courier, &config.dialect)?), dispatches })
            }
        };
        let courier = exit.as_ref().map(|exit| Arc::clone(&exit.courier));

        let document = Document::new(&config.dialect);
        let mut clock = Clock::new(config.clock, config.start);
        let start = clock.read();
        let world = begin(&Setup {
            seed: config.seed,
            start: clock.at(start),
            public_url: addresses.url().to_string(),
            rate_limit: config.rate_limit,
            dialect: config.dialect,
            journal: false,
            reach,
            vault: None,
        });
        let host = Arc::new(Host::new(Box::new(world), clock, exit));
        let front = Arc::new(Front {
            #[cfg(feature = "mcp")]
            mcp: Mcp::new(&host, &config.bounds),
            host,
            addresses,
            token,
            streams: Streams::new(&config.bounds),
            dashboard,
            bounds: config.bounds,
            metrics: Metrics::default(),
            document,
        });

        let mut timer = JoinSet::new();
        if !front.host.is_frozen() {
            let front = Arc::clone(&front);
            timer.spawn(async move { front.host.keep_time().await });
        }
        let fleet = courier.map(|courier| {
            let front = Arc::clone(&front);
            let fleet = Fleet::new(courier, move |ticket, landing| front.host.land(ticket, landing));
            let (stop, stopped) = oneshot::channel();
            (CutOnDrop(tokio::spawn(fleet.run(to_post, stopped))), stop)
        });
        let (stop, stopped) = oneshot::channel();
        let listening = CutOnDrop(tokio::spawn(listen::accept(listener, Arc::clone(&front), stopped)));
        Ok(Server { address, seed: config.seed, front, stop, listening, timer, fleet })
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

    /// What all its connections share.
    pub(crate) fn front(&self) -> Arc<Front> {
        Arc::clone(&self.front)
    }

    /// What opens `/sandbox` from another machine.
    pub fn sandbox_token(&self) -> &str {
        self.front.token.as_str()
    }

    /// Accepts no more, lets the requests and then the posts that have begun finish, and ends; says how many
    /// connections had to be cut off because they took longer than
    /// [`Bounds::drain_time`](crate::Bounds::drain_time). Both together may take that long. A post that takes
    /// longer, or has not begun, is recorded as not having arrived.
    pub async fn stop(self) -> usize {
        let Server { stop, mut listening, mut timer, fleet, front, .. } = self;
        let until = Instant::now() + front.bounds.drain_time;
        // What would go on for ever goes first.
        front.host.end_pulse();
        // An error means that it has stopped already.
        let _ = stop.send(());
        let cut_off = (&mut listening.0).await.unwrap_or(0);
        timer.shutdown().await;
        if let Some((mut fleet, stop)) = fleet {
            let _ = stop.send(until.saturating_duration_since(Instant::now()));
            // An error would be a bug in it, which must not keep the server from ending.
            let _ = (&mut fleet.0).await;
        }
        cut_off
    }

    /// Serves until `shutdown`, then stops.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> usize {
        shutdown.await;
        self.stop().await
    }
}

struct CutOnDrop<T>(JoinHandle<T>);

impl<T> Drop for CutOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}
