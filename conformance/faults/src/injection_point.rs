//! The injection point of a fault: the changed object, and the pages of a list.

use std::fmt;

use conformance_model::recording::{Caller, Forgery, List, ObjectKind};

/// The way in which an event is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventView {
    /// In the list of events.
    Listed,
    /// By its id.
    Single,
}

/// The responses or objects that a fault changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectionPoint {
    /// The account.
    Account,
    /// A page of a list.
    Page(List),
    /// The rows of a list, except events.
    Row(List),
    /// Events.
    Event(EventView),
    /// The charge of an event.
    Charge(EventView),
    /// The invoice of an event.
    Invoice(EventView),
    /// Requests from this caller that must be rejected with 401; to this path only, if one is given.
    Unauthorized(Caller, Option<&'static str>),
    /// Responses to requests for events that do not exist.
    AbsentEvent,
    /// Responses to requests for events of the other mode.
    ForeignEvent,
    /// Responses to requests for single charges or invoices of the other mode.
    ForeignObject(ObjectKind),
    /// A list filtered by an object of the other mode, with the name of the filter.
    ForeignFilter(&'static str),
    /// A list filtered by an object of the key's own mode, with the name of the filter.
    Filtered(&'static str),
    /// Responses with 429 to requests above the rate limit; to this path only, if one is given.
    RateLimited(Option<&'static str>),
    /// A delivery.
    Delivery,
    /// The headers of a delivery.
    DeliveryHeaders,
    /// The charge of a delivery.
    DeliveredCharge,
    /// The invoice of a delivery.
    DeliveredInvoice,
}

/// The pages of a list that a fault affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// All pages.
    Any,
    /// The page with this number, of any size.
    Number(u64),
    /// The pages after the third and before the last.
    Middle,
    /// The last of several pages.
    Last,
    /// The pages of this size.
    Size(u64),
    /// The pages of an odd size from 3 to 99.
    OddSize,
    /// The pages after the first, if requested without `per_page`.
    LaterDefaultSize,
}

/// The properties of a page that determine its position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageCoordinates {
    pub(crate) number: u64,
    /// The requested size; `None` for the default size.
    pub(crate) size: Option<u64>,
    /// The number of the last page.
    pub(crate) last: u64,
}

impl Position {
    pub(crate) fn matches(self, page: PageCoordinates) -> bool {
        let PageCoordinates { number, size, last } = page;
        match self {
            Position::Any => true,
            Position::Number(affected) => number == affected,
            Position::Middle => number > 3 && number < last,
            Position::Last => number == last && last > 1,
            Position::Size(affected) => size == Some(affected),
            Position::OddSize => size.is_some_and(|size| size % 2 == 1 && (3..=99).contains(&size)),
            Position::LaterDefaultSize => size.is_none() && number > 1,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Any => f.write_str("any page"),
            Position::Number(number) => write!(f, "page {number}"),
            Position::Middle => f.write_str("a page between the third and the last"),
            Position::Last => f.write_str("the last page"),
            Position::Size(size) => write!(f, "pages of {size}"),
            Position::OddSize => f.write_str("pages of an odd size"),
            Position::LaterDefaultSize => f.write_str("later pages of the default size"),
        }
    }
}

impl fmt::Display for InjectionPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let events = |view: &EventView| match view {
            EventView::Listed => "events in a list",
            EventView::Single => "a single event",
        };
        match self {
            InjectionPoint::Account => f.write_str("the account"),
            InjectionPoint::Page(list) => write!(f, "the list of {}", list.as_str()),
            InjectionPoint::Row(list) => write!(f, "the rows of the list of {}", list.as_str()),
            InjectionPoint::Event(EventView::Listed) => f.write_str("events in a list"),
            InjectionPoint::Event(EventView::Single) => f.write_str("single events"),
            InjectionPoint::Charge(view) => write!(f, "the charge of {}", events(view)),
            InjectionPoint::Invoice(view) => write!(f, "the invoice of {}", events(view)),
            InjectionPoint::Unauthorized(caller, None) => f.write_str(caller_text(*caller)),
            InjectionPoint::Unauthorized(caller, Some(path)) => {
                write!(f, "{} at {path}", caller_text(*caller))
            }
            InjectionPoint::AbsentEvent => f.write_str("an event that does not exist"),
            InjectionPoint::ForeignEvent => f.write_str("an event of the other mode"),
            InjectionPoint::ForeignObject(kind) => write!(f, "a single {} of the other mode", kind.as_str()),
            InjectionPoint::ForeignFilter(name) => {
                write!(f, "the filter `{name}` with an object of the other mode")
            }
            InjectionPoint::Filtered(name) => write!(f, "the filter `{name}`"),
            InjectionPoint::RateLimited(None) => f.write_str("requests above the limit"),
            InjectionPoint::RateLimited(Some(path)) => write!(f, "requests above the limit to {path}"),
            InjectionPoint::Delivery => f.write_str("deliveries"),
            InjectionPoint::DeliveryHeaders => f.write_str("headers of deliveries"),
            InjectionPoint::DeliveredCharge => f.write_str("the charge of deliveries"),
            InjectionPoint::DeliveredInvoice => f.write_str("the invoice of deliveries"),
        }
    }
}

fn caller_text(caller: Caller) -> &'static str {
    match caller {
        Caller::Own(_) => "a request with a valid key",
        Caller::SecondKey => "a request with a second key",
        Caller::OtherAccount => "a request with a key of another account",
        Caller::Revoked => "a request with a revoked key",
        Caller::NoKey => "a request without a key",
        Caller::Forged(Forgery::EmptyBearer) => "a request with an empty bearer token",
        Caller::Forged(Forgery::NoScheme) => "a request with the key without a scheme",
        Caller::Forged(Forgery::OtherScheme) => "a request with another scheme",
        Caller::Forged(Forgery::BasicScheme) => "a request with the key under the Basic scheme",
        Caller::Forged(Forgery::WordAppended) => "a request with a space and a word after the key",
        Caller::Forged(Forgery::BasicUser) => "a request with the key as the Basic user name",
        Caller::Forged(Forgery::ListAppended) => "a request with a comma and a word after the key",
        Caller::Forged(Forgery::Encoded) => "a request with the key percent-encoded",
        Caller::Forged(Forgery::Unknown) => "a request with an unknown key",
        Caller::Forged(Forgery::LastCharacter) => "a request with the last character of the key changed",
        Caller::Forged(Forgery::LetterCase) => "a request with the letter case of the key inverted",
        Caller::Forged(Forgery::Appended) => "a request with one character appended to the key",
        Caller::Forged(Forgery::OtherPrefix) => "a request with the test key under the live key prefix",
        Caller::Forged(Forgery::LiveKeyOtherPrefix) => {
            "a request with the live key under the test key prefix"
        }
        Caller::Forged(Forgery::UnknownLive) => "a request with an unknown live key",
        Caller::Forged(Forgery::FirstCharacter) => "a request with the first character of the key changed",
        Caller::Forged(Forgery::Shortened) => "a request with a truncated key",
    }
}
