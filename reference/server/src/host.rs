//! The keeper of the world: one lock around it and its clock, and one timer that wakes it.
//!
//! Nobody holds the lock while waiting: neither for a name to be looked up nor for an attempt to end. What
//! the world sends out is handed to the webhook sender before the lock is given back. Knows nothing of HTTP
//! libraries, and nothing of charges.
//!
//! Where a journal is kept, an answer leaves once what it tells is on the disk (`keep`).

mod acts;
mod keep;
mod moment;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use reference_core::{error::ApiError, id::AccountNo, outbox::AttemptReport, time::Timestamp};
use reference_wire::{Request, Response};
use simulator::{
    api::WorldEventKind,
    sandbox::{Admitted, AttemptId, FirstKeys, OutgoingAttempt, PendingAdvance, Progress, Sandbox},
};
use tokio::sync::{Notify, mpsc::UnboundedSender, watch};

use self::acts::Acts;
pub(crate) use self::{acts::SandboxAct, keep::Keep};
use crate::{
    clock::Clock,
    journal::{Keeping, Ticket},
    log::{LogEntry, LogSink},
    memory::MemoryShare,
    sender::{self, HostCheck, WebhookSender, WorldAttempt, WorldNo},
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
    /// Notified once the world is back where the disk has it, after the disk failed.
    mended: Notify,
    /// The way out for deliveries; `None` if they stay inside.
    exit: Option<Exit>,
    frozen: bool,
    /// The latest time on the world's clock, for readers without the lock.
    shown: AtomicU64,
    /// Told of everything that happens.
    log: Option<LogSink>,
    /// Sent with every change that somebody outside could notice. Counts those that concern everything; `None` once the
    /// server is about to end.
    pulse: watch::Sender<Option<u64>>,
    /// `true` once the world has ended.
    has_ended: AtomicBool,
    /// The journal of the world; `None` for a world that cannot be recreated.
    keep: Option<Keep>,
    acts: Acts,
    /// The world's share of the memory of all.
    memory: MemoryShare,
}

/// A change of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beat {
    /// World events tell what happened.
    Happened,
    /// It concerns everything.
    Moved,
}

/// The effect that a call may have on the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Reads,
    Changes,
}

impl Effect {
    fn of(request: &Request<'_>) -> Effect {
        if matches!(request.method, "GET" | "HEAD") { Effect::Reads } else { Effect::Changes }
    }
}

/// The result of a call, and the record that must be on the disk before the result is sent.
type Stepped<T> = (T, Option<Ticket>);

/// The world can't be told now what would change it: the answer.
type Unkept = Response;

/// The way out for deliveries.
pub(crate) struct Exit {
    pub(crate) sender: Arc<WebhookSender>,
    /// Never holds much: the webhook sender takes everything at once, and bounds what waits.
    pub(crate) dispatches: UnboundedSender<WorldAttempt>,
    /// The number of the world.
    pub(crate) world: WorldNo,
}

struct Held {
    world: Box<dyn World>,
    clock: Clock,
    /// The time of the timer.
    armed: Option<Timestamp>,
    /// Attempts that ended while the disk was failing.
    late: Vec<(AttemptId, AttemptReport)>,
}

impl Host {
    pub(crate) fn new(
        world: Box<dyn World>,
        clock: Clock,
        exit: Option<Exit>,
        log: Option<LogSink>,
        keep: Option<Keep>,
        memory: MemoryShare,
    ) -> Host {
        memory.set(world.held_bytes());
        let frozen = clock.is_frozen();
        Host {
            shown: AtomicU64::new(world.now().0),
            log,
            held: Mutex::new(Held { world, clock, armed: None, late: Vec::new() }),
            rearm: Notify::new(),
            attempt_ended: Notify::new(),
            mended: Notify::new(),
            exit,
            frozen,
            pulse: watch::Sender::new(Some(0)),
            has_ended: AtomicBool::new(false),
            keep,
            acts: Acts::default(),
            memory,
        }
    }

    /// The last calls of the sandbox that changed something, the newest first.
    pub(crate) fn acts(&self) -> Vec<Arc<SandboxAct>> {
        self.acts.newest()
    }

