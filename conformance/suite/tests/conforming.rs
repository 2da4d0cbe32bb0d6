//! Honest services, and the legal choices in which they differ. None may fail anything.

use std::time::Duration;

use conformance::{
    Budget, Caller, Ledger, Mode, Outcome, Part, Plan, Progress, Purpose, RealTime, Recording, Silent,
    check as check_plan, judge, report,
};
use mutants::mini::book::{Book, Manners};
use mutants::mini::{
    Asked, LIVE_KEY, Limiter, Mini, REVOKED_KEY, Reply, RetryAfter, SECOND_KEY, TEST_KEY, block_on, named,
    plan, run, run_with, wire,
};
use serde_json::json;

#[track_caller]
fn check_with(mini: Mini, change: impl FnOnce(&mut Plan), exit: u8) {
    let outcome = run_with(mini, change);
    let report = report::text(&outcome, report::Style::Plain);
    assert_eq!(named(&outcome, &["fail", "warn"]), Vec::<String>::new(), "{report}");
    assert_eq!(outcome.exit_code(), exit, "{report}");
    within_budget(&outcome);
}

#[track_caller]
fn within_budget(outcome: &Outcome) {
    let (spent, allowed) = (&outcome.ledger, &outcome.budget);
    assert!(spent.functional() <= allowed.functional.total + spent.repeats, "{spent:?}");
    assert!(spent.in_bursts <= allowed.burst, "{spent:?}");
    assert!(spent.live <= allowed.functional.live + spent.repeats + 2, "{spent:?}");
    assert!(spent.repeats <= allowed.repeats, "{spent:?}");
}

#[track_caller]
fn check(change: impl FnOnce(&mut Mini)) {
    let mut mini = Mini::default();
    change(&mut mini);
    check_with(mini, |_| {}, 0);
}

#[test]
fn a_conforming_service_passes_everything() {
    check(|_| {});
}

/// Both modes, since a choice is one of the whole service.
fn manners(mini: &mut Mini, choose: impl Fn(&mut Manners)) {
    for book in [&mut mini.live, &mut mini.test, &mut mini.second] {
        choose(&mut book.manners);
    }
}

#[test]
fn a_service_below_a_path_prefix_passes() {
    check(|mini| mini.prefix = "/pay/api");
}

#[test]
fn a_single_event_may_stand_bare() {
    check(|mini| manners(mini, |it| it.bare_event = true));
}

#[test]
fn links_may_be_relative() {
    check(|mini| manners(mini, |it| it.relative_links = true));
    check(|mini| {
        mini.prefix = "/pay";
        manners(mini, |it| it.relative_links = true);
    });
}

#[test]
fn per_page_out_of_range_may_be_clamped() {
    check(|mini| manners(mini, |it| it.clamps = true));
}

#[test]
fn utc_may_be_written_as_an_offset_of_zero() {
    check(|mini| manners(mini, |it| it.utc = "+00:00"));
}

#[test]
fn errors_may_be_problem_details() {
    check(|mini| manners(mini, |it| it.problem_json = true));
    check(|mini| {
        mini.warp(|_, reply| {
            if reply.status == 401 {
                reply.body = json!({ "title": "Unauthorized", "status": 401, "detail": "Who are you?" });
                reply.set("content-type", "application/problem+json");
            }
        });
    });
}

#[test]
fn a_filter_that_names_what_is_not_there_may_be_answered_404() {
    check(|mini| manners(mini, |it| it.foreign_filter_404 = true));
}

#[test]
fn retry_after_may_be_a_date() {
    check(|mini| mini.retry_after = RetryAfter::Date);
}

#[test]
fn retry_after_may_cut_off_the_rest_of_a_second() {
    check(|mini| {
        mini.clock.advance(Duration::from_millis(700));
        mini.warp(|_, reply| {
            let told = reply.headers.iter().find(|(name, _)| name == "retry-after");
            if let Some(seconds) = told.and_then(|(_, value)| value.parse::<u64>().ok()) {
                reply.set("retry-after", &(seconds - 1).to_string());
            }
        });
    });
}

#[test]
fn a_window_may_be_aligned_with_the_minute() {
    check(|mini| mini.limiter = Limiter::AlignedMinute);
    check(|mini| {
        mini.limiter = Limiter::AlignedMinute;
        mini.tick = Duration::from_millis(20);
    });
}

