//! All posts together: who is under way, who waits, and what comes back.

use std::{collections::HashMap, sync::Arc, time::Duration};

use reference_core::{
    id::AccountNo,
    outbox::{AttemptReport, AttemptResult},
};
use simulator::sandbox::{AttemptId, OutgoingAttempt};
use tokio::{
    sync::{mpsc::UnboundedReceiver, oneshot},
    task::{Id, JoinError, JoinSet},
    time::{Instant, timeout_at},
};

use super::{
    WebhookSender,
    queue::{Places, SendQueue},
};

const STOPPED: &str = "the server stopped";

/// Everything that is to be posted. Each attempt is reported exactly once, whatever happens to it.
pub(crate) struct Dispatcher<L> {
    sender: Arc<WebhookSender>,
    queue: SendQueue<AccountNo, OutgoingAttempt>,
    under_way: JoinSet<AttemptReport>,
    /// Which attempts the tasks are, and where they stood in the queue.
    attempts: HashMap<Id, (AttemptId, AccountNo, String)>,
    /// Called once for each attempt that ended.
    report: L,
}

impl<L: Fn(AttemptId, AttemptReport)> Dispatcher<L> {
    pub(crate) fn new(sender: Arc<WebhookSender>, report: L) -> Dispatcher<L> {
        let bounds = sender.bounds;
        let places = Places { total: bounds.posts.max(1), per_host: bounds.posts_per_host.max(1) };
        Dispatcher {
            sender,
            queue: SendQueue::new(places),
            under_way: JoinSet::new(),
            attempts: HashMap::new(),
            report,
        }
    }

    /// Posts what comes until it is told to stop. Then nothing new is begun, and what is under way may take
    /// so long.
    pub(crate) async fn run(
        mut self,
        mut attempts: UnboundedReceiver<OutgoingAttempt>,
        mut stop: oneshot::Receiver<Duration>,
    ) {
        let drain_time = loop {
            while let Some((account, host, attempt)) = self.queue.start() {
                self.start(account, host, attempt);
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
            self.lose(attempt.id, STOPPED);
        }
        for attempt in self.queue.drain() {
            self.lose(attempt.id, STOPPED);
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

    fn accept(&mut self, attempt: OutgoingAttempt) {
        let host = attempt.post.url.host().to_string();
        self.queue.push(attempt.account, &host, attempt);
    }

    fn start(&mut self, account: AccountNo, host: String, attempt: OutgoingAttempt) {
        let (id, sender) = (attempt.id, Arc::clone(&self.sender));
        let task = self.under_way.spawn(async move { sender.post(account, &attempt.post).await });
        self.attempts.insert(task.id(), (id, account, host));
    }

    fn settle(&mut self, ended: Result<(Id, AttemptReport), JoinError>) {
        let (id, report) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                let why = if error.is_panic() { "the webhook sender met a bug of its own" } else { STOPPED };
                (error.id(), AttemptResult::Unreachable(why.to_owned()).into())
            }
        };
        let (attempt, account, host) = self.attempts.remove(&id).expect("a task ends once");
        self.queue.end(account, &host);
        (self.report)(attempt, report);
    }

    fn lose(&self, attempt: AttemptId, why: &str) {
        (self.report)(attempt, AttemptResult::Unreachable(why.to_owned()).into());
    }
}
