//! Calls that move the clock, and stop wherever something goes abroad.
//!
//! "Advancing returns when everything due has happened" (contract 11): a post that left during the call has
//! landed before time goes on, so that its retries fall where they belong. Waits for nothing itself: the host
//! waits, without the world's lock, and other calls are answered meanwhile.

use reference_core::{error::ApiError, time::Timestamp, wire::http::Response};

use super::{Sandbox, Ticket, api};

/// How far a call has come.
#[derive(Debug)]
pub enum Progress {
    /// It is over.
    Done(Response),
    /// It goes on once something abroad has landed.
    Waiting(Journey),
}

/// Where a call moves the clock to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heading {
    /// At most.
    pub(super) until: Timestamp,
    /// Whether it ends as soon as something has happened.
    pub(super) stop_early: bool,
    /// The number of the happening after which its answer begins, if not with what the call itself causes.
    pub(super) after: Option<u64>,
}

/// A call on its way through time.
#[derive(Debug)]
pub struct Journey {
    heading: Heading,
    /// What had happened before it began.
    before: u64,
    /// Whose happenings it tells, if not everybody's.
    within: Option<api::Within>,
    /// The world that it began in.
    era: u64,
    /// Everything abroad up to this one lands before time goes on. What leaves later because of other calls
    /// is not waited for, or a busy world would never arrive.
    last_awaited: Option<Ticket>,
}

impl Journey {
    pub(super) fn new(
        sandbox: &Sandbox,
        heading: Heading,
        before: u64,
        within: Option<api::Within>,
    ) -> Journey {
        let before = heading.after.unwrap_or(before);
        Journey { heading, before, within, era: sandbox.era, last_awaited: None }
    }
}

impl Sandbox {
    /// Goes on with a call after a landing.
    pub fn go_on(&mut self, now: Timestamp, journey: Journey) -> Progress {
        self.advance_to(now);
        if journey.era != self.era {
            let gone = ApiError::conflict("Another world began while the clock of this one was moving.");
            return Progress::Done(Response::refusal(&gone));
        }
        self.travel(journey)
    }

    /// As far as it goes without leaving anything behind that is abroad.
    pub(super) fn travel(&mut self, mut journey: Journey) -> Progress {
        loop {
            let last = journey.last_awaited.unwrap_or(Ticket(self.tickets));
            if self.abroad.range(..=last).next().is_some() {
                journey.last_awaited = Some(last);
                return Progress::Waiting(journey);
            }
            journey.last_awaited = None;
            if self.is_over(&journey) || !self.step(journey.heading.until) {
                return Progress::Done(api::arrived(self, journey.before, journey.within));
            }
        }
    }

    /// Arrives without waiting.
    pub(super) fn hurry(&mut self, journey: Journey) -> Response {
        while !self.is_over(&journey) && self.step(journey.heading.until) {}
        api::arrived(self, journey.before, journey.within)
    }

    /// Whether a call that ends early has seen what it waits for.
    fn is_over(&self, journey: &Journey) -> bool {
        journey.heading.stop_early && api::has_happened(self, journey.before, journey.within)
    }

    /// Lets the next thing happen that is due up to `until`; says whether there was one.
    fn step(&mut self, until: Timestamp) -> bool {
        let due = self.next_due().filter(|due| *due <= until);
        self.now = self.now.max(due.unwrap_or(until));
        if due.is_some() {
            self.work();
        }
        due.is_some()
    }
}

#[cfg(test)]
mod tests {
    use reference_core::{dialect::Dialect, draw::Seed, outbox::Outcome, time::Span, wire::http::Request};

    use super::*;
    use crate::sandbox::{Reach, Setup};

    const START: Timestamp = Timestamp(1_789_898_741_000_000);

    /// A world that posts abroad, with one endpoint there.
    struct World {
        sandbox: Sandbox,
        endpoint: String,
    }

    impl World {
        fn new() -> World {
            let sandbox = Sandbox::new(&Setup {
                seed: Seed(1),
                start: START,
                public_url: "http://localhost".to_owned(),
                rate_limit: None,
                dialect: Dialect::default(),
                journal: true,
                reach: Reach::Abroad,
                vault: None,
            });
            let mut world = World { sandbox, endpoint: String::new() };
            world.sandbox.vouch_for("shop.example");
            let answer = world.done("/sandbox/endpoints", r#"{"url":"https://shop.example"}"#);
            world.endpoint = answer["endpoint"]["id"].as_str().expect("an id").to_owned();
            world
        }

        fn call(&mut self, path: &str, body: &str) -> Progress {
            let request = Request {
                method: "POST",
                path,
                query: None,
                authorization: None,
                content_type: Some(b"application/json"),
                idempotency_key: None,
                base: "http://localhost",
                body: body.as_bytes(),
            };
            self.sandbox.call(self.sandbox.now(), &request)
        }

        #[track_caller]
        fn done(&mut self, path: &str, body: &str) -> serde_json::Value {
            let answer = answer_of(self.call(path, body));
            assert_eq!(answer.0, 200, "{}", answer.1);
            answer.1
        }

        fn send(&mut self) {
            self.done(&format!("/sandbox/endpoints/{}/test", self.endpoint), "{}");
        }

        #[track_caller]
        fn waits(&mut self, path: &str, body: &str) -> Journey {
            waiting(self.call(path, body))
        }

        /// What the host holds lands with this status.
        fn land(&mut self, status: u16) -> usize {
            let now = self.sandbox.now();
            let all = self.sandbox.take_outgoing();
            for dispatch in &all {
                self.sandbox.on_landing(now, dispatch.ticket, Outcome::Answered(status).into());
            }
            all.len()
        }

        fn go_on(&mut self, journey: Journey) -> Progress {
            self.sandbox.go_on(self.sandbox.now(), journey)
        }

        #[track_caller]
        fn check_now(&self, since: Span) {
            assert_eq!(self.sandbox.now(), START.plus(since));
        }
    }

