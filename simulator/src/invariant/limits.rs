//! The rate limit of each API key, checked on all recorded requests.

use std::collections::{BTreeMap, VecDeque};

use reference_core::time::{Span, Timestamp};

use super::{Findings, Invariant};
use crate::record::{Entry, Observation, Record, RecordedCall};

/// The number of requests that a key may send in a minute.
pub(super) const PER_MINUTE: usize = 120;
const MINUTE: Span = Span::secs(60);

/// The accepted requests of the last minute, by key.
#[derive(Debug, Default)]
pub(super) struct LimitWindows {
    windows: BTreeMap<String, VecDeque<Timestamp>>,
}

impl LimitWindows {
    /// Forgets all requests, as a restarted service does.
    pub(super) fn restart(&mut self) {
        self.windows.clear();
    }

    /// Counts a request with a valid key and returns `None` if it is within the limit. Otherwise returns the
    /// seconds until a request is accepted.
    pub(super) fn admit(&mut self, at: Timestamp, call: &RecordedCall) -> Option<u64> {
        let window = self.windows.entry(call.key().to_owned()).or_default();
        while window.front().is_some_and(|first| at.since(*first) >= MINUTE) {
            window.pop_front();
        }
        if let Some(first) = window.front().filter(|_| window.len() >= PER_MINUTE) {
            return Some(first.plus(MINUTE).since(at).secs_rounded_up().max(1));
        }
        window.push_back(at);
        None
    }

    /// Returns the number of further requests that the key of a request may send now.
    pub(super) fn remaining_requests(&self, call: &RecordedCall) -> usize {
        let window = self.windows.get(call.key());
        PER_MINUTE - window.map_or(0, VecDeque::len)
    }
}

/// Checks invariant 15: the 121st request in a minute is refused, no other is, and `Retry-After` is exact to the
/// second.
pub fn judge_limits(record: &Record) -> Findings {
    let mut findings = Findings::default();
    let mut windows = LimitWindows::default();
    for Entry { at, observation } in &record.entries {
        let call = match observation {
            Observation::Restart => {
                windows.restart();
                continue;
            }
            Observation::Call(call) => call,
            _ => continue,
        };
        if call.bearer.is_none() || !call.is_api() || call.status == 401 {
            continue;
        }
        let about = format!("{} {} at {at}", call.method, call.path);
        match windows.admit(*at, call) {
            Some(retry_after) => {
                findings.check(Invariant::Limit, Some(*at), || {
                    let shape = "a request beyond the limit is accepted";
                    (call.status != 429).then(|| (shape.to_owned(), about.clone()))
                });
                findings.check(Invariant::Limit, Some(*at), || {
                    (call.status == 429 && call.retry_after() != Some(retry_after)).then(|| {
                        let details =
                            format!("{about}: expected {retry_after}, got {:?}", call.retry_after());
                        ("Retry-After is not the time until a request is accepted".to_owned(), details)
                    })
                });
            }
            // E-mails have a separate limit.
            None => findings.check(Invariant::Limit, Some(*at), || {
                let sends_mail = call.path.ends_with("/send") || call.path == "/v1/invoices";
                let shape = "a request within the limit is refused";
                (call.status == 429 && !sends_mail).then(|| (shape.to_owned(), about))
            }),
        }
    }
    findings
}
