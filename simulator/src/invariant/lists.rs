//! Checks of lists and objects as a client reads them at the end: pages, filters, and isolation of modes.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
};

use bytes::Bytes;
use reference_core::event::EventType;

use super::{
    BookReading, Findings, Invariant, Reader,
    diff::{differences, invariant_of_page},
    page::{CHARGE_STATUSES, INVOICE_STATUSES, ListRequest, public_ids},
};
use crate::{
    model::{Book, Ids, List, ObjectContext, Presentation, Subject},
    record::BookId,
};

/// The number of objects of each kind that are also read individually.
const SINGLES: usize = 2;
/// The maximum length of lists that are read with one record per page, because that is expensive.
const SINGLE_RECORDS_MAX: usize = 60;

/// The tolerance for block counts: a chain may have grown by any number.
const ANY_BLOCKS: u64 = u32::MAX as u64;

/// A book of the model, and the circumstances in which its lists are read.
pub struct ModelBook<'a> {
    /// The book.
    pub book: &'a Book,
    /// The public ids of its objects.
    pub ids: &'a Ids,
    /// The time and the context of the reading.
    pub reading: BookReading<'a>,
}

/// Checks every page of lists with every filter, single objects, and the isolation from other books.
pub fn judge_lists(reader: &mut impl Reader, books: &BTreeMap<BookId, ModelBook<'_>>) -> Findings {
    let mut findings = Findings::default();
    for (id, book) in books {
        let rows = List::ALL.map(|list| vec![OnceCell::new(); book.book.length(list)]);
        let mut judge = Judge { findings: &mut findings, reader, id: *id, book, rows };
        judge.filters();
        judge.pages();
        judge.check_single_reads();
        for (_, other) in books.iter().filter(|(other, _)| *other != id) {
            judge.check_isolation(other.ids);
        }
    }
    findings
}

/// The checks with the key of one book.
struct Judge<'a, R> {
    findings: &'a mut Findings,
    reader: &'a mut R,
    id: BookId,
    book: &'a ModelBook<'a>,
    /// The expected records of each list, cached.
    rows: [Vec<OnceCell<String>>; List::ALL.len()],
}

/// Returns the expected record of a list.
fn row(of: &ModelBook<'_>, list: List, no: usize) -> String {
    let ModelBook { book, ids, reading } = of;
    let context = ObjectContext { ids, public_url: reading.public_url, now: reading.now };
    match list {
        List::Charges => book.charge_json(context, no, Presentation::Api),
        List::Invoices => book.invoice_json(context, no, Presentation::Api),
        List::Links => book.link_json(context, no),
        List::Events => {
            let object = book.event_object_json(context, book.events[no].subject);
            book.event_json(ids.events.get(no).map_or("", String::as_str), no, &object)
        }
    }
}

