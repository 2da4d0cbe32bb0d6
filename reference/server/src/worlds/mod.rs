//! The worlds of a server: the first, which lives as long as the server, and those that are opened on request.
//!
//! A request selects an opened world by its path, `/w/{id}`, or by its key: keys carry the id after the mode, so a client
//! with a fixed base address reaches its world by the key alone. Every other request is for the first world.
//!
//! Owns the set of open worlds and their lifetimes. Each world itself is owned by its host.

pub(crate) mod api;
mod options;
mod routing;
mod stored_worlds;
mod waiting;

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use reference_core::{id::Code, mode::Mode, outbox::AttemptReport, rng::Seed, time::Timestamp};
use reference_wire::Response;
use simulator::sandbox::{AttemptId, Setup, WORLD_BYTES};
use tokio::{sync::Notify, task::AbortHandle, time::Instant};

pub(crate) use self::options::WorldOptions;
pub use self::waiting::{OpeningProgress, UnavailableWorld};
use self::{options::BranchPoint, stored_worlds::WorldsDirectory, waiting::WaitingWorlds};
use crate::{
    backend::{Backend, SharedState, WorldIdentity, WorldParameters},
    host::InternalError,
    journal::{MEMORY_MAX, NewWorld, RunningWorld},
    log::REQUESTS_MAX,
    memory::{MemoryBudget, MemoryShare},
    metrics::WorldTotals,
    sender::{AttemptOwners, WorldNo},
    snapshots::WorldMoment,
};

/// The largest number of open worlds, the first one not counted.
pub(crate) const WORLDS_MAX: usize = 1_000;
/// The number of logged requests of an opened world: a tenth of the first world's, because there may be many worlds.
const OPENED_REQUESTS_MAX: usize = REQUESTS_MAX / 10;
/// The maximum bytes of records stored in memory for an opened world.
const OPENED_MEMORY_MAX: usize = MEMORY_MAX / 8;
/// The bits of a drawn seed: JSON clients with double-precision numbers read it exactly.
const SEED_BITS: u32 = 53;

/// All worlds of a server.
pub(crate) struct Worlds {
    first: Arc<Backend>,
    shared: SharedState,
    /// The defaults of a new world.
    defaults: WorldParameters,
    /// The starts of live and test keys, such as `svc_live_`.
    key_starts: [String; 2],
    open_worlds: RwLock<OpenWorlds>,
    /// The number of open worlds besides the first, readable without the lock.
    open_count: AtomicUsize,
    /// Notified when a world with a time to live opens.
    opened_with_ttl: Notify,
    /// The directory of opened worlds; `None` if they end with the server.
    directory: Option<WorldsDirectory>,
    memory: Arc<MemoryBudget>,
    /// The stored worlds that are not open yet.
    waiting: WaitingWorlds,
}

#[derive(Default)]
struct OpenWorlds {
    worlds: BTreeMap<WorldNo, Arc<OpenedWorld>>,
    by_id: BTreeMap<Code, WorldNo>,
    /// The highest number of any world so far.
    last_number: u64,
}

/// A world that was opened on request.
pub(crate) struct OpenedWorld {
    pub(crate) id: Code,
    pub(crate) name: Option<String>,
    pub(crate) parameters: WorldParameters,
    /// The idle time after which the world ends; `None` for never.
    pub(crate) ttl: Option<Duration>,
    pub(crate) backend: Arc<Backend>,
    usage: Mutex<Usage>,
    /// The task of the world's timer; `None` if the clock is frozen.
    timer: Option<AbortHandle>,
    /// The task that recovers from failures of the disk; `None` without a disk.
    recovery: Option<AbortHandle>,
}

/// The latest use of a world.
struct Usage {
    /// The number of requests in progress.
    requests_in_progress: usize,
    /// The end of the latest request.
    idle_since: Instant,
}

/// The refusal of a world beyond [`WORLDS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyWorlds;

/// The reason why no world was opened.
pub(crate) enum OpenError {
    TooMany(TooManyWorlds),
    /// The memory for worlds is used up. The text is a clause for a message.
    OutOfMemory(String),
    /// The world cannot be stored.
    NotStored(io::Error),
    /// The world to branch from refused, with this response.
    Refused(Response),
    /// The world to branch from had an internal error.
    Broken(InternalError),
}

/// The id and the memory reserved for a world that is about to open.
struct Reservation {
    no: WorldNo,
    id: Code,
    memory: MemoryShare,
    /// `true` for a stored world, which is already counted among the waiting ones.
    is_stored: bool,
}

