//! The webhook sender: sends deliveries over the network, shared fairly between accounts.
//!
//! The world decides what is sent and when. The sender makes each attempt and reports its result exactly once, even if
//! the world has been closed, the server stops, or the attempt panics. It does not retry.
//!
//! ```text
//! dispatcher ── queue                                order: round robin of accounts, then of an account's hosts
//!     └── WebhookSender ──┬── connector ── lookups   resolve, check the address, connect, TLS
//!                         └── exchange               one request, one bounded response
//! ```
//!
//! *Fairness.* At most 256 attempts run at once (`SenderBounds`), 8 of one account to one host. A quarter of the slots
//! is a reserve for accounts that have no slot. An account may take a further slot only while, besides the reserve,
//! more slots are free than it holds. A slow host fills only its own queue. If all slots are in use and an account has
//! none, attempts that have run for more than 3 seconds are aborted, those of the account with the most slots first; an
//! aborted attempt fails and is retried by the world's schedule. No delivery is refused for lack of slots: it waits in
//! the queue.
//!
//! *Address rule.* Every attempt resolves the name again. All resolved addresses must be public, and the connection goes
//! to one of them without resolving the name a second time, so DNS rebinding reaches no internal address. Redirects are
//! not followed, proxies are not used and connections are not reused. At most 64 lookups run at once, shared like slots.
//! `forward` is the exception for development: it sends deliveries for a public host name to a handler on this machine.
//!
//! *Result.* The status code decides. After it, an endless, slow or truncated body only shortens the excerpt in the
//! delivery log (`open.delivery.success`). The timeout is 5 seconds for lookup, connection and TLS together, and 15 for
//! the attempt. The signature uses the time of day instead of the service clock, because a real receiver compares it
//! with its own clock.
//!
//! Example: an endpoint at `https://shop.example/hooks` whose name resolves to 203.0.113.7 and 10.0.0.4. One of them is
//! private, so the attempt is reported as `NotPublic` and nothing is sent. After the DNS entry is corrected, the next
//! attempt passes the check.
//!
//! Must not contain: a retry schedule, a decision about an event's content, or a second way to connect.

mod connector;
mod dispatcher;
mod exchange;
mod forward;
mod head_limit;
mod host_check;
mod lookups;
mod queue;
mod resolve;
mod settings;
mod trust;

use std::{
    io,
    sync::{Arc, PoisonError, RwLock, Weak},
};

pub(crate) use dispatcher::Dispatcher;
use forward::Target;
pub use forward::{Forward, ForwardError, LocalHandler};
pub(crate) use host_check::{HostCheck, may_save_endpoint};
use http::HeaderName;
use lookups::Lookups;
use reference_core::{
    dialect::Dialect,
    endpoint::address_rule::EndpointUrl,
    id::AccountNo,
    outbox::{AttemptReport, AttemptResult, HttpTrace, SentHeaders},
};
use reference_wire::AttemptRequest;
pub use resolve::{Resolve, ResolveFuture, SystemResolver};
pub use settings::{SenderBounds, SenderConfig};
use simulator::sandbox::{AttemptId, OutgoingAttempt};
use tokio::{
    sync::oneshot,
    time::{Instant, timeout},
};
use tokio_rustls::TlsConnector;

use crate::{clock, metrics::Metrics};

/// The maximum number of added forwards.
const FORWARDS_MAX: usize = 256;
/// The hint in the error of an attempt to a receiver on this machine or in a private network.
const LOCAL_HINT: &str = "to reach a handler on this machine, start with `chargeproof serve --forward-to http://localhost:3000/hooks`";

/// Sends deliveries. Any number of attempts may run concurrently.
pub(crate) struct WebhookSender {
    lookups: Arc<Lookups>,
    /// The forwards of the configuration.
    configured: Vec<Forward>,
    /// The forwards that were added since, each for as long as a world owns it; the last match applies.
    added: RwLock<Vec<Weak<Forward>>>,
    tls: TlsConnector,
    dialect: Dialect,
    bounds: SenderBounds,
    metrics: Arc<Metrics>,
}

/// The number of a world of this server, from 0 for the first. Numbers are not reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WorldNo(pub(crate) u64);

/// The holder of a share of delivery slots and lookups: an account of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tenant {
    pub(crate) world: WorldNo,
    pub(crate) account: AccountNo,
}

/// A delivery attempt with its world.
pub(crate) struct WorldAttempt {
    pub(crate) world: WorldNo,
    pub(crate) attempt: OutgoingAttempt,
}

/// The owners of delivery attempts, which receive their results.
pub(crate) trait AttemptOwners: Send + Sync {
    /// Returns `true` if the world is open, so that its attempts are still needed.
    fn is_open(&self, world: WorldNo) -> bool;

    /// Reports the result of an attempt. Called once for each.
    fn end_attempt(&self, world: WorldNo, id: AttemptId, report: AttemptReport);
}

/// The part of an attempt's report that is known so far.
#[derive(Default)]
struct PartialReport {
    status: Option<u16>,
    trace: HttpTrace,
}

impl WebhookSender {
    /// Creates a sender. Fails if the extra roots contain no certificate, or if names of the dialect are not valid in
    /// headers.
    pub(crate) fn new(
        config: &SenderConfig,
        dialect: &Dialect,
        metrics: Arc<Metrics>,
    ) -> io::Result<WebhookSender> {
        let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        let prefix = &dialect.header_prefix;
        HeaderName::try_from(prefix)
            .map_err(|_| invalid(format!("`{prefix}` is not a valid start of a header name")))?;
        let agent = &dialect.user_agent;
        http::HeaderValue::try_from(agent)
            .map_err(|_| invalid(format!("`{agent}` is not a valid user agent")))?;
        let limits = (config.bounds.lookups.max(1), config.bounds.lookups_per_account.max(1));
        Ok(WebhookSender {
            lookups: Lookups::new(Arc::clone(&config.resolver), limits),
            configured: config.forwards.clone(),
            added: RwLock::default(),
            tls: TlsConnector::from(Arc::new(trust::client_config(config.extra_roots.as_deref())?)),
            dialect: dialect.clone(),
            bounds: config.bounds,
            metrics,
        })
    }