#[test]
fn a_burst_across_the_border_of_a_window_is_repeated() {
    let mini = Mini { limiter: Limiter::AlignedMinute, tick: Duration::from_millis(20), ..Mini::default() };
    mini.clock.advance(Duration::from_secs(59));
    let outcome = run(mini);
    let report = report::text(&outcome, report::Style::Plain);
    assert!(report.contains("aligned window: the 169th request"), "{report}");
    assert_eq!(outcome.exit_code(), 0, "{report}");
}

#[test]
fn a_bucket_may_refill_during_the_burst() {
    check(|mini| {
        mini.limiter = Limiter::Bucket;
        mini.tick = Duration::from_millis(20);
    });
    check(|mini| {
        mini.limiter = Limiter::Bucket;
        mini.tick = Duration::from_millis(100);
    });
}

#[test]
fn a_slow_answer_is_an_answer() {
    check(|mini| mini.tick = Duration::from_millis(200));
}

#[test]
fn a_key_that_somebody_else_used_before_gets_a_second_burst() {
    let mut mini = Mini::default();
    mini.hits.insert(format!("Bearer {TEST_KEY}"), vec![0; 30]);
    let outcome = run(mini);
    let report = report::text(&outcome, report::Style::Plain);
    assert!(report.contains("exact: the 121st request, once the key was idle"), "{report}");
    assert_eq!(outcome.exit_code(), 0, "{report}");
}

#[test]
fn answers_may_carry_more_than_was_asked_for() {
    let mut request = 0;
    check(move |mini| {
        mini.warp(move |_, reply| {
            request += 1;
            reply.set("x-request-id", &format!("r-{request}"));
            reply.set("x-served-by", ["a", "b", "b", "a", "c"][request % 5]);
            reply.set("content-type", "application/json; charset=utf-8");
            if let Some(body) = reply.body.as_object_mut() {
                body.insert("trace".into(), json!(format!("t-{request}")));
            }
        });
    });
}

#[test]
fn remaining_requests_may_be_told_in_headers() {
    let mut left = 10_000;
    check(move |mini| {
        mini.warp(move |_, reply| {
            left -= 1;
            reply.set("x-ratelimit-remaining", &left.to_string());
        });
    });
}

#[test]
fn rows_may_have_more_members() {
    check(|mini| {
        mini.warp(|_, reply| {
            for row in reply.body["data"].as_array_mut().into_iter().flatten() {
                row["object"] = json!("thing");
            }
        });
    });
}

#[test]
fn one_passing_weakness_is_asked_again() {
    for at in [1, 2, 60, 121, 150, 170, 190] {
        let mut request = 0;
        check(move |mini| {
            mini.warp(move |_, reply| {
                request += 1;
                if request == at {
                    *reply = Reply::json(503, json!({ "message": "Come back in a moment." }));
                }
            });
        });
    }
}

#[test]
fn many_legal_choices_together_are_still_legal() {
    check(|mini| {
        mini.prefix = "/x";
        mini.limiter = Limiter::Bucket;
        mini.tick = Duration::from_millis(30);
        mini.retry_after = RetryAfter::Date;
        manners(mini, |it| {
            it.bare_event = true;
            it.relative_links = true;
            it.clamps = true;
            it.utc = "+00:00";
            it.foreign_filter_404 = true;
            it.problem_json = true;
        });
    });
}

#[test]
fn an_empty_account_decides_almost_nothing() {
    for last_page in [0, 1] {
        let mut mini = Mini { live: Book::empty(), test: Book::empty(), ..Mini::default() };
        manners(&mut mini, |it| it.empty_last_page = last_page);
        check_with(mini, |_| {}, 3);
    }
}

#[test]
fn an_empty_account_is_told_what_to_create() {
    let mini = Mini { live: Book::empty(), test: Book::empty(), ..Mini::default() };
    let report = report::text(&run(mini), report::Style::Plain);
    assert!(
        report.contains("remedy    open a charge, an invoice and a payment link in live and in test mode")
    );
    assert!(
        report.contains("remedy    open and cancel a few charges with the test key's account"),
        "{report}"
    );
}

#[test]
fn what_is_created_meanwhile_is_not_held_against_the_service() {
    let mut mini = Mini::default();
    let mut request = 0;
    mini.warp(move |asked, reply| {
        if asked.path == "/v1/events" && asked.mode == Some(Mode::Live) && reply.status == 200 {
            request += 1;
            // The list has grown by one at its head, between two of our requests.
            if request > 4 && !asked.query.contains_key("type") {
                grow(asked, reply);
            }
        }
    });
    let outcome = run(mini);
    let report = report::text(&outcome, report::Style::Plain);
    assert_eq!(named(&outcome, &["fail"]), Vec::<String>::new(), "{report}");
}

