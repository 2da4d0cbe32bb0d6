//! Runs a load test on its threads and connections.

use std::{
    num::NonZeroUsize,
    ops::ControlFlow,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use tokio::{
    runtime::{Builder, Runtime},
    sync::watch,
    task::JoinSet,
    time::Instant,
};

use crate::{
    connection::{Connection, RequestError, ResponseSummary},
    mix::Mix,
    pace::{RequestSchedule, RetryAfterGate},
    plan::{Pace, Plan, StartError},
    report::Report,
    tally::Tally,
    target::Target,
};

/// The maximum of the default number of threads, which is one per core. More are useful only against a
/// server on another machine.
const THREADS_DEFAULT_MAX: usize = 2;
const THREADS_MAX: usize = 64;
/// The interval of progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// The first delay after a failed request. It doubles up to `RETRY_DELAY_MAX`.
const RETRY_DELAY_MIN: Duration = Duration::from_millis(10);
const RETRY_DELAY_MAX: Duration = Duration::from_secs(1);
/// The pause after a 429 without `Retry-After`.
const PAUSE_DEFAULT: Duration = Duration::from_secs(1);
/// The longest pause after a 429.
const PAUSE_MAX: Duration = Duration::from_secs(3_600);

/// The progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunProgress {
    /// The time since the start.
    pub elapsed: Duration,
    /// The number of responses.
    pub responses: u64,
    /// The number of requests without a response.
    pub errors: u64,
    /// The remaining pause after a 429.
    pub pause_left: Option<Duration>,
}

/// The state that all threads share.
struct Shared {
    target: Target,
    mix: Mix,
    /// The schedule; `None` if every connection sends as fast as it gets responses.
    schedule: Option<RequestSchedule>,
    gate: RetryAfterGate,
    start: Instant,
    /// The planned end of the run.
    end: Instant,
    responses: AtomicU64,
    errors: AtomicU64,
    /// `true` once the caller has stopped the run.
    stopped: watch::Sender<bool>,
}

/// Runs a plan, and blocks until its end. `on_progress` is called about ten times a second and may end the run;
/// requests that are in progress are then not counted.
///
/// # Errors
///
/// The plan is invalid, or no server responds at its address.
pub fn run(
    plan: &Plan,
    mut on_progress: impl FnMut(RunProgress) -> ControlFlow<()>,
) -> Result<Report, StartError> {
    let target = Target::resolve(plan)?;
    let runtime = || {
        Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| StartError::Usage(format!("cannot start the async runtime: {error}")))
    };
    let (mix, notes) = runtime()?.block_on(Mix::prepare(&target, &plan.work))?;
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let connections = plan.connections.max(1);
    let threads =
        plan.threads.unwrap_or(cores.min(THREADS_DEFAULT_MAX)).clamp(1, connections.min(THREADS_MAX));
    let runtimes = (0..threads).map(|_| runtime()).collect::<Result<Vec<_>, _>>()?;

    let start = Instant::now();
    let shared = Arc::new(Shared {
        target,
        mix,
        schedule: match plan.pace {
            Pace::Max => None,
            Pace::PerSecond(rate) => Some(RequestSchedule::new(rate, plan.duration)),
        },
        gate: RetryAfterGate::new(start),
        start,
        end: start + plan.duration,
        responses: AtomicU64::new(0),
        errors: AtomicU64::new(0),
        stopped: watch::Sender::new(false),
    });
    let mut tally = run_threads(&shared, &runtimes, connections, &mut on_progress);
    let ended_at = tally.last_end_at.unwrap_or_else(|| Instant::now().min(shared.end));
    let elapsed = ended_at.saturating_duration_since(start);
    // A due request that no connection was free to send has waited from its due time to the end.
    let mut never_sent = 0;
    for nth in shared.schedule.iter().flat_map(RequestSchedule::unsent_tickets) {
        let due_after = shared.schedule.as_ref().map_or(Duration::ZERO, |schedule| schedule.due_time(nth));
        never_sent += 1;
        tally.add_latency(elapsed.saturating_sub(due_after));
    }
    let interrupted = *shared.stopped.borrow();
    Ok(Report { interrupted, ..Report::new(plan, threads, elapsed, &tally, never_sent, notes) })
}

/// Sends requests on a thread for each runtime, and reports the progress to the caller.
fn run_threads(
    shared: &Arc<Shared>,
    runtimes: &[Runtime],
    connections: usize,
    on_progress: &mut impl FnMut(RunProgress) -> ControlFlow<()>,
) -> Tally {
    thread::scope(|scope| {
        if let Some(schedule) = &shared.schedule {
            scope.spawn(|| schedule.release_tickets(shared.start, shared.end));
        }
        let workers: Vec<_> = runtimes
            .iter()
            .enumerate()
            .map(|(index, runtime)| {
                // The connections are distributed evenly.
                let count = (index..connections).step_by(runtimes.len()).count();
                let caller = thread::current();
                scope.spawn(move || {
                    let tally = runtime.block_on(run_connections(shared, index, count));
                    caller.unpark();
                    tally
                })
            })
            .collect();
        while !workers.iter().all(thread::ScopedJoinHandle::is_finished) {
            thread::park_timeout(PROGRESS_INTERVAL);
            let now = Instant::now();
            let control = on_progress(RunProgress {
                elapsed: now.saturating_duration_since(shared.start),
                responses: shared.responses.load(Relaxed),
                errors: shared.errors.load(Relaxed),
                pause_left: shared.gate.paused_until(now).map(|end| end.saturating_duration_since(now)),
            });
            if control.is_break() {
                shared.stopped.send_replace(true);
                shared.schedule.iter().for_each(RequestSchedule::stop);
            }
        }
        let mut total = Tally::new();
        for worker in workers {
            total.merge(&worker.join().expect("a load thread does not panic"));
        }
        total
    })
}

