//! The webhook sender: posts deliveries over the network, shared fairly between accounts.
//!
//! The world decides what is posted and when; the sender makes one attempt and reports its result, exactly once,
//! whatever happens: also when the world has ended, the server stops, or the attempt panics. It has no retries of
//! its own.
//!
//! ```text
//! dispatcher ── queue                                order: accounts take turns, then hosts of an account
//!     └── WebhookSender ──┬── connector ── lookups   resolve, check the address, connect, TLS
//!                         └── exchange               one request, one bounded response
//! ```
//!
//! *Fairness.* At most 256 attempts run at once (`SenderBounds`), 8 of one account to one host. An account may use
//! as many slots as it leaves free beside a reserve of a quarter; an account without any takes its first from the
//! reserve. A slow host fills only its own queue. If all slots are in use and an account has none, the attempts
//! that have run for more than 3 seconds give up their slot, those of the account with the most slots first; such
//! an attempt fails and is retried by the world's schedule. No delivery is refused for lack of room: it waits in
//! the queue.
//!
//! *Address rule.* Every attempt resolves the name again. All addresses of the answer must be public, and the
//! connection goes to one of these addresses and not to a second resolution of the name, so a name that changes
//! between check and use reaches nothing internal. Redirects are not followed, proxies are not used and connections
//! are not kept. At most 64 lookups run at once, shared like slots. `forward` is the exception for development: a
//! named public host stands for a handler on this machine.
//!
//! *Result.* The status line decides: once it is there, a body that is endless, slow or torn only shortens the
//! excerpt in the log (`open.delivery.success`). Lookup, connection and TLS have 5 seconds together, and the
//! attempt has 15. The signature uses the time of day, because a real receiver compares it with its own clock,
//! whatever the service's clock shows.
//!
//! Example: an endpoint at `https://shop.example/hooks` whose name resolves to 203.0.113.7 and 10.0.0.4. One of
//! them is private, so the attempt is reported as `Refused` and nothing is sent. After the DNS entry is mended, the
//! next attempt passes the check again.
//!
//! Must not contain: a retry schedule, a decision about an event's content, or a second way to connect.

mod connector;
mod dispatcher;
mod exchange;
mod forward;
mod head_limit;
mod lookups;
mod queue;
mod resolve;
mod saving;
mod settings;
mod trust;

use std::{
    io,
    sync::{Arc, PoisonError, RwLock},
};

pub(crate) use dispatcher::Dispatcher;
use forward::Target;
pub use forward::{Forward, ForwardError, LocalHandler};
use http::HeaderName;
use lookups::Lookups;
use reference_core::{
    dialect::Dialect,
    endpoint::address_rule::EndpointUrl,
    id::AccountNo,
    outbox::{AttemptReport, AttemptResult, HttpTrace, SentHeaders},
};
use reference_wire::AttemptRequest;
pub use resolve::{Resolve, Resolved, SystemResolver};
pub(crate) use saving::{HostCheck, may_save};
pub use settings::{SenderBounds, SenderConfig};
use simulator::sandbox::{AttemptId, OutgoingAttempt};
use tokio::{
    sync::oneshot,
    time::{Instant, timeout},
};
use tokio_rustls::TlsConnector;

use crate::{clock, metrics::Metrics};

/// Forwards that may be added to a running server.
const FORWARDS_MAX: usize = 64;
/// The hint for a receiver on this machine or in a private network.
const LOCAL_HINT: &str = "to reach a handler on this machine, start with `chargeproof serve --forward-to http://localhost:3000/hooks`";

/// Posts deliveries, any number at a time.
pub(crate) struct WebhookSender {
    lookups: Arc<Lookups>,
    /// The first that fits is taken.
    forwards: RwLock<Vec<Forward>>,
    tls: TlsConnector,
    dialect: Dialect,
    bounds: SenderBounds,
    metrics: Arc<Metrics>,
}

/// Names a world of this server: the first is 0. No number is given twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WorldNo(pub(crate) u64);

/// The holder of a share of delivery slots and lookups: an account of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tenant {
    pub(crate) world: WorldNo,
    pub(crate) account: AccountNo,
}

/// An attempt that a world hands out.
pub(crate) struct WorldAttempt {
    pub(crate) world: WorldNo,
    pub(crate) attempt: OutgoingAttempt,
}

/// The worlds that attempts come from and are reported to.
pub(crate) trait AttemptOwners: Send + Sync {
    /// Returns `true` if the results of a world's attempts are still wanted.
    fn is_open(&self, world: WorldNo) -> bool;

    /// An attempt ended. Called once for each.
    fn end_attempt(&self, world: WorldNo, id: AttemptId, report: AttemptReport);
}

/// The record of an attempt so far, wherever it ends.
#[derive(Default)]
struct Record {
    status: Option<u16>,
    trace: HttpTrace,
}

