//! Lists: newest first, complete, and stable while records are added.

use reference_core::{
    asset::Asset, charge::ChargeStatus, command::Visit, event::EventType, invoice::InvoiceStatus, mode::Mode,
    time::Span,
};
use serde_json::{Value, json};

use crate::test_service::{
    BASE, DROPPED, LOCK, MEMPOOL, TICK, TestRequest, TestService, code_of, confirmed, parse_code, string,
};

/// A service with records of every kind, status and event type. No status changes in the tests, because they end before
/// the rate locks of the last charges do.
struct PopulatedService {
    service: TestService,
    links: Vec<String>,
    charges: Vec<String>,
    invoices: Vec<String>,
}

impl PopulatedService {
    fn new() -> PopulatedService {
        let mut populated = PopulatedService {
            service: TestService::new(),
            links: Vec::new(),
            charges: Vec::new(),
            invoices: Vec::new(),
        };
        for n in 0..3 {
            let link = json!({"title": format!("Hat {n}"), "amount": "150"});
            populated.links.push(populated.service.create("/v1/payment-links", &link));
        }
        for n in 0..24 {
            populated.add_charge(n);
            populated.add_invoice(n);
        }
        populated.service.wait(LOCK);
        populated.cause_later_events();
        for n in 0..24 {
            populated.add_charge(n);
        }
        populated.check_is_complete();
        populated
    }

    /// Causes the events that need an existing charge or invoice.
    fn cause_later_events(&mut self) {
        // `charges` also has the charges of paid invoices: index 1 is that of invoice 0, so the canceled charge has index 3.
        let (paid, canceled) = (self.charges[0].clone(), self.charges[3].clone());
        let open = self.invoices[2].clone();
        self.service.post(&format!("/v1/charges/{paid}/refunds"), &json!({"amount": "0.0001"})).data();
        self.service.report_sighting(&canceled, "late", "0.001", confirmed(2));
        self.service.post(&format!("/v1/invoices/{open}/send"), &json!({})).data();
        self.service.visit(Visit::ViewInvoice(parse_code(&open))).unwrap();
    }

    /// Checks that no status and no event type is missing.
    #[track_caller]
    fn check_is_complete(&mut self) {
        let charges = ChargeStatus::ALL.map(|status| target("/v1/charges", &[("status", status.as_str())]));
        let invoices =
            InvoiceStatus::ALL.map(|status| target("/v1/invoices", &[("status", status.as_str())]));
        let events = EventType::ALL.map(|kind| target("/v1/events", &[("type", kind.as_str())]));
        for list in charges.iter().chain(&invoices).chain(&events) {
            assert_ne!(self.service.total(list), 0, "{list}");
        }
    }

    /// Adds a charge. `n` selects its link and its status.
    fn add_charge(&mut self, n: usize) {
        let body = match n % 4 {
            // Without a link.
            3 => json!({"asset": "BTC", "amount": "150"}),
            link => json!({"asset": "BTC", "payment_link": self.links[link]}),
        };
        let charge = self.service.create("/v1/charges", &body);
        match n % 6 {
            // Paid.
            0 => self.service.report_sighting(&charge, "a", "0.0025", confirmed(2)),
            // Underpaid until the rate lock ends, then expired.
            1 => self.service.report_sighting(&charge, "a", "0.001", confirmed(2)),
            // Canceled.
            2 => drop(self.service.post(&format!("/v1/charges/{charge}/cancel"), &json!({}))),
            // Pending again after the only transfer vanished, and expired when the rate lock ends.
            3 => {
                self.service.report_sighting(&charge, "a", "0.001", MEMPOOL);
                self.service.report_sighting(&charge, "a", "0.001", DROPPED);
            }
            // Pending until the rate lock ends, then expired.
            _ => {}
        }
        self.charges.push(charge);
        self.service.wait(Span::millis(1));
    }

    /// Adds an invoice. `n` selects its status.
    fn add_invoice(&mut self, n: usize) {
        let invoice = self
            .service
            .create("/v1/invoices", &json!({"amount": "150", "customer_email": "ada@shop.example"}));
        match n % 4 {
            // Paid.
            0 => {
                let charge = self.service.choose_coin(&invoice, Asset::Btc).unwrap();
                self.service.report_sighting(&charge, "a", "0.0025", confirmed(2));
                self.charges.push(charge);
            }
            // Void.
            1 => drop(self.service.post(&format!("/v1/invoices/{invoice}/void"), &json!({}))),
            // Open.
            _ => {}
        }
        self.invoices.push(invoice);
    }

    /// Adds a record of each kind. `n` selects their statuses.
    fn add_records(&mut self, n: usize) {
        self.add_charge(n);
        self.add_invoice(n);
        let link = json!({"title": "A late hat", "amount": "1"});
        self.service.create("/v1/payment-links", &link);
    }

    fn page(&mut self, target: &str) -> Value {
        let response = self.service.get(target);
        assert_eq!(response.status(), 200, "{target}: {}", response.text());
        response.json()
    }

