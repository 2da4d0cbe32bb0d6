//! The recording of a run: all requests and responses, without the keys.
//!
//! The judge reads nothing else, so newer checks can judge an old recording.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::body::Body;
use crate::deliveries::Deliveries;
use crate::mode::Mode;
use crate::part::Part;

/// The version of the format. Incremented when an older reader would misread a recording.
pub const FORMAT_VERSION: u32 = 2;

/// The reason why a `--quick` run has no burst.
pub const NO_BURST_QUICK: &str = "--quick leaves it out";

/// The requests and responses of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recording {
    /// The version of this format.
    pub format: u32,
    /// The base address of the target.
    pub base: String,
    /// The prefix of keys, before `_live_` or `_test_`.
    pub key_prefix: String,
    /// The parts that the operator excluded with `--without`.
    pub without: BTreeSet<Part>,
    /// The reason why there was no burst, if there was none.
    pub no_burst: Option<String>,
    /// The source of records that are created while the suite pages.
    // The name of the field in the file format.
    #[serde(default, rename = "inserting")]
    pub inserts: Inserts,
    /// `true` if amounts are as the target sent them. Redaction preserves only their equality. `false` if unknown.
    #[serde(default)]
    pub exact_amounts: bool,
    /// The exchanges in the order of their requests.
    pub exchanges: Vec<Exchange>,
    /// The webhook deliveries of the target, if a receiver was set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliveries: Option<Deliveries>,
}

/// The source of records that are created while the suite pages, and its errors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inserts {
    /// The command-line options that set the source.
    #[serde(rename = "by")]
    pub options: Vec<String>,
    /// The known reasons why the source did not create a record.
    #[serde(rename = "faults")]
    pub errors: Vec<String>,
}

/// One request and its outcome.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Exchange {
    /// The number of the exchange, counted from 1.
    pub number: u32,
    /// The key that the request carried.
    pub caller: Caller,
    /// The reason for the request.
    pub purpose: Purpose,
    /// Path and query as sent.
    pub target: String,
    /// The time of sending, since the start of the run.
    pub sent: Duration,
    /// The time of the outcome, since the start of the run.
    pub ended: Duration,
    /// The outcome.
    #[serde(rename = "ending")]
    pub outcome: ExchangeOutcome,
}

/// The outcome of a request: a response, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExchangeOutcome {
    /// A response was received.
    #[serde(rename = "answered")]
    Answered(ReceivedResponse),
    /// No response was received, for this reason.
    #[serde(rename = "lost")]
    NoResponse(String),
}

/// An HTTP response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedResponse {
    /// The status code.
    pub status: u16,
    /// The header fields in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body. Bytes that are not UTF-8 are replaced.
    pub body: Body,
}

impl ReceivedResponse {
    /// Returns the first value of a header field, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }
}

/// The key that a request carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Caller {
    /// The live or the test key of the tested account.
    Own(Mode),
    /// A second key of the test key's account and mode.
    #[serde(rename = "second")]
    SecondKey,
    /// A key of another account.
    OtherAccount,
    /// A revoked key.
    Revoked,
    /// No `Authorization` header at all.
    #[serde(rename = "nobody")]
    NoKey,
    /// A token that is not a valid key.
    Forged(Forgery),
}

/// The `round` of an event that is requested with its id in capital letters.
pub const UPPERCASE_ID_ROUND: u8 = 8;

/// The `round` of a nonexistent event whose id resembles that of an existing one.
pub const SIMILAR_ID_ROUND: u8 = 7;

/// A token that is not a valid key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Forgery {
    /// The scheme `Bearer` without a token.
    EmptyBearer,
    /// The test key under the scheme `Token`.
    OtherScheme,
    /// The test key under the scheme `Basic`.
    BasicScheme,
    /// The test key without a scheme.
    NoScheme,
    /// The correct prefix and random characters.
    Unknown,
    /// The test key with another last character.
    LastCharacter,
    /// The test key with its letters in the other case.
    LetterCase,
    /// The test key and one more character.
    Appended,
    /// The test key, a space and a word.
    WordAppended,
    /// The test key as the user of `Basic`, without a password.
    BasicUser,
    /// The test key, a comma and a word.
    ListAppended,
    /// The test key with its underscores in percent-encoding.
    Encoded,
    /// The test key without its last four characters.
    Shortened,
    /// The test key under the live prefix.
    OtherPrefix,
    /// The live key under the test prefix.
    LiveKeyOtherPrefix,
    /// The live prefix and random characters.
    UnknownLive,
    /// The test key with another first character after its prefix.
    FirstCharacter,
}

