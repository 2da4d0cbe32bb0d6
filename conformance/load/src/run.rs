//! The run of a load test: threads, connections and timing.

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
    connection::{Answer, Connection, RequestError},
    mix::Mix,
    pace::{RequestSchedule, RetryAfterGate},
    plan::{Pace, Plan, Stop},
    report::Report,
    tally::Tally,
    target::Target,
};

/// The largest default number of threads. More are useful only against a server on another machine.
const THREADS_DEFAULT: usize = 2;
const THREADS_MAX: usize = 64;
/// The interval of progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// The first delay after a failed connection. It doubles up to `RETRY_MAX`.
const RETRY: Duration = Duration::from_millis(10);
const RETRY_MAX: Duration = Duration::from_secs(1);
/// The pause after a 429 without a `Retry-After`.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(3_600);

/// The progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunProgress {
    /// The time since the start.
    pub elapsed: Duration,
    /// Responses.
    pub answers: u64,
    /// Requests without a response.
    pub errors: u64,
    /// The remaining pause after a 429.
    pub paused: Option<Duration>,
}

/// The state that all threads share.
struct Shared {
    target: Target,
    mix: Mix,
    /// The schedule; `None` if every connection sends as fast as it gets responses.
    schedule: Option<RequestSchedule>,
    gate: RetryAfterGate,
    start: Instant,
    end: Instant,
    answers: AtomicU64,
    errors: AtomicU64,
    /// `true` once the caller has stopped the run.
    stopped: watch::Sender<bool>,
}

/// Runs a plan to its end. Blocks. `on_progress` receives the progress ten times a second and may end the run; requests
/// without a response are then not counted.
///
/// # Errors
///
/// The plan is invalid, or no server responds at its address.
pub fn run(plan: &Plan, mut on_progress: impl FnMut(RunProgress) -> ControlFlow<()>) -> Result<Report, Stop> {
    let target = Target::resolve(plan)?;
    let runtime = || {
        Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Stop::Usage(format!("cannot start the async runtime: {error}")))
    };
    let (mix, notes) = runtime()?.block_on(Mix::prepare(&target, &plan.work))?;
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let connections = plan.connections.max(1);
    let threads = plan.threads.unwrap_or(cores.min(THREADS_DEFAULT)).clamp(1, connections.min(THREADS_MAX));
    let runtimes = (0..threads).map(|_| runtime()).collect::<Result<Vec<_>, _>>()?;

    let start = Instant::now();
    let shared = Arc::new(Shared {
        target,
        mix,
        schedule: match plan.pace {
            Pace::Max => None,
            Pace::PerSecond(rate) => Some(RequestSchedule::new(rate, plan.span)),
        },
        gate: RetryAfterGate::new(start),
        start,
        end: start + plan.span,
        answers: AtomicU64::new(0),
        errors: AtomicU64::new(0),
        stopped: watch::Sender::new(false),
    });
    let mut tally = run_threads(&shared, &runtimes, connections, &mut on_progress);
    let took = tally.last.unwrap_or_else(|| Instant::now().min(shared.end)).saturating_duration_since(start);
    let mut never_sent = 0;
    for nth in shared.schedule.iter().flat_map(RequestSchedule::never_taken) {
        let due = shared.schedule.as_ref().map_or(Duration::ZERO, |schedule| schedule.due_time(nth));
        never_sent += 1;
        tally.add_latency(took.saturating_sub(due));
    }
    let interrupted = *shared.stopped.borrow();
    Ok(Report { interrupted, ..Report::new(plan, threads, took, &tally, never_sent, notes) })
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
            scope.spawn(|| schedule.release(shared.start, shared.end));
        }
        let workers: Vec<_> = runtimes
            .iter()
            .enumerate()
            .map(|(index, runtime)| {
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
            let verdict = on_progress(RunProgress {
                elapsed: now.saturating_duration_since(shared.start),
                answers: shared.answers.load(Relaxed),
                errors: shared.errors.load(Relaxed),
                paused: shared.gate.paused_until(now).map(|opens| opens.saturating_duration_since(now)),
            });
            if verdict.is_break() {
                shared.stopped.send_replace(true);
                shared.schedule.iter().for_each(RequestSchedule::stop);
            }
        }
        let mut sum = Tally::new();
        for worker in workers {
            sum.merge(&worker.join().expect("a load thread does not panic"));
        }
        sum
    })
}

