//! Lists as a client reads them: pages, filters, and nothing of the other mode.

use std::collections::BTreeMap;

use reference_core::event::EventType;
use serde::Deserialize;

use super::{BookShown, ChargeSeen, EventSeen, Findings, InvoiceSeen, Law, Shown, view};
use crate::{sandbox::Sandbox, witness::Whose};

const CHARGE_STATUSES: [&str; 5] = ["pending", "underpaid", "paid", "expired", "canceled"];
const INVOICE_STATUSES: [&str; 3] = ["open", "paid", "void"];

#[derive(Deserialize)]
struct Coded {
    code: String,
}

#[derive(Deserialize)]
struct Identified {
    id: String,
}

/// Judges laws 12 to 14 on what is shown at the end; `shown` holds events too.
pub fn judge_lists(sandbox: &mut Sandbox, keys: &BTreeMap<Whose, String>, shown: &Shown) -> Findings {
    let mut findings = Findings::default();
    for (whose, book) in &shown.books {
        let key = &keys[whose];
        judge_filters(&mut findings, sandbox, key, book.charges.as_slice(), &book.invoices, &book.events);
        for per_page in [1_usize, 7] {
            let path = format!("/v1/charges?per_page={per_page}");
            // A page a record is dear, so only short lists are read so.
            if book.charges.len() / per_page < 60 {
                let codes = ids::<Coded>(sandbox, key, &path);
                let expected = book.charges.iter().map(|it| it.code.clone()).collect();
                same(&mut findings, Law::Paging, "charges by small pages are others", &path, expected, codes);
            }
        }
        let path = "/v1/events?per_page=9";
        let expected = book.events.iter().map(|it| it.id.clone()).collect();
        same(
            &mut findings,
            Law::Paging,
            "events by small pages are others",
            path,
            expected,
            ids::<Identified>(sandbox, key, path),
        );
        for (_, other) in shown.books.iter().filter(|(other, _)| *other != whose) {
            judge_isolation(&mut findings, sandbox, key, other);
        }
    }
    findings
}

trait Id {
    fn id(self) -> String;
}

impl Id for Coded {
    fn id(self) -> String {
        self.code
    }
}

impl Id for Identified {
    fn id(self) -> String {
        self.id
    }
}

/// The ids of a list; what went wrong stands in their place.
fn ids<T: Id + for<'de> Deserialize<'de>>(sandbox: &mut Sandbox, key: &str, path: &str) -> Vec<String> {
    match view::read_list::<T>(sandbox, key, path) {
        Ok(records) => records.into_iter().map(Id::id).collect(),
        Err(error) => vec![error],
    }
}

fn same(
    findings: &mut Findings,
    law: Law,
    shape: &str,
    path: &str,
    expected: Vec<String>,
    actual: Vec<String>,
) {
    findings.check(law, None, || {
        (expected != actual).then(|| {
            let place = expected.iter().zip(&actual).take_while(|(one, two)| one == two).count();
            let word = |list: &[String]| list.get(place).cloned().unwrap_or_else(|| "the end".to_owned());
            let what =
                format!("{path}, record {}: expected {}, got {}", place + 1, word(&expected), word(&actual));
            (shape.to_owned(), what)
        })
    });
}