/// One of the three lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum List {
    /// `/v1/charges`
    Charges,
    /// `/v1/invoices`
    Invoices,
    /// `/v1/events`
    Events,
}

impl List {
    /// All lists.
    pub const ALL: [List; 3] = [List::Charges, List::Invoices, List::Events];

    /// Returns the last segment of its path.
    pub fn as_str(self) -> &'static str {
        match self {
            List::Charges => "charges",
            List::Invoices => "invoices",
            List::Events => "events",
        }
    }

    /// Returns the path below the base address.
    pub fn path(self) -> &'static str {
        match self {
            List::Charges => "/v1/charges",
            List::Invoices => "/v1/invoices",
            List::Events => "/v1/events",
        }
    }
}

/// The purpose of a request. With the caller, it identifies the part of the run that sent the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Reads the account and the mode of a key.
    Account,
    /// Expects a 401.
    Refusal,
    /// Expects a success right after a refusal at the same address.
    AfterRefusal,
    /// Sends a HEAD request.
    Head,
    /// Measures the rate limit.
    Burst(Burst),
    /// Reads one page of a list.
    Page(PageRequest),
    /// Reads one event.
    Event {
        /// The requested id.
        id: String,
        /// The owner of the object.
        side: Side,
        /// The number of the comparison between nonexistent and foreign objects, or a special value such as
        /// [`UPPERCASE_ID_ROUND`].
        round: u8,
    },
    /// Reads one charge, invoice or payment link, whose path the operator gave.
    Object {
        /// The kind of object.
        kind: ObjectKind,
        /// The requested id.
        id: String,
        /// The owner of the object.
        side: Side,
        /// The number of the comparison between nonexistent and foreign objects.
        #[serde(default)]
        round: u8,
    },
    /// Observes a choice that the specification leaves open.
    Choice {
        /// The name of the choice.
        #[serde(rename = "what")]
        name: String,
    },
    /// Creates a record. The only purpose with a POST.
    Create,
    /// Reads a page of a list while records are created.
    #[serde(rename = "between")]
    DuringInserts {
        /// The list.
        list: List,
        /// The page, and its position between the creations.
        step: Step,
    },
    /// Reads the events before the first delivery.
    BeforeDeliveries,
    /// Reads the events after the deliveries.
    AfterDeliveries,
    /// Reads the first long page of a list of charges or invoices, shortly before the events after the deliveries.
    ListAfterDeliveries(List),
    /// Reads the event of a delivery.
    DeliveredEvent {
        /// The requested id.
        id: String,
        /// The key: of the delivery's mode, or of the other mode.
        side: Side,
    },
    /// Filters a list by an object of another owner, or by a nonexistent one.
    #[serde(rename = "twin")]
    Filter {
        /// The list.
        list: List,
        /// The filter's name.
        filter: String,
        /// The owner of the filter's value.
        side: Side,
    },
}

impl Purpose {
    /// Returns the HTTP method.
    pub fn method(&self) -> &'static str {
        match self {
            Purpose::Create => "POST",
            Purpose::Head | Purpose::Burst(Burst::Head { .. }) => "HEAD",
            _ => "GET",
        }
    }
}

impl Burst {
    /// The number of the burst that repeats the first one if that was not conclusive. Two more bursts may follow later.
    pub const REPEATED: u8 = 2;
    /// The number of the burst in the minute after the first ones. The limit must hold there, too, and the burst
    /// distinguishes kinds of limiters.
    pub const NEXT_MINUTE: u8 = 3;
    /// The number of the burst at the end of the run, which shows the length of the window.
    pub const CLOSING: u8 = 4;
}

