//! The worlds of a server: the first, which is there from start to end, and those that are opened on request.
//!
//! A world that was opened is named by its path, `/w/{id}`, and by its keys: they carry the id after the mode, so that a
//! client with a fixed base address reaches its world by the key alone. The first world is the one that is not named.
//!
//! Owns who is open and for how long. What happens in a world is the host's.

pub(crate) mod api;
mod kept;
mod opening;
mod placing;
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

pub(crate) use self::opening::Opening;
pub use self::waiting::{LostWorld, Openings};
use self::{kept::WorldsDirectory, opening::Origin, waiting::WaitingWorlds};
use crate::{
    backend::{Backend, Identity, Shared, Terms},
    host::Broken,
    journal::{Beginning, MEMORY_MAX, Started},
    log::REQUESTS_MAX,
    memory::{MemoryBudget, MemoryShare},
    metrics::Census,
    sender::{AttemptOwners, WorldNo},
    snapshots::WorldMoment,
};

/// Worlds that may be open beside the first.
pub(crate) const WORLDS_MAX: usize = 1_000;
/// Requests that are kept of a world that was opened: a tenth of the first one's, because there may be many.
const OPENED_REQUESTS_MAX: usize = REQUESTS_MAX / 10;
/// Bytes of calls that are kept of a world that was opened, to go back in it.
const OPENED_MEMORY_MAX: usize = MEMORY_MAX / 8;
/// Seeds that are drawn stay exact in clients whose only numbers are doubles.
const SEED_BITS: u32 = 53;

/// All worlds of a server.
pub(crate) struct Worlds {
    first: Arc<Backend>,
    shared: Shared,
    /// The defaults of a new world.
    usual: Terms,
    /// The starts of keys.
    key_starts: [String; 2],
    opened: RwLock<Opened>,
    /// Worlds that are open beside the first, for those who need no lock.
    open: AtomicUsize,
    /// Rings when a world opens that may end by itself.
    opened_with_ttl: Notify,
    /// The directory of opened worlds; `None` if they end with the server.
    directory: Option<WorldsDirectory>,
    memory: Arc<MemoryBudget>,
    /// Worlds in it that are not open yet.
    waiting: WaitingWorlds,
}

#[derive(Default)]
struct Opened {
    worlds: BTreeMap<WorldNo, Arc<OpenedWorld>>,
    by_id: BTreeMap<Code, WorldNo>,
    /// Worlds opened so far.
    count: u64,
}

/// A world that was opened on request.
pub(crate) struct OpenedWorld {
    pub(crate) id: Code,
    pub(crate) name: Option<String>,
    pub(crate) terms: Terms,
    pub(crate) ttl: Option<Duration>,
    pub(crate) backend: Arc<Backend>,
    usage: Mutex<Usage>,
    /// `None` if the clock stands still.
    timer: Option<AbortHandle>,
    /// Mends what a failing disk leaves; `None` without a disk.
    keeper: Option<AbortHandle>,
}

/// The latest use of a world.
struct Usage {
    /// Requests that are being answered.
    under_way: usize,
    /// The end of the latest request.
    idle_since: Instant,
}

/// As many worlds are open as may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyWorlds;

/// The reason why no world was opened.
pub(crate) enum NotOpened {
    TooMany(TooManyWorlds),
    /// All worlds hold as much memory as they may: a sentence without its end.
    NoRoom(String),
    /// It can't be kept.
    Unkept(io::Error),
    /// The one that it would go on from is against it: the answer.
    Refused(Response),
    /// The other one met a bug of its own.
    Broken(Broken),
}

/// The id and the memory of a world that is about to open.
struct Reservation {
    no: WorldNo,
    id: Code,
    memory: MemoryShare,
    /// It was kept, so it has its place.
    is_kept: bool,
}

