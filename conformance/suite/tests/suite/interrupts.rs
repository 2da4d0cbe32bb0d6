//! An interrupted run judges the responses so far, and reports no violation for missing requests.

use ::mutants::fake::book::Book;
use ::mutants::fake::{FakeServer, Limiter, block_on, http_server, ids_with_verdicts, plan, run};
use conformance::{Interrupt, Ledger, Outcome, Progress, Purpose, Verdict, check as check_plan, judge};
use tokio::sync::watch::Sender;

/// Returns correct servers with different limiters, or without records, so that the runs send different requests.
fn servers() -> [FakeServer; 4] {
    [
        FakeServer::default(),
        FakeServer { limiter: Limiter::AlignedWindow, ..FakeServer::default() },
        FakeServer { limiter: Limiter::Bucket, ..FakeServer::default() },
        FakeServer { live: Book::empty(), test: Book::empty(), ..FakeServer::default() },
    ]
}

#[test]
fn an_interrupted_run_reports_no_violation_for_missing_requests() {
    for server in servers() {
        let complete = run(server).recording;
        let is_insert =
            |purpose: &Purpose| matches!(purpose, Purpose::DuringInserts { .. } | Purpose::Create);
        // A run that is interrupted during the inserts removes all their exchanges, so no recording ends with a part of
        // them.
        let before_inserts =
            complete.exchanges.iter().take_while(|exchange| !is_insert(&exchange.purpose)).count();
        // Every third length, because each judgement takes time.
        for length in (2..=before_inserts).step_by(3) {
            let mut truncated = complete.clone();
            truncated.exchanges.truncate(length);
            for row in judge(&truncated) {
                let is_violation = matches!(row.verdict, Verdict::Fail(_) | Verdict::Warn(_));
                assert!(!is_violation, "after {length} exchanges: {row:?}");
            }
        }
    }
}

/// Interrupts the run after a number of requests.
struct InterruptAfter {
    requests: u32,
    raise: Sender<bool>,
}

impl Progress for InterruptAfter {
    fn on_request(&mut self, ledger: &Ledger) {
        if ledger.total() >= self.requests {
            let _ = self.raise.send(true);
        }
    }
}

fn interrupted_run(requests: u32) -> Outcome {
    let (interrupt, raise) = Interrupt::new();
    let server = FakeServer::default();
    let mut clock = server.clock.clone();
    block_on(async {
        let mut plan = plan(&http_server::serve(server).await);
        plan.interrupt = interrupt;
        check_plan(plan, &mut clock, &mut InterruptAfter { requests, raise }).await
    })
}

/// Interrupts a run after a number of requests. It must judge at least `judged_min` statements, and find no violation.
#[track_caller]
fn check_interrupted(requests: u32, judged_min: usize) {
    let outcome = interrupted_run(requests);
    let judged = ids_with_verdicts(&outcome, &["pass", "observed"]);
    assert_eq!(outcome.exit_code(), 130);
    assert_eq!(ids_with_verdicts(&outcome, &["fail", "warn"]), Vec::<String>::new());
    assert!(judged.len() >= judged_min, "{} after {requests} requests: {judged:?}", judged.len());
}

#[test]
fn the_responses_before_an_interrupt_are_judged() {
    check_interrupted(1, 1);
    check_interrupted(60, 20);
    check_interrupted(130, 30);
    check_interrupted(160, 50);
    check_interrupted(200, 60);
}
