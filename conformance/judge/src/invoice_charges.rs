//! The charges of invoices: an invoice keeps its charges, has each of them once, and shares none with another invoice.

use std::collections::{BTreeMap, BTreeSet};

use time::Duration;

use conformance_model::mode::Mode;
use conformance_model::reading::{invoice_charge_codes, text_at};
use conformance_model::recording::Recording;
use conformance_model::verdict::CheckError;

use crate::diff::{FAULTY_OBJECTS_MIN, contradict};
use crate::object_copies::{
    CopySource, CopySources, KnownEvent, ObjectCopy, ObjectKey, UPDATE_DELAY_MAX, known_events,
};

/// The minimum number of invoices with a fault, for a violation: one may be shown while it changes.
const INVOICES_MIN: usize = 2;
/// The minimum time between two events, and between their deliveries, for the later one to show the later charges.
const LATER_EVENT_MIN: Duration = Duration::seconds(10);

/// A copy of an invoice with the codes of its charges.
struct InvoiceCopy<'a> {
    copy: ObjectCopy<'a>,
    charges: BTreeSet<&'a str>,
}

/// A fault of an invoice: its copy, the expected and the actual value.
type InvoiceFault<'a> = (ObjectCopy<'a>, String, String);

/// Checks the charges of all invoices.
pub(super) fn check(recording: &Recording) -> Result<(), CheckError> {
    let sources = CopySources::from_recording(recording);
    let copies = sources.copies();
    let mut invoices: BTreeMap<ObjectKey<'_>, Vec<InvoiceCopy<'_>>> = BTreeMap::new();
    for copy in copies.iter().filter(|copy| copy.member == "invoice") {
        if let Some(codes) = invoice_charge_codes(copy.object) {
            let invoice = InvoiceCopy { copy: *copy, charges: codes.into_iter().collect() };
            invoices.entry(copy.key()).or_default().push(invoice);
        }
    }
    let lost = invoices.values().filter_map(|copies| lost_charge(copies)).collect();
    report(lost, INVOICES_MIN)?;
    report(invoices.values().filter_map(|copies| repeated_charge(copies)).collect(), INVOICES_MIN)?;
    let events = known_events(&copies);
    report(shared_charges(&invoices, &events), INVOICES_MIN)?;
    report(other_currencies(&invoices, &events), FAULTY_OBJECTS_MIN)
}

/// Returns the violation of the last faulty invoice, if there are enough.
fn report(mut faults: Vec<InvoiceFault<'_>>, count_min: usize) -> Result<(), CheckError> {
    let count = faults.len();
    match faults.pop().filter(|_| count >= count_min) {
        None => Ok(()),
        Some((copy, expected, actual)) => {
            let source = if copy.number.is_some() { "" } else { " in a delivery" };
            let expected = format!("{expected} of invoice {}{source}", copy.code);
            Err(CheckError::violation(
                copy.number,
                expected,
                format!("{actual}, and so for {} more invoices", count - 1),
            ))
        }
    }
}

/// Returns a copy of an invoice that lacks a charge of an earlier copy.
fn lost_charge<'a>(copies: &[InvoiceCopy<'a>]) -> Option<InvoiceFault<'a>> {
    copies.iter().find_map(|later| {
        let mut earlier = copies.iter().filter(|earlier| must_show(&later.copy, &earlier.copy));
        let lost = earlier.find_map(|earlier| earlier.charges.difference(&later.charges).next())?;
        let shown = later.charges.iter().copied().collect::<Vec<_>>().join(", ");
        let shown = if shown.is_empty() { "none".to_owned() } else { shown };
        Some((later.copy, format!("charge {lost}, as seen before, among the charges"), shown))
    })
}

/// Returns `true` if a copy must have the charges of another one. Lists and single reads show the invoice as it is. An event
/// shows it as it was or as it is: so a copy of a later event that was read later shows no earlier state.
fn must_show(later: &ObjectCopy<'_>, earlier: &ObjectCopy<'_>) -> bool {
    match (later.event, earlier.event) {
        (None, _) => later.sent - earlier.seen >= UPDATE_DELAY_MAX,
        (Some(event), Some(earlier_event)) if later.source == earlier.source => {
            let is_read_later = match later.source {
                CopySource::Event => later.number >= earlier.number,
                _ => later.sent - earlier.seen >= LATER_EVENT_MIN,
            };
            is_read_later && event.recorded_at - earlier_event.recorded_at >= LATER_EVENT_MIN
        }
        _ => false,
    }
}

