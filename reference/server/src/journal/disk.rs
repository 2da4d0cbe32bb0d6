//! The journal in a file, by redb.
//!
//! redb because a torn write, a checksum, a lock and a copy of the head are its business then. A commit with sync took
//! 147 µs where a bare file took 112 µs, and one commit serves everybody who waits.
//!
//! Records stand in chunks, one for each commit, under the number of the first.

use std::{
    fs::{self, File, OpenOptions},
    io,
    ops::Range,
    path::{Path, PathBuf},
};

use redb::{
    Builder, Database, DatabaseError, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition,
    backends::FileBackend,
};

use super::{
    history::{Return, Snapshot},
    overlay::Overlay,
    replay::Tip,
    setup::damaged,
};

const CHUNKS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("records");
const RETURNS: TableDefinition<'_, u64, u64> = TableDefinition::new("returns");
const SNAPSHOTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("snapshots");
/// One row each: `setup`, `opening`, `end`, `snapshot` and `worlds`.
const FACTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("facts");
const FILE: &str = "world.redb";
const CHECKPOINT: &str = "world.state";
const NEXT_CHECKPOINT: &str = "world.state.next";
/// Bytes that redb keeps in memory of the first world. A journal is written at its end and read once.
pub(crate) const CACHE_BYTES: usize = 4 * 1_024 * 1_024;
/// Memory of a journal that is open: what redb keeps of it, and the thread that writes.
pub(crate) const OPEN_BYTES: u64 = 128 * 1_024;

/// Writes all of something.
pub(crate) type WriteTo<'a> = dyn FnMut(&mut dyn io::Write) -> io::Result<()> + 'a;

/// Where a journal is, and how it is opened.
pub(crate) trait Medium: Send + Sync {
    /// For reading and writing, by nobody else at the same time. Begins an empty one.
    fn open(&self) -> Result<Database, DatabaseError>;

    /// For reading what was written, although nothing can be written now.
    fn open_to_read(&self) -> Result<Database, DatabaseError>;

    /// The checkpoint, if there is one.
    fn read_checkpoint(&self) -> io::Result<Option<Vec<u8>>>;

    /// Puts one in place of the last one: all that is written, or nothing.
    fn write_checkpoint(&self, write: &mut WriteTo<'_>) -> io::Result<()>;

    /// How many records may follow the last one before the next one is written; `None` to read and write none.
    fn checkpoint_after(&self) -> Option<u64>;

    /// Takes away what is there.
    fn remove(&self) -> io::Result<()>;

    /// What an error calls it.
    fn name(&self) -> String;
}

/// A directory of its own.
pub(crate) struct Directory {
    path: PathBuf,
    cache_bytes: usize,
    checkpoint_after: Option<u64>,
}

impl Directory {
    /// One that is made when it is opened.
    pub(crate) fn at(path: PathBuf, cache_bytes: usize, checkpoint_after: Option<u64>) -> Directory {
        Directory { path, cache_bytes, checkpoint_after }
    }

    /// # Errors
    ///
    /// The operating system's.
    pub(crate) fn create(&self) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        // The keys of the world are in it.
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.path)
    }

    /// Whether a world was begun in it.
    pub(crate) fn has_world(path: &Path) -> bool {
        path.join(FILE).exists()
    }

    /// Takes away one that was not written to its end: records may need its room.
    fn drop_next_checkpoint(&self) {
        // Where it can't be taken away, or is not there, nothing is lost.
        let _ = fs::remove_file(self.path.join(NEXT_CHECKPOINT));
    }

    fn file(&self, name: &str, writes: bool) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(writes).create(writes);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(self.path.join(name))
    }
}

