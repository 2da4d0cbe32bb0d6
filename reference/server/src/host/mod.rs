//! The host of a world: one lock around the world and its clock, and one timer that wakes it.
//!
//! The lock is never held across a wait, neither for a name lookup nor for an attempt to end. Webhook posts are passed to
//! the sender before the lock is released, so they leave in the order in which the world made them.
//!
//! With a journal, a response is sent once the records that it depends on are on the disk (`durability`).
//!
//! Must not contain: an HTTP library, or a rule of the service.

mod durability;
mod moment;
mod recent_mutations;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use reference_core::{error::ApiError, id::AccountNo, outbox::AttemptReport, time::Timestamp};
use reference_wire::{Request, Response};
use simulator::{
    api::WorldEventKind,
    sandbox::{AdmittedRequest, AttemptId, FirstKeys, OutgoingAttempt, PendingAdvance, Progress, Sandbox},
};
use tokio::sync::{Notify, mpsc::UnboundedSender, watch};

use self::recent_mutations::RecentMutations;
pub(crate) use self::{durability::Durability, recent_mutations::RecentMutation};
use crate::{
    clock::Clock,
    journal::{DurabilityState, Ticket},
    log::{LogEntry, LogSink},
    memory::MemoryShare,
    sender::{self, Forward, HostCheck, WebhookSender, WorldAttempt, WorldNo},
    snapshots,
    world::{RequestHead, World},
};

/// The shortest sleep of the timer, so that a world with work that stays due cannot make it spin.
const NAP_MIN: Duration = Duration::from_millis(1);
/// The longest sleep of the timer, so that a wall clock that jumps ahead is noticed.
const NAP_MAX: Duration = Duration::from_secs(10);

/// The world panicked. It may be half changed, so it answers no further request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InternalError;

/// The world, its clock and its timer.
pub(crate) struct Host {
    state: Mutex<HostState>,
    rearm: Notify,
    /// Notified after every attempt that ends, for calls that wait for one.
    attempt_ended: Notify,
    /// Notified when the world has been restored after a failure of the disk.
    recovered: Notify,
    /// The handle of the webhook sender; `None` if all deliveries go to the simulated network.
    exit: Option<SenderHandle>,
    frozen: bool,
    /// The latest time on the world's clock, for readers without the lock.
    shown: AtomicU64,
    /// Receives every event.
    log: Option<LogSink>,
    /// Sent with every observable change; the number of changes that replaced the whole world. `None` once the server is
    /// about to end.
    pulse: watch::Sender<Option<u64>>,
    /// `true` once the world has ended.
    has_ended: AtomicBool,
    /// The journal of the world; `None` for a world that cannot be recreated.
    durability: Option<Durability>,
    recent_mutations: RecentMutations,
    /// The world's share of the memory budget.
    memory: MemoryShare,
}

/// A change of a world that observers are notified of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorldChange {
    /// Further world events.
    Events,
    /// The clock was moved, or another world replaced this one.
    Everything,
}

/// The effect that a call may have on the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Reads,
    Changes,
}

impl Effect {
    fn from_request(request: &Request<'_>) -> Effect {
        if matches!(request.method, "GET" | "HEAD") { Effect::Reads } else { Effect::Changes }
    }
}

/// The result of a call, and the commit that must be on the disk before the result is sent.
type StepOutcome<T> = (T, Option<Ticket>);

/// The response to a change that cannot be stored now.
type StorageFailure = Response;

/// The handle of the webhook sender, for the deliveries of one world.
pub(crate) struct SenderHandle {
    pub(crate) sender: Arc<WebhookSender>,
    /// Stays short: the dispatcher moves every attempt into its own queue at once.
    pub(crate) dispatches: UnboundedSender<WorldAttempt>,
    /// The number of the world.
    pub(crate) world: WorldNo,
    /// The forwards that the world owns.
    pub(crate) forwards: Mutex<Vec<Arc<Forward>>>,
}

