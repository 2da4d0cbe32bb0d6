//! The objects of one account in one mode, and their lists.

use std::cell::RefCell;
use std::collections::BTreeMap;

use conformance::Mode;
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use super::{EditableResponse, Request};

/// The last part of an event's id is a multiple of this number, so that ids look random, but those of existing events
/// can be recognized.
pub(crate) const EVENT_ID_FACTOR: u64 = 0x12_3456_789a;

/// Returns `true` if the path contains the id of an event of the other account, whose book has the number 3.
pub(crate) fn has_event_id_of_other_account(request: &Request) -> bool {
    request.path.contains("-7ab3-")
}

/// The choices that the specification leaves to a service.
#[derive(Clone)]
pub struct Choices {
    /// `true` if a single event has no envelope.
    pub bare_event: bool,
    /// `true` if links consist of only a query.
    pub relative_links: bool,
    /// `true` if a size above 100 is clamped to 100, not refused.
    pub clamps_page_size: bool,
    /// `true` if a size above 100 is served.
    pub allows_any_page_size: bool,
    /// `true` if a page past the end is the last page.
    pub shows_last_page: bool,
    /// The `last_page` of an empty list.
    pub empty_last_page: u64,
    /// The suffix of timestamps: `Z` or `+00:00`.
    pub utc_suffix: &'static str,
    /// `true` if a filter by a charge, an invoice or a payment link that matches nothing gets 404, not an empty list.
    pub unmatched_object_filter_404: bool,
    /// `true` if a 404 has problem details (RFC 9457).
    pub problem_json: bool,
    /// `true` if later pages omit records that were created after the first page was read.
    pub has_stable_pages: bool,
    /// `true` if an event shows the current state of its charge or invoice. Ignored with `has_wide_filters`.
    pub events_show_current_objects: bool,
}

/// The objects of an account in a mode.
#[derive(Clone)]
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
    pub has_wide_filters: bool,
    /// The choices of the service.
    pub choices: Choices,
    /// The number of records when the first page was read, by list, filters, page size and key.
    pub anchors: RefCell<BTreeMap<String, usize>>,
    /// Returns `true` if a row's value satisfies a filter.
    pub filter_matches: fn(name: &str, row_value: &str, filter_value: &str) -> bool,
    /// The `created_at` of the next records. Without it, each record is a minute later than the previous one.
    pub(super) now: Option<String>,
}

/// An event of a charge, and the state of the charge at that time.
#[derive(Clone, Copy)]
pub(crate) struct ChargeEvent {
    event_type: &'static str,
    received_amount: &'static str,
    is_paid: bool,
}

impl ChargeEvent {
    /// Returns an event of a charge that is not paid yet.
    pub(crate) const fn unpaid(event_type: &'static str, received_amount: &'static str) -> ChargeEvent {
        ChargeEvent { event_type, received_amount, is_paid: false }
    }

    /// Returns an event of a charge that is paid by then.
    pub(crate) const fn paid(event_type: &'static str, received_amount: &'static str) -> ChargeEvent {
        ChargeEvent { event_type, received_amount, is_paid: true }
    }
}

impl Book {
    /// Returns a book without objects, with the default choices.
    pub fn empty() -> Book {
        let choices = Choices {
            bare_event: false,
            relative_links: false,
            clamps_page_size: false,
            allows_any_page_size: false,
            shows_last_page: false,
            empty_last_page: 1,
            utc_suffix: "Z",
            unmatched_object_filter_404: false,
            problem_json: false,
            has_stable_pages: true,
            events_show_current_objects: false,
        };
        Book {
            name: "A shop".into(),
            charges: Vec::new(),
            invoices: Vec::new(),
            events: Vec::new(),
            has_wide_filters: false,
            choices,
            anchors: RefCell::default(),
            filter_matches: |_, row_value, filter_value| row_value == filter_value,
            now: None,
        }
    }

    /// Returns a book with this many charges, with two events each, and then invoices, with three events each. The first
    /// charge pays the first invoice. `book_number` is a part of all ids.
    pub fn with_objects(book_number: u64, charges: u64, invoices: u64) -> Book {
        let mut book = Book::empty();
        for number in 0..charges {
            book.add_charge(book_number, number);
        }
        for number in 0..invoices {
            let payment = book.charges.first().filter(|_| number == 0).cloned();
            book.issue_invoice(book_number, number, payment);
        }
        book.newest_first()
    }

    /// Returns a book with this many charges, and an invoice after every second one; every sixth invoice is paid.
    /// From 29 charges on, it has more events than the longest page, which has 100.
    pub fn with_long_lists(book_number: u64, charges: u64) -> Book {
        let mut book = Book::empty();
        for number in 0..charges {
            book.add_charge(book_number, number);
            if number.is_multiple_of(2) {
                let payment = book.charges.last().filter(|_| number.is_multiple_of(12)).cloned();
                book.issue_invoice(book_number, number / 2, payment);
            }
        }
        book.newest_first()
    }

