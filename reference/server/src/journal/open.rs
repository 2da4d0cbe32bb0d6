//! Opens a journal in a directory: validates its setup, replays its calls, and continues it.

use std::{
    io,
    sync::{Arc, atomic::AtomicBool},
};

use simulator::sandbox::Setup;

use super::{
    Journal, Marks, OpenedJournal, SetupRecord,
    checkpoints::Checkpoints,
    disk::{Batch, Disk},
    file::WorldFile,
    history::{path, position_of},
    medium::{DatabaseAccess, Medium},
    rebuild::{Rebuilt, rebuild},
    recover::recover,
    replay::{ReplayError, Replayed},
    seal::End,
    tip::Tip,
    verify::{Damage, verify},
    writer::{Keeping, ReopenedDisk, Writer},
};
use crate::clock;

/// A world that was opened on request, and kept.
pub(crate) struct KeptWorld {
    /// The request that opened it.
    pub(crate) opening: Vec<u8>,
    pub(crate) opened: OpenedJournal,
}

impl Writer {
    /// Opens a journal and makes its calls again; or begins one, with the records of `brought` if there are some. A damaged
    /// one is opened as far as it is sound if the medium [recovers](Medium::recovers).
    ///
    /// `judge` says whether the server may go on with what the world began with.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if another process has it, `InvalidData` if it is damaged or does not check out, `InvalidInput` if it is
    /// not the world that was asked for; otherwise the storage's.
    pub(crate) fn open(
        medium: Arc<dyn Medium>,
        begins: &Setup,
        brought: Option<&WorldFile>,
        judge: impl Fn(&SetupRecord) -> Result<(), String>,
    ) -> io::Result<OpenedJournal> {
        recovering(&medium, |notices| {
            verify(&medium)?;
            let disk = Disk::open(&medium, DatabaseAccess::Create)?;
            let (record, stood) = match disk.setup()? {
                None => {
                    let record = SetupRecord::of(begins);
                    let end = brought.map(|file| (file.tip, clock::unix_micros()));
                    let lines = brought.map(|file| file.records.clone()).unwrap_or_default();
                    disk.begin(&record.text(), None, &Batch { lines, end, ..Batch::default() })?;
                    (record, end)
                }
                Some(_) if brought.is_some() => {
                    let why = format!(
                        "`{}` has a world already, so none can begin there from a file",
                        medium.name()
                    );
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
                }
                Some(text) => (judged(&*medium, &text, &judge)?, disk.end()?),
            };
            resume(&medium, disk, record.setup(&begins.public_url), stood, notices)
        })
    }

    /// Opens the journal of a world that was opened on request, and makes its calls again; `None` if nobody was told that
    /// it was opened, and then nothing of it is left.
    ///
    /// # Errors
    ///
    /// Those of [`Writer::open`].
    pub(crate) fn go_on(
        medium: Arc<dyn Medium>,
        public_url: &str,
        judge: impl Fn(&SetupRecord) -> Result<(), String>,
    ) -> io::Result<Option<KeptWorld>> {
        recovering(&medium, |notices| {
            verify(&medium)?;
            let disk = Disk::open(&medium, DatabaseAccess::Create)?;
            let (Some(text), Some(opening)) = (disk.setup()?, disk.opening()?) else {
                drop(disk);
                medium.remove()?;
                return Ok(None);
            };
            let (record, stood) = (judged(&*medium, &text, &judge)?, disk.end()?);
            let opened = resume(&medium, disk, record.setup(public_url), stood, notices)?;
            Ok(Some(KeptWorld { opening, opened }))
        })
    }

    /// After a failure: the world as the disk has it, and the disk if it can be written to again. Takes as long as opening it
    /// anew.
    ///
    /// # Errors
    ///
    /// The disk can't be read, or still not be written to while the world stands where the disk has it.
    pub(crate) fn reopen(&self, setup: &Setup) -> io::Result<(Replayed, Option<ReopenedDisk>)> {
        let (end, marks) = self.reached();
        let removed = self.removed();
        // What was being written when the disk failed may be there all the same; nobody was told so.
        let writable = self
            .medium
            .check_in_place()
            .and_then(|()| Disk::open(&self.medium, DatabaseAccess::Write))
            .and_then(|disk| disk.cut(marks.records).map(|()| disk));
        let (disk, is_writable) = match (writable, removed) {
            (Ok(disk), _) => (Arc::new(disk), true),
            (Err(error), _) if self.kept() == Keeping::ReadOnly => return Err(error),
            (Err(_), Some(removed)) => (removed, false),
            (Err(_), None) => (Arc::new(Disk::open(&self.medium, DatabaseAccess::Read)?), false),
        };
        let never = AtomicBool::new(false);
        let tip = end.map(|(tip, _)| tip);
        let Rebuilt { world, .. } = rebuild((&*self.medium, &disk), (tip, &marks), setup, &never)?;
        Ok((world, is_writable.then_some(ReopenedDisk(disk))))
    }
}

