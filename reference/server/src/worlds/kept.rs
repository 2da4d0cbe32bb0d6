//! Worlds that last: each in a directory of its own, which its id names, under that of the server's own world.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use reference_core::id::Code;
use serde::{Deserialize, Serialize};
use simulator::sandbox::Setup;

use super::{OPENED_MEMORY_MAX, Opening, Place, WORLDS_MAX, Worlds};
use crate::{
    clock::ClockKind,
    journal::{Beginning, Directory, KeptWorld, SetupRecord, Started, Writer, damaged},
    sender::WorldNo,
};

/// Bytes of a journal that are kept in memory, of each world.
const CACHE_BYTES: usize = 64 * 1_024;

/// What a directory says of its world besides how it began.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OpeningRecord {
    no: u64,
    name: Option<String>,
    clock: ClockKind,
    ttl_micros: Option<u64>,
}

/// A world that was kept and can't be opened.
#[derive(Clone, Debug)]
pub struct LostWorld {
    /// Its id, or the name of what stands in its place.
    pub id: String,
    /// Why, with where it is.
    pub why: String,
}

/// Where worlds are kept that are opened on request.
pub(super) struct WorldsDirectory(PathBuf);

impl WorldsDirectory {
    fn of(&self, id: &str) -> Directory {
        Directory::at(self.0.join(id), CACHE_BYTES)
    }

    /// Begins to keep a world.
    fn begin(&self, (no, id): (WorldNo, Code), opening: &Opening, world: Beginning) -> io::Result<Started> {
        let record = OpeningRecord {
            no: no.0,
            name: opening.name.clone(),
            clock: opening.clock,
            ttl_micros: opening.ttl.map(|ttl| u64::try_from(ttl.as_micros()).unwrap_or(u64::MAX)),
        };
        let record = serde_json::to_vec(&record).expect("texts and numbers are JSON");
        Started::on_disk(Arc::new(self.of(id.as_str())), record, world)
    }

    /// What stands in it, by name. One that is not there is empty.
    fn names(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.0) {
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
    /// A world that begins, in the directory if there is one.
    pub(super) fn started(
        &self,
        place: (WorldNo, Code),
        opening: &Opening,
        world: Beginning,
    ) -> io::Result<Started> {
        match &self.directory {
            Some(directory) => directory.begin(place, opening, world),
            None => Ok(Started::from_records(world, OPENED_MEMORY_MAX)),
        }
    }

    /// Opens the worlds that are kept in a directory, and keeps there those that are opened from now on. Gives those that
    /// can't be opened.
    ///
    /// # Errors
    ///
    /// The directory can't be read.
    pub(crate) fn keep_in(&mut self, directory: &Path) -> io::Result<Vec<LostWorld>> {
        let directory = WorldsDirectory(directory.to_owned());
        let mut lost = Vec::new();
        for name in directory.names()? {
            if let Err(error) = self.open_kept(&directory, &name) {
                lost.push(LostWorld { id: name, why: error.to_string() });
            }
        }
        self.directory = Some(directory);
        let counted = self.first.host.worlds_counted();
        let mut opened = self.opened_mut();
        // No number is given twice, because ids and seeds are drawn from it.
        opened.count = opened.count.max(counted);
        drop(opened);
        Ok(lost)
    }

    fn open_kept(&self, directory: &WorldsDirectory, name: &str) -> io::Result<()> {
        let id = Code::parse(name).ok_or_else(|| damaged("its name is no id of a world"))?;
        let Some((asked, _)) = self.first.host.begun() else { return Ok(()) };
        let public_url = self.shared.addresses.of_world(name).url().to_owned();
        let judge = |kept: &SetupRecord| {
            let setup = kept.setup(&public_url);
            if setup.key_tag != name {
                return Err(format!(
                    "is `{}`, and not the one that its directory is named by",
                    setup.key_tag
                ));
            }
            kept.judge(&Setup { rate_limit: setup.rate_limit, ..asked.clone() }, None, None)
        };
        let Some(KeptWorld { opening, opened }) =
            Writer::go_on(Arc::new(directory.of(name)), &public_url, judge)?
        else {
            return Ok(());
        };
        let record: OpeningRecord =
            serde_json::from_slice(&opening).map_err(|_| damaged("its opening is not readable"))?;
        if self.opened().worlds.len() >= WORLDS_MAX {
            return Err(io::Error::other(format!("{WORLDS_MAX} worlds are open already")));
        }
        let setup = &opened.setup;
        let opening = Opening {
            name: record.name,
            seed: Some(setup.seed),
            start: Some(setup.start),
            clock: record.clock,
            rate_limit: setup.rate_limit,
            ttl: record.ttl_micros.map(Duration::from_micros),
        };
        // Its memory is known now that it is open.
        let memory = self.memory.reserve(0).map_err(io::Error::other)?;
        let place = Place { no: WorldNo(record.no), id, memory };
        self.begin(place, opening, |_, _| Ok(Started::kept(opened)))
            .map_err(|_| damaged("there is no room for it"))?;
        let mut all = self.opened_mut();
        all.count = all.count.max(record.no);
        Ok(())
    }
}