/// So that what stands in a directory is as it was after a power cut.
fn sync_directory(path: &Path) -> io::Result<()> {
    // Elsewhere a directory can't be opened.
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

impl Medium for Directory {
    fn open(&self) -> Result<Database, DatabaseError> {
        self.create()?;
        let database = database(FileBackend::new(self.file(FILE, true)?)?, self.cache_bytes)?;
        // Nobody else writes one now.
        self.drop_next_checkpoint();
        Ok(database)
    }

    fn open_to_read(&self) -> Result<Database, DatabaseError> {
        database(Overlay::new(FileBackend::new(self.file(FILE, false)?)?)?, self.cache_bytes)
    }

    fn remove(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.path)?;
        self.path.parent().map_or(Ok(()), sync_directory)
    }

    fn read_checkpoint(&self) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.path.join(CHECKPOINT)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    fn write_checkpoint(&self, write: &mut WriteTo<'_>) -> io::Result<()> {
        let mut file = self.file(NEXT_CHECKPOINT, true)?;
        file.set_len(0)?;
        let written = write(&mut file).and_then(|()| file.sync_all()).and_then(|()| {
            fs::rename(self.path.join(NEXT_CHECKPOINT), self.path.join(CHECKPOINT))?;
            sync_directory(&self.path)
        });
        if written.is_err() {
            self.drop_next_checkpoint();
        }
        written
    }

    fn checkpoint_after(&self) -> Option<u64> {
        self.checkpoint_after
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }
}

/// A journal in this storage.
pub(crate) fn database(backend: impl StorageBackend, cache_bytes: usize) -> Result<Database, DatabaseError> {
    Builder::new().set_cache_size(cache_bytes).create_with_backend(backend)
}

/// What one commit adds.
#[derive(Default)]
pub(crate) struct Batch {
    /// The number of its first record.
    pub(crate) first: u64,
    /// The records, each a line.
    pub(crate) lines: Vec<u8>,
    /// Where the world stands after them, and the time of day then in microseconds since 1970.
    pub(crate) end: Option<(Tip, u64)>,
    pub(crate) returns: Vec<Return>,
    /// Snapshots by their numbers, made or dropped.
    pub(crate) snapshots: Vec<(u64, Option<Snapshot>)>,
    /// How many worlds were opened beside it.
    pub(crate) worlds: Option<u64>,
}

/// Where a kept world stands.
pub(crate) struct End {
    pub(crate) tip: Tip,
    /// The time of day when it was written, in microseconds since 1970.
    pub(crate) wall: u64,
}

/// A journal that is open.
pub(crate) struct Disk(Database);

impl Disk {
    /// # Errors
    ///
    /// `WouldBlock` if another process has it open, otherwise the storage's.
    pub(crate) fn open(medium: &dyn Medium) -> io::Result<Disk> {
        Ok(Disk(medium.open().map_err(|error| explain(error.into()))?))
    }

    /// Only to read. What is written to it is forgotten.
    ///
    /// # Errors
    ///
    /// The storage's.
    pub(crate) fn open_to_read(medium: &dyn Medium) -> io::Result<Disk> {
        Ok(Disk(medium.open_to_read().map_err(|error| explain(error.into()))?))
    }

    /// What the world began with; `None` if none has.
    pub(crate) fn setup(&self) -> io::Result<Option<Vec<u8>>> {
        self.fact("setup")
    }

    /// Why the world was opened, if somebody asked for it.
    pub(crate) fn opening(&self) -> io::Result<Option<Vec<u8>>> {
        self.fact("opening")
    }

    /// How many worlds were opened beside it.
    pub(crate) fn worlds(&self) -> io::Result<u64> {
        Ok(self.fact("worlds")?.map_or(0, |text| number(&text)))
    }

    /// Keeps what the world begins with, and what it was told already.
    pub(crate) fn begin(&self, setup: &[u8], opening: Option<&[u8]>, batch: &Batch) -> io::Result<()> {
        self.change(|transaction| {
            transaction.open_table(CHUNKS)?;
            transaction.open_table(RETURNS)?;
            transaction.open_table(SNAPSHOTS)?;
            transaction.open_table(FACTS)?.insert("setup", setup)?;
            if let Some(opening) = opening {
                transaction.open_table(FACTS)?.insert("opening", opening)?;
            }
            add(transaction, batch)
        })
    }