    /// Changes whenever something happened, and counts the changes that concern everything: the clock was moved, or another
    /// world took its place. `None` when the server is about to end. Whoever reads the world after taking it misses nothing.
    pub(crate) fn pulse(&self) -> watch::Receiver<Option<u64>> {
        self.pulse.subscribe()
    }

    /// Ends what follows the pulse.
    pub(crate) fn end_pulse(&self) {
        self.pulse.send_replace(None);
    }

    /// Ends what waits for something in this world: nothing will happen in it any more.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
        self.attempt_ended.notify_waiters();
        self.end_pulse();
    }

    /// Called after the change, so that whoever takes the pulse from now on sees the changed world.
    fn beat(&self, beat: Beat) {
        if self.pulse.receiver_count() > 0 {
            let moves = u64::from(beat == Beat::Moved);
            self.pulse.send_modify(|pulse| *pulse = pulse.map(|before| before + moves));
        }
    }

    /// Whether anything that fits happened after the `n`th thing, and how many things have happened by now.
    pub(crate) fn happened_after(
        &self,
        n: u64,
        fits: impl Fn(&WorldEventKind) -> bool,
    ) -> Result<(bool, u64), Broken> {
        self.locked(|held| {
            let count = held.world.happened();
            let events = held.world.events_after(n);
            // The log keeps the latest only, and that of another world begins anew.
            let is_whole = count.checked_sub(n) == u64::try_from(events.len()).ok();
            (!is_whole || events.iter().any(|event| fits(&event.what)), count)
        })
    }

    /// Returns the sender of posts outside of the simulated network; `None` if there is none.
    pub(crate) fn sender(&self) -> Option<&WebhookSender> {
        self.exit.as_ref().map(|exit| &*exit.sender)
    }

    /// Returns the time of the service clock at the latest call. Takes no lock.
    pub(crate) fn shown(&self) -> Timestamp {
        Timestamp(self.shown.load(Ordering::Relaxed))
    }

    /// Bytes of memory that the world holds, estimated.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.memory.held()
    }

    /// Returns `true` if only `/sandbox` moves the clock.
    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Returns `true` if the world met an internal error. Takes no lock.
    pub(crate) fn is_broken(&self) -> bool {
        self.held.is_poisoned()
    }

    /// Authenticates a request at the present time, for [`Host::respond_as`]; or returns the refusal as it goes
    /// back.
    #[cfg(feature = "mcp")]
    pub(crate) fn admit(&self, authorization: Option<&[u8]>) -> Result<Result<Admitted, Response>, Broken> {
        let admitted = self.step(Effect::Reads, |world, now| world.admit(now, authorization))?;
        Ok(admitted.and_then(|(admitted, _)| admitted))
    }

    /// Returns `true` if the world created the key of a request.
    pub(crate) fn knows_key(&self, authorization: &[u8]) -> Result<bool, Broken> {
        self.locked(|held| held.world.knows_key(authorization))
    }

    /// Authenticates a request at the present time by its head, for [`Host::respond_as`]; returns `None` if only
    /// [`Host::respond`] can tell, or the refusal as it goes back.
    pub(crate) fn admit_head(
        &self,
        head: RequestHead<'_>,
    ) -> Result<Result<Option<Admitted>, Response>, Broken> {
        // It has a body, which changes something.
        let admitted = self.step(Effect::Changes, |world, now| world.admit_head(now, head))?;
        Ok(admitted.and_then(|(admitted, _)| admitted))
    }

    /// Answers a request at the time it is.
    pub(crate) async fn respond(&self, request: &Request<'_>) -> Result<Response, Broken> {
        let response = match &self.keep {
            Some(keep) if keep::serves(request.path) => {
                Box::pin(self.respond_to_keeper(keep, request)).await?
            }
            _ => self.answer(None, request, |world, now| world.respond(now, request)).await?,
        };
        self.acts.note(self.shown(), request, &response);
        Ok(response)
    }

    /// The same for a key that was let in, without counting it again.
    pub(crate) async fn respond_as(
        &self,
        admitted: &Admitted,
        request: &Request<'_>,
    ) -> Result<Response, Broken> {
        let ask = |world: &mut dyn World, now| world.respond_as(now, admitted, request);
        let response = self.answer(Some(admitted.account()), request, ask).await?;
        self.acts.note(self.shown(), request, &response);
        Ok(response)
    }

    /// Reads the world at the present time. `None` if it can't be read: the disk failed, or it has no sandbox.
    pub(crate) async fn read<T>(&self, view: impl Fn(&Sandbox) -> T) -> Result<Option<T>, Broken> {
        for is_first in [true, false] {
            let stepped = self.step(Effect::Reads, |world, now| {
                world.advance_to(now);
                world.sandbox().map(&view)
            })?;
            match stepped {
                Ok((seen, ticket)) if self.is_settled(ticket).await => return Ok(seen),
                // What was read may be lost. It is read again in the world that the disk has.
                _ if is_first => Box::pin(self.until_readable()).await,
                _ => {}
            }
        }
        Ok(None)
    }

    async fn answer(
        &self,
        account: Option<AccountNo>,
        request: &Request<'_>,
        ask: impl Fn(&mut dyn World, Timestamp) -> Progress,
    ) -> Result<Response, Broken> {
        if Effect::of(request) == Effect::Changes
            && let Some(refusal) = self.no_room()
        {
            return Ok(refusal);
        }
        // Both waits are in boxes, because hardly any request needs them, and every one would carry their room.
        let mut heard = match &self.exit {
            Some(exit) if sender::may_save(request) => {
                Box::pin(exit.sender.hear(exit.world, account, request)).await
            }
            _ => None,
        };
        let refusal = match &heard {
            Some(HostCheck::TimedOut { host }) => {
                Some(format!("The name {host} could not be looked up in time. Try again in a minute."))
            }
            Some(HostCheck::Local(why)) => Some(why.clone()),
            _ => None,
        };
        if let Some(why) = refusal {
            return Ok(Response::refusal(&ApiError::field("url", why)));
        }
        let mut may_wait = Effect::of(request) == Effect::Reads;
        loop {
            let stepped = self.step(Effect::of(request), |world, now| {
                match heard.take() {
                    Some(HostCheck::Resolved { host, addresses }) => world.learn_name(&host, addresses),
                    Some(HostCheck::Forwarded { host }) => world.vouch_for(&host),
                    Some(HostCheck::TimedOut { .. } | HostCheck::Local(_)) | None => {}
                }
                ask(world, now)
            })?;
            let unkept = match stepped {
                Err(unkept) => unkept,
                Ok((Progress::Done(response), ticket)) if self.is_settled(ticket).await => {
                    return Ok(response);
                }
                Ok((Progress::Done(_), _)) => self.unkept(),
                Ok((Progress::Waiting(pending), _)) => return Box::pin(self.accompany(pending)).await,
            };
            if !may_wait {
                return Ok(unkept);
            }
            // What a read showed may be lost. It is made again in the world that the disk has.
            Box::pin(self.until_readable()).await;
            may_wait = false;
        }
    }

    /// Goes on with a call after every attempt that ends, until it is over.
    async fn accompany(&self, mut pending: PendingAdvance) -> Result<Response, Broken> {
        loop {
            // Listening begins before the look, so that no attempt that ends is missed.
            let mut ended = pin!(self.attempt_ended.notified());
            ended.as_mut().enable();
            if self.has_ended.load(Ordering::Relaxed) {
                let why = "This world was ended while the call was waiting in it.";
                return Ok(Response::refusal(&ApiError::conflict(why)));
            }
            if !pending.awaits_attempt() {
                // Others are served between two slices of a long jump.
                tokio::time::sleep(NAP_MIN).await;
            }
            match self.step(Effect::Changes, |world, now| world.go_on(now, pending))? {
                Err(unkept) => return Ok(unkept),
                Ok((Progress::Done(response), ticket)) => return Ok(self.settled(response, ticket).await),
                Ok((Progress::Waiting(onward), _)) => pending = onward,
            }
            if pending.awaits_attempt() {
                ended.await;
            }
        }
    }

    /// A delivery that the webhook sender posted has ended.
    pub(crate) fn end_attempt(&self, id: AttemptId, report: AttemptReport) {
        // A broken world wants to know nothing; those who wait for it do.
        let kept = report.clone();
        if let Ok(Err(_)) = self.step(Effect::Changes, |world, now| world.on_attempt_result(now, id, report))
        {
            let _ = self.locked(|held| held.late.push((id, kept)));
        }
        self.attempt_ended.notify_waiters();
    }

    /// Lets something happen to the world at the time it is, and passes on what comes of it.
    fn step<T>(
        &self,
        effect: Effect,
        act: impl FnOnce(&mut dyn World, Timestamp) -> T,
    ) -> Result<Result<Stepped<T>, Unkept>, Broken> {
        let stepped = self.locked(|held| {
            let kept = self.kept();
            if kept == Keeping::No || (kept == Keeping::ReadOnly && effect == Effect::Changes) {
                return Err(self.unkept());
            }
            let reading = held.clock.read();
            // Nothing happens while it can't be kept, so no time goes by.
            let now = if kept == Keeping::ReadOnly { held.world.now() } else { held.clock.at(reading) };
            let before = held.world.happened();
            let done = act(&mut *held.world, now);
            let moved = kept == Keeping::Yes && held.clock.follow(reading, held.world.now());
            let changed = moved || held.world.happened() != before;
            self.tell(held, before);
            if changed || effect == Effect::Changes {
                self.memory.set(held.world.held_bytes());
            }
            self.send_out(held);
            let due = held.world.next_due();
            let sooner = due.is_some_and(|due| held.armed.is_none_or(|armed| due < armed));
            if sooner {
                held.armed = due;
            }
            // What was read may be what somebody else waits for.
            let ticket = if kept == Keeping::Yes { self.ticket() } else { None };
            let beat = if moved { Beat::Moved } else { Beat::Happened };
            Ok(((done, ticket), moved || sooner, changed.then_some(beat)))
        })?;
        let (done, rearm, beat) = match stepped {
            Ok(stepped) => stepped,
            Err(unkept) => return Ok(Err(unkept)),
        };
        if let Some(beat) = beat {
            self.beat(beat);
        }
        if rearm {
            self.rearm.notify_one();
        }
        Ok(Ok(done))
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
        let outgoing = held.world.take_outgoing();
        self.hand_out(outgoing);
    }

    /// Hands deliveries to the webhook sender, once what led to them is kept.
    pub(crate) fn hand_out(&self, outgoing: Vec<OutgoingAttempt>) {
        let Some(exit) = self.exit.as_ref().filter(|_| !outgoing.is_empty()) else { return };
        let (dispatches, world) = (exit.dispatches.clone(), exit.world);
        let send = move || {
            for attempt in outgoing {
                // A webhook sender that has stopped takes no more, and the server is about to end.
                let _ = dispatches.send(WorldAttempt { world, attempt });
            }
        };
        match &self.keep {
            Some(keep) => keep.journal.hand_out(send),
            None => send(),
        }
    }

    /// The keys that the present world started with.
    pub(crate) fn first_keys(&self) -> Result<FirstKeys, Broken> {
        self.locked(|held| held.world.first_keys())
    }

    /// Returns the time of the service clock, and its speed in seconds per second of real time.
    pub(crate) fn clock(&self) -> Result<(Timestamp, u64), Broken> {
        self.locked(|held| {
            let reading = held.clock.read();
            (held.clock.at(reading), held.clock.factor())
        })
    }

    /// Returns the time of the service clock, and the time at which something is due.
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
            if self.kept() != Keeping::Yes {
                // The timer is set again once things may happen.
                held.armed = None;
                return (None, false);
            }
            let reading = held.clock.read();
            let now = held.clock.at(reading);
            let before = held.world.happened();
            if held.world.next_due().is_some_and(|due| due <= now) {
                held.world.advance_to(now);
                held.clock.follow(reading, held.world.now());
                self.tell(held, before);
                self.memory.set(held.world.held_bytes());
                self.send_out(held);
            }
            held.armed = held.world.next_due();
            let nap = held.armed.and_then(|due| held.clock.until(now, due));
            (nap, held.world.happened() != before)
        })?;
        if changed {
            self.beat(Beat::Happened);
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
