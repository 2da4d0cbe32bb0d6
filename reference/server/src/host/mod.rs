//! The host of a world: one lock around the world and its clock, and one timer that wakes it.
//!
//! The lock is never held across a wait, neither for a name lookup nor for an attempt to end. Delivery attempts are passed
//! to the sender before the lock is released, so they start in the order in which the world created them.
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

/// The shortest sleep of the timer, so that a world with work that stays due cannot make it spin. Also the pause between
/// two slices of a long advance.
const SLEEP_MIN: Duration = Duration::from_millis(1);
/// The longest sleep of the timer, so that a wall clock that jumps ahead is noticed.
const SLEEP_MAX: Duration = Duration::from_secs(10);

/// The world panicked. It may be half changed, so every further request fails with this error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InternalError;

/// The world, its clock and its timer.
pub(crate) struct Host {
    state: Mutex<HostState>,
    timer_changed: Notify,
    /// Notified after every attempt that ends, for calls that wait for one.
    attempt_ended: Notify,
    /// Notified when the world has been restored after a failure of the disk.
    recovered: Notify,
    /// The handle of the webhook sender; `None` if all deliveries go to the simulated network.
    sender_handle: Option<SenderHandle>,
    is_frozen: bool,
    /// The latest time on the world's clock, for readers without the lock.
    latest_time: AtomicU64,
    /// Receives every event.
    log: Option<LogSink>,
    /// Updated with every observable change; see [`Host::subscribe`].
    changes: watch::Sender<Option<u64>>,
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
    /// The queue of this channel stays short: the dispatcher moves every attempt into its own queue at once.
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
    timer_due: Option<Timestamp>,
    /// Attempts that ended while the disk was failing.
    unreported_attempts: Vec<(AttemptId, AttemptReport)>,
}

impl Host {
    pub(crate) fn new(
        world: Box<dyn World>,
        clock: Clock,
        sender_handle: Option<SenderHandle>,
        log: Option<LogSink>,
        durability: Option<Durability>,
        memory: MemoryShare,
    ) -> Host {
        memory.set(world.held_bytes());
        let is_frozen = clock.is_frozen();
        Host {
            latest_time: AtomicU64::new(world.now().0),
            log,
            state: Mutex::new(HostState { world, clock, timer_due: None, unreported_attempts: Vec::new() }),
            timer_changed: Notify::new(),
            attempt_ended: Notify::new(),
            recovered: Notify::new(),
            sender_handle,
            is_frozen,
            changes: watch::Sender::new(Some(0)),
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

    /// Returns a receiver that is notified of every observable change. Its value is the number of changes of kind
    /// [`WorldChange::Everything`], `None` once the server is about to end. A reader that subscribes before it reads the world misses nothing.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<u64>> {
        self.changes.subscribe()
    }

    /// Ends all observers.
    pub(crate) fn end_observers(&self) {
        self.changes.send_replace(None);
    }

    /// Ends all calls that wait in this world and all observers, and gives up the world's forwards.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
        self.attempt_ended.notify_waiters();
        self.end_observers();
        self.sender_handle.iter().for_each(|sender_handle| sender_handle.forwards().clear());
    }

    /// Notifies the observers. Called after the change, so that they read the changed world.
    fn notify_observers(&self, change: WorldChange) {
        if self.changes.receiver_count() > 0 {
            let increment = u64::from(change == WorldChange::Everything);
            self.changes.send_modify(|changes| *changes = changes.map(|count| count + increment));
        }
    }

    /// Returns `true` if an event after the `n`th matches, or if some of these events are no longer stored; and the number of
    /// events so far.
    pub(crate) fn check_events_after(
        &self,
        n: u64,
        matches: impl Fn(&WorldEventKind) -> bool,
    ) -> Result<(bool, u64), InternalError> {
        self.with_state(|state| {
            let count = state.world.event_count();
            let events = state.world.events_after(n);
            // Incomplete if the log has dropped older events, or if a world with a new log replaced this one.
            let is_complete = count.checked_sub(n) == u64::try_from(events.len()).ok();
            (!is_complete || events.iter().any(|event| matches(&event.kind)), count)
        })
    }

    /// Returns the sender of deliveries outside of the simulated network; `None` if there is none.
    pub(crate) fn sender(&self) -> Option<&WebhookSender> {
        self.sender_handle.as_ref().map(|sender_handle| &*sender_handle.sender)
    }

    /// Makes the world an owner of a forward until it ends.
    pub(crate) fn own_forward(&self, forward: Arc<Forward>) {
        self.sender_handle
            .iter()
            .for_each(|sender_handle| sender_handle.forwards().push(Arc::clone(&forward)));
    }

