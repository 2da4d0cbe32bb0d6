//! DNS lookups: a bounded number at a time, shared fairly between accounts.
//!
//! An abandoned lookup keeps its slot until it ends, because its thread cannot be stopped. Concurrent attempts for one
//! name share a lookup; results are not cached.

use std::{
    collections::BTreeMap,
    io,
    net::IpAddr,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout_at},
};

use super::{Resolve, Tenant, WorldNo, queue::may_take};

/// The consumer that a lookup counts for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Share {
    /// Deliveries of an account.
    Tenant(Tenant),
    /// Endpoints that are saved with a key of an account.
    SavingOf(Tenant),
    /// Endpoints that are saved in a world for the account of this name; `None` if the request names no account.
    SavingFor(WorldNo, Option<String>),
}

/// The result of a lookup. In an `Arc`, because `io::Error` is not `Clone`.
type LookupAnswer = Arc<io::Result<Vec<IpAddr>>>;
type Running = BTreeMap<(Share, String), watch::Receiver<Option<LookupAnswer>>>;

/// The lookups of a server.
pub(super) struct Lookups {
    resolver: Arc<dyn Resolve>,
    /// The maximum number of running lookups: in total, and of one share.
    most: (usize, usize),
    running: Mutex<Running>,
    /// Notified when a lookup ends.
    ended: Notify,
}

impl Lookups {
    pub(super) fn new(resolver: Arc<dyn Resolve>, most: (usize, usize)) -> Arc<Lookups> {
        Arc::new(Lookups { resolver, most, running: Mutex::default(), ended: Notify::new() })
    }

    /// Returns the addresses of `host`.
    ///
    /// # Errors
    ///
    /// `TimedOut` if there is no answer by `until`; otherwise the error of the resolver.
    pub(super) async fn resolve(
        self: &Arc<Self>,
        share: &Share,
        host: &str,
        until: Instant,
    ) -> Result<Vec<IpAddr>, io::Error> {
        let late = || io::Error::new(io::ErrorKind::TimedOut, "the name lookup timed out");
        let answer = timeout_at(until, self.wait_for_result(share, host)).await.map_err(|_| late())?;
        match &*answer {
            Ok(addresses) => Ok(addresses.clone()),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }

    async fn wait_for_result(self: &Arc<Self>, share: &Share, host: &str) -> LookupAnswer {
        let mut running = loop {
            // Register before checking, so that no notification is lost between the two.
            let mut ended = pin!(self.ended.notified());
            ended.as_mut().enable();
            match self.join_or_start(share, host) {
                Some(running) => break running,
                None => ended.await,
            }
        };
        match running.wait_for(Option::is_some).await.map(|answer| answer.clone()) {
            Ok(Some(answer)) => answer,
            Ok(None) | Err(_) => {
                Arc::new(Err(io::Error::other("the resolver failed with an internal error")))
            }
        }
    }

    /// Returns the running lookup of this name, or starts one; `None` if there is no free slot.
    fn join_or_start(
        self: &Arc<Self>,
        share: &Share,
        host: &str,
    ) -> Option<watch::Receiver<Option<LookupAnswer>>> {
        let mut running = self.lock();
        let key = (share.clone(), host.to_owned());
        if let Some(same) = running.get(&key) {
            return Some(same.clone());
        }
        let (total, per_share) = self.most;
        let held = running.keys().filter(|(other, _)| other == share).count();
        if held >= per_share || !may_take(held, total.saturating_sub(running.len()), total) {
            return None;
        }
        let (sender, receiver) = watch::channel(None);
        running.insert(key.clone(), receiver.clone());
        let slot = LookupSlot { lookups: Arc::clone(self), key };
        tokio::spawn(async move {
            let answer = slot.lookups.resolver.resolve(&slot.key.1).await;
            sender.send_replace(Some(Arc::new(answer)));
            drop(slot);
        });
        Some(receiver)
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        // No code under the lock can panic.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guard: the slot of a lookup, freed on drop.
struct LookupSlot {
    lookups: Arc<Lookups>,
    key: (Share, String),
}

impl Drop for LookupSlot {
    fn drop(&mut self) {
        self.lookups.lock().remove(&self.key);
        self.lookups.ended.notify_waiters();
    }
}
