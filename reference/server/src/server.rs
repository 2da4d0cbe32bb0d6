//! A running server, from binding its socket to the last connection.

use std::{future::Future, io, net::SocketAddr, sync::Arc, thread, time::Duration};

use reference_core::{rng::Seed, time::Timestamp};
use simulator::sandbox::{FirstKeys, Reach, Setup};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot, watch},
    task::{JoinHandle, JoinSet},
    time::Instant,
};

use crate::{
    address::{Addresses, PublicUrl},
    backend::{Shared, Terms},
    config::Config,
    descriptors,
    forwards::{self, Forwarded},
    gate::Token,
    in_flight::InFlight,
    journal::{self, RunningWorld},
    listen,
    metrics::Metrics,
    router::Router,
    sender::{AttemptOwners, Dispatcher, LocalHandler, SenderBounds, WebhookSender},
    tls::TlsIdentity,
    world::World,
    worlds::{LostWorld, Openings, WORLDS_MAX, Worlds},
};

/// Kept worlds that are opened at a time. Each keeps a core busy.
const OPENERS: usize = 4;

/// A running server. Dropping it cuts every connection off; [`Server::stop`] lets them finish.
///
/// It needs a Tokio runtime with time and input/output; [`Local`](crate::Local) brings its own.
///
/// ```
/// use reference_server::{Config, Server};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let server = Server::start(Config { rate_limit: None, ..Config::local() }).await?;
/// let keys = server.first_keys().expect("a server that just started is well");
/// assert!(server.url().starts_with("http://127.0.0.1:") && keys.live.starts_with("svc_live_"));
/// assert_eq!(server.stop().await, 0, "connections that had to be cut off");
/// # Ok(())
/// # }
/// ```
pub struct Server {
    address: SocketAddr,
    seed: Seed,
    worlds: Arc<Worlds>,
    /// They open kept worlds. Aborted on drop.
    openers: JoinSet<()>,
    stop: oneshot::Sender<()>,
    listening: CutOnDrop<usize>,
    /// The timer of the first world, and what ends idle ones. Aborted on drop.
    timer: JoinSet<()>,
    /// `None` if the world's deliveries stay inside.
    dispatcher: Option<(CutOnDrop<()>, oneshot::Sender<Duration>)>,
}

