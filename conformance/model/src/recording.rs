//! The recording: every exchange of a run, without the keys.
//!
//! The judge reads nothing else, so a recording can be judged again later, by newer checks.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::body::Body;
use crate::deliveries::Deliveries;
use crate::words::{Mode, Part};

/// Rises when an older reader would misread a recording.
pub const FORMAT: u32 = 2;

/// The reason why a quick run has no burst.
pub const NO_BURST_QUICK: &str = "--quick leaves it out";

/// Everything a run asked and was answered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recording {
    /// The version of this format.
    pub format: u32,
    /// The base address that was asked.
    pub base: String,
    /// The prefix of keys, before `_live_` or `_test_`.
    pub key_prefix: String,
    /// The parts that the operator left out.
    pub without: BTreeSet<Part>,
    /// The reason why there was no burst, if there was none.
    pub no_burst: Option<String>,
    /// The source of records that are created while the suite pages.
    // The name in recordings that were kept before.
    #[serde(default, rename = "inserting")]
    pub inserts: Inserts,
    /// The exchanges in the order they were sent.
    pub exchanges: Vec<Exchange>,
    /// The deliveries of the target, if a receiver was set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliveries: Option<Deliveries>,
}

/// The source of records that are created while the suite pages, and its faults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inserts {
    /// The options that did it.
    pub by: Vec<String>,
    /// The reasons why it created no records, as far as they are known.
    pub faults: Vec<String>,
}

/// One request and how it ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Exchange {
    /// Counts from 1.
    pub number: u32,
    /// The caller.
    pub caller: Caller,
    /// The purpose.
    pub purpose: Purpose,
    /// Path and query as sent.
    pub target: String,
    /// The time of sending by the target's clock, since the start of the run.
    pub sent: Duration,
    /// The time at which it ended.
    pub ended: Duration,
    /// The ending.
    pub ending: Ending,
}

/// The ending of a request: answered, or the reason why not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// With an answer.
    Answered(Answer),
    /// Without one; the text says why.
    Lost(String),
}

/// An answer as it came over the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The header fields in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body. Bytes that are not UTF-8 are replaced.
    pub body: Body,
}

impl Answer {
    /// The first value of a header field.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }
}

/// The key that a request carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Caller {
    /// The account's own key of a mode.
    Own(Mode),
    /// A second key of the test key's account and mode.
    Second,
    /// A key of another account.
    OtherAccount,
    /// A revoked key.
    Revoked,
    /// No `Authorization` header at all.
    Nobody,
    /// Something that is not a key.
    Forged(Forgery),
}

/// The round in which an event is asked for with its id in capital letters.
pub const RESPELLED: u8 = 8;

/// A token that is not a key, although it may look like one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Forgery {
    /// `Bearer` and nothing else.
    EmptyBearer,
    /// The test key under the scheme `Token`.
    OtherScheme,
    /// The test key under the scheme `Basic`.
    BasicScheme,
    /// The real test key without any scheme.
    NoScheme,
    /// The right prefix and made-up characters.
    Unknown,
    /// The test key with another last character.
    LastCharacter,
    /// The test key with its letters in the other case.
    LetterCase,
    /// The test key and one more character.
    Appended,
    /// The test key, a blank and a word.
    WordAppended,
    /// The test key, a comma and a word.
    ListAppended,
    /// The test key with its underscores in percent-encoding.
    Encoded,
    /// The test key without its last four characters.
    Shortened,
    /// The test key under the live prefix.
    OtherPrefix,
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
    /// All three.
    pub const ALL: [List; 3] = [List::Charges, List::Invoices, List::Events];

    /// The last segment of its path.
    pub fn word(self) -> &'static str {
        match self {
            List::Charges => "charges",
            List::Invoices => "invoices",
            List::Events => "events",
        }
    }

    /// The path below the base address.
    pub fn path(self) -> &'static str {
        match self {
            List::Charges => "/v1/charges",
            List::Invoices => "/v1/invoices",
            List::Events => "/v1/events",
        }
    }
}