    /// Adds a batch, and returns once it is on the disk.
    pub(crate) fn append(&self, batch: &Batch) -> io::Result<()> {
        self.change(|transaction| add(transaction, batch))
    }

    /// Forgets what was written from this record on: nobody was told that it was.
    pub(crate) fn cut(&self, from: u64, end: Option<(Tip, u64)>) -> io::Result<()> {
        self.change(|transaction| {
            transaction.open_table(CHUNKS)?.retain_in(from.., |_, _| false)?;
            transaction.open_table(RETURNS)?.retain_in(from.., |_, _| false)?;
            if let Some(end) = &end {
                transaction.open_table(FACTS)?.insert("end", &*json(end))?;
            }
            Ok(())
        })
    }

    /// How many records there are.
    pub(crate) fn records(&self) -> io::Result<u64> {
        self.look(|transaction| {
            let table = transaction.open_table(CHUNKS)?;
            let last = table.last()?;
            Ok(last.map_or(0, |(first, lines)| first.value() + count(lines.value())))
        })
    }

    /// Where the world stands; `None` if nothing was written yet.
    pub(crate) fn end(&self) -> io::Result<Option<End>> {
        let Some(text) = self.fact("end")? else { return Ok(None) };
        let (tip, wall) = serde_json::from_slice(&text).map_err(|_| damaged("its end is not readable"))?;
        Ok(Some(End { tip, wall }))
    }

    /// Each time that the world went back.
    pub(crate) fn returns(&self) -> io::Result<Vec<Return>> {
        self.look(|transaction| {
            let table = transaction.open_table(RETURNS)?;
            let all = table.iter()?.map(|row| row.map(|(at, to)| Return { at: at.value(), to: to.value() }));
            Ok(all.collect::<Result<_, _>>()?)
        })
    }

    /// The snapshots, and the highest number that one had.
    pub(crate) fn snapshots(&self) -> io::Result<(Vec<Snapshot>, u64)> {
        let texts: Vec<Vec<u8>> = self.look(|transaction| {
            let table = transaction.open_table(SNAPSHOTS)?;
            let all = table.iter()?.map(|row| row.map(|(_, text)| text.value().to_vec()));
            Ok(all.collect::<Result<_, _>>()?)
        })?;
        let last = self.fact("snapshot")?.map_or(0, |text| number(&text));
        let read = |text: &Vec<u8>| {
            serde_json::from_slice(text).map_err(|_| damaged("one of its snapshots is not readable"))
        };
        Ok((texts.iter().map(read).collect::<io::Result<_>>()?, last))
    }

    /// Hands out these records, in pieces of whole lines.
    pub(crate) fn read(
        &self,
        range: Range<u64>,
        mut take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut at = range.start;
        while at < range.end {
            // One at a time: what takes it may take long, and holds no transaction.
            let chunk = self.look(|transaction| {
                let table = transaction.open_table(CHUNKS)?;
                let found = table.range(..=at)?.next_back().transpose()?;
                Ok(found.map(|(first, lines)| (first.value(), lines.value().to_vec())))
            })?;
            let (first, lines) = chunk.ok_or_else(|| damaged(format!("record {at} is missing")))?;
            let end = (first + count(&lines)).min(range.end);
            if end <= at {
                return Err(damaged(format!("record {at} is missing")));
            }
            take(part(&lines, at - first..end - first))?;
            at = end;
        }
        Ok(())
    }

    fn fact(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        self.look(|transaction| {
            let table = match transaction.open_table(FACTS) {
                // Nothing was ever written.
                Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
                table => table?,
            };
            Ok(table.get(name)?.map(|text| text.value().to_vec()))
        })
    }

    fn look<T>(&self, read: impl FnOnce(&redb::ReadTransaction) -> Result<T, redb::Error>) -> io::Result<T> {
        let transaction = self.0.begin_read().map_err(|error| explain(error.into()))?;
        read(&transaction).map_err(explain)
    }

