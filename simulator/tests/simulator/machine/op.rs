//! The operations of the state-machine test: an action of one client, sightings of one moment, or passing time.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use reference_core::{
    asset::{Asset, Currency},
    event::EventType,
    mode::Mode,
    money::Coin,
    sighting::{Depth, Gone, Sighting},
    time::Span,
};
use simulator::{
    model::{List, Pricing, money},
    record::BookId,
};

use super::state::MEMBER;

/// The name of an object, assigned at its creation: `c3` stays `c3` when earlier operations are removed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name(pub(super) char, pub(super) u32);

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.0, self.1)
    }
}

/// The caller: a key of this book, or the owner in the dashboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Key(BookId),
    Owner,
}

/// The recipient of an invoice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    Missing,
    Outsider,
    Member,
}

impl Reader {
    pub(super) fn email(self) -> Option<&'static str> {
        match self {
            Reader::Missing => None,
            Reader::Outsider => Some("eve@shop.example"),
            Reader::Member => Some(MEMBER),
        }
    }
}

/// A sighting: the state of one output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Sighted {
    /// The charge whose address is paid.
    pub(super) charge: Name,
    pub(super) txid: u32,
    pub(super) output: u32,
    /// The amount in the coin's smallest units.
    pub(super) units: u128,
    pub(super) depth: Depth,
    /// The mismatch with the charge, if any.
    pub(super) astray: Astray,
}

impl Sighted {
    /// Returns the sighting for a charge in this coin and this book.
    pub(super) fn sighting(&self, asset: Asset, home: BookId, address: &str, heights: &Heights) -> Sighting {
        let (mut mode, mut coin) = (home.1, asset);
        match self.astray {
            Astray::No => {}
            Astray::Coin => coin = if asset == Asset::Usdt { Asset::Eth } else { Asset::Usdt },
            Astray::Mode => mode = if mode == Mode::Live { Mode::Test } else { Mode::Live },
        }
        Sighting {
            mode,
            asset: coin,
            address: address.to_owned(),
            txid: format!("t{}", self.txid),
            output: self.output,
            amount: Coin::new(self.units * money::atto_per_unit(asset)).expect("an amount"),
            depth: self.depth,
            height: height(heights, mode, coin),
        }
    }
}

/// The heights of the chains; 0 for a chain without new blocks.
pub(super) type Heights = BTreeMap<(Mode, Asset), u64>;

pub(super) fn height(heights: &Heights, mode: Mode, asset: Asset) -> u64 {
    heights.get(&(mode, asset)).copied().unwrap_or(0)
}

/// The reason why a transfer to the address of a charge does not belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Astray {
    No,
    /// Another coin at the same address.
    Coin,
    /// The chain of the other mode.
    Mode,
}

impl fmt::Debug for Sighted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sighted { charge, txid, output, units, depth, astray } = self;
        write!(f, "t{txid}/{output} {units} units to {charge:?} ")?;
        match depth {
            Depth::Confirmations(0) => write!(f, "in mempool"),
            Depth::Confirmations(n) => write!(f, "{n} deep"),
            Depth::Gone(why) => write!(f, "{}", why.as_str()),
        }?;
        if *astray == Astray::No { Ok(()) } else { write!(f, ", wrong {astray:?}") }
    }
}

/// The response of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Status(u16),
    Silence,
    NoConnection,
}

impl Answer {
    pub(super) fn is_success(self) -> bool {
        matches!(self, Answer::Status(200..=299))
    }
}

/// The index of a delivery in its book.
pub(super) type Nth = usize;

