//! Objects as they were last written, so that a page is joined by copying, and an object of its own is not even copied.
//!
//! A charge and an invoice have a stamp, which changes with all that they show; an event shows its charge or invoice
//! as it is now. What was written is valid as long as the stamp is the same. Bounded: an object has one place, and
//! whoever is written there next takes it over.

use bytes::Bytes;

/// Places of a kind. An object takes about a kibibyte, so a book keeps 8 MiB of each kind at most.
const PLACES: usize = 8_192;
/// What an object takes if nobody knows better.
const GUESS: usize = 1_200;
/// What stands before an object in the answer of its own, and behind it.
const AROUND: (&[u8], &[u8]) = (b"{\"data\":", b"}");

/// The objects of one book as they were last written.
#[derive(Default)]
pub(crate) struct Fragments {
    pub(super) charges: Kept,
    pub(super) invoices: Kept,
    pub(super) events: Kept,
    /// The answer about the account, if nothing that it shows has changed since.
    account: Option<Bytes>,
}

/// Objects of one kind.
#[derive(Default)]
pub(super) struct Kept {
    places: Vec<Option<Fragment>>,
    nothing: bool,
    /// An object is written here first: how long it gets is known only then, and it is kept for long.
    sheet: Vec<u8>,
}

struct Fragment {
    no: u32,
    stamp: u64,
    /// The object's own answer.
    answer: Bytes,
}

impl Fragment {
    fn object(&self) -> &[u8] {
        &self.answer[AROUND.0.len()..self.answer.len() - AROUND.1.len()]
    }
}

impl Fragments {
    /// For one answer: everything is written anew.
    pub(crate) fn unkept() -> Fragments {
        let nothing = || Kept { nothing: true, ..Kept::default() };
        Fragments { charges: nothing(), invoices: nothing(), events: nothing(), account: None }
    }

    /// The answer about the account, written by `write` if it was not before.
    pub(crate) fn account(&mut self, write: impl FnOnce() -> Vec<u8>) -> Bytes {
        self.account.get_or_insert_with(|| write().into()).clone()
    }

    /// Something that the answer about the account shows has changed.
    pub(crate) fn forget_account(&mut self) {
        self.account = None;
    }
}

impl Kept {
    /// How many bytes an object takes, and one for what stands behind it; a guess if it is not kept.
    pub(super) fn room(&self, no: u32) -> usize {
        match self.places.get(place(no)) {
            Some(Some(fragment)) => fragment.object().len() + 1,
            _ => GUESS,
        }
    }

    /// Adds an object to `body`: copied if it was written under this stamp, otherwise written by `write`.
    pub(super) fn add(&mut self, body: &mut Vec<u8>, no: u32, stamp: u64, write: impl FnOnce(&mut Vec<u8>)) {
        if self.nothing {
            write(body);
        } else {
            body.extend_from_slice(self.fragment(no, stamp, write).object());
        }
    }

    /// An object's own answer, written with `write` if it was not written under this stamp.
    pub(super) fn answer(&mut self, no: u32, stamp: u64, write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
        if self.nothing {
            let mut answer = Vec::with_capacity(GUESS);
            surround(&mut answer, write);
            answer.into()
        } else {
            self.fragment(no, stamp, write).answer.clone()
        }
    }

    fn fragment(&mut self, no: u32, stamp: u64, write: impl FnOnce(&mut Vec<u8>)) -> &Fragment {
        let place = place(no);
        if place >= self.places.len() {
            // A book with few events needs few places.
            self.places.resize_with((place + 1).next_power_of_two(), || None);
        }
        let slot = &mut self.places[place];
        let is_valid = |fragment: &&mut Fragment| (fragment.no, fragment.stamp) == (no, stamp);
        if slot.as_mut().filter(is_valid).is_none() {
            self.sheet.clear();
            surround(&mut self.sheet, write);
            *slot = Some(Fragment { no, stamp, answer: Bytes::copy_from_slice(&self.sheet) });
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
    fn check(kept: &mut Kept, no: u32, stamp: u64, writes: &str, expected: &str) {
        let write = |body: &mut Vec<u8>| body.extend_from_slice(writes.as_bytes());
        let mut body = b"[".to_vec();
        kept.add(&mut body, no, stamp, write);
        assert_eq!(String::from_utf8(body).unwrap(), format!("[{expected}"));
        assert_eq!(kept.answer(no, stamp, write), format!("{{\"data\":{expected}}}"));
        let mut unkept = Fragments::unkept().charges;
        assert_eq!(unkept.answer(no, stamp, write), format!("{{\"data\":{writes}}}"));
    }

    #[test]
    fn what_was_written_is_copied_until_its_stamp_changes() {
        let mut kept = Kept::default();
        check(&mut kept, 7, 1, "old", "old");
        check(&mut kept, 7, 1, "never written", "old");
        check(&mut kept, 7, 2, "new", "new");
        check(&mut kept, 7, 2, "never written", "new");
    }

    #[test]
    fn objects_that_share_a_place_are_not_confused() {
        let mut kept = Kept::default();
        let other = 7 + u32::try_from(PLACES).unwrap();
        check(&mut kept, 7, 0, "seven", "seven");
        check(&mut kept, other, 0, "other", "other");
        check(&mut kept, 7, 0, "seven again", "seven again");
        assert!(kept.places.len() <= PLACES);
    }
}