/// The page as it would be, had one more event been recorded.
fn grow(asked: &Asked, reply: &mut Reply) {
    let mut book = Book::seeded(1, 9, 3);
    let mut newest = book.events[0].clone();
    newest["id"] = json!("0190a5c4-7f3e-7abf-8def-00000000ffff");
    book.events.insert(0, newest);
    *reply = book.answer(asked, Mode::Live, "");
}

#[test]
fn parts_may_be_declared_to_be_left_out() {
    check_with(
        Mini::default(),
        |plan| {
            plan.revoked_key = None;
            plan.second_key = None;
            plan.without = [Part::Revoked, Part::Second].into();
        },
        0,
    );
}

#[test]
fn a_key_that_is_not_there_leaves_a_gap() {
    check_with(Mini::default(), |plan| plan.revoked_key = None, 3);
    check_with(Mini::default(), |plan| plan.second_key = None, 0);
}

#[test]
fn a_quick_check_is_incomplete_and_says_so() {
    let outcome = run_with(Mini::default(), |plan| plan.quick = true);
    assert_eq!(outcome.exit_code(), 3);
    assert_eq!(outcome.budget.burst, 0);
    within_budget(&outcome);
    assert!(named(&outcome, &["not judged"]).iter().all(|id| id.starts_with("limits.")));
}

#[test]
fn one_statement_alone_can_be_checked() {
    let only = |pattern: &str| {
        let pattern = pattern.to_owned();
        run_with(Mini::default(), move |plan| plan.only = vec![pattern])
    };
    let outcome = only("auth.no_header");
    assert_eq!(outcome.exit_code(), 0);
    assert_eq!(outcome.rows.len(), 1);
    assert_eq!(outcome.ledger.in_bursts, 0, "no burst for a statement that needs none");
    assert_eq!(only("isolation.*").exit_code(), 0);
}

#[test]
fn the_budget_is_stated_before_the_first_byte() {
    struct Told(Vec<String>);
    impl Progress for Told {
        fn budget(&mut self, budget: &Budget) {
            self.0.push(budget.to_string());
        }
        fn asked(&mut self, ledger: &Ledger) {
            self.0.push(format!("{} asked", ledger.total()));
        }
    }
    let mut told = Told(Vec::new());
    let mini = Mini::default();
    let mut clock = mini.clock.clone();
    block_on(async { check_plan(plan(&wire::serve(mini).await), &mut clock, &mut told).await });
    let expected = "at most 73 requests (43 with the live key, 44 with the test key, 15 with neither), \
                    before that bursts of about 140 with the test key (501 at worst), \
                    and 61 s of waiting (272 s at worst)";
    assert_eq!(told.0[..2], [expected, "1 asked"]);
}

#[test]
fn real_time_serves_where_nothing_has_to_wait() {
    let outcome = block_on(async {
        let mut plan = plan(&wire::serve(Mini::default()).await);
        plan.quick = true;
        check_plan(plan, &mut RealTime::start(), &mut Silent).await
    });
    assert_eq!(named(&outcome, &["fail", "warn"]), Vec::<String>::new());
}

#[test]
fn the_live_key_is_never_burst_with() {
    let outcome = run(Mini::default());
    let live = outcome.recording.exchanges.iter().filter(|it| it.caller == Caller::Own(Mode::Live));
    let in_burst = live.filter(|it| matches!(it.purpose, Purpose::Burst(_))).count();
    assert_eq!(in_burst, 1, "one request, to see that the other key is served");
}

#[test]
fn a_recording_holds_no_key_and_can_be_judged_again() {
    let mut mini = Mini::default();
    mini.warp(|asked, reply| {
        // The worst a server can do: show everything it was given.
        let given = asked.authorization.clone().unwrap_or_default();
        reply.set("x-you-sent", &given);
        if reply.status == 401 {
            reply.body = json!({ "message": format!("no such key: {given}") });
        }
    });
    let outcome = run(mini);
    let text = serde_json::to_string(&outcome.recording).unwrap();
    let report = report::text(&outcome, report::Style::Plain) + &report::json(&outcome);
    for key in [LIVE_KEY, TEST_KEY, REVOKED_KEY, SECOND_KEY] {
        let tail = &key["svc_live_".len()..];
        for part in [tail, &tail[..12], &tail[8..]] {
            assert!(!text.contains(part) && !report.contains(part), "a part of a key shows");
        }
    }
    let again: Recording = serde_json::from_str(&text).unwrap();
    let words = |rows: Vec<conformance::Row>| rows.into_iter().map(|row| row.verdict).collect::<Vec<_>>();
    assert_eq!(words(judge(&again)), words(outcome.rows));
}
