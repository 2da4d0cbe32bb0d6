//! The keeper of the world: one lock around it and its clock, and one timer that wakes it.
//!
//! Nobody holds the lock while waiting: neither for a name to be looked up nor for an attempt to end. What
//! the world sends out is handed to the webhook sender before the lock is given back. Knows nothing of HTTP
//! libraries, and nothing of charges.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use reference_core::{error::ApiError, id::AccountNo, outbox::AttemptReport, time::Timestamp};
use reference_wire::{Request, Response};
use simulator::sandbox::{Admitted, AttemptId, FirstKeys, OutgoingAttempt, PendingAdvance, Progress};
use tokio::sync::{Notify, mpsc::UnboundedSender, watch};

use crate::{
    clock::Clock,
    log::{LogEntry, LogSink},
    sender::{self, Hearsay, WebhookSender},
    world::{RequestHead, World},
};

/// A world that leaves something due although it was just brought up to date must not spin the timer.
const NAP_MIN: Duration = Duration::from_millis(1);
/// The timer looks again at least so often, so that a wall clock that jumps ahead is noticed.
const NAP_MAX: Duration = Duration::from_secs(10);

/// The world met a bug of its own and panicked. What it holds may be half changed, so it answers nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken;

/// The world, its clock and its timer.
pub(crate) struct Host {
    held: Mutex<Held>,
    rearm: Notify,
    /// Notified after every attempt that ends, for calls that wait for one.
    attempt_ended: Notify,
    /// Nothing if the world's deliveries stay inside.
    exit: Option<Exit>,
    frozen: bool,
    /// What the world's clock showed last, for those who need no lock.
    shown: AtomicU64,
    /// Told of everything that happens.
    log: Option<LogSink>,
    /// Counts what somebody outside could notice; `None` once the server is about to end.
    pulse: watch::Sender<Option<u64>>,
}

/// The way out for deliveries.
pub(crate) struct Exit {
    pub(crate) sender: Arc<WebhookSender>,
    /// Never holds much: the webhook sender takes everything at once, and bounds what waits.
    pub(crate) dispatches: UnboundedSender<OutgoingAttempt>,
}

struct Held {
    world: Box<dyn World>,
    clock: Clock,
    /// What the timer is set to.
    armed: Option<Timestamp>,
}

impl Host {
    pub(crate) fn new(world: Box<dyn World>, clock: Clock, exit: Option<Exit>, log: Option<LogSink>) -> Host {
        let frozen = clock.is_frozen();
        Host {
            shown: AtomicU64::new(world.now().0),
            log,
            held: Mutex::new(Held { world, clock, armed: None }),
            rearm: Notify::new(),
            attempt_ended: Notify::new(),
            exit,
            frozen,
            pulse: watch::Sender::new(Some(0)),
        }
    }

    /// Changes whenever something happened or the sandbox moved the clock; becomes nothing when the server is
    /// about to end. Who looks at the world after taking it misses nothing.
    pub(crate) fn pulse(&self) -> watch::Receiver<Option<u64>> {
        self.pulse.subscribe()
    }

    /// Ends what follows the pulse.
    pub(crate) fn end_pulse(&self) {
        self.pulse.send_replace(None);
    }

    /// Called after the change, so that whoever takes the pulse from now on sees the changed world.
    fn beat(&self) {
        if self.pulse.receiver_count() > 0 {
            self.pulse.send_modify(|count| *count = count.map(|count| count.wrapping_add(1)));
        }
    }

    /// What posts outside of the simulated network; `None` if nothing does.
    pub(crate) fn sender(&self) -> Option<&WebhookSender> {
        self.exit.as_ref().map(|exit| &*exit.sender)
    }

    /// What the service clock showed when the world was last asked. Takes no lock.
    pub(crate) fn shown(&self) -> Timestamp {
        Timestamp(self.shown.load(Ordering::Relaxed))
    }

