//! Underpaid charges: a `charge.underpaid` event occurs exactly if the confirmed amount is short by more than the
//! tolerance.
//!
//! The API does not return the tolerance. Three rules hold for every tolerance: a full payment is not underpaid, a
//! payment of less than half does not pay a charge, and if one shortfall is underpaid, a larger one is not paid.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use time::OffsetDateTime;

use conformance_model::group::Group;
use conformance_model::mode::Mode;
use conformance_model::reading::text_at;
use conformance_model::recording::{List, Recording};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use crate::check::Check;
use crate::diff::contradict_as_written;
use crate::evidence::readable_pages;
use crate::object_history::{
    ListedEvent, ONE_PAYMENT_TYPES, ObjectHistory, complete_histories, recent_histories,
};
use crate::subjects::{Subject, subjects};

const NEEDS: &[Group] = &[Group::Account, Group::Lists];

pub(super) const CHECKS: &[Check] = &[Check::new("types.charge_underpaid", NEEDS, judge_underpaid)];

/// The number of parts into which the amount due is divided; shortfalls are counted in them.
const PARTS_OF_AMOUNT: u128 = 1_000;
/// The minimum difference in parts between two shortfalls that are compared.
const SHORTFALL_STEP: u128 = 50;
/// The minimum number of paid charges with a larger shortfall for a violation. The owner may have accepted one
/// manually.
const PAID_SHORT_MIN: usize = 3;

/// The event types of a charge that one transfer paid in time, but not enough.
const ONE_SHORT_PAYMENT_TYPES: [&str; 5] =
    ["charge.created", "charge.payment_detected", "charge.underpaid", "charge.expired", "charge.canceled"];
/// The minimum number of fully paid charges that are underpaid, for a violation. A second transfer
/// may not have its event yet.
const UNDERPAID_FULL_MIN: usize = 2;

/// The minimum number of paid charges with less than half received for a violation. The owner may have settled one manually.
const PAID_HALF_MIN: usize = 2;

/// The missing amount of a charge at one of its events.
struct Shortfall<'a> {
    mode: Mode,
    recorded_at: Option<OffsetDateTime>,
    event: &'a ListedEvent<'a>,
    name: &'a str,
    currency: &'a str,
    /// The number of missing parts of [`PARTS_OF_AMOUNT`].
    parts: u128,
    /// The missing value in the fiat currency, in one arbitrary unit for all charges.
    value: u128,
}

fn judge_underpaid(recording: &Recording) -> CheckResult {
    let views = readable_pages(recording);
    let histories = recent_histories(&views);
    let charges = || {
        histories.iter().filter(|history| {
            history.is_kind("charge") && history.is_complete() && history.has_at_most_one_transfer()
        })
    };
    check_full_payments(charges())?;
    check_delivered(recording)?;
    let mut judged = false;
    for history in charges() {
        let shown = history.of_type("charge.underpaid").filter(|event| history.shows_own_state(event));
        for event in shown {
            let charge = &event.row["charge"];
            let Some([received, due]) = received_and_due(charge) else { continue };
            let is_larger = || {
                parse_scaled(received).zip(parse_scaled(due)).is_some_and(|(received, due)| received > due)
            };
            if is_fully_received(charge) || (recording.exact_amounts && is_larger()) {
                return Err(CheckError::violation(
                    event.number,
                    format!("less than {due} received of {}, which is underpaid", history.name()),
                    format!("received_amount {received} (event {})", event.id()),
                ));
            }
            judged = true;
        }
    }
    if recording.exact_amounts {
        let histories = complete_histories(&views);
        let is_one_transfer =
            |history: &&ObjectHistory<'_>| history.is_kind("charge") && history.has_at_most_one_transfer();
        check_paid_with_shortfall(&histories.iter().filter(is_one_transfer).collect::<Vec<_>>())?;
    }
    match judged {
        true => Ok(CheckOutcome::Holds),
        false if views.iter().any(|view| view.request.list == List::Events && !view.rows().is_empty()) => {
            let why = "no listed event shows an underpaid charge of one transfer with its amounts";
            Err(CheckError::Inapplicable(why.into()))
        }
        false => Err(CheckError::unjudged(
            "no list of events could be read, or none has an event",
            "open a charge with the test key's account, then check again",
        )),
    }
}