/// Opens a journal, after its sound part took its place if it is damaged and that was asked for.
fn recovering<T>(medium: &Arc<dyn Medium>, open: impl Fn(Vec<String>) -> io::Result<T>) -> io::Result<T> {
    let mut notices = Vec::new();
    let mut records = u64::MAX;
    loop {
        let error = match open(notices.clone()) {
            Err(error) => error,
            opened => return opened,
        };
        match Damage::of(&error) {
            // Each time less is left.
            Some(damage) if medium.recovers() && damage.good.is_some_and(|good| good.records < records) => {
                let good = damage.good.expect("it was there");
                notices.push(recover(medium, damage, &good).map_err(|error| named(&**medium, error))?);
                records = good.records;
            }
            _ => return Err(named(&**medium, error)),
        }
    }
}

fn read_marks(disk: &Disk) -> io::Result<Marks> {
    let (snapshots, last_snapshot) = disk.snapshots()?;
    let (records, returns, worlds) = (disk.records()?, disk.returns()?, disk.worlds()?);
    Ok(Marks { records, returns, snapshots, last_snapshot, worlds })
}

fn named(medium: &dyn Medium, error: io::Error) -> io::Error {
    match error.kind() {
        // It names the setting, and the world.
        io::ErrorKind::InvalidInput => error,
        kind => io::Error::new(kind, format!("the world in `{}`: {error}", medium.name())),
    }
}

/// Returns the setup of a world, if it may be continued.
fn judged(
    medium: &dyn Medium,
    setup: &[u8],
    judge: impl Fn(&SetupRecord) -> Result<(), String>,
) -> io::Result<SetupRecord> {
    let record = SetupRecord::parse(setup)?;
    let refused = |why| io::Error::new(io::ErrorKind::InvalidInput, why);
    judge(&record).map_err(|why| refused(format!("the world in `{}` {why}", medium.name())))?;
    Ok(record)
}

/// Makes the calls of a journal again, and goes on with it.
fn resume(
    medium: &Arc<dyn Medium>,
    disk: Disk,
    setup: Setup,
    mut stood: Option<End>,
    mut notices: Vec<String>,
) -> io::Result<OpenedJournal> {
    let marks = read_marks(&disk)?;
    let tip = stood.map(|(tip, _)| tip);
    let rebuilt = rebuild((&**medium, &disk), (tip, &marks), &setup, &AtomicBool::new(false));
    let Rebuilt { world, checkpoint, ignored } = rebuilt.map_err(|error| diverged(&disk, &marks, error))?;
    if !disk.is_sealed() {
        disk.seal(&SetupRecord::of(&setup).text(), stood)?;
    }
    if stood.is_none() && marks.records > 0 {
        // A version of the program that kept only the last one wrote these records.
        stood = Some((Tip::of(&world.sandbox), clock::unix_micros()));
    }
    let checkpoints = Checkpoints::new(Arc::clone(medium), setup.clone(), checkpoint);
    let mut writer = Writer::start(Arc::clone(medium), Ok(disk), (stood, marks), checkpoints)?;
    notices.extend(ignored.map(|why| {
        format!("the checkpoint in `{}` is of no use: {why}; all its calls were made again", medium.name())
    }));
    writer.notices = notices;
    Ok(OpenedJournal { journal: Arc::new(Journal::Disk(writer)), setup, world, stood })
}

/// The damage that a replay found.
fn diverged(disk: &Disk, marks: &Marks, error: io::Error) -> io::Error {
    let Some(ReplayError { sound, .. }) = error.get_ref().and_then(|it| it.downcast_ref()) else {
        return error;
    };
    let position = position_of(*sound, &path(&marks.returns, marks.records));
    match disk.seal_within(position) {
        Ok(good) => Damage::behind(good, error.to_string()).into(),
        Err(error) => error,
    }
}
