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
    queue::{Pace, Places, SendQueue},
};

const STOPPED: &str = "the server stopped";
const ENDED: &str = "its world ended";

/// Everything that is to be posted. Each attempt is reported exactly once, whatever happens to it.
pub(crate) struct Dispatcher {
    sender: Arc<WebhookSender>,
    queue: SendQueue<Tenant, WorldAttempt>,
    under_way: JoinSet<AttemptReport>,
    /// The attempts that the tasks make.
    attempts: HashMap<Id, RunningAttempt>,
    owners: Arc<dyn AttemptOwners>,
}

/// An attempt that is being made.
struct RunningAttempt {
    id: AttemptId,
    tenant: Tenant,
    host: String,
    since: Instant,
    /// Lets it fail in favour of another account; `None` once it was told to.
    give_way: Option<oneshot::Sender<()>>,
}

impl Dispatcher {
    pub(crate) fn new(sender: Arc<WebhookSender>, owners: Arc<dyn AttemptOwners>) -> Dispatcher {
        let bounds = sender.bounds;
        let places = Places { total: bounds.posts.max(1), per_host: bounds.posts_per_host.max(1) };
        Dispatcher {
            sender,
            queue: SendQueue::new(places),
            under_way: JoinSet::new(),
            attempts: HashMap::new(),
            owners,
        }
    }

    /// Posts what comes until it is told to stop. Then nothing new is begun, and what is under way may take
    /// so long.
    pub(crate) async fn run(
        mut self,
        mut attempts: UnboundedReceiver<WorldAttempt>,
        mut stop: oneshot::Receiver<Duration>,
    ) {
        let drain_time = loop {
            while let Some((tenant, host, attempt)) = self.queue.start() {
                self.start(tenant, host, attempt);
            }
            let yields = self.make_room();
            tokio::select! {
                biased;
                drain_time = &mut stop => break drain_time.unwrap_or_default(),
                Some(ended) = self.under_way.join_next_with_id() => self.settle(ended),
                Some(attempt) = attempts.recv() => self.accept(attempt),
                () = sleep_until(yields.unwrap_or_else(Instant::now)), if yields.is_some() => {}
            }
        };
        attempts.close();
        while let Ok(attempt) = attempts.try_recv() {
            self.lose(&attempt, STOPPED);
        }
        for attempt in self.queue.drain() {
            self.lose(&attempt, STOPPED);
        }
        let until = Instant::now() + drain_time;
        while let Ok(Some(ended)) = timeout_at(until, self.under_way.join_next_with_id()).await {
            self.settle(ended);
        }
        self.under_way.abort_all();
        while let Some(ended) = self.under_way.join_next_with_id().await {
            self.settle(ended);
        }
    }

    /// Lets long attempts fail in favour of accounts that hold no slot and find none, the longest of the account that holds
    /// the most first. Returns when another attempt has taken long enough, if that is waited for.
    fn make_room(&mut self) -> Option<Instant> {
        let starved = self.queue.starved();
        let mut wanted = starved
            .saturating_sub(self.attempts.values().filter(|attempt| attempt.give_way.is_none()).count());
        let yield_time = self.sender.bounds.yield_time;
        while wanted > 0 {
            let (queue, now) = (&self.queue, Instant::now());
            let running = self.attempts.values_mut().filter(|attempt| attempt.give_way.is_some());
            let is_long = |attempt: &RunningAttempt| now >= attempt.since + yield_time;
            let first = running.max_by_key(|attempt| {
                (is_long(attempt), queue.held(&attempt.tenant), std::cmp::Reverse(attempt.since))
            })?;
            if !is_long(first) {
                let since =
                    self.attempts.values().filter(|it| it.give_way.is_some()).map(|it| it.since).min();
                return since.map(|since| since + yield_time);
            }
            // An error is an attempt that has just ended by itself, which makes room too.
            let _ = first.give_way.take().map(|give_way| give_way.send(()));
            wanted -= 1;
        }
        None
    }

    fn accept(&mut self, it: WorldAttempt) {
        let host = it.attempt.post.url.host().to_string();
        let tenant = Tenant { world: it.world, account: it.attempt.account };
        self.queue.push(tenant, &host, it);
    }

    fn start(&mut self, tenant: Tenant, host: String, it: WorldAttempt) {
        // What waited for its turn when its world ended is nobody's any more.
        if !self.owners.is_open(it.world) {
            self.queue.end(tenant, &host, Pace::Quick);
            return self.lose(&it, ENDED);
        }
        let (id, sender) = (it.attempt.id, Arc::clone(&self.sender));
        let (give_way, told) = oneshot::channel();
        let task = self.under_way.spawn(async move { sender.post(tenant, &it.attempt.post, told).await });
        let attempt = RunningAttempt { id, tenant, host, since: Instant::now(), give_way: Some(give_way) };
        self.attempts.insert(task.id(), attempt);
    }

    fn settle(&mut self, ended: Result<(Id, AttemptReport), JoinError>) {
        let (id, report) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                let why = if error.is_panic() { "the webhook sender met a bug of its own" } else { STOPPED };
                (error.id(), AttemptResult::Unreachable(why.to_owned()).into())
            }
        };
        let RunningAttempt { id, tenant, host, since, .. } =
            self.attempts.remove(&id).expect("a task ends once");
        let is_slow = since.elapsed() >= self.sender.bounds.yield_time;
        self.queue.end(tenant, &host, if is_slow { Pace::Slow } else { Pace::Quick });
        self.owners.end_attempt(tenant.world, id, report);
    }

    fn lose(&self, it: &WorldAttempt, why: &str) {
        self.owners.end_attempt(it.world, it.attempt.id, AttemptResult::Unreachable(why.to_owned()).into());
    }
}
