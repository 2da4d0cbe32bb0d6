//! The filter values in the lists of a mode, and the requests that use them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use conformance_model::mode::Mode;
use conformance_model::reading::{
    Page, event_charge_codes, invoice_charge_codes, lists_charge, names_invoice, page_request,
    payment_link_code, text_at,
};
use conformance_model::recording::{Caller, List, PageRequest, Purpose, Recording};

use crate::probes::lists::RECORDS_MIN;
use crate::probes::positions::{LONG_PAGE_SIZE, filtered_request};

/// The names and values of combined filters.
type Filters = Vec<(&'static str, String)>;

/// The filter values in the lists of a mode.
pub(super) struct FilterValues {
    events: Vec<Value>,
    charges: Vec<Value>,
    invoices: Vec<Value>,
}

impl FilterValues {
    /// Returns the values in the unfiltered long pages that were read for a matching purpose.
    pub(super) fn from_recording(
        recording: &Recording,
        mode: Mode,
        has_purpose: impl Fn(&Purpose) -> bool,
    ) -> FilterValues {
        let rows = |list| {
            let mut pages = BTreeMap::new();
            for exchange in recording.exchanges.iter().filter(|exchange| exchange.caller == Caller::Own(mode))
            {
                let Some(request) = page_request(exchange).filter(|_| has_purpose(&exchange.purpose)) else {
                    continue;
                };
                if (request.list, request.per_page) == (list, Some(LONG_PAGE_SIZE))
                    && request.filters.is_empty()
                {
                    let rows = Page::from_exchange(exchange).and_then(Page::rows);
                    pages.insert(request.page.unwrap_or(1), rows.unwrap_or_default());
                }
            }
            pages.into_values().flatten().cloned().collect()
        };
        FilterValues {
            events: rows(List::Events),
            charges: rows(List::Charges),
            invoices: rows(List::Invoices),
        }
    }

    /// Returns the rows of a list.
    pub(super) fn rows(&self, list: List) -> &[Value] {
        match list {
            List::Charges => &self.charges,
            List::Invoices => &self.invoices,
            List::Events => &self.events,
        }
    }

    /// Returns every value of a filter in the lists.
    pub(super) fn values(&self, list: List, filter: &str) -> BTreeSet<String> {
        let values_at = |rows: &[Value], path: &[&str]| -> BTreeSet<String> {
            let texts = rows.iter().filter_map(|row| text_at(row, path));
            texts.filter(|text| !text.is_empty()).map(str::to_owned).collect()
        };
        match filter {
            "charge" | "invoice" => values_at(&self.events, &[filter, "code"]),
            "payment_link" => {
                let mut links = values_at(&self.events, &["charge", "payment_link"]);
                links.extend(self.charges.iter().filter_map(payment_link_code).map(str::to_owned));
                links
            }
            _ => values_at(self.rows(list), &[filter]),
        }
    }

    /// Returns requests with one filter, with pairs, and with the three filters of events. `None` if there is no value.
    pub(super) fn requests(&self) -> [Option<PageRequest>; 11] {
        let events = &self.events[..];
        let value = |name, path: [&str; 2]| {
            let value = values_of_every_type(events, path).first().map(|value| (*value).to_owned())?;
            Some(vec![(name, value)])
        };
        let listed_link = || {
            let link = self.charges.iter().find_map(payment_link_code)?;
            Some(vec![("payment_link", link.to_owned())])
        };
        let all_three = || {
            let (kind, mut pair) = charge_and_invoice(events)?;
            pair.insert(0, ("type", kind));
            Some(pair)
        };
        let request = |list, filters: Option<Filters>| {
            // An empty value does not filter.
            let filters = filters.filter(|filters| filters.iter().all(|(_, value)| !value.is_empty()))?;
            let filters: Vec<_> = filters.iter().map(|(name, value)| (*name, value.as_str())).collect();
            Some(filtered_request(list, &filters, LONG_PAGE_SIZE))
        };
        [
            request(List::Events, selective_value(events, "type").map(|(kind, _)| vec![("type", kind)])),
            request(List::Events, value("charge", ["charge", "code"])),
            request(List::Events, value("invoice", ["invoice", "code"])),
            request(List::Charges, self.status_filter(List::Charges, "charge")),
            request(List::Invoices, self.status_filter(List::Invoices, "invoice")),
            request(List::Charges, value("payment_link", ["charge", "payment_link"]).or_else(listed_link)),
            request(List::Events, type_and_object(events, "charge")),
            request(List::Events, type_and_object(events, "invoice")),
            request(
                List::Events,
                unrelated_pair(events).or_else(|| charge_and_invoice(events).map(|(_, pair)| pair)),
            ),
            request(List::Events, all_three()),
            request(List::Charges, status_and_link(events)),
        ]
    }

    /// Returns the request of the second page for a filter by status, if there is one, because the first page was
    /// read in test mode. Returns other requests unchanged.
    pub(super) fn second_page(&self, request: PageRequest) -> PageRequest {
        /// The matching rows are split into two pages.
        const HALVES: u64 = 2;
        let [(name, value)] = &request.filters[..] else { return request };
        let count =
            self.rows(request.list).iter().filter(|row| text_at(row, &[name]) == Some(value)).count() as u64;
        if name != "status" || count < HALVES {
            return request;
        }
        PageRequest { page: Some(2), per_page: Some(count / HALVES), ..request }
    }

    /// Returns the further requests of a burst: the second page of each filter by number, one filter with the default
    /// page size, all other types and statuses in the lists, and with the default page size the events of a charge of an
    /// invoice, of the oldest objects and of objects with events of every type.
    pub(super) fn further_requests(&self) -> Vec<PageRequest> {
        let mut single_filters: Vec<_> = self.requests().into_iter().flatten().collect();
        single_filters.retain(|request| request.filters.len() == 1);
        let has_second_page = |request: &&PageRequest| {
            let (name, value) = &request.filters[0];
            let value_in = |row| match name.as_str() {
                "charge" | "invoice" => text_at(row, &[name, "code"]),
                _ => text_at(row, &[name]),
            };
            self.rows(request.list).iter().filter(|row| value_in(row) == Some(value)).count() > 1
        };
        let second_page =
            |request: &PageRequest| PageRequest { page: Some(2), per_page: Some(1), ..request.clone() };
        let with_default_size = |request: &PageRequest| PageRequest { per_page: None, ..request.clone() };
        let mut further: Vec<_> = single_filters.iter().filter(has_second_page).map(second_page).collect();
        further.extend(single_filters.iter().find(has_second_page).map(with_default_size));
        let values =
            |list, name| value_counts(self.rows(list), name).into_keys().map(move |key| (list, name, key));
        let oldest = |list, name, path: [&str; 2]| {
            let mut values = self.events.iter().rev().filter_map(|event| text_at(event, &path));
            let value = values.find(|value| !value.is_empty())?;
            Some((list, name, value))
        };
        let of_every_type = |name: &'static str| {
            let values = values_of_every_type(&self.events, [name, "code"]);
            values.into_iter().map(move |code| (List::Events, name, code))
        };
        let listed_values = values(List::Events, "type")
            .chain(values(List::Charges, "status"))
            .chain(values(List::Invoices, "status"))
            .map(|(list, name, value)| filtered_request(list, &[(name, value)], LONG_PAGE_SIZE));
        // An object has few events, so that the default page size suffices.
        let of_invoice = self.charge_of_invoice().map(|code| (List::Events, "charge", code));
        let objects = (of_invoice.into_iter())
            .chain(of_every_type("charge"))
            .chain(of_every_type("invoice"))
            .chain(oldest(List::Events, "charge", ["charge", "code"]))
            .chain(oldest(List::Events, "invoice", ["invoice", "code"]))
            .chain(oldest(List::Charges, "payment_link", ["charge", "payment_link"]))
            .map(|(list, name, value)| {
                with_default_size(&filtered_request(list, &[(name, value)], LONG_PAGE_SIZE))
            });
        for request in listed_values.chain(objects) {
            let has_same_filters =
                |other: &PageRequest| (other.list, &other.filters) == (request.list, &request.filters);
            if !single_filters.iter().any(has_same_filters) && !further.contains(&request) {
                further.push(request);
            }
        }
        further
    }

    /// Returns the newest charge of an invoice that has events of its own. A filter may search such charges elsewhere.
    pub(super) fn charge_of_invoice(&self) -> Option<&str> {
        let of_events = self.events.iter().filter_map(event_charge_codes);
        let listed = self.invoices.iter().filter_map(invoice_charge_codes);
        let codes: BTreeSet<&str> = of_events.chain(listed).flatten().collect();
        self.events.iter().find_map(|event| {
            let code = text_at(event, &["charge", "code"]).filter(|code| !code.is_empty())?;
            (codes.contains(code) || charge_names_an_invoice(event)).then_some(code)
        })
    }

    /// Returns the filter by a status, preferably a selective one of the list, see [`selective_value`]; otherwise one
    /// in the events.
    fn status_filter(&self, list: List, member: &str) -> Option<Filters> {
        let listed = selective_value(self.rows(list), "status").map(|(status, _)| status);
        let status_in_events = || self.events.iter().find_map(|event| text_at(event, &[member, "status"]));
        let status = listed.or_else(|| status_in_events().map(str::to_owned))?;
        Some(vec![("status", status)])
    }

    /// Returns the id of the oldest event of each type.
    pub(super) fn oldest_event_of_each_type(&self) -> Vec<String> {
        let mut found = BTreeMap::new();
        for event in self.events.iter().rev() {
            if let (Some(kind), Some(id)) = (text_at(event, &["type"]), text_at(event, &["id"])) {
                found.entry(kind).or_insert(id);
            }
        }
        found.into_values().map(str::to_owned).collect()
    }
}

