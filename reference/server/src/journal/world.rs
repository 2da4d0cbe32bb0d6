//! [`JournaledWorld`]: a world that records its calls.
//!
//! A call is recorded after it was made and under the same lock, because its outcome decides whether a record is needed.
//! Unless a scheduled event was due, a read, an advance of the clock and a refused key leave no record. If there is a rate
//! limit, every authentication that counts is recorded, even that of a read.

use std::{net::IpAddr, sync::Arc};

use reference_core::{outbox::AttemptReport, time::Timestamp};
use reference_wire::{Request, Response};
use simulator::{
    api::WorldEvent,
    sandbox::{AdmittedRequest, AttemptId, FirstKeys, OutgoingAttempt, PendingAdvance, Progress, Sandbox},
};

use super::{
    FsyncPolicy, HostCall, Journal, WorldPosition,
    call::{RecordedRequest, TextOrBytes},
    outcome::{BeforeCall, CallResult},
};
use crate::world::{RequestHead, RestoreKind, World};

/// A sandbox and its journal.
pub(crate) struct JournaledWorld {
    sandbox: Sandbox,
    journal: Arc<Journal>,
}

impl JournaledWorld {
    pub(crate) fn new(sandbox: Sandbox, journal: Arc<Journal>) -> JournaledWorld {
        JournaledWorld { sandbox, journal }
    }

    /// Accesses the sandbox without a record.
    #[cfg(test)]
    pub(crate) fn peek<T>(&mut self, access: impl FnOnce(&mut Sandbox) -> T) -> T {
        access(&mut self.sandbox)
    }

    /// Records a call with its outcome since `before`.
    fn record(&self, call: &HostCall<'_>, fsync: FsyncPolicy, before: BeforeCall, result: CallResult<'_>) {
        let outcome = before.outcome(&self.sandbox, result);
        self.journal.record(call, outcome, fsync, WorldPosition::from_sandbox(&self.sandbox));
    }

    fn before_call(&self) -> BeforeCall {
        BeforeCall::from_sandbox(&self.sandbox)
    }

    /// Returns `true` if an event is scheduled for `now` or earlier.
    fn is_due(&self, now: Timestamp) -> bool {
        self.sandbox.next_due().is_some_and(|due| due <= now)
    }

    /// Authenticates a request; records the authentication if it counts against the rate limit or an event was due.
    fn admit_and_record(
        &mut self,
        now: Timestamp,
        authorization: Option<&[u8]>,
        admit: impl FnOnce(&mut Sandbox) -> Result<AdmittedRequest, Response>,
    ) -> Result<AdmittedRequest, Response> {
        let (was_due, before) = (self.is_due(now), self.before_call());
        let admitted = admit(&mut self.sandbox);
        let is_counted =
            self.sandbox.setup().rate_limit.is_some() && !is_refused_key(admitted.as_ref().err());
        if was_due || is_counted {
            let authorization = authorization.map(TextOrBytes::from_slice);
            let call = HostCall::Admit { at: now.0, authorization };
            self.record(&call, FsyncPolicy::Later, before, CallResult::Nothing);
        }
        admitted
    }
}

/// Returns `true` if a request changes nothing but the rate limit count of its key.
fn is_read(request: &Request<'_>) -> bool {
    matches!(request.method, "GET" | "HEAD")
}

/// Returns `true` if the key was refused because it is unknown or above its rate limit. Such requests are not counted.
fn is_refused_key(refusal: Option<&Response>) -> bool {
    refusal.is_some_and(|refusal| matches!(refusal.status, 401 | 429))
}

fn fsync_policy(request: &Request<'_>) -> FsyncPolicy {
    if is_read(request) { FsyncPolicy::Later } else { FsyncPolicy::BeforeResponse }
}

impl World for JournaledWorld {
    fn now(&self) -> Timestamp {
        self.sandbox.now()
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.sandbox.next_due()
    }

    fn advance_to(&mut self, now: Timestamp) {
        let (was_due, before) = (self.is_due(now), self.before_call());
        self.sandbox.advance_to(now);
        if was_due {
            self.record(&HostCall::Advance { at: now.0 }, FsyncPolicy::Later, before, CallResult::Nothing);
        }
    }

    fn sandbox(&self) -> Option<&Sandbox> {
        Some(&self.sandbox)
    }

