//! Calls that move the clock. They pause whenever an attempt outside of the simulated network is in flight,
//! and when the work budget of a call is used up.
//!
//! A call responds when everything due up to its target has happened. An attempt sent during the call must
//! end before the clock continues, so that its retries get the correct times. The functions do not block: the
//! host waits without holding the world's lock, and serves other calls meanwhile.

use reference_core::{error::ApiError, time::Timestamp};
use reference_wire::Response;

use super::{Within, advance_response, has_events_after};
use crate::sandbox::{AttemptId, Sandbox, step::WorkBudget};

/// The progress of a call.
#[derive(Debug)]
pub enum Progress {
    /// The call is complete.
    Done(Response),
    /// The call continues by [`Sandbox::continue_call`]: after an outside attempt has ended, or after other calls were served.
    Waiting(PendingAdvance),
}

/// The time to which a call moves the clock, and when it stops early.
#[derive(Clone, Copy, Debug)]
pub(in crate::sandbox) struct AdvanceTarget {
    /// The latest time.
    pub(in crate::sandbox) until: Timestamp,
    /// `true` to stop at the first event.
    pub(in crate::sandbox) stop_early: bool,
    /// The number of the world event after which the response starts; `None` for the events that the call causes.
    pub(in crate::sandbox) after: Option<u64>,
}

/// A paused call that moves the clock.
#[derive(Debug)]
pub struct PendingAdvance {
    pub(in crate::sandbox) target: AdvanceTarget,
    /// The number of the world event after which the response starts.
    pub(in crate::sandbox) after_event: u64,
    /// The book whose events are reported; `None` for all books.
    pub(in crate::sandbox) within: Option<Within>,
    /// The number of worlds before the one in which the call started.
    pub(in crate::sandbox) era: u64,
    /// The last attempt that must end before the clock continues. Attempts that other calls start later are not
    /// awaited, or the call might never end in a busy world.
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
        PendingAdvance { target, after_event: before, within, era: sandbox.era, last_awaited: None }
    }

    /// Returns `true` if the call waits for an outside attempt to end. Otherwise it paused for other requests and may
    /// continue immediately.
    pub fn awaits_attempt(&self) -> bool {
        self.last_awaited.is_some()
    }
}

impl Sandbox {
    /// Continues a call, after an outside attempt has ended or other requests were served.
    pub fn continue_call(&mut self, now: Timestamp, pending: PendingAdvance) -> Progress {
        self.advance_to(now);
        if pending.era != self.era {
            let replaced = ApiError::conflict("The world was replaced while this call moved its clock.");
            return Progress::Done(Response::refusal(&replaced));
        }
        self.run_until_blocked(pending)
    }

    /// Moves the clock towards the target, until it would pass an attempt in flight or the work budget is used up.
    pub(in crate::sandbox) fn run_until_blocked(&mut self, mut pending: PendingAdvance) -> Progress {
        let mut budget = self.budget();
        loop {
            // Attempts that are due now must be sent first, so that the call waits for them.
            if pending.last_awaited.is_none() && self.world.is_behind {
                if budget.is_used_up() {
                    return Progress::Waiting(pending);
                }
                self.step(self.now(), &mut budget);
                continue;
            }
            let last = pending.last_awaited.unwrap_or(AttemptId(self.world.external.count));
            if self.world.external.open.range(..=last).next().is_some() {
                pending.last_awaited = Some(last);
                return Progress::Waiting(pending);
            }
            pending.last_awaited = None;
            if budget.is_used_up() {
                return Progress::Waiting(pending);
            }
            if self.must_stop_early(&pending) || !self.step(pending.target.until, &mut budget) {
                return Progress::Done(advance_response(self, pending.after_event, pending.within));
            }
        }
    }

    /// Moves the clock to the target without waiting for attempts.
    pub(in crate::sandbox) fn run_to_end(&mut self, pending: PendingAdvance) -> Response {
        let mut unlimited = WorkBudget::unlimited();
        while !self.must_stop_early(&pending) && self.step(pending.target.until, &mut unlimited) {}
        advance_response(self, pending.after_event, pending.within)
    }

    /// Returns `true` if a call that stops early has an event to report.
    fn must_stop_early(&self, pending: &PendingAdvance) -> bool {
        pending.target.stop_early && has_events_after(self, pending.after_event, pending.within)
    }

    /// Performs everything due at the next due time up to `until`, or moves the clock there. Returns `true`
    /// if something was due.
    fn step(&mut self, until: Timestamp, budget: &mut WorkBudget) -> bool {
        self.world.step(until, &mut self.observers, budget)
    }
}

