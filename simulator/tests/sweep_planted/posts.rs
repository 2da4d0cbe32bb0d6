//! Merchants get something else than what the service sends, or the service hears something else of how it ended.

use std::collections::BTreeMap;

use reference_core::{
    book::Post, endpoint::Secret, id::EndpointNo, mode::Mode, outbox::Outcome, time::Timestamp,
};
use simulator::{
    law::Law,
    tamper::{Sent, Tamper},
};
use uuid::Uuid;

use crate::Bug;

struct Posts<F>(F);

impl<F: FnMut(Timestamp, Mode, &mut Post) -> Sent + Send> Tamper for Posts<F> {
    fn post(&mut self, now: Timestamp, mode: Mode, post: &mut Post) -> Sent {
        (self.0)(now, mode, post)
    }
}

fn posts(change: impl FnMut(Timestamp, Mode, &mut Post) -> Sent + Send + 'static) -> Box<dyn Tamper> {
    Box::new(Posts(change))
}

/// The first occurrence of a text in the body becomes another.
fn body(from: &'static str, to: &'static str) -> Box<dyn Tamper> {
    posts(move |_, _, post| {
        write(post, |text| text.replacen(from, to, 1));
        Sent::AsItIs
    })
}

fn write(post: &mut Post, change: impl FnOnce(String) -> String) {
    let text = String::from_utf8(std::mem::take(&mut post.body)).expect("a body is JSON");
    post.body = change(text).into_bytes();
}

struct Outcomes<F>(F);

impl<F: FnMut(&Post, &mut Outcome) + Send> Tamper for Outcomes<F> {
    fn outcome(&mut self, _: Timestamp, post: &Post, outcome: &mut Outcome) {
        (self.0)(post, outcome);
    }
}

fn outcomes(change: impl FnMut(&Post, &mut Outcome) + Send + 'static) -> Box<dyn Tamper> {
    Box::new(Outcomes(change))
}

/// Another id, as good as any.
fn other(id: Uuid) -> Uuid {
    Uuid::from_u128(id.as_u128() ^ 1)
}

/// After a restart the last event goes out once more, as a delivery of its own.
#[derive(Default)]
struct RestartRepeats {
    last: BTreeMap<EndpointNo, Post>,
    is_due: bool,
}

impl Tamper for RestartRepeats {
    fn post(&mut self, _: Timestamp, _: Mode, post: &mut Post) -> Sent {
        let before = self.last.insert(post.endpoint, post.clone());
        match before.filter(|_| std::mem::take(&mut self.is_due)) {
            None => Sent::AsItIs,
            Some(mut again) => {
                let id = other(again.id);
                let (from, to) = (post_id(&again.id), post_id(&id));
                write(&mut again, |text| text.replacen(&from, &to, 1));
                again.id = id;
                Sent::WithAnother(Box::new(again))
            }
        }
    }

    fn restarted(&mut self, _: Timestamp) {
        self.is_due = true;
    }
}

fn post_id(id: &Uuid) -> String {
    id.to_string()
}

/// After a restart the next delivery is forgotten.
#[derive(Default)]
struct RestartForgets {
    forgets: bool,
}

impl Tamper for RestartForgets {
    fn post(&mut self, _: Timestamp, _: Mode, post: &mut Post) -> Sent {
        if post.attempt == 1 && std::mem::take(&mut self.forgets) { Sent::Swallowed } else { Sent::AsItIs }
    }

    fn restarted(&mut self, _: Timestamp) {
        self.forgets = true;
    }
}

