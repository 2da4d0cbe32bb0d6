//! Lists as a client reads them: pages, filters, and nothing of the other mode.

use std::collections::BTreeSet;

use bytes::Bytes;
use reference_core::event::EventType;
use serde::Deserialize;

use super::{BookShown, Findings, Law, Reader, Shown, look::read_list};
use crate::{
    model::{ChargeView, EventView},
    witness::BookId,
};

const CHARGE_STATUSES: [&str; 5] = ["pending", "underpaid", "paid", "expired", "canceled"];
const INVOICE_STATUSES: [&str; 3] = ["open", "paid", "void"];
/// So many objects of a kind are read by themselves as well.
const SINGLES: usize = 2;

/// A record of any list.
#[derive(Deserialize)]
struct Listed {
    id: String,
}

/// One answer: an object.
#[derive(Deserialize)]
struct One<T> {
    data: T,
}

/// Judges laws 12 to 14 on what is shown at the end; `shown` holds events too.
pub fn judge_lists(reader: &mut impl Reader, shown: &Shown) -> Findings {
    let mut findings = Findings::default();
    for (id, book) in &shown.books {
        let mut judge = Judge { findings: &mut findings, reader, id: *id };
        judge.filters(book);
        for per_page in [1_usize, 7] {
            let path = format!("/v1/charges?per_page={per_page}");
            // A page a record is dear, so only short lists are read so.
            if book.charges.len() / per_page < 60 {
                judge.list(
                    Law::Paging,
                    "charges by small pages are others",
                    &path,
                    codes(&book.charges, |_| true),
                );
            }
        }
        let path = format!("/v1/events?per_page={}", (book.events.len() / 2).clamp(1, 9));
        let expected = events(&book.events, |_| true);
        judge.list(Law::Paging, "events by small pages are others", &path, expected);
        judge.singles(book);
        for (_, other) in shown.books.iter().filter(|(other, _)| *other != id) {
            judge.isolation(other);
        }
    }
    findings
}

fn codes(charges: &[ChargeView], which: impl Fn(&ChargeView) -> bool) -> Vec<String> {
    charges.iter().filter(|it| which(it)).map(|it| it.code.clone()).collect()
}

fn events(events: &[EventView], which: impl Fn(&EventView) -> bool) -> Vec<String> {
    events.iter().filter(|it| which(it)).map(|it| it.id.clone()).collect()
}

/// Blocks that came since an earlier look at a charge are not counted.
fn without_new_blocks(charge: &mut ChargeView, earlier: &ChargeView) {
    for (now, before) in charge.transactions.iter_mut().zip(&earlier.transactions) {
        now.confirmations = now.confirmations.min(before.confirmations);
    }
}

/// The lists that a key of one book reads.
struct Judge<'a, R> {
    findings: &'a mut Findings,
    reader: &'a mut R,
    id: BookId,
}