#[cfg(test)]
mod tests {
    use reference_core::{
        outbox::{AttemptReport, AttemptResult, HttpTrace},
        rng::Seed,
        time::Span,
    };
    use reference_wire::Request;

    use super::*;
    use crate::sandbox::{Reach, Setup};

    const START: Timestamp = Timestamp(1_789_898_741_000_000);

    /// A world that delivers over the real network, with one endpoint there.
    struct OutsideWorld {
        sandbox: Sandbox,
        endpoint: String,
    }

    impl OutsideWorld {
        fn new() -> OutsideWorld {
            let sandbox = Sandbox::new(&Setup {
                journal: true,
                reach: Reach::Network,
                ..Setup::new(Seed(1), START, "http://localhost")
            });
            let mut world = OutsideWorld { sandbox, endpoint: String::new() };
            world.sandbox.declare_forwarded("shop.example");
            let response =
                world.call_ok("/sandbox/endpoints", r#"{"mode":"live","url":"https://shop.example"}"#);
            world.endpoint = response["endpoint"]["id"].as_str().expect("an id").to_owned();
            world
        }

        fn call(&mut self, path: &str, body: &str) -> Progress {
            let request = Request::json("http://localhost", "POST", path, body);
            self.sandbox.call(self.sandbox.now(), &request)
        }

        #[track_caller]
        fn call_ok(&mut self, path: &str, body: &str) -> serde_json::Value {
            let (status, body) = response_of(self.call(path, body));
            assert_eq!(status, 200, "{body}");
            body
        }

        /// Sends a test event to the endpoint.
        fn send_test(&mut self) {
            self.call_ok(&format!("/sandbox/endpoints/{}/test", self.endpoint), "{}");
        }

        #[track_caller]
        fn call_pending(&mut self, path: &str, body: &str) -> PendingAdvance {
            expect_pending(self.call(path, body))
        }

        /// Ends every attempt in flight with this status. Returns their number.
        fn end_attempts(&mut self, status: u16) -> usize {
            let now = self.sandbox.now();
            let attempts = self.sandbox.take_outgoing();
            for attempt in &attempts {
                self.sandbox.on_attempt_result(now, attempt.id, AttemptResult::Response(status).into());
            }
            attempts.len()
        }

        fn continue_call(&mut self, pending: PendingAdvance) -> Progress {
            self.sandbox.continue_call(self.sandbox.now(), pending)
        }

        #[track_caller]
        fn check_now(&self, since_start: Span) {
            assert_eq!(self.sandbox.now(), START.plus(since_start));
        }
    }

    #[track_caller]
    fn expect_pending(progress: Progress) -> PendingAdvance {
        match progress {
            Progress::Waiting(pending) => pending,
            Progress::Done(response) => panic!("the call is not pending: {response:?}"),
        }
    }

    #[track_caller]
    fn response_of(progress: Progress) -> (u16, serde_json::Value) {
        match progress {
            Progress::Done(response) => {
                (response.status, serde_json::from_slice(&response.body).expect("JSON"))
            }
            Progress::Waiting(pending) => panic!("the call is pending: {pending:?}"),
        }
    }

