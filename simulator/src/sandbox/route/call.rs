//! The context of a call under `/sandbox`: the request, the world, and the book to which the caller is restricted.

use reference_core::{
    book::Book,
    command::{Command, CommandResult},
    error::ApiError,
    id::{AccountNo, Code},
    mode::Mode,
    service::Service,
    time::{Span, Timestamp},
};
use reference_wire::{Request, fields::Fields};

use super::{Within, advance::AdvanceTarget};
use crate::sandbox::{Sandbox, observe::AccountBook, world::World};

/// The maximum number of days by which one call moves the clock.
const JUMP_DAYS_MAX: u64 = 3_653;
/// The maximum number of days for calls with an API key. It is lower, because all keys of a world share its clock.
const KEY_JUMP_DAYS_MAX: u64 = 366;
/// The last time of the clock, 9000-01-01, well before the last representable time.
const CLOCK_LAST: Timestamp = Timestamp(221_845_392_000_000_000);

/// The context of a call.
pub(super) struct SandboxCall<'c> {
    pub(super) sandbox: &'c mut Sandbox,
    pub(super) request: &'c Request<'c>,
    /// The only book that the caller may access; `None` for all books.
    pub(super) within: Option<Within>,
    /// The values of the path segments in braces, in order.
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

    /// Sets the time to which the call moves the clock before its response. `field` is the field that specified it.
    ///
    /// # Errors
    ///
    /// A jump beyond the limit: the clock never goes back, so a far jump would make the world useless for all clients.
    pub(super) fn set_target(&mut self, field: &'static str, target: AdvanceTarget) -> Result<(), ApiError> {
        let (days, condition) = match self.within {
            None => (JUMP_DAYS_MAX, ""),
            Some(_) => (KEY_JUMP_DAYS_MAX, " with an API key"),
        };
        let now = self.world().now;
        if target.until > now.plus(Span::days(days)).min(CLOCK_LAST.max(now)) {
            let message = format!(
                "The {field} field moves the clock too far; allowed: at most {days} days at once{condition}, and not past {CLOCK_LAST}."
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

    pub(super) fn book(&self, book_id: AccountBook) -> &Book {
        self.sandbox.book(book_id)
    }

    pub(super) fn execute(
        &mut self,
        (account, mode): AccountBook,
        command: impl Into<Command>,
    ) -> Result<CommandResult, ApiError> {
        self.sandbox.world.execute(account, mode, command)
    }

    /// Returns the values of the segments in braces, in order.
    pub(super) fn parameters(&self) -> &[&'c str] {
        &self.parameters
    }

    /// Returns the first parameter as an id.
    pub(super) fn id(&self) -> Result<Code, ApiError> {
        parse_code(self.parameters[0])
    }

    /// Returns the book of an account and a mode. Both have the defaults of [`SandboxCall::account`] and
    /// [`SandboxCall::mode`].
    pub(super) fn own_book(
        &self,
        id: Option<String>,
        mode: Option<Mode>,
        fields: &mut Fields<'_>,
    ) -> AccountBook {
        let account = self.account(id, fields);
        (account, self.mode(mode, fields))
    }

    /// Returns the account with an id; by default the caller's own, or the first one. If the caller may not
    /// access the account, adds an error and returns any account.
    pub(super) fn account(&self, id: Option<String>, fields: &mut Fields<'_>) -> AccountNo {
        let own = self.within.map(|(account, _)| account);
        let default = || own.or_else(|| self.service().find_account(Sandbox::FIRST_ACCOUNT));
        let default = default().expect("the first account is never removed");
        let no = id.map_or(Some(default), |id| self.service().find_account(&id));
        if no.is_none() || own.is_some_and(|own| no != Some(own)) {
            fields.add_error("account", "The selected {} is invalid.");
        }
        no.unwrap_or(default)
    }

    /// Returns the given mode; by default the caller's own, or the world's default mode. Adds an error if the
    /// caller may not access it.
    pub(super) fn mode(&self, mode: Option<impl Into<Mode>>, fields: &mut Fields<'_>) -> Mode {
        let own = self.within.map(|(_, mode)| mode);
        let mode = mode.map(Into::into).or(own).unwrap_or(self.sandbox.world.setup.default_mode);
        if own.is_some_and(|own| mode != own) {
            fields.add_error("mode", "The {} field must be the mode of the key.");
        }
        mode
    }

    /// Returns every book that the caller may access.
    pub(super) fn books(&self) -> impl Iterator<Item = (AccountBook, &Book)> {
        let within = self.within;
        let books = self.service().books().map(|(account, mode, book)| ((account, mode), book));
        books.filter(move |(book_id, _)| within.is_none_or(|only| only == *book_id))
    }

    /// Returns the first accessible book that satisfies `matches`.
    pub(super) fn find_book(&self, matches: impl Fn(&Book) -> bool) -> Result<AccountBook, ApiError> {
        self.books().find(|(_, book)| matches(book)).map(|(book_id, _)| book_id).ok_or(ApiError::NotFound)
    }
}

/// Parses an id in a path. An invalid one gets 404, like an unknown one.
pub(super) fn parse_code(text: &str) -> Result<Code, ApiError> {
    Code::parse(text).ok_or(ApiError::NotFound)
}

/// Reads the filter `mode`.
pub(super) fn read_mode(fields: &mut Fields<'_>) -> Option<Mode> {
    fields.choice("mode", &Mode::ALL.map(Mode::as_str), Mode::parse)
}

/// Returns the value of a required field, or the error that it is missing.
pub(super) fn required<T>(value: Option<T>, name: &str) -> Result<T, ApiError> {
    value.ok_or_else(|| ApiError::field(name, format!("The {name} field is required.")))
}