    /// Makes one attempt for a tenant. It fails if `abort` receives the request to free its slot for another account.
    ///
    /// The status code decides the result. After it, an endless, slow or truncated body only shortens the excerpt in the
    /// delivery log (`open.delivery.success`).
    pub(crate) async fn make_attempt(
        &self,
        tenant: Tenant,
        request: &AttemptRequest,
        abort: oneshot::Receiver<()>,
    ) -> AttemptReport {
        let started_at = Instant::now();
        let mut report = PartialReport::default();
        let exchange = self.connect_and_exchange(tenant, request, &mut report);
        let ended = tokio::select! {
            biased;
            ended = timeout(self.bounds.attempt_timeout, exchange) => ended,
            Ok(()) = abort => Ok(Err(AttemptResult::Unreachable(format!(
                "aborted after {} s without a response: all {} delivery slots were in use, and another account had none",
                started_at.elapsed().as_secs(),
                self.bounds.attempts,
            )))),
        };
        let result = match (report.status, ended) {
            (Some(status), _) => AttemptResult::Response(status),
            (None, Ok(Err(error))) => error,
            (None, Ok(Ok(())) | Err(_)) => AttemptResult::TimedOut,
        };
        let duration = started_at.elapsed();
        self.metrics.on_attempt(&result, duration);
        let mut trace = report.trace;
        trace.took_ms = u64::try_from(duration.as_millis()).ok();
        AttemptReport { result, trace: Some(Box::new(trace)) }
    }

    /// Adds a forward, which ends with its last owner. From now on it applies instead of other forwards for its host and port.
    ///
    /// # Errors
    ///
    /// The maximum number of forwards, if it is reached.
    pub(crate) fn add_forward(&self, forward: &Forward) -> Result<Arc<Forward>, usize> {
        let mut added = self.added.write().unwrap_or_else(PoisonError::into_inner);
        added.retain(|existing| existing.strong_count() > 0);
        let same = added.iter().position(|existing| existing.upgrade().is_some_and(|same| *same == *forward));
        if let Some(index) = same
            && let Some(shared) = added[index].upgrade()
        {
            let existing = added.remove(index);
            added.push(existing);
            return Ok(shared);
        }
        if added.len() >= FORWARDS_MAX {
            return Err(FORWARDS_MAX);
        }
        let forward = Arc::new(forward.clone());
        added.push(Arc::downgrade(&forward));
        Ok(forward)
    }

    /// Returns all forwards as text: `https://shop.example=http://127.0.0.1:3000`.
    pub(crate) fn forwards(&self) -> Vec<String> {
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        let added = added.iter().filter_map(Weak::upgrade).map(|forward| forward.to_string());
        self.configured.iter().map(ToString::to_string).chain(added).collect()
    }

    /// Returns the target of the forward for an endpoint.
    fn target_of(&self, url: &EndpointUrl) -> Option<Target> {
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        let found = added.iter().rev().filter_map(Weak::upgrade).find(|forward| forward.applies_to(url));
        let configured = || self.configured.iter().find(|forward| forward.applies_to(url));
        found.as_deref().or_else(configured).map(|forward| forward.target.clone())
    }

    /// Connects, sends the request and reads the response. `Ok` implies that `report` has a status.
    async fn connect_and_exchange(
        &self,
        tenant: Tenant,
        request: &AttemptRequest,
        report: &mut PartialReport,
    ) -> Result<(), AttemptResult> {
        let target = self.target_of(&request.url);
        let connection = self.connect(tenant, &request.url, target.as_ref(), &mut report.trace).await?;
        let headers = self.headers(request, target.as_ref());
        report.trace.request_headers = SentHeaders::Stored(headers.clone());
        exchange::exchange(connection, request, &headers, report).await
    }

    /// Returns the headers of an attempt, signed with the time of day.
    fn headers(&self, request: &AttemptRequest, target: Option<&Target>) -> Vec<(String, String)> {
        let signature = request.secret.sign(clock::unix_secs(), &request.body);
        let delivery = (request.url.authority(), request.kind, request.id);
        let mut headers =
            simulator::network::delivery_headers(&self.dialect, delivery, request.body.len(), signature);
        let host = headers.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case("host"));
        if let (Some((_, host)), Some(authority)) = (host, target.and_then(Target::authority)) {
            *host = authority;
        }
        headers
    }
}

#[cfg(test)]
mod tests {
    use reference_core::endpoint::address_rule::parse_endpoint_url;

    use super::*;

    #[test]
    fn the_forward_that_was_added_last_applies() {
        let sender = WebhookSender::new(&SenderConfig::default(), &Dialect::default(), Arc::default())
            .expect("the default settings are valid");
        let url = parse_endpoint_url("https://shop.example/hooks").expect("the URL is valid");
        let mut owned = Vec::new();
        for target in ["http://127.0.0.1:3000", "https://127.0.0.1:3000", "http://127.0.0.1:3000"] {
            let forward =
                Forward::parse(&format!("https://shop.example={target}")).expect("the forward is valid");
            owned.push(sender.add_forward(&forward).expect("fewer than the maximum of forwards"));
            assert_eq!(sender.target_of(&url).map(|target| target.to_string()).as_deref(), Some(target));
        }
        assert_eq!(sender.forwards().len(), 2);
        drop(owned);
        assert_eq!(sender.target_of(&url), None);
    }
}