impl SenderHandle {
    fn forwards(&self) -> MutexGuard<'_, Vec<Arc<Forward>>> {
        // Nothing that can panic happens under the lock.
        self.forwards.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct HostState {
    world: Box<dyn World>,
    clock: Clock,
    /// The time for which the timer is set.
    armed: Option<Timestamp>,
    /// Attempts that ended while the disk was failing.
    late: Vec<(AttemptId, AttemptReport)>,
}

impl Host {
    pub(crate) fn new(
        world: Box<dyn World>,
        clock: Clock,
        exit: Option<SenderHandle>,
        log: Option<LogSink>,
        durability: Option<Durability>,
        memory: MemoryShare,
    ) -> Host {
        memory.set(world.held_bytes());
        let frozen = clock.is_frozen();
        Host {
            shown: AtomicU64::new(world.now().0),
            log,
            state: Mutex::new(HostState { world, clock, armed: None, late: Vec::new() }),
            rearm: Notify::new(),
            attempt_ended: Notify::new(),
            recovered: Notify::new(),
            exit,
            frozen,
            pulse: watch::Sender::new(Some(0)),
            has_ended: AtomicBool::new(false),
            durability,
            recent_mutations: RecentMutations::default(),
            memory,
        }
    }

    /// Returns the latest sandbox calls that changed the world, newest first.
    pub(crate) fn recent_mutations(&self) -> Vec<Arc<RecentMutation>> {
        self.recent_mutations.newest_first()
    }

    /// Returns a receiver that is notified of every observable change. Its value is the number of changes that replaced
    /// everything, `None` once the server is about to end. A reader that subscribes before it reads the world misses nothing.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<u64>> {
        self.pulse.subscribe()
    }

    /// Ends all observers.
    pub(crate) fn end_observers(&self) {
        self.pulse.send_replace(None);
    }

