//! Calls that move the clock, and stop wherever something is under way outside of the simulated network.
//!
//! "Advancing returns when everything due has happened" (contract 11): a post that left during the call has
//! ended before time goes on, so that its retries fall where they belong. Waits for nothing itself: the host
//! waits, without the world's lock, and other calls are answered meanwhile.

use reference_core::{error::ApiError, time::Timestamp};
use reference_wire::Response;

use super::{Within, arrived, has_happened};
use crate::sandbox::{AttemptId, Sandbox, step::Slice};

/// The progress of a call.
#[derive(Debug)]
pub enum Progress {
    /// It is over.
    Done(Response),
    /// It goes on by [`Sandbox::go_on`]: once an outside attempt has ended, or when others were served.
    Waiting(PendingAdvance),
}

/// The time to which a call moves the clock.
#[derive(Clone, Copy, Debug)]
pub(in crate::sandbox) struct AdvanceTarget {
    /// At most.
    pub(in crate::sandbox) until: Timestamp,
    /// `true` if it ends as soon as an event happened.
    pub(in crate::sandbox) stop_early: bool,
    /// The number of the world event after which its answer begins, if not with what the call itself causes.
    pub(in crate::sandbox) after: Option<u64>,
}

/// A call that is moving the clock.
#[derive(Debug)]
pub struct PendingAdvance {
    pub(in crate::sandbox) target: AdvanceTarget,
    /// The number of events before it began.
    pub(in crate::sandbox) before: u64,
    /// The account whose events it reports, if not all.
    pub(in crate::sandbox) within: Option<Within>,
    /// The world that it began in.
    pub(in crate::sandbox) era: u64,
    /// Everything under way up to this one ends before time goes on. What leaves later because of other calls
    /// is not waited for, or a busy world would never arrive.
    pub(in crate::sandbox) last_awaited: Option<AttemptId>,
}

impl PendingAdvance {
    pub(in crate::sandbox) fn new(
        sandbox: &Sandbox,
        target: AdvanceTarget,
        before: u64,
        within: Option<Within>,
    ) -> PendingAdvance {
        let before = target.after.unwrap_or(before);
        PendingAdvance { target, before, within, era: sandbox.era, last_awaited: None }
    }

    /// Returns `true` if it waits for an outside attempt to end. Otherwise it only let other requests in and may
    /// continue.
    pub fn awaits_attempt(&self) -> bool {
        self.last_awaited.is_some()
    }
}

impl Sandbox {
    /// Goes on with a call after an outside attempt has ended.
    pub fn go_on(&mut self, now: Timestamp, pending: PendingAdvance) -> Progress {
        self.advance_to(now);
        if pending.era != self.era {
            let gone = ApiError::conflict("Another world began while the clock of this one was moving.");
            return Progress::Done(Response::refusal(&gone));
        }
        self.travel(pending)
    }

    /// As far as it goes without leaving anything behind that is under way.
    pub(in crate::sandbox) fn travel(&mut self, mut pending: PendingAdvance) -> Progress {
        let mut slice = self.slice();
        loop {
            // What is due at this moment leaves first, or nobody would wait for the rest of it.
            if pending.last_awaited.is_none() && self.world.is_behind {
                if slice.is_over() {
                    return Progress::Waiting(pending);
                }
                self.step(self.now(), &mut slice);
                continue;
            }
            let last = pending.last_awaited.unwrap_or(AttemptId(self.world.external.count));
            if self.world.external.open.range(..=last).next().is_some() {
                pending.last_awaited = Some(last);
                return Progress::Waiting(pending);
            }
            pending.last_awaited = None;
            if slice.is_over() {
                return Progress::Waiting(pending);
            }
            if self.is_over(&pending) || !self.step(pending.target.until, &mut slice) {
                return Progress::Done(arrived(self, pending.before, pending.within));
            }
        }
    }

    /// Arrives without waiting.
    pub(in crate::sandbox) fn hurry(&mut self, pending: PendingAdvance) -> Response {
        let mut whole = Slice::whole();
        while !self.is_over(&pending) && self.step(pending.target.until, &mut whole) {}
        arrived(self, pending.before, pending.within)
    }