    /// Returns the records of all pages.
    fn read_whole_list(&mut self, list: &str) -> Vec<Value> {
        let mut records = Vec::new();
        let mut next = Some(format!("{list}{}per_page=100", if list.contains('?') { '&' } else { '?' }));
        while let Some(target) = next {
            let page = self.page(&target);
            records.extend(page["data"].as_array().unwrap().clone());
            next = page["links"]["next"].as_str().map(|url| url.strip_prefix(BASE).unwrap().to_owned());
        }
        records
    }

    /// Returns the target of every list with every combination of filters.
    fn lists(&self) -> Vec<String> {
        let mut lists = vec!["/v1/payment-links".to_owned()];
        for status in [""].into_iter().chain(ChargeStatus::ALL.map(ChargeStatus::as_str)) {
            for link in ["", &self.links[0], &self.links[2], "aaaaaaaaaaaa"] {
                lists.push(target("/v1/charges", &[("status", status), ("payment_link", link)]));
            }
        }
        for status in [""].into_iter().chain(InvoiceStatus::ALL.map(InvoiceStatus::as_str)) {
            lists.push(target("/v1/invoices", &[("status", status)]));
        }
        let types = EventType::ALL.map(EventType::as_str);
        for kind in [""].into_iter().chain(types) {
            for charge in ["", &self.charges[1], &self.charges[2], "aaaaaaaaaaaa"] {
                for invoice in ["", &self.invoices[0]] {
                    lists.push(target(
                        "/v1/events",
                        &[("type", kind), ("charge", charge), ("invoice", invoice)],
                    ));
                }
            }
        }
        lists
    }
}

/// Returns the path with these filters as its query; empty values are left out.
fn target(path: &str, filters: &[(&str, &str)]) -> String {
    let parameters: Vec<String> = filters
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    if parameters.is_empty() { path.to_owned() } else { format!("{path}?{}", parameters.join("&")) }
}

/// Adds parameters to a target that may have a query.
fn add_query(list: &str, parameters: &str) -> String {
    format!("{list}{}{parameters}", if list.contains('?') { '&' } else { '?' })
}

fn ids(records: &[Value]) -> Vec<String> {
    records.iter().map(|record| string(&record["id"])).collect()
}

#[test]
fn a_filtered_list_has_the_matching_records_of_the_whole_list() {
    let mut populated = PopulatedService::new();
    for list in populated.lists() {
        let (path, query) = list.split_once('?').unwrap_or((&list, ""));
        let expected: Vec<Value> = populated
            .read_whole_list(path)
            .into_iter()
            .filter(|record| {
                query.split('&').filter(|part| !part.is_empty()).all(|part| {
                    let (name, value) = part.split_once('=').unwrap();
                    match name {
                        "charge" | "invoice" => record[name]["code"] == value,
                        name => record[name] == value,
                    }
                })
            })
            .collect();
        assert_eq!(ids(&populated.read_whole_list(&list)), ids(&expected), "{list}");
    }
}

#[test]
fn lists_are_newest_first() {
    let mut populated = PopulatedService::new();
    for path in ["/v1/charges", "/v1/invoices", "/v1/payment-links", "/v1/events"] {
        let times: Vec<String> =
            populated.read_whole_list(path).iter().map(|record| string(&record["created_at"])).collect();
        assert!(times.is_sorted_by(|newer, older| newer >= older), "{path}");
    }
    let created: Vec<String> = populated.charges.iter().rev().cloned().collect();
    assert_eq!(
        ids(&populated.read_whole_list("/v1/charges")),
        created,
        "of two charges with equal times, the one that was created later comes first"
    );
}

/// Reads a list page by page, and adds records between the pages. The pages must contain the list as it was when page 1
/// was read. `next_page` gets a page and its number, and returns the target of the following page, if
/// there is one.
#[track_caller]
fn check_stable(
    populated: &mut PopulatedService,
    list: &str,
    per_page: usize,
    next_page: impl Fn(&Value, usize) -> Option<String>,
) {
    let snapshot = ids(&populated.read_whole_list(list));
    let last_page = snapshot.len().div_ceil(per_page).max(1);
    let mut ids_read = Vec::new();
    let mut next = Some(add_query(list, &format!("per_page={per_page}")));
    let mut number = 0;
    while let Some(target) = next {
        let page = populated.page(&target);
        number += 1;
        let records = ids(page["data"].as_array().unwrap());
        let meta = &page["meta"];
        assert_eq!(meta["current_page"], number, "{target}");
        assert_eq!(
            (&meta["total"], &meta["last_page"]),
            (&json!(snapshot.len()), &json!(last_page)),
            "{target}"
        );
        assert_eq!(meta["per_page"], per_page);
        let from = (!records.is_empty()).then_some((number - 1) * per_page + 1);
        assert_eq!(meta["from"], json!(from), "{target}");
        assert_eq!(meta["to"], json!(from.map(|from| from + records.len() - 1)), "{target}");
        assert_eq!(page["links"]["prev"].is_string(), number > 1, "{target}");
        assert_eq!(page["links"]["next"].is_string(), number < last_page, "{target}");
        ids_read.extend(records);
        next = next_page(&page, number);
        populated.add_records(number);
    }
    assert_eq!((number, ids_read), (last_page, snapshot), "{list}");
}