/// Returns `true` if the charge of an event names an invoice.
fn charge_names_an_invoice(event: &Value) -> bool {
    let invoice = text_at(event, &["charge", "invoice"]).or(text_at(event, &["charge", "invoice", "code"]));
    invoice.is_some_and(|invoice| !invoice.is_empty())
}

/// Returns few values at a path whose events together have all types, because a filter may omit events of some types.
/// Each value adds the most further types, and is the newest of those that add as many.
fn values_of_every_type<'a>(events: &'a [Value], path: [&str; 2]) -> Vec<&'a str> {
    let mut types: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut newest_first = Vec::new();
    for event in events {
        let (Some(value), Some(kind)) = (text_at(event, &path), text_at(event, &["type"])) else { continue };
        if !types.contains_key(value) {
            newest_first.push(value);
        }
        types.entry(value).or_default().insert(kind);
    }
    let mut values = Vec::new();
    let mut covered = BTreeSet::new();
    loop {
        let uncovered = |value: &&&str| types[**value].difference(&covered).count();
        let Some(value) =
            newest_first.iter().rev().max_by_key(uncovered).filter(|value| uncovered(value) > 0)
        else {
            return values;
        };
        covered.extend(&types[*value]);
        values.push(*value);
    }
}

/// Returns the values of a member, with the number of rows that have each.
pub(super) fn value_counts<'a>(rows: &'a [Value], name: &str) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for value in rows.iter().filter_map(|row| text_at(row, &[name])) {
        *counts.entry(value).or_default() += 1;
    }
    counts
}