    fn respond(&mut self, now: Timestamp, request: &Request<'_>) -> Progress {
        let (was_due, before) = (self.is_due(now), self.before_call());
        if request.path.starts_with("/v1") {
            // Authenticated separately, because the status alone does not distinguish a refused key from other refusals.
            let admitted = self.admit_and_record(now, request.authorization, |sandbox| {
                sandbox.admit(now, request.authorization)
            });
            return match admitted {
                Ok(admitted) => self.respond_as(now, &admitted, request),
                Err(refusal) => Progress::Done(refusal),
            };
        }
        let progress = self.sandbox.call(now, request);
        if was_due || !is_read(request) {
            let request_record = RecordedRequest::from_request(request);
            let call = HostCall::Respond { at: now.0, request: request_record };
            self.record(&call, fsync_policy(request), before, (&progress).into());
        }
        progress
    }

    fn admit_head(
        &mut self,
        now: Timestamp,
        head: RequestHead<'_>,
    ) -> Result<Option<AdmittedRequest>, Response> {
        let RequestHead { method, path, authorization } = head;
        self.admit_and_record(now, authorization, |sandbox| {
            sandbox.admit_head(now, method, path, authorization)
        })
        .map(Some)
    }

    fn admit(&mut self, now: Timestamp, authorization: Option<&[u8]>) -> Result<AdmittedRequest, Response> {
        self.admit_and_record(now, authorization, |sandbox| sandbox.admit(now, authorization))
    }

    fn respond_as(&mut self, now: Timestamp, admitted: &AdmittedRequest, request: &Request<'_>) -> Progress {
        let (was_due, before) = (self.is_due(now), self.before_call());
        let progress = self.sandbox.call_as(now, admitted, request);
        if was_due || !is_read(request) {
            let call = HostCall::RespondAs {
                at: now.0,
                admitted: admitted.record(),
                request: RecordedRequest::from_request(request),
            };
            self.record(&call, fsync_policy(request), before, (&progress).into());
        }
        progress
    }

    fn continue_call(&mut self, now: Timestamp, pending: PendingAdvance) -> Progress {
        let (pending_record, before) = (pending.record(), self.before_call());
        let progress = self.sandbox.continue_call(now, pending);
        let call = HostCall::Continue { at: now.0, pending: pending_record };
        self.record(&call, FsyncPolicy::BeforeResponse, before, (&progress).into());
        progress
    }

    fn take_outgoing(&mut self) -> Vec<OutgoingAttempt> {
        self.sandbox.take_outgoing()
    }

    fn on_attempt_result(&mut self, now: Timestamp, id: AttemptId, report: AttemptReport) {
        let before = self.before_call();
        self.sandbox.on_attempt_result(now, id, report.clone());
        let call = HostCall::AttemptEnded { at: now.0, id, report: Box::new(report.into()) };
        self.record(&call, FsyncPolicy::BeforeResponse, before, CallResult::Nothing);
    }

    fn on_name_resolved(&mut self, host: &str, addresses: Vec<IpAddr>) {
        let before = self.before_call();
        self.sandbox.set_resolution(host, addresses.clone());
        let call = HostCall::NameResolved { host: host.into(), addresses };
        self.record(&call, FsyncPolicy::Later, before, CallResult::NothingAtAnyTime);
    }

    fn declare_forwarded(&mut self, host: &str) {
        let before = self.before_call();
        self.sandbox.declare_forwarded(host);
        self.record(
            &HostCall::NameForwarded { host: host.into() },
            FsyncPolicy::Later,
            before,
            CallResult::NothingAtAnyTime,
        );
    }

    fn first_keys(&self) -> FirstKeys {
        self.sandbox.first_keys()
    }

    fn knows_key(&self, authorization: &[u8]) -> bool {
        World::knows_key(&self.sandbox, authorization)
    }

    fn event_count(&self) -> u64 {
        self.sandbox.log().count()
    }

    fn held_bytes(&self) -> u64 {
        self.sandbox.estimated_bytes() + self.journal.held_bytes()
    }

    fn events_after(&self, n: u64) -> Vec<WorldEvent> {
        self.sandbox.log().events_after(n).cloned().collect()
    }

    fn replace(&mut self, with: Sandbox, restore_kind: RestoreKind) {
        // The numbers of replaced worlds and of delivery attempts, which the new world continues to count.
        let lineage = self.sandbox.lineage();
        self.sandbox = with;
        if let RestoreKind::Rewind { to } = restore_kind {
            let before = self.before_call();
            self.sandbox.continue_lineage(lineage);
            self.journal.rewind(to);
            // `era` is the number of worlds that were replaced before. Even with a replacement each millisecond, 2^32 take 50
            // days.
            let (era, attempts) = lineage;
            let era = u32::try_from(era).expect("fewer than 2^32 worlds were replaced before");
            self.record(
                &HostCall::ContinueLineage { era, attempts },
                FsyncPolicy::BeforeResponse,
                before,
                CallResult::NothingAtAnyTime,
            );
        }
    }
}
