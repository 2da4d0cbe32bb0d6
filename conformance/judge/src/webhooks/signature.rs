//! The signature of a delivery: its format, its secret and its construction.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use conformance_model::deliveries::{Deliveries, SignatureStatus};
use conformance_model::part::Part;
use conformance_model::reading::parse_utc;
use conformance_model::recording::{Recording, shorten};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::NEEDS;
use super::api_consistency::check_signing_times;
use super::clock::{SECONDS_MAX, signature_header, signed_at};
use crate::check::{Check, Mismatch};
use crate::parsed_deliveries::{
    ParsedDelivery, ReceivedDeliveries, judge_each_delivery, received_deliveries,
};

pub(crate) const CHECKS: &[Check] = &[
    Check::new("webhooks.signature_shape", NEEDS, judge_signature_format),
    Check::new("webhooks.signed", NEEDS, judge_signed).excluded_with(Part::Signatures),
    Check::new("webhooks.signature_covers", NEEDS, judge_coverage).excluded_with(Part::Signatures),
    Check::new("webhooks.signature_scheme", NEEDS, observe_scheme).excluded_with(Part::Signatures),
];

fn judge_signature_format(recording: &Recording) -> CheckResult {
    let outcome = judge_each_delivery(recording, "any content", |_| true, format_mismatch)?;
    let received = received_deliveries(recording)?;
    for endpoint in received.parsed.iter().map(|parsed| parsed.delivery.endpoint).collect::<BTreeSet<_>>() {
        check_times_of_signing(&received, endpoint)?;
    }
    check_signing_times(recording).map(|()| outcome)
}

/// The minimum number of events with one `t` in their deliveries, for a violation.
const EQUAL_TIMES_MIN: usize = 5;
/// The minimum time between the first and the last of these deliveries, by arrival and by `created_at`.
const SIGNED_SPAN_MIN: Duration = Duration::from_secs(10);

/// Checks that `t` is not the same in all deliveries to an endpoint, although they were created and sent at different times.
fn check_times_of_signing(
    received: &ReceivedDeliveries<'_>,
    endpoint: Option<usize>,
) -> Result<(), CheckError> {
    let readable = || {
        let at_endpoint =
            received.readable_deliveries().filter(|parsed| parsed.delivery.endpoint == endpoint);
        at_endpoint.filter(|parsed| !parsed.is_test())
    };
    let times: BTreeSet<_> = readable().map(|parsed| signed_at(received.deliveries, parsed)).collect();
    let events: BTreeSet<_> = readable().filter_map(|parsed| parsed.text(&["event_id"])).collect();
    let arrivals: BTreeSet<_> = readable().map(|parsed| parsed.delivery.arrived).collect();
    let created: BTreeSet<_> =
        readable().filter_map(|parsed| parse_utc(parsed.text(&["created_at"])?)).collect();
    let is_spread = arrivals.first().zip(arrivals.last()).is_some_and(|(a, b)| *b - *a >= SIGNED_SPAN_MIN)
        && created.first().zip(created.last()).is_some_and(|(a, b)| *b - *a >= SIGNED_SPAN_MIN);
    match (readable().last(), times.first()) {
        // A trigger that lets all deliveries settle may have stopped the clock of the service.
        (Some(last), Some(Some(time)))
            if times.len() == 1
                && events.len() >= EQUAL_TIMES_MIN
                && is_spread
                && !received.deliveries.settled =>
        {
            let actual = format!("t={time} in the deliveries of {} events", events.len());
            Err(last
                .violation("different times as t of deliveries that were sent at different times", actual))
        }
        _ => Ok(()),
    }
}

