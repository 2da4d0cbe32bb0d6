//! Opens a journal in a directory: validates its setup, replays its calls, and continues it.

use std::{
    io,
    sync::{Arc, atomic::AtomicBool},
};

use simulator::sandbox::Setup;

use super::{
    Journal, JournalMetadata, OpenedJournal, SetupRecord,
    checkpoints::Checkpoints,
    disk::{Batch, Disk},
    file::WorldFile,
    history::{position_of, record_ranges},
    rebuild::{RebuiltWorld, rebuild},
    recover::recover,
    replay::{ReplayError, ReplayedWorld},
    seal::CommitEnd,
    storage::{DatabaseAccess, Storage},
    verify::{Damage, verify},
    world_position::WorldPosition,
    writer::{DurabilityState, ReopenedDisk, Writer},
};
use crate::clock;

/// A stored world that was opened on request.
pub(crate) struct StoredWorld {
    /// The options of the request that opened it, in JSON.
    pub(crate) options: Vec<u8>,
    pub(crate) opened: OpenedJournal,
}

impl Writer {
    /// Opens and replays a journal; or creates one, with the records of `world_file` if given. The undamaged part of a damaged
    /// journal is opened if the storage [recovers](Storage::recovers).
    ///
    /// `check_setup` returns the reason why the server may not continue a world with this setup.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if another process uses it, `InvalidData` if it is damaged, `InvalidInput` if `check_setup` returns a
    /// reason or if there are both a journal and a world file; otherwise those of the storage.
    pub(crate) fn open(
        storage: Arc<dyn Storage>,
        new_setup: &Setup,
        world_file: Option<&WorldFile>,
        check_setup: impl Fn(&SetupRecord) -> Result<(), String>,
    ) -> io::Result<OpenedJournal> {
        open_or_recover(&storage, |notices| {
            verify(&storage)?;
            let disk = Disk::open(&storage, DatabaseAccess::Create)?;
            let (record, last_end) = match disk.setup()? {
                None => {
                    let record = SetupRecord::from_setup(new_setup);
                    let end = world_file.map(|file| (file.end, clock::unix_micros()));
                    let lines = world_file.map(|file| file.records.clone()).unwrap_or_default();
                    disk.initialize(&record.to_json(), None, &Batch { lines, end, ..Batch::default() })?;
                    (record, end)
                }
                Some(_) if world_file.is_some() => {
                    let why = format!(
                        "`{}` has a world already, so no world file can be opened there",
                        storage.name()
                    );
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
                }
                Some(text) => (parse_setup(&*storage, &text, &check_setup)?, disk.last_end()?),
            };
            resume(&storage, disk, record.to_setup(&new_setup.public_url), last_end, notices)
        })
    }

    /// Opens and replays the journal of a world that was opened on request. If the opening was never acknowledged, deletes
    /// the incomplete journal and returns `None`.
    ///
    /// # Errors
    ///
    /// Those of [`Writer::open`].
    pub(crate) fn open_stored(
        storage: Arc<dyn Storage>,
        public_url: &str,
        check_setup: impl Fn(&SetupRecord) -> Result<(), String>,
    ) -> io::Result<Option<StoredWorld>> {
        open_or_recover(&storage, |notices| {
            verify(&storage)?;
            let disk = Disk::open(&storage, DatabaseAccess::Create)?;
            let (Some(text), Some(options)) = (disk.setup()?, disk.options()?) else {
                drop(disk);
                storage.remove()?;
                return Ok(None);
            };
            let (record, last_end) = (parse_setup(&*storage, &text, &check_setup)?, disk.last_end()?);
            let opened = resume(&storage, disk, record.to_setup(public_url), last_end, notices)?;
            Ok(Some(StoredWorld { options, opened }))
        })
    }

    /// Replays the world up to the last commit, after a failure of the disk. Returns it with the disk, or with `None` while
    /// the disk cannot be written. Takes as long as opening the journal.
    ///
    /// # Errors
    ///
    /// The disk cannot be read; or it still cannot be written and the world was restored by an earlier call.
    pub(crate) fn reopen(&self, setup: &Setup) -> io::Result<(ReplayedWorld, Option<ReopenedDisk>)> {
        let (commit_end, metadata) = self.last_commit();
        let removed_disk = self.removed_disk();
        // The commit that failed may nevertheless be on the disk. It was never acknowledged, so it is removed.
        let writable = self
            .storage
            .check_in_place()
            .and_then(|()| Disk::open(&self.storage, DatabaseAccess::Write))
            .and_then(|disk| disk.truncate(metadata.records).map(|()| disk));
        let (disk, is_writable) = match (writable, removed_disk) {
            (Ok(disk), _) => (Arc::new(disk), true),
            (Err(error), _) if self.durability() == DurabilityState::ReadOnly => return Err(error),
            (Err(_), Some(removed_disk)) => (removed_disk, false),
            (Err(_), None) => (Arc::new(Disk::open(&self.storage, DatabaseAccess::Read)?), false),
        };
        let never_stop = AtomicBool::new(false);
        let end = commit_end.map(|(end, _)| end);
        let RebuiltWorld { world, .. } =
            rebuild((&*self.storage, &disk), (end, &metadata), setup, &never_stop)?;
        Ok((world, is_writable.then_some(ReopenedDisk(disk))))
    }
}

