//! [`Server`]: starts all parts of a server and stops them in order.

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
    backend::{SharedState, WorldParameters},
    config::Config,
    descriptors,
    forwards::{self, ForwardRecord},
    journal::{self, RunningWorld},
    listen,
    metrics::Metrics,
    response_budget::ResponseBudget,
    router::Router,
    sandbox_access::SandboxToken,
    sender::{AttemptOwners, Dispatcher, LocalHandler, SenderBounds, WebhookSender},
    tls::TlsIdentity,
    world::World,
    worlds::{OpeningProgress, UnavailableWorld, WORLDS_MAX, Worlds},
};

/// The maximum number of stored worlds that are opened at a time. Each uses a core.
const OPENERS_MAX: usize = 4;

/// A running server. Dropping it closes all connections; [`Server::stop`] lets running requests finish.
///
/// Requires a Tokio runtime with time and input/output; [`Local`](crate::Local) starts its own.
///
/// ```
/// use reference_server::{Config, Server};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let server = Server::start(Config { rate_limit: None, ..Config::local() }).await?;
/// let keys = server.first_keys().expect("the world of a new server works");
/// assert!(server.url().starts_with("http://127.0.0.1:") && keys.live.starts_with("svc_live_"));
/// assert_eq!(server.stop().await, 0, "connections that had to be closed");
/// # Ok(())
/// # }
/// ```
pub struct Server {
    address: SocketAddr,
    seed: Seed,
    worlds: Arc<Worlds>,
    /// Tasks that open stored worlds. Aborted on drop.
    openers: JoinSet<()>,
    stop: oneshot::Sender<()>,
    accept_task: AbortOnDrop<usize>,
    /// The timer of the first world, and the task that closes idle worlds. Aborted on drop.
    background_tasks: JoinSet<()>,
    /// The task that sends webhooks, and the channel that stops it within a time; `None` if deliveries are simulated.
    dispatcher: Option<(AbortOnDrop<()>, oneshot::Sender<Duration>)>,
}

impl Server {
    /// Binds the address, opens or creates the world, and serves it.
    ///
    /// Raises the process's limit of file descriptors to the number that connections and deliveries need, as far as the
    /// operating system allows. If that is not enough, the number of connections is reduced, not that of deliveries.
    ///
    /// # Errors
    ///
    /// `InvalidInput` names the invalid setting: the public address, a name of the dialect that is not allowed in a
    /// header, a file without root certificates, a certificate that does not match its key, or a setting that
    /// contradicts the stored world. `WouldBlock`: another process has opened the stored world. `InvalidData`: the
    /// stored or imported world is damaged. Any other error is the operating system's: the address cannot be bound, or
    /// there is no randomness for the sandbox token.
    ///
    /// # Panics
    ///
    /// Panics outside of a Tokio runtime.
    pub async fn start(config: Config) -> io::Result<Server> {
        let (data, from) = (config.data.clone(), config.exported_world.clone());
        Server::launch(config, |setup| journal::open_or_create(setup, data.as_ref(), from.as_deref())).await
    }

    /// Starts a server with a custom first world. `create_world` gets the resolved setup, after the address was bound
    /// and the clock was read.
    ///
    /// # Errors
    ///
    /// The errors of [`Server::start`].
    ///
    /// # Panics
    ///
    /// Panics outside of a Tokio runtime.
    pub async fn start_with<W>(config: Config, create_world: impl FnOnce(&Setup) -> W) -> io::Result<Server>
    where
        W: World + 'static,
    {
        if config.data.is_some() || config.exported_world.is_some() {
            return Err(invalid_input("a custom world cannot be stored or start from a file".to_owned()));
        }
        Server::launch(config, |setup| {
            Ok(RunningWorld::without_journal(Box::new(create_world(setup)), setup))
        })
        .await
    }