    /// Returns a book with 275 records of each kind, of which only the oldest invoices are paid.
    pub fn with_many_records(book_number: u64) -> Book {
        let mut book = Book::empty();
        for number in 0..275 {
            book.add_charge(book_number, number);
            let payment = book.charges.last().filter(|_| number < 3).cloned();
            book.issue_invoice(book_number, number, payment);
        }
        book.newest_first()
    }

    fn newest_first(mut self) -> Book {
        for list in [&mut self.charges, &mut self.invoices, &mut self.events] {
            list.reverse();
        }
        self
    }

    /// Creates a charge as a client would, and returns the response.
    pub fn create_charge(&mut self) -> EditableResponse {
        let number = self.charges.len() as u64;
        // The charge is paid or canceled immediately. No other book has the number 9, so its ids are new.
        self.add_newest(|book| book.add_charge(9, number));
        EditableResponse::json(201, json!({ "data": self.charges[0] }))
    }

    /// Moves the records that `append` adds to the head of their lists.
    pub(super) fn add_newest(&mut self, append: impl FnOnce(&mut Book)) {
        let lens = [self.charges.len(), self.invoices.len(), self.events.len()];
        append(self);
        for (list, len) in [&mut self.charges, &mut self.invoices, &mut self.events].into_iter().zip(lens) {
            let new = list.split_off(len);
            list.splice(0..0, new.into_iter().rev());
        }
    }

    /// Adds a charge with two events: paid if its number is even, else canceled.
    fn add_charge(&mut self, book_number: u64, number: u64) {
        let is_paid = number.is_multiple_of(2);
        let charge = self.new_charge(book_number, number, if is_paid { "paid" } else { "canceled" });
        self.add_event(book_number, "charge.created", &charge, &Value::Null);
        self.add_event(
            book_number,
            if is_paid { "charge.paid" } else { "charge.canceled" },
            &charge,
            &Value::Null,
        );
        self.charges.push(charge);
    }

    /// Records a charge with these events, five minutes apart. Each event shows the charge as it was, with the part of
    /// the event type after the dot as its status.
    pub(crate) fn record_charge(&mut self, book_number: u64, number: u64, history: &[ChargeEvent]) {
        let mut charge = self.new_charge(book_number, number, "pending");
        self.add_newest(|book| {
            for &ChargeEvent { event_type, received_amount, is_paid } in history {
                let minute = 5 * book.events.len();
                let (day, hour) = (20 + minute / 1_440, minute / 60 % 24);
                let time = format!("2025-12-{day}T{hour:02}:{:02}:00.000000Z", minute % 60);
                if is_paid && charge["paid_at"].is_null() {
                    charge["paid_at"] = json!(time);
                }
                let status = event_type.split_once('.').map_or(event_type, |(_, status)| status);
                (charge["status"], charge["received_amount"]) = (json!(status), json!(received_amount));
                if event_type == "charge.created" {
                    charge["created_at"] = json!(time);
                }
                book.now = Some(time);
                book.add_event(book_number, event_type, &charge, &Value::Null);
            }
            book.charges.push(charge);
        });
    }

    /// Returns a charge with all fields.
    pub(super) fn new_charge(&self, book_number: u64, number: u64, status: &str) -> Value {
        let is_paid = status == "paid";
        // Three of sixteen charges belong to a payment link; only the one with an even number is paid.
        let link = matches!(number % 16, 1 | 8 | 9)
            .then(|| format!("pl{book_number}ghijkl{:02}", number / 16 * 16 + 1));
        json!({
            "code": format!("ch{book_number}abcdef{number:02}"),
            "status": status,
            "payment_link": link,
            "fiat_amount": "49.90",
            "fiat_currency": "EUR",
            "asset": "BTC",
            "asset_amount": "0.00076192",
            "deposit_address": format!("bc1qworld{book_number:02}charge{number:04}"),
            "received_amount": if is_paid { "0.00076192" } else { "0" },
            "customer_email": "ann@shop.example",
            "description": "Two cups of tea",
            "metadata": { "order": number.to_string() },
            "paid_at": if is_paid { json!(self.next_time()) } else { Value::Null },
            "created_at": self.next_time(),
        })
    }