    fn change(
        &self,
        write: impl FnOnce(&redb::WriteTransaction) -> Result<(), redb::Error>,
    ) -> io::Result<()> {
        let transaction = self.0.begin_write().map_err(|error| explain(error.into()))?;
        write(&transaction).map_err(explain)?;
        transaction.commit().map_err(|error| explain(error.into()))
    }
}

/// Within a transaction.
fn add(transaction: &redb::WriteTransaction, batch: &Batch) -> Result<(), redb::Error> {
    if !batch.lines.is_empty() {
        transaction.open_table(CHUNKS)?.insert(batch.first, &*batch.lines)?;
    }
    if let Some((tip, wall)) = &batch.end {
        let end = json(&(tip, wall));
        transaction.open_table(FACTS)?.insert("end", &*end)?;
    }
    if let Some(worlds) = &batch.worlds {
        transaction.open_table(FACTS)?.insert("worlds", &*json(worlds))?;
    }
    for Return { at, to } in &batch.returns {
        transaction.open_table(RETURNS)?.insert(at, to)?;
    }
    for (n, snapshot) in &batch.snapshots {
        let mut table = transaction.open_table(SNAPSHOTS)?;
        match snapshot {
            Some(snapshot) => drop(table.insert(n, &*json(snapshot))?),
            None => drop(table.remove(n)?),
        }
        // So that no number is given twice.
        let last = transaction.open_table(FACTS)?.get("snapshot")?.map_or(0, |n| number(n.value()));
        transaction.open_table(FACTS)?.insert("snapshot", &*json(&last.max(*n)))?;
    }
    Ok(())
}

/// How many records these lines are.
pub(crate) fn count(lines: &[u8]) -> u64 {
    lines.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// The lines with these numbers, from 0 on.
pub(crate) fn part(lines: &[u8], range: Range<u64>) -> &[u8] {
    let ends = lines.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let mut starts = std::iter::once(0).chain(ends);
    let mut start_of = |n: u64| starts.nth(usize::try_from(n).unwrap_or(usize::MAX)).unwrap_or(lines.len());
    let from = start_of(range.start);
    let to = match range.end - range.start {
        0 => from,
        n => start_of(n - 1),
    };
    &lines[from..to]
}

fn json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("numbers and texts are JSON")
}

fn number(text: &[u8]) -> u64 {
    serde_json::from_slice(text).unwrap_or(0)
}

fn explain(error: redb::Error) -> io::Error {
    match error {
        redb::Error::Io(error) => error,
        redb::Error::DatabaseAlreadyOpen => io::Error::new(
            io::ErrorKind::WouldBlock,
            "another process keeps its world there; stop it, or choose another directory",
        ),
        redb::Error::Corrupted(why) => damaged(format!("it is damaged: {why}")),
        error => io::Error::other(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn a_checkpoint_that_can_not_be_written_takes_no_room() {
        let place = TempDir::new().unwrap();
        let directory = Directory::at(place.path().to_owned(), CACHE_BYTES, Some(1));
        directory.write_checkpoint(&mut |file| file.write_all(b"first")).unwrap();
        let files = || {
            let mut names: Vec<_> =
                fs::read_dir(place.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let full = directory.write_checkpoint(&mut |file| {
            file.write_all(b"half of the sec")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(full.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(files(), [CHECKPOINT]);
        assert_eq!(directory.read_checkpoint().unwrap().unwrap(), b"first");
        // A process that was killed leaves one.
        fs::write(place.path().join(NEXT_CHECKPOINT), "half").unwrap();
        drop(directory.open().unwrap());
        assert_eq!(files(), [FILE, CHECKPOINT]);
    }

    #[test]
    fn lines_are_cut_out_by_their_numbers() {
        let lines = b"a\nbb\n\nc\n";
        assert_eq!(count(lines), 4);
        for (range, expected) in
            [(0..4, "a\nbb\n\nc\n"), (0..1, "a\n"), (1..3, "bb\n\n"), (3..4, "c\n"), (2..2, ""), (4..4, "")]
        {
            assert_eq!(part(lines, range.clone()), expected.as_bytes(), "{range:?}");
        }
    }
}