impl OpenedWorld {
    fn usage(&self) -> MutexGuard<'_, Usage> {
        // Nothing that can panic happens under the lock.
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time at which the world ends unless it is used again; `None` if it has no time to live.
    fn ends_at(&self, now: Instant) -> Option<Instant> {
        let usage = self.usage();
        let idle_since = if usage.requests_in_progress > 0 { now } else { usage.idle_since };
        // A time that overflows is never reached.
        self.ttl.and_then(|ttl| idle_since.checked_add(ttl))
    }

    fn end(&self) {
        self.backend.host.end();
        self.timer.iter().chain(&self.recovery).for_each(AbortHandle::abort);
    }
}

impl Drop for OpenedWorld {
    fn drop(&mut self) {
        self.end();
    }
}

impl Worlds {
    /// Starts the first world, which `begin` creates or opens.
    ///
    /// # Errors
    ///
    /// Those of `begin`.
    pub(crate) fn new<E>(
        shared: SharedState,
        mut defaults: WorldParameters,
        begin: impl FnOnce(&Setup) -> Result<RunningWorld, E>,
    ) -> Result<Worlds, E> {
        let memory = MemoryBudget::new(shared.bounds.world_bytes);
        let identity = WorldIdentity {
            no: WorldNo(0),
            id: "",
            requests_max: REQUESTS_MAX,
            memory: memory.unbounded_share(),
        };
        let first = Arc::new(Backend::start(&shared, &defaults, identity, begin)?);
        // The seed of a stored world overrides the configured one; worlds opened by name derive theirs from it.
        defaults.seed = first.host.seed().unwrap_or(defaults.seed);
        Ok(Worlds {
            first,
            key_starts: Mode::ALL.map(|mode| shared.dialect.key_start(mode)),
            shared,
            defaults,
            open_worlds: RwLock::default(),
            open_count: AtomicUsize::new(0),
            opened_with_ttl: Notify::new(),
            directory: None,
            memory,
            waiting: WaitingWorlds::default(),
        })
    }

    /// Returns the first world.
    pub(crate) fn first(&self) -> &Arc<Backend> {
        &self.first
    }

    /// Returns the defaults of a new world.
    pub(crate) fn defaults(&self) -> &WorldParameters {
        &self.defaults
    }

    pub(crate) fn totals(&self) -> WorldTotals {
        let opened = self.read_open_worlds();
        WorldTotals {
            open: opened.worlds.len() + 1,
            opened: opened.last_number,
            opening: self.waiting.remaining(),
            held_bytes: self.memory.used_bytes(),
            held_bytes_max: self.memory.max_bytes(),
        }
    }

    /// Opens a world, which is stored once [`Worlds::wait_until_stored`] returns.
    pub(crate) fn open(&self, options: WorldOptions) -> Result<Arc<OpenedWorld>, OpenError> {
        let reservation = self.reserve(WORLD_BYTES)?;
        let identity = (reservation.no, reservation.id);
        self.start_world(reservation, options, |options, setup| {
            self.start_new_world(identity, options, NewWorld::new(setup))
        })
    }

    /// Waits until an opened world and its number are stored; ends the world if they cannot be stored.
    pub(crate) async fn wait_until_stored(&self, world: &OpenedWorld) -> Result<(), Response> {
        let committed = match world.backend.host.wait_for_all_commits().await {
            Ok(()) => self.first.host.wait_for_all_commits().await,
            refused => refused,
        };
        if committed.is_err() {
            self.end(world.id);
        }
        committed
    }

    /// Opens a branch from a moment of another world.
    pub(crate) async fn open_branch(
        &self,
        options: WorldOptions,
        BranchPoint { backend, moment }: &BranchPoint,
    ) -> Result<Arc<OpenedWorld>, OpenError> {
        // A branch is not larger than the world that it branches from.
        let reservation = self.reserve(backend.host.held_bytes())?;
        let (no, id) = (reservation.no, reservation.id);
        let rename = |setup: Setup| Setup {
            public_url: self.shared.addresses.for_world(id.as_str()).url().to_owned(),
            key_tag: id.to_string(),
            ..setup
        };
        let branched = backend.host.branch(moment, rename).await;
        let branch = branched.map_err(OpenError::Broken)?.map_err(OpenError::Refused)?;
        let world = self.start_world(reservation, options, |options, _| {
            self.start_new_world((no, id), options, branch)
        })?;
        world.backend.host.share_forwards(&backend.host);
        Ok(world)
    }

