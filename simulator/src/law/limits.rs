//! The check of the rate limit, from all recorded requests.

use std::collections::{BTreeMap, VecDeque};

use reference_core::time::{Span, Timestamp};

use super::{Findings, Law};
use crate::record::{Entry, Observation, Record};

const PER_MINUTE: usize = 120;
const MINUTE: Span = Span::secs(60);

/// Checks invariant 15: the 121st request in a minute is refused, no other is, and `Retry-After` is exact to the
/// second.
pub fn judge_limits(record: &Record) -> Findings {
    let mut findings = Findings::default();
    let mut windows: BTreeMap<&str, VecDeque<Timestamp>> = BTreeMap::new();
    for Entry { at, what } in &record.seen {
        let call = match what {
            // A restarted service has no record of earlier requests.
            Observation::Restarted => {
                windows.clear();
                continue;
            }
            Observation::Call(call) => call,
            _ => continue,
        };
        let Some(bearer) =
            call.bearer.as_deref().filter(|_| call.path.starts_with("/v1") && call.status != 401)
        else {
            continue;
        };
        let window = windows.entry(bearer).or_default();
        while window.front().is_some_and(|first| at.since(*first) >= MINUTE) {
            window.pop_front();
        }
        // E-mails have a separate limit.
        let by_mail = call.status == 429 && (call.path.ends_with("/send") || call.path == "/v1/invoices");
        let is_full = window.len() >= PER_MINUTE;
        let refused = call.status == 429 && (is_full || !by_mail);
        findings.check(Law::Limit, Some(*at), || {
            (refused != is_full).then(|| {
                let shape = match refused {
                    true => "a request within the limit is refused",
                    false => "a request beyond the limit is accepted",
                };
                (
                    shape.to_owned(),
                    format!("{} {} at {at}, {} in a minute", call.method, call.path, window.len()),
                )
            })
        });
        if refused {
            let free =
                window.front().map_or(0, |first| first.plus(MINUTE).since(*at).secs_rounded_up().max(1));
            findings.check(Law::Limit, Some(*at), || {
                (is_full && call.retry_after != Some(free)).then(|| {
                    let what = format!("expected {free}, got {:?} at {at}", call.retry_after);
                    ("Retry-After is not the time until a request is accepted".to_owned(), what)
                })
            });
        } else {
            window.push_back(*at);
        }
    }
    findings
}
