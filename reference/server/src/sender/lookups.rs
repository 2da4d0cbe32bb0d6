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

/// The share of lookups in use.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Share {
    /// Deliveries of an account.
    Tenant(Tenant),
    /// Endpoints that an account's key is about to save.
    SavingOf(Tenant),
    /// Endpoints that are about to be saved in a world for the account of this name; for whichever it is, if it was not
    /// named.
    SavingFor(WorldNo, Option<String>),
}

/// The addresses of a name, or why there are none. In an `Arc`, because an error cannot be copied.
type LookupAnswer = Arc<io::Result<Vec<IpAddr>>>;
type Running = BTreeMap<(Share, String), watch::Receiver<Option<LookupAnswer>>>;

/// All lookups of a server.
pub(super) struct Lookups {
    resolver: Arc<dyn Resolve>,
    /// At a time: in all, and of one share.
    most: (usize, usize),
    running: Mutex<Running>,
    /// Rings whenever one ends.
    ended: Notify,
}

impl Lookups {
    pub(super) fn new(resolver: Arc<dyn Resolve>, most: (usize, usize)) -> Arc<Lookups> {
        Arc::new(Lookups { resolver, most, running: Mutex::default(), ended: Notify::new() })
    }

    /// Every address of `host`.
    ///
    /// # Errors
    ///
    /// `TimedOut` if there is no answer by `until`; otherwise what the resolver said.
    pub(super) async fn resolve(
        self: &Arc<Self>,
        share: &Share,
        host: &str,
        until: Instant,
    ) -> Result<Vec<IpAddr>, io::Error> {
        let late = || io::Error::new(io::ErrorKind::TimedOut, "the name lookup timed out");
        let answer = timeout_at(until, self.answer(share, host)).await.map_err(|_| late())?;
        match &*answer {
            Ok(addresses) => Ok(addresses.clone()),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }

    async fn answer(self: &Arc<Self>, share: &Share, host: &str) -> LookupAnswer {
        let mut running = loop {
            // Listening begins before the look, so that no end falls between the two.
            let mut ended = pin!(self.ended.notified());
            ended.as_mut().enable();
            match self.begin(share, host) {
                Some(running) => break running,
                None => ended.await,
            }
        };
        match running.wait_for(Option::is_some).await.map(|answer| answer.clone()) {
            Ok(Some(answer)) => answer,
            Ok(None) | Err(_) => Arc::new(Err(io::Error::other("the resolver met a bug of its own"))),
        }
    }

    /// The lookup of this name that runs already, or a new one; `None` if there is no place for it.
    fn begin(self: &Arc<Self>, share: &Share, host: &str) -> Option<watch::Receiver<Option<LookupAnswer>>> {
        let mut running = self.running();
        let key = (share.clone(), host.to_owned());
        if let Some(same) = running.get(&key) {
            return Some(same.clone());
        }
        let (total, per_share) = self.most;
        let held = running.keys().filter(|(other, _)| other == share).count();
        if held >= per_share || !may_take(held, total.saturating_sub(running.len()), total) {
            return None;
        }
        let (tell, told) = watch::channel(None);
        running.insert(key.clone(), told.clone());
        let place = LookupPlace { lookups: Arc::clone(self), key };
        tokio::spawn(async move {
            let answer = place.lookups.resolver.resolve(&place.key.1).await;
            tell.send_replace(Some(Arc::new(answer)));
            drop(place);
        });
        Some(told)
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        // Nothing that can panic happens under the lock.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A lookup's place, given back however the lookup ends.
struct LookupPlace {
    lookups: Arc<Lookups>,
    key: (Share, String),
}

impl Drop for LookupPlace {
    fn drop(&mut self) {
        self.lookups.running().remove(&self.key);
        self.lookups.ended.notify_waiters();
    }
}
