//! The charges of invoices: an invoice keeps its charges, has each of them once, and shares none with another invoice.

use std::collections::{BTreeMap, BTreeSet};

use time::{Duration, OffsetDateTime};

use conformance_model::mode::Mode;
use conformance_model::reading::{invoice_charge_codes, text_at};
use conformance_model::recording::Recording;
use conformance_model::verdict::CheckError;

use crate::diff::{FAULTY_OBJECTS_MIN, contradict};
use crate::object_copies::{
    CopySource, CopySources, KnownEvent, ObjectCopy, ObjectKey, UPDATE_DELAY_MAX, known_events,
};
use crate::object_history::CHARGE_END_TYPES;

/// The minimum number of invoices with a fault, for a violation: one may be shown while it changes.
const INVOICES_MIN: usize = 2;
/// The minimum number of charges that belong to two invoices, for a violation.
const SHARED_CHARGES_MIN: usize = 3;
/// The minimum time between two events for the later one to show the later charges.
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
    let events = known_events(&copies);
    let ends = known_ends(&copies, &events);
    let keepers = keepers_of_ended_charges(&invoices, &ends);
    let lost = invoices.iter().filter_map(|(key, copies)| {
        let keeps_ended =
            |of: CopySource| keepers.iter().any(|(source, keeper)| *source == of && keeper != key);
        lost_charge(copies, |source, charge| ends.contains_key(&(key.0, charge)) && !keeps_ended(source))
    });
    report(lost.collect(), INVOICES_MIN)?;
    report(invoices.values().filter_map(|copies| repeated_charge(copies)).collect(), INVOICES_MIN)?;
    report(shared_charges(&invoices, &events), SHARED_CHARGES_MIN)?;
    report(other_currencies(&invoices, &events), FAULTY_OBJECTS_MIN)
}

/// Returns the last violation, if there are enough.
fn report(mut faults: Vec<InvoiceFault<'_>>, count_min: usize) -> Result<(), CheckError> {
    let count = faults.len();
    match faults.pop().filter(|_| count >= count_min) {
        None => Ok(()),
        Some((copy, expected, actual)) => {
            let source = if copy.number.is_some() { "" } else { " in a delivery" };
            Err(CheckError::violation(
                copy.number,
                format!("{expected}{source}"),
                format!("{actual}, and so for {} more", count - 1),
            ))
        }
    }
}

/// The end of a charge: the time of the first copy that shows it, and of its event.
#[derive(Clone, Copy)]
struct ChargeEnd {
    seen: Duration,
    recorded_at: Option<OffsetDateTime>,
}

/// The known ends of charges.
type ChargeEnds<'a> = BTreeMap<(Mode, &'a str), ChargeEnd>;

/// Returns the ends of canceled and expired charges, from their events and statuses.
fn known_ends<'a>(
    copies: &[ObjectCopy<'a>],
    events: &BTreeMap<ObjectKey<'a>, Vec<KnownEvent<'a>>>,
) -> ChargeEnds<'a> {
    let has_end_status = |copy: &&ObjectCopy<'_>| {
        let status = copy.text("status").unwrap_or_default().to_lowercase();
        copy.member == "charge" && ["expired", "cancel"].iter().any(|name| status.contains(name))
    };
    let mut ends = ChargeEnds::new();
    for copy in copies.iter().filter(has_end_status) {
        let new = ChargeEnd { seen: copy.seen, recorded_at: None };
        let end = ends.entry((copy.mode, copy.code)).or_insert(new);
        end.seen = end.seen.min(copy.seen);
    }
    for ((mode, _, code), events) in events.iter().filter(|((_, member, _), _)| *member == "charge") {
        if let Some(event) = events.iter().find(|event| CHARGE_END_TYPES.contains(&event.kind)) {
            let new = ChargeEnd { seen: event.seen, recorded_at: None };
            let end = ends.entry((*mode, *code)).or_insert(new);
            *end = ChargeEnd { seen: end.seen.min(event.seen), recorded_at: Some(event.recorded_at) };
        }
    }
    ends
}

/// Returns the invoices that show a charge which ended long before, each with the source of the copy.
fn keepers_of_ended_charges<'a>(
    invoices: &BTreeMap<ObjectKey<'a>, Vec<InvoiceCopy<'a>>>,
    ends: &ChargeEnds<'_>,
) -> BTreeSet<(CopySource, ObjectKey<'a>)> {
    let is_ended = |copy: &ObjectCopy<'_>, charge: &str| {
        ends.get(&(copy.mode, charge)).is_some_and(|end| match copy.event {
            None => copy.sent - end.seen >= UPDATE_DELAY_MAX,
            Some(event) => {
                end.recorded_at.is_some_and(|ended_at| event.recorded_at - ended_at >= UPDATE_DELAY_MAX)
            }
        })
    };
    let copies = invoices.values().flatten();
    let keepers =
        copies.filter(|invoice| invoice.charges.iter().any(|charge| is_ended(&invoice.copy, charge)));
    keepers.map(|invoice| (invoice.copy.source, invoice.copy.key())).collect()
}