fn format_mismatch(all: &Deliveries, parsed: &ParsedDelivery<'_>) -> Option<Mismatch> {
    let name = signature_header(all);
    let expected = |what: &str| Some(format!("{name} with {what}"));
    let values = parsed.delivery.header_values(&name);
    let [value] = values.as_slice() else {
        let found =
            if values.is_empty() { format!("no {name}") } else { format!("{name} {} times", values.len()) };
        return expected("t and v1").zip(Some(found));
    };
    let actual = Some(format!("{name} {}", shorten(value)));
    let parts: Vec<_> = value.split(',').map(|part| part.trim().split_once('=')).collect();
    let values_of = |wanted: &str| {
        let parts_with_name = parts.iter().flatten().filter(move |(name, _)| *name == wanted);
        parts_with_name.map(|(_, value)| *value).collect::<Vec<_>>()
    };
    let [time] = values_of("t")[..] else { return expected("one t").zip(actual) };
    if time.is_empty() || !time.bytes().all(|byte| byte.is_ascii_digit()) {
        return expected("whole seconds as t").zip(actual);
    }
    if !time.parse::<u64>().is_ok_and(|secs| secs < SECONDS_MAX) {
        return expected("t in seconds").zip(actual);
    }
    let signatures = values_of("v1");
    if signatures.is_empty() || signatures.iter().any(|text| text.is_empty()) {
        return expected("a signature as v1").zip(actual);
    }
    // The order is specified. White space after a comma and signatures of other versions are allowed.
    let position = |wanted: &str| parts.iter().flatten().position(|(name, _)| *name == wanted);
    if position("t") > position("v1") {
        return expected("t before v1").zip(actual);
    }
    None
}

fn judge_signed(recording: &Recording) -> CheckResult {
    let received = received_deliveries(recording)?;
    for parsed in &received.parsed {
        match &parsed.delivery.signature {
            SignatureStatus::Missing => return Err(parsed.violation("a signature", "none")),
            SignatureStatus::WithoutSecret => {
                return Err(parsed
                    .violation("a signature made with the endpoint's secret", "a hash without any secret"));
            }
            SignatureStatus::Matches { own: false, .. } => {
                return Err(parsed.violation("the secret of its endpoint", "the secret of another endpoint"));
            }
            _ => {}
        }
    }
    check_signatures_differ(&received)?;
    let deliveries_with = |is_wanted: fn(&SignatureStatus) -> bool| -> Vec<&ParsedDelivery<'_>> {
        received.parsed.iter().filter(|parsed| is_wanted(&parsed.delivery.signature)).collect()
    };
    let verified = deliveries_with(|status| matches!(status, SignatureStatus::Matches { .. }));
    let unknown = deliveries_with(|status| *status == SignatureStatus::Unknown);
    // Two endpoints with one address have different secrets, and both receive the event. If a rewritten body is signed,
    // an unknown signature is another construction, not another secret.
    let is_second_secret = |unmatched: &&&ParsedDelivery<'_>| {
        let verified_here =
            || verified.iter().filter(|known| known.delivery.endpoint == unmatched.delivery.endpoint);
        if verified_here().any(|known| is_rewritten(known)) {
            return false;
        }
        let event = unmatched.text(&["event_id"]);
        verified_here().next().is_some()
            && !verified_here().any(|known| event.is_some() && known.text(&["event_id"]) == event)
    };
    if let Some(unmatched) = unknown.iter().find(is_second_secret) {
        return Err(unmatched.violation(
            "the same secret as for the endpoint's other deliveries",
            "a signature that does not match it",
        ));
    }
    if !unknown.is_empty() {
        return Err(unknown_construction(unknown.len()));
    }
    if verified.is_empty() {
        return Err(no_secret());
    }
    let without_secret = deliveries_with(|status| *status == SignatureStatus::NoSecret).len();
    let note = format!("{} deliveries match the secret of their endpoint", verified.len());
    Ok(CheckOutcome::HoldsWith(if without_secret > 0 {
        format!("{note}; the secret of {without_secret} others is unknown")
    } else {
        note
    }))
}