    /// Opens a branch of the world that a dashboard displays, from the moment `at`, and waits until it is stored.
    pub(crate) async fn branch(
        &self,
        backend: &Arc<Backend>,
        at: Timestamp,
    ) -> Result<Result<Arc<OpenedWorld>, Response>, InternalError> {
        let parameters = backend.parameters().unwrap_or_else(|| self.defaults.clone());
        let options =
            WorldOptions { seed: Some(parameters.seed), ..WorldOptions::from_parameters(&parameters) };
        let branch_point = BranchPoint { backend: Arc::clone(backend), moment: WorldMoment::At(at) };
        match self.open_branch(options, &branch_point).await {
            Ok(world) => Ok(self.wait_until_stored(&world).await.map(|()| world)),
            Err(OpenError::Broken(error)) => Err(error),
            Err(why) => Ok(Err(api::refusal_response(why))),
        }
    }

    /// Reserves an id and `bytes` of memory for a world.
    fn reserve(&self, bytes: u64) -> Result<Reservation, OpenError> {
        let mut opened = self.write_open_worlds();
        if opened.worlds.len() + self.waiting.remaining() >= WORLDS_MAX {
            return Err(OpenError::TooMany(TooManyWorlds));
        }
        let memory = self.memory.reserve(bytes).map_err(OpenError::OutOfMemory)?;
        let ids = self.defaults.seed.rng_key("worlds", "id", "code");
        let (no, id) = loop {
            opened.last_number += 1;
            let id = Code::draw(&ids, opened.last_number);
            // A stored world may have a higher number than the journal of the first world contains.
            if !opened.by_id.contains_key(&id) && !self.waiting.has(id) {
                break (WorldNo(opened.last_number), id);
            }
        };
        if self.directory.is_some() {
            self.first.host.record_world_count(opened.last_number);
        }
        Ok(Reservation { no, id, memory, is_stored: false })
    }

    /// Starts a reserved world, which `begin` creates or opens, and adds it to the open ones.
    fn start_world(
        &self,
        Reservation { no, id, memory, is_stored }: Reservation,
        options: WorldOptions,
        begin: impl FnOnce(&WorldOptions, &Setup) -> io::Result<RunningWorld>,
    ) -> Result<Arc<OpenedWorld>, OpenError> {
        let WorldOptions { ref name, seed, start, clock, rate_limit, ttl } = options;
        let seed = seed.unwrap_or_else(|| derive_seed(self.defaults.seed, name.as_deref(), no));
        let parameters = WorldParameters { seed, start, clock, rate_limit };
        let identity = WorldIdentity { no, id: id.as_str(), requests_max: OPENED_REQUESTS_MAX, memory };
        let backend = Backend::start(&self.shared, &parameters, identity, |setup| begin(&options, setup));
        let backend = Arc::new(backend.map_err(OpenError::NotStored)?);
        let timer = (!backend.host.is_frozen()).then(|| {
            let backend = Arc::clone(&backend);
            tokio::spawn(async move { backend.host.run_timer().await }).abort_handle()
        });
        let recovery = backend.host.is_on_disk().then(|| {
            let host = Arc::clone(&backend.host);
            tokio::spawn(async move { host.recover_storage().await }).abort_handle()
        });
        let usage = Mutex::new(Usage { requests_in_progress: 0, idle_since: Instant::now() });
        let name = options.name;
        let world = Arc::new(OpenedWorld { id, name, parameters, ttl, backend, usage, timer, recovery });
        let mut opened = self.write_open_worlds();
        // Other worlds may have been opened meanwhile.
        if !is_stored && opened.worlds.len() + self.waiting.remaining() >= WORLDS_MAX {
            drop(opened);
            world.backend.host.discard_journal();
            return Err(OpenError::TooMany(TooManyWorlds));
        }
        opened.by_id.insert(id, no);
        opened.worlds.insert(no, Arc::clone(&world));
        self.open_count.store(opened.worlds.len(), Ordering::Release);
        drop(opened);
        if ttl.is_some() {
            self.opened_with_ttl.notify_one();
        }
        Ok(world)
    }

    /// Ends a world and deletes its stored data: its keys and paths become unknown. Running delivery attempts finish
    /// unreported; no further one starts. Returns `None` if no such world is open.
    pub(crate) fn end(&self, id: Code) -> Option<Arc<OpenedWorld>> {
        let world = {
            let mut opened = self.write_open_worlds();
            let no = *opened.by_id.get(&id)?;
            self.remove(&mut opened, no)
        }?;
        world.end();
        world.backend.host.discard_journal();
        Some(world)
    }