impl OpenedWorld {
    fn usage(&self) -> MutexGuard<'_, Usage> {
        // Nothing that can panic happens under the lock.
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time at which it ends unless it is used again; `None` if it never ends by itself.
    fn ends_at(&self, now: Instant) -> Option<Instant> {
        let usage = self.usage();
        let from = if usage.under_way > 0 { now } else { usage.idle_since };
        // A time too far off to be told is never.
        self.ttl.and_then(|ttl| from.checked_add(ttl))
    }

    fn end(&self) {
        self.backend.host.end();
        self.timer.iter().chain(&self.keeper).for_each(AbortHandle::abort);
    }
}

impl Drop for OpenedWorld {
    fn drop(&mut self) {
        self.end();
    }
}

impl Worlds {
    /// Begins the first world.
    ///
    /// # Errors
    ///
    /// Those of `begin`.
    pub(crate) fn new<E>(
        shared: Shared,
        mut usual: Terms,
        begin: impl FnOnce(&Setup) -> Result<Started, E>,
    ) -> Result<Worlds, E> {
        let memory = MemoryBudget::new(shared.bounds.world_bytes);
        let identity =
            Identity { no: WorldNo(0), id: "", requests_max: REQUESTS_MAX, memory: memory.share() };
        let first = Arc::new(Backend::begin(&shared, &usual, identity, begin)?);
        // A kept world has the seed that it began with, and so have the worlds beside it that are opened by a name.
        usual.seed = first.host.seed().unwrap_or(usual.seed);
        Ok(Worlds {
            first,
            key_starts: Mode::ALL.map(|mode| shared.dialect.key_start(mode)),
            shared,
            usual,
            opened: RwLock::default(),
            open: AtomicUsize::new(0),
            opened_with_ttl: Notify::new(),
            directory: None,
            memory,
            waiting: WaitingWorlds::default(),
        })
    }

    /// The world that is not named.
    pub(crate) fn first(&self) -> &Arc<Backend> {
        &self.first
    }

    /// Returns the defaults of a new world.
    pub(crate) fn usual(&self) -> &Terms {
        &self.usual
    }

    pub(crate) fn census(&self) -> Census {
        let opened = self.opened();
        Census {
            open: opened.worlds.len() + 1,
            opened: opened.count,
            opening: self.waiting.left(),
            held_bytes: self.memory.held(),
            held_bytes_max: self.memory.most(),
        }
    }

    /// Opens a world, which is kept once it has [settled](Worlds::settle).
    pub(crate) fn open(&self, opening: Opening) -> Result<Arc<OpenedWorld>, NotOpened> {
        let place = self.reserve(WORLD_BYTES)?;
        let named = (place.no, place.id);
        self.begin(place, opening, |opening, setup| self.started(named, opening, Beginning::new(setup)))
    }

    /// Waits until a world that was opened is kept; one that can't be ends.
    pub(crate) async fn settle(&self, world: &OpenedWorld) -> Result<(), Response> {
        let settled = match world.backend.host.all_settled().await {
            Ok(()) => self.first.host.all_settled().await,
            refused => refused,
        };
        if settled.is_err() {
            self.end(world.id);
        }
        settled
    }

    /// Opens a world that goes on from a moment of another one.
    pub(crate) async fn open_from(
        &self,
        opening: Opening,
        Origin { backend, moment }: &Origin,
    ) -> Result<Arc<OpenedWorld>, NotOpened> {
        // It holds no more than the other one does now.
        let place = self.reserve(backend.host.held_bytes())?;
        let (no, id) = (place.no, place.id);
        let named = |setup: Setup| Setup {
            public_url: self.shared.addresses.of_world(id.as_str()).url().to_owned(),
            key_tag: id.to_string(),
            ..setup
        };
        let branched = backend.host.branch(moment, named).await;
        let branch = branched.map_err(NotOpened::Broken)?.map_err(NotOpened::Refused)?;
        self.begin(place, opening, |opening, _| self.started((no, id), opening, branch))
    }

