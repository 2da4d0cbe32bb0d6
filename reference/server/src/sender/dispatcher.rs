//! [`Dispatcher`]: starts waiting attempts, limits running ones, and reports their results.

use std::{collections::HashMap, sync::Arc, time::Duration};

use reference_core::outbox::{AttemptReport, AttemptResult};
use simulator::sandbox::AttemptId;
use tokio::{
    sync::{mpsc::UnboundedReceiver, oneshot},
    task::{Id, JoinError, JoinSet},
    time::{Instant, sleep_until, timeout_at},
};

use super::{
    AttemptOwners, Tenant, WebhookSender, WorldAttempt,
    queue::{Pace, SendLimits, SendQueue},
};

const SERVER_STOPPED: &str = "the server stopped";
const WORLD_ENDED: &str = "its world ended";

/// The queue and the running attempts. Each attempt is reported exactly once.
pub(crate) struct Dispatcher {
    sender: Arc<WebhookSender>,
    queue: SendQueue<Tenant, WorldAttempt>,
    tasks: JoinSet<AttemptReport>,
    /// The running attempts by their tasks.
    running: HashMap<Id, RunningAttempt>,
    owners: Arc<dyn AttemptOwners>,
}

/// A running attempt.
struct RunningAttempt {
    id: AttemptId,
    tenant: Tenant,
    host: String,
    started_at: Instant,
    /// Aborts the attempt in favour of another account; `None` once used.
    abort: Option<oneshot::Sender<()>>,
}

impl Dispatcher {
    pub(crate) fn new(sender: Arc<WebhookSender>, owners: Arc<dyn AttemptOwners>) -> Dispatcher {
        let bounds = sender.bounds;
        let limits = SendLimits { total: bounds.attempts.max(1), per_host: bounds.attempts_per_host.max(1) };
        Dispatcher {
            sender,
            queue: SendQueue::new(limits),
            tasks: JoinSet::new(),
            running: HashMap::new(),
            owners,
        }
    }

    /// Makes attempts until `stop` receives a drain time. Then waiting attempts are reported as failed, and running ones are
    /// aborted after the drain time.
    pub(crate) async fn run(
        mut self,
        mut attempts: UnboundedReceiver<WorldAttempt>,
        mut stop: oneshot::Receiver<Duration>,
    ) {
        let drain_time = loop {
            while let Some((tenant, host, attempt)) = self.queue.start() {
                self.start(tenant, host, attempt);
            }
            let next_abort_at = self.free_slots();
            tokio::select! {
                biased;
                drain_time = &mut stop => break drain_time.unwrap_or_default(),
                Some(ended) = self.tasks.join_next_with_id() => self.finish_attempt(ended),
                Some(attempt) = attempts.recv() => self.enqueue(attempt),
                () = sleep_until(next_abort_at.unwrap_or_else(Instant::now)), if next_abort_at.is_some() => {}
            }
        };
        attempts.close();
        while let Ok(attempt) = attempts.try_recv() {
            self.report_unsent(&attempt, SERVER_STOPPED);
        }
        for attempt in self.queue.drain() {
            self.report_unsent(&attempt, SERVER_STOPPED);
        }
        let deadline = Instant::now() + drain_time;
        while let Ok(Some(ended)) = timeout_at(deadline, self.tasks.join_next_with_id()).await {
            self.finish_attempt(ended);
        }
        self.tasks.abort_all();
        while let Some(ended) = self.tasks.join_next_with_id().await {
            self.finish_attempt(ended);
        }
    }

    /// Aborts long attempts in favour of accounts that need a slot and have none: the longest attempt of the account
    /// with the most slots first. Returns the time at which the next attempt may be aborted, if an account still waits.
    fn free_slots(&mut self) -> Option<Instant> {
        let starved = self.queue.starved_count();
        // Slots of attempts that were already aborted will be free soon.
        let mut missing =
            starved.saturating_sub(self.running.values().filter(|attempt| attempt.abort.is_none()).count());
        let abort_after = self.sender.bounds.abort_after;
        while missing > 0 {
            let (queue, now) = (&self.queue, Instant::now());
            let running = self.running.values_mut().filter(|attempt| attempt.abort.is_some());
            let is_long = |attempt: &RunningAttempt| now >= attempt.started_at + abort_after;
            let candidate = running.max_by_key(|attempt| {
                (is_long(attempt), queue.slots_in_use(&attempt.tenant), std::cmp::Reverse(attempt.started_at))
            })?;
            if !is_long(candidate) {
                let first_start = self
                    .running
                    .values()
                    .filter(|attempt| attempt.abort.is_some())
                    .map(|attempt| attempt.started_at)
                    .min();
                return first_start.map(|started_at| started_at + abort_after);
            }
            // An error means that the attempt has just ended, which frees a slot too.
            let _ = candidate.abort.take().map(|abort| abort.send(()));
            missing -= 1;
        }
        None
    }

    fn enqueue(&mut self, attempt: WorldAttempt) {
        let host = attempt.attempt.request.url.host().to_string();
        let tenant = Tenant { world: attempt.world, account: attempt.attempt.account };
        self.queue.push(tenant, &host, attempt);
    }

    /// Starts an attempt, which has a slot of the queue.
    fn start(&mut self, tenant: Tenant, host: String, outgoing: WorldAttempt) {
        // The world was closed while the attempt waited.
        if !self.owners.is_open(outgoing.world) {
            self.queue.end(tenant, &host, Pace::Quick);
            return self.report_unsent(&outgoing, WORLD_ENDED);
        }
        let (id, sender) = (outgoing.attempt.id, Arc::clone(&self.sender));
        let (abort, aborted) = oneshot::channel();
        let task = self
            .tasks
            .spawn(async move { sender.make_attempt(tenant, &outgoing.attempt.request, aborted).await });
        let attempt = RunningAttempt { id, tenant, host, started_at: Instant::now(), abort: Some(abort) };
        self.running.insert(task.id(), attempt);
    }

    fn finish_attempt(&mut self, ended: Result<(Id, AttemptReport), JoinError>) {
        let (task_id, report) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                let why = if error.is_panic() {
                    "the webhook sender failed with an internal error"
                } else {
                    SERVER_STOPPED
                };
                (error.id(), AttemptResult::Unreachable(why.to_owned()).into())
            }
        };
        let RunningAttempt { id, tenant, host, started_at, .. } =
            self.running.remove(&task_id).expect("a task is removed only when it ends, which it does once");
        let is_slow = started_at.elapsed() >= self.sender.bounds.abort_after;
        self.queue.end(tenant, &host, if is_slow { Pace::Slow } else { Pace::Quick });
        self.owners.end_attempt(tenant.world, id, report);
    }

    /// Reports an attempt that was not started as failed.
    fn report_unsent(&self, outgoing: &WorldAttempt, why: &str) {
        self.owners.end_attempt(
            outgoing.world,
            outgoing.attempt.id,
            AttemptResult::Unreachable(why.to_owned()).into(),
        );
    }
}
