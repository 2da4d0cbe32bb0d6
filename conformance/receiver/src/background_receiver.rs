//! A receiver in a background task with a bounded log of requests, for checks that run meanwhile.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use time::OffsetDateTime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::answers::{Answers, Reply};
use super::listen::{Arrival, Methods, Receiver, ReceiverAnswer, Settings};
use super::received_request::ReceivedRequest;
use super::routes::Routes;
use crate::Endpoint;

/// The number of stored requests. Further ones get a response and are counted.
const KEPT_MAX: usize = 5_000;
/// The largest total size of stored bodies, in bytes.
const KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A background receiver and its log. It stops listening when it is dropped.
pub struct BackgroundReceiver {
    address: SocketAddr,
    started_at: OffsetDateTime,
    routes: Routes,
    endpoints: Mutex<Vec<Endpoint>>,
    log: Arc<Mutex<RequestLog>>,
    /// The number of requests that arrived; `gathered` is the number in the log.
    arrived: Arc<AtomicUsize>,
    logged: watch::Receiver<usize>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct RequestLog {
    requests: Vec<(ReceivedRequest, Option<u16>)>,
    bytes: usize,
    lost: u32,
    strays: u32,
}

/// The requests received so far.
#[derive(Clone, Debug, Default)]
pub struct ReceivedRequests {
    /// Each request, and the status of its response; 0 if it got none.
    pub requests: Vec<(ReceivedRequest, Option<u16>)>,
    /// The number of requests that exceeded the bounds of the log.
    pub lost: u32,
    /// The number of connections without a complete HTTP request.
    pub strays: u32,
}

impl BackgroundReceiver {
    /// Starts a receiver that responds 200 to every request. Needs a Tokio runtime with time and I/O.
    ///
    /// # Errors
    ///
    /// If the address cannot be listened on.
    pub async fn start(address: SocketAddr) -> io::Result<BackgroundReceiver> {
        let routes = Routes::default();
        let settings =
            Settings { address, routes: routes.clone(), methods: Methods::Any, ..Settings::default() };
        let began = OffsetDateTime::now_utc();
        let mut receiver = Receiver::start(settings).await?;
        let address = receiver.address();
        let log = Arc::new(Mutex::new(RequestLog::default()));
        let come = receiver.count();
        let (count, gathered) = watch::channel(0);
        let filling = Arc::clone(&log);
        let gathering = tokio::spawn(async move {
            while let Some(arrival) = receiver.next().await {
                lock(&filling).take(arrival);
                // There may be no waiting task.
                count.send_modify(|count| *count += 1);
            }
        });
        Ok(BackgroundReceiver {
            address,
            started_at: began,
            routes,
            endpoints: Mutex::default(),
            log,
            arrived: come,
            logged: gathered,
            task: gathering,
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

    /// Declares an endpoint that sends to this receiver.
    pub fn declare(&self, endpoint: Endpoint) {
        lock(&self.endpoints).push(endpoint);
    }

    /// Returns the declared endpoints.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        lock(&self.endpoints).clone()
    }

    /// Sets the answers to requests for a path, in order; the last answer is repeated.
    pub fn answer(&self, path: &str, answers: Answers) {
        self.routes.set(path, answers);
    }

    /// Returns once `done` is true for a request. It is called for each request in order of arrival, including those
    /// in the log.
    pub async fn until(&self, mut done: impl FnMut(&ReceivedRequest) -> bool) {
        let mut seen = 0;
        let is_done = |_: &usize| {
            let log = lock(&self.log);
            let more = log.requests.iter().skip(seen);
            let found = more.map(|(received, _)| received).any(&mut done);
            seen = log.requests.len();
            found
        };
        if self.logged.clone().wait_for(is_done).await.is_err() {
            // The background task has ended: no request will arrive.
            std::future::pending::<()>().await;
        }
    }

    /// Returns all requests that got a response so far.
    pub async fn received(&self) -> ReceivedRequests {
        let come = self.arrived.load(Relaxed);
        // Fails only if the background task has ended, and then nothing more is added.
        let _ = self.logged.clone().wait_for(|gathered| *gathered >= come).await;
        let log = lock(&self.log);
        ReceivedRequests { requests: log.requests.clone(), lost: log.lost, strays: log.strays }
    }
}

impl RequestLog {
    fn take(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Rejected(_) => self.strays = self.strays.saturating_add(1),
            Arrival::ReceivedRequest(received, given) => {
                let bytes = self.bytes.saturating_add(received.body.0.len());
                if self.requests.len() >= KEPT_MAX || bytes > KEPT_BYTES_MAX {
                    self.lost = self.lost.saturating_add(1);
                    return;
                }
                self.bytes = bytes;
                let status = match given {
                    ReceiverAnswer::Scripted(Reply::Status(status)) | ReceiverAnswer::Forwarded(status) => {
                        Some(status)
                    }
                    ReceiverAnswer::Scripted(Reply::Timeout | Reply::Close) => Some(0),
                    ReceiverAnswer::NotForwarded(_) => Some(502),
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

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