    fn remove(&self, opened: &mut OpenWorlds, no: WorldNo) -> Option<Arc<OpenedWorld>> {
        let world = opened.worlds.remove(&no)?;
        opened.by_id.remove(&world.id);
        self.open_count.store(opened.worlds.len(), Ordering::Release);
        Some(world)
    }

    /// Returns an open world.
    pub(crate) fn get(&self, id: Code) -> Option<Arc<OpenedWorld>> {
        let opened = self.read_open_worlds();
        opened.worlds.get(opened.by_id.get(&id)?).cloned()
    }

    /// Returns the backend of an open world; `None` is the first.
    pub(crate) fn backend(&self, id: Option<Code>) -> Option<Arc<Backend>> {
        match id {
            None => Some(Arc::clone(&self.first)),
            Some(id) => self.get(id).map(|world| Arc::clone(&world.backend)),
        }
    }

    /// Returns all opened worlds, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<OpenedWorld>> {
        self.read_open_worlds().worlds.values().cloned().collect()
    }

    /// Ends idle worlds when their time to live is over. Never returns.
    pub(crate) async fn end_idle_worlds(&self) {
        loop {
            let next_opened = self.opened_with_ttl.notified();
            match self.end_idle_at(Instant::now()) {
                None => next_opened.await,
                Some(at) => tokio::select! {
                    () = next_opened => {}
                    () = tokio::time::sleep_until(at) => {}
                },
            }
        }
    }

    /// Ends the worlds whose time to live is over; returns the time of the next check, `None` if no world ends by itself.
    fn end_idle_at(&self, now: Instant) -> Option<Instant> {
        let mut opened = self.write_open_worlds();
        let end_times: Vec<_> =
            opened.worlds.iter().filter_map(|(no, world)| Some((*no, world.ends_at(now)?))).collect();
        let (due, later): (Vec<_>, Vec<_>) = end_times.into_iter().partition(|(_, at)| *at <= now);
        let ended: Vec<_> = due.into_iter().filter_map(|(no, _)| self.remove(&mut opened, no)).collect();
        drop(opened);
        for world in ended {
            world.end();
            world.backend.host.discard_journal();
        }
        later.into_iter().map(|(_, at)| at).min()
    }

    /// Ends the observers of every world.
    pub(crate) fn end_observers(&self) {
        self.first.host.end_observers();
        self.all().iter().for_each(|world| world.backend.host.end_observers());
    }

    /// Commits the remaining records of every world and closes their files. Later records are lost.
    pub(crate) fn close_journals(&self) {
        let opened = self.all();
        let hosts = || opened.iter().map(|world| &world.backend.host).chain([&self.first.host]);
        // All start to close before the first is waited for, so that they close in parallel.
        hosts().for_each(|host| host.close_journal());
        hosts().for_each(|host| host.finish_journal());
    }

    fn read_open_worlds(&self) -> std::sync::RwLockReadGuard<'_, OpenWorlds> {
        // Nothing that can panic happens under the lock.
        self.open_worlds.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_open_worlds(&self) -> std::sync::RwLockWriteGuard<'_, OpenWorlds> {
        self.open_worlds.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AttemptOwners for Worlds {
    fn is_open(&self, world: WorldNo) -> bool {
        world == WorldNo(0) || self.read_open_worlds().worlds.contains_key(&world)
    }

    fn end_attempt(&self, world: WorldNo, id: AttemptId, report: AttemptReport) {
        if world == WorldNo(0) {
            return self.first.host.end_attempt(id, report);
        }
        // An ended world accepts no reports.
        let found = self.read_open_worlds().worlds.get(&world).cloned();
        if let Some(world) = found {
            world.backend.host.end_attempt(id, report);
        }
    }
}

/// Derives the seed of a world whose options have none. Worlds of the same name on the same server get the same seed.
fn derive_seed(server: Seed, name: Option<&str>, no: WorldNo) -> Seed {
    let key = match name {
        Some(name) => server.rng_key("worlds by name", name, "seed"),
        None => server.rng_key("worlds by number", &no.0.to_string(), "seed"),
    };
    Seed(key.stream(0).bits() >> (u64::BITS - SEED_BITS))
}

#[cfg(test)]
mod tests;