    /// Ends all calls that wait in this world, and all observers.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
        self.attempt_ended.notify_waiters();
        self.end_observers();
        self.exit.iter().for_each(|exit| exit.forwards().clear());
    }

    /// Notifies the observers. Called after the change, so that they read the changed world.
    fn notify_observers(&self, change: WorldChange) {
        if self.pulse.receiver_count() > 0 {
            let moves = u64::from(change == WorldChange::Everything);
            self.pulse.send_modify(|pulse| *pulse = pulse.map(|before| before + moves));
        }
    }

    /// Returns `true` if an event after the `n`th matches, and the number of events so far.
    pub(crate) fn has_event_after(
        &self,
        n: u64,
        fits: impl Fn(&WorldEventKind) -> bool,
    ) -> Result<(bool, u64), InternalError> {
        self.with_state(|state| {
            let count = state.world.event_count();
            let events = state.world.events_after(n);
            // The log stores only the latest events, and a world that replaced this one has a new log.
            let is_whole = count.checked_sub(n) == u64::try_from(events.len()).ok();
            (!is_whole || events.iter().any(|event| fits(&event.what)), count)
        })
    }

    /// Returns the sender of posts outside of the simulated network; `None` if there is none.
    pub(crate) fn sender(&self) -> Option<&WebhookSender> {
        self.exit.as_ref().map(|exit| &*exit.sender)
    }

    /// Makes the world an owner of a forward until it ends.
    pub(crate) fn own_forward(&self, forward: Arc<Forward>) {
        self.exit.iter().for_each(|exit| exit.forwards().push(Arc::clone(&forward)));
    }

    /// Makes the world an owner of the forwards of the world that it branches from.
    pub(crate) fn share_forwards(&self, origin: &Host) {
        if let (Some(own), Some(origin)) = (&self.exit, &origin.exit) {
            own.forwards().extend(origin.forwards().iter().cloned());
        }
    }

    /// Returns the time of the service clock at the latest call. Takes no lock.
    pub(crate) fn latest_time(&self) -> Timestamp {
        Timestamp(self.shown.load(Ordering::Relaxed))
    }

    /// Returns the bytes of memory that the world uses, estimated.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.memory.used_bytes()
    }

    /// Returns `true` if only `/sandbox` moves the clock.
    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Returns `true` if the world had an internal error. Takes no lock.
    pub(crate) fn is_broken(&self) -> bool {
        self.state.is_poisoned()
    }

    /// Authenticates a request for [`Host::respond_as`], or returns the refusal.
    #[cfg(feature = "mcp")]
    pub(crate) fn admit(
        &self,
        authorization: Option<&[u8]>,
    ) -> Result<Result<AdmittedRequest, Response>, InternalError> {
        let admitted = self.step(Effect::Reads, |world, now| world.admit(now, authorization))?;
        Ok(admitted.and_then(|(admitted, _)| admitted))
    }

    /// Returns `true` if the world created the key of a request.
    pub(crate) fn knows_key(&self, authorization: &[u8]) -> Result<bool, InternalError> {
        self.with_state(|state| state.world.knows_key(authorization))
    }

    /// Authenticates a request by its head, for [`Host::respond_as`]. Returns `None` if only [`Host::respond`] can decide,
    /// or the refusal.
    pub(crate) fn admit_head(
        &self,
        head: RequestHead<'_>,
    ) -> Result<Result<Option<AdmittedRequest>, Response>, InternalError> {
        // A request with a body is a change.
        let admitted = self.step(Effect::Changes, |world, now| world.admit_head(now, head))?;
        Ok(admitted.and_then(|(admitted, _)| admitted))
    }

    /// Answers a request at the present time.
    pub(crate) async fn respond(&self, request: &Request<'_>) -> Result<Response, InternalError> {
        let response = match &self.durability {
            Some(durability) if snapshots::is_snapshot_path(request.path) => {
                Box::pin(self.respond_with_journal(durability, request)).await?
            }
            _ => self.answer(None, request, |world, now| world.respond(now, request)).await?,
        };
        self.recent_mutations.record(self.latest_time(), request, &response);
        Ok(response)
    }

    /// Answers an authenticated request, without counting it against the limit again.
    pub(crate) async fn respond_as(
        &self,
        admitted: &AdmittedRequest,
        request: &Request<'_>,
    ) -> Result<Response, InternalError> {
        let respond = |world: &mut dyn World, now| world.respond_as(now, admitted, request);
        let response = self.answer(Some(admitted.account()), request, respond).await?;
        self.recent_mutations.record(self.latest_time(), request, &response);
        Ok(response)
    }

    /// Reads the world at the present time; returns `None` if the disk failed or the world has no sandbox.
    pub(crate) async fn read<T>(&self, view: impl Fn(&Sandbox) -> T) -> Result<Option<T>, InternalError> {
        for is_first in [true, false] {
            let stepped = self.step(Effect::Reads, |world, now| {
                world.advance_to(now);
                world.sandbox().map(&view)
            })?;
            match stepped {
                Ok((seen, ticket)) if self.wait_for_commit(ticket).await => return Ok(seen),
                // The data may be lost with the failed commit; read it again from the restored world.
                _ if is_first => Box::pin(self.wait_until_readable()).await,
                _ => {}
            }
        }
        Ok(None)
    }

    async fn answer(
        &self,
        account: Option<AccountNo>,
        request: &Request<'_>,
        respond: impl Fn(&mut dyn World, Timestamp) -> Progress,
    ) -> Result<Response, InternalError> {
        if Effect::from_request(request) == Effect::Changes
            && let Some(refusal) = self.memory_refusal()
        {
            return Ok(refusal);
        }
        // Both futures are boxed: few requests need them, and every one would carry their size.
        let mut host_check = match &self.exit {
            Some(exit) if sender::may_save(request) => {
                Box::pin(exit.sender.check_host(exit.world, account, request)).await
            }
            _ => None,
        };
        let refusal = match &host_check {
            Some(HostCheck::TimedOut { host }) => {
                Some(format!("The name {host} could not be looked up in time. Try again in a minute."))
            }
            Some(HostCheck::Local(why)) => Some(why.clone()),
            _ => None,
        };
        if let Some(why) = refusal {
            return Ok(Response::refusal(&ApiError::field("url", why)));
        }
        let mut may_wait = Effect::from_request(request) == Effect::Reads;
        loop {
            let stepped = self.step(Effect::from_request(request), |world, now| {
                match host_check.take() {
                    Some(HostCheck::Resolved { host, addresses }) => world.learn_name(&host, addresses),
                    Some(HostCheck::Forwarded { host }) => world.declare_forwarded(&host),
                    Some(HostCheck::TimedOut { .. } | HostCheck::Local(_)) | None => {}
                }
                respond(world, now)
            })?;
            let failure = match stepped {
                Err(failure) => failure,
                Ok((Progress::Done(response), ticket)) if self.wait_for_commit(ticket).await => {
                    return Ok(response);
                }
                Ok((Progress::Done(_), _)) => self.storage_failure(),
                Ok((Progress::Waiting(pending), _)) => {
                    return Box::pin(self.resume_until_done(pending)).await;
                }
            };
            if !may_wait {
                return Ok(failure);
            }
            // The data may be lost with the failed commit; repeat the read in the restored world.
            Box::pin(self.wait_until_readable()).await;
            may_wait = false;
        }
    }

    /// Continues a call that moves the clock after each attempt that ends, until the call is done.
    async fn resume_until_done(&self, mut pending: PendingAdvance) -> Result<Response, InternalError> {
        loop {
            // Registered before the call continues, so that no attempt that ends meanwhile is missed.
            let mut ended = pin!(self.attempt_ended.notified());
            ended.as_mut().enable();
            if self.has_ended.load(Ordering::Relaxed) {
                let why = "This world was ended while the call was waiting in it.";
                return Ok(Response::refusal(&ApiError::conflict(why)));
            }
            if !pending.awaits_attempt() {
                // Other requests are served between two slices of a long advance.
                tokio::time::sleep(NAP_MIN).await;
            }
            match self.step(Effect::Changes, |world, now| world.continue_call(now, pending))? {
                Err(failure) => return Ok(failure),
                Ok((Progress::Done(response), ticket)) => {
                    return Ok(self.respond_after_commit(response, ticket).await);
                }
                Ok((Progress::Waiting(onward), _)) => pending = onward,
            }
            if pending.awaits_attempt() {
                ended.await;
            }
        }
    }

    /// Reports the end of an attempt of the webhook sender.
    pub(crate) fn end_attempt(&self, id: AttemptId, report: AttemptReport) {
        // A broken world accepts no report, but the calls that wait for it must end.
        let copy = report.clone();
        if let Ok(Err(_)) = self.step(Effect::Changes, |world, now| world.on_attempt_result(now, id, report))
        {
            let _ = self.with_state(|state| state.late.push((id, copy)));
        }
        self.attempt_ended.notify_waiters();
    }

    /// Runs a call on the world at the present time; passes on its events, posts and timer.
    fn step<T>(
        &self,
        effect: Effect,
        act: impl FnOnce(&mut dyn World, Timestamp) -> T,
    ) -> Result<Result<StepOutcome<T>, StorageFailure>, InternalError> {
        let stepped = self.with_state(|state| {
            let durability = self.durability_state();
            if durability == DurabilityState::Lost
                || (durability == DurabilityState::ReadOnly && effect == Effect::Changes)
            {
                return Err(self.storage_failure());
            }
            let reading = state.clock.read();
            // While nothing can be stored, the clock does not advance.
            let now = if durability == DurabilityState::ReadOnly {
                state.world.now()
            } else {
                state.clock.time_at(reading)
            };
            let before = state.world.event_count();
            let done = act(&mut *state.world, now);
            let moved = durability == DurabilityState::Durable
                && state.clock.sync_to_world(reading, state.world.now());
            let changed = moved || state.world.event_count() != before;
            self.log_events(state, before);
            if changed || effect == Effect::Changes {
                self.memory.set(state.world.held_bytes());
            }
            self.dispatch_outgoing(state);
            let due = state.world.next_due();
            let sooner = due.is_some_and(|due| state.armed.is_none_or(|armed| due < armed));
            if sooner {
                state.armed = due;
            }
            // A read may show changes whose commit is still pending, so it waits too.
            let ticket = if durability == DurabilityState::Durable { self.ticket() } else { None };
            let change = if moved { WorldChange::Everything } else { WorldChange::Events };
            Ok(((done, ticket), moved || sooner, changed.then_some(change)))
        })?;
        let (done, rearm, change) = match stepped {
            Ok(stepped) => stepped,
            Err(failure) => return Ok(Err(failure)),
        };
        if let Some(change) = change {
            self.notify_observers(change);
        }
        if rearm {
            self.rearm.notify_one();
        }
        Ok(Ok(done))
    }

    /// Logs the events after the `before`th. Under the lock, so that they are logged in order.
    fn log_events(&self, state: &HostState, before: u64) {
        self.shown.store(state.world.now().0, Ordering::Relaxed);
        let Some(log) = &self.log else { return };
        let count = state.world.event_count();
        if count != before {
            // A world that replaced this one has a new log.
            let from = if count < before { 0 } else { before };
            state.world.events_after(from).into_iter().for_each(|event| log.write(LogEntry::Event(event)));
        }
    }

    /// Dispatches new deliveries. Under the lock, so that they leave in the order in which the world made them.
    fn dispatch_outgoing(&self, state: &mut HostState) {
        let outgoing = state.world.take_outgoing();
        self.dispatch(outgoing);
    }

    /// Passes deliveries to the webhook sender once the records that led to them are stored.
    pub(crate) fn dispatch(&self, outgoing: Vec<OutgoingAttempt>) {
        let Some(exit) = self.exit.as_ref().filter(|_| !outgoing.is_empty()) else { return };
        let (dispatches, world) = (exit.dispatches.clone(), exit.world);
        let send = move || {
            for attempt in outgoing {
                // Fails only if the sender has stopped because the server is about to end.
                let _ = dispatches.send(WorldAttempt { world, attempt });
            }
        };
        match &self.durability {
            Some(durability) => durability.journal.send_after_commit(send),
            None => send(),
        }
    }

    /// Returns the keys that the present world started with.
    pub(crate) fn first_keys(&self) -> Result<FirstKeys, InternalError> {
        self.with_state(|state| state.world.first_keys())
    }

    /// Returns the time of the service clock, and its speed in seconds per second of real time.
    pub(crate) fn time_and_speed(&self) -> Result<(Timestamp, u64), InternalError> {
        self.with_state(|state| {
            let reading = state.clock.read();
            (state.clock.time_at(reading), state.clock.factor())
        })
    }

    /// Returns the time of the service clock, and the time of the next scheduled event.
    pub(crate) fn time_and_next_due(&self) -> Result<(Timestamp, Option<Timestamp>), InternalError> {
        self.with_state(|state| {
            let reading = state.clock.read();
            (state.clock.time_at(reading), state.world.next_due())
        })
    }

    /// Advances the world whenever an event is due. Ends only with a broken world.
    pub(crate) async fn run_timer(&self) {
        loop {
            match self.advance() {
                Err(InternalError) => return,
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

    /// Advances the world to the present; returns the time until the next event.
    fn advance(&self) -> Result<Option<Duration>, InternalError> {
        let (nap, changed) = self.with_state(|state| {
            if self.durability_state() != DurabilityState::Durable {
                // Recovery sets the timer again.
                state.armed = None;
                return (None, false);
            }
            let reading = state.clock.read();
            let now = state.clock.time_at(reading);
            let before = state.world.event_count();
            if state.world.next_due().is_some_and(|due| due <= now) {
                state.world.advance_to(now);
                state.clock.sync_to_world(reading, state.world.now());
                self.log_events(state, before);
                self.memory.set(state.world.held_bytes());
                self.dispatch_outgoing(state);
            }
            state.armed = state.world.next_due();
            let nap = state.armed.and_then(|due| state.clock.duration_until(now, due));
            (nap, state.world.event_count() != before)
        })?;
        if changed {
            self.notify_observers(WorldChange::Events);
        }
        Ok(nap)
    }

    /// Runs `act` under the lock. A panic poisons the lock, so that all later calls return [`InternalError`].
    fn with_state<T>(&self, act: impl FnOnce(&mut HostState) -> T) -> Result<T, InternalError> {
        catch_unwind(AssertUnwindSafe(|| {
            let mut state: MutexGuard<'_, HostState> = self.state.lock().map_err(|_| InternalError)?;
            Ok(act(&mut state))
        }))
        .unwrap_or(Err(InternalError))
    }
}
