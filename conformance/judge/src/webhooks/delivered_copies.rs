//! The objects in deliveries, compared with the same objects in the events of the API.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use conformance_model::mode::Mode;
use conformance_model::reading::{parse_utc, text_at};
use conformance_model::recording::shorten;
use conformance_model::verdict::CheckError;

use crate::charge_versions::is_paid_once;
use crate::diff::{FAULTY_OBJECTS_MIN, are_most, contradict, have_other_case, is_nonzero, is_other_time};
use crate::parsed_deliveries::ParsedDelivery;

/// A delivery, with its event in the API.
pub(super) type DeliveredEvent<'a> = (&'a ParsedDelivery<'a>, &'a Value);

/// The fields of a charge that only its owner changes.
const OWNER_FIELDS: [&str; 4] = ["description", "customer_email", "payment_link", "metadata"];
/// The minimum number of objects with an altered field, for a violation. The owner may edit an object between an event and
/// its delivery.
const ALTERED_MIN: usize = 2;
/// The fields that deliveries may lack only if the API lacks them: the member, the field, and the minimum number of objects
/// for a violation. Shops may enter their metadata after a delivery.
const SHOWN_FIELDS: [(&str, &str, usize); 5] = [
    ("charge", "description", 3),
    ("charge", "customer_email", 3),
    ("invoice", "number", 3),
    ("invoice", "customer", 3),
    ("invoice", "hosted_url", 3),
];
/// The event types after which customers no longer enter their address.
const AFTER_CHECKOUT_TYPES: [&str; 3] = ["charge.expired", "charge.canceled", "charge.refunded"];