fn judge_filters(
    findings: &mut Findings,
    sandbox: &mut Sandbox,
    key: &str,
    charges: &[ChargeSeen],
    invoices: &[InvoiceSeen],
    events: &[EventSeen],
) {
    const SHAPE: &str = "a filtered list is not the whole list, filtered";
    for status in CHARGE_STATUSES {
        let path = format!("/v1/charges?status={status}&per_page=100");
        let expected = charges.iter().filter(|it| it.status == status).map(|it| it.code.clone()).collect();
        same(findings, Law::Filters, SHAPE, &path, expected, ids::<Coded>(sandbox, key, &path));
    }
    for status in INVOICE_STATUSES {
        let path = format!("/v1/invoices?status={status}&per_page=100");
        let expected = invoices.iter().filter(|it| it.status == status).map(|it| it.code.clone()).collect();
        same(findings, Law::Filters, SHAPE, &path, expected, ids::<Coded>(sandbox, key, &path));
    }
    let links = charges.iter().filter_map(|it| it.payment_link.clone());
    for link in links.collect::<std::collections::BTreeSet<_>>() {
        let path = format!("/v1/charges?payment_link={link}&per_page=100");
        let of = |it: &&ChargeSeen| it.payment_link.as_deref() == Some(link.as_str());
        let expected = charges.iter().filter(of).map(|it| it.code.clone()).collect();
        same(findings, Law::Filters, SHAPE, &path, expected, ids::<Coded>(sandbox, key, &path));
    }
    for kind in EventType::ALL.map(EventType::as_str) {
        let path = format!("/v1/events?type={kind}&per_page=100");
        let expected = events.iter().filter(|it| it.kind == kind).map(|it| it.id.clone()).collect();
        same(findings, Law::Filters, SHAPE, &path, expected, ids::<Identified>(sandbox, key, &path));
    }
    // Some subjects, and each with a type: all of them would be read again and again.
    let some_charges = charges.iter().step_by(charges.len() / 6 + 1).map(|it| ("charge", &it.code));
    let some_invoices = invoices.iter().take(3).map(|it| ("invoice", &it.code));
    for (filter, code) in some_charges.chain(some_invoices) {
        for kind in [None, Some("charge.paid"), Some("charge.created"), Some("invoice.created")] {
            let and = kind.map(|kind| format!("&type={kind}")).unwrap_or_default();
            let path = format!("/v1/events?{filter}={code}{and}&per_page=100");
            let of = |it: &&EventSeen| it.subject() == code && kind.is_none_or(|kind| kind == it.kind);
            let expected = events.iter().filter(of).map(|it| it.id.clone()).collect();
            same(findings, Law::Filters, SHAPE, &path, expected, ids::<Identified>(sandbox, key, &path));
        }
    }
}

/// What another account or the other mode holds is as unknown as what never was: the same status, the same body.
fn judge_isolation(findings: &mut Findings, sandbox: &mut Sandbox, key: &str, other: &BookShown) {
    let absent = view::ask(sandbox, key, "/v1/charges/aaaaaaaaaaaa");
    let charges = other.charges.iter().take(3).map(|it| it.code.as_str());
    for code in charges {
        let answer = view::ask(sandbox, key, &format!("/v1/charges/{code}"));
        findings.check(Law::ModesApart, None, || {
            (answer != absent).then(|| {
                (
                    "a charge of another book is not answered like one that is not there".to_owned(),
                    code.to_owned(),
                )
            })
        });
        let path = format!("/v1/events?charge={code}");
        let events = ids::<Identified>(sandbox, key, &path);
        same(findings, Law::ModesApart, "a filter shows events of another book", &path, Vec::new(), events);
    }
    for invoice in other.invoices.iter().take(2) {
        let answer = view::ask(sandbox, key, &format!("/v1/invoices/{}", invoice.code));
        findings.check(Law::ModesApart, None, || {
            (answer.0 != 404 || answer.1 != absent.1).then(|| {
                let shape = "an invoice of another book is not answered like one that is not there";
                (shape.to_owned(), invoice.code.clone())
            })
        });
        let path = format!("/v1/events?invoice={}", invoice.code);
        let events = ids::<Identified>(sandbox, key, &path);
        same(findings, Law::ModesApart, "a filter shows events of another book", &path, Vec::new(), events);
    }
    for event in other.events.iter().take(2) {
        let answer = view::ask(sandbox, key, &format!("/v1/events/{}", event.id));
        findings.check(Law::ModesApart, None, || {
            (answer.0 != 404 || answer.1 != absent.1).then(|| {
                let shape = "an event of another book is not answered like one that is not there";
                (shape.to_owned(), event.id.clone())
            })
        });
    }
}
