//! Demo faults, which a user enables to see a failure, its shrinking and its page.
//!
//! Each fault changes the inputs or outputs of the correct service. Only simulated worlds can have one; the
//! server has no option for them.

use reference_core::{
    mode::Mode,
    outbox::AttemptResult,
    sighting::{Depth, Sighting},
    time::Timestamp,
};
use reference_wire::{AttemptRequest, Request, Response};
use serde_json::Value;
use uuid::Uuid;

use crate::tamper::{AttemptFate, Tamper};

/// A named fault.
#[derive(Clone, Copy, Debug)]
pub struct DemoFault {
    /// The name for users.
    pub name: &'static str,
    /// A short description of the fault.
    pub what: &'static str,
    /// Creates the tamper of one world.
    pub make: fn() -> Box<dyn Tamper>,
}

impl DemoFault {
    /// All demo faults.
    pub const ALL: &'static [DemoFault] = &[
        DemoFault {
            name: "vanished-unheard",
            what: "the watchers do not report that a transfer disappeared",
            make: || Box::new(UnreportedDisappearance),
        },
        DemoFault {
            name: "one-confirmation-more",
            what: "the watchers count one confirmation too many",
            make: || Box::new(OneConfirmationMore),
        },
        DemoFault {
            name: "ninth-delivery-lost",
            what: "every ninth delivery is not sent, but counts as delivered",
            make: || Box::<NinthDeliveryLost>::default(),
        },
        DemoFault {
            name: "retry-renamed",
            what: "a retry has a new delivery id",
            make: || Box::new(RetryWithNewId),
        },
        DemoFault {
            name: "two-attempts",
            what: "the second attempt counts as a success, whatever the response",
            make: || Box::new(TwoAttempts),
        },
        DemoFault {
            name: "restart-forgets",
            what: "the first delivery after a restart is lost",
            make: || Box::<RestartForgets>::default(),
        },
        DemoFault {
            name: "page-gap",
            what: "later pages of the events lack their first record",
            make: || Box::new(PageGap),
        },
    ];

    /// Returns the fault with this name.
    ///
    /// ```
    /// use simulator::demo::DemoFault;
    ///
    /// assert!(DemoFault::find("page-gap").is_some_and(|fault| fault.what.contains("pages")));
    /// ```
    pub fn find(name: &str) -> Option<&'static DemoFault> {
        DemoFault::ALL.iter().find(|fault| fault.name == name)
    }
}

struct UnreportedDisappearance;

impl Tamper for UnreportedDisappearance {
    fn on_sightings(&mut self, now: Timestamp, sightings: &mut Vec<Sighting>) -> Timestamp {
        sightings.retain(|sighting| !matches!(sighting.depth, Depth::Absent(_)));
        now
    }
}

struct OneConfirmationMore;

impl Tamper for OneConfirmationMore {
    fn on_sightings(&mut self, now: Timestamp, sightings: &mut Vec<Sighting>) -> Timestamp {
        for sighting in sightings {
            if let Depth::Confirmations(n @ 1..) = &mut sighting.depth {
                *n += 1;
            }
        }
        now
    }
}

#[derive(Default)]
struct NinthDeliveryLost {
    count: u32,
}

impl Tamper for NinthDeliveryLost {
    fn on_attempt(&mut self, _: Timestamp, _: Mode, attempt: &mut AttemptRequest) -> AttemptFate {
        self.count += u32::from(attempt.attempt == 1);
        if attempt.attempt == 1 && self.count.is_multiple_of(9) {
            AttemptFate::Dropped
        } else {
            AttemptFate::Unchanged
        }
    }
}

struct RetryWithNewId;

impl Tamper for RetryWithNewId {
    fn on_attempt(&mut self, _: Timestamp, _: Mode, attempt: &mut AttemptRequest) -> AttemptFate {
        if attempt.attempt > 1 {
            let new_id = Uuid::from_u128(attempt.id.as_u128() ^ 1);
            let body = String::from_utf8(std::mem::take(&mut attempt.body).into()).expect("a body is JSON");
            attempt.body = body.replacen(&attempt.id.to_string(), &new_id.to_string(), 1).into();
            attempt.id = new_id;
        }
        AttemptFate::Unchanged
    }
}

struct TwoAttempts;

impl Tamper for TwoAttempts {
    fn on_attempt_result(&mut self, _: Timestamp, attempt: &AttemptRequest, outcome: &mut AttemptResult) {
        if attempt.attempt > 1 {
            *outcome = AttemptResult::Response(200);
        }
    }
}

#[derive(Default)]
struct RestartForgets {
    /// `true` from a restart until the next delivery, which is lost.
    loses_next: bool,
}

impl Tamper for RestartForgets {
    fn on_attempt(&mut self, _: Timestamp, _: Mode, attempt: &mut AttemptRequest) -> AttemptFate {
        if attempt.attempt == 1 && std::mem::take(&mut self.loses_next) {
            AttemptFate::Dropped
        } else {
            AttemptFate::Unchanged
        }
    }

    fn on_restart(&mut self, _: Timestamp) {
        self.loses_next = true;
    }
}

struct PageGap;

impl Tamper for PageGap {
    fn on_response(&mut self, _: Timestamp, request: &Request<'_>, response: &mut Response) {
        let is_events = request.method == "GET" && request.path == "/v1/events" && response.status == 200;
        let query = request.query.unwrap_or_default();
        let is_later_page = query.split('&').any(|part| part.starts_with("page=") && part != "page=1");
        if is_events && is_later_page {
            let mut page: Value = serde_json::from_slice(&response.body).expect("a list is JSON");
            if let Some(records) = page["data"].as_array_mut().filter(|records| !records.is_empty()) {
                records.remove(0);
            }
            response.body = page.to_string().into_bytes().into();
        }
    }
}
