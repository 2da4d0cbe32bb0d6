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
pub(super) const DATABASE_FILE: &str = "world.redb";
/// The file of a database that is being written to replace a damaged one.
const REPLACEMENT_FILE: &str = "world.redb.next";
const ACKNOWLEDGED_FILE: &str = "world.acknowledged";
const CHECKPOINT_FILE: &str = "world.state";
const NEXT_CHECKPOINT_FILE: &str = "world.state.next";
/// The bytes that redb caches for the first world. Small, because a journal is appended to and read once.
pub(crate) const CACHE_BYTES: usize = 4 * 1_024 * 1_024;

/// Writes a whole checkpoint.
pub(crate) type CheckpointWriter<'a> = dyn FnMut(&mut dyn io::Write) -> io::Result<()> + 'a;

/// The way in which a database is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseAccess {
    /// For reading and writing, exclusively. Creates an empty database if there is none.
    Create,
    /// For reading and writing, exclusively. An error if there is no database.
    Write,
    /// For reading, after every page was verified. Excludes writers.
    Verify,
    /// For reading the undamaged pages of a database that may be damaged, or whose disk may be read-only.
    Read,
    /// A new, empty database that will replace a damaged one.
    Replacement,
}

/// A journal's storage.
pub(crate) trait Storage: Send + Sync {
    /// Opens a database.
    fn open(&self, access: DatabaseAccess) -> Result<Database, DatabaseError>;

    /// Returns `true` if there is a journal.
    fn exists(&self) -> bool;

    /// Checks that the open database is still the file that the next start will open, if the storage can identify files.
    ///
    /// # Errors
    ///
    /// The file was removed or replaced since it was opened, or cannot be examined.
    fn check_in_place(&self) -> io::Result<()>;

    /// Reads the file of the newest acknowledged commit; empty if there is none.
    fn read_acknowledged(&self) -> io::Result<Vec<u8>>;

    /// Writes a part of the file of the newest acknowledged commit. The write survives the end of the process, but not always
    /// a power cut.
    fn write_acknowledged(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Copies the damaged database, and then replaces it by the [replacement](DatabaseAccess::Replacement). Returns the
    /// name of the copy.
    fn replace_damaged(&self) -> io::Result<String>;

    /// Reads the checkpoint, if there is one.
    fn read_checkpoint(&self) -> io::Result<Option<Vec<u8>>>;

    /// Replaces the checkpoint atomically.
    fn write_checkpoint(&self, write: &mut CheckpointWriter<'_>) -> io::Result<()>;

    /// Returns the number of records between two checkpoints; `None` to neither read nor write any.
    fn checkpoint_after(&self) -> Option<u64>;

    /// Returns `true` if the undamaged part of a damaged journal is to be opened.
    fn recovers(&self) -> bool;

    /// Deletes the journal with all of its files.
    fn remove(&self) -> io::Result<()>;

    /// Returns the name of the storage for messages.
    fn name(&self) -> String;
}

/// The settings of a [`Directory`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirectoryOptions {
    /// The bytes that redb caches.
    pub(crate) cache_bytes: usize,
    /// See [`Storage::checkpoint_after`].
    pub(crate) checkpoint_after: Option<u64>,
    /// See [`Storage::recovers`].
    pub(crate) recover: bool,
}

/// A storage whose files are in one directory.
pub(crate) struct Directory {
    path: PathBuf,
    options: DirectoryOptions,
    /// The open file of the newest acknowledged commit.
    acknowledged: Mutex<Option<File>>,
    /// The device and inode of the open database.
    #[cfg(unix)]
    database_identity: Mutex<Option<(u64, u64)>>,
}

impl Directory {
    /// Returns the storage in a directory, which need not exist yet: [`Directory::create`] creates it.
    pub(crate) fn new(path: PathBuf, options: DirectoryOptions) -> Directory {
        Directory {
            path,
            options,
            acknowledged: Mutex::default(),
            #[cfg(unix)]
            database_identity: Mutex::default(),
        }
    }

