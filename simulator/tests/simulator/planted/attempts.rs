//! Planted faults in the attempts of webhook deliveries and their results.

use std::collections::{BTreeMap, BTreeSet};

use reference_core::{
    endpoint::Secret,
    id::EndpointNo,
    mode::Mode,
    outbox::AttemptResult,
    time::{Span, Timestamp},
};
use reference_wire::AttemptRequest;
use simulator::{
    invariant::Invariant::{self, Deliveries, Liveness, Once, SameObject},
    tamper::{AttemptFate, Tamper},
};
use uuid::Uuid;

use super::{PlantedFault, demo_fault};

/// A tamper that changes attempts.
struct ChangedAttempts<F>(F);

impl<F: FnMut(Timestamp, Mode, &mut AttemptRequest) -> AttemptFate + Send> Tamper for ChangedAttempts<F> {
    fn on_attempt(&mut self, now: Timestamp, mode: Mode, attempt: &mut AttemptRequest) -> AttemptFate {
        (self.0)(now, mode, attempt)
    }
}

pub(super) fn change_attempts(
    change: impl FnMut(Timestamp, Mode, &mut AttemptRequest) -> AttemptFate + Send + 'static,
) -> Box<dyn Tamper> {
    Box::new(ChangedAttempts(change))
}

/// Replaces the first occurrence of a string in the body.
fn replace_in_body(from: &'static str, to: &'static str) -> Box<dyn Tamper> {
    change_attempts(move |_, _, attempt| {
        change_body(attempt, |text| text.replacen(from, to, 1));
        AttemptFate::Unchanged
    })
}

/// Changes the text of the body.
fn change_body(attempt: &mut AttemptRequest, change: impl FnOnce(String) -> String) {
    let text = String::from_utf8(std::mem::take(&mut attempt.body).into()).expect("a body is JSON");
    attempt.body = change(text).into();
}

/// A tamper that changes the results of attempts.
struct ChangedResults<F>(F);

impl<F: FnMut(&AttemptRequest, &mut AttemptResult) + Send> Tamper for ChangedResults<F> {
    fn on_attempt_result(&mut self, _: Timestamp, attempt: &AttemptRequest, result: &mut AttemptResult) {
        (self.0)(attempt, result);
    }
}

fn change_results(
    change: impl FnMut(&AttemptRequest, &mut AttemptResult) + Send + 'static,
) -> Box<dyn Tamper> {
    Box::new(ChangedResults(change))
}

/// Returns another valid id.
fn other_id(id: Uuid) -> Uuid {
    Uuid::from_u128(id.as_u128() ^ 1)
}

/// A fault: after a restart, the last event of an endpoint is sent again, in a new delivery.
#[derive(Default)]
struct RestartRepeats {
    last: BTreeMap<EndpointNo, AttemptRequest>,
    is_due: bool,
}

impl Tamper for RestartRepeats {
    fn on_attempt(&mut self, _: Timestamp, _: Mode, attempt: &mut AttemptRequest) -> AttemptFate {
        let before = self.last.insert(attempt.endpoint, attempt.clone());
        match before.filter(|_| std::mem::take(&mut self.is_due)) {
            None => AttemptFate::Unchanged,
            Some(mut repeated) => {
                let id = other_id(repeated.id);
                let (from, to) = (repeated.id.to_string(), id.to_string());
                change_body(&mut repeated, |text| text.replacen(&from, &to, 1));
                repeated.id = id;
                AttemptFate::WithExtra(Box::new(repeated))
            }
        }
    }

    fn on_restart(&mut self, _: Timestamp) {
        self.is_due = true;
    }
}

/// A fault: a failed resend is retried, although the delivery had ended.
#[derive(Default)]
struct ResendIsRetried {
    delivered: BTreeSet<Uuid>,
    pending: Option<(Timestamp, AttemptRequest)>,
}

impl ResendIsRetried {
    /// The time from the end of the failed resend to the retry.
    const PAUSE: Span = Span::mins(1);
}

impl Tamper for ResendIsRetried {
    fn on_attempt(&mut self, now: Timestamp, _: Mode, _: &mut AttemptRequest) -> AttemptFate {
        match self.pending.take_if(|(failed_at, _)| now.since(*failed_at) >= ResendIsRetried::PAUSE) {
            None => AttemptFate::Unchanged,
            Some((_, repeated)) => AttemptFate::WithExtra(Box::new(repeated)),
        }
    }

    fn on_attempt_result(&mut self, now: Timestamp, attempt: &AttemptRequest, result: &mut AttemptResult) {
        if result.is_success() {
            self.delivered.insert(attempt.id);
        } else if self.delivered.contains(&attempt.id) {
            self.pending = Some((now, attempt.clone()));
        }
    }
}

