//! The times of a delivery, compared with the receiver's clock.

use std::collections::BTreeSet;

use conformance_model::mode::Mode;
use conformance_model::reading::{text_at, utc};
use conformance_model::recording::Recording;
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::route::{WITH_LISTS, new_events};
use super::signature::signed_at;
use crate::check::Check;
use crate::delivered::received_deliveries;

pub(crate) const CHECKS: &[Check] = &[Check::new("webhooks.clock", WITH_LISTS, judge_clock)];

/// The largest difference between the clocks of the service and the receiver.
const APART_SECS: i64 = 300;

/// Judges the first delivery of each event during the run. Its times, of the event or of sending, are between the start of
/// the receiver and the arrival.
fn judge_clock(recording: &Recording) -> CheckResult {
    let received = received_deliveries(recording)?;
    let Some(began) = received.all.began.filter(|_| !received.all.settled) else {
        return Err(CheckError::Inapplicable("the service does not use the receiver's clock".into()));
    };
    let id = |row| text_at(row, &["id"]).map(str::to_owned);
    let new = Mode::BOTH.map(|mode| new_events(recording, mode).unwrap_or_default());
    let mut new: BTreeSet<_> = new.iter().flatten().filter_map(id).collect();
    let mut judged = false;
    for seen in received.readable_deliveries() {
        // Only the first delivery of each event: a retry may have the old time.
        if !seen.text(&["event_id"]).is_some_and(|event| new.remove(event)) {
            continue;
        }
        let arrived = began + i64::try_from(seen.delivery.arrived.as_secs()).unwrap_or(i64::MAX / 2);
        let created = seen.text(&["created_at"]).and_then(|text| Some(utc(text)?.unix_timestamp()));
        for (name, at) in [("t", signed_at(received.all, seen)), ("created_at", created)] {
            let Some(at) = at else { continue };
            let (by, side) = if at < began {
                (began - at, "before the receiver started")
            } else {
                (at - arrived, "after it arrived")
            };
            if by > APART_SECS {
                let expected = format!("{name} within {APART_SECS} s of the receiver's clock");
                return Err(seen.violation(expected, format!("{name} {by} s {side}")));
            }
            judged = true;
        }
    }
    match judged {
        true => Ok(CheckOutcome::HoldsWith(format!("{APART_SECS} s allowed"))),
        false => Err(CheckError::unjudged(
            "no delivery announced an event that happened while the suite received",
            "cause one while the suite receives, with keys of the same account",
        )),
    }
}