/// The purpose of a request. Together with the caller it places the request in the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// To learn the account and the mode of a key.
    Account,
    /// To be refused with 401.
    Refusal,
    /// To be served right after a refusal at the same address.
    AfterRefusal,
    /// To see only the head of an answer: the method is HEAD.
    Head,
    /// To find where the limit is.
    Burst(Burst),
    /// To read one page of a list.
    Page(PageAsk),
    /// To read one event.
    Event {
        /// The id that was asked for.
        id: String,
        /// The existence of the object: here, in the other mode, or nowhere.
        side: Side,
        /// The comparison of absent and foreign that it belongs to.
        round: u8,
    },
    /// To learn an event of the other account.
    OtherEvents,
    /// To read one charge, invoice or payment link, whose path the operator named.
    Object {
        /// The kind of object.
        kind: Kind,
        /// The id that was asked for.
        id: String,
        /// The existence of the object: here, in the other mode, or nowhere.
        side: Side,
        /// The comparison of absent and foreign that it belongs to.
        #[serde(default)]
        round: u8,
    },
    /// To see what was chosen where the specification leaves a choice.
    Choice {
        /// The name of the choice.
        what: String,
    },
    /// To create a record: the only thing that is posted.
    Create,
    /// To read a page of a list while records are created.
    #[serde(rename = "between")]
    DuringInserts {
        /// The list.
        list: List,
        /// The step of the walk: the page and its time.
        step: Step,
    },
    /// To learn which events there were before any was delivered to us.
    BeforeDeliveries,
    /// To learn which events there are once deliveries have come.
    AfterDeliveries,
    /// To read the event that a delivery names.
    DeliveredEvent {
        /// The id that was asked for.
        id: String,
        /// With the key of the mode that the delivery names, or of the other.
        side: Side,
    },
    /// To filter a list by something the key may not see.
    Twin {
        /// The list.
        list: List,
        /// The filter's name.
        filter: String,
        /// The existence of the filter's value: here, in the other mode, or nowhere.
        side: Side,
    },
}

impl Purpose {
    /// The method that serves it.
    pub fn method(&self) -> &'static str {
        match self {
            Purpose::Create => "POST",
            Purpose::Head | Purpose::Burst(Burst::Head { .. }) => "HEAD",
            _ => "GET",
        }
    }
}

impl Burst {
    /// The number of the burst of the next minute.
    pub const SETTLING: u8 = 3;
    /// The number of the burst at the end of the run, which shows how long a window lasts.
    pub const CLOSING: u8 = 4;
}

/// A place in a burst. `series` counts bursts from 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Burst {
    /// On the way to the first refusal.
    Shot {
        /// The number of the burst.
        series: u8,
    },
    /// The live key, at the same moment as shots of the test key.
    Beside {
        /// The number of the burst.
        series: u8,
    },
    /// After the first refusal: every path of the burst once more.
    Round {
        /// The number of the burst.
        series: u8,
        /// The number of the round.
        round: u8,
    },
    /// After the first refusal, beside a round: a HEAD request.
    Head {
        /// Which round.
        round: u8,
    },
    /// The live key, while the test key is refused.
    OtherKey,
    /// The second key of the test key's account and mode, while the test key is refused.
    SecondKey,
    /// The test key, right after the live one.
    StillRefused,
    /// The test key, more than a second after a refusal: a bucket that refills would serve it by then.
    Refill {
        /// The burst that was refused.
        series: u8,
    },
    /// The test key, while the wait that `Retry-After` asked for lasts.
    Midway,
    /// The test key, as often as it is served once a wait is over.
    Again {
        /// The number of the wait.
        round: u8,
    },
    /// The test key, after the wait that `Retry-After` asked for.
    Waited {
        /// The length of the wait.
        span: Duration,
    },
}

/// An object that has an identifier of its own, beside events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A charge.
    Charge,
    /// An invoice.
    Invoice,
    /// A payment link.
    PaymentLink,
}

impl Kind {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Charge => "charge",
            Kind::Invoice => "invoice",
            Kind::PaymentLink => "payment link",
        }
    }
}

/// A place in the reading of a list during which records are created. Pages are of the size of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// A long page before anything is created: what is there.
    Whole,
    /// The first small page, before anything is created.
    First,
    /// A later page, asked for by its number.
    ByNumber {
        /// The number.
        page: u64,
    },
    /// A later page, reached from the first by `links.next`.
    ByLink {
        /// The number of links that lead there.
        page: u64,
    },
    /// A long page after everything was created.
    Fresh,
}

