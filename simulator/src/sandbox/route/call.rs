//! The context of a call under `/sandbox`: the caller, the request, and the reachable part of the world.

use reference_core::{
    asset::Asset,
    book::Book,
    command::{Command, CommandResult},
    error::ApiError,
    id::{AccountNo, Code},
    mode::Mode,
    service::Service,
    time::{Span, Timestamp},
};
use reference_wire::{
    Request,
    fields::{Fields, TEXT_MAX},
};

use super::{Within, advance::AdvanceTarget};
use crate::sandbox::{Sandbox, observe::BookOf, world::World};

/// One call moves the clock ten years at most.
const JUMP_DAYS_MAX: u64 = 3_653;
/// With an API key, one call moves the clock a year at most: the clock is everybody's.
const KEY_JUMP_DAYS_MAX: u64 = 366;
/// The clock ends here: 9000-01-01, far enough from the last moment that there is.
const CLOCK_LAST: Timestamp = Timestamp(221_845_392_000_000_000);

/// A call that is being answered.
pub(super) struct SandboxCall<'c> {
    pub(super) sandbox: &'c mut Sandbox,
    pub(super) request: &'c Request<'c>,
    pub(super) within: Option<Within>,
    /// The segments in place of those in braces, in order.
    parameters: Vec<&'c str>,
    /// The time to which the call moves the clock.
    target: Option<AdvanceTarget>,
}

impl<'c> SandboxCall<'c> {
    pub(super) fn new(
        sandbox: &'c mut Sandbox,
        request: &'c Request<'c>,
        within: Option<Within>,
        parameters: Vec<&'c str>,
    ) -> SandboxCall<'c> {
        SandboxCall { sandbox, request, within, parameters, target: None }
    }

    /// The call is answered when the clock has come there. `field` is what said how far.
    ///
    /// # Errors
    ///
    /// A jump that is too far: the clock never goes back, so whoever sends it far away spoils the world for all.
    pub(super) fn advance(&mut self, field: &'static str, target: AdvanceTarget) -> Result<(), ApiError> {
        let (days, whose) = match self.within {
            None => (JUMP_DAYS_MAX, ""),
            Some(_) => (KEY_JUMP_DAYS_MAX, " with an API key"),
        };
        let now = self.world().now;
        if target.until > now.plus(Span::days(days)).min(CLOCK_LAST.max(now)) {
            let message = format!(
                "The {field} field moves the clock too far: it takes at most {days} days at once{whose}, and not past {CLOCK_LAST}."
            );
            return Err(ApiError::field(field, message));
        }
        self.target = Some(target);
        Ok(())
    }

    pub(super) fn target(&self) -> Option<AdvanceTarget> {
        self.target
    }

    pub(super) fn world(&self) -> &World {
        &self.sandbox.world
    }

    pub(super) fn world_mut(&mut self) -> &mut World {
        &mut self.sandbox.world
    }

    pub(super) fn service(&self) -> &Service {
        self.sandbox.service()
    }

    pub(super) fn book(&self, place: BookOf) -> &Book {
        self.sandbox.book(place)
    }

    pub(super) fn act(
        &mut self,
        (account, mode): BookOf,
        command: impl Into<Command>,
    ) -> Result<CommandResult, ApiError> {
        self.sandbox.world.act(account, mode, command)
    }

    /// Returns the segments in place of those in braces, in order.
    pub(super) fn parameters(&self) -> &[&'c str] {
        &self.parameters
    }

    /// The first of them as an id.
    pub(super) fn id(&self) -> Result<Code, ApiError> {
        code(self.parameters[0])
    }

    /// `account`, by default the first one, or the only one within reach.
    pub(super) fn account(&self, fields: &mut Fields<'_>) -> Option<AccountNo> {
        let own = self.within.map(|(account, _)| account);
        let no = match fields.text("account", TEXT_MAX) {
            None if own.is_some() => own,
            id => self.service().find_account(id.as_deref().unwrap_or(Sandbox::FIRST_ACCOUNT)),
        };
        if no.is_none() || own.is_some_and(|own| no != Some(own)) {
            fields.wrong("account", "The selected {} is invalid.");
        }
        no
    }

    /// `mode`, by default live, or the only one within reach.
    pub(super) fn mode(&self, fields: &mut Fields<'_>) -> Mode {
        let own = self.within.map(|(_, mode)| mode);
        let mode = read_mode(fields).or(own).unwrap_or(Mode::Live);
        if own.is_some_and(|own| mode != own) {
            fields.wrong("mode", "The {} field must be the mode of the key.");
        }
        mode
    }

    /// Every book within reach.
    pub(super) fn books(&self) -> impl Iterator<Item = (BookOf, &Book)> {
        let within = self.within;
        let books = self.service().books().map(|(account, mode, book)| ((account, mode), book));
        books.filter(move |(place, _)| within.is_none_or(|only| only == *place))
    }

    /// The book that holds what `find` looks for.
    pub(super) fn find_book(&self, find: impl Fn(&Book) -> bool) -> Result<BookOf, ApiError> {
        self.books().find(|(_, book)| find(book)).map(|(place, _)| place).ok_or(ApiError::NotFound)
    }
}

/// An id in a path; what cannot be one belongs to nothing.
pub(super) fn code(text: &str) -> Result<Code, ApiError> {
    Code::parse(text).ok_or(ApiError::NotFound)
}

/// `mode`, of a filter.
pub(super) fn read_mode(fields: &mut Fields<'_>) -> Option<Mode> {
    fields.word("mode", &Mode::ALL.map(Mode::as_str), Mode::parse)
}

/// `asset`, which must be there.
pub(super) fn read_asset(fields: &mut Fields<'_>) -> Option<Asset> {
    fields.required_text("asset", TEXT_MAX)?;
    fields.asset("asset")
}

/// A field that was refused if it is missing.
pub(super) fn required<T>(value: Option<T>, name: &str) -> Result<T, ApiError> {
    value.ok_or_else(|| ApiError::field(name, format!("The {name} field is required.")))
}