    /// Returns `true` if a call that ends early has seen the event that it waits for.
    fn is_over(&self, pending: &PendingAdvance) -> bool {
        pending.target.stop_early && has_happened(self, pending.before, pending.within)
    }

    fn step(&mut self, until: Timestamp, slice: &mut Slice) -> bool {
        self.world.step(until, &mut self.observers, slice)
    }
}

#[cfg(test)]
mod tests {
    use reference_core::{
        dialect::Dialect,
        outbox::{AttemptReport, AttemptResult, HttpTrace},
        rng::Seed,
        time::Span,
    };
    use reference_wire::Request;

    use super::*;
    use crate::sandbox::{Reach, Setup};

    const START: Timestamp = Timestamp(1_789_898_741_000_000);

    /// A world that posts over the network, with one endpoint there.
    struct OutsideWorld {
        sandbox: Sandbox,
        endpoint: String,
    }

    impl OutsideWorld {
        fn new() -> OutsideWorld {
            let sandbox = Sandbox::new(&Setup {
                seed: Seed(1),
                start: START,
                public_url: "http://localhost".to_owned(),
                rate_limit: None,
                dialect: Dialect::default(),
                journal: true,
                reach: Reach::Network,
                wallet_cache: None,
                key_tag: String::new(),
            });
            let mut world = OutsideWorld { sandbox, endpoint: String::new() };
            world.sandbox.vouch_for("shop.example");
            let answer = world.done("/sandbox/endpoints", r#"{"url":"https://shop.example"}"#);
            world.endpoint = answer["endpoint"]["id"].as_str().expect("an id").to_owned();
            world
        }

        fn call(&mut self, path: &str, body: &str) -> Progress {
            let request = Request::json("http://localhost", "POST", path, body);
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
        fn waits(&mut self, path: &str, body: &str) -> PendingAdvance {
            waiting(self.call(path, body))
        }

        /// Ends every attempt that the host holds with this status.
        fn end_attempts(&mut self, status: u16) -> usize {
            let now = self.sandbox.now();
            let all = self.sandbox.take_outgoing();
            for attempt in &all {
                self.sandbox.on_attempt_result(now, attempt.id, AttemptResult::Answered(status).into());
            }
            all.len()
        }

        fn go_on(&mut self, pending: PendingAdvance) -> Progress {
            self.sandbox.go_on(self.sandbox.now(), pending)
        }

        #[track_caller]
        fn check_now(&self, since: Span) {
            assert_eq!(self.sandbox.now(), START.plus(since));
        }
    }

    #[track_caller]
    fn waiting(progress: Progress) -> PendingAdvance {
        match progress {
            Progress::Waiting(pending) => pending,
            Progress::Done(response) => panic!("it does not wait: {response:?}"),
        }
    }

    #[track_caller]
    fn answer_of(progress: Progress) -> (u16, serde_json::Value) {
        match progress {
            Progress::Done(response) => {
                (response.status, serde_json::from_slice(&response.body).expect("JSON"))
            }
            Progress::Waiting(pending) => panic!("it waits: {pending:?}"),
        }
    }

    #[test]
    fn time_stands_wherever_an_attempt_is_in_flight() {
        let mut world = OutsideWorld::new();
        world.send();
        let mut pending = world.waits("/sandbox/advance", r#"{"by":"10m"}"#);
        for (since, attempts) in [(Span::mins(0), 1), (Span::mins(1), 1), (Span::mins(6), 1)] {
            world.check_now(since);
            pending = waiting(world.go_on(pending));
            assert!(pending.awaits_attempt());
            world.check_now(since);
            assert_eq!(world.end_attempts(500), attempts);
            if since < Span::mins(6) {
                pending = waiting(world.go_on(pending));
            }
        }
        let (status, answer) = answer_of(world.go_on(pending));
        world.check_now(Span::mins(10));
        assert_eq!((status, answer["happened"].as_array().map(Vec::len)), (200, Some(3)));
    }

    #[test]
    fn what_a_receiver_said_is_held() {
        let held = |said: &str| {
            let mut world = OutsideWorld::new();
            world.send();
            let now = world.sandbox.now();
            let id = world.sandbox.take_outgoing()[0].id;
            let trace = HttpTrace { response_body: said.to_owned(), ..HttpTrace::default() };
            let report =
                AttemptReport { trace: Some(Box::new(trace)), ..AttemptResult::Answered(200).into() };
            world.sandbox.on_attempt_result(now, id, report);
            world.sandbox.held_bytes()
        };
        assert_eq!(held("thank you") - held(""), 9);
    }

    #[test]
    fn a_call_that_ends_early_ends_with_the_first_thing_that_happens() {
        let mut world = OutsideWorld::new();
        world.send();
        let early = r#"{"by":"1h","stop_early":true}"#;
        for since in [Span::mins(0), Span::mins(1), Span::mins(6)] {
            let pending = world.waits("/sandbox/advance", early);
            world.end_attempts(500);
            let (_, answer) = answer_of(world.go_on(pending));
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
        let mut world = OutsideWorld::new();
        world.send();
        let pending = world.waits("/sandbox/advance", r#"{"by":"10s"}"#);
        let first = world.sandbox.take_outgoing();
        world.send();
        let now = world.sandbox.now();
        world.sandbox.on_attempt_result(now, first[0].id, AttemptResult::Answered(200).into());
        assert_eq!(world.sandbox.world.external.open.len(), 1);
        assert_eq!(answer_of(world.go_on(pending)).0, 200);
        world.check_now(Span::secs(10));
    }

    #[test]
    fn a_call_that_waits_ends_when_another_world_begins() {
        let mut world = OutsideWorld::new();
        world.send();
        let pending = world.waits("/sandbox/advance", r#"{"by":"10s"}"#);
        world.done("/sandbox/world", "{}");
        assert_eq!(answer_of(world.go_on(pending)).0, 409);
        world.check_now(Span::secs(0));
        assert_eq!(world.end_attempts(200), 0, "the old world's post is forgotten");
    }

    #[test]
    fn a_world_that_takes_the_place_of_another_knows_what_that_one_began() {
        let mut before = OutsideWorld::new();
        before.send();
        let pending = before.waits("/sandbox/advance", r#"{"by":"10s"}"#);
        let first = before.sandbox.take_outgoing()[0].id;
        let mut after = OutsideWorld::new();
        after.sandbox.succeed(before.sandbox.lineage());
        assert_eq!(answer_of(after.go_on(pending)).0, 409);
        after.send();
        assert_ne!(after.sandbox.take_outgoing()[0].id, first);
        after.send();
        after.sandbox.forget_outgoing();
        assert!(after.sandbox.take_outgoing().is_empty());
        assert_eq!(after.sandbox.open_attempts().count(), 2, "only nobody makes it");
        assert_eq!(after.sandbox.lineage(), (1, 3));
    }

    #[test]
    fn a_restart_loses_what_is_in_flight_and_posts_it_again() {
        let mut world = OutsideWorld::new();
        world.send();
        let pending = world.waits("/sandbox/advance", r#"{"by":"10s"}"#);
        let lost = world.sandbox.take_outgoing();
        world.done("/sandbox/restart", "{}");
        let now = world.sandbox.now();
        world.sandbox.on_attempt_result(now, lost[0].id, AttemptResult::Answered(200).into());
        assert_eq!(world.sandbox.world.external.open.len(), 1, "the first report is of no use any more");
        // The call waited for what was in flight when it stopped; the second post left after that.
        assert_eq!(answer_of(world.go_on(pending)).0, 200);
        assert_eq!(world.end_attempts(200), 1);
    }

    #[test]
    fn whoever_cannot_wait_arrives_at_once() {
        let mut world = OutsideWorld::new();
        world.send();
        let request = Request::json("http://localhost", "POST", "/sandbox/advance", r#"{"by":"10s"}"#);
        assert_eq!(world.sandbox.respond(START, &request).status, 200);
        world.check_now(Span::secs(10));
        assert_eq!(world.sandbox.world.external.open.len(), 1);
    }
}