    /// Makes the world an owner of the forwards of the world that it branches from.
    pub(crate) fn share_forwards(&self, origin: &Host) {
        if let (Some(own), Some(origin)) = (&self.sender_handle, &origin.sender_handle) {
            own.forwards().extend(origin.forwards().iter().cloned());
        }
    }

    /// Returns the time of the service clock at the latest call, without locking the world.
    pub(crate) fn latest_time(&self) -> Timestamp {
        Timestamp(self.latest_time.load(Ordering::Relaxed))
    }

    /// Returns the bytes of memory that the world uses, estimated.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.memory.used_bytes()
    }

    /// Returns `true` if only `/sandbox` moves the clock.
    pub(crate) fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    /// Returns `true` if the world had an internal error, without locking it.
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

    /// Responds to a request at the present time.
    pub(crate) async fn respond(&self, request: &Request<'_>) -> Result<Response, InternalError> {
        let response = match &self.durability {
            Some(durability) if snapshots::is_snapshot_path(request.path) => {
                Box::pin(self.respond_with_journal(durability, request)).await?
            }
            _ => self.respond_with(None, request, |world, now| world.respond(now, request)).await?,
        };
        self.recent_mutations.record(self.latest_time(), request, &response);
        Ok(response)
    }

    /// Responds to an authenticated request, without counting it against the rate limit again.
    pub(crate) async fn respond_as(
        &self,
        admitted: &AdmittedRequest,
        request: &Request<'_>,
    ) -> Result<Response, InternalError> {
        let respond = |world: &mut dyn World, now| world.respond_as(now, admitted, request);
        let response = self.respond_with(Some(admitted.account()), request, respond).await?;
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
                Ok((value, ticket)) if self.wait_for_commit(ticket).await => return Ok(value),
                // The data may be lost with the failed commit; read it again from the restored world.
                _ if is_first => Box::pin(self.wait_until_readable()).await,
                _ => {}
            }
        }
        Ok(None)
    }

    /// Calls `respond` on the world, after looking up the host of an endpoint to save. Repeats a read once if the disk
    /// fails.
    async fn respond_with(
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
        // The futures are boxed: few requests need them, and otherwise every request's future would include their size.
        let mut host_check = match &self.sender_handle {
            Some(sender_handle) if sender::may_save_endpoint(request) => {
                Box::pin(sender_handle.sender.check_host(sender_handle.world, account, request)).await
            }
            _ => None,
        };
        let refusal = match &host_check {
            Some(HostCheck::TimedOut { host }) => {
                Some(format!("The name {host} could not be looked up in time. Try again in a minute."))
            }
            Some(HostCheck::LocalAddress(why)) => Some(why.clone()),
            _ => None,
        };
        if let Some(why) = refusal {
            return Ok(Response::refusal(&ApiError::field("url", why)));
        }
        let mut may_repeat = Effect::from_request(request) == Effect::Reads;
        loop {
            let stepped = self.step(Effect::from_request(request), |world, now| {
                match host_check.take() {
                    Some(HostCheck::Resolved { host, addresses }) => world.on_name_resolved(&host, addresses),
                    Some(HostCheck::Forwarded { host }) => world.declare_forwarded(&host),
                    Some(HostCheck::TimedOut { .. } | HostCheck::LocalAddress(_)) | None => {}
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
            if !may_repeat {
                return Ok(failure);
            }
            // The data may be lost with the failed commit; repeat the read in the restored world.
            Box::pin(self.wait_until_readable()).await;
            may_repeat = false;
        }
    }

    /// Continues a call that moves the clock until the call is done: after an attempt ended if the call waits for one,
    /// otherwise after a pause.
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
                tokio::time::sleep(SLEEP_MIN).await;
            }
            match self.step(Effect::Changes, |world, now| world.continue_call(now, pending))? {
                Err(failure) => return Ok(failure),
                Ok((Progress::Done(response), ticket)) => {
                    return Ok(self.respond_after_commit(response, ticket).await);
                }
                Ok((Progress::Waiting(next), _)) => pending = next,
            }
            if pending.awaits_attempt() {
                ended.await;
            }
        }
    }

    /// Records the result of an attempt of the webhook sender.
    pub(crate) fn end_attempt(&self, id: AttemptId, report: AttemptReport) {
        // A broken world accepts no report, but the calls that wait for it must end.
        let copy = report.clone();
        if let Ok(Err(_)) = self.step(Effect::Changes, |world, now| world.on_attempt_result(now, id, report))
        {
            let _ = self.with_state(|state| state.unreported_attempts.push((id, copy)));
        }
        self.attempt_ended.notify_waiters();
    }

    /// Runs a call on the world at the present time; logs its events, dispatches its deliveries and sets the timer. Returns
    /// the response for a failing disk if the call cannot be made now.
    fn step<T>(
        &self,
        effect: Effect,
        call: impl FnOnce(&mut dyn World, Timestamp) -> T,
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
            let value = call(&mut *state.world, now);
            let has_moved = durability == DurabilityState::Durable
                && state.clock.sync_to_world(reading, state.world.now());
            let has_changed = has_moved || state.world.event_count() != before;
            self.log_events(state, before);
            if has_changed || effect == Effect::Changes {
                self.memory.set(state.world.held_bytes());
            }
            self.dispatch_outgoing(state);
            let due = state.world.next_due();
            let is_sooner = due.is_some_and(|due| state.timer_due.is_none_or(|current| due < current));
            if is_sooner {
                state.timer_due = due;
            }
            // A read may show changes whose commit is still pending, so it waits too.
            let ticket = if durability == DurabilityState::Durable { self.ticket() } else { None };
            let change = if has_moved { WorldChange::Everything } else { WorldChange::Events };
            Ok(((value, ticket), has_moved || is_sooner, has_changed.then_some(change)))
        })?;
        let (outcome, resets_timer, change) = match stepped {
            Ok(stepped) => stepped,
            Err(failure) => return Ok(Err(failure)),
        };
        if let Some(change) = change {
            self.notify_observers(change);
        }
        if resets_timer {
            self.timer_changed.notify_one();
        }
        Ok(Ok(outcome))
    }

    /// Updates the latest time and logs the events after the `before`th. Under the lock, so that they are logged in order.
    fn log_events(&self, state: &HostState, before: u64) {
        self.latest_time.store(state.world.now().0, Ordering::Relaxed);
        let Some(log) = &self.log else { return };
        let count = state.world.event_count();
        if count != before {
            // A world that replaced this one has a new log.
            let from = if count < before { 0 } else { before };
            state.world.events_after(from).into_iter().for_each(|event| log.write(LogEntry::Event(event)));
        }
    }

    /// Dispatches new delivery attempts. Under the lock, so that they start in the order in which the world created them.
    fn dispatch_outgoing(&self, state: &mut HostState) {
        let outgoing = state.world.take_outgoing();
        self.dispatch(outgoing);
    }

    /// Passes delivery attempts to the webhook sender once the records that led to them are stored.
    pub(crate) fn dispatch(&self, outgoing: Vec<OutgoingAttempt>) {
        let Some(sender_handle) = self.sender_handle.as_ref().filter(|_| !outgoing.is_empty()) else {
            return;
        };
        let (dispatches, world) = (sender_handle.dispatches.clone(), sender_handle.world);
        let send = move || {
            for attempt in outgoing {
                // Fails only if the sender has stopped because the server is about to end.
                let _ = dispatches.send(WorldAttempt { world, attempt });
            }
        };
        match &self.durability {
            Some(durability) => durability.journal.dispatch_after_commit(send),
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
                Ok(None) => self.timer_changed.notified().await,
                Ok(Some(sleep_for)) => {
                    tokio::select! {
                        () = self.timer_changed.notified() => {}
                        () = tokio::time::sleep(sleep_for.clamp(SLEEP_MIN, SLEEP_MAX)) => {}
                    }
                }
            }
        }
    }

    /// Advances the world to the present; returns the time until the next event.
    fn advance(&self) -> Result<Option<Duration>, InternalError> {
        let (sleep_for, has_changed) = self.with_state(|state| {
            if self.durability_state() != DurabilityState::Durable {
                // Recovery sets the timer again.
                state.timer_due = None;
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
            state.timer_due = state.world.next_due();
            let sleep_for = state.timer_due.and_then(|due| state.clock.duration_until(now, due));
            (sleep_for, state.world.event_count() != before)
        })?;
        if has_changed {
            self.notify_observers(WorldChange::Events);
        }
        Ok(sleep_for)
    }

    /// Runs `access` under the lock. A panic poisons the lock, so that all later calls return [`InternalError`].
    fn with_state<T>(&self, access: impl FnOnce(&mut HostState) -> T) -> Result<T, InternalError> {
        catch_unwind(AssertUnwindSafe(|| {
            let mut state: MutexGuard<'_, HostState> = self.state.lock().map_err(|_| InternalError)?;
            Ok(access(&mut state))
        }))
        .unwrap_or(Err(InternalError))
    }
}
