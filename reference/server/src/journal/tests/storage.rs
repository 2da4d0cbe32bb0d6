//! [`MemoryStorage`]: a storage in memory that fails on request and records each write.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard},
};

use redb::{Database, DatabaseError, StorageBackend};

use crate::journal::{
    overlay::Overlay,
    storage::{CACHE_BYTES, CheckpointWriter, DatabaseAccess, Storage, open_database},
};

/// An operation on the disk.
#[derive(Clone, Debug)]
pub(crate) enum DiskOperation {
    /// Bytes were written at an offset.
    Bytes(u64, Vec<u8>),
    /// The length of the file was set.
    Length(u64),
    /// All writes before it are durable.
    Sync,
    /// The file of the newest acknowledged commit was replaced by this content.
    Acknowledged(Vec<u8>),
}

fn disk_full_error() -> io::Error {
    io::Error::new(io::ErrorKind::StorageFull, "no space left on the test's disk")
}

/// The content and the settings of a [`MemoryStorage`].
#[derive(Debug, Default)]
pub(crate) struct MemoryState {
    /// The content of the database file.
    pub(crate) bytes: Vec<u8>,
    /// `true` if every write fails.
    pub(crate) writes_fail: bool,
    pub(crate) writes: Vec<DiskOperation>,
    pub(crate) checkpoint: Option<Vec<u8>>,
    /// The number of records between two checkpoints.
    pub(crate) checkpoint_after: Option<u64>,
    /// The file of the newest acknowledged commit.
    pub(crate) acknowledged: Vec<u8>,
    /// `true` if the database was removed while it is open.
    pub(crate) is_removed: bool,
    /// `true` if the undamaged part of a damaged journal is to be opened.
    pub(crate) recovers: bool,
    pub(crate) replacement: Option<MemoryStorage>,
    /// The damaged databases that were replaced.
    pub(crate) damaged_databases: Vec<Vec<u8>>,
}

impl MemoryState {
    /// Repeats an operation, without recording it.
    pub(crate) fn apply(&mut self, write: &DiskOperation) {
        match write {
            DiskOperation::Bytes(offset, data) => {
                let offset = usize::try_from(*offset).expect("the storage of a test is small");
                self.bytes[offset..offset + data.len()].copy_from_slice(data);
            }
            DiskOperation::Length(len) => {
                self.bytes.resize(usize::try_from(*len).expect("the storage of a test is small"), 0)
            }
            DiskOperation::Sync => {}
            DiskOperation::Acknowledged(bytes) => self.acknowledged.clone_from(bytes),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryStorage(Arc<Mutex<MemoryState>>);

impl MemoryStorage {
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> MemoryStorage {
        MemoryStorage(Arc::new(Mutex::new(MemoryState { bytes, ..MemoryState::default() })))
    }

    /// Creates an empty storage; see [`Storage::checkpoint_after`].
    pub(crate) fn with_checkpoints(checkpoint_after: Option<u64>) -> MemoryStorage {
        MemoryStorage(Arc::new(Mutex::new(MemoryState { checkpoint_after, ..MemoryState::default() })))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, MemoryState> {
        self.0.lock().expect("no test panics while it holds the lock")
    }

    fn apply_and_record(&self, write: DiskOperation) -> io::Result<()> {
        let mut state = self.state();
        if state.writes_fail {
            return Err(disk_full_error());
        }
        state.apply(&write);
        state.writes.push(write);
        Ok(())
    }
}

impl Storage for MemoryStorage {
    fn open(&self, access: DatabaseAccess) -> Result<Database, DatabaseError> {
        if self.state().is_removed {
            return Err(io::Error::from(io::ErrorKind::NotFound).into());
        }
        match access {
            DatabaseAccess::Create | DatabaseAccess::Write => {
                open_database(self.clone(), access, CACHE_BYTES)
            }
            DatabaseAccess::Verify | DatabaseAccess::Read => {
                open_database(Overlay::new(self.clone())?, access, CACHE_BYTES)
            }
            DatabaseAccess::Replacement => {
                let replacement = MemoryStorage::default();
                self.state().replacement = Some(replacement.clone());
                open_database(replacement, access, CACHE_BYTES)
            }
        }
    }

    fn exists(&self) -> bool {
        !self.state().bytes.is_empty()
    }

    fn check_in_place(&self) -> io::Result<()> {
        if self.state().is_removed { Err(io::Error::other("the test removed it")) } else { Ok(()) }
    }

    fn read_acknowledged(&self) -> io::Result<Vec<u8>> {
        Ok(self.state().acknowledged.clone())
    }

    fn write_acknowledged(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        if state.writes_fail {
            return Err(disk_full_error());
        }
        let offset = usize::try_from(offset).expect("the storage of a test is small");
        let length = state.acknowledged.len().max(offset + bytes.len());
        state.acknowledged.resize(length, 0);
        state.acknowledged[offset..offset + bytes.len()].copy_from_slice(bytes);
        let write = DiskOperation::Acknowledged(state.acknowledged.clone());
        state.writes.push(write);
        Ok(())
    }

    fn replace_damaged(&self) -> io::Result<String> {
        let replacement = self.state().replacement.take().expect("a replacement was written");
        let bytes = std::mem::take(&mut replacement.state().bytes);
        let damaged = std::mem::replace(&mut self.state().bytes, bytes);
        self.state().damaged_databases.push(damaged);
        Ok("memory.damaged".to_owned())
    }

    fn recovers(&self) -> bool {
        self.state().recovers
    }

    fn read_checkpoint(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.state().checkpoint.clone())
    }

    fn write_checkpoint(&self, write: &mut CheckpointWriter<'_>) -> io::Result<()> {
        let mut checkpoint = Vec::new();
        write(&mut checkpoint)?;
        self.state().checkpoint = Some(checkpoint);
        Ok(())
    }

    fn checkpoint_after(&self) -> Option<u64> {
        self.state().checkpoint_after
    }

    fn remove(&self) -> io::Result<()> {
        self.state().bytes.clear();
        Ok(())
    }

    fn name(&self) -> String {
        "memory".to_owned()
    }
}

impl StorageBackend for MemoryStorage {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).expect("the storage of a test is small");
        let state = self.state();
        let data = state.bytes.get(offset..offset + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(data);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.apply_and_record(DiskOperation::Length(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.apply_and_record(DiskOperation::Sync)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.apply_and_record(DiskOperation::Bytes(offset, data.to_vec()))
    }
}