/// Returns a copy of an invoice that has a charge twice.
fn repeated_charge<'a>(copies: &[InvoiceCopy<'a>]) -> Option<InvoiceFault<'a>> {
    let repeated = copies.iter().find(|invoice| {
        let charges = invoice.copy.object["charges"].as_array();
        charges.is_some_and(|charges| charges.len() > invoice.charges.len())
    })?;
    let codes = invoice_charge_codes(repeated.copy.object)?.join(", ");
    Some((repeated.copy, "each charge once among the charges".to_owned(), codes))
}

/// Returns the invoices that have a charge of another invoice. The charges of a voided invoice may belong to another one.
fn shared_charges<'a>(
    invoices: &BTreeMap<ObjectKey<'a>, Vec<InvoiceCopy<'a>>>,
    events: &BTreeMap<ObjectKey<'a>, Vec<KnownEvent<'a>>>,
) -> Vec<InvoiceFault<'a>> {
    let mut owners: BTreeMap<(Mode, &str), &str> = BTreeMap::new();
    let mut shared: BTreeMap<&str, InvoiceFault<'a>> = BTreeMap::new();
    for (key, copies) in invoices {
        let is_voided_event =
            events.get(key).is_some_and(|events| events.iter().any(|event| event.kind == "invoice.voided"));
        let has_void_status = |invoice: &InvoiceCopy<'_>| {
            invoice.copy.text("status").is_some_and(|status| status.to_lowercase().contains("void"))
        };
        if is_voided_event || copies.iter().any(has_void_status) {
            continue;
        }
        for invoice in copies {
            for charge in &invoice.charges {
                let owner = *owners.entry((key.0, charge)).or_insert(key.2);
                if owner != key.2 {
                    let expected = format!("no charge {charge}, which belongs to invoice {owner},");
                    let actual = format!("charge {charge}");
                    shared.entry(key.2).or_insert((invoice.copy, expected, actual));
                }
            }
        }
    }
    shared.into_values().collect()
}

/// Returns the invoices whose charges have the amount of the invoice in another currency.
fn other_currencies<'a>(
    invoices: &BTreeMap<ObjectKey<'a>, Vec<InvoiceCopy<'a>>>,
    events: &BTreeMap<ObjectKey<'a>, Vec<KnownEvent<'a>>>,
) -> Vec<InvoiceFault<'a>> {
    let is_code = |text: &&str| text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    let mut amounts = BTreeSet::new();
    let mut faults = Vec::new();
    for ((mode, ..), copies) in invoices {
        let fault = copies.iter().find_map(|invoice| {
            let object = invoice.copy.object;
            let (amount, currency) = (object.get("amount")?, invoice.copy.text("currency").filter(is_code)?);
            let amount_text = amount.as_str().filter(|text| text.contains('.'))?;
            invoice.charges.iter().find_map(|charge| {
                let charge_events = events.get(&(*mode, "charge", charge))?;
                let charge = charge_events.first()?.copy.object;
                let charge_currency = text_at(charge, &["fiat_currency"]).filter(is_code)?;
                let is_same_amount = charge
                    .get("fiat_amount")
                    .is_some_and(|fiat_amount| fiat_amount.is_string() && !contradict(fiat_amount, amount));
                let is_other_currency = !charge_currency.eq_ignore_ascii_case(currency);
                (is_same_amount && is_other_currency).then(|| {
                    let expected = format!("charges in {currency}, with its amount {amount_text},");
                    (amount_text, (invoice.copy, expected, format!("a charge in {charge_currency}")))
                })
            })
        });
        if let Some((amount, fault)) = fault
            && amounts.insert(amount)
        {
            faults.push(fault);
        }
    }
    faults
}
