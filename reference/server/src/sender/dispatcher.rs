//! All posts together: who is under way, who waits, and what comes back.

use std::{collections::HashMap, sync::Arc, time::Duration};

use reference_core::outbox::{AttemptReport, AttemptResult};
use simulator::sandbox::AttemptId;
use tokio::{
    sync::{mpsc::UnboundedReceiver, oneshot},
    task::{Id, JoinError, JoinSet},
    time::{Instant, timeout_at},
};

use super::{
    AttemptOwners, Tenant, WebhookSender, WorldAttempt,
    queue::{Places, SendQueue},
};

const STOPPED: &str = "the server stopped";
const ENDED: &str = "its world ended";

/// Everything that is to be posted. Each attempt is reported exactly once, whatever happens to it.
pub(crate) struct Dispatcher {
    sender: Arc<WebhookSender>,
    queue: SendQueue<Tenant, WorldAttempt>,
    under_way: JoinSet<AttemptReport>,
    /// Which attempts the tasks are, and where they stood in the queue.
    attempts: HashMap<Id, (AttemptId, Tenant, String)>,
    owners: Arc<dyn AttemptOwners>,
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
            tokio::select! {
                biased;
                drain_time = &mut stop => break drain_time.unwrap_or_default(),
                Some(ended) = self.under_way.join_next_with_id() => self.settle(ended),
                Some(attempt) = attempts.recv() => self.accept(attempt),
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

    fn accept(&mut self, it: WorldAttempt) {
        let host = it.attempt.post.url.host().to_string();
        let tenant = Tenant { world: it.world, account: it.attempt.account };
        self.queue.push(tenant, &host, it);
    }

    fn start(&mut self, tenant: Tenant, host: String, it: WorldAttempt) {
        // What waited for its turn when its world ended is nobody's any more.
        if !self.owners.is_open(it.world) {
            self.queue.end(tenant, &host);
            return self.lose(&it, ENDED);
        }
        let (id, sender) = (it.attempt.id, Arc::clone(&self.sender));
        let task = self.under_way.spawn(async move { sender.post(tenant, &it.attempt.post).await });
        self.attempts.insert(task.id(), (id, tenant, host));
    }

    fn settle(&mut self, ended: Result<(Id, AttemptReport), JoinError>) {
        let (id, report) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                let why = if error.is_panic() { "the webhook sender met a bug of its own" } else { STOPPED };
                (error.id(), AttemptResult::Unreachable(why.to_owned()).into())
            }
        };
        let (attempt, tenant, host) = self.attempts.remove(&id).expect("a task ends once");
        self.queue.end(tenant, &host);
        self.owners.end_attempt(tenant.world, attempt, report);
    }

    fn lose(&self, it: &WorldAttempt, why: &str) {
        self.owners.end_attempt(it.world, it.attempt.id, AttemptResult::Unreachable(why.to_owned()).into());
    }
}