/// A request of a burst. `series`: the number of the burst, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Burst {
    /// A request up to the first refusal.
    #[serde(rename = "shot")]
    UntilRefused {
        /// The number of the burst.
        series: u8,
    },
    /// A request with the live key, concurrent with those of the test key.
    #[serde(rename = "beside")]
    ConcurrentLiveKey {
        /// The number of the burst.
        series: u8,
    },
    /// A request after the first refusal, which repeats a path of the burst.
    Round {
        /// The number of the burst.
        series: u8,
        /// The number of the round.
        round: u8,
    },
    /// A HEAD request after the first refusal, during a round.
    Head {
        /// The number of the round.
        round: u8,
    },
    /// A request with the live key while the test key is refused.
    #[serde(rename = "other_key")]
    LiveKeyAfterRefusal,
    /// A request with the second key of the same account and mode while the test key is refused.
    SecondKey,
    /// A request with the test key right after that with the live key.
    StillRefused,
    /// A request with the test key over a second after a refusal. A token bucket would serve it by then.
    Refill {
        /// The number of the burst.
        series: u8,
    },
    /// A request with the test key during the wait of `Retry-After`.
    #[serde(rename = "midway")]
    DuringWait,
    /// One of the requests with the test key after a wait, which are repeated until one is refused.
    #[serde(rename = "again")]
    RepeatedAfterWait {
        /// The number of the wait.
        round: u8,
    },
    /// A request with the test key after the wait of `Retry-After`.
    #[serde(rename = "waited")]
    AfterRetryAfter {
        /// The length of the wait.
        span: Duration,
    },
}

/// A kind of object with an identifier, other than events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectKind {
    /// A charge.
    Charge,
    /// An invoice.
    Invoice,
    /// A payment link.
    PaymentLink,
}

impl ObjectKind {
    /// All kinds.
    pub const ALL: [ObjectKind; 3] = [ObjectKind::Charge, ObjectKind::Invoice, ObjectKind::PaymentLink];

    /// Returns the list of the kind. `None` for payment links, whose list is not specified.
    pub fn list(self) -> Option<List> {
        match self {
            ObjectKind::Charge => Some(List::Charges),
            ObjectKind::Invoice => Some(List::Invoices),
            ObjectKind::PaymentLink => None,
        }
    }

    /// Returns the name of the kind in JSON and in filters.
    pub fn json_name(self) -> &'static str {
        match self {
            ObjectKind::Charge => "charge",
            ObjectKind::Invoice => "invoice",
            ObjectKind::PaymentLink => "payment_link",
        }
    }

    /// Returns the name of the kind in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            ObjectKind::Charge => "charge",
            ObjectKind::Invoice => "invoice",
            ObjectKind::PaymentLink => "payment link",
        }
    }
}

/// A page that is read while records are created. All small pages have the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// A long page before the first creation.
    #[serde(rename = "whole")]
    LongPageBefore,
    /// The first small page, before the first creation.
    #[serde(rename = "first")]
    FirstPage,
    /// A later page, requested by its number.
    ByNumber {
        /// The number.
        page: u64,
    },
    /// A later page, reached from the first page by `links.next`.
    ByLink {
        /// The page number: one more than the links followed from the first page.
        page: u64,
    },
    /// The first small page of the events of one type, before the first creation.
    FilteredFirstPage,
    /// The second small page of the events of one type, reached from the first by `links.next`, after the creations.
    FilteredByLink,
    /// A long page after the last creation.
    #[serde(rename = "fresh")]
    LongPageAfter,
}

/// The request of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRequest {
    /// The list.
    pub list: List,
    /// The name and value of each filter.
    pub filters: Vec<(String, String)>,
    /// The parameter `page`, if given.
    pub page: Option<u64>,
    /// The parameter `per_page`, if given.
    pub per_page: Option<u64>,
    /// The followed link, if the page was requested by a link.
    pub link: Option<FollowedLink>,
}

impl PageRequest {
    /// Returns `true` if the page size is allowed: 1 to 100, or the default.
    pub fn has_allowed_size(&self) -> bool {
        self.per_page.is_none_or(|size| (1..=100).contains(&size))
    }
}