/// Returns `true` if a signature covers a rewritten body instead of the raw one.
fn is_rewritten(parsed: &ParsedDelivery<'_>) -> bool {
    let SignatureStatus::Matches { differences, .. } = &parsed.delivery.signature else {
        return false;
    };
    differences.iter().any(|difference| difference.name == "body_rewritten")
}

/// Checks that different bodies have different signatures.
fn check_signatures_differ(received: &ReceivedDeliveries<'_>) -> Result<(), CheckError> {
    let mut bodies: BTreeMap<String, &[u8]> = BTreeMap::new();
    for parsed in &received.parsed {
        let values = parsed.delivery.header_values(&signature_header(received.deliveries));
        let signature =
            values.iter().flat_map(|value| value.split(',')).find_map(|part| part.trim().strip_prefix("v1="));
        let Some(signature) = signature.filter(|text| !text.is_empty()) else { continue };
        let body = parsed.delivery.body.0.as_slice();
        if bodies.insert(signature.to_owned(), body).is_some_and(|other| other != body) {
            return Err(parsed
                .violation("another signature for another body", "the signature of an earlier delivery"));
        }
    }
    Ok(())
}

fn unknown_construction(count: usize) -> CheckError {
    CheckError::unjudged(
        format!("{count} signatures do not match the secret in any way that the suite recognises"),
        "check that the secret belongs to this endpoint; if it does, the service uses a signature scheme of its own: pass \
         `--without signatures`",
    )
}

fn no_secret() -> CheckError {
    CheckError::unjudged(
        "no secret of an endpoint is known",
        "set CHARGEPROOF_LIVE_WEBHOOK_SECRET and CHARGEPROOF_TEST_WEBHOOK_SECRET",
    )
}

/// A delivery whose signature matches a secret, with the differences of its construction from the usual one.
struct VerifiedSignature<'a> {
    parsed: ParsedDelivery<'a>,
    /// The names of the differences.
    names: Vec<String>,
    /// The differences as text.
    description: String,
}

/// Returns the deliveries whose signature matches a secret.
fn verified_signatures(recording: &Recording) -> Result<Vec<VerifiedSignature<'_>>, CheckError> {
    let received = received_deliveries(recording)?;
    let is_unknown = |parsed: &ParsedDelivery<'_>| parsed.delivery.signature == SignatureStatus::Unknown;
    let unknown = received.parsed.iter().filter(|parsed| is_unknown(parsed)).count();
    let mut verified = Vec::new();
    for parsed in received.parsed {
        if let SignatureStatus::Matches { differences, .. } = &parsed.delivery.signature {
            let names = differences.iter().map(|difference| difference.name.clone()).collect();
            let clauses: Vec<_> = differences.iter().map(|difference| difference.clause.as_str()).collect();
            let description = clauses.join("; ");
            verified.push(VerifiedSignature { parsed, names, description });
        }
    }
    match verified.is_empty() {
        true if unknown > 0 => Err(unknown_construction(unknown)),
        true => Err(no_secret()),
        false => Ok(verified),
    }
}

/// Checks that the signature covers both `t` and the raw body.
fn judge_coverage(recording: &Recording) -> CheckResult {
    for VerifiedSignature { parsed, names, description } in verified_signatures(recording)? {
        let has = |name: &str| names.iter().any(|known| known == name);
        if has("body_only") || has("body_rewritten") {
            return Err(parsed.violation("t and the raw body under the signature", description));
        }
    }
    Ok(CheckOutcome::Holds)
}

fn observe_scheme(recording: &Recording) -> CheckResult {
    let usual = "HMAC-SHA256 of `<t>.<body>` under the secret's text, in lower-case hexadecimal digits";
    let schemes: BTreeSet<String> = verified_signatures(recording)?
        .into_iter()
        .map(
            |VerifiedSignature { names, description, .. }| {
                if names.is_empty() { usual.to_owned() } else { format!("as usual, but {description}") }
            },
        )
        .collect();
    Ok(CheckOutcome::Observed(schemes.into_iter().collect::<Vec<_>>().join(" · ")))
}
