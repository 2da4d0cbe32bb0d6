//! The service with a journal of its inputs. Every input passes through [`JournaledService`], so that a restart can
//! replay all of them.

use bytes::Bytes;
use reference_core::{
    account::{AccountKind, Settings},
    asset::{Asset, Currency},
    command::{Command, CommandResult, Visit, VisitResult},
    error::ApiError,
    id::{AccountNo, DeliveryNo},
    mode::Mode,
    money::Rate,
    outbox::AttemptReport,
    service::{Admission, Service, ServiceConfig},
    sighting::Sighting,
    time::Timestamp,
};
use reference_wire::{Api, AttemptRequest, Request, Response};
use serde::{Deserialize, Serialize};

use super::Setup;
use crate::tamper::OwnedRequest;

/// An input of the service, as an owned value.
#[derive(Serialize, Deserialize)]
enum Input {
    Tick {
        work_max: u32,
    },
    Account {
        id: String,
        kind: AccountKind,
        settings: Box<Settings>,
    },
    Request(Box<OwnedRequest>),
    /// The authentication of a request, by its `Authorization` header.
    Admit(Option<Vec<u8>>),
    /// A request that was authenticated before.
    Admitted(Admission, Box<OwnedRequest>),
    Command(AccountNo, Mode, Command),
    /// A customer's visit to a hosted page.
    Visit(Visit),
    Heights(Vec<((Mode, Asset), u64)>),
    Sightings(Vec<Sighting>),
    /// The next due attempt was taken.
    Poll,
    Outcome {
        book: (AccountNo, Mode),
        delivery: DeliveryNo,
        report: AttemptReport,
    },
    Rate {
        asset: Asset,
        currency: Currency,
        rate: Option<Rate>,
    },
    Restart,
}

/// A service and the journal of its inputs; without a journal it cannot be restarted.
#[derive(Serialize, Deserialize)]
pub(super) struct JournaledService {
    api: Api,
    journal: Option<Vec<(Timestamp, Input)>>,
}

impl JournaledService {
    pub(super) fn new(config: ServiceConfig, keeps_journal: bool) -> JournaledService {
        JournaledService { api: Api::new(config), journal: keeps_journal.then(Vec::new) }
    }

    /// Sets the values that a stored state omits.
    pub(super) fn resume(&mut self, setup: &Setup) {
        self.api.service.resume(setup.public_url.clone(), setup.wallet_cache.clone());
    }

    /// Returns the service, read-only.
    pub(super) fn service(&self) -> &Service {
        &self.api.service
    }

    pub(super) fn take_notices(&mut self) -> Vec<(AccountNo, Mode, reference_core::book::Notice)> {
        self.api.service.take_notices()
    }

    fn record_input(&mut self, now: Timestamp, input: impl FnOnce() -> Input) {
        if let Some(journal) = &mut self.journal {
            journal.push((now, input()));
        }
    }

    /// Processes a part of the due work. Returns the amount of work done.
    pub(super) fn tick(&mut self, now: Timestamp, work_max: u32) -> u32 {
        self.record_input(now, || Input::Tick { work_max });
        self.api.service.on_tick_in_part(now, work_max)
    }

    pub(super) fn open_account(
        &mut self,
        now: Timestamp,
        id: &str,
        kind: AccountKind,
        settings: Settings,
    ) -> Result<AccountNo, ApiError> {
        self.record_input(now, || Input::Account {
            id: id.to_owned(),
            kind,
            settings: Box::new(settings.clone()),
        });
        self.api.service.open_account(now, id, kind, settings)
    }

    pub(super) fn request(&mut self, now: Timestamp, request: &Request<'_>) -> Response {
        self.record_input(now, || Input::Request(Box::new(OwnedRequest::from_request(request))));
        self.api.respond(now, request)
    }

    pub(super) fn admit(
        &mut self,
        now: Timestamp,
        authorization: Option<&[u8]>,
    ) -> Result<Admission, Response> {
        self.record_input(now, || Input::Admit(authorization.map(<[u8]>::to_vec)));
        self.api.admit(now, authorization)
    }

    pub(super) fn check_head(&self, admission: &Admission, method: &str, path: &str) -> Result<(), Response> {
        self.api.check_head(admission, method, path)
    }

    pub(super) fn request_as(
        &mut self,
        now: Timestamp,
        admission: &Admission,
        request: &Request<'_>,
    ) -> Response {
        self.record_input(now, || Input::Admitted(*admission, Box::new(OwnedRequest::from_request(request))));
        self.api.respond_to(now, admission, request)
    }

