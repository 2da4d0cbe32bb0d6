//! The objects of one account in one mode, and their lists.

use std::cell::RefCell;
use std::collections::BTreeMap;

use conformance::Mode;
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use super::{Reply, Request};

/// The choices that the specification leaves to a service.
#[derive(Clone)]
pub struct Choices {
    /// `true` if a single event has no envelope.
    pub bare_event: bool,
    /// `true` if links have no host.
    pub relative_links: bool,
    /// `true` if a size above 100 is clamped to 100, not refused.
    pub clamps: bool,
    /// `true` if a size above 100 is served.
    pub unbounded: bool,
    /// `true` if a page past the end is the last page.
    pub shows_last_page: bool,
    /// The `last_page` of an empty list.
    pub empty_last_page: u64,
    /// The suffix of times.
    pub utc: &'static str,
    /// `true` if a filter by an unknown object gets 404, not an empty list.
    pub foreign_filter_404: bool,
    /// `true` if errors are problem details (RFC 9457).
    pub problem_json: bool,
    /// `true` if later pages are anchored to the read of the first page.
    pub steady: bool,
    /// `true` if an event shows the current state of its charge or invoice. Ignored if filters are wide.
    pub current_objects: bool,
}

#[derive(Clone)]
/// The objects of an account in a mode.
pub struct Book {
    /// The name of the account.
    pub name: String,
    /// All charges, newest first.
    pub charges: Vec<Value>,
    /// All invoices, newest first.
    pub invoices: Vec<Value>,
    /// All events, newest first.
    pub events: Vec<Value>,
    /// `true` if the filter by an invoice includes the events of its charges, and that by a charge those of its
    /// invoice.
    pub wide_filters: bool,
    /// The choices of the service.
    pub choices: Choices,
    /// The number of records when the first page was read, by list, filters, size and key.
    pub anchors: RefCell<BTreeMap<String, usize>>,
    /// The comparison of a filter: its name, the value that a row shows, and the wanted one.
    pub filter_matches: fn(name: &str, shown: &str, wanted: &str) -> bool,
    /// The time by the server's clock, if there is live traffic.
    pub(super) now: Option<String>,
}

impl Book {
    /// Returns a book without objects, with the default choices.
    pub fn empty() -> Book {
        let choices = Choices {
            bare_event: false,
            relative_links: false,
            clamps: false,
            unbounded: false,
            shows_last_page: false,
            empty_last_page: 1,
            utc: "Z",
            foreign_filter_404: false,
            problem_json: false,
            steady: true,
            current_objects: false,
        };
        Book {
            name: "A shop".into(),
            charges: Vec::new(),
            invoices: Vec::new(),
            events: Vec::new(),
            wide_filters: false,
            choices,
            anchors: RefCell::default(),
            filter_matches: |_, shown, wanted| shown == wanted,
            now: None,
        }
    }

    /// Returns a book with charges of two events each, then invoices of three.
    pub fn with_objects(world: u64, charges: u64, invoices: u64) -> Book {
        let mut book = Book::empty();
        for number in 0..charges {
            book.open_charge(world, number);
        }
        for number in 0..invoices {
            let paid = book.charges.first().filter(|_| number == 0).cloned();
            book.issue_invoice(world, number, paid);
        }
        book.newest_first()
    }

    /// Returns a book with more records than a long page: charges, and an invoice after every second one.
    pub fn with_long_lists(world: u64, charges: u64) -> Book {
        let mut book = Book::empty();
        for number in 0..charges {
            book.open_charge(world, number);
            if number.is_multiple_of(2) {
                let paid = book.charges.last().filter(|_| number.is_multiple_of(12)).cloned();
                book.issue_invoice(world, number / 2, paid);
            }
        }
        book.newest_first()
    }

    /// Returns a book with 275 records of each kind, of which only the oldest invoices are paid.
    pub fn with_many_records(world: u64) -> Book {
        let mut book = Book::empty();
        for number in 0..275 {
            book.open_charge(world, number);
            let paid = book.charges.last().filter(|_| number < 3).cloned();
            book.issue_invoice(world, number, paid);
        }
        book.newest_first()
    }

