//! [`JsonCache`]: the serialized objects of a book, so that a page is built by copying and a single object is not copied.
//!
//! The version of a charge or an invoice changes whenever its JSON changes. An event contains its charge or invoice in
//! the current state, so it has that object's version. Cached JSON is valid while the version is the same. The cache is
//! bounded: each object has one slot, shared with other objects.

use bytes::Bytes;

/// The number of slots for each kind of object. An object has about one KiB, so a book caches at most 8 MiB of a kind.
const SLOTS: usize = 8_192;
/// The estimated size of an object whose size is unknown.
const SIZE_ESTIMATE: usize = 1_200;
/// The bytes before and after an object in a response with this object alone.
const ENVELOPE: (&[u8], &[u8]) = (b"{\"data\":", b"}");

/// The serialized objects of one book.
#[derive(Default)]
pub(crate) struct JsonCache {
    pub(crate) charges: ObjectCache,
    pub(crate) invoices: ObjectCache,
    pub(crate) events: ObjectCache,
    /// The version of the account, and the body of the response about it.
    account: Option<(u64, Bytes)>,
}

/// Objects of one kind.
#[derive(Default)]
pub(crate) struct ObjectCache {
    slots: Vec<Option<CachedObject>>,
    disabled: bool,
    /// The buffer in which an object is written before it is stored in its exact size.
    buffer: Vec<u8>,
}

struct CachedObject {
    no: u32,
    version: u64,
    /// The body of the response with this object alone.
    response: Bytes,
}

impl CachedObject {
    fn object(&self) -> &[u8] {
        &self.response[ENVELOPE.0.len()..self.response.len() - ENVELOPE.1.len()]
    }
}

impl JsonCache {
    /// Creates a cache that stores no objects.
    pub(crate) fn disabled() -> JsonCache {
        let disabled = || ObjectCache { disabled: true, ..ObjectCache::default() };
        JsonCache { charges: disabled(), invoices: disabled(), events: disabled(), account: None }
    }

    /// Returns the body of the response about the account, written by `write` unless this version is cached.
    pub(crate) fn account(&mut self, version: u64, write: impl FnOnce() -> Vec<u8>) -> Bytes {
        match &self.account {
            Some((cached_version, response)) if *cached_version == version => response.clone(),
            _ => self.account.insert((version, write().into())).1.clone(),
        }
    }
}

impl ObjectCache {
    /// Returns the number of bytes of an object and a separator; an estimate if it is not cached.
    pub(crate) fn size_in_page(&self, no: u32) -> usize {
        match self.slots.get(slot_index(no)) {
            Some(Some(cached)) => cached.object().len() + 1,
            _ => SIZE_ESTIMATE,
        }
    }

    /// Appends an object to `body`: copied if this version is cached, otherwise written by `write`.
    pub(crate) fn add(
        &mut self,
        body: &mut Vec<u8>,
        no: u32,
        version: u64,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        if self.disabled {
            write(body);
        } else {
            body.extend_from_slice(self.cached_object(no, version, write).object());
        }
    }

    /// Returns the body of the response with one object, written by `write` unless this version is cached.
    pub(crate) fn response(&mut self, no: u32, version: u64, write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
        if self.disabled {
            let mut response = Vec::with_capacity(SIZE_ESTIMATE);
            write_envelope(&mut response, write);
            response.into()
        } else {
            self.cached_object(no, version, write).response.clone()
        }
    }

    fn cached_object(&mut self, no: u32, version: u64, write: impl FnOnce(&mut Vec<u8>)) -> &CachedObject {
        let index = slot_index(no);
        if index >= self.slots.len() {
            // Grown on demand, because most books are small.
            self.slots.resize_with((index + 1).next_power_of_two(), || None);
        }
        let slot = &mut self.slots[index];
        let is_valid = |cached: &&mut CachedObject| (cached.no, cached.version) == (no, version);
        if slot.as_mut().filter(is_valid).is_none() {
            self.buffer.clear();
            write_envelope(&mut self.buffer, write);
            *slot = Some(CachedObject { no, version, response: Bytes::copy_from_slice(&self.buffer) });
        }
        slot.as_ref().expect("the object was written above or is cached")
    }
}

/// Appends the body of a response with one object, which `write` appends.
fn write_envelope(response: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    response.extend_from_slice(ENVELOPE.0);
    write(response);
    response.extend_from_slice(ENVELOPE.1);
}

const fn slot_index(no: u32) -> usize {
    no as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads an object whose current JSON is `current` and checks that the cache returns `expected`, and a disabled
    /// cache `current`.
    #[track_caller]
    fn check(cache: &mut ObjectCache, no: u32, version: u64, current: &str, expected: &str) {
        let write = |body: &mut Vec<u8>| body.extend_from_slice(current.as_bytes());
        let mut body = b"[".to_vec();
        cache.add(&mut body, no, version, write);
        assert_eq!(String::from_utf8(body).unwrap(), format!("[{expected}"));
        assert_eq!(cache.response(no, version, write), format!("{{\"data\":{expected}}}"));
        let mut disabled = JsonCache::disabled().charges;
        assert_eq!(disabled.response(no, version, write), format!("{{\"data\":{current}}}"));
    }

    #[test]
    fn cached_json_is_copied_until_its_version_changes() {
        let mut cache = ObjectCache::default();
        check(&mut cache, 7, 1, "old", "old");
        check(&mut cache, 7, 1, "never written", "old");
        check(&mut cache, 7, 2, "new", "new");
        check(&mut cache, 7, 2, "never written", "new");
    }

    #[test]
    fn objects_that_share_a_slot_are_not_confused() {
        let mut cache = ObjectCache::default();
        let other = 7 + u32::try_from(SLOTS).unwrap();
        check(&mut cache, 7, 0, "seven", "seven");
        check(&mut cache, other, 0, "other", "other");
        check(&mut cache, 7, 0, "seven again", "seven again");
        assert!(cache.slots.len() <= SLOTS);
    }
}