/// Returns a value of a member, preferably a selective one, and `true` if it is selective: its rows need two pages of
/// two, and not all rows have it.
fn selective_value(rows: &[Value], name: &str) -> Option<(String, bool)> {
    let is_selective = |count: usize| count as u64 >= RECORDS_MIN && count < rows.len();
    let mut found: Vec<_> =
        value_counts(rows, name).into_iter().map(|(value, count)| (value, is_selective(count))).collect();
    found.sort_by_key(|(_, is_selective)| !is_selective);
    found.into_iter().next().map(|(value, is_selective)| (value.to_owned(), is_selective))
}

/// Returns a mode and an event type, preferably a selective one, see [`selective_value`].
pub(super) fn selective_type(modes: &[(Mode, &FilterValues); 2]) -> Option<(Mode, String)> {
    let found = modes
        .iter()
        .filter_map(|(mode, available)| Some((*mode, selective_value(&available.events, "type")?)));
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|(_, (_, is_selective))| !is_selective);
    found.into_iter().next().map(|(mode, (kind, _))| (mode, kind))
}

/// Returns filters by the type of an old event and its charge or invoice, preferably one with events of other types, too.
fn type_and_object(events: &[Value], object: &'static str) -> Option<Filters> {
    let code = |event: &Value| text_at(event, &[object, "code"]).map(str::to_owned);
    let kind = |event: &Value| text_at(event, &["type"]).map(str::to_owned);
    let pair = |event: &Value| Some(vec![("type", kind(event)?), (object, code(event)?)]);
    let is_selective = |event: &&Value| {
        events.iter().any(|row| code(row).is_some() && code(row) == code(event) && kind(row) != kind(event))
    };
    // The oldest one, because a filter may search in recent events only.
    events.iter().rev().filter(is_selective).find_map(pair).or_else(|| events.iter().rev().find_map(pair))
}