    fn newest_first(mut self) -> Book {
        for list in [&mut self.charges, &mut self.invoices, &mut self.events] {
            list.reverse();
        }
        self
    }

    /// Opens a charge, as the create request does.
    pub fn create_charge(&mut self) -> Reply {
        let charges = self.charges.len() as u64;
        // The charge is paid or canceled immediately.
        self.add_newest(|book| book.open_charge(9, charges));
        Reply::json(201, json!({ "data": self.charges[0] }))
    }

    /// Moves new records to the head of their lists.
    pub(super) fn add_newest(&mut self, new: impl FnOnce(&mut Book)) {
        let before = [self.charges.len(), self.invoices.len(), self.events.len()];
        new(self);
        for (list, len) in [&mut self.charges, &mut self.invoices, &mut self.events].into_iter().zip(before) {
            let new = list.split_off(len);
            list.splice(0..0, new.into_iter().rev());
        }
    }

    fn open_charge(&mut self, world: u64, number: u64) {
        let paid = number.is_multiple_of(2);
        let charge = self.new_charge(world, number, if paid { "paid" } else { "canceled" });
        self.add_event(world, "charge.created", &charge, &Value::Null);
        self.add_event(world, if paid { "charge.paid" } else { "charge.canceled" }, &charge, &Value::Null);
        self.charges.push(charge);
    }

    /// Records a charge with these events, some minutes apart: the type, the received amount, and `true` if the charge is
    /// paid by then. Each event shows the charge as it was.
    pub(crate) fn record_charge(&mut self, world: u64, number: u64, history: &[(&str, &str, bool)]) {
        let mut charge = self.new_charge(world, number, "pending");
        self.add_newest(|book| {
            for (kind, received, is_paid) in history {
                let minute = 5 * book.events.len();
                let (day, hour) = (20 + minute / 1_440, minute / 60 % 24);
                let now = format!("2025-12-{day}T{hour:02}:{:02}:00.000000Z", minute % 60);
                if *is_paid && charge["paid_at"].is_null() {
                    charge["paid_at"] = json!(now);
                }
                let status = kind.split_once('.').map_or(*kind, |(_, last)| last);
                (charge["status"], charge["received_amount"]) = (json!(status), json!(received));
                if *kind == "charge.created" {
                    charge["created_at"] = json!(now);
                }
                book.now = Some(now);
                book.add_event(world, kind, &charge, &Value::Null);
            }
            book.charges.push(charge);
        });
    }

    /// Returns a charge with all fields.
    pub(super) fn new_charge(&self, world: u64, number: u64, status: &str) -> Value {
        let paid = status == "paid";
        // Three of sixteen belong to a payment link, some of them paid.
        let link =
            matches!(number % 16, 1 | 8 | 9).then(|| format!("pl{world}ghijkl{:02}", number / 16 * 16 + 1));
        json!({
            "code": format!("ch{world}abcdef{number:02}"),
            "status": status,
            "payment_link": link,
            "fiat_amount": "49.90",
            "fiat_currency": "EUR",
            "asset": "BTC",
            "asset_amount": "0.00076192",
            "deposit_address": format!("bc1qworld{world:02}charge{number:04}"),
            "received_amount": if paid { "0.00076192" } else { "0" },
            "customer_email": "ann@shop.example",
            "description": "Two cups of tea",
            "metadata": { "order": number.to_string() },
            "paid_at": if paid { json!(self.next_time()) } else { Value::Null },
            "created_at": self.next_time(),
        })
    }

    /// Issues an invoice, which is open or was paid by a charge.
    pub(super) fn issue_invoice(&mut self, world: u64, number: u64, paid: Option<Value>) {
        let charges: Vec<_> =
            paid.iter().map(|charge| json!({ "code": charge["code"], "status": "paid" })).collect();
        let invoice = json!({
            "code": format!("in{world}mnopqr{number:02}"),
            "status": if paid.is_some() { "paid" } else { "open" },
            "charges": charges,
            "number": format!("INV-{:04}", number + 1),
            "amount": "49.90",
            "currency": "EUR",
            "customer": { "name": "Ann Leerick", "email": "ann@shop.example" },
            "hosted_url": format!("https://pay.example/i/{world}{number:02}"),
            "created_at": self.next_time(),
        });
        let last = if paid.is_some() { "invoice.paid" } else { "invoice.viewed" };
        for kind in ["invoice.created", "invoice.sent", last] {
            self.add_event(world, kind, &Value::Null, &invoice);
        }
        self.invoices.push(invoice);
    }