/// An operation.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Op {
    /// Time passes, and the service is woken whenever a lock ends.
    Wait(Span),
    /// Time passes, and the service is woken only at the end.
    Oversleep(Span),
    /// Time passes to this number of microseconds after the end of a lock.
    LockEnd {
        of: Name,
        off: i64,
    },
    Rate {
        asset: Asset,
        currency: Currency,
        units: Option<u64>,
    },
    Bounds {
        account: usize,
        tolerance: u32,
        threshold: u32,
    },
    /// A chain grows by this number of blocks.
    Blocks {
        mode: Mode,
        asset: Asset,
        blocks: u64,
    },
    Restart,
    /// A key is revoked, and a new one created.
    NewKey(BookId),

    Open {
        name: Name,
        who: BookId,
        asset: Asset,
        cents: u64,
        currency: Currency,
        link: Option<Name>,
        /// The number of answers to the custom field of a link.
        answers: u8,
        once: Option<u8>,
    },
    Cancel {
        by: By,
        charge: Name,
        once: Option<u8>,
    },
    Refund {
        who: BookId,
        charge: Name,
        units: u128,
        /// The transaction of the refund.
        txid: Option<u32>,
        once: Option<u8>,
    },
    Accept {
        charge: Name,
        txid: Option<u32>,
    },
    Issue {
        name: Name,
        who: BookId,
        cents: u64,
        reader: Reader,
        send: bool,
        once: Option<u8>,
    },
    Send {
        by: By,
        invoice: Name,
    },
    Void {
        by: By,
        invoice: Name,
    },
    View {
        invoice: Name,
    },
    Choose {
        name: Name,
        invoice: Name,
        asset: Asset,
    },
    MakeLink {
        name: Name,
        who: BookId,
        pricing: Pricing,
        only: Option<Asset>,
        max: Option<u32>,
        lasts: Option<Span>,
        /// `None` without a custom field; otherwise whether it is required.
        asks: Option<bool>,
    },
    Archive {
        who: BookId,
        link: Name,
        on: bool,
    },
    Limit {
        who: BookId,
        link: Name,
        max: Option<u32>,
    },
    ViewLink {
        link: Name,
    },
    PayLink {
        name: Name,
        link: Name,
        asset: Asset,
        cents: Option<u64>,
        answers: u8,
    },

    /// The sightings of one moment.
    Tell(Vec<Sighted>),

    /// Adds an endpoint for the types at the set bits of the list of thirteen.
    Hook {
        name: Name,
        of: BookId,
        kinds: u16,
    },
    Choices {
        hook: Name,
        kinds: u16,
    },
    Switch {
        hook: Name,
        on: bool,
    },
    Unhook {
        hook: Name,
    },
    Rotate {
        hook: Name,
    },
    Test {
        hook: Name,
    },
    Resend {
        of: BookId,
        delivery: Nth,
    },
    /// Posts the first due delivery and returns a response.
    Post(Answer),
    /// Posts all due deliveries.
    PostAll(Answer),
    /// Posts the first due delivery, without a response yet.
    Take,
    Land {
        of: BookId,
        delivery: Nth,
        answer: Answer,
    },
    /// Posts until no delivery is waiting.
    Exhaust(Answer),

    /// Reads the next page of a list by its link; page 1 if no reading is in progress.
    Turn {
        who: BookId,
        list: List,
        per_page: usize,
    },
    /// Reads a page by its number.
    Number {
        who: BookId,
        list: List,
        per_page: usize,
        page: usize,
    },
}

/// The reasons why a transaction disappears.
pub(super) const GONE: [Gone; 3] = [Gone::DoubleSpent, Gone::Replaced, Gone::Dropped];

impl Op {
    /// Returns the highest number of an object or transaction that it creates; both are numbered together.
    pub(super) fn number(&self) -> Option<u32> {
        match self {
            Op::Open { name, .. }
            | Op::Issue { name, .. }
            | Op::Choose { name, .. }
            | Op::MakeLink { name, .. }
            | Op::PayLink { name, .. }
            | Op::Hook { name, .. } => Some(name.1),
            Op::Tell(sightings) => sightings.iter().map(|notice| notice.txid).max(),
            _ => None,
        }
    }

    /// Returns the idempotency key.
    pub(super) fn once(&self) -> Option<u8> {
        match self {
            Op::Open { once, .. }
            | Op::Cancel { by: By::Key(_), once, .. }
            | Op::Refund { once, .. }
            | Op::Issue { once, .. } => *once,
            _ => None,
        }
    }

    /// Returns simpler operations for shrinking. No chain of them leads back to this one.
    pub(super) fn plainer(&self) -> Vec<Op> {
        let mut other = self.clone();
        match &mut other {
            Op::Open { once, .. } | Op::Cancel { once, .. } | Op::Refund { once, .. } if once.is_some() => {
                *once = None;
            }
            Op::Issue { once, send, .. } if once.is_some() || *send => (*once, *send) = (None, false),
            Op::LockEnd { of, off } => {
                let end = Op::LockEnd { of: *of, off: 0 };
                let sooner = Op::Wait(Span::mins(5));
                return if *off == 0 { vec![sooner] } else { vec![sooner, end] };
            }
            Op::Refund { txid, .. } if txid.is_some() => *txid = None,
            Op::Oversleep(span) => other = Op::Wait(*span),
            Op::Tell(sightings) if sightings.len() > 1 => {
                let without = |word: usize| {
                    let mut fewer = sightings.clone();
                    fewer.remove(word);
                    Op::Tell(fewer)
                };
                return (0..sightings.len()).rev().map(without).collect();
            }
            _ => return Vec::new(),
        }
        vec![other]
    }
}

/// The label of the custom field of links.
pub(super) const QUESTION: &str = "Size";

/// Returns the labels of this number of answers.
pub(super) fn labels(answers: u8) -> Vec<String> {
    (0..answers).map(|_| QUESTION.to_owned()).collect()
}

/// Returns the event types at the set bits of the list of thirteen.
pub(super) fn types(kinds: u16) -> BTreeSet<String> {
    let all = EventType::ALL.into_iter().enumerate();
    all.filter(|(no, _)| kinds & (1 << no) != 0).map(|(_, kind)| kind.as_str().to_owned()).collect()
}