pub(crate) fn bugs() -> Vec<Bug> {
    use Law::{Deliveries, Liveness, Once, SameObject};
    const SENT: &[Law] = &[Deliveries, Once, SameObject, Liveness];
    vec![
        Bug {
            name: "a retry has a new event id",
            laws: SENT,
            make: || {
                posts(|_, _, post| {
                    if post.attempt > 1 {
                        write(post, |text| text.replacen("\"event_id\":\"0", "\"event_id\":\"1", 1));
                    }
                    Sent::AsItIs
                })
            },
        },
        Bug {
            name: "a retry has a new delivery id",
            laws: SENT,
            make: || {
                posts(|_, _, post| {
                    if post.attempt > 1 {
                        let id = other(post.id);
                        let (from, to) = (post_id(&post.id), post_id(&id));
                        write(post, |text| text.replacen(&from, &to, 1));
                        post.id = id;
                    }
                    Sent::AsItIs
                })
            },
        },
        Bug { name: "a restart repeats an event", laws: SENT, make: || Box::<RestartRepeats>::default() },
        Bug { name: "a restart forgets a delivery", laws: SENT, make: || Box::<RestartForgets>::default() },
        Bug {
            name: "every ninth delivery is lost",
            laws: SENT,
            make: || {
                let mut count = 0;
                posts(move |_, _, post| {
                    count += u32::from(post.attempt == 1);
                    if post.attempt == 1 && count % 9 == 0 { Sent::Swallowed } else { Sent::AsItIs }
                })
            },
        },
        Bug {
            name: "every event goes to one endpoint twice",
            laws: SENT,
            make: || {
                posts(|_, _, post| {
                    let mut again = post.clone();
                    again.id = other(post.id);
                    let (from, to) = (post_id(&post.id), post_id(&again.id));
                    write(&mut again, |text| text.replacen(&from, &to, 1));
                    Sent::WithAnother(Box::new(again))
                })
            },
        },
        Bug {
            name: "the first endpoint gets what the second wants",
            laws: SENT,
            make: || {
                posts(|_, _, post| {
                    if post.endpoint.index() > 0 {
                        post.endpoint = EndpointNo(0);
                    }
                    Sent::AsItIs
                })
            },
        },
        Bug {
            name: "deliveries name the other mode",
            laws: SENT,
            make: || body("\"mode\":\"live\"", "\"mode\":\"test\""),
        },
        Bug {
            name: "a delivery shows its charge as paid before it is",
            laws: SENT,
            make: || body("\"status\":\"pending\"", "\"status\":\"paid\""),
        },
        Bug {
            name: "a delivery has the time of its attempt",
            laws: SENT,
            make: || {
                posts(|now, _, post| {
                    if post.attempt > 1 {
                        write(post, |text| {
                            let start = text.find("\"created_at\":\"").map_or(0, |at| at + 14);
                            format!("{}{now}{}", &text[..start], &text[start + 27..])
                        });
                    }
                    Sent::AsItIs
                })
            },
        },
        Bug {
            name: "an old secret is used after a rotation",
            laws: SENT,
            make: || {
                let mut first: BTreeMap<(Mode, EndpointNo), Secret> = BTreeMap::new();
                posts(move |_, mode, post| {
                    post.secret =
                        first.entry((mode, post.endpoint)).or_insert_with(|| post.secret.clone()).clone();
                    Sent::AsItIs
                })
            },
        },
        Bug {
            name: "delivered amounts are written as the API writes them",
            laws: SENT,
            make: || body("00000000\"", "\""),
        },
        Bug {
            name: "a redirect is success",
            laws: SENT,
            make: || {
                outcomes(|_, outcome| {
                    if matches!(outcome, Outcome::Answered(300..=399)) {
                        *outcome = Outcome::Answered(200);
                    }
                })
            },
        },
        Bug {
            name: "a time-out is success",
            laws: SENT,
            make: || {
                outcomes(|_, outcome| {
                    if *outcome == Outcome::TimedOut {
                        *outcome = Outcome::Answered(200);
                    }
                })
            },
        },
        Bug {
            name: "nothing is tried a third time",
            laws: SENT,
            make: || {
                outcomes(|post, outcome| {
                    if post.attempt > 1 {
                        *outcome = Outcome::Answered(200);
                    }
                })
            },
        },
        Bug {
            name: "201 and its kin are failures",
            laws: SENT,
            make: || {
                outcomes(|post, outcome| {
                    if post.attempt == 1 && *outcome == Outcome::Answered(200) {
                        *outcome = Outcome::Answered(500);
                    }
                })
            },
        },
    ]
}