    #[track_caller]
    fn waiting(progress: Progress) -> Journey {
        match progress {
            Progress::Waiting(journey) => journey,
            Progress::Done(response) => panic!("it does not wait: {response:?}"),
        }
    }

    #[track_caller]
    fn answer_of(progress: Progress) -> (u16, serde_json::Value) {
        match progress {
            Progress::Done(response) => {
                (response.status, serde_json::from_slice(&response.body).expect("JSON"))
            }
            Progress::Waiting(journey) => panic!("it waits: {journey:?}"),
        }
    }

    #[test]
    fn time_stands_wherever_something_is_abroad() {
        let mut world = World::new();
        world.send();
        let mut journey = world.waits("/sandbox/advance", r#"{"by":"10m"}"#);
        for (since, attempts) in [(Span::mins(0), 1), (Span::mins(1), 1), (Span::mins(6), 1)] {
            world.check_now(since);
            journey = waiting(world.go_on(journey));
            world.check_now(since);
            assert_eq!(world.land(500), attempts);
            if since < Span::mins(6) {
                journey = waiting(world.go_on(journey));
            }
        }
        let (status, answer) = answer_of(world.go_on(journey));
        world.check_now(Span::mins(10));
        assert_eq!((status, answer["happened"].as_array().map(Vec::len)), (200, Some(3)));
    }

    #[test]
    fn a_call_that_ends_early_ends_with_the_first_thing_that_happens() {
        let mut world = World::new();
        world.send();
        let early = r#"{"by":"1h","stop_early":true}"#;
        for since in [Span::mins(0), Span::mins(1), Span::mins(6)] {
            let journey = world.waits("/sandbox/advance", early);
            world.land(500);
            let (_, answer) = answer_of(world.go_on(journey));
            assert_eq!(answer["happened"].as_array().map(Vec::len), Some(1), "{answer}");
            world.check_now(since);
            // Whoever asks again at the same moment is told of nothing twice.
            let more = if since == Span::mins(0) { "55s" } else { "4m" };
            let answer = world.done("/sandbox/advance", &format!(r#"{{"by":"{more}","stop_early":true}}"#));
            assert_eq!(answer["happened"].as_array().map(Vec::len), Some(0), "{answer}");
        }
    }

    #[test]
    fn what_others_send_meanwhile_does_not_hold_a_call_up_for_ever() {
        let mut world = World::new();
        world.send();
        let journey = world.waits("/sandbox/advance", r#"{"by":"10s"}"#);
        let first = world.sandbox.take_outgoing();
        world.send();
        let now = world.sandbox.now();
        world.sandbox.on_landing(now, first[0].ticket, Outcome::Answered(200).into());
        assert_eq!(world.sandbox.abroad(), 1);
        assert_eq!(answer_of(world.go_on(journey)).0, 200);
        world.check_now(Span::secs(10));
    }

    #[test]
    fn a_call_that_waits_ends_when_another_world_begins() {
        let mut world = World::new();
        world.send();
        let journey = world.waits("/sandbox/advance", r#"{"by":"10s"}"#);
        world.done("/sandbox/world", "{}");
        assert_eq!(answer_of(world.go_on(journey)).0, 409);
        world.check_now(Span::secs(0));
        assert_eq!(world.land(200), 0, "the old world's post is forgotten");
    }

    #[test]
    fn a_restart_loses_what_is_abroad_and_posts_it_again() {
        let mut world = World::new();
        world.send();
        let journey = world.waits("/sandbox/advance", r#"{"by":"10s"}"#);
        let lost = world.sandbox.take_outgoing();
        world.done("/sandbox/restart", "{}");
        let now = world.sandbox.now();
        world.sandbox.on_landing(now, lost[0].ticket, Outcome::Answered(200).into());
        assert_eq!(world.sandbox.abroad(), 1, "the first landing is of no use any more");
        // The call waited for what was abroad when it stopped; the second post left after that.
        assert_eq!(answer_of(world.go_on(journey)).0, 200);
        assert_eq!(world.land(200), 1);
    }

    #[test]
    fn whoever_cannot_wait_arrives_at_once() {
        let mut world = World::new();
        world.send();
        let request = Request {
            method: "POST",
            path: "/sandbox/advance",
            query: None,
            authorization: None,
            content_type: Some(b"application/json"),
            idempotency_key: None,
            base: "http://localhost",
            body: br#"{"by":"10s"}"#,
        };
        assert_eq!(world.sandbox.respond(START, &request).status, 200);
        world.check_now(Span::secs(10));
        assert_eq!(world.sandbox.abroad(), 1);
    }
}
