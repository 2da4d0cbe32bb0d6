//! A run: threads, connections, and the clock above them.

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
    mix::Mix,
    pace::{Gate, Tickets},
    plan::{Pace, Plan, Stop},
    report::Report,
    talk::{Answer, Fault, Talk},
    tally::Tally,
    target::Target,
};

/// More are of use only against a server on another machine.
const THREADS_MAX: usize = 2;
const THREADS_CAP: usize = 64;
/// The interval of progress reports.
const NEWS: Duration = Duration::from_millis(100);
/// After a connection failed, and twice as long each time, up to the second.
const RETRY: Duration = Duration::from_millis(10);
const RETRY_MAX: Duration = Duration::from_secs(1);
/// The pause after a 429 without a `Retry-After`.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(3_600);

/// The progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct SoFar {
    /// Since the start.
    pub elapsed: Duration,
    /// Answers.
    pub answers: u64,
    /// Requests without one.
    pub errors: u64,
    /// The server wants to be left alone for so much longer.
    pub paused: Option<Duration>,
}

/// The state that all threads share.
struct Shared {
    target: Target,
    mix: Mix,
    /// The tickets; `None` if every connection asks as fast as it can.
    tickets: Option<Tickets>,
    gate: Gate,
    start: Instant,
    end: Instant,
    answers: AtomicU64,
    errors: AtomicU64,
    /// `true` once the caller has stopped the run.
    stopped: watch::Sender<bool>,
}

/// Runs a plan to its end. Blocks; `news` hears ten times a second how far it is, and may end it: requests that have no
/// answer by then count nowhere.
///
/// # Errors
///
/// The plan can't be carried out, or nobody answers at its address.
pub fn run(plan: &Plan, mut news: impl FnMut(SoFar) -> ControlFlow<()>) -> Result<Report, Stop> {
    let target = Target::find(plan)?;
    let runtime = || {
        Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Stop::Usage(format!("cannot start the async runtime: {error}")))
    };
    let (mix, notes) = runtime()?.block_on(Mix::prepare(&target, &plan.work))?;
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let connections = plan.connections.max(1);
    let threads = plan.threads.unwrap_or(cores.min(THREADS_MAX)).clamp(1, connections.min(THREADS_CAP));
    let runtimes = (0..threads).map(|_| runtime()).collect::<Result<Vec<_>, _>>()?;

    let start = Instant::now();
    let shared = Arc::new(Shared {
        target,
        mix,
        tickets: match plan.pace {
            Pace::Max => None,
            Pace::PerSecond(rate) => Some(Tickets::new(rate, plan.span)),
        },
        gate: Gate::new(start),
        start,
        end: start + plan.span,
        answers: AtomicU64::new(0),
        errors: AtomicU64::new(0),
        stopped: watch::Sender::new(false),
    });
    let mut tally = ask_on_all(&shared, &runtimes, connections, &mut news);
    let took = tally.last.unwrap_or_else(|| Instant::now().min(shared.end)).saturating_duration_since(start);
    let mut never_sent = 0;
    for nth in shared.tickets.iter().flat_map(Tickets::never_taken) {
        let due = shared.tickets.as_ref().map_or(Duration::ZERO, |tickets| tickets.at(nth));
        never_sent += 1;
        tally.latency(took.saturating_sub(due));
    }
    let interrupted = *shared.stopped.borrow();
    Ok(Report { interrupted, ..Report::new(plan, threads, took, &tally, never_sent, notes) })
}

/// Asks on a thread for each runtime, and tells the caller meanwhile how far it is.
fn ask_on_all(
    shared: &Arc<Shared>,
    runtimes: &[Runtime],
    connections: usize,
    news: &mut impl FnMut(SoFar) -> ControlFlow<()>,
) -> Tally {
    thread::scope(|scope| {
        if let Some(tickets) = &shared.tickets {
            scope.spawn(|| tickets.let_out(shared.start, shared.end));
        }
        let workers: Vec<_> = runtimes
            .iter()
            .enumerate()
            .map(|(place, runtime)| {
                let mine = (place..connections).step_by(runtimes.len()).count();
                let caller = thread::current();
                scope.spawn(move || {
                    let tally = runtime.block_on(work(shared, place, mine));
                    caller.unpark();
                    tally
                })
            })
            .collect();
        while !workers.iter().all(thread::ScopedJoinHandle::is_finished) {
            thread::park_timeout(NEWS);
            let now = Instant::now();
            let verdict = news(SoFar {
                elapsed: now.saturating_duration_since(shared.start),
                answers: shared.answers.load(Relaxed),
                errors: shared.errors.load(Relaxed),
                paused: shared.gate.opens(now).map(|opens| opens.saturating_duration_since(now)),
            });
            if verdict.is_break() {
                shared.stopped.send_replace(true);
                shared.tickets.iter().for_each(Tickets::stop);
            }
        }
        let mut sum = Tally::new();
        for worker in workers {
            sum.add(&worker.join().expect("a thread that asks does not panic"));
        }
        sum
    })
}

