//! The storage of a journal: a directory with the database, the file of the newest acknowledged commit and the checkpoint.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use redb::{Builder, Database, DatabaseError, StorageBackend, backends::FileBackend};

use super::overlay::Overlay;

/// The file of the database.
pub(super) const FILE: &str = "world.redb";
/// A database that is being written in place of a damaged one.
const NEXT_FILE: &str = "world.redb.next";
const ACKNOWLEDGED: &str = "world.acknowledged";
const CHECKPOINT: &str = "world.state";
const NEXT_CHECKPOINT: &str = "world.state.next";
/// Bytes that redb keeps in memory of the first world. A journal is written at its end and read once.
pub(crate) const CACHE_BYTES: usize = 4 * 1_024 * 1_024;

/// Writes all of something.
pub(crate) type WriteTo<'a> = dyn FnMut(&mut dyn io::Write) -> io::Result<()> + 'a;

/// The databases of a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseAccess {
    /// For reading and writing, by nobody else at the same time. Creates an empty database if there is none.
    Create,
    /// The same, and an error if there is no database.
    Write,
    /// For reading, after every page was verified. Nothing is written, and nobody else writes meanwhile.
    Verify,
    /// For reading as far as it goes, although nothing can be written now, or some pages are damaged.
    Read,
    /// The database that takes the place of a damaged one, empty at first.
    Replacement,
}

/// A journal's storage.
pub(crate) trait Medium: Send + Sync {
    /// Opens a database.
    fn open(&self, access: DatabaseAccess) -> Result<Database, DatabaseError>;

    /// Returns `true` if a journal was begun.
    fn exists(&self) -> bool;

    /// Returns `true` if the next start will find what is written now.
    ///
    /// # Errors
    ///
    /// The database was removed or replaced while it is open.
    fn check_in_place(&self) -> io::Result<()>;

    /// The file of the newest acknowledged commit; empty if there is none.
    fn read_acknowledged(&self) -> io::Result<Vec<u8>>;

    /// Writes a part of that file. It survives the end of the process; a power cut may lose it.
    fn write_acknowledged(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Puts the [replacement](DatabaseAccess::Replacement) in place of the damaged database, which is kept. Returns its new name.
    fn replace_damaged(&self) -> io::Result<String>;

    /// The checkpoint, if there is one.
    fn read_checkpoint(&self) -> io::Result<Option<Vec<u8>>>;

    /// Puts one in place of the last one: all that is written, or nothing.
    fn write_checkpoint(&self, write: &mut WriteTo<'_>) -> io::Result<()>;

    /// How many records may follow the last one before the next one is written; `None` to read and write none.
    fn checkpoint_after(&self) -> Option<u64>;

    /// Returns `true` if a damaged journal is opened as far as it is sound.
    fn recovers(&self) -> bool;

    /// Takes away what is there.
    fn remove(&self) -> io::Result<()>;

    /// The name in messages.
    fn name(&self) -> String;
}

/// The settings with which a directory is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirectoryOptions {
    /// Bytes that redb keeps in memory.
    pub(crate) cache_bytes: usize,
    pub(crate) checkpoint_after: Option<u64>,
    /// Opens a damaged journal as far as it is sound.
    pub(crate) recover: bool,
}

/// A directory of its own.
pub(crate) struct Directory {
    path: PathBuf,
    options: DirectoryOptions,
    /// The file of the newest acknowledged commit, once it is open.
    acknowledged: Mutex<Option<File>>,
    /// The identity of the open database in the file system.
    #[cfg(unix)]
    opened: Mutex<Option<(u64, u64)>>,
}

impl Directory {
    /// A directory that is created when it is opened.
    pub(crate) fn at(path: PathBuf, options: DirectoryOptions) -> Directory {
        Directory {
            path,
            options,
            acknowledged: Mutex::default(),
            #[cfg(unix)]
            opened: Mutex::default(),
        }
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

    /// Returns `true` if it holds a world.
    pub(crate) fn has_world(path: &Path) -> bool {
        path.join(FILE).exists()
    }

    /// Takes away one that was not written to its end: records may need its room.
    fn drop_next_checkpoint(&self) {
        // Where it can't be taken away, or is not there, nothing is lost.
        let _ = fs::remove_file(self.path.join(NEXT_CHECKPOINT));
    }

    fn file(&self, name: &str, access: FileAccess) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(access != FileAccess::Read).create(access == FileAccess::Create);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(self.path.join(name))
    }