/// Returns a value with another letter or digit at its end. `None` if it ends with another character.
pub(super) fn with_other_end(value: &str) -> Option<String> {
    let (index, last) = value.char_indices().next_back().filter(|(_, last)| last.is_ascii_alphanumeric())?;
    // A hexadecimal digit becomes another one.
    let other = match last {
        '9' => '0',
        'f' | 'z' => 'a',
        'F' | 'Z' => 'A',
        _ => char::from_u32(u32::from(last) + 1)?,
    };
    Some(format!("{}{other}", &value[..index]))
}

/// Returns a charge and an invoice, preferably related ones, and the type of an event of the charge.
fn charge_and_invoice(events: &[Value]) -> Option<(String, Filters)> {
    let charges = events.iter().filter_map(|event| Some((event, text_at(event, &["charge", "code"])?)));
    let invoices: Vec<_> =
        events.iter().filter_map(|event| Some((event, text_at(event, &["invoice", "code"])?))).collect();
    let mut pairs = Vec::new();
    for (event, charge) in charges {
        let related = invoices
            .iter()
            .find(|(invoice_event, invoice)| {
                lists_charge(invoice_event, charge) || names_invoice(event, invoice)
            })
            .map(|(_, invoice)| *invoice);
        let invoice = related.or(invoices.first().map(|(_, invoice)| *invoice));
        pairs.push((related.is_none(), event, charge, invoice?));
    }
    pairs.sort_by_key(|(is_unrelated, ..)| *is_unrelated);
    let (_, event, charge, invoice) = pairs.into_iter().next()?;
    let kind = text_at(event, &["type"])?.to_owned();
    Some((kind, vec![("charge", charge.to_owned()), ("invoice", invoice.to_owned())]))
}

/// Returns the filters by a charge with events that belongs to an invoice, and by another invoice, with other charges. No
/// event matches both filters, even if each of them includes the events of related objects.
fn unrelated_pair(events: &[Value]) -> Option<Filters> {
    let mut charges_of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for event in events {
        if let (Some(invoice), Some(charges)) =
            (text_at(event, &["invoice", "code"]), event_charge_codes(event))
        {
            charges_of.entry(invoice).or_default().extend(charges);
        }
    }
    charges_of.retain(|_, charges| !charges.is_empty());
    let has_events =
        |charge: &str| events.iter().any(|event| text_at(event, &["charge", "code"]) == Some(charge));
    charges_of.values().flatten().filter(|charge| has_events(charge)).find_map(|charge| {
        let is_unrelated = |(_, charges): &(&&str, &BTreeSet<&str>)| !charges.contains(charge);
        let (invoice, _) = charges_of.iter().find(is_unrelated)?;
        Some(vec![("charge", (*charge).to_owned()), ("invoice", (*invoice).to_owned())])
    })
}