    /// Whether only `/sandbox` moves the clock.
    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Whether the world met a bug of its own. Takes no lock.
    pub(crate) fn is_broken(&self) -> bool {
        self.held.is_poisoned()
    }

    /// Who asks at the time it is, for [`Host::respond_as`]; or the refusal as it goes back.
    #[cfg(feature = "mcp")]
    pub(crate) fn admit(&self, authorization: Option<&[u8]>) -> Result<Result<Admitted, Response>, Broken> {
        self.step(|world, now| world.admit(now, authorization))
    }

    /// Who asks at the time it is, for [`Host::respond_as`], or nothing if only [`Host::respond`] knows; or the refusal
    /// as it goes back.
    pub(crate) fn admit_head(
        &self,
        head: RequestHead<'_>,
    ) -> Result<Result<Option<Admitted>, Response>, Broken> {
        self.step(|world, now| world.admit_head(now, head))
    }

    /// Answers a request at the time it is.
    pub(crate) async fn respond(&self, request: &Request<'_>) -> Result<Response, Broken> {
        self.answer(None, request, |world, now| world.respond(now, request)).await
    }

    /// The same for a key that was let in, without counting it again.
    pub(crate) async fn respond_as(
        &self,
        admitted: &Admitted,
        request: &Request<'_>,
    ) -> Result<Response, Broken> {
        self.answer(Some(admitted.account()), request, |world, now| world.respond_as(now, admitted, request))
            .await
    }

    async fn answer(
        &self,
        account: Option<AccountNo>,
        request: &Request<'_>,
        ask: impl FnOnce(&mut dyn World, Timestamp) -> Progress,
    ) -> Result<Response, Broken> {
        // Both waits are in boxes, because hardly any request needs them, and every one would carry their room.
        let heard = match &self.exit {
            Some(exit) if sender::may_save(request) => Box::pin(exit.sender.hear(account, request)).await,
            _ => None,
        };
        let refusal = match &heard {
            Some(Hearsay::TimedOut { host }) => {
                Some(format!("The name {host} could not be looked up in time. Try again in a minute."))
            }
            Some(Hearsay::Local(why)) => Some(why.clone()),
            _ => None,
        };
        if let Some(why) = refusal {
            return Ok(Response::refusal(&ApiError::field("url", why)));
        }
        let progress = self.step(|world, now| {
            match heard {
                Some(Hearsay::Resolved { host, addresses }) => world.learn_name(&host, addresses),
                Some(Hearsay::Forwarded { host }) => world.vouch_for(&host),
                Some(Hearsay::TimedOut { .. } | Hearsay::Local(_)) | None => {}
            }
            ask(world, now)
        })?;
        match progress {
            Progress::Done(response) => Ok(response),
            Progress::Waiting(pending) => Box::pin(self.accompany(pending)).await,
        }
    }

    /// Goes on with a call after every attempt that ends, until it is over.
    async fn accompany(&self, mut pending: PendingAdvance) -> Result<Response, Broken> {
        loop {
            // Listening begins before the look, so that no attempt that ends is missed.
            let mut ended = pin!(self.attempt_ended.notified());
            ended.as_mut().enable();
            if !pending.awaits_attempt() {
                // Others are served between two slices of a long jump.
                tokio::time::sleep(NAP_MIN).await;
            }
            match self.step(|world, now| world.go_on(now, pending))? {
                Progress::Done(response) => return Ok(response),
                Progress::Waiting(onward) => pending = onward,
            }
            if pending.awaits_attempt() {
                ended.await;
            }
        }
    }

    /// A delivery that the webhook sender posted has ended.
    pub(crate) fn end_attempt(&self, id: AttemptId, report: AttemptReport) {
        // A broken world wants to know nothing; those who wait for it do.
        let _ = self.step(|world, now| world.on_attempt_result(now, id, report));
        self.attempt_ended.notify_waiters();
    }

