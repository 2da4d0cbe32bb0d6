//! [`BackgroundReceiver`]: a receiver in a background task with a bounded log, for a caller that sends requests meanwhile.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use time::OffsetDateTime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::listen::{Arrival, Methods, Receiver, ReceiverResponse, Settings};
use super::received_request::ReceivedRequest;
use super::response_script::{ResponseScript, ScriptedResponse};
use super::routes::Routes;
use crate::Endpoint;

/// The maximum number of stored requests. Further ones get a response and are counted, but not stored.
const STORED_MAX: usize = 5_000;
/// The maximum total size of stored bodies, in bytes.
const STORED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A background receiver and its log. It stops listening when it is dropped.
pub struct BackgroundReceiver {
    address: SocketAddr,
    started_at: OffsetDateTime,
    routes: Routes,
    endpoints: Mutex<Vec<Endpoint>>,
    log: Arc<Mutex<RequestLog>>,
    /// The number of requests that arrived, including those in the queue, which are not logged yet.
    arrived: Arc<AtomicUsize>,
    /// The number of requests that the background task has logged: stored, dropped or rejected.
    logged: watch::Receiver<usize>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct RequestLog {
    requests: Vec<(ReceivedRequest, u16)>,
    /// The total size of the stored bodies.
    bytes: usize,
    dropped: u32,
    rejected: u32,
}

/// The requests received so far.
#[derive(Clone, Debug, Default)]
pub struct ReceivedRequests {
    /// Each request, and the status of its response; 0 if it got none.
    pub requests: Vec<(ReceivedRequest, u16)>,
    /// The number of requests that were not stored, because they exceeded the bounds of the log.
    pub dropped: u32,
    /// The number of rejected requests ([`Arrival::Rejected`]), such as incomplete or too large ones.
    pub rejected: u32,
}

impl BackgroundReceiver {
    /// Starts a receiver that responds with 200, unless [`set_responses`](Self::set_responses) is called. Needs a
    /// Tokio runtime with time and I/O.
    ///
    /// # Errors
    ///
    /// If the receiver cannot listen on the address.
    pub async fn start(address: SocketAddr) -> io::Result<BackgroundReceiver> {
        let routes = Routes::default();
        let settings =
            Settings { address, routes: routes.clone(), methods: Methods::Any, ..Settings::default() };
        let started_at = OffsetDateTime::now_utc();
        let mut receiver = Receiver::start(settings).await?;
        let address = receiver.address();
        let log = Arc::new(Mutex::new(RequestLog::default()));
        let arrived = receiver.arrival_count();
        let (logged_count, logged) = watch::channel(0);
        let task_log = Arc::clone(&log);
        let task = tokio::spawn(async move {
            while let Some(arrival) = receiver.next().await {
                lock(&task_log).add(arrival);
                logged_count.send_modify(|count| *count += 1);
            }
        });
        Ok(BackgroundReceiver {
            address,
            started_at,
            routes,
            endpoints: Mutex::default(),
            log,
            arrived,
            logged,
            task,
        })
    }

    /// Returns the address that the receiver listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the time at which the receiver started.
    pub fn started_at(&self) -> OffsetDateTime {
        self.started_at
    }

    /// Declares an endpoint whose deliveries are sent to this receiver.
    pub fn declare(&self, endpoint: Endpoint) {
        lock(&self.endpoints).push(endpoint);
    }

    /// Returns the declared endpoints.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        lock(&self.endpoints).clone()
    }

    /// Sets the responses to requests whose path has this ending.
    pub fn set_responses(&self, path_ending: &str, script: ResponseScript) {
        self.routes.set(path_ending, script);
    }

    /// Returns once a stored request matches; never, if none does. `matches` is called once for each stored request, in
    /// order of arrival, until it returns `true`.
    pub async fn wait_for_request(&self, mut matches: impl FnMut(&ReceivedRequest) -> bool) {
        let mut checked = 0;
        let has_match = |_: &usize| {
            let log = lock(&self.log);
            let unchecked = log.requests.iter().skip(checked);
            let has_match = unchecked.map(|(received, _)| received).any(&mut matches);
            checked = log.requests.len();
            has_match
        };
        if self.logged.clone().wait_for(has_match).await.is_err() {
            // The background task has ended: no request will arrive.
            std::future::pending::<()>().await;
        }
    }

    /// Returns the requests that have arrived so far, after waiting until they are logged.
    pub async fn received(&self) -> ReceivedRequests {
        let arrived = self.arrived.load(Relaxed);
        // Fails only if the background task has ended. Then no further request is logged.
        let _ = self.logged.clone().wait_for(|logged| *logged >= arrived).await;
        let log = lock(&self.log);
        ReceivedRequests { requests: log.requests.clone(), dropped: log.dropped, rejected: log.rejected }
    }
}

impl RequestLog {
    fn add(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Rejected(_) => self.rejected = self.rejected.saturating_add(1),
            Arrival::ReceivedRequest(received, response) => {
                let bytes = self.bytes.saturating_add(received.body.0.len());
                if self.requests.len() >= STORED_MAX || bytes > STORED_BYTES_MAX {
                    self.dropped = self.dropped.saturating_add(1);
                    return;
                }
                self.bytes = bytes;
                let status = match response {
                    ReceiverResponse::Scripted(ScriptedResponse::Status(status))
                    | ReceiverResponse::Forwarded(status) => status,
                    ReceiverResponse::Scripted(ScriptedResponse::Timeout | ScriptedResponse::Close) => 0,
                    ReceiverResponse::NotForwarded(_) => 502,
                };
                self.requests.push((received, status));
            }
        }
    }
}

impl Drop for BackgroundReceiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for BackgroundReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BackgroundReceiver({})", self.address)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