    /// The same, for somebody who looks at the other one.
    pub(crate) async fn branch(
        &self,
        backend: &Arc<Backend>,
        at: Timestamp,
    ) -> Result<Result<Arc<OpenedWorld>, Response>, Broken> {
        let terms = backend.terms().unwrap_or_else(|| self.usual.clone());
        let opening = Opening { seed: Some(terms.seed), ..Opening::usual(&terms) };
        let origin = Origin { backend: Arc::clone(backend), moment: WorldMoment::At(at) };
        match self.open_from(opening, &origin).await {
            Ok(world) => Ok(self.settle(&world).await.map(|()| world)),
            Err(NotOpened::Broken(broken)) => Err(broken),
            Err(why) => Ok(Err(api::refused(why))),
        }
    }

    /// A place for a world that is about to open, and so many bytes for it.
    fn reserve(&self, bytes: u64) -> Result<Reservation, NotOpened> {
        let mut opened = self.opened_mut();
        if opened.worlds.len() + self.waiting.left() >= WORLDS_MAX {
            return Err(NotOpened::TooMany(TooManyWorlds));
        }
        let memory = self.memory.reserve(bytes).map_err(NotOpened::NoRoom)?;
        let ids = self.usual.seed.rng_key("worlds", "id", "code");
        let (no, id) = loop {
            opened.count += 1;
            let id = Code::draw(&ids, opened.count);
            // A kept one may have a number that the first world's journal does not know of.
            if !opened.by_id.contains_key(&id) && !self.waiting.has(id) {
                break (WorldNo(opened.count), id);
            }
        };
        if self.directory.is_some() {
            self.first.host.count_worlds(opened.count);
        }
        Ok(Reservation { no, id, memory, is_kept: false })
    }

    fn begin(
        &self,
        Reservation { no, id, memory, is_kept }: Reservation,
        opening: Opening,
        begin: impl FnOnce(&Opening, &Setup) -> io::Result<Started>,
    ) -> Result<Arc<OpenedWorld>, NotOpened> {
        let Opening { ref name, seed, start, clock, rate_limit, ttl } = opening;
        let seed = seed.unwrap_or_else(|| seed_of(self.usual.seed, name.as_deref(), no));
        let terms = Terms { seed, start, clock, rate_limit };
        let identity = Identity { no, id: id.as_str(), requests_max: OPENED_REQUESTS_MAX, memory };
        let backend = Backend::begin(&self.shared, &terms, identity, |setup| begin(&opening, setup));
        let backend = Arc::new(backend.map_err(NotOpened::Unkept)?);
        let timer = (!backend.host.is_frozen()).then(|| {
            let backend = Arc::clone(&backend);
            tokio::spawn(async move { backend.host.keep_time().await }).abort_handle()
        });
        let keeper = backend.host.is_on_disk().then(|| {
            let host = Arc::clone(&backend.host);
            tokio::spawn(async move { host.keep_records().await }).abort_handle()
        });
        let usage = Mutex::new(Usage { under_way: 0, idle_since: Instant::now() });
        let name = opening.name;
        let world = Arc::new(OpenedWorld { id, name, terms, ttl, backend, usage, timer, keeper });
        let mut opened = self.opened_mut();
        // Others may have been faster, while this one was made.
        if !is_kept && opened.worlds.len() + self.waiting.left() >= WORLDS_MAX {
            drop(opened);
            world.backend.host.discard_journal();
            return Err(NotOpened::TooMany(TooManyWorlds));
        }
        opened.by_id.insert(id, no);
        opened.worlds.insert(no, Arc::clone(&world));
        self.open.store(opened.worlds.len(), Ordering::Release);
        drop(opened);
        if ttl.is_some() {
            self.opened_with_ttl.notify_one();
        }
        Ok(world)
    }

    /// Ends a world: its keys and its paths are unknown from now on. Posts that have begun finish, and nobody hears how;
    /// no other begins.
    pub(crate) fn end(&self, id: Code) -> Option<Arc<OpenedWorld>> {
        let world = {
            let mut opened = self.opened_mut();
            let no = *opened.by_id.get(&id)?;
            self.remove(&mut opened, no)
        }?;
        world.end();
        world.backend.host.discard_journal();
        Some(world)
    }