    async fn launch(
        config: Config,
        create_world: impl FnOnce(&Setup) -> io::Result<RunningWorld>,
    ) -> io::Result<Server> {
        let public = config.public_url.as_deref().map(PublicUrl::parse).transpose().map_err(invalid_input)?;
        let acceptor = config.tls.as_ref().map(TlsIdentity::acceptor).transpose()?;
        let listener = TcpListener::bind(config.address).await?;
        let address = listener.local_addr()?;
        let addresses = Addresses::new(address, public, config.sandbox_access);
        let addresses = if config.tls.is_some() { addresses.with_tls() } else { addresses };
        let no_randomness = |error: getrandom::Error| io::Error::other(error.to_string());
        let token = match &config.sandbox_token {
            Some(text) => SandboxToken::parse(text).map_err(invalid_input)?,
            None => SandboxToken::generate().map_err(no_randomness)?,
        };

        let metrics = Arc::new(Metrics::default());
        let sender = webhook_sender(&config, &metrics)?;
        let (dispatches, attempts) = mpsc::unbounded_channel();
        let mut bounds = config.bounds;
        let SenderBounds { attempts: attempts_max, lookups, .. } = config.sender.bounds;
        let world_files = if config.data.is_some() { WORLDS_MAX } else { 0 };
        // A DNS lookup may need two descriptors.
        let reserved = attempts_max.saturating_add(2 * lookups).saturating_add(world_files);
        bounds.connections = descriptors::connection_limit(bounds.connections, reserved);
        let shared = SharedState {
            addresses,
            token: Arc::new(token),
            bounds,
            in_flight: Arc::new(ResponseBudget::new(bounds.bytes_in_flight)),
            dialect: config.dialect.clone(),
            log: config.log,
            webhook_sender: sender.clone().map(|sender| (sender, dispatches)),
            #[cfg(feature = "mcp")]
            mcp_clock: config.mcp_clock,
        };
        let Config { seed, start, clock, rate_limit, dialect, data, .. } = config;
        let mut worlds =
            Worlds::new(shared, WorldParameters { seed, start, clock, rate_limit }, create_world)?;
        if let Some(data) = &data {
            worlds.use_directory(data)?;
            if data.clock_reset {
                worlds.add_notice(worlds.first().host.reset_clock().await?);
            }
        }
        let worlds = Arc::new(worlds);
        // A stored world has the seed that it was created with.
        let seed = worlds.first().host.seed().unwrap_or(seed);
        let router = Router::new(Arc::clone(&worlds), &dialect, metrics).map_err(no_randomness)?;

        let mut background_tasks = JoinSet::new();
        let first = Arc::clone(worlds.first());
        if first.host.is_on_disk() {
            let host = Arc::clone(&first.host);
            background_tasks.spawn(async move { host.recover_storage().await });
        }
        if !first.host.is_frozen() {
            background_tasks.spawn(async move { first.host.run_timer().await });
        }
        let mut openers = JoinSet::new();
        for _ in 0..OPENERS_MAX.min(thread::available_parallelism().map_or(1, usize::from)) {
            openers.spawn(Arc::clone(&worlds).open_waiting());
        }
        let closer = Arc::clone(&worlds);
        background_tasks.spawn(async move { closer.end_idle_worlds().await });
        let dispatcher = sender.map(|sender| {
            let dispatcher = Dispatcher::new(sender, Arc::clone(&worlds) as Arc<dyn AttemptOwners>);
            let (stop, stopped) = oneshot::channel();
            (AbortOnDrop(tokio::spawn(dispatcher.run(attempts, stopped))), stop)
        });
        let (stop, stopped) = oneshot::channel();
        let accept = listen::accept(listener, acceptor, Arc::new(router), stopped);
        let accept_task = AbortOnDrop(tokio::spawn(accept));
        Ok(Server { address, seed, worlds, openers, stop, accept_task, background_tasks, dispatcher })
    }

    /// Returns the listening address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL for clients: the public address if there is one, else the listening address with `http://`, or
    /// `https://` if there is a certificate.
    pub fn url(&self) -> &str {
        self.worlds.first().addresses.url()
    }

    /// Returns the seed of the first world. For a stored world, that is the seed it was created with.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// Returns the progress of opening the stored worlds. The server accepts requests meanwhile; a request to a world
    /// that is not open yet waits for it.
    pub fn openings(&self) -> watch::Receiver<OpeningProgress> {
        self.worlds.openings()
    }

