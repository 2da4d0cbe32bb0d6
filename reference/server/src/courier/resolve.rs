//! How names become addresses.

use std::{fmt, future::Future, io, net::IpAddr, pin::Pin};

/// The addresses of a name, or why there are none.
pub type Resolved<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Looks names up. Judges nothing: all that it answers is judged by the address rule.
pub trait Resolve: fmt::Debug + Send + Sync {
    /// Every address of `host`, which is a name and not an address.
    fn resolve<'a>(&'a self, host: &'a str) -> Resolved<'a>;
}

/// The operating system's resolver, with whatever it is configured to ask.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolved<'a> {
        Box::pin(async move {
            // The port plays no part in the lookup.
            let found = tokio::net::lookup_host((host, 0)).await?;
            let mut addresses: Vec<IpAddr> = found.map(|socket| socket.ip()).collect();
            addresses.dedup();
            Ok(addresses)
        })
    }
}