/// Runs the connections of one thread.
async fn run_connections(shared: &Arc<Shared>, thread_index: usize, connections: usize) -> Tally {
    let tally = Arc::new(Mutex::new(Tally::new()));
    let mut tasks = JoinSet::new();
    for nth in 0..connections {
        let id = (thread_index + nth * THREADS_MAX) as u64;
        tasks.spawn(ConnectionLoop::new(Arc::clone(shared), Arc::clone(&tally), id).run());
    }
    let mut stopped = shared.stopped.subscribe();
    let all = async {
        while let Some(task) = tasks.join_next().await {
            task.expect("a connection does not panic");
        }
    };
    tokio::select! {
        () = all => {}
        _ = stopped.wait_for(|stopped| *stopped) => {}
    }
    // Pending requests are aborted.
    tasks.shutdown().await;
    let mut tally = tally.lock().expect("counting does not panic");
    std::mem::replace(&mut tally, Tally::new())
}

/// The requests of one connection, which is reopened when it fails.
struct ConnectionLoop {
    shared: Arc<Shared>,
    tally: Arc<Mutex<Tally>>,
    /// The number of the next request, used if there is no schedule. Unique across connections.
    turn: u64,
    connection: Option<Connection>,
    buffer: Vec<u8>,
    retry: Duration,
}

impl ConnectionLoop {
    fn new(shared: Arc<Shared>, tally: Arc<Mutex<Tally>>, id: u64) -> ConnectionLoop {
        ConnectionLoop { shared, tally, turn: id << 40, connection: None, buffer: Vec::new(), retry: RETRY }
    }

    async fn run(mut self) {
        let mut now = Instant::now();
        while let Some((nth, due)) = self.next(now).await {
            now = self.send_and_count(nth, due).await;
            if self.shared.schedule.is_none() {
                // All responses that have arrived are read before the next request is sent. Requests thus arrive in
                // batches, and a server on the same machine is woken less often.
                tokio::task::yield_now().await;
            }
        }
    }

    /// Returns the next request's number and its due time; `None` once the run is over.
    async fn next(&mut self, mut now: Instant) -> Option<(u64, Instant)> {
        let Shared { schedule, gate, start, end, .. } = &*self.shared;
        loop {
            let Some(schedule) = schedule else {
                match gate.paused_until(now) {
                    // No further request is due.
                    Some(opens) if opens >= *end => return None,
                    Some(opens) => tokio::time::sleep_until(opens).await,
                    None if now >= *end => return None,
                    None => {
                        self.turn += 1;
                        return Some((self.turn, now));
                    }
                }
                now = Instant::now();
                continue;
            };
            let nth = schedule.take().await?;
            let due = *start + schedule.due_time(nth);
            if gate.paused_until(due).is_none() {
                return Some((nth, due));
            }
            self.tally.lock().expect("counting does not panic").held_back += 1;
        }
    }

    /// Sends one request. Returns the time of its end.
    async fn send_and_count(&mut self, nth: u64, due: Instant) -> Instant {
        let result = self.send(nth, due).await;
        let now = Instant::now();
        let latency = now.saturating_duration_since(due);
        {
            let mut tally = self.tally.lock().expect("counting does not panic");
            match &result {
                Ok(answer) => tally.add_response(now, answer, latency),
                Err(fault) => tally.add_error(now, *fault, latency),
            }
            if let Ok(answer) = &result
                && answer.status == 429
            {
                let span = answer.retry_after.map_or(PAUSE, Duration::from_secs).min(PAUSE_MAX);
                tally.paused += self.shared.gate.pause(now, span);
            }
        }
        match result {
            Ok(_) => {
                self.shared.answers.fetch_add(1, Relaxed);
                self.retry = RETRY;
                now
            }
            Err(_) => {
                self.shared.errors.fetch_add(1, Relaxed);
                // Faster retries do not help a server that is down.
                tokio::time::sleep(self.retry).await;
                self.retry = (self.retry * 2).min(RETRY_MAX);
                Instant::now()
            }
        }
    }

    async fn send(&mut self, nth: u64, due: Instant) -> Result<Answer, RequestError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.shared.target.connect().await?,
        };
        // With a fixed rate, a request may be sent long after its due time; its timeout starts when it is sent.
        let now = if self.shared.schedule.is_some() { Instant::now() } else { due };
        let answer = connection.send(now, self.shared.mix.request(nth, &mut self.buffer)).await?;
        if answer.keep_alive {
            self.connection = Some(connection);
        }
        Ok(answer)
    }
}
