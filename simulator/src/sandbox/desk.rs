//! The service as a host runs it: every input goes through here, so that all of them can be played
//! again after a restart.

use reference_core::{
    account::{AccountKind, Settings},
    action::{Action, Done, Seen, Visit},
    asset::{Asset, Currency},
    book::Post,
    error::ApiError,
    id::{AccountNo, DeliveryNo},
    mode::Mode,
    money::Rate,
    outbox::Landing,
    service::{Admission, Service, Start},
    sighting::Sighting,
    time::Timestamp,
    wire::http::{self, Request, Response},
};

/// Something that the service was told, with nothing borrowed.
enum Input {
    Tick,
    Account { id: String, kind: AccountKind, settings: Box<Settings> },
    Request(Box<OwnRequest>),
    Admit(Option<Vec<u8>>),
    Admitted(Admission, Box<OwnRequest>),
    Action(Action),
    Visit(Visit),
    Sightings(Vec<Sighting>),
    Poll,
    Outcome { book: (AccountNo, Mode), delivery: DeliveryNo, landing: Landing },
    Rate { asset: Asset, currency: Currency, rate: Option<Rate> },
    Restart,
}

/// A request with nothing borrowed.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the fields are those of the request")]
pub struct OwnRequest {
    pub method: String,
    pub path: String,
    pub query: Option<String>,
    pub authorization: Option<Vec<u8>>,
    pub content_type: Option<Vec<u8>>,
    pub idempotency_key: Option<Vec<u8>>,
    pub base: String,
    pub body: Vec<u8>,
}

impl OwnRequest {
    /// A copy.
    pub fn of(request: &Request<'_>) -> OwnRequest {
        OwnRequest {
            method: request.method.to_owned(),
            path: request.path.to_owned(),
            query: request.query.map(str::to_owned),
            authorization: request.authorization.map(<[u8]>::to_vec),
            content_type: request.content_type.map(<[u8]>::to_vec),
            idempotency_key: request.idempotency_key.map(<[u8]>::to_vec),
            base: request.base.to_owned(),
            body: request.body.to_vec(),
        }
    }

    /// The request, to be handed on.
    pub fn borrow(&self) -> Request<'_> {
        Request {
            method: &self.method,
            path: &self.path,
            query: self.query.as_deref(),
            authorization: self.authorization.as_deref(),
            content_type: self.content_type.as_deref(),
            idempotency_key: self.idempotency_key.as_deref(),
            base: &self.base,
            body: &self.body,
        }
    }
}

/// A service and, if it is to survive a restart, all that it was told.
pub(super) struct Desk {
    service: Service,
    journal: Option<Vec<(Timestamp, Input)>>,
}

impl Desk {
    pub(super) fn new(start: Start, keeps_journal: bool) -> Desk {
        Desk { service: Service::new(start), journal: keeps_journal.then(Vec::new) }
    }

    /// The service, to be looked at.
    pub(super) fn service(&self) -> &Service {
        &self.service
    }

    pub(super) fn take_notices(&mut self) -> Vec<(AccountNo, Mode, reference_core::book::Notice)> {
        self.service.take_notices()
    }

    fn write_down(&mut self, now: Timestamp, input: impl FnOnce() -> Input) {
        if let Some(journal) = &mut self.journal {
            journal.push((now, input()));
        }
    }

    pub(super) fn tick(&mut self, now: Timestamp) {
        self.write_down(now, || Input::Tick);
        self.service.on_tick(now);
    }

    pub(super) fn open_account(
        &mut self,
        now: Timestamp,
        id: &str,
        kind: AccountKind,
        settings: Settings,
    ) -> Result<AccountNo, ApiError> {
        self.write_down(now, || Input::Account {
            id: id.to_owned(),
            kind,
            settings: Box::new(settings.clone()),
        });
        self.service.open_account(now, id, kind, settings)
    }