    fn remove(&self, opened: &mut Opened, no: WorldNo) -> Option<Arc<OpenedWorld>> {
        let world = opened.worlds.remove(&no)?;
        opened.by_id.remove(&world.id);
        self.open.store(opened.worlds.len(), Ordering::Release);
        Some(world)
    }

    /// A world that is open.
    pub(crate) fn get(&self, id: Code) -> Option<Arc<OpenedWorld>> {
        let opened = self.opened();
        opened.worlds.get(opened.by_id.get(&id)?).cloned()
    }

    /// Returns the backend of an open world; `None` is the first.
    pub(crate) fn backend(&self, id: Option<Code>) -> Option<Arc<Backend>> {
        match id {
            None => Some(Arc::clone(&self.first)),
            Some(id) => self.get(id).map(|world| Arc::clone(&world.backend)),
        }
    }

    /// Every world that was opened and is open, the oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<OpenedWorld>> {
        self.opened().worlds.values().cloned().collect()
    }

    /// Ends worlds that have been idle for as long as they may. Sleeps until the next one may be, and for ever if none may.
    pub(crate) async fn end_idle_ones(&self) {
        loop {
            let opens = self.opened_with_ttl.notified();
            match self.end_idle_at(Instant::now()) {
                None => opens.await,
                Some(at) => tokio::select! {
                    () = opens => {}
                    () = tokio::time::sleep_until(at) => {}
                },
            }
        }
    }

    /// Ends those that are due, and says when another may be.
    fn end_idle_at(&self, now: Instant) -> Option<Instant> {
        let mut opened = self.opened_mut();
        let ends: Vec<_> =
            opened.worlds.iter().filter_map(|(no, world)| Some((*no, world.ends_at(now)?))).collect();
        let (due, later): (Vec<_>, Vec<_>) = ends.into_iter().partition(|(_, at)| *at <= now);
        let ended: Vec<_> = due.into_iter().filter_map(|(no, _)| self.remove(&mut opened, no)).collect();
        drop(opened);
        for world in ended {
            world.end();
            world.backend.host.discard_journal();
        }
        later.into_iter().map(|(_, at)| at).min()
    }

    /// Ends what would go on for ever, in every world.
    pub(crate) fn end_pulses(&self) {
        self.first.host.end_pulse();
        self.all().iter().for_each(|world| world.backend.host.end_pulse());
    }

    /// Writes what is left of every world, and waits until it is written. What they are told from now on is lost.
    pub(crate) fn close_journals(&self) {
        let opened = self.all();
        let hosts = || opened.iter().map(|world| &world.backend.host).chain([&self.first.host]);
        // All of them write at the same time.
        hosts().for_each(|host| host.close_journal());
        hosts().for_each(|host| host.finish_journal());
    }

    fn opened(&self) -> std::sync::RwLockReadGuard<'_, Opened> {
        // Nothing that can panic happens under the lock.
        self.opened.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened_mut(&self) -> std::sync::RwLockWriteGuard<'_, Opened> {
        self.opened.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AttemptOwners for Worlds {
    fn is_open(&self, world: WorldNo) -> bool {
        world == WorldNo(0) || self.opened().worlds.contains_key(&world)
    }

    fn end_attempt(&self, world: WorldNo, id: AttemptId, report: AttemptReport) {
        if world == WorldNo(0) {
            return self.first.host.end_attempt(id, report);
        }
        // Nobody waits for it in a world that has ended.
        let found = self.opened().worlds.get(&world).cloned();
        if let Some(world) = found {
            world.backend.host.end_attempt(id, report);
        }
    }
}

/// The seed of a world for which none was given: worlds of one name are the same world again, on the same server.
fn seed_of(server: Seed, name: Option<&str>, no: WorldNo) -> Seed {
    let key = match name {
        Some(name) => server.rng_key("worlds by name", name, "seed"),
        None => server.rng_key("worlds by number", &no.0.to_string(), "seed"),
    };
    Seed(key.stream(0).bits() >> (u64::BITS - SEED_BITS))
}

#[cfg(test)]
mod tests;
