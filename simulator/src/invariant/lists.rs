//! Checks of lists and objects as a client reads them at the end: pages, filters, and isolation of modes.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
};

use bytes::Bytes;
use reference_core::event::EventType;

use super::{
    Findings, Invariant, Reader, ReadingContext,
    diff::{differences, invariant_of_page},
    page::{CHARGE_STATUSES, INVOICE_STATUSES, ListRequest, public_ids},
};
use crate::{
    model::{Book, Ids, List, ObjectContext, Presentation, Subject},
    record::BookId,
};

/// The number of objects of each kind that are also read individually.
const SINGLE_READS: usize = 2;
/// A list that would have this many pages or more is not read with that page size: it would take too long.
const PAGES_LIMIT: usize = 60;

/// The tolerance for `confirmations`: a chain may have grown by any number of blocks.
const ANY_BLOCKS: u64 = u32::MAX as u64;

/// A book of the model, and the circumstances in which its lists are read.
pub struct ModelBook<'a> {
    /// The book.
    pub book: &'a Book,
    /// The public ids of its objects.
    pub ids: &'a Ids,
    /// The circumstances of the reading.
    pub reading: ReadingContext<'a>,
}

/// Checks lists with filters, lists with several page sizes, single objects, and the isolation from other books.
pub fn judge_lists(reader: &mut impl Reader, books: &BTreeMap<BookId, ModelBook<'_>>) -> Findings {
    let mut findings = Findings::default();
    for (id, book) in books {
        let rows = List::ALL.map(|list| vec![OnceCell::new(); book.book.length(list)]);
        let mut judge = ListJudge { findings: &mut findings, reader, id: *id, book, rows };
        judge.check_filters();
        judge.check_pages();
        judge.check_single_reads();
        for (_, other) in books.iter().filter(|(other, _)| *other != id) {
            judge.check_isolation(other.ids);
        }
    }
    findings
}

/// The checks with the key of one book.
struct ListJudge<'a, R> {
    findings: &'a mut Findings,
    reader: &'a mut R,
    id: BookId,
    book: &'a ModelBook<'a>,
    /// The expected records of each list, cached.
    rows: [Vec<OnceCell<String>>; List::ALL.len()],
}

/// Returns the expected record with this number, as the list shows it.
fn row(book: &ModelBook<'_>, list: List, number: usize) -> String {
    let ModelBook { book, ids, reading } = book;
    let context = ObjectContext { ids, public_url: reading.public_url, now: reading.now };
    match list {
        List::Charges => book.charge_json(context, number, Presentation::Api),
        List::Invoices => book.invoice_json(context, number, Presentation::Api),
        List::Links => book.link_json(context, number),
        List::Events => {
            let object = book.event_object_json(context, book.events[number].subject);
            book.event_json(ids.events.get(number).map_or("", String::as_str), number, &object)
        }
    }
}