    pub(super) fn request(&mut self, now: Timestamp, request: &Request<'_>) -> Response {
        self.write_down(now, || Input::Request(Box::new(OwnRequest::of(request))));
        http::respond(&mut self.service, now, request)
    }

    pub(super) fn admit(
        &mut self,
        now: Timestamp,
        authorization: Option<&[u8]>,
    ) -> Result<Admission, Response> {
        self.write_down(now, || Input::Admit(authorization.map(<[u8]>::to_vec)));
        http::admit(&mut self.service, now, authorization)
    }

    pub(super) fn request_of(&mut self, now: Timestamp, who: &Admission, request: &Request<'_>) -> Response {
        self.write_down(now, || Input::Admitted(*who, Box::new(OwnRequest::of(request))));
        http::respond_to(&mut self.service, now, who, request)
    }

    pub(super) fn action(&mut self, now: Timestamp, action: Action) -> Result<Done, ApiError> {
        self.write_down(now, || Input::Action(action.clone()));
        self.service.on_action(now, action)
    }

    pub(super) fn visit(&mut self, now: Timestamp, visit: Visit) -> Result<Seen, ApiError> {
        self.write_down(now, || Input::Visit(visit.clone()));
        self.service.on_visit(now, visit)
    }

    pub(super) fn sightings(&mut self, now: Timestamp, sightings: &[Sighting]) {
        self.write_down(now, || Input::Sightings(sightings.to_vec()));
        self.service.on_sightings(now, sightings);
    }

    pub(super) fn poll(&mut self, now: Timestamp) -> Option<(AccountNo, Mode, Post)> {
        let post = self.service.poll_delivery(now)?;
        self.write_down(now, || Input::Poll);
        Some(post)
    }

    pub(super) fn outcome(
        &mut self,
        now: Timestamp,
        book: (AccountNo, Mode),
        delivery: DeliveryNo,
        landing: Landing,
    ) {
        self.write_down(now, || Input::Outcome { book, delivery, landing: landing.clone() });
        self.service.on_outcome(now, book, delivery, landing);
    }

    pub(super) fn rate(&mut self, now: Timestamp, asset: Asset, currency: Currency, rate: Option<Rate>) {
        self.write_down(now, || Input::Rate { asset, currency, rate });
        self.service.on_rate(now, asset, currency, rate);
    }

    /// Stops the service and starts it again: a new one is told all that the old one was told.
    pub(super) fn restart(&mut self, now: Timestamp) -> Result<(), ApiError> {
        let Some(journal) = &mut self.journal else {
            return Err(ApiError::conflict(
                "This world keeps no journal, so the service can't be restarted.",
            ));
        };
        journal.push((now, Input::Restart));
        let mut service = Service::new(self.service.start().clone());
        for (at, input) in journal.iter() {
            replay(&mut service, *at, input);
        }
        // What the first service announced was heard already.
        service.take_notices();
        self.service = service;
        Ok(())
    }
}

/// Answers were given the first time; only what they did to the service matters now.
fn replay(service: &mut Service, now: Timestamp, input: &Input) {
    match input {
        Input::Tick => service.on_tick(now),
        Input::Account { id, kind, settings } => {
            drop(service.open_account(now, id, *kind, Settings::clone(settings)));
        }
        Input::Request(request) => drop(http::respond(service, now, &request.borrow())),
        Input::Admit(authorization) => drop(http::admit(service, now, authorization.as_deref())),
        Input::Admitted(who, request) => drop(http::respond_to(service, now, who, &request.borrow())),
        Input::Action(action) => drop(service.on_action(now, action.clone())),
        Input::Visit(visit) => drop(service.on_visit(now, visit.clone())),
        Input::Sightings(sightings) => service.on_sightings(now, sightings),
        Input::Poll => drop(service.poll_delivery(now)),
        Input::Outcome { book, delivery, landing } => {
            service.on_outcome(now, *book, *delivery, landing.clone());
        }
        Input::Rate { asset, currency, rate } => service.on_rate(now, *asset, *currency, *rate),
        Input::Restart => service.restart(now),
    }
}