/// A page that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageAsk {
    /// The list.
    pub list: List,
    /// Name and value of each filter.
    pub filters: Vec<(String, String)>,
    /// The page number, if it was named.
    pub page: Option<u64>,
    /// The size, if it was named.
    pub per_page: Option<u64>,
    /// The link that was followed instead of naming page and size.
    pub link: Option<Link>,
}

impl PageAsk {
    /// Returns `true` if the specification promises to serve it, should such a page exist: a size from 1 to 100.
    pub fn is_allowed(&self) -> bool {
        self.per_page.is_none_or(|size| (1..=100).contains(&size))
    }
}

/// A followed link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The exchange whose answer held it.
    pub of: u32,
    /// `first`, `last`, `prev` or `next`.
    pub rel: String,
}

/// To whom an identifier belongs, seen from the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The key's own.
    Own,
    /// An object that does not exist; requested before the foreign one.
    AbsentBefore,
    /// The other mode's.
    Foreign,
    /// An object that does not exist; requested after the foreign one.
    AbsentAfter,
    /// Another account's.
    OtherAccount,
}

impl Exchange {
    /// The answer, if there was one.
    pub fn answer(&self) -> Option<&Answer> {
        match &self.ending {
            Ending::Answered(answer) => Some(answer),
            Ending::Lost(_) => None,
        }
    }

    /// The status, if there was an answer.
    pub fn status(&self) -> Option<u16> {
        self.answer().map(|answer| answer.status)
    }

    /// Returns false if the request was not sent, because the run had been interrupted or the server was silent.
    pub fn is_asked(&self) -> bool {
        !matches!(&self.ending, Ending::Lost(why) if why.starts_with(NOT_ASKED))
    }

    /// The list that a record was created in, if this request created one.
    pub fn created_in(&self) -> Option<List> {
        let is_created = self.status().is_some_and(|status| (200..300).contains(&status));
        List::ALL
            .into_iter()
            .find(|list| is_created && self.purpose == Purpose::Create && self.target.ends_with(list.path()))
    }

    /// The method it was asked by.
    pub fn method(&self) -> &'static str {
        self.purpose.method()
    }

    /// Returns the ending in a few words.
    pub fn summary(&self) -> String {
        match &self.ending {
            Ending::Answered(answer) if answer.body.is_empty() => {
                format!("{} with an empty body", answer.status)
            }
            Ending::Answered(answer) => format!("{} {}", answer.status, shorten(&answer.body)),
            Ending::Lost(why) => format!("no answer: {why}"),
        }
    }
}

impl Recording {
    /// The option that leaves a part out.
    pub fn left_out_by(&self, part: Part) -> String {
        match self.no_burst.as_deref() {
            Some(NO_BURST_QUICK) if part == Part::Burst => "--quick".to_owned(),
            _ => format!("--without {}", part.word()),
        }
    }

    /// The last exchange that fits. The last, since a refused request may have been asked again.
    pub fn last(&self, fits: impl Fn(&Exchange) -> bool) -> Option<&Exchange> {
        self.exchanges.iter().rev().find(|it| fits(it))
    }

    /// The exchange of that number.
    pub fn exchange(&self, number: u32) -> Option<&Exchange> {
        self.exchanges.iter().find(|it| it.number == number)
    }

    /// Returns the answer to a key of a mode that requested its account.
    pub fn account(&self, mode: Mode) -> Option<&Exchange> {
        self.last(|it| it.purpose == Purpose::Account && it.caller == Caller::Own(mode))
    }
}

/// The beginning of the reason why a request that was not sent has no answer.
pub const NOT_ASKED: &str = "not asked:";

/// A body fits on one line of a report.
pub fn shorten(text: &str) -> String {
    const LINE_MAX: usize = 120;
    let line: String = text.chars().map(|it| if it.is_control() { ' ' } else { it }).take(LINE_MAX).collect();
    if line.len() < text.len() { format!("{line}…") } else { line }
}
