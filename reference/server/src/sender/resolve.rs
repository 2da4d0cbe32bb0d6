//! The resolution of names to addresses.

use std::{
    fmt,
    future::Future,
    io,
    net::{IpAddr, ToSocketAddrs},
    pin::Pin,
    thread,
};

use tokio::sync::oneshot;

/// The future of a lookup: the addresses of a name, or an error.
pub type ResolveFuture<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Resolves names. The address rule checks all returned addresses, so a resolver need not.
///
/// The caller limits the number of concurrent lookups; see [`SenderBounds::lookups`](crate::SenderBounds::lookups).
pub trait Resolve: fmt::Debug + Send + Sync {
    /// Returns all addresses of `host`, which is a name and not an IP address.
    fn resolve<'a>(&'a self, host: &'a str) -> ResolveFuture<'a>;
}

/// The operating system's resolver.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> ResolveFuture<'a> {
        let host = host.to_owned();
        Box::pin(run_on_thread(move || {
            // The port is not used.
            let found = (host.as_str(), 0).to_socket_addrs()?;
            let mut addresses: Vec<IpAddr> = found.map(|socket| socket.ip()).collect();
            addresses.dedup();
            Ok(addresses)
        }))
    }
}

/// Runs a blocking lookup on a separate thread instead of the runtime's: a runtime waits for its threads on shutdown,
/// and a lookup may take half a minute.
async fn run_on_thread<T: Send + 'static>(
    lookup: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (sender, receiver) = oneshot::channel();
    thread::Builder::new().name("name lookup".to_owned()).spawn(move || {
        // An error means that the receiver was dropped.
        let _ = sender.send(lookup());
    })?;
    receiver.await.map_err(|_| io::Error::other("the resolver failed with an internal error"))?
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn a_runtime_that_ends_does_not_wait_for_a_lookup() {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (started_sender, started_receiver) = mpsc::channel();
        let (end_sender, end_receiver) = mpsc::channel::<()>();
        let lookup = runtime.spawn(run_on_thread(move || {
            started_sender.send(()).expect("the test has the receiver");
            end_receiver.recv().map_err(io::Error::other)
        }));
        runtime.block_on(tokio::task::yield_now());
        started_receiver.recv().expect("the lookup starts");
        drop(runtime);
        assert!(end_sender.send(()).is_ok(), "the lookup is still running when the runtime has ended");
        drop(lookup);
    }

    #[tokio::test]
    async fn the_system_resolver_resolves_localhost() {
        let found = SystemResolver.resolve("localhost").await.expect("every system knows localhost");
        assert!(found.iter().all(IpAddr::is_loopback) && !found.is_empty(), "{found:?}");
    }
}
