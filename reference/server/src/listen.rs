//! Accepts connections, as many as may be served at a time, and lets them finish when the server stops.

use std::{io, sync::Arc, time::Duration};

use hyper_util::server::graceful::GracefulShutdown;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, oneshot},
    task::JoinSet,
};

use crate::{connection, front::Front, gate::Ends};

/// How long to leave the accept queue alone when the system has no room for another connection.
const BREATH: Duration = Duration::from_millis(50);

/// Accepts until `stop`, then waits for what has begun; says how many connections had to be cut off.
pub(crate) async fn accept(
    listener: TcpListener,
    front: Arc<Front>,
    mut stop: oneshot::Receiver<()>,
) -> usize {
    let seats = Arc::new(Semaphore::new(front.bounds.connections.clamp(1, Semaphore::MAX_PERMITS)));
    let stopping = GracefulShutdown::new();
    let mut lines = JoinSet::new();
    loop {
        // The seat first: whom we cannot serve stays in the queue of the operating system.
        let seat = tokio::select! {
            biased;
            _ = &mut stop => break,
            seat = Arc::clone(&seats).acquire_owned() => seat.expect("the semaphore is never closed"),
        };
        let stream = tokio::select! {
            biased;
            _ = &mut stop => break,
            stream = next(&listener) => stream,
        };
        let Ok((stream, ends)) = stream else { continue };
        while lines.try_join_next().is_some() {}
        let open = Open::new(Arc::clone(&front));
        let line = connection::serve(Arc::clone(&front), stream, ends, stopping.watcher());
        lines.spawn(async move {
            line.await;
            drop((open, seat));
        });
    }
    drop(listener);
    let finished =
        async { tokio::join!(stopping.shutdown(), async { while lines.join_next().await.is_some() {} }) };
    let _ = tokio::time::timeout(front.bounds.drain_time, finished).await;
    while lines.try_join_next().is_some() {}
    lines.len()
}

async fn next(listener: &TcpListener) -> io::Result<(TcpStream, Ends)> {
    let (stream, remote) = match listener.accept().await {
        Ok(accepted) => accepted,
        Err(error) => {
            // A client that gave up in the queue is no trouble; having no file descriptors left is.
            let gave_up = [io::ErrorKind::ConnectionAborted, io::ErrorKind::ConnectionReset];
            if !gave_up.contains(&error.kind()) {
                tokio::time::sleep(BREATH).await;
            }
            return Err(error);
        }
    };
    // An answer is one write; waiting for more would only delay it.
    let _ = stream.set_nodelay(true);
    let local = stream.local_addr()?;
    Ok((stream, Ends { remote: remote.ip(), local: local.ip() }))
}

/// Counts a connection for as long as it is open, however it ends.
struct Open(Arc<Front>);

impl Open {
    fn new(front: Arc<Front>) -> Open {
        front.metrics.on_open();
        Open(front)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.metrics.on_close();
    }
}