    /// Waits until no stored world has to be opened. Returns those that cannot be opened; their files are not changed.
    pub async fn unavailable_worlds(&self) -> Vec<UnavailableWorld> {
        let mut openings = self.openings();
        // The sender lives as long as the server, so this cannot fail.
        openings
            .wait_for(|state| state.waiting == 0)
            .await
            .map(|state| state.unavailable.clone())
            .unwrap_or_default()
    }

    /// Returns the keys that the first world was created with; `None` after an internal error of the world.
    pub fn first_keys(&self) -> Option<FirstKeys> {
        self.worlds.first().host.first_keys().ok()
    }

    /// Returns the time of the service clock; `None` after an internal error of the world.
    pub fn now(&self) -> Option<Timestamp> {
        self.worlds.first().host.time_and_next_due().ok().map(|(now, _)| now)
    }

    /// Forwards the webhooks of the first account to a handler on the developer's machine: registers endpoints in both
    /// modes.
    ///
    /// # Errors
    ///
    /// `InvalidInput` with the reason: a forward to this handler exists, there are too many forwards or endpoints, or
    /// deliveries are simulated ([`Reach::Simulated`]). Another kind after an internal error of the server.
    pub async fn forward_to(&self, handler: &LocalHandler) -> io::Result<ForwardRecord> {
        let broken = || io::Error::other("the server failed with an internal error; see its output");
        match forwards::add_forward(self.worlds.first(), handler, None).await.map_err(|_| broken())? {
            Ok(forward) => Ok(forward),
            Err(error_response) => {
                let body: serde_json::Value =
                    serde_json::from_slice(&error_response.body).unwrap_or_default();
                Err(invalid_input(body["message"].as_str().unwrap_or_default().to_owned()))
            }
        }
    }

    pub(crate) fn worlds(&self) -> Arc<Worlds> {
        Arc::clone(&self.worlds)
    }

    /// Returns the token for `/sandbox` and `/dashboard` from another machine, or through a proxy.
    pub fn sandbox_token(&self) -> &str {
        self.worlds.first().token.as_str()
    }

    /// Stops accepting connections, waits for running requests and then for running delivery attempts, and returns the
    /// number of connections that had to be closed because they took longer than
    /// [`Bounds::drain_time`](crate::Bounds::drain_time). That time is the limit for both together. Attempts that take
    /// longer or have not started are recorded as failed.
    pub async fn stop(self) -> usize {
        let Server { stop, mut accept_task, mut background_tasks, mut openers, dispatcher, worlds, .. } =
            self;
        let deadline = Instant::now() + worlds.first().bounds.drain_time;
        // Event streams would not end by themselves.
        worlds.end_observers();
        // An error means that the task has already stopped.
        let _ = stop.send(());
        let closed_early = (&mut accept_task.0).await.unwrap_or(0);
        // Not earlier, because requests wait for worlds that are being opened.
        worlds.stop_opening();
        while openers.join_next().await.is_some() {}
        background_tasks.shutdown().await;
        if let Some((mut dispatcher, stop)) = dispatcher {
            let _ = stop.send(deadline.saturating_duration_since(Instant::now()));
            // An error would be a panic of the dispatcher, which must not stop the shutdown.
            let _ = (&mut dispatcher.0).await;
        }
        // An error would be a panic, which must not stop the shutdown.
        let _ = tokio::task::spawn_blocking(move || worlds.close_journals()).await;
        closed_early
    }

    /// Serves until `shutdown` is ready, then stops as [`Server::stop`] does and returns the same number.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> usize {
        shutdown.await;
        self.stop().await
    }
}

/// A task that is aborted on drop.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Creates the webhook sender; `None` if deliveries are simulated.
fn webhook_sender(config: &Config, metrics: &Arc<Metrics>) -> io::Result<Option<Arc<WebhookSender>>> {
    match config.sender.reach {
        Reach::Simulated => Ok(None),
        Reach::Network => {
            let sender = WebhookSender::new(&config.sender, &config.dialect, Arc::clone(metrics))?;
            Ok(Some(Arc::new(sender)))
        }
    }
}

fn invalid_input(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}
