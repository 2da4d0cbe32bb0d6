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

/// The addresses of a name, or why there are none.
pub type Resolved<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Looks names up. Judges nothing: all that it answers is judged by the address rule.
///
/// How many lookups there are at a time is bounded by whoever asks; see
/// [`SenderBounds::lookups`](crate::SenderBounds::lookups).
pub trait Resolve: fmt::Debug + Send + Sync {
    /// Every address of `host`, which is a name and not an address.
    fn resolve<'a>(&'a self, host: &'a str) -> Resolved<'a>;
}

/// The operating system's resolver, with whatever it is configured to ask.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolved<'a> {
        let host = host.to_owned();
        Box::pin(on_a_thread(move || {
            // The port plays no part in the lookup.
            let found = (host.as_str(), 0).to_socket_addrs()?;
            let mut addresses: Vec<IpAddr> = found.map(|socket| socket.ip()).collect();
            addresses.dedup();
            Ok(addresses)
        }))
    }
}

/// Does what may block on a thread of its own, and not on one of the runtime's: a runtime that ends waits for its
/// threads, and a lookup may take half a minute.
async fn on_a_thread<T: Send + 'static>(
    look_up: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (tell, told) = oneshot::channel();
    thread::Builder::new().name("name lookup".to_owned()).spawn(move || {
        // Nobody may wait for it any more.
        let _ = tell.send(look_up());
    })?;
    told.await.map_err(|_| io::Error::other("the resolver met a bug of its own"))?
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn a_runtime_that_ends_does_not_wait_for_a_lookup() {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (began, has_begun) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let lookup = runtime.spawn(on_a_thread(move || {
            began.send(()).expect("the test listens");
            ends.recv().map_err(io::Error::other)
        }));
        runtime.block_on(tokio::task::yield_now());
        has_begun.recv().expect("the lookup begins");
        drop(runtime);
        assert!(end.send(()).is_ok(), "the lookup is still under way when the runtime has ended");
        drop(lookup);
    }

    #[tokio::test]
    async fn the_system_knows_its_own_name() {
        let found = SystemResolver.resolve("localhost").await.expect("every system knows localhost");
        assert!(found.iter().all(IpAddr::is_loopback) && !found.is_empty(), "{found:?}");
    }
}