impl Server {
    /// Binds, begins a world and serves it.
    ///
    /// Raises the limit of file descriptors of this process as far as connections and deliveries need and the
    /// operating system allows. Where that is not enough there are fewer connections, not fewer deliveries.
    ///
    /// # Errors
    ///
    /// `InvalidInput` names the setting that is wrong: the public address, a name of the dialect that cannot be in a
    /// header, root certificates that are none, a certificate and key that do not belong together, or what the kept world
    /// was not begun with. `WouldBlock`: another process has the kept world. `InvalidData`: the kept world, or the one in the
    /// file, does not check out. Any other error is the operating system's: the address cannot be bound, or there is no
    /// randomness for the sandbox token.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub async fn start(config: Config) -> io::Result<Server> {
        let (data, from) = (config.data.clone(), config.from.clone());
        Server::launch(config, |setup| journal::start(setup, data.as_ref(), from.as_deref())).await
    }

    /// The same with a first world of the caller's making. `begin` gets what the configuration came to once the
    /// address was bound and the clock read.
    ///
    /// # Errors
    ///
    /// Those of [`Server::start`].
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub async fn start_with<W>(config: Config, begin: impl FnOnce(&Setup) -> W) -> io::Result<Server>
    where
        W: World + 'static,
    {
        if config.data.is_some() || config.from.is_some() {
            return Err(invalid("a world of your own is not kept and does not begin from a file".to_owned()));
        }
        Server::launch(config, |setup| Ok(RunningWorld::without_journal(Box::new(begin(setup)), setup))).await
    }

    async fn launch(
        config: Config,
        begin: impl FnOnce(&Setup) -> io::Result<RunningWorld>,
    ) -> io::Result<Server> {
        let public = config.public_url.as_deref().map(PublicUrl::parse).transpose().map_err(invalid)?;
        let acceptor = config.tls.as_ref().map(TlsIdentity::acceptor).transpose()?;
        let listener = TcpListener::bind(config.address).await?;
        let address = listener.local_addr()?;
        let addresses = Addresses::new(address, public, config.sandbox_access);
        let addresses = if config.tls.is_some() { addresses.over_tls() } else { addresses };
        let no_randomness = |error: getrandom::Error| io::Error::other(error.to_string());
        let token = match &config.sandbox_token {
            Some(text) => Token::parse(text).map_err(invalid)?,
            None => Token::draw().map_err(no_randomness)?,
        };

        let metrics = Arc::new(Metrics::default());
        let sender = webhook_sender(&config, &metrics)?;
        let (dispatches, to_post) = mpsc::unbounded_channel();
        let mut bounds = config.bounds;
        let SenderBounds { posts, lookups, .. } = config.sender.bounds;
        let files = if config.data.is_some() { WORLDS_MAX } else { 0 };
        let others = posts.saturating_add(2 * lookups).saturating_add(files);
        bounds.connections = descriptors::connections(bounds.connections, others);
        let shared = Shared {
            addresses,
            token: Arc::new(token),
            bounds,
            in_flight: Arc::new(InFlight::new(bounds.bytes_in_flight)),
            dialect: config.dialect.clone(),
            log: config.log,
            exit: sender.clone().map(|sender| (sender, dispatches)),
            #[cfg(feature = "mcp")]
            mcp_clock: config.mcp_clock,
        };
        let Config { seed, start, clock, rate_limit, dialect, data, .. } = config;
        let mut worlds = Worlds::new(shared, Terms { seed, start, clock, rate_limit }, begin)?;
        if let Some(data) = &data {
            worlds.keep_in(data)?;
            if data.clock_reset {
                worlds.notice(worlds.first().host.reset_clock().await?);
            }
        }
        let worlds = Arc::new(worlds);
        // A kept world has the seed that it began with.
        let seed = worlds.first().host.seed().unwrap_or(seed);
        let router = Router::new(Arc::clone(&worlds), &dialect, metrics).map_err(no_randomness)?;

        let mut timer = JoinSet::new();
        let first = Arc::clone(worlds.first());
        if first.host.is_on_disk() {
            let host = Arc::clone(&first.host);
            timer.spawn(async move { host.recover_storage().await });
        }
        if !first.host.is_frozen() {
            timer.spawn(async move { first.host.run_timer().await });
        }
        let mut openers = JoinSet::new();
        for _ in 0..OPENERS.min(thread::available_parallelism().map_or(1, usize::from)) {
            openers.spawn(Arc::clone(&worlds).open_waiting());
        }
        let idle_ones = Arc::clone(&worlds);
        timer.spawn(async move { idle_ones.end_idle_ones().await });
        let dispatcher = sender.map(|sender| {
            let dispatcher = Dispatcher::new(sender, Arc::clone(&worlds) as Arc<dyn AttemptOwners>);
            let (stop, stopped) = oneshot::channel();
            (CutOnDrop(tokio::spawn(dispatcher.run(to_post, stopped))), stop)
        });
        let (stop, stopped) = oneshot::channel();
        let listening = listen::accept(listener, acceptor, Arc::new(router), stopped);
        let listening = CutOnDrop(tokio::spawn(listening));
        Ok(Server { address, seed, worlds, openers, stop, listening, timer, dispatcher })
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address to call it by: the public one, or `http://`, or `https://` with a certificate, and the one it listens on.
    pub fn url(&self) -> &str {
        self.worlds.first().addresses.url()
    }

    /// The seed of its first world: the one that a kept world was begun with.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// Returns the progress of opening the kept worlds. The server answers meanwhile; a request to a world that is
    /// not open yet waits for it.
    pub fn openings(&self) -> watch::Receiver<Openings> {
        self.worlds.openings()
    }

    /// Waits until all of them are open. Gives those that can't be opened; what is left of them stays where it is.
    pub async fn lost_worlds(&self) -> Vec<LostWorld> {
        let mut openings = self.openings();
        // The sender is part of the server.
        openings.wait_for(|it| it.waiting == 0).await.map(|it| it.lost.clone()).unwrap_or_default()
    }

    /// The keys that its present world started with; `None` once the world has met a bug of its own.
    pub fn first_keys(&self) -> Option<FirstKeys> {
        self.worlds.first().host.first_keys().ok()
    }

    /// Returns the time of the service clock; `None` once the world has met an internal error.
    pub fn now(&self) -> Option<Timestamp> {
        self.worlds.first().host.times().ok().map(|(now, _)| now)
    }

    /// Forwards the webhooks of the first account to a handler on the developer's own machine: registers endpoints
    /// in both modes.
    ///
    /// # Errors
    ///
    /// The server's sentence: it is forwarded to already, there are too many forwards or endpoints, or deliveries stay
    /// inside ([`Reach::Simulated`]).
    pub async fn forward_to(&self, handler: &LocalHandler) -> io::Result<Forwarded> {
        let broken = || io::Error::other("the server met a bug of its own; its output says more");
        match forwards::add(self.worlds.first(), handler, None).await.map_err(|_| broken())? {
            Ok(forwarded) => Ok(forwarded),
            Err(refused) => {
                let answer: serde_json::Value = serde_json::from_slice(&refused.body).unwrap_or_default();
                Err(invalid(answer["message"].as_str().unwrap_or_default().to_owned()))
            }
        }
    }

    /// Its worlds.
    pub(crate) fn worlds(&self) -> Arc<Worlds> {
        Arc::clone(&self.worlds)
    }

    /// The token that opens `/sandbox` and `/dashboard` from another machine, or through a proxy.
    pub fn sandbox_token(&self) -> &str {
        self.worlds.first().token.as_str()
    }

    /// Accepts no more, lets the requests and then the posts that have begun finish, and ends; says how many
    /// connections had to be cut off because they took longer than
    /// [`Bounds::drain_time`](crate::Bounds::drain_time). Both together may take that long. A post that takes
    /// longer, or has not begun, is recorded as not having arrived.
    pub async fn stop(self) -> usize {
        let Server { stop, mut listening, mut timer, mut openers, dispatcher, worlds, .. } = self;
        let until = Instant::now() + worlds.first().bounds.drain_time;
        // What would go on for ever goes first.
        worlds.end_pulses();
        // An error means that it has stopped already.
        let _ = stop.send(());
        let cut_off = (&mut listening.0).await.unwrap_or(0);
        // Only now: requests waited for them.
        worlds.stop_opening();
        while openers.join_next().await.is_some() {}
        timer.shutdown().await;
        if let Some((mut dispatcher, stop)) = dispatcher {
            let _ = stop.send(until.saturating_duration_since(Instant::now()));
            // An error would be a bug in it, which must not keep the server from ending.
            let _ = (&mut dispatcher.0).await;
        }
        // An error would be a bug in it, as above.
        let _ = tokio::task::spawn_blocking(move || worlds.close_journals()).await;
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

/// Returns the sender of webhooks; `None` if they stay in the simulated network.
fn webhook_sender(config: &Config, metrics: &Arc<Metrics>) -> io::Result<Option<Arc<WebhookSender>>> {
    match config.sender.reach {
        Reach::Simulated => Ok(None),
        Reach::Network => {
            let sender = WebhookSender::new(&config.sender, &config.dialect, Arc::clone(metrics))?;
            Ok(Some(Arc::new(sender)))
        }
    }
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}