    /// Lets something happen to the world at the time it is, and passes on what comes of it.
    fn step<T>(&self, act: impl FnOnce(&mut dyn World, Timestamp) -> T) -> Result<T, Broken> {
        let (done, rearm, changed) = self.locked(|held| {
            let reading = held.clock.read();
            let now = held.clock.at(reading);
            let before = held.world.happened();
            let done = act(&mut *held.world, now);
            let moved = held.clock.follow(reading, held.world.now());
            let changed = moved || held.world.happened() != before;
            self.tell(held, before);
            self.send_out(held);
            let due = held.world.next_due();
            let sooner = due.is_some_and(|due| held.armed.is_none_or(|armed| due < armed));
            if sooner {
                held.armed = due;
            }
            (done, moved || sooner, changed)
        })?;
        if changed {
            self.beat();
        }
        if rearm {
            self.rearm.notify_one();
        }
        Ok(done)
    }

    /// Tells what happened since the `before`th thing. Under the lock, so that it is told in order.
    fn tell(&self, held: &Held, before: u64) {
        self.shown.store(held.world.now().0, Ordering::Relaxed);
        let Some(log) = &self.log else { return };
        let count = held.world.happened();
        if count != before {
            // The log of a new world begins anew.
            let from = if count < before { 0 } else { before };
            held.world.events_after(from).into_iter().for_each(|event| log.tell(LogEntry::Happened(event)));
        }
    }

    /// Under the lock, so that deliveries leave in the order in which the world made them.
    fn send_out(&self, held: &mut Held) {
        let Some(exit) = &self.exit else { return };
        for dispatch in held.world.take_outgoing() {
            // A webhook sender that has stopped takes no more, and the server is about to end.
            let _ = exit.dispatches.send(dispatch);
        }
    }

    /// The keys that the present world started with.
    pub(crate) fn first_keys(&self) -> Result<FirstKeys, Broken> {
        self.locked(|held| held.world.first_keys())
    }

    /// What the service clock shows, and how many seconds it goes on in a second of real time.
    pub(crate) fn clock(&self) -> Result<(Timestamp, u64), Broken> {
        self.locked(|held| {
            let reading = held.clock.read();
            (held.clock.at(reading), held.clock.factor())
        })
    }

    /// What the service clock shows, and when something is due.
    pub(crate) fn times(&self) -> Result<(Timestamp, Option<Timestamp>), Broken> {
        self.locked(|held| {
            let reading = held.clock.read();
            (held.clock.at(reading), held.world.next_due())
        })
    }

    /// Wakes the world whenever something is due. Ends only with a broken world.
    pub(crate) async fn keep_time(&self) {
        loop {
            match self.turn() {
                Err(Broken) => return,
                Ok(None) => self.rearm.notified().await,
                Ok(Some(nap)) => {
                    tokio::select! {
                        () = self.rearm.notified() => {}
                        () = tokio::time::sleep(nap.clamp(NAP_MIN, NAP_MAX)) => {}
                    }
                }
            }
        }
    }

    /// Lets happen what is due, and says how long nothing else will be.
    fn turn(&self) -> Result<Option<Duration>, Broken> {
        let (nap, changed) = self.locked(|held| {
            let reading = held.clock.read();
            let now = held.clock.at(reading);
            let before = held.world.happened();
            if held.world.next_due().is_some_and(|due| due <= now) {
                held.world.advance_to(now);
                held.clock.follow(reading, held.world.now());
                self.tell(held, before);
                self.send_out(held);
            }
            held.armed = held.world.next_due();
            let nap = held.armed.and_then(|due| held.clock.until(now, due));
            (nap, held.world.happened() != before)
        })?;
        if changed {
            self.beat();
        }
        Ok(nap)
    }

    /// A panic inside poisons the lock, which is how all later calls know.
    fn locked<T>(&self, act: impl FnOnce(&mut Held) -> T) -> Result<T, Broken> {
        catch_unwind(AssertUnwindSafe(|| {
            let mut held: MutexGuard<'_, Held> = self.held.lock().map_err(|_| Broken)?;
            Ok(act(&mut held))
        }))
        .unwrap_or(Err(Broken))
    }
}