    /// Issues an invoice with three events. It is open, or paid by the charge `paying_charge`.
    pub(super) fn issue_invoice(&mut self, book_number: u64, number: u64, paying_charge: Option<Value>) {
        let charges: Vec<_> =
            paying_charge.iter().map(|charge| json!({ "code": charge["code"], "status": "paid" })).collect();
        let invoice = json!({
            "code": format!("in{book_number}mnopqr{number:02}"),
            "status": if paying_charge.is_some() { "paid" } else { "open" },
            "charges": charges,
            "number": format!("INV-{:04}", number + 1),
            "amount": "49.90",
            "currency": "EUR",
            "customer": { "name": "Ann Leerick", "email": "ann@shop.example" },
            "hosted_url": format!("https://pay.example/i/{book_number}{number:02}"),
            "created_at": self.next_time(),
        });
        let last_type = if paying_charge.is_some() { "invoice.paid" } else { "invoice.viewed" };
        for event_type in ["invoice.created", "invoice.sent", last_type] {
            self.add_event(book_number, event_type, &Value::Null, &invoice);
        }
        self.invoices.push(invoice);
    }

    /// Returns the `created_at` of the next record.
    pub(super) fn next_time(&self) -> String {
        if let Some(now) = &self.now {
            return now.clone();
        }
        let minute = self.events.len() + self.charges.len() + self.invoices.len();
        let (day, hour) = (1 + minute / 1_440, minute / 60 % 24);
        format!("2025-12-{day:02}T{hour:02}:{:02}:00.000000Z", minute % 60)
    }

    /// Adds an event at the end of the list.
    pub(super) fn add_event(&mut self, book_number: u64, event_type: &str, charge: &Value, invoice: &Value) {
        let number = self.events.len();
        self.events.push(json!({
            "id": format!("0190a5c4-7f3e-7ab{book_number}-8def-{:012x}", (number as u64 + 1) * EVENT_ID_FACTOR),
            "type": event_type,
            "details": {},
            "charge": charge,
            "invoice": invoice,
            "created_at": self.next_time(),
        }));
    }

    /// Returns the response to a request. `mode` is the mode of its key; absolute links start with `base_url`.
    pub fn respond(&self, request: &Request, mode: Mode, base_url: &str) -> EditableResponse {
        match request.path.as_str() {
            "/v1/account" => EditableResponse::json(
                200,
                json!({
                    "data": {
                        "type": "personal",
                        "display_name": self.name,
                        "default_currency": "EUR",
                        "payment_tolerances": { "underpaid_percent": "0.5" },
                    },
                    "meta": { "mode": mode.as_str(), "accepted_assets": ["BTC"] },
                }),
            ),
            "/v1/charges" => self.list_response(request, &self.charges, base_url),
            "/v1/invoices" => self.list_response(request, &self.invoices, base_url),
            "/v1/events" => self.list_response(request, &self.events, base_url),
            path if path.starts_with("/v1/charges/") => self.object_response(path, &self.charges),
            path if path.starts_with("/v1/invoices/") => self.object_response(path, &self.invoices),
            path => path
                .strip_prefix("/v1/events/")
                .map_or_else(|| self.not_found(), |id| self.event_response(id)),
        }
    }

    fn not_found(&self) -> EditableResponse {
        if !self.choices.problem_json {
            return EditableResponse::json(404, json!({ "message": "Not found." }));
        }
        let mut response = EditableResponse::json(
            404,
            json!({ "type": "about:blank", "title": "Not Found", "status": 404 }),
        );
        response.set_header("content-type", "application/problem+json");
        response
    }

    /// Returns the response with a charge or an invoice, found by the code in the path.
    fn object_response(&self, path: &str, objects: &[Value]) -> EditableResponse {
        let code = path.rsplit('/').next().unwrap_or_default();
        match objects.iter().find(|object| object["code"] == code) {
            None => self.not_found(),
            Some(object) => EditableResponse::json(200, json!({ "data": self.apply_choices(object) })),
        }
    }

    /// Returns the response to a request for one event.
    fn event_response(&self, id: &str) -> EditableResponse {
        match self.events.iter().find(|event| event["id"] == id) {
            None => self.not_found(),
            Some(event) if self.choices.bare_event => EditableResponse::json(200, self.apply_choices(event)),
            Some(event) => EditableResponse::json(200, json!({ "data": self.apply_choices(event) })),
        }
    }

    /// Returns a charge, an invoice or an event in the format that the choices of the service require.
    fn apply_choices(&self, object: &Value) -> Value {
        let mut object = object.clone();
        let created_at = object["created_at"].as_str().map(|time| time.replace('Z', self.choices.utc_suffix));
        if let Some(created_at) = created_at {
            object["created_at"] = json!(created_at);
        }
        if self.choices.events_show_current_objects && !self.has_wide_filters {
            for (member, list) in [("charge", &self.charges), ("invoice", &self.invoices)] {
                let code = object[member]["code"].clone();
                if let Some(current) = list.iter().find(|row| code.is_string() && row["code"] == code) {
                    object[member] = current.clone();
                }
            }
        }
        object
    }

