//! [`TestResolver`]: a DNS resolver whose results a test sets and changes.

use std::{
    collections::BTreeMap,
    io,
    net::IpAddr,
    sync::{Arc, Mutex},
};

use reference_server::{Resolve, ResolveFuture};
use tokio::sync::Notify;

/// A name whose lookup never ends, in every test.
pub(crate) const STALLED_NAME: &str = "slow.example";
/// The address for which the test resolver panics.
pub(crate) const PANIC_ADDRESS: &str = "0.0.0.99";

#[derive(Clone, Debug, Default)]
pub(crate) struct TestResolver(Arc<Mutex<NameTable>>);

#[derive(Debug, Default)]
struct NameTable {
    addresses: BTreeMap<String, Vec<IpAddr>>,
    /// The prefix of names whose lookups never end.
    stalled: Option<&'static str>,
    /// Notified when such a lookup starts.
    stalls: Arc<Notify>,
}

impl TestResolver {
    /// Sets the addresses of a name.
    pub(crate) fn set(&self, host: &str, addresses: &[&str]) {
        let addresses =
            addresses.iter().map(|ip| ip.parse().expect("addresses in tests are valid")).collect();
        self.0.lock().expect("no test panics here").addresses.insert(host.to_owned(), addresses);
    }

    /// Makes lookups of names with this prefix never end.
    pub(crate) fn stall(&self, prefix: &'static str) {
        self.0.lock().expect("no test panics here").stalled = Some(prefix);
    }

    /// Waits until a lookup that never ends has started.
    pub(crate) async fn wait_for_stall(&self) {
        let stalls = Arc::clone(&self.0.lock().expect("no test panics here").stalls);
        stalls.notified().await;
    }
}

impl Resolve for TestResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> ResolveFuture<'a> {
        Box::pin(async move {
            let (found, is_stalled, stalls) = {
                let table = self.0.lock().expect("no test panics here");
                (
                    table.addresses.get(host).cloned(),
                    table.stalled.is_some_and(|prefix| host.starts_with(prefix)),
                    Arc::clone(&table.stalls),
                )
            };
            if host == STALLED_NAME || is_stalled {
                stalls.notify_one();
                return std::future::pending().await;
            }
            let causes_panic = |found: &Vec<IpAddr>| found.iter().any(|ip| ip.to_string() == PANIC_ADDRESS);
            assert!(
                !found.as_ref().is_some_and(causes_panic),
                "the test resolver panics for {PANIC_ADDRESS}"
            );
            found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such name"))
        })
    }
}