impl<R: Reader> Judge<'_, R> {
    /// A list must hold these records, in this order.
    fn list(&mut self, law: Law, shape: &str, target: &str, expected: Vec<String>) {
        // What went wrong stands in the place of the records.
        let actual = match read_list::<Listed>(self.reader, self.id, target) {
            Ok(records) => records.into_iter().map(|record| record.id).collect(),
            Err(error) => vec![error],
        };
        self.findings.check(law, None, || {
            (expected != actual).then(|| {
                let place = expected.iter().zip(&actual).take_while(|(one, two)| one == two).count();
                let word = |list: &[String]| list.get(place).cloned().unwrap_or_else(|| "the end".to_owned());
                let words = (word(&expected), word(&actual));
                let what = format!("{target}, record {}: expected {}, got {}", place + 1, words.0, words.1);
                (shape.to_owned(), what)
            })
        });
    }

    fn filters(&mut self, book: &BookShown) {
        const SHAPE: &str = "a filtered list is not the whole list, filtered";
        for status in CHARGE_STATUSES {
            let target = format!("/v1/charges?status={status}&per_page=100");
            self.list(Law::Filters, SHAPE, &target, codes(&book.charges, |it| it.status == status));
        }
        for status in INVOICE_STATUSES {
            let target = format!("/v1/invoices?status={status}&per_page=100");
            let expected = book.invoices.iter().filter(|it| it.status == status);
            self.list(Law::Filters, SHAPE, &target, expected.map(|it| it.code.clone()).collect());
        }
        for link in book.charges.iter().filter_map(|it| it.payment_link.as_ref()).collect::<BTreeSet<_>>() {
            let of = |it: &ChargeView| it.payment_link.as_ref() == Some(link);
            for status in [None, Some("pending")] {
                let and = status.map(|status| format!("&status={status}")).unwrap_or_default();
                let target = format!("/v1/charges?payment_link={link}{and}&per_page=100");
                let wanted = |it: &ChargeView| of(it) && status.is_none_or(|status| it.status == status);
                self.list(Law::Filters, SHAPE, &target, codes(&book.charges, wanted));
            }
        }
        for kind in EventType::ALL.map(EventType::as_str) {
            let target = format!("/v1/events?type={kind}&per_page=100");
            self.list(Law::Filters, SHAPE, &target, events(&book.events, |it| it.kind == kind));
        }
        // Some subjects, and each with a type: all of them would be read again and again.
        let some_charges =
            book.charges.iter().step_by(book.charges.len() / 6 + 1).map(|it| ("charge", &it.code));
        let some_invoices = book.invoices.iter().take(3).map(|it| ("invoice", &it.code));
        for (filter, code) in some_charges.chain(some_invoices) {
            for kind in [None, Some("charge.paid"), Some("charge.created"), Some("invoice.created")] {
                let and = kind.map(|kind| format!("&type={kind}")).unwrap_or_default();
                let target = format!("/v1/events?{filter}={code}{and}&per_page=100");
                let of = |it: &EventView| it.subject() == code && kind.is_none_or(|kind| kind == it.kind);
                self.list(Law::Filters, SHAPE, &target, events(&book.events, of));
            }
        }
    }

    /// Read by itself, an object is as the list shows it.
    fn singles(&mut self, book: &BookShown) {
        for seen in book.charges.iter().take(SINGLES) {
            self.single(&format!("/v1/charges/{}", seen.code), seen, without_new_blocks);
        }
        for seen in book.invoices.iter().take(SINGLES) {
            self.single(&format!("/v1/invoices/{}", seen.code), seen, |_, _| {});
        }
        for seen in book.links.iter().take(SINGLES) {
            self.single(&format!("/v1/payment-links/{}", seen.code), seen, |_, _| {});
        }
        for seen in book.events.iter().take(SINGLES) {
            self.single(&format!("/v1/events/{}", seen.id), seen, |_, _| {});
        }
    }

    /// `forgive` takes out of the object, which is read later than the list, what may have changed meanwhile.
    fn single<T: PartialEq + for<'de> Deserialize<'de>>(
        &mut self,
        target: &str,
        listed: &T,
        forgive: impl FnOnce(&mut T, &T),
    ) {
        let (status, body) = self.reader.get(self.id, target);
        let same = status == 200
            && serde_json::from_slice::<One<T>>(&body).is_ok_and(|mut one| {
                forgive(&mut one.data, listed);
                one.data == *listed
            });
        self.findings.check(Law::SameObject, None, || {
            (!same).then(|| {
                ("an object is not shown as its list shows it".to_owned(), format!("GET {target}: {status}"))
            })
        });
    }

    /// Checks that objects of another account or mode are answered like objects that never existed: the same
    /// status, the same body.
    fn isolation(&mut self, other: &BookShown) {
        const SHAPE: &str = "a filter shows what another book holds";
        let absent = self.reader.get(self.id, "/v1/charges/aaaaaaaaaaaa");
        let charges = other.charges.iter().take(3).map(|it| ("charges", "charge", it.code.as_str()));
        let invoices = other.invoices.iter().take(2).map(|it| ("invoices", "invoice", it.code.as_str()));
        for (list, filter, code) in charges.chain(invoices) {
            self.absent(&format!("/v1/{list}/{code}"), &absent);
            self.list(Law::ModesApart, SHAPE, &format!("/v1/events?{filter}={code}"), Vec::new());
        }
        if let Some(link) = other.links.first() {
            self.absent(&format!("/v1/payment-links/{}", link.code), &absent);
            self.list(Law::ModesApart, SHAPE, &format!("/v1/charges?payment_link={}", link.code), Vec::new());
        }
        for event in other.events.iter().take(2) {
            self.absent(&format!("/v1/events/{}", event.id), &absent);
        }
    }

    fn absent(&mut self, target: &str, absent: &(u16, Bytes)) {
        let answer = self.reader.get(self.id, target);
        self.findings.check(Law::ModesApart, None, || {
            (answer.0 != 404 || answer != *absent).then(|| {
                let shape = "an object of another book is not answered like one that is not there";
                (shape.to_owned(), target.to_owned())
            })
        });
    }
}
