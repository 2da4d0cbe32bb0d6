//! Objects as they were last written, so that a page is joined by copying.
//!
//! A charge and an invoice have a stamp, which changes with all that they show; an event shows its charge or invoice
//! as it is now. What was written is valid as long as the stamp is the same. Bounded: an object has one place, and
//! whoever is written there next takes it over.

/// Places of a kind. An object takes about a kibibyte, so a book keeps 8 MiB of each kind at most.
const PLACES: usize = 8_192;
/// What an object takes if nobody knows better.
const GUESS: usize = 1_200;

/// The objects of one book as they were last written.
#[derive(Default)]
pub(crate) struct Fragments {
    pub(super) charges: Kept,
    pub(super) invoices: Kept,
    pub(super) events: Kept,
    /// The answer about the account, if nothing that it shows has changed since.
    account: Option<Box<[u8]>>,
}

/// Objects of one kind.
#[derive(Default)]
pub(super) struct Kept {
    places: Vec<Option<Fragment>>,
    nothing: bool,
}

struct Fragment {
    no: u32,
    stamp: u64,
    text: Box<[u8]>,
}

impl Fragments {
    /// For one answer: everything is written anew.
    pub(crate) fn unkept() -> Fragments {
        let nothing = || Kept { nothing: true, ..Kept::default() };
        Fragments { charges: nothing(), invoices: nothing(), events: nothing(), account: None }
    }

    /// The answer about the account: copied if it was written before, otherwise written by `write`.
    pub(crate) fn account(&mut self, write: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
        self.account.get_or_insert_with(|| write().into()).to_vec()
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
            Some(Some(fragment)) => fragment.text.len() + 1,
            _ => GUESS,
        }
    }

    /// Adds an object to `body`: copied if it was written under this stamp, otherwise written by `write`.
    pub(super) fn add(&mut self, body: &mut Vec<u8>, no: u32, stamp: u64, write: impl FnOnce(&mut Vec<u8>)) {
        if self.nothing {
            return write(body);
        }
        let place = place(no);
        if place >= self.places.len() {
            // A book with few events needs few places.
            self.places.resize_with((place + 1).next_power_of_two(), || None);
        }
        let slot = &mut self.places[place];
        if let Some(fragment) = slot
            && (fragment.no, fragment.stamp) == (no, stamp)
        {
            body.extend_from_slice(&fragment.text);
            return;
        }
        let start = body.len();
        write(body);
        *slot = Some(Fragment { no, stamp, text: body[start..].into() });
    }
}

const fn place(no: u32) -> usize {
    no as usize % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kept: &mut Kept, no: u32, stamp: u64, writes: &str, expected: &str) {
        let mut body = b"[".to_vec();
        kept.add(&mut body, no, stamp, |body| body.extend_from_slice(writes.as_bytes()));
        assert_eq!(String::from_utf8(body).unwrap(), format!("[{expected}"));
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
