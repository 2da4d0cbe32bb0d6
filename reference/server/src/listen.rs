//! Accepts connections up to the limit, and lets running requests finish when the server stops.

use std::{io, sync::Arc, time::Duration};

use hyper_util::server::graceful::GracefulShutdown;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    task::JoinSet,
    time::{Instant, timeout},
};

use tokio_rustls::TlsAcceptor;

use crate::{
    activity::Activity,
    connection,
    router::Router,
    sandbox_access::ConnectionAddrs,
    tls::{self, TlsOrPlain},
};

/// The pause before the next accept after the operating system ran out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The time to wait for an evicted connection before another one is evicted.
const EVICTION_WAIT: Duration = Duration::from_millis(100);

/// Accepts connections until `stop`, then waits for running requests, at most `Bounds::drain_time`. Returns the number
/// of connections that are still open then.
pub(crate) async fn accept(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    router: Arc<Router>,
    mut stop: oneshot::Receiver<()>,
) -> usize {
    let mut slots = ConnectionSlots::new(router.backend.bounds.connections);
    let stopping = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            biased;
            _ = &mut stop => break,
            stream = accept_next(&listener) => stream,
        };
        let Ok((stream, addrs)) = stream else { continue };
        let (slot, activity) = tokio::select! {
            biased;
            _ = &mut stop => break,
            slot = slots.take() => slot,
        };
        while connections.try_join_next().is_some() {}
        let open = OpenConnection::new(Arc::clone(&router));
        let (router, acceptor, watcher) = (Arc::clone(&router), acceptor.clone(), stopping.watcher());
        connections.spawn(async move {
            let opened = match &acceptor {
                None => Some(TlsOrPlain::Plain(stream)),
                Some(acceptor) => tokio::select! {
                    opened = tls::accept_tls_or_plain(acceptor, stream, router.backend.bounds.head_time) => opened,
                    () = activity.wait_for_close() => None,
                },
            };
            match opened {
                Some(TlsOrPlain::Plain(stream)) => {
                    connection::serve(router, stream, addrs, activity, watcher).await;
                }
                Some(TlsOrPlain::Tls(stream)) => {
                    connection::serve(router, stream, addrs, activity, watcher).await;
                }
                None => {}
            }
            drop((open, slot));
        });
    }
    drop(listener);
    let finished = async {
        tokio::join!(stopping.shutdown(), async { while connections.join_next().await.is_some() {} })
    };
    let _ = tokio::time::timeout(router.backend.bounds.drain_time, finished).await;
    while connections.try_join_next().is_some() {}
    connections.len()
}

/// The slots for connections. While all are in use, idle connections are evicted.
struct ConnectionSlots {
    free: Arc<Semaphore>,
    slots_max: usize,
    /// The activity of each connection that has a slot.
    activities: Vec<Arc<Activity>>,
}

impl ConnectionSlots {
    fn new(connections_max: usize) -> ConnectionSlots {
        let slots_max = connections_max.clamp(1, Semaphore::MAX_PERMITS);
        ConnectionSlots { free: Arc::new(Semaphore::new(slots_max)), slots_max, activities: Vec::new() }
    }

    /// Waits for a slot for one more connection.
    async fn take(&mut self) -> (OwnedSemaphorePermit, Arc<Activity>) {
        let slot = loop {
            if let Ok(slot) = Arc::clone(&self.free).try_acquire_owned() {
                break slot;
            }
            self.remove_closed();
            let now = Instant::now();
            let idle =
                self.activities.iter().filter_map(|activity| Some((activity.idleness(now)?, activity)));
            if let Some((_, next_evicted)) = idle.min_by_key(|(idleness, _)| *idleness) {
                next_evicted.evict();
            }
            if let Ok(slot) = timeout(EVICTION_WAIT, Arc::clone(&self.free).acquire_owned()).await {
                break slot.expect("the semaphore is never closed");
            }
        };
        if self.activities.len() >= self.slots_max {
            self.remove_closed();
        }
        let activity = Arc::new(Activity::new());
        self.activities.push(Arc::clone(&activity));
        (slot, activity)
    }

    /// Removes closed connections: an open one holds its activity.
    fn remove_closed(&mut self) {
        self.activities.retain(|activity| Arc::strong_count(activity) > 1);
    }
}

async fn accept_next(listener: &TcpListener) -> io::Result<(TcpStream, ConnectionAddrs)> {
    let (stream, remote) = match listener.accept().await {
        Ok(accepted) => accepted,
        Err(error) => {
            // A client that disconnected while queued is not an error; running out of file descriptors is.
            let disconnects = [io::ErrorKind::ConnectionAborted, io::ErrorKind::ConnectionReset];
            if !disconnects.contains(&error.kind()) {
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
            return Err(error);
        }
    };
    // A response is one write; waiting for more would only delay it.
    let _ = stream.set_nodelay(true);
    let local = stream.local_addr()?;
    Ok((stream, ConnectionAddrs { remote: remote.ip(), local: local.ip() }))
}

/// Guard that counts an open connection in the metrics.
struct OpenConnection(Arc<Router>);

impl OpenConnection {
    fn new(router: Arc<Router>) -> OpenConnection {
        router.metrics.on_open();
        OpenConnection(router)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.metrics.on_close();
    }
}