/// Checks that charges whose only transfer is as large as the amount due are not underpaid. The
/// state that their events show does not matter.
fn check_full_payments<'a>(charges: impl Iterator<Item = &'a ObjectHistory<'a>>) -> Result<(), CheckError> {
    let fully_paid: Vec<_> = charges
        .filter_map(|history| {
            let underpaid = history.of_type("charge.underpaid").last()?;
            (history.has_only_types(&ONE_SHORT_PAYMENT_TYPES) && is_fully_received(&underpaid.row["charge"]))
                .then_some((history, underpaid))
        })
        .collect();
    match fully_paid.last().filter(|_| fully_paid.len() >= UNDERPAID_FULL_MIN) {
        Some((history, underpaid)) => Err(CheckError::violation(
            underpaid.number,
            format!("less received of {} than its amount, if it is underpaid", history.name()),
            format!(
                "the full amount, as of {} more charges (event {})",
                fully_paid.len() - 1,
                underpaid.id()
            ),
        )),
        None => Ok(()),
    }
}

/// The minimum number of charges that are delivered as underpaid with the full amount, for a violation. A delivery that was
/// sent late may contain a later state of its charge.
const DELIVERED_FULL_MIN: usize = 3;

/// Checks that deliveries of `charge.underpaid` do not all show the full amount as received. A charge with a second
/// transfer does not count, nor one that is shown as paid since.
fn check_delivered(recording: &Recording) -> Result<(), CheckError> {
    let charges = subjects(recording, "charge").unwrap_or_default();
    let code = |charge: &Subject<'_>| text_at(charge.object, &["code"]).map(str::to_owned);
    let mut transfers: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for detected in charges.iter().filter(|charge| charge.kind == "charge.payment_detected") {
        transfers.entry((detected.mode, code(detected))).or_default().insert(&detected.event_id);
    }
    let underpaid = charges.iter().filter(|charge| charge.is_delivered && charge.kind == "charge.underpaid");
    let underpaid: Vec<_> = underpaid
        .filter(|charge| !charge.is_paid() && received_and_due(charge.object).is_some())
        .filter(|charge| transfers.get(&(charge.mode, code(charge))).is_none_or(|ids| ids.len() <= 1))
        .collect();
    let codes: BTreeSet<_> = underpaid.iter().map(|charge| (charge.mode, code(charge))).collect();
    let are_full = underpaid.iter().all(|charge| is_fully_received(charge.object));
    match underpaid.last().filter(|_| are_full && codes.len() >= DELIVERED_FULL_MIN) {
        Some(charge) => Err(charge.violation(
            "less received of an underpaid charge than its amount",
            format!("the full amount, as of {} more charges", codes.len() - 1),
        )),
        None => Ok(()),
    }
}

/// Returns the received amount and the amount due of a charge.
fn received_and_due(charge: &Value) -> Option<[&str; 2]> {
    let [received, due] = ["received_amount", "asset_amount"].map(|name| text_at(charge, &[name]));
    Some([received?, due?])
}

/// Returns `true` if the whole amount was received. Redaction preserves the equality of numbers with the same number
/// of decimals.
fn is_fully_received(charge: &Value) -> bool {
    let [received, due] = ["received_amount", "asset_amount"].map(|name| &charge[name]);
    let decimals = |amount: &Value| {
        amount.as_str().and_then(|text| text.split_once('.')).map_or(0, |(_, fraction)| fraction.len())
    };
    decimals(received) == decimals(due) && !contradict_as_written("", received, due)
}

/// Returns `true` if an event shows no less than the amount with which its charge was paid, or no more than the amount with
/// which it was underpaid. Both hold for the state at the event. An event may also contain a later state: that of a paid
/// charge shows at least the amount of the payment, unless it was refunded; and that of a charge which is not paid shows
/// an amount that does not suffice.
fn shows_shortfall(history: &ObjectHistory<'_>, event: &ListedEvent<'_>) -> bool {
    let is_paid = text_at(event.row, &["charge", "status"]) == Some("paid");
    history.shows_own_state(event)
        || match event.event_type() {
            "charge.paid" => is_paid && history.has_only_types(&ONE_PAYMENT_TYPES),
            _ => !is_paid && history.has_only_types(&ONE_SHORT_PAYMENT_TYPES),
        }
}