/// A followed link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowedLink {
    /// The number of the exchange whose response contained it.
    #[serde(rename = "of")]
    pub exchange: u32,
    /// `first`, `last`, `prev` or `next`.
    pub rel: String,
}

/// The owner of an identifier, relative to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The caller itself.
    Own,
    /// No owner: a nonexistent object, requested before the foreign one.
    AbsentBefore,
    /// The other mode of the account.
    Foreign,
    /// No owner: a nonexistent object, requested after the foreign one.
    AbsentAfter,
    /// Another account.
    OtherAccount,
}

impl Exchange {
    /// Returns the response, if there was one.
    pub fn response(&self) -> Option<&ReceivedResponse> {
        match &self.outcome {
            ExchangeOutcome::Answered(response) => Some(response),
            ExchangeOutcome::NoResponse(_) => None,
        }
    }

    /// Returns the status, if there was a response.
    pub fn status(&self) -> Option<u16> {
        self.response().map(|response| response.status)
    }

    /// Returns `false` if the request was not sent, because of an interrupt, the budget, or a server that had stopped
    /// responding.
    pub fn is_sent(&self) -> bool {
        !matches!(&self.outcome, ExchangeOutcome::NoResponse(why) if why.starts_with(NOT_SENT_PREFIX))
    }

    /// Returns `true` if a response started, but violated HTTP or was incomplete.
    pub fn is_malformed(&self) -> bool {
        matches!(&self.outcome, ExchangeOutcome::NoResponse(why) if why.starts_with(MALFORMED_PREFIX))
    }

    /// Returns the list of the created record, if this request created one.
    pub fn created_in(&self) -> Option<List> {
        let is_created = self.status().is_some_and(|status| (200..300).contains(&status));
        List::ALL
            .into_iter()
            .find(|list| is_created && self.purpose == Purpose::Create && self.target.ends_with(list.path()))
    }

    /// Returns the HTTP method.
    pub fn method(&self) -> &'static str {
        self.purpose.method()
    }

    /// Returns a short description of the outcome.
    pub fn summary(&self) -> String {
        match &self.outcome {
            ExchangeOutcome::Answered(response) if response.body.is_empty() => {
                format!("{} with an empty body", response.status)
            }
            ExchangeOutcome::Answered(response) => format!("{} {}", response.status, shorten(&response.body)),
            ExchangeOutcome::NoResponse(why) => format!("no response: {why}"),
        }
    }
}

impl Recording {
    /// Returns the command-line option that excluded a part.
    pub fn exclusion_option(&self, part: Part) -> String {
        match self.no_burst.as_deref() {
            Some(NO_BURST_QUICK) if part == Part::Burst => "--quick".to_owned(),
            _ => format!("--without {}", part.as_str()),
        }
    }

    /// Returns the last exchange that matches. A refused request may have been retried, so the last one counts.
    pub fn find_last(&self, matches: impl Fn(&Exchange) -> bool) -> Option<&Exchange> {
        self.exchanges.iter().rev().find(|exchange| matches(exchange))
    }

    /// Returns the exchange with this number.
    pub fn exchange(&self, number: u32) -> Option<&Exchange> {
        self.exchanges.iter().find(|exchange| exchange.number == number)
    }

    /// Returns the last account request of a mode's key.
    pub fn account_exchange(&self, mode: Mode) -> Option<&Exchange> {
        self.find_last(|exchange| {
            exchange.purpose == Purpose::Account && exchange.caller == Caller::Own(mode)
        })
    }
}

/// The start of the reason of [`ExchangeOutcome::NoResponse`] for a request that was not sent.
pub const NOT_SENT_PREFIX: &str = "not asked:";
/// The start of the reason of [`ExchangeOutcome::NoResponse`] for an incomplete or invalid HTTP response.
pub const MALFORMED_PREFIX: &str = "malformed response:";

/// Shortens text to one line of a report.
pub fn shorten(text: &str) -> String {
    const LINE_MAX: usize = 120;
    let line: String = text
        .chars()
        .map(|character| if character.is_control() { ' ' } else { character })
        .take(LINE_MAX)
        .collect();
    if line.len() < text.len() { format!("{line}…") } else { line }
}