    pub(super) fn next_time(&self) -> String {
        if let Some(now) = &self.now {
            return now.clone();
        }
        let minute = self.events.len() + self.charges.len() + self.invoices.len();
        let (day, hour) = (1 + minute / 1_440, minute / 60 % 24);
        format!("2025-12-{day:02}T{hour:02}:{:02}:00.000000Z", minute % 60)
    }

    pub(super) fn add_event(&mut self, world: u64, kind: &str, charge: &Value, invoice: &Value) {
        let number = self.events.len();
        self.events.push(json!({
            "id": format!("0190a5c4-7f3e-7ab{world}-8def-{:012x}", (number as u64 + 1) * 0x12_3456_789a),
            "type": kind,
            "details": {},
            "charge": charge,
            "invoice": invoice,
            "created_at": self.next_time(),
        }));
    }

    /// Returns the response to a request with a key of a mode.
    pub fn respond(&self, request: &Request, mode: Mode, address: &str) -> Reply {
        match request.path.as_str() {
            "/v1/account" => Reply::json(
                200,
                json!({
                    "data": { "type": "personal", "display_name": self.name, "default_currency": "EUR" },
                    "meta": { "mode": mode.as_str(), "accepted_assets": ["BTC"] },
                }),
            ),
            "/v1/charges" => self.list_response(request, &self.charges, address),
            "/v1/invoices" => self.list_response(request, &self.invoices, address),
            "/v1/events" => self.list_response(request, &self.events, address),
            path if path.starts_with("/v1/charges/") => self.object_response(path, &self.charges),
            path if path.starts_with("/v1/invoices/") => self.object_response(path, &self.invoices),
            path => path
                .strip_prefix("/v1/events/")
                .map_or_else(|| self.not_found(), |id| self.event_response(id)),
        }
    }

    fn not_found(&self) -> Reply {
        if !self.choices.problem_json {
            return Reply::json(404, json!({ "message": "Not found." }));
        }
        let mut reply =
            Reply::json(404, json!({ "type": "about:blank", "title": "Not Found", "status": 404 }));
        reply.set("content-type", "application/problem+json");
        reply
    }

    /// Returns a charge or an invoice by its code.
    fn object_response(&self, path: &str, all: &[Value]) -> Reply {
        let code = path.rsplit('/').next().unwrap_or_default();
        match all.iter().find(|row| row["code"] == code) {
            None => self.not_found(),
            Some(found) => Reply::json(200, json!({ "data": self.apply_choices(found) })),
        }
    }

    /// Returns the response to a request of an event.
    fn event_response(&self, id: &str) -> Reply {
        match self.events.iter().find(|event| event["id"] == id) {
            None => self.not_found(),
            Some(event) if self.choices.bare_event => Reply::json(200, self.apply_choices(event)),
            Some(event) => Reply::json(200, json!({ "data": self.apply_choices(event) })),
        }
    }

    /// Returns an object in the form that the choices of the service require.
    fn apply_choices(&self, event: &Value) -> Value {
        let mut event = event.clone();
        let time = event["created_at"].as_str().map(|text| text.replace('Z', self.choices.utc));
        if let Some(time) = time {
            event["created_at"] = json!(time);
        }
        if self.choices.current_objects && !self.wide_filters {
            for (member, list) in [("charge", &self.charges), ("invoice", &self.invoices)] {
                let code = event[member]["code"].clone();
                if let Some(current) = list.iter().find(|item| code.is_string() && item["code"] == code) {
                    event[member] = current.clone();
                }
            }
        }
        event
    }