/// The invariants about deliveries.
const DELIVERY_INVARIANTS: &[Invariant] = &[Deliveries, Once, SameObject, Liveness];

pub(super) const FAULTS: &[PlantedFault] = &[
    PlantedFault::new("a retry has a new event id", DELIVERY_INVARIANTS, || {
        change_attempts(|_, _, attempt| {
            if attempt.attempt > 1 {
                // The ids of events begin with the time, whose first digit is 0.
                change_body(attempt, |text| text.replacen("\"event_id\":\"0", "\"event_id\":\"1", 1));
            }
            AttemptFate::Unchanged
        })
    }),
    PlantedFault::new("a resend that failed is tried again", DELIVERY_INVARIANTS, || {
        Box::<ResendIsRetried>::default()
    }),
    PlantedFault::new("a retry has a new delivery id", DELIVERY_INVARIANTS, || demo_fault("retry-renamed")),
    PlantedFault::new("a restart repeats an event", DELIVERY_INVARIANTS, || Box::<RestartRepeats>::default()),
    PlantedFault::new("a restart loses a delivery", DELIVERY_INVARIANTS, || demo_fault("restart-forgets")),
    PlantedFault::new("every ninth delivery is lost", DELIVERY_INVARIANTS, || {
        demo_fault("ninth-delivery-lost")
    }),
    PlantedFault::new("every event goes to one endpoint twice", DELIVERY_INVARIANTS, || {
        change_attempts(|_, _, attempt| {
            let mut repeated = attempt.clone();
            repeated.id = other_id(attempt.id);
            let (from, to) = (attempt.id.to_string(), repeated.id.to_string());
            change_body(&mut repeated, |text| text.replacen(&from, &to, 1));
            AttemptFate::WithExtra(Box::new(repeated))
        })
    }),
    PlantedFault::new("the first endpoint receives the events of the second", DELIVERY_INVARIANTS, || {
        change_attempts(|_, _, attempt| {
            if attempt.endpoint.index() > 0 {
                attempt.endpoint = EndpointNo(0);
            }
            AttemptFate::Unchanged
        })
    }),
    PlantedFault::new("deliveries name the other mode", DELIVERY_INVARIANTS, || {
        replace_in_body("\"mode\":\"live\"", "\"mode\":\"test\"")
    }),
    PlantedFault::new("a delivery shows its charge as paid before it is", DELIVERY_INVARIANTS, || {
        replace_in_body("\"status\":\"pending\"", "\"status\":\"paid\"")
    }),
    PlantedFault::new("a delivery has the time of its attempt", DELIVERY_INVARIANTS, || {
        change_attempts(|now, _, attempt| {
            const FIELD: &str = "\"created_at\":\"";
            const TIME_LENGTH: usize = "2026-01-05T09:00:00.000000Z".len();
            if attempt.attempt > 1 {
                change_body(attempt, |text| {
                    let start = text.find(FIELD).map_or(0, |index| index + FIELD.len());
                    format!("{}{now}{}", &text[..start], &text[start + TIME_LENGTH..])
                });
            }
            AttemptFate::Unchanged
        })
    }),
    PlantedFault::new("an old secret is used after a rotation", DELIVERY_INVARIANTS, || {
        let mut first: BTreeMap<(Mode, EndpointNo), Secret> = BTreeMap::new();
        change_attempts(move |_, mode, attempt| {
            attempt.secret =
                first.entry((mode, attempt.endpoint)).or_insert_with(|| attempt.secret.clone()).clone();
            AttemptFate::Unchanged
        })
    }),
    PlantedFault::new("delivered amounts are written as the API writes them", DELIVERY_INVARIANTS, || {
        replace_in_body("00000000\"", "\"")
    }),
    PlantedFault::new("a redirect is success", DELIVERY_INVARIANTS, || {
        change_results(|_, result| {
            if matches!(result, AttemptResult::Response(300..=399)) {
                *result = AttemptResult::Response(200);
            }
        })
    }),
    PlantedFault::new("a time-out is success", DELIVERY_INVARIANTS, || {
        change_results(|_, result| {
            if *result == AttemptResult::TimedOut {
                *result = AttemptResult::Response(200);
            }
        })
    }),
    PlantedFault::new("nothing is tried a third time", DELIVERY_INVARIANTS, || demo_fault("two-attempts")),
    PlantedFault::new("the first attempt fails although the response is 200", DELIVERY_INVARIANTS, || {
        change_results(|attempt, result| {
            if attempt.attempt == 1 && *result == AttemptResult::Response(200) {
                *result = AttemptResult::Response(500);
            }
        })
    }),
];
