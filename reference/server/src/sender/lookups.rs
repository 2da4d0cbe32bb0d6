//! DNS lookups: a bounded number at a time, shared fairly between accounts.
//!
//! An abandoned lookup keeps its slot until it ends, because its thread cannot be stopped. Concurrent lookups of
//! one name by one consumer are made once; results are not cached.

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

use super::{Resolve, Tenant, WorldNo, queue::may_take_slot};

/// The consumer whose quota a lookup counts against.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LookupConsumer {
    /// Delivery attempts of an account.
    Delivery(Tenant),
    /// Saving endpoints with a key of an account.
    SaveWithKey(Tenant),
    /// Saving endpoints in a world through the sandbox, for the account of this name; `None` if the request has none.
    SaveForAccount(WorldNo, Option<String>),
}

/// The result of a lookup. In an `Arc`, because `io::Error` is not `Clone`.
type LookupResult = Arc<io::Result<Vec<IpAddr>>>;
type Running = BTreeMap<(LookupConsumer, String), watch::Receiver<Option<LookupResult>>>;

/// The lookups of a server.
pub(super) struct Lookups {
    resolver: Arc<dyn Resolve>,
    /// The maximum number of running lookups: in total, and of one consumer.
    limits: (usize, usize),
    running: Mutex<Running>,
    /// Notified when a lookup ends.
    ended: Notify,
}

impl Lookups {
    pub(super) fn new(resolver: Arc<dyn Resolve>, limits: (usize, usize)) -> Arc<Lookups> {
        Arc::new(Lookups { resolver, limits, running: Mutex::default(), ended: Notify::new() })
    }

    /// Returns the addresses of `host`.
    ///
    /// # Errors
    ///
    /// `TimedOut` if there is no result by the deadline; otherwise the error of the resolver.
    pub(super) async fn resolve(
        self: &Arc<Self>,
        consumer: &LookupConsumer,
        host: &str,
        deadline: Instant,
    ) -> Result<Vec<IpAddr>, io::Error> {
        let timed_out = || io::Error::new(io::ErrorKind::TimedOut, "the name lookup timed out");
        let result =
            timeout_at(deadline, self.wait_for_result(consumer, host)).await.map_err(|_| timed_out())?;
        match &*result {
            Ok(addresses) => Ok(addresses.clone()),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }

    /// Waits for a slot and then for the result of the lookup.
    async fn wait_for_result(self: &Arc<Self>, consumer: &LookupConsumer, host: &str) -> LookupResult {
        let mut running = loop {
            // Register before checking, so that no notification is lost between the two.
            let mut ended = pin!(self.ended.notified());
            ended.as_mut().enable();
            match self.join_or_start(consumer, host) {
                Some(running) => break running,
                None => ended.await,
            }
        };
        match running.wait_for(Option::is_some).await.map(|result| result.clone()) {
            Ok(Some(result)) => result,
            Ok(None) | Err(_) => {
                Arc::new(Err(io::Error::other("the resolver failed with an internal error")))
            }
        }
    }

    /// Returns the consumer's running lookup of this name, or starts one; `None` if the consumer may not take a slot.
    fn join_or_start(
        self: &Arc<Self>,
        consumer: &LookupConsumer,
        host: &str,
    ) -> Option<watch::Receiver<Option<LookupResult>>> {
        let mut running = self.lock();
        let key = (consumer.clone(), host.to_owned());
        if let Some(lookup) = running.get(&key) {
            return Some(lookup.clone());
        }
        let (total, per_consumer) = self.limits;
        let slots_in_use = running.keys().filter(|(other, _)| other == consumer).count();
        if slots_in_use >= per_consumer
            || !may_take_slot(slots_in_use, total.saturating_sub(running.len()), total)
        {
            return None;
        }
        let (sender, receiver) = watch::channel(None);
        running.insert(key.clone(), receiver.clone());
        let slot = LookupSlot { lookups: Arc::clone(self), key };
        tokio::spawn(async move {
            let result = slot.lookups.resolver.resolve(&slot.key.1).await;
            sender.send_replace(Some(Arc::new(result)));
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
    key: (LookupConsumer, String),
}

impl Drop for LookupSlot {
    fn drop(&mut self) {
        self.lookups.lock().remove(&self.key);
        self.lookups.ended.notify_waiters();
    }
}
