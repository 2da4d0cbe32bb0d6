//! The courier: posts deliveries over the real network.
//!
//! Every attempt resolves its host anew, has every address judged by the address rule, and connects to one of
//! the very addresses that were judged. Follows no redirect, asks no proxy, keeps no connection. Signs with
//! the time of day, because a real receiver compares the signature with its own clock, whatever the service
//! clock shows.
//!
//! ```text
//! fleet ── queue   whose turn it is; so many at a time, in all and per host
//!   └───── Courier ── road      resolve, judge, connect, TLS
//!                  └─ exchange  one request, one bounded answer
//! ```

mod exchange;
mod fleet;
mod forward;
mod queue;
mod resolve;
mod road;
mod saving;
mod settings;
mod trust;

use std::{io, sync::Arc};

pub(crate) use fleet::Fleet;
pub use forward::Forward;
use http::HeaderName;
use reference_core::{
    book::Post,
    dialect::Dialect,
    endpoint::address_rule::Host,
    outbox::{Landing, Outcome, Trace},
};
pub use resolve::{Resolve, Resolved, SystemResolver};
pub(crate) use saving::{Hearsay, may_save};
pub use settings::{CourierBounds, CourierConfig};
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;

use crate::clock;

/// Posts deliveries, any number at a time.
pub(crate) struct Courier {
    resolver: Arc<dyn Resolve>,
    forwards: Vec<Forward>,
    tls: TlsConnector,
    dialect: Dialect,
    bounds: CourierBounds,
}

/// What is known of an attempt so far, whenever it is broken off.
#[derive(Default)]
struct Record {
    status: Option<u16>,
    trace: Trace,
}

impl Courier {
    /// Fails if the extra roots are none, or if the dialect's names are not fit for headers.
    pub(crate) fn new(config: &CourierConfig, dialect: &Dialect) -> io::Result<Courier> {
        let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        let prefix = &dialect.header_prefix;
        HeaderName::try_from(prefix)
            .map_err(|_| invalid(format!("`{prefix}` cannot begin the name of a header")))?;
        let agent = &dialect.user_agent;
        http::HeaderValue::try_from(agent)
            .map_err(|_| invalid(format!("`{agent}` cannot be a user agent")))?;
        Ok(Courier {
            resolver: Arc::clone(&config.resolver),
            forwards: config.forwards.clone(),
            tls: TlsConnector::from(Arc::new(trust::client_config(config.extra_roots.as_deref())?)),
            dialect: dialect.clone(),
            bounds: config.bounds,
        })
    }

    /// Makes one attempt.
    ///
    /// The head of the answer decides: once a status is there, a body that is endless, slow or torn changes
    /// nothing, it is only cut short in the log (`open.delivery.success`).
    pub(crate) async fn post(&self, post: &Post) -> Landing {
        let begun = Instant::now();
        let mut record = Record::default();
        let ended = timeout(self.bounds.total_time, self.attempt(post, &mut record)).await;
        let outcome = match (record.status, ended) {
            (Some(status), _) => Outcome::Answered(status),
            (None, Ok(Err(outcome))) => outcome,
            (None, Ok(Ok(())) | Err(_)) => Outcome::TimedOut,
        };
        let mut trace = record.trace;
        trace.took_ms = u64::try_from(begun.elapsed().as_millis()).ok();
        Landing { outcome, trace: Some(Box::new(trace)) }
    }

    /// Ends well only with a status in the record.
    async fn attempt(&self, post: &Post, record: &mut Record) -> Result<(), Outcome> {
        let connect_time = self.bounds.connect_time;
        let line = timeout(connect_time, self.connect(&post.url, &mut record.trace)).await;
        let line =
            line.map_err(|_| Outcome::Unreachable(format!("no connection within {connect_time:?}")))??;
        let headers = self.headers(post);
        record.trace.request_headers.clone_from(&headers);
        exchange::exchange(line, post, &headers, record).await
    }

    /// All headers of an attempt, signed with the time of day.
    fn headers(&self, post: &Post) -> Vec<(String, String)> {
        let prefix = &self.dialect.header_prefix;
        let signature = post.secret.sign(clock::unix_secs(), &post.body);
        vec![
            ("Host".to_owned(), post.url.authority().to_owned()),
            ("Content-Type".to_owned(), "application/json".to_owned()),
            ("Content-Length".to_owned(), post.body.len().to_string()),
            ("User-Agent".to_owned(), self.dialect.user_agent.clone()),
            (format!("{prefix}-Event"), post.kind.as_str().to_owned()),
            (format!("{prefix}-Delivery"), post.id.to_string()),
            (format!("{prefix}-Signature"), signature),
        ]
    }

    /// The addresses of a host. An address is its own.
    async fn addresses(&self, host: &Host) -> io::Result<Vec<std::net::IpAddr>> {
        match host {
            Host::Address(ip) => Ok(vec![*ip]),
            Host::Name(name) => self.resolver.resolve(name).await,
        }
    }
}