impl WebhookSender {
    /// Fails if the extra roots are none, or if the dialect's names are not fit for headers.
    pub(crate) fn new(
        config: &SenderConfig,
        dialect: &Dialect,
        metrics: Arc<Metrics>,
    ) -> io::Result<WebhookSender> {
        let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        let prefix = &dialect.header_prefix;
        HeaderName::try_from(prefix)
            .map_err(|_| invalid(format!("`{prefix}` cannot begin the name of a header")))?;
        let agent = &dialect.user_agent;
        http::HeaderValue::try_from(agent)
            .map_err(|_| invalid(format!("`{agent}` cannot be a user agent")))?;
        let most = (config.bounds.lookups.max(1), config.bounds.lookups_per_account.max(1));
        Ok(WebhookSender {
            lookups: Lookups::new(Arc::clone(&config.resolver), most),
            forwards: RwLock::new(config.forwards.clone()),
            tls: TlsConnector::from(Arc::new(trust::client_config(config.extra_roots.as_deref())?)),
            dialect: dialect.clone(),
            bounds: config.bounds,
            metrics,
        })
    }

    /// Makes one attempt for this tenant, which fails when it is told to give way to another account.
    ///
    /// The head of the answer decides: once a status is there, a body that is endless, slow or torn changes
    /// nothing, it is only cut short in the log (`open.delivery.success`).
    pub(crate) async fn post(
        &self,
        tenant: Tenant,
        post: &AttemptRequest,
        give_way: oneshot::Receiver<()>,
    ) -> AttemptReport {
        let begun = Instant::now();
        let mut record = Record::default();
        let ended = tokio::select! {
            biased;
            ended = timeout(self.bounds.total_time, self.attempt(tenant, post, &mut record)) => ended,
            Ok(()) = give_way => Ok(Err(AttemptResult::Unreachable(format!(
                "no answer within {} s, and then it gave way: all {} delivery slots were in use, and another account had none",
                begun.elapsed().as_secs(),
                self.bounds.posts,
            )))),
        };
        let outcome = match (record.status, ended) {
            (Some(status), _) => AttemptResult::Answered(status),
            (None, Ok(Err(outcome))) => outcome,
            (None, Ok(Ok(())) | Err(_)) => AttemptResult::TimedOut,
        };
        let took = begun.elapsed();
        self.metrics.on_attempt(&outcome, took);
        let mut trace = record.trace;
        trace.took_ms = u64::try_from(took.as_millis()).ok();
        AttemptReport { result: outcome, trace: Some(Box::new(trace)) }
    }

    /// Adds a forward, in place of the one from the same host and port.
    ///
    /// # Errors
    ///
    /// The most forwards that there may be.
    pub(crate) fn add_forward(&self, forward: &Forward) -> Result<(), usize> {
        let mut forwards = self.forwards.write().unwrap_or_else(PoisonError::into_inner);
        match forwards.iter().position(|it| forward.replaces(it)) {
            Some(place) => forwards[place].clone_from(forward),
            None if forwards.len() >= FORWARDS_MAX => return Err(FORWARDS_MAX),
            None => forwards.push(forward.clone()),
        }
        Ok(())
    }

    /// Takes one away again.
    pub(crate) fn remove_forward(&self, forward: &Forward) {
        let mut forwards = self.forwards.write().unwrap_or_else(PoisonError::into_inner);
        forwards.retain(|it| !forward.replaces(it));
    }

    /// All forwards as they are written: `https://shop.example=http://127.0.0.1:3000`.
    pub(crate) fn forwards(&self) -> Vec<String> {
        let forwards = self.forwards.read().unwrap_or_else(PoisonError::into_inner);
        forwards.iter().map(ToString::to_string).collect()
    }

    /// Returns the target of the forward for an endpoint.
    fn target_of(&self, url: &EndpointUrl) -> Option<Target> {
        let forwards = self.forwards.read().unwrap_or_else(PoisonError::into_inner);
        forwards.iter().find(|forward| forward.serves(url)).map(|forward| forward.target.clone())
    }

    /// Ends well only with a status in the record.
    async fn attempt(
        &self,
        tenant: Tenant,
        post: &AttemptRequest,
        record: &mut Record,
    ) -> Result<(), AttemptResult> {
        let target = self.target_of(&post.url);
        let connection = self.connect(tenant, &post.url, target.as_ref(), &mut record.trace).await?;
        let headers = self.headers(post, target.as_ref());
        record.trace.request_headers = SentHeaders::Kept(headers.clone());
        exchange::exchange(connection, post, &headers, record).await
    }

    /// All headers of an attempt, signed with the time of day.
    fn headers(&self, post: &AttemptRequest, target: Option<&Target>) -> Vec<(String, String)> {
        let signature = post.secret.sign(clock::unix_secs(), &post.body);
        let what = (post.url.authority(), post.kind, post.id);
        let mut headers =
            simulator::network::delivery_headers(&self.dialect, what, post.body.len(), signature);
        let host = headers.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case("host"));
        if let (Some((_, host)), Some(own)) = (host, target.and_then(Target::authority)) {
            *host = own;
        }
        headers
    }
}