impl<R: Reader> ListJudge<'_, R> {
    /// Reads a list page by page, following its links, and compares each page completely, until one differs.
    fn check_list(&mut self, invariant: Invariant, shape: &str, target: &str) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut next = ListRequest::parse(path, Some(query)).and_then(Result::ok);
        let mut target = target.to_owned();
        while let Some(request) = next.take() {
            let expected = self.expected_page(&request);
            let (status, body) = self.reader.get(self.id, &target);
            let is_same = self.compare(invariant, (shape, &target), (&expected, status, &body));
            next = ListRequest::next(&expected).filter(|_| is_same);
            if let Some(request) = &next {
                target = request.target();
            }
        }
    }

    /// Returns the expected body of a page.
    fn expected_page(&self, request: &ListRequest) -> String {
        let ModelBook { book, ids, reading } = self.book;
        let rows = &self.rows[request.list as usize];
        let row = |number: usize| rows[number].get_or_init(|| row(self.book, request.list, number)).clone();
        let members = request.members(book, ids);
        request.body(reading.request_base_url, ids, (&members, members.last().copied()), row)
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
            // The reader waits for the rate limit, so blocks are mined while it reads.
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
                Some((shape, format!("GET {target}: {}", first.to_sentence())))
            }
        });
        first.is_none() && status == 200
    }

    /// Reads each list with several page sizes, by page numbers, and beyond its end.
    fn check_pages(&mut self) {
        const SHAPE: &str = "a page of a list";
        for list in List::ALL {
            let (length, path) = (self.book.book.length(list), list.path());
            self.check_list(Invariant::Paging, SHAPE, path);
            for per_page in [1, 7].into_iter().filter(|size| length / size < PAGES_LIMIT) {
                self.check_list(Invariant::Paging, SHAPE, &format!("{path}?per_page={per_page}"));
            }
            // About three pages, so that page 2 has a previous and a next one; the last two numbers are beyond the end.
            let size = (length / 3).clamp(1, 9);
            let last = length.div_ceil(size);
            for page in [2, last, last + 1, last + 7] {
                self.check_page_number(&format!("{path}?per_page={size}&page={page}"));
            }
        }
    }

    /// Reads one page by its number.
    fn check_page_number(&mut self, target: &str) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if let Some(Ok(request)) = ListRequest::parse(path, Some(query)) {
            let expected = self.expected_page(&request);
            let (status, body) = self.reader.get(self.id, target);
            self.compare(Invariant::Paging, ("a page by its number", target), (&expected, status, &body));
        }
    }

    /// Reads lists with each filter, and with combinations of filters.
    fn check_filters(&mut self) {
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
        // At most six charges and three invoices, and a few types for each: all combinations would take too long.
        let charges = (0..book.charges.len()).rev().step_by(book.charges.len() / 6 + 1);
        let charges = charges.map(Subject::Charge);
        for subject in charges.chain((0..book.invoices.len()).rev().take(3).map(Subject::Invoice)) {
            let filter = if matches!(subject, Subject::Charge(_)) { "charge" } else { "invoice" };
            for kind in ["", "&type=charge.paid", "&type=charge.created", "&type=invoice.created"] {
                targets.push(format!("/v1/events?{filter}={}{kind}&per_page=100", ids.code(subject)));
            }
            targets.push(format!("/v1/events?{filter}={}&per_page=1", ids.code(subject)));
        }
        for target in targets {
            self.check_list(Invariant::Filters, SHAPE, &target);
        }
    }

    /// Checks that the newest objects of each list, read individually, equal the model.
    fn check_single_reads(&mut self) {
        for list in List::ALL {
            let ids = public_ids(self.book.ids, list);
            let newest = (0..self.book.book.length(list)).rev().take(SINGLE_READS);
            for (number, id) in newest.filter_map(|number| Some((number, ids.get(number)?))) {
                let expected = format!("{{\"data\":{}}}", row(self.book, list, number));
                let target = format!("{}/{id}", list.path());
                let (status, body) = self.reader.get(self.id, &target);
                self.compare(
                    Invariant::SameObject,
                    ("an object read individually", &target),
                    (&expected, status, &body),
                );
            }
        }
    }

    /// Checks that objects of another account or mode get the same status and body as objects that never
    /// existed, and that filters by them return an empty list.
    fn check_isolation(&mut self, other: &Ids) {
        const SHAPE: &str = "a filter returns objects of another account or mode";
        let absent = self.reader.get(self.id, "/v1/charges/aaaaaaaaaaaa");
        let charges = other.charges.iter().rev().take(3).map(|code| ("charges", "charge", code));
        let invoices = other.invoices.iter().rev().take(2).map(|code| ("invoices", "invoice", code));
        for (list, filter, code) in charges.chain(invoices) {
            self.check_absent(&format!("/v1/{list}/{code}"), &absent);
            self.check_list(Invariant::ModesApart, SHAPE, &format!("/v1/events?{filter}={code}"));
        }
        if let Some(link) = other.links.last() {
            self.check_absent(&format!("/v1/payment-links/{link}"), &absent);
            self.check_list(Invariant::ModesApart, SHAPE, &format!("/v1/charges?payment_link={link}"));
        }
        for event in other.events.iter().rev().take(2) {
            self.check_absent(&format!("/v1/events/{event}"), &absent);
        }
    }

    /// Checks that the response to `target` is 404 and equal to `absent`, the response for an object that never existed.
    fn check_absent(&mut self, target: &str, absent: &(u16, Bytes)) {
        let response = self.reader.get(self.id, target);
        self.findings.check(Invariant::ModesApart, None, || {
            (response.0 != 404 || response != *absent).then(|| {
                let shape = "the response for an object of another book is not that for an unknown one";
                (shape.to_owned(), target.to_owned())
            })
        });
    }
}