    /// The backend of the database, which is written to from now on.
    fn backend(&self, access: FileAccess) -> Result<FileBackend, DatabaseError> {
        let file = self.file(FILE, access)?;
        #[cfg(unix)]
        {
            *lock(&self.opened) = Some(identity(&file.metadata()?));
        }
        FileBackend::new(file)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FileAccess {
    Read,
    Write,
    Create,
}

/// The device and the number of a file.
#[cfg(unix)]
fn identity(file: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    (file.dev(), file.ino())
}

/// So that what stands in a directory is as it was after a power cut.
fn sync_directory(path: &Path) -> io::Result<()> {
    // Elsewhere a directory can't be opened.
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Medium for Directory {
    fn open(&self, access: DatabaseAccess) -> Result<Database, DatabaseError> {
        let cache = self.options.cache_bytes;
        match access {
            DatabaseAccess::Create | DatabaseAccess::Write => {
                let file_access = if access == DatabaseAccess::Create {
                    self.create()?;
                    FileAccess::Create
                } else {
                    FileAccess::Write
                };
                let database = database(self.backend(file_access)?, access, cache)?;
                if access == DatabaseAccess::Create {
                    sync_directory(&self.path)?;
                }
                // Nobody else writes one now.
                self.drop_next_checkpoint();
                Ok(database)
            }
            DatabaseAccess::Verify => {
                let below = FileBackend::new(self.file(FILE, FileAccess::Write)?)?;
                database(Overlay::locking(below)?, access, cache)
            }
            DatabaseAccess::Read => {
                let below = FileBackend::new(self.file(FILE, FileAccess::Read)?)?;
                database(Overlay::new(below)?, access, cache)
            }
            DatabaseAccess::Replacement => {
                let file = self.file(NEXT_FILE, FileAccess::Create)?;
                file.set_len(0)?;
                database(FileBackend::new(file)?, access, cache)
            }
        }
    }

    fn exists(&self) -> bool {
        Directory::has_world(&self.path)
    }

    #[cfg(unix)]
    fn check_in_place(&self) -> io::Result<()> {
        let there = fs::metadata(self.path.join(FILE));
        match there {
            Ok(there) if Some(identity(&there)) == *lock(&self.opened) => Ok(()),
            Ok(_) => Err(io::Error::other(format!(
                "`{FILE}` was replaced while the server runs; put the first one back, or start the server again"
            ))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let why = "was removed while the server runs; put it back, or start the server again";
                Err(io::Error::other(format!("`{FILE}` {why}")))
            }
            Err(error) => Err(error),
        }
    }

    #[cfg(not(unix))]
    fn check_in_place(&self) -> io::Result<()> {
        // An open file can't be removed there.
        Ok(())
    }

    fn read_acknowledged(&self) -> io::Result<Vec<u8>> {
        match fs::read(self.path.join(ACKNOWLEDGED)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            read => read,
        }
    }

    fn write_acknowledged(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        use std::io::{Seek as _, SeekFrom, Write as _};
        let mut open = lock(&self.acknowledged);
        let file = match &mut *open {
            Some(file) => file,
            none => none.insert(self.file(ACKNOWLEDGED, FileAccess::Create)?),
        };
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)
    }

    fn replace_damaged(&self) -> io::Result<String> {
        let free = |n: &u32| !self.path.join(format!("{FILE}.damaged-{n}")).exists();
        let n = (1..).find(free).expect("a directory has fewer than 2^32 files");
        let aside = format!("{FILE}.damaged-{n}");
        // A copy, so that there is a database at every moment.
        fs::copy(self.path.join(FILE), self.path.join(&aside))?;
        File::open(self.path.join(&aside))?.sync_all()?;
        fs::rename(self.path.join(NEXT_FILE), self.path.join(FILE))?;
        sync_directory(&self.path)?;
        Ok(aside)
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
        let mut file = self.file(NEXT_CHECKPOINT, FileAccess::Create)?;
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
        self.options.checkpoint_after
    }

    fn recovers(&self) -> bool {
        self.options.recover
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }
}

/// A database in this storage.
pub(crate) fn database(
    backend: impl StorageBackend,
    access: DatabaseAccess,
    cache_bytes: usize,
) -> Result<Database, DatabaseError> {
    let mut builder = Builder::new();
    builder.set_cache_size(cache_bytes).set_check_integrity_on_open(access == DatabaseAccess::Verify);
    builder.create_with_backend(backend)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn a_checkpoint_that_can_not_be_written_takes_no_room() {
        let place = TempDir::new().unwrap();
        let options =
            DirectoryOptions { cache_bytes: CACHE_BYTES, checkpoint_after: Some(1), recover: false };
        let directory = Directory::at(place.path().to_owned(), options);
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
        drop(directory.open(DatabaseAccess::Create).unwrap());
        assert_eq!(files(), [FILE, CHECKPOINT]);
    }
}
