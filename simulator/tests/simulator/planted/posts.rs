//! Planted faults in webhook posts and their results.

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
    tamper::{PostFate, Tamper},
};
use uuid::Uuid;

use super::{PlantedFault, demo};

struct Posts<F>(F);

impl<F: FnMut(Timestamp, Mode, &mut AttemptRequest) -> PostFate + Send> Tamper for Posts<F> {
    fn on_post(&mut self, now: Timestamp, mode: Mode, post: &mut AttemptRequest) -> PostFate {
        (self.0)(now, mode, post)
    }
}

pub(super) fn posts(
    change: impl FnMut(Timestamp, Mode, &mut AttemptRequest) -> PostFate + Send + 'static,
) -> Box<dyn Tamper> {
    Box::new(Posts(change))
}

/// Replaces the first occurrence of a string in the body.
fn body(from: &'static str, to: &'static str) -> Box<dyn Tamper> {
    posts(move |_, _, post| {
        write(post, |text| text.replacen(from, to, 1));
        PostFate::Unchanged
    })
}

fn write(post: &mut AttemptRequest, change: impl FnOnce(String) -> String) {
    let text = String::from_utf8(std::mem::take(&mut post.body).into()).expect("a body is JSON");
    post.body = change(text).into();
}

struct Outcomes<F>(F);

impl<F: FnMut(&AttemptRequest, &mut AttemptResult) + Send> Tamper for Outcomes<F> {
    fn on_outcome(&mut self, _: Timestamp, post: &AttemptRequest, outcome: &mut AttemptResult) {
        (self.0)(post, outcome);
    }
}

fn outcomes(change: impl FnMut(&AttemptRequest, &mut AttemptResult) + Send + 'static) -> Box<dyn Tamper> {
    Box::new(Outcomes(change))
}

/// Returns another valid id.
fn other_id(id: Uuid) -> Uuid {
    Uuid::from_u128(id.as_u128() ^ 1)
}

/// A fault: after a restart the last event is sent again, in a new delivery.
#[derive(Default)]
struct RestartRepeats {
    last: BTreeMap<EndpointNo, AttemptRequest>,
    is_due: bool,
}

impl Tamper for RestartRepeats {
    fn on_post(&mut self, _: Timestamp, _: Mode, post: &mut AttemptRequest) -> PostFate {
        let before = self.last.insert(post.endpoint, post.clone());
        match before.filter(|_| std::mem::take(&mut self.is_due)) {
            None => PostFate::Unchanged,
            Some(mut again) => {
                let id = other_id(again.id);
                let (from, to) = (post_id(&again.id), post_id(&id));
                write(&mut again, |text| text.replacen(&from, &to, 1));
                again.id = id;
                PostFate::WithExtra(Box::new(again))
            }
        }
    }

    fn on_restart(&mut self, _: Timestamp) {
        self.is_due = true;
    }
}

/// A fault: a failed resend is retried, although the delivery had ended.
#[derive(Default)]
struct ResendIsRepeated {
    delivered: BTreeSet<Uuid>,
    again: Option<(Timestamp, AttemptRequest)>,
}

impl ResendIsRepeated {
    /// The time from the end of the failed resend to the retry.
    const PAUSE: Span = Span::mins(1);
}

impl Tamper for ResendIsRepeated {
    fn on_post(&mut self, now: Timestamp, _: Mode, _: &mut AttemptRequest) -> PostFate {
        match self.again.take_if(|(failed, _)| now.since(*failed) >= ResendIsRepeated::PAUSE) {
            None => PostFate::Unchanged,
            Some((_, again)) => PostFate::WithExtra(Box::new(again)),
        }
    }

    fn on_outcome(&mut self, now: Timestamp, post: &AttemptRequest, outcome: &mut AttemptResult) {
        if outcome.is_success() {
            self.delivered.insert(post.id);
        } else if self.delivered.contains(&post.id) {
            self.again = Some((now, post.clone()));
        }
    }
}

fn post_id(id: &Uuid) -> String {
    id.to_string()
}

const SENT: &[Invariant] = &[Deliveries, Once, SameObject, Liveness];
pub(super) const FAULTS: &[PlantedFault] = &[
    PlantedFault::new("a retry has a new event id", SENT, || {
        posts(|_, _, post| {
            if post.attempt > 1 {
                write(post, |text| text.replacen("\"event_id\":\"0", "\"event_id\":\"1", 1));
            }
            PostFate::Unchanged
        })
    }),
    PlantedFault::new("a resend that failed is tried again", SENT, || Box::<ResendIsRepeated>::default()),
    PlantedFault::new("a retry has a new delivery id", SENT, || demo("retry-renamed")),
    PlantedFault::new("a restart repeats an event", SENT, || Box::<RestartRepeats>::default()),
    PlantedFault::new("a restart loses a delivery", SENT, || demo("restart-forgets")),
    PlantedFault::new("every ninth delivery is lost", SENT, || demo("ninth-delivery-lost")),
    PlantedFault::new("every event goes to one endpoint twice", SENT, || {
        posts(|_, _, post| {
            let mut again = post.clone();
            again.id = other_id(post.id);
            let (from, to) = (post_id(&post.id), post_id(&again.id));
            write(&mut again, |text| text.replacen(&from, &to, 1));
            PostFate::WithExtra(Box::new(again))
        })
    }),
    PlantedFault::new("the first endpoint receives the events of the second", SENT, || {
        posts(|_, _, post| {
            if post.endpoint.index() > 0 {
                post.endpoint = EndpointNo(0);
            }
            PostFate::Unchanged
        })
    }),
    PlantedFault::new("deliveries name the other mode", SENT, || {
        body("\"mode\":\"live\"", "\"mode\":\"test\"")
    }),
    PlantedFault::new("a delivery shows its charge as paid before it is", SENT, || {
        body("\"status\":\"pending\"", "\"status\":\"paid\"")
    }),
    PlantedFault::new("a delivery has the time of its attempt", SENT, || {
        posts(|now, _, post| {
            if post.attempt > 1 {
                write(post, |text| {
                    let start = text.find("\"created_at\":\"").map_or(0, |at| at + 14);
                    format!("{}{now}{}", &text[..start], &text[start + 27..])
                });
            }
            PostFate::Unchanged
        })
    }),
    PlantedFault::new("an old secret is used after a rotation", SENT, || {
        let mut first: BTreeMap<(Mode, EndpointNo), Secret> = BTreeMap::new();
        posts(move |_, mode, post| {
            post.secret = first.entry((mode, post.endpoint)).or_insert_with(|| post.secret.clone()).clone();
            PostFate::Unchanged
        })
    }),
    PlantedFault::new("delivered amounts are written as the API writes them", SENT, || {
        body("00000000\"", "\"")
    }),
    PlantedFault::new("a redirect is success", SENT, || {
        outcomes(|_, outcome| {
            if matches!(outcome, AttemptResult::Answered(300..=399)) {
                *outcome = AttemptResult::Answered(200);
            }
        })
    }),
    PlantedFault::new("a time-out is success", SENT, || {
        outcomes(|_, outcome| {
            if *outcome == AttemptResult::TimedOut {
                *outcome = AttemptResult::Answered(200);
            }
        })
    }),
    PlantedFault::new("nothing is tried a third time", SENT, || demo("two-attempts")),
    PlantedFault::new("the first attempt fails although the response is 200", SENT, || {
        outcomes(|post, outcome| {
            if post.attempt == 1 && *outcome == AttemptResult::Answered(200) {
                *outcome = AttemptResult::Answered(500);
            }
        })
    }),
];