    #[test]
    fn the_clock_stops_while_an_attempt_is_in_flight() {
        let mut world = OutsideWorld::new();
        world.send_test();
        let mut pending = world.call_pending("/sandbox/advance", r#"{"by":"10m"}"#);
        for (since, attempts) in [(Span::mins(0), 1), (Span::mins(1), 1), (Span::mins(6), 1)] {
            world.check_now(since);
            pending = expect_pending(world.continue_call(pending));
            assert!(pending.awaits_attempt());
            world.check_now(since);
            assert_eq!(world.end_attempts(500), attempts);
            if since < Span::mins(6) {
                pending = expect_pending(world.continue_call(pending));
            }
        }
        let (status, body) = response_of(world.continue_call(pending));
        world.check_now(Span::mins(10));
        assert_eq!((status, body["happened"].as_array().map(Vec::len)), (200, Some(3)));
    }

    #[test]
    fn a_receiver_response_counts_as_memory() {
        let bytes_with = |body: &str| {
            let mut world = OutsideWorld::new();
            world.send_test();
            let now = world.sandbox.now();
            let id = world.sandbox.take_outgoing()[0].id;
            let trace = HttpTrace { response_body: body.to_owned(), ..HttpTrace::default() };
            let report =
                AttemptReport { trace: Some(Box::new(trace)), ..AttemptResult::Response(200).into() };
            world.sandbox.on_attempt_result(now, id, report);
            world.sandbox.estimated_bytes()
        };
        assert_eq!(bytes_with("thank you") - bytes_with(""), 9);
    }

    #[test]
    fn a_call_that_stops_early_ends_with_the_first_event() {
        let mut world = OutsideWorld::new();
        world.send_test();
        let early = r#"{"by":"1h","stop_early":true}"#;
        for since in [Span::mins(0), Span::mins(1), Span::mins(6)] {
            let pending = world.call_pending("/sandbox/advance", early);
            world.end_attempts(500);
            let (_, body) = response_of(world.continue_call(pending));
            assert_eq!(body["happened"].as_array().map(Vec::len), Some(1), "{body}");
            world.check_now(since);
            // A second call does not report the event again, and ends before the next retry (after 1, then 5 minutes).
            let by = if since == Span::mins(0) { "55s" } else { "4m" };
            let body = world.call_ok("/sandbox/advance", &format!(r#"{{"by":"{by}","stop_early":true}}"#));
            assert_eq!(body["happened"].as_array().map(Vec::len), Some(0), "{body}");
        }
    }

    #[test]
    fn attempts_of_other_calls_do_not_delay_a_call_forever() {
        let mut world = OutsideWorld::new();
        world.send_test();
        let pending = world.call_pending("/sandbox/advance", r#"{"by":"10s"}"#);
        let first = world.sandbox.take_outgoing();
        world.send_test();
        let now = world.sandbox.now();
        world.sandbox.on_attempt_result(now, first[0].id, AttemptResult::Response(200).into());
        assert_eq!(world.sandbox.world.external.open.len(), 1);
        assert_eq!(response_of(world.continue_call(pending)).0, 200);
        world.check_now(Span::secs(10));
    }

    #[test]
    fn a_waiting_call_is_refused_after_the_world_was_replaced() {
        let mut world = OutsideWorld::new();
        world.send_test();
        let pending = world.call_pending("/sandbox/advance", r#"{"by":"10s"}"#);
        world.call_ok("/sandbox/world", "{}");
        assert_eq!(response_of(world.continue_call(pending)).0, 409);
        world.check_now(Span::secs(0));
        assert_eq!(world.end_attempts(200), 0, "the old world's attempt is discarded");
    }

    #[test]
    fn a_replacing_world_refuses_calls_and_results_of_the_old_one() {
        let mut before = OutsideWorld::new();
        before.send_test();
        let pending = before.call_pending("/sandbox/advance", r#"{"by":"10s"}"#);
        let first = before.sandbox.take_outgoing()[0].id;
        let mut after = OutsideWorld::new();
        after.sandbox.continue_lineage(before.sandbox.lineage());
        assert_eq!(response_of(after.continue_call(pending)).0, 409);
        after.send_test();
        assert_ne!(after.sandbox.take_outgoing()[0].id, first);
        after.send_test();
        after.sandbox.discard_outgoing();
        assert!(after.sandbox.take_outgoing().is_empty());
        assert_eq!(after.sandbox.open_attempts().count(), 2, "no attempt is made");
        assert_eq!(after.sandbox.lineage(), (1, 3));
    }

    #[test]
    fn a_restart_repeats_attempts_in_flight() {
        let mut world = OutsideWorld::new();
        world.send_test();
        let pending = world.call_pending("/sandbox/advance", r#"{"by":"10s"}"#);
        let lost = world.sandbox.take_outgoing();
        world.call_ok("/sandbox/restart", "{}");
        let now = world.sandbox.now();
        world.sandbox.on_attempt_result(now, lost[0].id, AttemptResult::Response(200).into());
        assert_eq!(world.sandbox.world.external.open.len(), 1, "a result from before the restart is ignored");
        // The call waited for the attempt that was in flight at the restart; the second one was sent after that.
        assert_eq!(response_of(world.continue_call(pending)).0, 200);
        assert_eq!(world.end_attempts(200), 1);
    }

    #[test]
    fn a_call_that_cannot_wait_completes_immediately() {
        let mut world = OutsideWorld::new();
        world.send_test();
        let request = Request::json("http://localhost", "POST", "/sandbox/advance", r#"{"by":"10s"}"#);
        assert_eq!(world.sandbox.respond(START, &request).status, 200);
        world.check_now(Span::secs(10));
        assert_eq!(world.sandbox.world.external.open.len(), 1);
    }
}
