//! The records that a filter selects, in each valid interpretation of the specification.

use std::collections::BTreeSet;

use serde_json::Value;

use super::page::{
    Page, id_or_code, invoice_charge_codes, lists_charge, names_invoice, page_request, text_at,
};
use crate::recording::{Exchange, List, Recording};

/// The scope of a filter of events by charge or invoice: the events of that object only, or also those of its invoice
/// or its charges. The specification allows both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterScope {
    /// The events of that object.
    Narrow,
    /// Also the events of its invoice or its charges.
    Wide,
}

const SCOPES: [FilterScope; 2] = [FilterScope::Narrow, FilterScope::Wide];

/// The pairs of charge and invoice on the pages of a recording.
#[derive(Clone, Debug, Default)]
pub struct ChargeInvoices(BTreeSet<(String, String)>);

impl ChargeInvoices {
    /// Returns the pairs on the pages of a recording.
    pub fn from_recording(recording: &Recording) -> ChargeInvoices {
        let may_show_invoices = |exchange: &&Exchange| {
            page_request(exchange).is_some_and(|request| request.list != List::Charges)
        };
        let pages = recording.exchanges.iter().filter(may_show_invoices).filter_map(Page::from_exchange);
        let rows = pages.filter_map(Page::rows).flatten();
        let invoices = rows.map(|row| row.get("invoice").unwrap_or(row));
        let pairs = invoices
            .filter_map(|invoice| Some((invoice_charge_codes(invoice)?, text_at(invoice, &["code"])?)));
        ChargeInvoices(
            pairs
                .flat_map(|(charges, invoice)| {
                    charges.into_iter().map(move |charge| (charge.to_owned(), invoice.to_owned()))
                })
                .collect(),
        )
    }

    fn contains(&self, charge: Option<&str>, invoice: Option<&str>) -> bool {
        charge
            .zip(invoice)
            .is_some_and(|(charge, invoice)| self.0.contains(&(charge.to_owned(), invoice.to_owned())))
    }
}

/// Returns `true` if a row matches a filter by name and value; `None` if a charge or an invoice does not have the
/// filtered field.
pub fn matches_filter(
    list: List,
    row: &Value,
    name: &str,
    value: &str,
    scope: FilterScope,
    pairs: &ChargeInvoices,
) -> Option<bool> {
    let has_value = |path: &[&str]| text_at(row, path) == Some(value);
    let code = |member| text_at(row, &[member, "code"]);
    let is_related = |names_other_object: bool, is_known_pair: bool| {
        scope == FilterScope::Wide && (names_other_object || is_known_pair)
    };
    match (list, name) {
        (List::Events, "type") => Some(has_value(&["type"])),
        (List::Events, "charge") => Some(
            has_value(&["charge", "code"])
                || is_related(lists_charge(row, value), pairs.contains(Some(value), code("invoice"))),
        ),
        // The only other filter of events: by invoice.
        (List::Events, _) => Some(
            has_value(&["invoice", "code"])
                || is_related(names_invoice(row, value), pairs.contains(code("charge"), Some(value))),
        ),
        (_, "payment_link") if row.get("payment_link").is_some_and(Value::is_null) => Some(false),
        (_, "payment_link") => payment_link_code(row).map(|code| code == value),
        (_, name) => text_at(row, &[name]).map(|text| text == value),
    }
}

/// Returns the code of the payment link of a charge, if the row has one.
pub fn payment_link_code(row: &Value) -> Option<&str> {
    text_at(row, &["payment_link"]).or_else(|| text_at(row, &["payment_link", "code"]))
}

/// Returns the selected rows of a list, in each valid interpretation. `None` if a row does not have the filtered field.
pub fn selected_rows<'r>(
    list: List,
    rows: &[&'r Value],
    filters: &[(String, String)],
    pairs: &ChargeInvoices,
) -> Option<Vec<Vec<&'r Value>>> {
    let mut found = Vec::new();
    for charge_scope in SCOPES {
        for invoice_scope in SCOPES {
            let mut selected = Vec::new();
            for row in rows {
                let mut matches_all = true;
                for (name, value) in filters {
                    let scope = if name == "charge" { charge_scope } else { invoice_scope };
                    matches_all &= matches_filter(list, row, name, value, scope, pairs)?;
                }
                selected.extend(matches_all.then_some(*row));
            }
            found.push(selected);
        }
    }
    Some(found)
}

/// Returns the identifiers of the selected records, in each valid interpretation. `None` if a row does not have the
/// filtered field, or a selected row has no identifier: such rows may be equal although the list changed.
pub fn selected_ids(
    list: List,
    rows: &[&Value],
    filters: &[(String, String)],
    pairs: &ChargeInvoices,
) -> Option<Vec<Vec<String>>> {
    let interpretations = selected_rows(list, rows, filters, pairs)?;
    interpretations.iter().map(|rows| rows.iter().map(|row| id_or_code(row)).collect()).collect()
}
