//! Objects as they were last written, so that a page is joined by copying, and an object of its own is not even copied.
//!
//! A charge and an invoice have a version, which changes with all that they show; an event shows its charge or invoice
//! as it is now. What was written is valid as long as the version is the same. Bounded: an object has one place, and
//! whoever is written there next takes it over.

use bytes::Bytes;

/// Places of a kind. An object takes about a kibibyte, so a book keeps 8 MiB of each kind at most.
const PLACES: usize = 8_192;
/// The estimated size of an object whose size is unknown.
const GUESS: usize = 1_200;
/// The bytes before and after an object in its own answer.
const AROUND: (&[u8], &[u8]) = (b"{\"data\":", b"}");

/// The objects of one book as they were last written.
#[derive(Default)]
pub(crate) struct JsonCache {
    pub(crate) charges: ObjectCache,
    pub(crate) invoices: ObjectCache,
    pub(crate) events: ObjectCache,
    /// The answer about the account, and the version of what it shows.
    account: Option<(u64, Bytes)>,
}

/// Objects of one kind.
#[derive(Default)]
pub(crate) struct ObjectCache {
    places: Vec<Option<CachedObject>>,
    disabled: bool,
    /// An object is written here first: how long it gets is known only then, and it is kept for long.
    buffer: Vec<u8>,
}

struct CachedObject {
    no: u32,
    version: u64,
    /// The object's own answer.
    answer: Bytes,
}

impl CachedObject {
    fn object(&self) -> &[u8] {
        &self.answer[AROUND.0.len()..self.answer.len() - AROUND.1.len()]
    }
}

impl JsonCache {
    /// For one answer: everything is written anew.
    pub(crate) fn disabled() -> JsonCache {
        let nothing = || ObjectCache { disabled: true, ..ObjectCache::default() };
        JsonCache { charges: nothing(), invoices: nothing(), events: nothing(), account: None }
    }

    /// The answer about the account: written by `write` if it was not written under this version.
    pub(crate) fn account(&mut self, version: u64, write: impl FnOnce() -> Vec<u8>) -> Bytes {
        match &self.account {
            Some((known, answer)) if *known == version => answer.clone(),
            _ => self.account.insert((version, write().into())).1.clone(),
        }
    }
}

impl ObjectCache {
    /// Returns the number of bytes of an object, and one for the separator; an estimate if it is not kept.
    pub(crate) fn room(&self, no: u32) -> usize {
        match self.places.get(place(no)) {
            Some(Some(cached)) => cached.object().len() + 1,
            _ => GUESS,
        }
    }

    /// Adds an object to `body`: copied if it was written under this version, otherwise written by `write`.
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
            body.extend_from_slice(self.cached(no, version, write).object());
        }
    }

    /// An object's own answer, written with `write` if it was not written under this version.
    pub(crate) fn answer(&mut self, no: u32, version: u64, write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
        if self.disabled {
            let mut answer = Vec::with_capacity(GUESS);
            surround(&mut answer, write);
            answer.into()
        } else {
            self.cached(no, version, write).answer.clone()
        }
    }

    fn cached(&mut self, no: u32, version: u64, write: impl FnOnce(&mut Vec<u8>)) -> &CachedObject {
        let place = place(no);
        if place >= self.places.len() {
            // A book with few events needs few places.
            self.places.resize_with((place + 1).next_power_of_two(), || None);
        }
        let slot = &mut self.places[place];
        let is_valid = |cached: &&mut CachedObject| (cached.no, cached.version) == (no, version);
        if slot.as_mut().filter(is_valid).is_none() {
            self.buffer.clear();
            surround(&mut self.buffer, write);
            *slot = Some(CachedObject { no, version, answer: Bytes::copy_from_slice(&self.buffer) });
        }
        slot.as_ref().expect("it was written now, if not before")
    }
}

fn surround(answer: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    answer.extend_from_slice(AROUND.0);
    write(answer);
    answer.extend_from_slice(AROUND.1);
}

const fn place(no: u32) -> usize {
    no as usize % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(cache: &mut ObjectCache, no: u32, version: u64, writes: &str, expected: &str) {
        let write = |body: &mut Vec<u8>| body.extend_from_slice(writes.as_bytes());
        let mut body = b"[".to_vec();
        cache.add(&mut body, no, version, write);
        assert_eq!(String::from_utf8(body).unwrap(), format!("[{expected}"));
        assert_eq!(cache.answer(no, version, write), format!("{{\"data\":{expected}}}"));
        let mut disabled = JsonCache::disabled().charges;
        assert_eq!(disabled.answer(no, version, write), format!("{{\"data\":{writes}}}"));
    }

    #[test]
    fn what_was_written_is_copied_until_its_stamp_changes() {
        let mut cache = ObjectCache::default();
        check(&mut cache, 7, 1, "old", "old");
        check(&mut cache, 7, 1, "never written", "old");
        check(&mut cache, 7, 2, "new", "new");
        check(&mut cache, 7, 2, "never written", "new");
    }

    #[test]
    fn objects_that_share_a_place_are_not_confused() {
        let mut cache = ObjectCache::default();
        let other = 7 + u32::try_from(PLACES).unwrap();
        check(&mut cache, 7, 0, "seven", "seven");
        check(&mut cache, other, 0, "other", "other");
        check(&mut cache, 7, 0, "seven again", "seven again");
        assert!(cache.places.len() <= PLACES);
    }
}