/// Runs the connections of one thread until the run is over or stopped, and returns their counts.
async fn run_connections(shared: &Arc<Shared>, thread_index: usize, connections: usize) -> Tally {
    let tally = Arc::new(Mutex::new(Tally::new()));
    let mut tasks = JoinSet::new();
    for nth in 0..connections {
        // Unique across threads, because a thread index is less than `THREADS_MAX`.
        let connection_id = (thread_index + nth * THREADS_MAX) as u64;
        tasks.spawn(ConnectionLoop::new(Arc::clone(shared), Arc::clone(&tally), connection_id).run());
    }
    let mut stopped = shared.stopped.subscribe();
    let all_ended = async {
        while let Some(task) = tasks.join_next().await {
            task.expect("a connection does not panic");
        }
    };
    tokio::select! {
        () = all_ended => {}
        _ = stopped.wait_for(|stopped| *stopped) => {}
    }
    // Pending requests are aborted.
    tasks.shutdown().await;
    let mut tally = tally.lock().expect("counting does not panic");
    std::mem::replace(&mut tally, Tally::new())
}

/// Sends requests on one connection, which is reopened when it fails.
struct ConnectionLoop {
    shared: Arc<Shared>,
    tally: Arc<Mutex<Tally>>,
    /// The number of the last request, used if there is no schedule. Unique across connections.
    request_number: u64,
    connection: Option<Connection>,
    /// The buffer for requests that are written on demand.
    buffer: Vec<u8>,
    /// The delay after the next failed request.
    retry_delay: Duration,
}

impl ConnectionLoop {
    fn new(shared: Arc<Shared>, tally: Arc<Mutex<Tally>>, connection_id: u64) -> ConnectionLoop {
        ConnectionLoop {
            shared,
            tally,
            // No connection sends 2^40 requests, so numbers are unique.
            request_number: connection_id << 40,
            connection: None,
            buffer: Vec::new(),
            retry_delay: RETRY_DELAY_MIN,
        }
    }

    async fn run(mut self) {
        let mut now = Instant::now();
        while let Some((nth, due_at)) = self.next_request(now).await {
            now = self.send_and_count(nth, due_at).await;
            if self.shared.schedule.is_none() {
                // Lets the other connections of the thread read their responses first. Requests thus arrive in
                // batches, and a server on the same machine is woken less often.
                tokio::task::yield_now().await;
            }
        }
    }

    /// Returns the next request's number and its due time; `None` once the run is over.
    async fn next_request(&mut self, mut now: Instant) -> Option<(u64, Instant)> {
        let Shared { schedule, gate, start, end, .. } = &*self.shared;
        loop {
            let Some(schedule) = schedule else {
                match gate.paused_until(now) {
                    // The pause lasts until the end of the run.
                    Some(pause_end) if pause_end >= *end => return None,
                    Some(pause_end) => tokio::time::sleep_until(pause_end).await,
                    None if now >= *end => return None,
                    None => {
                        self.request_number += 1;
                        return Some((self.request_number, now));
                    }
                }
                now = Instant::now();
                continue;
            };
            let nth = schedule.next_ticket().await?;
            let due_at = *start + schedule.due_time(nth);
            // A request that is due during a pause is never sent.
            if gate.paused_until(due_at).is_none() {
                return Some((nth, due_at));
            }
            self.tally.lock().expect("counting does not panic").held_back += 1;
        }
    }

    /// Sends one request, and counts its response or error. Returns the time of its end.
    async fn send_and_count(&mut self, nth: u64, due_at: Instant) -> Instant {
        let result = self.send(nth, due_at).await;
        let now = Instant::now();
        let latency = now.saturating_duration_since(due_at);
        {
            let mut tally = self.tally.lock().expect("counting does not panic");
            match &result {
                Ok(response) => tally.add_response(now, response, latency),
                Err(error) => tally.add_error(now, *error, latency),
            }
            if let Ok(response) = &result
                && response.status == 429
            {
                let pause = response.retry_after.map_or(PAUSE_DEFAULT, Duration::from_secs).min(PAUSE_MAX);
                tally.paused_for += self.shared.gate.pause(now, pause);
            }
        }
        match result {
            Ok(_) => {
                self.shared.responses.fetch_add(1, Relaxed);
                self.retry_delay = RETRY_DELAY_MIN;
                now
            }
            Err(_) => {
                self.shared.errors.fetch_add(1, Relaxed);
                // Fast retries would not help a server that is down.
                tokio::time::sleep(self.retry_delay).await;
                self.retry_delay = (self.retry_delay * 2).min(RETRY_DELAY_MAX);
                Instant::now()
            }
        }
    }

    /// Sends one request on the open connection, or on a new one.
    async fn send(&mut self, nth: u64, due_at: Instant) -> Result<ResponseSummary, RequestError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.shared.target.connect().await?,
        };
        // Without a schedule, a request is due now. With one, it may be sent long after its due time, and its timeout
        // starts when it is sent.
        let now = if self.shared.schedule.is_some() { Instant::now() } else { due_at };
        let response = connection.send(now, self.shared.mix.request(nth, &mut self.buffer)).await?;
        if response.keep_alive {
            self.connection = Some(connection);
        }
        Ok(response)
    }
}