/// Opens a journal; if it is damaged and the storage recovers, replaces it by its undamaged part first.
fn open_or_recover<T>(
    storage: &Arc<dyn Storage>,
    open: impl Fn(Vec<String>) -> io::Result<T>,
) -> io::Result<T> {
    let mut notices = Vec::new();
    let mut records_before = u64::MAX;
    loop {
        let error = match open(notices.clone()) {
            Err(error) => error,
            Ok(opened) => return Ok(opened),
        };
        match Damage::from_error(&error) {
            // Each iteration leaves fewer records, so the loop ends.
            Some(damage)
                if storage.recovers()
                    && damage.last_good.is_some_and(|good| good.records < records_before) =>
            {
                let good = damage.last_good.expect("the guard checked that there is a good commit");
                notices.push(
                    recover(storage, damage, &good).map_err(|error| with_storage_name(&**storage, error))?,
                );
                records_before = good.records;
            }
            _ => return Err(with_storage_name(&**storage, error)),
        }
    }
}

fn read_metadata(disk: &Disk) -> io::Result<JournalMetadata> {
    let (snapshots, last_snapshot_number) = disk.snapshots()?;
    let (records, rewinds, world_count) = (disk.record_count()?, disk.rewinds()?, disk.world_count()?);
    Ok(JournalMetadata { records, rewinds, snapshots, last_snapshot_number, world_count })
}

fn with_storage_name(storage: &dyn Storage, error: io::Error) -> io::Error {
    match error.kind() {
        // The message names the setting and the world already.
        io::ErrorKind::InvalidInput => error,
        kind => io::Error::new(kind, format!("the world in `{}`: {error}", storage.name())),
    }
}

/// Parses the setup of a world and checks that it may be continued.
fn parse_setup(
    storage: &dyn Storage,
    setup: &[u8],
    check_setup: impl Fn(&SetupRecord) -> Result<(), String>,
) -> io::Result<SetupRecord> {
    let record = SetupRecord::parse(setup)?;
    let invalid_input = |why| io::Error::new(io::ErrorKind::InvalidInput, why);
    check_setup(&record).map_err(|why| invalid_input(format!("the world in `{}` {why}", storage.name())))?;
    Ok(record)
}

/// Replays a journal and starts its writer.
fn resume(
    storage: &Arc<dyn Storage>,
    disk: Disk,
    setup: Setup,
    mut last_end: Option<CommitEnd>,
    mut notices: Vec<String>,
) -> io::Result<OpenedJournal> {
    let metadata = read_metadata(&disk)?;
    let end = last_end.map(|(end, _)| end);
    let rebuilt = rebuild((&**storage, &disk), (end, &metadata), &setup, &AtomicBool::new(false));
    let RebuiltWorld { world, checkpoint_position, ignored_reason } =
        rebuilt.map_err(|error| damage_from_replay(&disk, &metadata, error))?;
    if !disk.is_sealed() {
        disk.add_seals(&SetupRecord::from_setup(&setup).to_json(), last_end)?;
    }
    if last_end.is_none() && metadata.records > 0 {
        // An earlier version of the program wrote these records and stored only the last end.
        last_end = Some((WorldPosition::from_sandbox(&world.sandbox), clock::unix_micros()));
    }
    let checkpoints = Checkpoints::new(Arc::clone(storage), setup.clone(), checkpoint_position);
    let mut writer = Writer::start(Arc::clone(storage), Ok(disk), (last_end, metadata), checkpoints)?;
    notices.extend(ignored_reason.map(|why| {
        format!("the checkpoint in `{}` was ignored: {why}; all records were replayed", storage.name())
    }));
    writer.notices = notices;
    Ok(OpenedJournal { journal: Arc::new(Journal::Disk(writer)), setup, world, last_end })
}

/// Returns the error of a replay as [`Damage`], with the last seal before the record that failed.
fn damage_from_replay(disk: &Disk, metadata: &JournalMetadata, error: io::Error) -> io::Error {
    let Some(ReplayError { records_before, .. }) = error.get_ref().and_then(|error| error.downcast_ref())
    else {
        return error;
    };
    let position = position_of(*records_before, &record_ranges(&metadata.rewinds, metadata.records));
    match disk.seal_within(position) {
        Ok(good) => Damage::new(good, error.to_string()).into(),
        Err(error) => error,
    }
}