    /// Returns the records at the time of the first page.
    fn anchored_rows<'a>(&self, request: &Request, fits: Vec<&'a Value>, page: u64) -> Vec<&'a Value> {
        if !self.choices.steady {
            return fits;
        }
        let mut anchors = self.anchors.borrow_mut();
        let list = format!("{} {:?}", list_key(request), request.authorization);
        if page == 1 {
            anchors.insert(list, fits.len());
            return fits;
        }
        let until = anchors.get(&list).copied().unwrap_or(fits.len());
        fits[fits.len().saturating_sub(until)..].to_vec()
    }

    fn list_response(&self, request: &Request, all: &[Value], address: &str) -> Reply {
        let (mut page, mut size) =
            (request.number("page").unwrap_or(1), request.number("per_page").unwrap_or(25));
        if size > 100 && self.choices.clamps {
            size = 100;
        }
        if page == 0 || size == 0 || (size > 100 && !self.choices.unbounded) {
            return Reply::json(422, json!({ "message": "per_page takes 1 to 100." }));
        }
        let fits: Vec<_> = all.iter().filter(|row| self.matches_filters(row, request)).collect();
        let named =
            ["charge", "invoice", "payment_link"].iter().any(|name| request.query.contains_key(*name));
        if fits.is_empty() && named && self.choices.foreign_filter_404 {
            return self.not_found();
        }
        let fits = self.anchored_rows(request, fits, page);
        let total = fits.len() as u64;
        let last = if total == 0 { self.choices.empty_last_page } else { total.div_ceil(size) };
        if self.choices.shows_last_page {
            page = page.min(last.max(1));
        }
        let from = ((page - 1) * size) as usize;
        let rows: Vec<_> =
            fits.into_iter().skip(from).take(size as usize).map(|row| self.apply_choices(row)).collect();
        let link = |to: u64| {
            let mut query = Serializer::new(String::new());
            for (name, value) in request.query.iter().filter(|(name, _)| *name != "page") {
                query.append_pair(name, value);
            }
            query.append_pair("page", &to.to_string());
            let home = if self.choices.relative_links { "" } else { address };
            let path = if self.choices.relative_links { "" } else { request.path.as_str() };
            json!(format!("{home}{path}?{}", query.finish()))
        };
        let links = json!({
            "first": link(1),
            "last": link(last.max(1)),
            "prev": if page > 1 { link(page - 1) } else { Value::Null },
            "next": if page < last { link(page + 1) } else { Value::Null },
        });
        let meta = json!({ "current_page": page, "last_page": last, "per_page": size, "total": total });
        Reply::json(200, json!({ "data": rows, "links": links, "meta": meta }))
    }

    fn matches_filters(&self, row: &Value, request: &Request) -> bool {
        let fits = |name: &str, shown: &Value, wanted: &str| {
            shown.as_str().is_some_and(|shown| (self.filter_matches)(name, shown, wanted))
        };
        request.query.iter().all(|(name, value)| match name.as_str() {
            "type" | "status" | "payment_link" => fits(name, &row[name], value),
            "invoice" if self.wide_filters && row["charge"]["invoice"] == **value => true,
            "charge" | "invoice" if fits(name, &row[name]["code"], value) => true,
            "invoice" => self.wide_filters && self.lists_charge(value, &row["charge"]["code"]),
            "charge" => {
                self.wide_filters
                    && row["invoice"]["code"]
                        .as_str()
                        .is_some_and(|text| self.lists_charge(text, &json!(value)))
            }
            _ => true,
        })
    }

    /// Returns `true` if an invoice lists that charge.
    fn lists_charge(&self, invoice: &str, charge: &Value) -> bool {
        let charges = self.invoices.iter().filter(|listed| listed["code"] == *invoice);
        charges
            .filter_map(|charge| charge["charges"].as_array())
            .flatten()
            .any(|code| code["code"] == *charge)
    }
}

fn list_key(request: &Request) -> String {
    let named = request.query.iter().filter(|(name, _)| *name != "page");
    named.fold(request.path.clone(), |text, (name, value)| format!("{text} {name}={value}"))
}