    pub(super) fn command(
        &mut self,
        now: Timestamp,
        (account, mode): (AccountNo, Mode),
        command: Command,
    ) -> Result<CommandResult, ApiError> {
        self.record_input(now, || Input::Command(account, mode, command.clone()));
        self.api.service.on_command(now, (account, mode), command)
    }

    pub(super) fn visit(&mut self, now: Timestamp, visit: Visit) -> Result<VisitResult, ApiError> {
        self.record_input(now, || Input::Visit(visit.clone()));
        self.api.service.on_visit(now, visit)
    }

    /// Reports heights of chains; those that do not exceed the known ones are skipped.
    pub(super) fn on_heights(&mut self, now: Timestamp, mut heights: Vec<((Mode, Asset), u64)>) {
        let known = self.api.service.heights();
        heights.retain(|((mode, asset), height)| *height > known.get(*mode, *asset));
        if heights.is_empty() {
            return;
        }
        for ((mode, asset), height) in &heights {
            self.api.service.on_height(*mode, *asset, *height);
        }
        self.record_input(now, || Input::Heights(heights));
    }

    pub(super) fn on_sightings(&mut self, now: Timestamp, sightings: &[Sighting]) {
        self.record_input(now, || Input::Sightings(sightings.to_vec()));
        self.api.service.on_sightings(now, sightings);
    }

    /// Returns the next due attempt, without its body.
    pub(super) fn poll(&mut self, now: Timestamp) -> Option<(AccountNo, Mode, AttemptRequest)> {
        let attempt = self.api.poll_delivery_without_body(now)?;
        self.record_input(now, || Input::Poll);
        Some(attempt)
    }

    pub(super) fn delivery_body(&self, book: (AccountNo, Mode), no: DeliveryNo) -> Bytes {
        self.api.delivery_body(book, no)
    }

    pub(super) fn on_attempt_result(
        &mut self,
        now: Timestamp,
        book: (AccountNo, Mode),
        delivery: DeliveryNo,
        report: AttemptReport,
    ) {
        self.record_input(now, || Input::Outcome { book, delivery, report: report.clone() });
        self.api.service.on_attempt_result(now, book, delivery, report);
    }

    pub(super) fn on_rate(&mut self, now: Timestamp, asset: Asset, currency: Currency, rate: Option<Rate>) {
        self.record_input(now, || Input::Rate { asset, currency, rate });
        self.api.service.on_rate(now, asset, currency, rate);
    }

    /// Restarts the service: a new one replays all inputs.
    pub(super) fn restart(&mut self, now: Timestamp) -> Result<(), ApiError> {
        let Some(journal) = &mut self.journal else {
            return Err(ApiError::conflict("This world has no journal, so the service cannot be restarted."));
        };
        journal.push((now, Input::Restart));
        let mut api = Api::new(self.api.service.config().clone());
        api.set_omits_bodies(true);
        for (at, input) in journal.iter() {
            replay(&mut api, *at, input);
        }
        // Notices from replayed inputs were delivered before the restart.
        api.service.take_notices();
        api.set_omits_bodies(false);
        self.api = api;
        Ok(())
    }
}

/// Replays one input. Its response was sent before, so only the effect on the service matters.
fn replay(api: &mut Api, now: Timestamp, input: &Input) {
    let service = &mut api.service;
    match input {
        Input::Tick { work_max } => drop(service.on_tick_in_part(now, *work_max)),
        Input::Account { id, kind, settings } => {
            drop(service.open_account(now, id, *kind, Settings::clone(settings)));
        }
        Input::Request(request) => drop(api.respond(now, &request.borrow())),
        Input::Admit(authorization) => drop(api.admit(now, authorization.as_deref())),
        Input::Admitted(admission, request) => drop(api.respond_to(now, admission, &request.borrow())),
        Input::Command(account, mode, command) => {
            drop(service.on_command(now, (*account, *mode), command.clone()))
        }
        Input::Visit(visit) => drop(service.on_visit(now, visit.clone())),
        Input::Heights(heights) => {
            heights.iter().for_each(|((mode, asset), height)| service.on_height(*mode, *asset, *height));
        }
        Input::Sightings(sightings) => service.on_sightings(now, sightings),
        Input::Poll => drop(service.poll_delivery(now)),
        Input::Outcome { book, delivery, report } => {
            service.on_attempt_result(now, *book, *delivery, report.clone());
        }
        Input::Rate { asset, currency, rate } => service.on_rate(now, *asset, *currency, *rate),
        Input::Restart => service.restart(now),
    }
}