impl<R: Reader> Judge<'_, R> {
    /// Reads a list page by page, following its links, and compares each page completely.
    fn list(&mut self, invariant: Invariant, shape: &str, target: &str) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut next = ListRequest::parse(path, Some(query)).and_then(Result::ok);
        let mut target = target.to_owned();
        while let Some(request) = next.take() {
            let expected = self.page(&request);
            let (status, body) = self.reader.get(self.id, &target);
            let same = self.compare(invariant, (shape, &target), (&expected, status, &body));
            next = ListRequest::next(&expected).filter(|_| same);
            if let Some(request) = &next {
                target = request.target();
            }
        }
    }

    fn page(&self, request: &ListRequest) -> String {
        let ModelBook { book, ids, reading } = self.book;
        let rows = &self.rows[request.list as usize];
        let row = |no: usize| rows[no].get_or_init(|| row(self.book, request.list, no)).clone();
        let members = request.members(book, ids);
        request.body(reading.base, ids, (&members, members.last().copied()), row)
    }

    /// Compares a response. Returns `true` if it is as expected.
    fn compare(
        &mut self,
        invariant: Invariant,
        (shape, target): (&str, &str),
        (expected, status, body): (&str, u16, &Bytes),
    ) -> bool {
        let mut found = Vec::new();
        if status == 200 {
            let body = String::from_utf8_lossy(body);
            // The reader stays within the rate limit, so blocks are added meanwhile.
            found = differences(expected, &body, ANY_BLOCKS);
        }
        let first = found.first();
        // Missing or extra rows belong to the list, differences in a row to the object.
        let invariant = match first {
            Some(first) if invariant_of_page(&found, true).is_none() => first.invariant(),
            _ => invariant,
        };
        self.findings.check(invariant, None, || match first {
            None if status == 200 => None,
            None => Some((shape.to_owned(), format!("GET {target}: {status}"))),
            Some(first) => {
                let shape = format!("{shape}: `{}` differs", first.field());
                Some((shape, format!("GET {target}: {}", first.in_words())))
            }
        });
        first.is_none() && status == 200
    }

    /// Reads each list with several page sizes, by page numbers, and beyond its end.
    fn pages(&mut self) {
        const SHAPE: &str = "a page of a list";
        for list in List::ALL {
            let (length, path) = (self.book.book.length(list), list.path());
            self.list(Invariant::Paging, SHAPE, path);
            for per_page in [1, 7].into_iter().filter(|size| length / size < SINGLE_RECORDS_MAX) {
                self.list(Invariant::Paging, SHAPE, &format!("{path}?per_page={per_page}"));
            }
            let size = (length / 3).clamp(1, 9);
            let last = length.div_ceil(size);
            for page in [2, last, last + 1, last + 7] {
                self.one_page(&format!("{path}?per_page={size}&page={page}"));
            }
        }
    }

    fn one_page(&mut self, target: &str) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if let Some(Ok(request)) = ListRequest::parse(path, Some(query)) {
            let expected = self.page(&request);
            let (status, body) = self.reader.get(self.id, target);
            self.compare(Invariant::Paging, ("a page by its number", target), (&expected, status, &body));
        }
    }

    fn filters(&mut self) {
        const SHAPE: &str = "a filtered list";
        let ModelBook { book, ids, .. } = self.book;
        let mut targets: Vec<String> = Vec::new();
        targets.extend(CHARGE_STATUSES.map(|status| format!("/v1/charges?status={status}&per_page=100")));
        targets.extend(INVOICE_STATUSES.map(|status| format!("/v1/invoices?status={status}&per_page=100")));
        for link in book.charges.iter().filter_map(|charge| charge.terms.link).collect::<BTreeSet<_>>() {
            for status in ["", "&status=pending"] {
                targets.push(format!("/v1/charges?payment_link={}{status}&per_page=100", ids.links[link]));
            }
        }
        let types = EventType::ALL.map(EventType::as_str);
        targets.extend(types.map(|kind| format!("/v1/events?type={kind}&per_page=100")));
        // Only some objects, and a type for each: reading all combinations would take too long.
        let charges = (0..book.charges.len()).rev().step_by(book.charges.len() / 6 + 1);
        let some = charges.map(Subject::Charge);
        for subject in some.chain((0..book.invoices.len()).rev().take(3).map(Subject::Invoice)) {
            let filter = if matches!(subject, Subject::Charge(_)) { "charge" } else { "invoice" };
            for kind in ["", "&type=charge.paid", "&type=charge.created", "&type=invoice.created"] {
                targets.push(format!("/v1/events?{filter}={}{kind}&per_page=100", ids.code(subject)));
            }
            targets.push(format!("/v1/events?{filter}={}&per_page=1", ids.code(subject)));
        }
        for target in targets {
            self.list(Invariant::Filters, SHAPE, &target);
        }
    }

    /// Checks that an object read individually equals the model.
    fn check_single_reads(&mut self) {
        for list in List::ALL {
            let ids = public_ids(self.book.ids, list);
            let newest = (0..self.book.book.length(list)).rev().take(SINGLES);
            for (no, id) in newest.filter_map(|no| Some((no, ids.get(no)?))) {
                let expected = format!("{{\"data\":{}}}", row(self.book, list, no));
                let target = format!("{}/{id}", list.path());
                let (status, body) = self.reader.get(self.id, &target);
                self.compare(
                    Invariant::SameObject,
                    ("an object of its own", &target),
                    (&expected, status, &body),
                );
            }
        }
    }

    /// Checks that objects of another account or mode get the same status and body as objects that never existed.
    fn check_isolation(&mut self, other: &Ids) {
        const SHAPE: &str = "a filter returns objects of another account or mode";
        let absent = self.reader.get(self.id, "/v1/charges/aaaaaaaaaaaa");
        let charges = other.charges.iter().rev().take(3).map(|code| ("charges", "charge", code));
        let invoices = other.invoices.iter().rev().take(2).map(|code| ("invoices", "invoice", code));
        for (list, filter, code) in charges.chain(invoices) {
            self.check_absent(&format!("/v1/{list}/{code}"), &absent);
            self.list(Invariant::ModesApart, SHAPE, &format!("/v1/events?{filter}={code}"));
        }
        if let Some(link) = other.links.last() {
            self.check_absent(&format!("/v1/payment-links/{link}"), &absent);
            self.list(Invariant::ModesApart, SHAPE, &format!("/v1/charges?payment_link={link}"));
        }
        for event in other.events.iter().rev().take(2) {
            self.check_absent(&format!("/v1/events/{event}"), &absent);
        }
    }

    fn check_absent(&mut self, target: &str, absent: &(u16, Bytes)) {
        let answer = self.reader.get(self.id, target);
        self.findings.check(Invariant::ModesApart, None, || {
            (answer.0 != 404 || answer != *absent).then(|| {
                let shape = "an object of another book is not answered like an unknown one";
                (shape.to_owned(), target.to_owned())
            })
        });
    }
}