/// Checks that the charges and invoices of deliveries agree with those in the API: in the fields that no event changes, in
/// the case of the status, in the charges of a paid invoice, and in the time of payment.
pub(super) fn check_copies(pairs: &[DeliveredEvent<'_>]) -> Result<(), CheckError> {
    for name in OWNER_FIELDS {
        check_altered(pairs, "charge", name, |delivered, in_api| {
            is_owner_field_altered(name, delivered, in_api)
        })?;
    }
    check_altered(pairs, "invoice", "customer", is_customer_altered)?;
    for member in ["charge", "invoice"] {
        check_altered(pairs, member, "status", have_other_case)?;
    }
    let settled: Vec<_> =
        pairs.iter().filter(|(parsed, _)| parsed.event_type() == Some("invoice.paid")).cloned().collect();
    check_altered(&settled, "invoice", "charges", have_other_charges)?;
    check_addresses(pairs)?;
    SHOWN_FIELDS.into_iter().try_for_each(|(member, name, min)| check_shown(pairs, member, name, min))?;
    check_payment_times(pairs)
}

/// The amounts in a fiat currency.
const FIAT_AMOUNTS: [(&str, &str); 2] = [("invoice", "amount"), ("charge", "fiat_amount")];

/// Checks that most deliveries do not round an amount in a fiat currency. Redacted amounts cannot be compared by their digits.
pub(super) fn check_fiat_amounts(pairs: &[DeliveredEvent<'_>]) -> Result<(), CheckError> {
    FIAT_AMOUNTS.into_iter().try_for_each(|(member, name)| check_cut_amounts(pairs, member, name))
}

/// Checks one amount in a fiat currency. The API must show it with two decimals, and not as a whole number.
fn check_cut_amounts(pairs: &[DeliveredEvent<'_>], member: &str, name: &str) -> Result<(), CheckError> {
    let has_cents = |amount: &str| {
        let decimals = amount.split_once('.').map(|(_, decimals)| decimals);
        decimals.is_some_and(|decimals| decimals.len() == 2 && is_nonzero(decimals))
    };
    let amounts: BTreeMap<&str, _> = pairs
        .iter()
        .filter_map(|pair| {
            let [delivered, in_api] = objects(pair, member)?;
            let code = text_at(delivered, &["code"])?;
            let (delivered, in_api) = (delivered.get(name)?, in_api.get(name)?);
            in_api.as_str().is_some_and(has_cents).then_some((code, (pair.0, delivered, in_api)))
        })
        .collect();
    let cut: Vec<_> =
        amounts.iter().filter(|(_, (_, delivered, in_api))| contradict(delivered, in_api)).collect();
    match cut.last().filter(|_| are_most(cut.len(), amounts.len())) {
        None => Ok(()),
        Some((code, (parsed, delivered, in_api))) => Err(parsed.violation(
            format!("{name} {in_api} of {member} {code}, as in the API"),
            format!("{name} {delivered}, and other amounts in {} more {member}s", cut.len() - 1),
        )),
    }
}

/// The event types after which the status of an object changes only with another event.
const LASTING_TYPES: [&str; 6] =
    ["invoice.paid", "invoice.voided", "charge.paid", "charge.expired", "charge.canceled", "charge.refunded"];

/// Checks that most deliveries of a lasting event show a status of the API.
///
/// `pairs`: the deliveries of events that are the newest of their objects. `statuses`: the statuses of all objects in the API, in
/// lower case, each with `charge` or `invoice`. A delivery may show an earlier status, but none that the API shows of no object.
pub(super) fn check_lasting_statuses(
    pairs: &[DeliveredEvent<'_>],
    statuses: &BTreeSet<(&str, String)>,
) -> Result<(), CheckError> {
    for kind in LASTING_TYPES {
        let member = kind.split('.').next().unwrap_or_default();
        let of_kind = pairs.iter().filter(|(parsed, _)| parsed.event_type() == Some(kind));
        let shown: BTreeMap<&str, _> = of_kind
            .filter_map(|pair| {
                let [delivered, in_api] = objects(pair, member)?;
                let [status, expected] = [delivered, in_api].map(|object| text_at(object, &["status"]));
                Some((text_at(delivered, &["code"])?, (pair.0, status?, expected?)))
            })
            .collect();
        let unknown: Vec<_> = shown
            .iter()
            .filter(|(_, (_, status, _))| !statuses.contains(&(member, status.to_lowercase())))
            .collect();
        if let Some((code, (parsed, status, expected))) =
            unknown.last().filter(|_| are_most(unknown.len(), shown.len()))
        {
            return Err(parsed.violation(
                format!("status {expected} of {member} {code}, as in the API"),
                format!("status {status}, which the API shows of no {member}"),
            ));
        }
    }
    Ok(())
}

/// Checks that most deliveries of `charge.expired` do not show the status of new charges, if the API shows another one. The
/// rule about final statuses cannot decide this if a later payment changes charges that kept their status at the expiry.
///
/// `newest`: the deliveries of events that are the newest of their objects.
pub(super) fn check_expired_statuses(
    pairs: &[DeliveredEvent<'_>],
    newest: &[DeliveredEvent<'_>],
) -> Result<(), CheckError> {
    const STATUS: [&str; 3] = ["data", "charge", "status"];
    let created = pairs.iter().filter(|(parsed, _)| parsed.event_type() == Some("charge.created"));
    let new_statuses: BTreeSet<_> = created.filter_map(|(parsed, _)| parsed.text(&STATUS)).collect();
    let expired: BTreeMap<&str, _> = newest
        .iter()
        .filter(|(parsed, _)| parsed.event_type() == Some("charge.expired"))
        .filter_map(|(parsed, event)| {
            let shown = text_at(event, &["charge", "status"])?;
            Some((parsed.text(&["data", "charge", "code"])?, (*parsed, parsed.text(&STATUS)?, shown)))
        })
        .collect();
    let is_new = |status: &str| new_statuses.len() == 1 && new_statuses.contains(status);
    let stale: Vec<_> =
        expired.iter().filter(|(_, (_, status, shown))| is_new(status) && !is_new(shown)).collect();
    match stale.last().filter(|_| are_most(stale.len(), expired.len())) {
        None => Ok(()),
        Some((code, (parsed, status, shown))) => Err(parsed.violation(
            format!("status {shown} of charge {code}, which expired, as in the API"),
            format!("status {status} of new charges, and so of {} more", stale.len() - 1),
        )),
    }
}

/// Returns the delivered object and the object in the API.
fn objects<'a>((parsed, event): &'a DeliveredEvent<'_>, member: &str) -> Option<[&'a Value; 2]> {
    let delivered = parsed.body?.get("data")?.get(member)?;
    let in_api = event.get(member)?;
    (delivered.is_object() && in_api.is_object()).then_some([delivered, in_api])
}

/// Checks one field, for which `is_altered` compares the delivered value with that in the API.
fn check_altered(
    pairs: &[DeliveredEvent<'_>],
    member: &str,
    name: &str,
    is_altered: impl Fn(&Value, &Value) -> bool,
) -> Result<(), CheckError> {
    let altered: BTreeMap<&str, _> = pairs
        .iter()
        .filter_map(|pair| {
            let [delivered, in_api] = objects(pair, member)?;
            let code = text_at(delivered, &["code"])?;
            let (delivered, in_api) = (delivered.get(name)?, in_api.get(name)?);
            is_altered(delivered, in_api).then_some((code, (pair.0, delivered, in_api)))
        })
        .collect();
    // The owner may rename one customer of several invoices.
    let distinct: BTreeSet<_> =
        altered.values().map(|(_, delivered, in_api)| [delivered.to_string(), in_api.to_string()]).collect();
    let changes = if name == "customer" { distinct.len() } else { altered.len() };
    // No owner replaces a text by its HTML.
    let is_certain = |(_, delivered, in_api): &(_, &Value, &Value)| {
        changes >= ALTERED_MIN || is_escaped(delivered, in_api)
    };
    match altered.iter().find(|(_, values)| is_certain(values)) {
        None => Ok(()),
        Some((code, (parsed, delivered, in_api))) => {
            let [delivered, in_api] = [delivered, in_api].map(|value| shorten(&value.to_string()));
            let expected = format!("{name} {in_api} of {member} {code}, as in the API");
            let actual =
                format!("{name} {delivered}, and other values in {} more {member}s", altered.len() - 1);
            Err(parsed.violation(expected, actual))
        }
    }
}

/// Returns `true` if a field of the owner is altered: its text, the presence of a payment link, or the keys or the notation
/// of the values in `metadata`.
fn is_owner_field_altered(name: &str, delivered: &Value, in_api: &Value) -> bool {
    match (delivered, in_api) {
        // A link may be represented by its code or its address.
        (Value::String(delivered), Value::String(in_api)) if name == "payment_link" => {
            delivered != in_api && ![delivered, in_api].into_iter().any(|link| link.contains("://"))
        }
        (Value::String(_), Value::String(_)) => have_other_texts(delivered, in_api),
        (Value::Null, Value::String(_)) | (Value::String(_), Value::Null) => name == "payment_link",
        (Value::Object(delivered), Value::Object(in_api)) => {
            delivered.is_empty() != in_api.is_empty()
                || have_other_keys(delivered, in_api)
                || delivered
                    .iter()
                    .any(|(key, value)| in_api.get(key).is_some_and(|other| is_rewritten(value, other)))
        }
        _ => false,
    }
}

/// Returns `true` if two values are different texts, neither of them empty.
fn have_other_texts(one: &Value, other: &Value) -> bool {
    one.as_str()
        .zip(other.as_str())
        .is_some_and(|(one, other)| one != other && !one.is_empty() && !other.is_empty())
}

/// Returns `true` if each of two objects has a key that the other one lacks, as after a conversion of all keys.
fn have_other_keys(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let has_own =
        |one: &Map<String, Value>, other: &Map<String, Value>| one.keys().any(|key| !other.contains_key(key));
    has_own(one, other) && has_own(other, one)
}

/// Returns `true` if one of two values is the other one in another notation, such as `"007"` and `7`, `true` and `"1"`, or
/// `"Tea"` and `"TEA"`. The owner may replace a value by another one. A number may be written as a string.
pub(crate) fn is_rewritten(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::String(text), Value::Number(number)) | (Value::Number(number), Value::String(text)) => {
            number.to_string() != *text
        }
        (Value::Bool(_), Value::Number(_)) | (Value::Number(_), Value::Bool(_)) => true,
        (Value::String(text), Value::Bool(value)) | (Value::Bool(value), Value::String(text)) => {
            let value = value.to_string();
            *text != value && (text.eq_ignore_ascii_case(&value) || matches!(text.as_str(), "0" | "1"))
        }
        (Value::String(_), Value::String(_)) => have_other_case(one, other) || is_escaped(one, other),
        _ => false,
    }
}

/// Returns `true` if one of two texts is the other one in HTML.
fn is_escaped(one: &Value, other: &Value) -> bool {
    one != other
        && one
            .as_str()
            .zip(other.as_str())
            .is_some_and(|(one, other)| unescape(one) == *other || *one == unescape(other))
}

/// Replaces the character references of HTML that libraries use for special characters.
pub(crate) fn unescape(text: &str) -> String {
    const REFERENCES: [(&str, &str); 8] = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&#039;", "'"),
        ("&#x27;", "'"),
        ("&amp;", "&"),
    ];
    REFERENCES.into_iter().fold(text.to_owned(), |text, (reference, plain)| text.replace(reference, plain))
}

/// Returns `true` if the customer of an invoice is altered: the name or the address in an object; or the notation or the
/// masking of a text, which may be either of the two.
fn is_customer_altered(delivered: &Value, in_api: &Value) -> bool {
    let differs = |name: &str| {
        delivered.get(name).zip(in_api.get(name)).is_some_and(|(one, other)| have_other_texts(one, other))
    };
    let is_masked = |customer: &Value| customer.as_str().map(|text| text.contains("**"));
    let is_one_masked = is_masked(delivered).zip(is_masked(in_api)).is_some_and(|(one, other)| one != other);
    is_rewritten(delivered, in_api) || is_one_masked || ["email", "name"].into_iter().any(differs)
}

/// Returns `true` if two lists of the charges of a paid invoice have no charge with a code in common, or if the delivered one
/// is empty: the charge whose payment settled the invoice is missing.
fn have_other_charges(delivered: &Value, in_api: &Value) -> bool {
    if delivered.as_array().is_some_and(Vec::is_empty) {
        return in_api.as_array().is_some_and(|charges| !charges.is_empty());
    }
    let codes = |charges: &Value| -> Option<BTreeSet<String>> {
        charges.as_array()?.iter().map(|charge| Some(text_at(charge, &["code"])?.to_owned())).collect()
    };
    let [delivered, in_api] = [delivered, in_api].map(|charges| codes(charges).unwrap_or_default());
    !delivered.is_empty() && !in_api.is_empty() && delivered.is_disjoint(&in_api)
}

/// Checks that deliveries do not show the page of another invoice: an address that the API shows for that invoice only.
fn check_addresses(pairs: &[DeliveredEvent<'_>]) -> Result<(), CheckError> {
    let mut codes_by_address: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (_, event) in pairs {
        if let (Some(address), Some(code)) =
            (text_at(event, &["invoice", "hosted_url"]), text_at(event, &["invoice", "code"]))
        {
            codes_by_address.entry(address).or_default().insert(code);
        }
    }
    let foreign: BTreeMap<&str, _> = pairs
        .iter()
        .filter_map(|(parsed, _)| {
            let [code, address] = ["code", "hosted_url"].map(|name| parsed.text(&["data", "invoice", name]));
            let owners = codes_by_address.get(address?)?;
            (owners.len() == 1 && !owners.contains(code?)).then_some((code?, (*parsed, address?, owners)))
        })
        .collect();
    match foreign.first_key_value().filter(|_| foreign.len() >= ALTERED_MIN) {
        None => Ok(()),
        Some((code, (parsed, address, owners))) => {
            let owner = owners.first().copied().unwrap_or_default();
            let expected = format!("the page of invoice {code} as hosted_url");
            let more = foreign.len() - 1;
            let actual =
                format!("{}, that of invoice {owner}, and so for {more} more invoices", shorten(address));
            Err(parsed.violation(expected, actual))
        }
    }
}

/// Checks that the deliveries of no event type always lack a field that the API shows. Creations do not count, because a
/// field may be set later.
fn check_shown(
    pairs: &[DeliveredEvent<'_>],
    member: &str,
    name: &str,
    objects_min: usize,
) -> Result<(), CheckError> {
    let is_blank = |object: &Value| match object.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
        Some(_) => false,
    };
    // By type, and by type and mode: a fault may be limited to one mode.
    let mut by_type: BTreeMap<(&str, Option<Mode>), Vec<&DeliveredEvent<'_>>> = BTreeMap::new();
    let is_judged = |kind: &&str| match name {
        "customer_email" => AFTER_CHECKOUT_TYPES.contains(kind),
        _ => !kind.ends_with(".created"),
    };
    for pair in pairs {
        let kind = pair.0.event_type().filter(is_judged);
        let Some(kind) = kind.filter(|_| objects(pair, member).is_some()) else { continue };
        for mode in BTreeSet::from([None, pair.0.mode()]) {
            by_type.entry((kind, mode)).or_default().push(pair);
        }
    }
    for ((kind, _), of_type) in by_type {
        if !of_type.iter().all(|pair| objects(pair, member).is_some_and(|[delivered, _]| is_blank(delivered)))
        {
            continue;
        }
        let lacking: BTreeMap<&str, &DeliveredEvent<'_>> = of_type
            .into_iter()
            .filter_map(|pair| {
                let [delivered, in_api] = objects(pair, member)?;
                (!is_blank(in_api)).then_some((text_at(delivered, &["code"])?, pair))
            })
            .collect();
        if let Some((code, (parsed, event))) =
            lacking.first_key_value().filter(|_| lacking.len() >= objects_min)
        {
            let shown = shorten(&event[member][name].to_string());
            let expected = format!("{name} {shown} of {member} {code}, as in the API");
            return Err(parsed.violation(expected, format!("none, as in every delivery of a {kind}")));
        }
    }
    Ok(())
}

/// Checks that charges which were paid once have the same time of payment in the delivery of `charge.paid` and in the API.
fn check_payment_times(pairs: &[DeliveredEvent<'_>]) -> Result<(), CheckError> {
    let code = |pair: &DeliveredEvent<'_>| text_at(pair.0.charge()?, &["code"]).map(str::to_owned);
    let events = |wanted: &str| {
        let of_charge: Vec<_> = pairs.iter().filter(|pair| code(pair).as_deref() == Some(wanted)).collect();
        of_charge
            .into_iter()
            .filter_map(|(parsed, _)| Some((parsed.event_type()?, parsed.text(&["event_id"]))))
    };
    let payments = || pairs.iter().filter(|(parsed, _)| parsed.event_type() == Some("charge.paid"));
    let differing: BTreeMap<_, _> = payments()
        .filter_map(|pair| {
            let [delivered, in_api] = objects(pair, "charge")?.map(|charge| text_at(charge, &["paid_at"]));
            let (delivered, in_api) = (delivered?, in_api?);
            let is_different = is_other_time(parse_utc(delivered)?, parse_utc(in_api)?);
            is_different.then_some((code(pair)?, (pair.0, delivered, in_api)))
        })
        .filter(|(code, _)| is_paid_once(events(code)))
        .collect();
    // A reorganisation confirms the payments of one block again.
    match differing.first_key_value().filter(|_| are_most(differing.len(), payments().count())) {
        None => Ok(()),
        Some((code, (parsed, delivered, in_api))) => Err(parsed.violation(
            format!("paid_at {in_api} of charge {code}, as in the API"),
            format!("paid_at {delivered}, and other times in {} more charges", differing.len() - 1),
        )),
    }
}

/// Checks that deliveries show no time of payment of charges that were never paid and have none in the API.
///
/// `pairs`: the deliveries that arrived some time before the list of events was read. `other_codes`: the codes of charges
/// with an event of a transfer.
pub(super) fn check_no_payment_time<'a>(
    pairs: impl Iterator<Item = &'a DeliveredEvent<'a>>,
    other_codes: &BTreeSet<String>,
) -> Result<(), CheckError> {
    let violating: BTreeMap<&str, _> = pairs
        .filter_map(|pair| {
            let [delivered, in_api] = objects(pair, "charge")?;
            let (code, paid_at) = (text_at(delivered, &["code"])?, text_at(delivered, &["paid_at"])?);
            parse_utc(paid_at)?;
            (in_api["paid_at"].is_null() && !other_codes.contains(code)).then_some((code, (pair.0, paid_at)))
        })
        .collect();
    match violating.first_key_value().filter(|_| violating.len() >= FAULTY_OBJECTS_MIN) {
        None => Ok(()),
        Some((code, (parsed, paid_at))) => Err(parsed.violation(
            format!("no paid_at of charge {code}, which was not paid and has none in the API"),
            format!("paid_at {paid_at}, and so for {} more charges", violating.len() - 1),
        )),
    }
}