    /// Records the number of rows when page 1 is read, and omits newer rows from later pages.
    fn anchored_rows<'a>(&self, request: &Request, rows: Vec<&'a Value>, page: u64) -> Vec<&'a Value> {
        if !self.choices.has_stable_pages {
            return rows;
        }
        let mut anchors = self.anchors.borrow_mut();
        let key = format!("{} {:?}", list_key(request), request.authorization);
        if page == 1 {
            anchors.insert(key, rows.len());
            return rows;
        }
        let anchored_len = anchors.get(&key).copied().unwrap_or(rows.len());
        rows[rows.len().saturating_sub(anchored_len)..].to_vec()
    }

    fn list_response(&self, request: &Request, records: &[Value], base_url: &str) -> EditableResponse {
        let (mut page, mut size) =
            (request.number("page").unwrap_or(1), request.number("per_page").unwrap_or(25));
        if size > 100 && self.choices.clamps_page_size {
            size = 100;
        }
        if page == 0 || size == 0 || (size > 100 && !self.choices.allows_any_page_size) {
            return EditableResponse::json(422, json!({ "message": "per_page must be between 1 and 100." }));
        }
        let matching: Vec<_> = records.iter().filter(|row| self.matches_filters(row, request)).collect();
        let filters_by_object =
            ["charge", "invoice", "payment_link"].iter().any(|name| request.query.contains_key(*name));
        if matching.is_empty() && filters_by_object && self.choices.unmatched_object_filter_404 {
            return self.not_found();
        }
        let matching = self.anchored_rows(request, matching, page);
        let total = matching.len() as u64;
        let last_page = if total == 0 { self.choices.empty_last_page } else { total.div_ceil(size) };
        if self.choices.shows_last_page {
            page = page.min(last_page.max(1));
        }
        let start = ((page - 1) * size) as usize;
        let rows: Vec<_> =
            matching.into_iter().skip(start).take(size as usize).map(|row| self.apply_choices(row)).collect();
        let link = |page: u64| {
            let mut query = Serializer::new(String::new());
            for (name, value) in request.query.iter().filter(|(name, _)| *name != "page") {
                query.append_pair(name, value);
            }
            query.append_pair("page", &page.to_string());
            let base_url = if self.choices.relative_links { "" } else { base_url };
            let path = if self.choices.relative_links { "" } else { request.path.as_str() };
            json!(format!("{base_url}{path}?{}", query.finish()))
        };
        let links = json!({
            "first": link(1),
            "last": link(last_page.max(1)),
            "prev": if page > 1 { link(page - 1) } else { Value::Null },
            "next": if page < last_page { link(page + 1) } else { Value::Null },
        });
        let meta = json!({ "current_page": page, "last_page": last_page, "per_page": size, "total": total });
        EditableResponse::json(200, json!({ "data": rows, "links": links, "meta": meta }))
    }

    /// Returns `true` if a row satisfies all filters of a request. Unknown parameters are ignored.
    fn matches_filters(&self, row: &Value, request: &Request) -> bool {
        let matches = |name: &str, row_value: &Value, filter_value: &str| {
            row_value.as_str().is_some_and(|row_value| (self.filter_matches)(name, row_value, filter_value))
        };
        request.query.iter().all(|(name, value)| match name.as_str() {
            "type" | "status" | "payment_link" => matches(name, &row[name], value),
            "invoice" if self.has_wide_filters && row["charge"]["invoice"] == **value => true,
            "charge" | "invoice" if matches(name, &row[name]["code"], value) => true,
            "invoice" => self.has_wide_filters && self.lists_charge(value, &row["charge"]["code"]),
            "charge" => {
                self.has_wide_filters
                    && row["invoice"]["code"]
                        .as_str()
                        .is_some_and(|invoice| self.lists_charge(invoice, &json!(value)))
            }
            _ => true,
        })
    }

    /// Returns `true` if the invoice with this code lists the charge with this code.
    fn lists_charge(&self, invoice_code: &str, charge_code: &Value) -> bool {
        let invoices = self.invoices.iter().filter(|invoice| invoice["code"] == *invoice_code);
        invoices
            .filter_map(|invoice| invoice["charges"].as_array())
            .flatten()
            .any(|charge| charge["code"] == *charge_code)
    }
}

/// Returns the path, the page size and the filters of a requested list. Links may have further parameters.
fn list_key(request: &Request) -> String {
    const PARAMETERS: [&str; 6] = ["per_page", "status", "payment_link", "type", "charge", "invoice"];
    let parameters = request.query.iter().filter(|(name, _)| PARAMETERS.contains(&name.as_str()));
    parameters.fold(request.path.clone(), |key, (name, value)| format!("{key} {name}={value}"))
}