/// The connections of one thread.
async fn work(shared: &Arc<Shared>, place: usize, connections: usize) -> Tally {
    let tally = Arc::new(Mutex::new(Tally::new()));
    let mut lines = JoinSet::new();
    for nth in 0..connections {
        let id = (place + nth * THREADS_CAP) as u64;
        lines.spawn(Line::new(Arc::clone(shared), Arc::clone(&tally), id).run());
    }
    let mut stopped = shared.stopped.subscribe();
    let all = async {
        while let Some(line) = lines.join_next().await {
            line.expect("a connection does not panic");
        }
    };
    tokio::select! {
        () = all => {}
        _ = stopped.wait_for(|stopped| *stopped) => {}
    }
    // Whoever still waits for an answer goes without it.
    lines.shutdown().await;
    let mut tally = tally.lock().expect("nobody panics while counting");
    std::mem::replace(&mut tally, Tally::new())
}

/// One connection, again and again.
struct Line {
    shared: Arc<Shared>,
    tally: Arc<Mutex<Tally>>,
    /// The number of the next request where there are no tickets; no other connection has it.
    turn: u64,
    talk: Option<Talk>,
    room: Vec<u8>,
    retry: Duration,
}

impl Line {
    fn new(shared: Arc<Shared>, tally: Arc<Mutex<Tally>>, id: u64) -> Line {
        Line { shared, tally, turn: id << 40, talk: None, room: Vec::new(), retry: RETRY }
    }

    async fn run(mut self) {
        let mut now = Instant::now();
        while let Some((nth, due)) = self.next(now).await {
            now = self.one(nth, due).await;
            if self.shared.tickets.is_none() {
                // Every answer that has come is read before the next request leaves: requests leave, and arrive, in
                // batches, and a server on the same machine is woken less often.
                tokio::task::yield_now().await;
            }
        }
    }

    /// The next request's number and when it is due; nothing once the run is over.
    async fn next(&mut self, mut now: Instant) -> Option<(u64, Instant)> {
        let Shared { tickets, gate, start, end, .. } = &*self.shared;
        loop {
            let Some(tickets) = tickets else {
                match gate.opens(now) {
                    // Nobody waits for what will not come any more.
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
            let nth = tickets.take().await?;
            let due = *start + tickets.at(nth);
            if gate.opens(due).is_none() {
                return Some((nth, due));
            }
            self.tally.lock().expect("nobody panics while counting").held_back += 1;
        }
    }

    /// Asks one request. Says when it was over.
    async fn one(&mut self, nth: u64, due: Instant) -> Instant {
        let asked = self.ask(nth, due).await;
        let now = Instant::now();
        let latency = now.saturating_duration_since(due);
        {
            let mut tally = self.tally.lock().expect("nobody panics while counting");
            match &asked {
                Ok(answer) => tally.answer(now, answer, latency),
                Err(fault) => tally.fault(now, *fault, latency),
            }
            if let Ok(answer) = &asked
                && answer.status == 429
            {
                let span = answer.retry_after.map_or(PAUSE, Duration::from_secs).min(PAUSE_MAX);
                tally.paused += self.shared.gate.close(now, span);
            }
        }
        match asked {
            Ok(_) => {
                self.shared.answers.fetch_add(1, Relaxed);
                self.retry = RETRY;
                now
            }
            Err(_) => {
                self.shared.errors.fetch_add(1, Relaxed);
                // A server that is gone is not helped by being asked faster.
                tokio::time::sleep(self.retry).await;
                self.retry = (self.retry * 2).min(RETRY_MAX);
                Instant::now()
            }
        }
    }

    async fn ask(&mut self, nth: u64, due: Instant) -> Result<Answer, Fault> {
        let mut talk = match self.talk.take() {
            Some(talk) => talk,
            None => self.shared.target.connect().await?,
        };
        // At a rate a request may be sent long after it was due; patience begins when it is sent.
        let now = if self.shared.tickets.is_some() { Instant::now() } else { due };
        let answer = talk.ask(now, self.shared.mix.request(nth, &mut self.room)).await?;
        if answer.keeps {
            self.talk = Some(talk);
        }
        Ok(answer)
    }
}
