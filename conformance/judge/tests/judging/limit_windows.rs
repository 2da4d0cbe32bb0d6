//! Chapter "limits": the windows of a limiter, from refusals and the requests served after them.

use std::time::Duration;

use conformance_model::recording::{Burst, Exchange, Purpose, Recording};

use super::limits::set_retry_after;
use super::{TEST, check, check_verdict_text, exchange, recording};

use serde_json::json;

/// Adds requests of the test key, all sent in this second. `delay`: the `Retry-After` if the status is 429.
pub(super) fn push_requests(
    all: &mut Vec<Exchange>,
    second: u64,
    count: usize,
    status: u16,
    delay: &str,
    purpose: &Burst,
) {
    for _ in 0..count {
        let mut request = exchange(TEST, Purpose::Burst(purpose.clone()), "/v1/account", status, &json!({}));
        (request.sent, request.ended) = (Duration::from_secs(second), Duration::from_secs(second));
        if status == 429 {
            set_retry_after(&mut request, delay);
        }
        all.push(request);
    }
}

pub(super) const FIRST_BURST: Burst = Burst::UntilRefused { series: 1 };
const CLOSING: Burst = Burst::UntilRefused { series: Burst::CLOSING };
const AFTER_WAIT: Burst = Burst::RepeatedAfterWait { round: 1 };

pub(super) fn wait_of(seconds: u64) -> Burst {
    Burst::AfterRetryAfter { span: Duration::from_secs(seconds) }
}

/// Returns a burst, a refusal shortly before the end of a window, a new window with the requests of the run, a refusal
/// and another new window. `length`: the length of the second window in seconds.
fn two_windows(length: u64) -> Recording {
    let mut all = Vec::new();
    push_requests(&mut all, 0, 120, 200, "", &FIRST_BURST);
    push_requests(&mut all, 1, 1, 429, "18", &FIRST_BURST);
    push_requests(&mut all, 17, 1, 429, "3", &Burst::DuringWait);
    push_requests(&mut all, 20, 1, 200, "", &wait_of(19));
    push_requests(&mut all, 20, 8, 200, "", &AFTER_WAIT);
    push_requests(&mut all, 21, 111, 200, "", &CLOSING);
    push_requests(&mut all, 22, 1, 429, &(length - 2).to_string(), &CLOSING);
    push_requests(&mut all, 20 + length, 1, 200, "", &wait_of(20));
    push_requests(&mut all, 20 + length, 8, 200, "", &Burst::RepeatedAfterWait { round: 2 });
    recording(all)
}

#[test]
fn windows_that_end_too_soon_are_detected() {
    check(&two_windows(10), "limits.refused", "fail");
    check(&two_windows(45), "limits.refused", "fail");
    check(&two_windows(54), "limits.refused", "fail");
    check(&two_windows(60), "limits.refused", "pass");
    check_verdict_text(&two_windows(45), "limits.refused", "120 requests served");
}

#[test]
fn a_refusal_after_the_wait_needs_120_requests_in_the_minute() {
    let after = |during_wait: usize, after_wait: usize| {
        let mut all = Vec::new();
        push_requests(&mut all, 0, 120, 200, "", &FIRST_BURST);
        push_requests(&mut all, 1, 1, 429, "60", &FIRST_BURST);
        push_requests(&mut all, 40, during_wait, 429, "60", &Burst::DuringWait);
        push_requests(&mut all, 62, 1, 429, "60", &wait_of(60));
        push_requests(&mut all, 123, 1, 200, "", &wait_of(60));
        push_requests(&mut all, 124, after_wait, 200, "", &AFTER_WAIT);
        recording(all)
    };
    // A refusal that restarts the window, and one that counts as a request.
    check(&after(1, 0), "limits.retry_after_held", "fail");
    check(&after(0, 0), "limits.retry_after_held", "fail");
    check(&after(120, 0), "limits.retry_after_held", "pass");
}

/// Returns a burst, a window that ends soon after it, and a later burst whose refusal states this wait.
fn later_refusal(wait: &str) -> Recording {
    let mut all = Vec::new();
    push_requests(&mut all, 0, 120, 200, "", &FIRST_BURST);
    push_requests(&mut all, 1, 1, 429, "9", &FIRST_BURST);
    push_requests(&mut all, 8, 1, 429, "2", &Burst::DuringWait);
    push_requests(&mut all, 10, 1, 200, "", &wait_of(9));
    push_requests(&mut all, 10, 50, 200, "", &AFTER_WAIT);
    push_requests(&mut all, 80, 120, 200, "", &CLOSING);
    push_requests(&mut all, 81, 1, 429, wait, &CLOSING);
    recording(all)
}

#[test]
fn windows_of_a_minute_end_at_the_same_second_or_a_minute_after_their_first_request() {
    for (wait, expected) in [("9", "fail"), ("40", "fail"), ("49", "pass"), ("60", "pass"), ("1", "pass")] {
        check(&later_refusal(wait), "limits.refused", expected);
    }
}