/// Returns a copy of an invoice that lacks a charge of an earlier copy. `may_lack` returns `true` for a charge that a source may
/// leave out.
fn lost_charge<'a>(
    copies: &[InvoiceCopy<'a>],
    may_lack: impl Fn(CopySource, &str) -> bool,
) -> Option<InvoiceFault<'a>> {
    copies.iter().find_map(|later| {
        let mut earlier = copies.iter().filter(|earlier| must_show(&later.copy, &earlier.copy));
        let lost = earlier.find_map(|earlier| {
            let mut missing = earlier.charges.difference(&later.charges);
            missing.find(|charge| !may_lack(later.copy.source, charge))
        })?;
        let shown = later.charges.iter().copied().collect::<Vec<_>>().join(", ");
        let shown = if shown.is_empty() { "none".to_owned() } else { shown };
        let expected =
            format!("charge {lost}, as seen before, among the charges of invoice {}", later.copy.code);
        Some((later.copy, expected, shown))
    })
}

/// Returns `true` if a copy must have the charges of another one. Lists and single reads show the invoice as it is. An event
/// shows it as it was or as it is: so a copy of a later event on the same page, or read long after, shows no earlier state.
fn must_show(later: &ObjectCopy<'_>, earlier: &ObjectCopy<'_>) -> bool {
    match (later.event, earlier.event) {
        (None, _) => later.sent - earlier.seen >= UPDATE_DELAY_MAX,
        (Some(event), Some(earlier_event)) if later.source == earlier.source => {
            let is_same_page = later.number.is_some() && later.number == earlier.number;
            let is_read_later = is_same_page || later.sent - earlier.seen >= UPDATE_DELAY_MAX;
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
    Some((
        repeated.copy,
        format!("each charge once among the charges of invoice {}", repeated.copy.code),
        codes,
    ))
}

/// The copies of an invoice that show a charge.
struct ShownCharge<'a> {
    copy: ObjectCopy<'a>,
    /// The pages of lists that show it.
    pages: BTreeSet<u32>,
    first_seen: Duration,
    /// The time of the last read of the invoice itself.
    last_read: Option<Duration>,
    /// The times of the first and of the last event that shows it, by source.
    recorded: BTreeMap<CopySource, (OffsetDateTime, OffsetDateTime)>,
}

impl<'a> ShownCharge<'a> {
    fn new(copy: ObjectCopy<'a>) -> ShownCharge<'a> {
        let (pages, recorded) = (BTreeSet::new(), BTreeMap::new());
        ShownCharge { copy, pages, first_seen: copy.seen, last_read: None, recorded }
    }

    fn add(&mut self, copy: &ObjectCopy<'_>) {
        self.first_seen = self.first_seen.min(copy.seen);
        let is_page = copy.source == CopySource::List || copy.is_in_complete_list();
        self.pages.extend(copy.number.filter(|_| is_page));
        match copy.event {
            None => self.last_read = self.last_read.max(Some(copy.sent)),
            Some(event) => {
                let times =
                    self.recorded.entry(copy.source).or_insert((event.recorded_at, event.recorded_at));
                *times = (times.0.min(event.recorded_at), times.1.max(event.recorded_at));
            }
        }
    }

    /// Returns `true` if one page shows a charge in both invoices, or each of them long after the other one. A withdrawn invoice
    /// may show its charge until another invoice has it.
    fn contradicts(&self, other: &ShownCharge<'_>) -> bool {
        let is_read_after = |one: &ShownCharge<'_>, other: &ShownCharge<'_>| {
            one.last_read.is_some_and(|read| read - other.first_seen >= UPDATE_DELAY_MAX)
        };
        let is_recorded_after = |source: &CopySource, one: &ShownCharge<'_>, other: &ShownCharge<'_>| {
            let times = one.recorded.get(source).zip(other.recorded.get(source));
            times.is_some_and(|((_, last), (first, _))| *last - *first >= UPDATE_DELAY_MAX)
        };
        !self.pages.is_disjoint(&other.pages)
            || is_read_after(self, other) && is_read_after(other, self)
            || self.recorded.keys().any(|source| {
                is_recorded_after(source, self, other) && is_recorded_after(source, other, self)
            })
    }
}

/// Returns the charges that belong to two invoices. The charges of a voided invoice may belong to another one.
fn shared_charges<'a>(
    invoices: &BTreeMap<ObjectKey<'a>, Vec<InvoiceCopy<'a>>>,
    events: &BTreeMap<ObjectKey<'a>, Vec<KnownEvent<'a>>>,
) -> Vec<InvoiceFault<'a>> {
    let mut owners: BTreeMap<(Mode, &str), BTreeMap<&str, ShownCharge<'a>>> = BTreeMap::new();
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
                let of_charge = owners.entry((key.0, charge)).or_default();
                of_charge.entry(key.2).or_insert_with(|| ShownCharge::new(invoice.copy)).add(&invoice.copy);
            }
        }
    }
    let fault = |((_, charge), owners): (&(Mode, &str), &BTreeMap<&str, ShownCharge<'a>>)| {
        owners.iter().find_map(|(own, shown)| {
            let (owner, _) = owners.range(..*own).find(|(_, other)| shown.contradicts(other))?;
            let expected = format!("invoice {own} without charge {charge} of invoice {owner}");
            Some((shown.copy, expected, format!("charge {charge}")))
        })
    };
    owners.iter().filter_map(fault).collect()
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
                    let expected = format!(
                        "charges in {currency}, with its amount {amount_text}, of invoice {}",
                        invoice.copy.code
                    );
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