fn next_link(page: &Value, _: usize) -> Option<String> {
    page["links"]["next"].as_str().map(|url| url.strip_prefix(BASE).expect("links are absolute").to_owned())
}

#[test]
fn following_the_links_reads_the_list_as_of_page_1() {
    let mut populated = PopulatedService::new();
    for list in populated.lists() {
        check_stable(&mut populated, &list, 20, next_link);
    }
    for list in ["/v1/charges", "/v1/charges?status=paid", "/v1/events?type=charge.created"] {
        check_stable(&mut populated, list, 7, next_link);
    }
}

#[test]
fn incrementing_page_reads_the_list_as_of_page_1() {
    let mut populated = PopulatedService::new();
    for list in populated.lists() {
        let next_number = |page: &Value, number: usize| {
            let has_more = page["meta"]["last_page"].as_u64().unwrap() > number as u64;
            has_more.then(|| add_query(&list, &format!("page={}&per_page=20", number + 1)))
        };
        check_stable(&mut populated, &list, 20, next_number);
    }
}

/// The anchor of a list is the newest record at the last read of page 1. Later pages omit newer records.
#[test]
fn page_1_is_always_current_and_an_anchor_lives_10_minutes() {
    const LIFETIME: Span = Span::mins(10);
    let just_before_the_end = Span(LIFETIME.0 - TICK.0);
    let mut service = TestService::new();
    for _ in 0..3 {
        service.create_charge();
    }
    let total = |service: &mut TestService, target: &str| service.get(target).json()["meta"]["total"].clone();
    assert_eq!(total(&mut service, "/v1/charges?per_page=2"), 3);
    service.create_charge();
    assert_eq!(total(&mut service, "/v1/charges?per_page=2&page=2"), 3, "the anchor is used");
    assert_eq!(
        total(&mut service, "/v1/charges?per_page=1&page=2"),
        4,
        "an anchor applies to one page size only"
    );
    assert_eq!(
        total(&mut service, "/v1/charges?per_page=2&page=2&status=pending"),
        4,
        "an anchor applies to one set of filters only"
    );
    let other = service.new_key(service.acme, Mode::Live);
    let page = service.send(&TestRequest::new("GET", "/v1/charges?per_page=2&page=2").key(&other));
    assert_eq!(page.json()["meta"]["total"], 4, "an anchor applies to one key only");
    assert_eq!(total(&mut service, "/v1/charges?per_page=2&page=1"), 4, "page 1 is current");
    service.create_charge();
    service.wait(just_before_the_end);
    assert_eq!(total(&mut service, "/v1/charges?per_page=2&page=2"), 4);
    service.wait(just_before_the_end);
    assert_eq!(
        total(&mut service, "/v1/charges?per_page=2&page=2"),
        4,
        "a read extends the lifetime of the anchor"
    );
    for (page, expected) in [(1, 5), (2, 4)] {
        let head = service.request("HEAD", &format!("/v1/charges?per_page=2&page={page}"));
        assert_eq!(head.json()["meta"]["total"], expected, "HEAD shows the same pages as GET");
    }
    assert_eq!(
        total(&mut service, "/v1/charges?per_page=2&page=2"),
        4,
        "HEAD of page 1 does not replace the anchor"
    );
    service.wait(LIFETIME);
    assert_eq!(total(&mut service, "/v1/charges?per_page=2&page=2"), 5);
}

#[test]
fn page_2_of_a_list_that_was_empty_at_page_1_is_empty() {
    let mut service = TestService::new();
    assert_eq!(service.get("/v1/charges").json()["meta"]["total"], 0);
    service.create_charge();
    let second = service.get("/v1/charges?page=2").json();
    assert_eq!((&second["meta"]["total"], &second["data"]), (&json!(0), &json!([])));
}

#[test]
fn every_link_works_and_keeps_filters_and_size() {
    let mut service = TestService::new();
    let link = code_of(&service.post("/v1/payment-links", &json!({"title": "A hat", "amount": "1"})).data());
    for _ in 0..5 {
        service.create("/v1/charges", &json!({"asset": "BTC", "payment_link": link}));
        service.create_charge();
    }
    let target = format!("/v1/charges?payment_link={link}&status=pending&per_page=2&page=2");
    let page = service.get(&target).json();
    for (name, number) in [("first", 1), ("prev", 1), ("next", 3), ("last", 3)] {
        let url = string(&page["links"][name]);
        let linked = service.get(url.strip_prefix(BASE).unwrap()).json();
        assert_eq!(
            (&linked["meta"]["current_page"], &linked["meta"]["per_page"]),
            (&json!(number), &json!(2)),
            "{url}"
        );
        assert_eq!(linked["meta"]["total"], 5, "{url}");
    }
    assert_eq!(page["meta"]["path"], format!("{BASE}/v1/charges"));
    // A filter with special characters is encoded in links.
    let encoded = service.get("/v1/events?charge=a%26b%3Dc%20%C3%A4").json();
    let first = string(&encoded["links"]["first"]);
    assert!(first.contains("charge=a%26b%3Dc+%C3%A4&"), "{first}");
}
