//! The times of a delivery, compared with the receiver's clock.

use std::collections::BTreeSet;

use conformance_model::mode::Mode;
use conformance_model::reading::{parse_utc, text_at};
use conformance_model::recording::Recording;
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::routing::{NEEDS_WITH_LISTS, new_events};
use super::signature::signed_at;
use crate::check::Check;
use crate::parsed_deliveries::received_deliveries;

pub(crate) const CHECKS: &[Check] = &[Check::new("webhooks.clock", NEEDS_WITH_LISTS, judge_clock)];

/// The maximum difference between the clocks of the service and the receiver.
const CLOCK_DIFFERENCE_MAX_SECS: i64 = 300;

/// Judges the first delivery of each event that was created during the run. The times of the event and of sending must
/// lie between the start of the receiver and the arrival, with a tolerance of [`CLOCK_DIFFERENCE_MAX_SECS`].
fn judge_clock(recording: &Recording) -> CheckResult {
    let received = received_deliveries(recording)?;
    // A trigger that lets all deliveries settle may have advanced the clock of the service.
    let Some(started_at) = received.deliveries.started_at.filter(|_| !received.deliveries.settled) else {
        return Err(CheckError::Inapplicable("the service does not use the receiver's clock".into()));
    };
    let id = |row| text_at(row, &["id"]).map(str::to_owned);
    let new_rows = Mode::BOTH.map(|mode| new_events(recording, mode).unwrap_or_default());
    let mut new_ids: BTreeSet<_> = new_rows.iter().flatten().filter_map(id).collect();
    let mut judged = false;
    for parsed in received.readable_deliveries() {
        // Only the first delivery of each event: a retry may have the old time.
        if !parsed.text(&["event_id"]).is_some_and(|event| new_ids.remove(event)) {
            continue;
        }
        // Half of the maximum, so that the sum does not overflow.
        let arrived_at =
            started_at + i64::try_from(parsed.delivery.arrived.as_secs()).unwrap_or(i64::MAX / 2);
        let created = parsed.text(&["created_at"]).and_then(|text| Some(parse_utc(text)?.unix_timestamp()));
        for (name, time) in [("t", signed_at(received.deliveries, parsed)), ("created_at", created)] {
            let Some(time) = time else { continue };
            let (difference, position) = if time < started_at {
                (started_at - time, "before the receiver started")
            } else {
                (time - arrived_at, "after it arrived")
            };
            if difference > CLOCK_DIFFERENCE_MAX_SECS {
                let expected = format!("{name} within {CLOCK_DIFFERENCE_MAX_SECS} s of the receiver's clock");
                return Err(parsed.violation(expected, format!("{name} {difference} s {position}")));
            }
            judged = true;
        }
    }
    match judged {
        true => Ok(CheckOutcome::HoldsWith(format!("{CLOCK_DIFFERENCE_MAX_SECS} s allowed"))),
        false => Err(CheckError::unjudged(
            "no delivery had an event that was created while the receiver ran",
            "cause one while the suite receives, with keys of the same account",
        )),
    }
}
