//! Opens a journal that is in a directory: what it began with is judged, its calls are made again, and it is gone on with.

use std::{
    io,
    sync::{Arc, atomic::AtomicBool},
};

use simulator::sandbox::Setup;

use super::{
    Journal, Marks, OpenedJournal, SetupRecord,
    checkpoints::Checkpoints,
    disk::{Batch, Disk, Medium},
    file::WorldFile,
    rebuild::{Rebuilt, rebuild},
    replay::{Replayed, Tip},
    writer::{Keeping, ReopenedDisk, Writer},
};
use crate::clock;

/// A world that was opened on request, and kept.
pub(crate) struct KeptWorld {
    /// Why.
    pub(crate) opening: Vec<u8>,
    pub(crate) opened: OpenedJournal,
}

impl Writer {
    /// Opens a journal and makes its calls again; or begins one, with the records of `brought` if there are some.
    ///
    /// `judge` says whether the server may go on with what the world began with.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if another process has it, `InvalidData` if it does not check out, `InvalidInput` if it is not the
    /// world that was asked for; otherwise the storage's.
    pub(crate) fn open(
        medium: Arc<dyn Medium>,
        begins: &Setup,
        brought: Option<&WorldFile>,
        judge: impl FnOnce(&SetupRecord) -> Result<(), String>,
    ) -> io::Result<OpenedJournal> {
        let named = |error: io::Error| named(&*medium, error);
        let disk = Disk::open(&*medium).map_err(named)?;
        let (record, stood) = match disk.setup().map_err(named)? {
            None => {
                let record = SetupRecord::of(begins);
                let end = brought.map(|file| (file.tip, clock::unix_micros()));
                let lines = brought.map(|file| file.records.clone()).unwrap_or_default();
                disk.begin(&record.text(), None, &Batch { lines, end, ..Batch::default() }).map_err(named)?;
                (record, end)
            }
            Some(_) if brought.is_some() => {
                let why =
                    format!("`{}` has a world already, so none can begin there from a file", medium.name());
                return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
            }
            Some(text) => (judged(&*medium, &text, judge)?, stood(&disk).map_err(named)?),
        };
        resume(medium, disk, record.setup(&begins.public_url), stood)
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
        judge: impl FnOnce(&SetupRecord) -> Result<(), String>,
    ) -> io::Result<Option<KeptWorld>> {
        let named = |error: io::Error| named(&*medium, error);
        let disk = Disk::open(&*medium).map_err(named)?;
        let (Some(text), Some(opening)) = (disk.setup().map_err(named)?, disk.opening().map_err(named)?)
        else {
            drop(disk);
            medium.remove().map_err(named)?;
            return Ok(None);
        };
        let record = judged(&*medium, &text, judge)?;
        let stood = stood(&disk).map_err(named)?;
        let opened = resume(Arc::clone(&medium), disk, record.setup(public_url), stood)?;
        Ok(Some(KeptWorld { opening, opened }))
    }

    /// After a failure: the world as the disk has it, and the disk if it can be written to again. Takes as long as opening it
    /// anew.
    ///
    /// # Errors
    ///
    /// The disk can't be read, or still not be written to while the world stands where the disk has it.
    pub(crate) fn reopen(&self, setup: &Setup) -> io::Result<(Replayed, Option<ReopenedDisk>)> {
        let (end, marks) = self.reached();
        // What was being written when the disk failed may be there all the same; nobody was told so.
        let writable = Disk::open(&*self.medium).and_then(|disk| disk.cut(marks.records, end).map(|()| disk));
        let (disk, is_writable) = match writable {
            Ok(disk) => (disk, true),
            Err(error) if self.kept() == Keeping::ReadOnly => return Err(error),
            Err(_) => (Disk::open_to_read(&*self.medium)?, false),
        };
        let never = AtomicBool::new(false);
        let tip = end.map(|(tip, _)| tip);
        let Rebuilt { world, .. } = rebuild((&*self.medium, &disk), (tip, &marks), setup, &never)?;
        Ok((world, is_writable.then_some(ReopenedDisk(disk))))
    }
}

fn read_marks(disk: &Disk) -> io::Result<Marks> {
    let (snapshots, last_snapshot) = disk.snapshots()?;
    let (records, returns, worlds) = (disk.records()?, disk.returns()?, disk.worlds()?);
    Ok(Marks { records, returns, snapshots, last_snapshot, worlds })
}

fn named(medium: &dyn Medium, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("the world in `{}`: {error}", medium.name()))
}

/// What a world began with, if it may be gone on with.
fn judged(
    medium: &dyn Medium,
    setup: &[u8],
    judge: impl FnOnce(&SetupRecord) -> Result<(), String>,
) -> io::Result<SetupRecord> {
    let record = SetupRecord::parse(setup).map_err(|error| named(medium, error))?;
    let refused = |why| io::Error::new(io::ErrorKind::InvalidInput, why);
    judge(&record).map_err(|why| refused(format!("the world in `{}` {why}", medium.name())))?;
    Ok(record)
}

fn stood(disk: &Disk) -> io::Result<Option<(Tip, u64)>> {
    Ok(disk.end()?.map(|end| (end.tip, end.wall)))
}

/// Makes the calls of a journal again, and goes on with it.
fn resume(
    medium: Arc<dyn Medium>,
    disk: Disk,
    setup: Setup,
    stood: Option<(Tip, u64)>,
) -> io::Result<OpenedJournal> {
    let named = |error: io::Error| named(&*medium, error);
    let marks = read_marks(&disk).map_err(named)?;
    let tip = stood.map(|(tip, _)| tip);
    let rebuilt =
        rebuild((&*medium, &disk), (tip, &marks), &setup, &AtomicBool::new(false)).map_err(named)?;
    let Rebuilt { world, checkpoint, ignored } = rebuilt;
    let checkpoints = Checkpoints::new(Arc::clone(&medium), setup.clone(), checkpoint);
    let mut writer = Writer::start(Arc::clone(&medium), Ok(disk), (stood, marks), checkpoints)?;
    writer.ignored = ignored.map(|why| format!("the checkpoint in `{}` is of no use: {why}", medium.name()));
    Ok(OpenedJournal { journal: Arc::new(Journal::Disk(writer)), setup, world, stood })
}
