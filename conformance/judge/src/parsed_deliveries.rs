//! Parsed deliveries, and the error if there are none.

use std::fmt::Write;

use serde_json::Value;

use crate::check::Mismatch;
use conformance_model::deliveries::{Deliveries, Delivery};
use conformance_model::mode::Mode;
use conformance_model::reading::text_at;
use conformance_model::recording::Recording;
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

/// A delivery and its parsed body.
pub(super) struct ParsedDelivery<'a> {
    pub(super) delivery: &'a Delivery,
    /// The body, if it is JSON.
    pub(super) body: Option<&'a Value>,
}

impl<'a> ParsedDelivery<'a> {
    /// Returns the string at a path of the body.
    pub(super) fn text(&self, path: &[&str]) -> Option<&'a str> {
        text_at(self.body?, path)
    }

    /// Returns the type of the event in the body.
    pub(super) fn event_type(&self) -> Option<&'a str> {
        self.text(&["event"])
    }

    /// Returns the charge in the body.
    pub(super) fn charge(&self) -> Option<&'a Value> {
        self.body?.get("data")?.get("charge").filter(|charge| charge.is_object())
    }

    /// Returns the mode in the body.
    pub(super) fn mode(&self) -> Option<Mode> {
        let stated = self.text(&["mode"])?;
        Mode::BOTH.into_iter().find(|mode| mode.as_str() == stated)
    }

    /// Returns `true` for a delivery of "Send test event", which has no event and needs no subscription.
    pub(super) fn is_test(&self) -> bool {
        self.body.is_some_and(|body| body.get("test") == Some(&Value::Bool(true)))
    }

    /// Returns the name of the delivery in findings.
    pub(super) fn name(&self) -> String {
        let mut name = format!("delivery {}", self.delivery.number);
        if let Some(kind) = self.event_type() {
            let _ = write!(name, ", {}", conformance_model::recording::shorten(kind));
        }
        name
    }

    pub(super) fn violation(&self, expected: impl Into<String>, actual: impl Into<String>) -> CheckError {
        CheckError::violation(None, expected, format!("{} ({})", actual.into(), self.name()))
    }
}

/// The received deliveries, without requests that followed a redirect.
pub(super) struct ReceivedDeliveries<'a> {
    pub(super) deliveries: &'a Deliveries,
    pub(super) parsed: Vec<ParsedDelivery<'a>>,
}

impl<'a> ReceivedDeliveries<'a> {
    /// Returns the deliveries whose body is a JSON object.
    pub(super) fn readable_deliveries(&self) -> impl Iterator<Item = &ParsedDelivery<'a>> {
        self.parsed.iter().filter(|parsed| parsed.body.is_some_and(Value::is_object))
    }

    /// Returns the mode of the endpoint that received a delivery, if declared.
    pub(super) fn endpoint_mode(&self, parsed: &ParsedDelivery<'_>) -> Option<Mode> {
        self.deliveries.endpoints.get(parsed.delivery.endpoint?)?.mode
    }
}

/// Returns the received deliveries, or the reason why there are none.
pub(super) fn received_deliveries(recording: &Recording) -> Result<ReceivedDeliveries<'_>, CheckError> {
    let Some(all) = &recording.deliveries else {
        return Err(CheckError::unjudged(
            "no deliveries were received: there was no receiver",
            "receive them with `--receiver ADDR:PORT`, read captured ones with `--deliveries FILE`, \
             or declare `--without webhooks`",
        ));
    };
    let parse = |delivery| ParsedDelivery { delivery, body: delivery.body.json() };
    let parsed: Vec<_> = all.received.iter().filter(|delivery| !delivery.redirected).map(parse).collect();
    if parsed.is_empty() {
        return Err(no_deliveries(all));
    }
    Ok(ReceivedDeliveries { deliveries: all, parsed })
}

fn no_deliveries(all: &Deliveries) -> CheckError {
    let mut reason = match all.receiver {
        Some(_) => format!("no delivery arrived within {} s", all.duration.as_secs()),
        None => "the captured requests contain no delivery".to_owned(),
    };
    if let Some(error) = &all.trigger_error {
        let _ = write!(reason, "; {error}");
    }
    if all.other_requests > 0 {
        let _ =
            write!(reason, "; {} other requests were received that are not deliveries", all.other_requests);
    }
    CheckError::unjudged(
        reason,
        "cause one while the suite receives: add its public address as an endpoint, then open and cancel a charge",
    )
}

/// Judges the deliveries for which `applies_to` returns `true`. `needed` describes them in the error if there are none.
pub(super) fn judge_each_delivery(
    recording: &Recording,
    needed: &str,
    applies_to: impl Fn(&ParsedDelivery<'_>) -> bool,
    mismatch: impl Fn(&Deliveries, &ParsedDelivery<'_>) -> Option<Mismatch>,
) -> CheckResult {
    let received = received_deliveries(recording)?;
    let mut judged = false;
    for parsed in received.parsed.iter().filter(|parsed| applies_to(parsed)) {
        if let Some((expected, actual)) = mismatch(received.deliveries, parsed) {
            return Err(parsed.violation(expected, actual));
        }
        judged = true;
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(no_delivery_with(needed)) }
}

/// Returns the error if other deliveries were received, but none with the required content.
pub(super) fn no_delivery_with(needed: &str) -> CheckError {
    CheckError::unjudged(
        format!("no delivery arrived with {needed}"),
        format!("cause one with {needed} while the suite receives"),
    )
}

/// Formats the name of an object's member with its value, shortened to one line.
pub(super) fn member_text(object: &Value, name: &str) -> String {
    match object.get(name) {
        None => format!("{name} missing"),
        Some(value) => format!("{name} {}", conformance_model::recording::shorten(&value.to_string())),
    }
}

/// Returns `true` for an ISO 8601 time in UTC (`Z` or `+00:00`) with exactly six decimals.
pub(super) fn has_microseconds(text: &str) -> bool {
    let time = text.strip_suffix('Z').or_else(|| text.strip_suffix("+00:00"));
    let digits = time.and_then(|time| time.rsplit_once('.')).map(|(_, digits)| digits);
    conformance_model::reading::parse_utc(text).is_some()
        && digits.is_some_and(|digits| digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns `true` for a UUID of any version: the specification requires no particular one.
pub(super) fn is_uuid(text: &str) -> bool {
    let groups: Vec<_> = text.split('-').collect();
    let lengths: Vec<_> = groups.iter().map(|group| group.len()).collect();
    lengths == [8, 4, 4, 4, 12] && groups.concat().bytes().all(|byte| byte.is_ascii_hexdigit())
}