/// Returns a status and a payment link, preferably ones that select different charges.
fn status_and_link(events: &[Value]) -> Option<Filters> {
    let pair_of = |event: &Value| {
        Some((
            text_at(event, &["charge", "status"])?.to_owned(),
            text_at(event, &["charge", "payment_link"]).map(str::to_owned),
        ))
    };
    let pairs: Vec<_> = events.iter().filter_map(pair_of).collect();
    let linked = pairs.iter().filter_map(|(status, link)| Some((status, link.as_ref()?)));
    // 2 if the status selects charges that the link does not, and the reverse; 1 for one of these.
    let selectivity = |status: &String, link: &String| {
        let matches_one = |(other_status, other_link): &&(String, Option<String>)| {
            (other_status == status) != (other_link.as_ref() == Some(link))
        };
        let groups: BTreeSet<_> =
            pairs.iter().filter(matches_one).map(|(other_status, _)| other_status == status).collect();
        groups.len()
    };
    let (status, link) = linked.max_by_key(|(status, link)| selectivity(status, link))?;
    Some(vec![("status", status.clone()), ("payment_link", link.clone())])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::request_paths::page_path;

    fn event(kind: &str, charge: &Value, invoice: &Value) -> Value {
        json!({ "type": kind, "charge": charge, "invoice": invoice })
    }

    #[track_caller]
    fn check_filters(found: Option<Filters>, expected: &str) {
        let found = found.unwrap_or_default();
        let texts: Vec<_> = found.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(texts.join("&"), expected);
    }

    #[test]
    fn combined_filters_select_different_records() {
        let lone = event("charge.created", &json!({ "code": "c1" }), &Value::Null);
        let paid = event("charge.paid", &json!({ "code": "c2", "invoice": "i2" }), &Value::Null);
        let created = event("charge.created", &json!({ "code": "c2", "invoice": "i2" }), &Value::Null);
        let invoice = event("invoice.created", &Value::Null, &json!({ "code": "i1" }));
        let settled =
            event("invoice.paid", &Value::Null, &json!({ "code": "i2", "charges": [{ "code": "c2" }] }));
        let events = [lone.clone(), invoice.clone(), paid, created, settled];
        check_filters(type_and_object(&events, "charge"), "type=charge.created&charge=c2");
        check_filters(type_and_object(&events, "invoice"), "type=invoice.paid&invoice=i2");
        check_filters(charge_and_invoice(&events).map(|pair| pair.1), "charge=c2&invoice=i2");
        check_filters(
            charge_and_invoice(&[lone.clone(), invoice]).map(|pair| pair.1),
            "charge=c1&invoice=i1",
        );
        check_filters(charge_and_invoice(&[lone]).map(|pair| pair.1), "");
    }

    #[test]
    fn an_unrelated_pair_is_a_charge_and_another_invoice_with_charges() {
        let invoice = |code: &str, charges: &[&str]| {
            event("invoice.paid", &Value::Null, &json!({ "code": code, "charges": charges }))
        };
        let charge = |code: &str| event("charge.paid", &json!({ "code": code }), &Value::Null);
        let check = |events: &[Value], expected| check_filters(unrelated_pair(events), expected);
        check(&[charge("c1"), invoice("i1", &["c1"]), invoice("i2", &["c2"])], "charge=c1&invoice=i2");
        check(&[charge("c1"), invoice("i1", &["c1"]), invoice("i2", &[])], "");
        check(&[charge("c1"), invoice("i1", &["c1"]), invoice("i2", &["c1", "c2"])], "");
        check(&[charge("c3"), invoice("i1", &["c1"]), invoice("i2", &["c2"])], "");
    }

    #[test]
    fn a_value_with_another_end_has_the_same_format() {
        for (value, expected) in [
            ("k3m9", Some("k3m0")),
            ("0190a5c4-7f3e-7abc-8def-0123456789af", Some("0190a5c4-7f3e-7abc-8def-0123456789aa")),
            ("plan-a", Some("plan-b")),
            ("ABZ", Some("ABA")),
            ("a.", None),
            ("", None),
        ] {
            assert_eq!(with_other_end(value).as_deref(), expected);
        }
    }

    #[test]
    fn events_of_every_type_are_requested_by_few_objects() {
        let events =
            [("paid", "c3"), ("expired", "c2"), ("expired", "c1"), ("paid", "c0"), ("created", "c0")]
                .map(|(kind, code)| event(kind, &json!({ "code": code }), &Value::Null));
        assert_eq!(values_of_every_type(&events, ["charge", "code"]), ["c0", "c2"]);
        assert!(values_of_every_type(&events, ["invoice", "code"]).is_empty());
    }

    #[test]
    fn the_newest_charge_of_an_invoice_has_events_of_its_own() {
        let charge = |code: &str| event("charge.paid", &json!({ "code": code }), &Value::Null);
        let of_invoice = |code: &str, invoice: Value| {
            event("charge.paid", &json!({ "code": code, "invoice": invoice }), &Value::Null)
        };
        let settled = |charges: &[&str]| {
            event("invoice.paid", &Value::Null, &json!({ "code": "i1", "charges": charges }))
        };
        for (events, listed, expected) in [
            (vec![charge("c3"), settled(&["c1", "c2"]), charge("c2"), charge("c1")], vec![], Some("c2")),
            // The charge of the invoice has no event of its own.
            (vec![charge("c3"), settled(&["c1"])], vec![], None),
            (vec![charge("c3"), charge("c1")], vec![json!({ "charges": [{ "code": "c1" }] })], Some("c1")),
            (vec![charge("c3"), of_invoice("c2", json!("i1"))], vec![], Some("c2")),
            (vec![charge("c3"), of_invoice("c2", json!({ "code": "i1" }))], vec![], Some("c2")),
            (vec![of_invoice("c3", Value::Null), of_invoice("c2", json!(""))], vec![], None),
        ] {
            let available = FilterValues { events, charges: vec![], invoices: listed };
            assert_eq!(available.charge_of_invoice(), expected);
        }
    }

    #[test]
    fn a_burst_requests_second_pages_and_every_value() {
        let rows = |statuses: &[&str]| -> Vec<_> {
            statuses.iter().map(|status| json!({ "status": status })).collect()
        };
        let [code, older] = ["c1", "c0"].map(|code| json!({ "code": code }));
        let available = FilterValues {
            events: [("charge.paid", &code), ("charge.created", &code), ("charge.expired", &older)]
                .map(|(kind, charge)| event(kind, charge, &Value::Null))
                .into(),
            charges: rows(&["paid", "open", "paid", "expired"]),
            invoices: rows(&["open"]),
        };
        let found: Vec<_> = available.further_requests().iter().map(page_path).collect();
        let expected = [
            "events?charge=c1&per_page=1&page=2",
            "events?charge=c1",
            "events?type=charge.expired&per_page=100",
            "events?type=charge.paid&per_page=100",
            "charges?status=open&per_page=100",
            "charges?status=paid&per_page=100",
            "events?charge=c0",
        ];
        assert_eq!(found, expected.map(|expected| format!("/v1/{expected}")));
    }

    #[test]
    fn a_burst_requests_the_events_of_a_charge_of_an_invoice() {
        let paid = |code: &str| event("charge.paid", &json!({ "code": code }), &Value::Null);
        let settled = event("invoice.paid", &Value::Null, &json!({ "code": "i1", "charges": ["c1"] }));
        let events = vec![settled, paid("c2"), paid("c1"), paid("c0")];
        let available = FilterValues { events, charges: vec![], invoices: vec![] };
        let found: Vec<_> = available.further_requests().iter().map(page_path).collect();
        assert!(found.contains(&"/v1/events?charge=c1".to_owned()), "{found:?}");
    }
}
