//! The bytes of answers that clients have yet to take, so that clients who take none cannot fill the memory.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// An answer up to this size is not counted: there is at most one for each connection.
const SMALL_BYTES: usize = 16 * 1_024;

/// Room for the answers that are on their way.
pub(crate) struct InFlight {
    room: Arc<Semaphore>,
    most: u32,
}

/// Bytes with their room, which is given back when the last of them is gone.
struct HeldBytes {
    bytes: Bytes,
    _room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl InFlight {
    /// Room for so many bytes.
    pub(crate) fn new(bytes: usize) -> InFlight {
        let most = u32::try_from(bytes.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        InFlight { room: Arc::new(Semaphore::new(most as usize)), most }
    }

    /// The same bytes, counted until the last of them is gone; `None` if there is no room for them. Bytes that
    /// would never fit take all the room.
    pub(crate) fn hold(&self, bytes: Bytes) -> Option<Bytes> {
        if bytes.len() <= SMALL_BYTES {
            return Some(bytes);
        }
        let needed = u32::try_from(bytes.len()).unwrap_or(u32::MAX).min(self.most);
        let room = Arc::clone(&self.room).try_acquire_many_owned(needed).ok()?;
        Some(Bytes::from_owner(HeldBytes { bytes, _room: room }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(len: usize) -> Bytes {
        vec![b'x'; len].into()
    }

    #[test]
    fn room_is_given_back_with_the_last_byte() {
        let room = InFlight::new(3 * SMALL_BYTES);
        let first = room.hold(bytes(2 * SMALL_BYTES)).expect("there is room");
        let part = first.slice(1..);
        drop(first);
        assert_eq!(room.hold(bytes(2 * SMALL_BYTES)), None, "a part of the first is still there");
        assert!(room.hold(bytes(SMALL_BYTES)).is_some(), "a small one is not counted");
        drop(part);
        assert!(room.hold(bytes(2 * SMALL_BYTES)).is_some());
    }

    #[test]
    fn an_answer_that_would_never_fit_goes_alone() {
        let room = InFlight::new(2 * SMALL_BYTES);
        let all = room.hold(bytes(9 * SMALL_BYTES)).expect("nobody else is there");
        assert_eq!(room.hold(bytes(SMALL_BYTES + 1)), None);
        assert_eq!(all.len(), 9 * SMALL_BYTES);
    }
}
