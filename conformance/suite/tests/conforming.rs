//! Honest services, and the legal choices in which they differ. None may fail anything.

mod mini;

use std::time::Duration;

use conformance::{Plan, report};
use mini::{Limiter, Mini, RetryAfter, book::Book, named, run, run_with};

#[track_caller]
fn check_with(mini: Mini, change: impl FnOnce(&mut Plan), exit: u8) {
    let outcome = run_with(mini, change);
    let report = report::text(&outcome, report::Style::Plain);
    assert_eq!(named(&outcome, &["fail", "warn"]), Vec::<String>::new(), "{report}");
    assert_eq!(outcome.exit_code(), exit, "{report}");
    assert!(outcome.ledger.functional() <= outcome.budget.functional, "{:?}", outcome.ledger);
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

#[test]
fn a_service_below_a_path_prefix_passes() {
    check(|mini| mini.prefix = "/pay/api");
}
