//! A receiver that listens on its own while a check is busy elsewhere, and keeps a bounded heap of what came.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use time::OffsetDateTime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::answers::{Answers, Reply};
use super::caught::Caught;
use super::listen::{Arrival, Given, Methods, Receiver, Settings};
use super::routes::Routes;
use crate::Endpoint;

/// Requests that are kept. Those beyond are answered and counted.
const KEPT_MAX: usize = 5_000;
/// Bytes of bodies that are kept.
const KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Everything that came to a receiver. It stops listening when it is dropped.
pub struct Catch {
    address: SocketAddr,
    began: OffsetDateTime,
    routes: Routes,
    endpoints: Mutex<Vec<Endpoint>>,
    heap: Arc<Mutex<Heap>>,
    /// The number of requests that arrived, and the number gathered.
    come: Arc<AtomicUsize>,
    gathered: watch::Receiver<usize>,
    gathering: JoinHandle<()>,
}

#[derive(Default)]
struct Heap {
    kept: Vec<(Caught, Option<u16>)>,
    bytes: usize,
    lost: u32,
    strays: u32,
}

/// The requests received so far.
#[derive(Clone, Debug, Default)]
pub struct CaughtRequests {
    /// Each request, and the status that it was answered with; 0 if it got no answer.
    pub kept: Vec<(Caught, Option<u16>)>,
    /// Requests that came when there was no more room.
    pub lost: u32,
    /// The number of connections that brought no complete HTTP request.
    pub strays: u32,
}

impl Catch {
    /// Starts to listen, and answers 200 to whatever comes. Needs a Tokio runtime with time and I/O.
    ///
    /// # Errors
    ///
    /// If the address cannot be listened on.
    pub async fn start(address: SocketAddr) -> io::Result<Catch> {
        let routes = Routes::default();
        let settings =
            Settings { address, routes: routes.clone(), methods: Methods::Any, ..Settings::default() };
        let began = OffsetDateTime::now_utc();
        let mut receiver = Receiver::start(settings).await?;
        let address = receiver.address();
        let heap = Arc::new(Mutex::new(Heap::default()));
        let come = receiver.count();
        let (told, gathered) = watch::channel(0);
        let filling = Arc::clone(&heap);
        let gathering = tokio::spawn(async move {
            while let Some(arrival) = receiver.next().await {
                lock(&filling).take(arrival);
                // Nobody may be waiting.
                told.send_modify(|count| *count += 1);
            }
        });
        Ok(Catch { address, began, routes, endpoints: Mutex::default(), heap, come, gathered, gathering })
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the time at which it began to listen.
    pub fn began(&self) -> OffsetDateTime {
        self.began
    }

    /// Says of an endpoint that it sends here.
    pub fn declare(&self, endpoint: Endpoint) {
        lock(&self.endpoints).push(endpoint);
    }

    /// The endpoints that were declared.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        lock(&self.endpoints).clone()
    }

    /// Sets the answers to requests for a path, in order; the last answer is repeated.
    pub fn answer(&self, path: &str, answers: Answers) {
        self.routes.set(path, answers);
    }

    /// Returns once `done` has said so of a request. It is asked of each in the order in which they came, those
    /// that have come already included.
    pub async fn until(&self, mut done: impl FnMut(&Caught) -> bool) {
        let mut seen = 0;
        let is_done = |_: &usize| {
            let heap = lock(&self.heap);
            let more = heap.kept.iter().skip(seen);
            let found = more.map(|(caught, _)| caught).any(&mut done);
            seen = heap.kept.len();
            found
        };
        if self.gathered.clone().wait_for(is_done).await.is_err() {
            // The task that gathers is gone: nothing will ever come.
            std::future::pending::<()>().await;
        }
    }

    /// Everything that has been answered so far.
    pub async fn caught(&self) -> CaughtRequests {
        let come = self.come.load(Relaxed);
        // Fails only if the task that gathers is gone, and then nothing more is gathered.
        let _ = self.gathered.clone().wait_for(|gathered| *gathered >= come).await;
        let heap = lock(&self.heap);
        CaughtRequests { kept: heap.kept.clone(), lost: heap.lost, strays: heap.strays }
    }
}

impl Heap {
    fn take(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Turned(_) => self.strays = self.strays.saturating_add(1),
            Arrival::Caught(caught, given) => {
                let bytes = self.bytes.saturating_add(caught.body.0.len());
                if self.kept.len() >= KEPT_MAX || bytes > KEPT_BYTES_MAX {
                    self.lost = self.lost.saturating_add(1);
                    return;
                }
                self.bytes = bytes;
                let status = match given {
                    Given::Scripted(Reply::Status(status)) | Given::Forwarded(status) => Some(status),
                    Given::Scripted(Reply::Timeout | Reply::Close) => Some(0),
                    Given::NotForwarded(_) => Some(502),
                };
                self.kept.push((caught, status));
            }
        }
    }
}

impl Drop for Catch {
    fn drop(&mut self) {
        self.gathering.abort();
    }
}

impl fmt::Debug for Catch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Catch({})", self.address)
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
