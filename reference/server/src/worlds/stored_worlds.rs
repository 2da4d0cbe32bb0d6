//! Stored worlds: each in a directory named by its id, below the directory of the first world.

use std::{collections::VecDeque, fs, io, path::PathBuf, sync::Arc, time::Duration};

use reference_core::id::Code;
use serde::{Deserialize, Serialize};
use simulator::sandbox::{Setup, WORLD_BYTES};
use tokio::sync::watch;

use super::{
    OPENED_MEMORY_MAX, OpeningProgress, Reservation, UnavailableWorld, WORLDS_MAX, WaitingWorlds,
    WorldOptions, Worlds,
};
use crate::{
    clock::ClockKind,
    config::StorageConfig,
    journal::{
        Directory, DirectoryOptions, NewWorld, RunningWorld, SetupRecord, StoredWorld, Writer, damage_error,
    },
    sender::WorldNo,
};

/// The subdirectory of worlds that were opened on request.
const WORLDS_DIRECTORY: &str = "worlds";
/// The bytes that redb caches for each world.
const CACHE_BYTES: usize = 64 * 1_024;

/// The options of a world, stored beside its setup.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorldOptionsRecord {
    /// The number of the world among those opened on request.
    no: u64,
    name: Option<String>,
    clock: ClockKind,
    ttl_micros: Option<u64>,
}

/// The directory of worlds that are opened on request.
pub(super) struct WorldsDirectory {
    path: PathBuf,
    options: DirectoryOptions,
}

impl WorldsDirectory {
    fn directory_of(&self, id: &str) -> Directory {
        Directory::new(self.path.join(id), self.options)
    }

    /// Starts a new world in its directory.
    fn create(
        &self,
        (no, id): (WorldNo, Code),
        options: &WorldOptions,
        world: NewWorld,
    ) -> io::Result<RunningWorld> {
        let record = WorldOptionsRecord {
            no: no.0,
            name: options.name.clone(),
            clock: options.clock,
            ttl_micros: options.ttl.map(|ttl| u64::try_from(ttl.as_micros()).unwrap_or(u64::MAX)),
        };
        let record = serde_json::to_vec(&record).expect("strings and numbers are JSON");
        RunningWorld::on_disk(Arc::new(self.directory_of(id.as_str())), record, world)
    }

    /// Returns the sorted names of the entries. A missing directory has none.
    fn entry_names(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = entries.map(name).collect::<io::Result<_>>()?;
        names.sort();
        Ok(names)
    }
}

impl Worlds {
    /// Starts a new world, stored in the directory if there is one.
    pub(super) fn start_new_world(
        &self,
        identity: (WorldNo, Code),
        options: &WorldOptions,
        world: NewWorld,
    ) -> io::Result<RunningWorld> {
        match &self.directory {
            Some(directory) => directory.create(identity, options, world),
            None => Ok(RunningWorld::from_records(world, OPENED_MEMORY_MAX)),
        }
    }

    /// Stores the worlds that are opened from now on in the directory of the first world. Stored worlds that are already there
    /// wait to be opened.
    ///
    /// # Errors
    ///
    /// The directory cannot be read.
    pub(crate) fn use_directory(&mut self, data: &StorageConfig) -> io::Result<()> {
        let directory = WorldsDirectory {
            path: data.directory.join(WORLDS_DIRECTORY),
            options: data.options(CACHE_BYTES),
        };
        let (mut worlds, mut unavailable) = (VecDeque::new(), Vec::new());
        for name in directory.entry_names()? {
            match Code::parse(&name) {
                Some(id) => worlds.push_back(id),
                None => {
                    let why = damage_error("its name is not a world id").to_string();
                    unavailable.push(UnavailableWorld { id: name, why });
                }
            }
        }
        let notices = self.first.host.notices();
        self.waiting = WaitingWorlds::new(worlds, OpeningProgress { waiting: 0, unavailable, notices });
        self.directory = Some(directory);
        // No number is used twice, because ids and seeds are derived from it.
        let stored_count = self.first.host.world_count();
        let mut opened = self.write_open_worlds();
        opened.last_number = opened.last_number.max(stored_count);
        Ok(())
    }

    /// Opens the waiting worlds one after the other.
    pub(crate) async fn open_waiting(self: Arc<Self>) {
        while let Some(id) = self.waiting.take() {
            let worlds = Arc::clone(&self);
            let opened = tokio::task::spawn_blocking(move || worlds.open_stored(id)).await;
            let opened = match opened {
                Ok(opened) => opened.map_err(|error| error.to_string()),
                Err(_) => Err("opening it failed with an internal error".to_owned()),
            };
            self.waiting.finish(id, opened);
        }
    }

    /// Adds a notice for the operator.
    pub(crate) fn add_notice(&self, notice: Option<String>) {
        self.waiting.add_notice(notice);
    }

    /// Returns the progress of opening stored worlds.
    pub(crate) fn openings(&self) -> watch::Receiver<OpeningProgress> {
        self.waiting.openings()
    }

    /// Stops opening stored worlds.
    pub(crate) fn stop_opening(&self) {
        self.waiting.stop();
    }

    /// Opens a stored world; returns notices for the operator.
    fn open_stored(&self, id: Code) -> io::Result<Vec<String>> {
        let (Some(directory), Some((first_setup, _))) = (&self.directory, self.first.host.setup_and_clock())
        else {
            // Without a directory, no world is stored.
            return Ok(Vec::new());
        };
        let name = id.as_str();
        // The real size is known once the world is open.
        let memory = self.memory.reserve(WORLD_BYTES).map_err(io::Error::other)?;
        let public_url = self.shared.addresses.for_world(name).url().to_owned();
        let check_setup = |record: &SetupRecord| {
            let setup = record.to_setup(&public_url);
            if setup.key_tag != name {
                return Err(format!("is `{}`, which is not the name of its directory", setup.key_tag));
            }
            record.check_compatible(
                &Setup { rate_limit: setup.rate_limit, ..first_setup.clone() },
                None,
                None,
            )
        };
        let Some(StoredWorld { options, opened }) =
            Writer::open_stored(Arc::new(directory.directory_of(name)), &public_url, check_setup)?
        else {
            // The opening was never acknowledged, so the incomplete world was deleted.
            return Ok(Vec::new());
        };
        let record: WorldOptionsRecord =
            serde_json::from_slice(&options).map_err(|_| damage_error("its options are unreadable"))?;
        if self.read_open_worlds().worlds.len() >= WORLDS_MAX {
            return Err(io::Error::other(format!("{WORLDS_MAX} worlds are open already")));
        }
        let setup = &opened.setup;
        let options = WorldOptions {
            name: record.name,
            seed: Some(setup.seed),
            start: Some(setup.start),
            clock: record.clock,
            rate_limit: setup.rate_limit,
            ttl: record.ttl_micros.map(Duration::from_micros),
        };
        let reservation = Reservation { no: WorldNo(record.no), id, memory, is_stored: true };
        let world = self
            .start_world(reservation, options, |_, _| Ok(RunningWorld::from_journal(opened)))
            .map_err(|_| damage_error("it cannot be started"))?;
        let mut open_worlds = self.write_open_worlds();
        open_worlds.last_number = open_worlds.last_number.max(record.no);
        Ok(world.backend.host.notices())
    }
}
