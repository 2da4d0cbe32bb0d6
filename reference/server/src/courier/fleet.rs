//! All posts together: who is under way, who waits, and what comes back.

use std::{collections::HashMap, sync::Arc, time::Duration};

use reference_core::outbox::{Landing, Outcome};
use simulator::sandbox::{Dispatch, Ticket};
use tokio::{
    sync::{mpsc::UnboundedReceiver, oneshot},
    task::{Id, JoinError, JoinSet},
    time::{Instant, timeout_at},
};

use super::{
    Courier,
    queue::{Queue, Room},
};

const STOPPED: &str = "the server stopped";

/// Everything that is to be posted. Each dispatch lands exactly once, whatever happens to it.
pub(crate) struct Fleet<L> {
    courier: Arc<Courier>,
    queue: Queue<Dispatch>,
    under_way: JoinSet<Landing>,
    /// Whose the tasks are.
    tickets: HashMap<Id, (Ticket, String)>,
    /// Told of every landing.
    land: L,
}

impl<L: Fn(Ticket, Landing)> Fleet<L> {
    pub(crate) fn new(courier: Arc<Courier>, land: L) -> Fleet<L> {
        let bounds = courier.bounds;
        let room = Room {
            total: bounds.posts.max(1),
            per_host: bounds.posts_per_host.max(1),
            waiting: bounds.waiting,
        };
        Fleet { courier, queue: Queue::new(room), under_way: JoinSet::new(), tickets: HashMap::new(), land }
    }

    /// Posts what comes until it is told to stop. Then nothing new is begun, and what is under way may take
    /// so long.
    pub(crate) async fn run(
        mut self,
        mut dispatches: UnboundedReceiver<Dispatch>,
        mut stop: oneshot::Receiver<Duration>,
    ) {
        let drain_time = loop {
            while let Some((host, dispatch)) = self.queue.start() {
                self.start(host, dispatch);
            }
            tokio::select! {
                biased;
                drain_time = &mut stop => break drain_time.unwrap_or_default(),
                Some(ended) = self.under_way.join_next_with_id() => self.settle(ended),
                Some(dispatch) = dispatches.recv() => self.accept(dispatch),
            }
        };
        dispatches.close();
        while let Ok(dispatch) = dispatches.try_recv() {
            self.lose(dispatch.ticket, STOPPED);
        }
        for dispatch in self.queue.drain() {
            self.lose(dispatch.ticket, STOPPED);
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

    fn accept(&mut self, dispatch: Dispatch) {
        let host = dispatch.post.url.host().to_string();
        if let Err(dispatch) = self.queue.push(&host, dispatch) {
            self.lose(dispatch.ticket, "too many deliveries are waiting already");
        }
    }

    fn start(&mut self, host: String, dispatch: Dispatch) {
        let (ticket, courier) = (dispatch.ticket, Arc::clone(&self.courier));
        let task = self.under_way.spawn(async move { courier.post(&dispatch.post).await });
        self.tickets.insert(task.id(), (ticket, host));
    }

    fn settle(&mut self, ended: Result<(Id, Landing), JoinError>) {
        let (id, landing) = match ended {
            Ok(landed) => landed,
            Err(error) => {
                let why = if error.is_panic() { "the courier met a bug of its own" } else { STOPPED };
                (error.id(), Outcome::Unreachable(why.to_owned()).into())
            }
        };
        let (ticket, host) = self.tickets.remove(&id).expect("a task ends once");
        self.queue.end(&host);
        (self.land)(ticket, landing);
    }

    fn lose(&self, ticket: Ticket, why: &str) {
        (self.land)(ticket, Outcome::Unreachable(why.to_owned()).into());
    }
}