/// Checks that few charges are paid whose shortfall exceeds, in parts and in value, that of an underpaid charge, and
/// that few are paid with less than half received.
fn check_paid_with_shortfall(charges: &[&ObjectHistory<'_>]) -> Result<(), CheckError> {
    let shortfalls = |kind: &'static str| {
        let events = charges.iter().flat_map(move |history| {
            let shown = history.of_type(kind).filter(|event| shows_shortfall(history, event));
            shown.filter_map(|event| Shortfall::from_event(history, event))
        });
        events.collect::<Vec<_>>()
    };
    let (underpaid, paid) = (shortfalls("charge.underpaid"), shortfalls("charge.paid"));
    let history_of = |paid: &Shortfall<'_>| {
        charges.iter().find(|history| history.name() == paid.name && history.mode == paid.mode)
    };
    let is_one_payment = |paid: &Shortfall<'_>| {
        history_of(paid).is_some_and(|history| history.has_only_types_until(&ONE_PAYMENT_TYPES, paid.event))
    };
    let has_transfer = |paid: &Shortfall<'_>| {
        history_of(paid).is_some_and(|history| history.of_type("charge.payment_detected").next().is_some())
    };
    let paid_half: Vec<_> = paid
        .iter()
        .filter(|paid| 2 * paid.parts > PARTS_OF_AMOUNT && has_transfer(paid) && is_one_payment(paid))
        .collect();
    if let Some(last) = paid_half.last().filter(|_| paid_half.len() >= PAID_HALF_MIN) {
        return Err(CheckError::violation(
            last.event.number,
            format!("at least half of the amount received for {}, which is paid", last.name),
            format!(
                "{} of {PARTS_OF_AMOUNT} parts, and less than half in {} charges (event {})",
                PARTS_OF_AMOUNT - last.parts,
                paid_half.len(),
                last.event.id()
            ),
        ));
    }
    // `paid` lacks more than `other`, in parts and in value.
    let lacks_more = |paid: &Shortfall<'_>, other: &Shortfall<'_>| {
        (other.mode, other.currency) == (paid.mode, paid.currency)
            && other.parts + SHORTFALL_STEP < paid.parts
            && other.value < paid.value
    };
    let violating: Vec<_> = paid
        .into_iter()
        .filter(|paid| is_one_payment(paid) && underpaid.iter().any(|other| lacks_more(paid, other)))
        .collect();
    let is_any_on_side = |side: Ordering| {
        let is_on_side = |paid: &Shortfall<'_>| {
            underpaid
                .iter()
                .any(|other| lacks_more(paid, other) && other.recorded_at.cmp(&paid.recorded_at) == side)
        };
        violating.iter().any(is_on_side)
    };
    // If the tolerance was changed once, the paid charges are either all before or all after the underpaid ones.
    let is_mixed = is_any_on_side(Ordering::Less) && is_any_on_side(Ordering::Greater);
    let Some(last) = violating.last().filter(|_| violating.len() >= PAID_SHORT_MIN && is_mixed) else {
        return Ok(());
    };
    Err(CheckError::violation(
        last.event.number,
        format!("charge.underpaid for {}, as for others that lack less", last.name),
        format!(
            "charge.paid with {} of {PARTS_OF_AMOUNT} parts received, in {} charges",
            PARTS_OF_AMOUNT - last.parts,
            violating.len()
        ),
    ))
}

impl<'a> Shortfall<'a> {
    fn from_event(history: &'a ObjectHistory<'_>, event: &'a ListedEvent<'a>) -> Option<Shortfall<'a>> {
        let charge = &event.row["charge"];
        let number = |name: &str| parse_scaled(text_at(charge, &[name])?);
        let (received, due) = (number("received_amount")?, number("asset_amount")?);
        let missing = due.checked_sub(received).filter(|missing| *missing > 0)?;
        let parts = missing.checked_mul(PARTS_OF_AMOUNT)?.checked_div(due)?;
        Some(Shortfall {
            mode: history.mode,
            recorded_at: event.recorded_at(),
            event,
            name: history.name(),
            currency: text_at(charge, &["fiat_currency"])?,
            parts,
            value: parts.checked_mul(number("fiat_amount")?)?,
        })
    }
}

/// Parses a decimal number as an integer multiple of 10⁻¹⁸. `None` if it has more decimals or is too large.
pub(crate) fn parse_scaled(text: &str) -> Option<u128> {
    const DECIMALS: usize = 18;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = (whole.bytes().chain(fraction.bytes())).all(|byte| byte.is_ascii_digit());
    let padded = format!("{whole}{fraction:0<DECIMALS$}");
    (is_number && fraction.len() <= DECIMALS).then(|| padded.parse().ok())?
}