    /// Creates the directory and its parents, on Unix accessible to the owner only. Leaves existing ones as they are.
    ///
    /// # Errors
    ///
    /// A directory cannot be created.
    pub(crate) fn create(&self) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        // The directory contains the API keys of the world.
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.path)
    }

    /// Returns `true` if the directory contains a world.
    pub(crate) fn has_world(path: &Path) -> bool {
        path.join(DATABASE_FILE).exists()
    }

    /// Deletes an incomplete checkpoint, because records may need its space.
    fn delete_incomplete_checkpoint(&self) {
        // A failure is ignored: the file has no data that is needed.
        let _ = fs::remove_file(self.path.join(NEXT_CHECKPOINT_FILE));
    }

    /// Opens a file of the directory. On Unix, a created one is accessible to the owner only.
    fn file(&self, name: &str, access: FileAccess) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(access != FileAccess::Read).create(access == FileAccess::Create);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(self.path.join(name))
    }

    /// Opens the file of the database for writing and stores its identity.
    fn backend(&self, access: FileAccess) -> Result<FileBackend, DatabaseError> {
        let file = self.file(DATABASE_FILE, access)?;
        #[cfg(unix)]
        {
            *lock(&self.database_identity) = Some(identity(&file.metadata()?));
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

/// Returns the device and inode of a file.
#[cfg(unix)]
fn identity(file: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    (file.dev(), file.ino())
}

/// Makes the entries of a directory durable.
fn sync_directory(path: &Path) -> io::Result<()> {
    // Only Unix opens a directory like a file.
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Storage for Directory {
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
                let database = open_database(self.backend(file_access)?, access, cache)?;
                if access == DatabaseAccess::Create {
                    sync_directory(&self.path)?;
                }
                // The open database is locked, so no other process is writing this checkpoint.
                self.delete_incomplete_checkpoint();
                Ok(database)
            }
            DatabaseAccess::Verify => {
                let base = FileBackend::new(self.file(DATABASE_FILE, FileAccess::Write)?)?;
                open_database(Overlay::with_locks(base)?, access, cache)
            }
            DatabaseAccess::Read => {
                let base = FileBackend::new(self.file(DATABASE_FILE, FileAccess::Read)?)?;
                open_database(Overlay::new(base)?, access, cache)
            }
            DatabaseAccess::Replacement => {
                let file = self.file(REPLACEMENT_FILE, FileAccess::Create)?;
                file.set_len(0)?;
                open_database(FileBackend::new(file)?, access, cache)
            }
        }
    }

    fn exists(&self) -> bool {
        Directory::has_world(&self.path)
    }

    #[cfg(unix)]
    fn check_in_place(&self) -> io::Result<()> {
        let current = fs::metadata(self.path.join(DATABASE_FILE));
        match current {
            Ok(current) if Some(identity(&current)) == *lock(&self.database_identity) => Ok(()),
            Ok(_) => Err(io::Error::other(format!(
                "`{DATABASE_FILE}` was replaced while the server runs; restore the original file, or restart the server"
            ))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let why = "was removed while the server runs; restore it, or restart the server";
                Err(io::Error::other(format!("`{DATABASE_FILE}` {why}")))
            }
            Err(error) => Err(error),
        }
    }

    #[cfg(not(unix))]
    fn check_in_place(&self) -> io::Result<()> {
        // Stable Rust has no identity of a file on other systems, so a replaced file is not detected.
        Ok(())
    }

    fn read_acknowledged(&self) -> io::Result<Vec<u8>> {
        match fs::read(self.path.join(ACKNOWLEDGED_FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            read => read,
        }
    }

    fn write_acknowledged(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        use std::io::{Seek as _, SeekFrom, Write as _};
        let mut acknowledged = lock(&self.acknowledged);
        let file = match &mut *acknowledged {
            Some(file) => file,
            closed => closed.insert(self.file(ACKNOWLEDGED_FILE, FileAccess::Create)?),
        };
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)
    }

    fn replace_damaged(&self) -> io::Result<String> {
        let is_free = |n: &u32| !self.path.join(format!("{DATABASE_FILE}.damaged-{n}")).exists();
        let n = (1..).find(is_free).expect("a directory has fewer than 2^32 files, so a number is free");
        let damaged_name = format!("{DATABASE_FILE}.damaged-{n}");
        // A copy and not a rename, so that the database exists at every moment.
        fs::copy(self.path.join(DATABASE_FILE), self.path.join(&damaged_name))?;
        File::open(self.path.join(&damaged_name))?.sync_all()?;
        fs::rename(self.path.join(REPLACEMENT_FILE), self.path.join(DATABASE_FILE))?;
        sync_directory(&self.path)?;
        Ok(damaged_name)
    }

    fn remove(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.path)?;
        self.path.parent().map_or(Ok(()), sync_directory)
    }

    fn read_checkpoint(&self) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.path.join(CHECKPOINT_FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    fn write_checkpoint(&self, write: &mut CheckpointWriter<'_>) -> io::Result<()> {
        let mut file = self.file(NEXT_CHECKPOINT_FILE, FileAccess::Create)?;
        file.set_len(0)?;
        let written = write(&mut file).and_then(|()| file.sync_all()).and_then(|()| {
            fs::rename(self.path.join(NEXT_CHECKPOINT_FILE), self.path.join(CHECKPOINT_FILE))?;
            sync_directory(&self.path)
        });
        if written.is_err() {
            self.delete_incomplete_checkpoint();
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

/// Opens the database in a storage backend, or creates it if the backend is empty.
pub(crate) fn open_database(
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
    fn an_incomplete_checkpoint_is_deleted() {
        let temp_dir = TempDir::new().unwrap();
        let options =
            DirectoryOptions { cache_bytes: CACHE_BYTES, checkpoint_after: Some(1), recover: false };
        let directory = Directory::new(temp_dir.path().to_owned(), options);
        directory.write_checkpoint(&mut |file| file.write_all(b"first")).unwrap();
        let files = || {
            let mut names: Vec<_> =
                fs::read_dir(temp_dir.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let failed = directory.write_checkpoint(&mut |file| {
            file.write_all(b"half of the sec")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(files(), [CHECKPOINT_FILE]);
        assert_eq!(directory.read_checkpoint().unwrap().unwrap(), b"first");
        // A killed process leaves an incomplete checkpoint behind.
        fs::write(temp_dir.path().join(NEXT_CHECKPOINT_FILE), "half").unwrap();
        drop(directory.open(DatabaseAccess::Create).unwrap());
        assert_eq!(files(), [DATABASE_FILE, CHECKPOINT_FILE]);
    }
}
