//! A storage overlay that keeps all writes in memory: redb writes when it opens a database, even one that is only read.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    io,
    ops::Bound,
    sync::{Mutex, MutexGuard, PoisonError},
};

use redb::{BackendError, StorageBackend};

/// The size of a block in bytes.
const BLOCK: u64 = 4 * 1_024;

/// A storage (the base), and the blocks written over it in memory.
#[derive(Debug)]
pub(crate) struct Overlay<B> {
    base: B,
    state: Mutex<OverlayState>,
    /// `true` if locks are passed on to the base, so that it excludes writers.
    locks_base: bool,
}

#[derive(Debug)]
struct OverlayState {
    len: u64,
    blocks: BTreeMap<u64, Vec<u8>>,
}

impl<B: StorageBackend> Overlay<B> {
    pub(crate) fn new(base: B) -> io::Result<Overlay<B>> {
        let len = base.len()?;
        Ok(Overlay {
            base,
            state: Mutex::new(OverlayState { len, blocks: BTreeMap::new() }),
            locks_base: false,
        })
    }

    /// Creates an overlay that locks the base, which excludes other writers.
    pub(crate) fn with_locks(base: B) -> io::Result<Overlay<B>> {
        Ok(Overlay { locks_base: true, ..Overlay::new(base)? })
    }

    fn state(&self) -> MutexGuard<'_, OverlayState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a block of the base; zeros after its end.
    fn base_block(&self, n: u64) -> io::Result<Vec<u8>> {
        let (start, end) = (n * BLOCK, self.base.len()?);
        let mut block = vec![0; BLOCK as usize];
        let available = end.saturating_sub(start).min(BLOCK) as usize;
        if available > 0 {
            self.base.read(start, &mut block[..available])?;
        }
        Ok(block)
    }
}

impl<B: StorageBackend> StorageBackend for Overlay<B> {
    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        if self.locks_base { self.base.try_lock_range(start, end) } else { Err(BackendError::Unsupported) }
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        if self.locks_base { self.base.unlock_range(start, end) } else { Err(BackendError::Unsupported) }
    }

    fn close(&self) -> io::Result<()> {
        self.base.close()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.state().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state();
        let mut position = offset;
        let end = offset + out.len() as u64;
        let is_untouched = state.blocks.range(offset / BLOCK..end.div_ceil(BLOCK)).next().is_none();
        if is_untouched && end <= self.base.len()? {
            return self.base.read(offset, out);
        }
        while position < end {
            let (n, within) = (position / BLOCK, (position % BLOCK) as usize);
            let length = (BLOCK as usize - within).min((end - position) as usize);
            let target = &mut out[(position - offset) as usize..][..length];
            match state.blocks.get(&n) {
                Some(block) => target.copy_from_slice(&block[within..within + length]),
                None => target.copy_from_slice(&self.base_block(n)?[within..within + length]),
            }
            position += length as u64;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state();
        // A part that is truncated and grows again is zeros. redb changes the length by whole pages.
        for n in len.div_ceil(BLOCK)..state.len.div_ceil(BLOCK) {
            state.blocks.insert(n, vec![0; BLOCK as usize]);
        }
        state.len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        let mut position = offset;
        let end = offset + data.len() as u64;
        while position < end {
            let (n, within) = (position / BLOCK, (position % BLOCK) as usize);
            let length = (BLOCK as usize - within).min((end - position) as usize);
            let block = match state.blocks.entry(n) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(self.base_block(n)?),
            };
            block[within..within + length].copy_from_slice(&data[(position - offset) as usize..][..length]);
            position += length as u64;
        }
        state.len = state.len.max(end);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use redb::backends::InMemoryBackend;

    use super::*;

    #[test]
    fn writes_can_be_read_and_the_base_is_unchanged() {
        let base = InMemoryBackend::new();
        base.set_len(10_000).unwrap();
        base.write(0, &[1; 10_000]).unwrap();
        let overlay = Overlay::new(base).unwrap();
        overlay.write(4_000, &[2; 5_000]).unwrap();
        overlay.set_len(12_000).unwrap();
        let mut out = vec![9; 12_000];
        overlay.read(0, &mut out).unwrap();
        let expected = [vec![1; 4_000], vec![2; 5_000], vec![1; 1_000], vec![0; 2_000]].concat();
        assert!(out == expected);
        let mut out = vec![9; 10_000];
        overlay.base.read(0, &mut out).unwrap();
        assert!(out == vec![1; 10_000]);
    }
}
