//! The operations of the state-machine test: one act of one person, sightings of one moment, or time.

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
    witness::BookId,
};

use super::state::MEMBER;

/// An object, by the name it got when it was made: `c3` stays `c3` when the operations before it are left out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name(pub(super) char, pub(super) u32);

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.0, self.1)
    }
}

/// Who acts on an object: somebody with a key of this book, or its owner in the dashboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Key(BookId),
    Owner,
}

/// To whom an invoice is mailed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    Nobody,
    Stranger,
    Member,
}

impl Reader {
    pub(super) fn email(self) -> Option<&'static str> {
        match self {
            Reader::Nobody => None,
            Reader::Stranger => Some("eve@shop.example"),
            Reader::Member => Some(MEMBER),
        }
    }
}

/// One word of a watcher: how one output stands now.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Sighted {
    /// To whose address.
    pub(super) charge: Name,
    pub(super) txid: u32,
    pub(super) output: u32,
    /// In the coin's smallest units.
    pub(super) units: u128,
    pub(super) depth: Depth,
    /// What is not as it should be.
    pub(super) astray: Astray,
}

impl Sighted {
    /// What watchers say, of a charge in this coin and this book.
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

/// The heights of the chains; 0 where no block came.
pub(super) type Heights = BTreeMap<(Mode, Asset), u64>;

pub(super) fn height(heights: &Heights, mode: Mode, asset: Asset) -> u64 {
    heights.get(&(mode, asset)).copied().unwrap_or(0)
}

/// A transfer may reach an address and still not be the charge's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Astray {
    No,
    /// Another coin on the same address.
    Coin,
    /// The other mode's chain.
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

/// How a receiver answers.
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

/// The nth delivery of a book, from 0.
pub(super) type Nth = usize;

/// One thing that happens.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Op {
    /// Time passes, and the service is woken when locks end.
    Wait(Span),
    /// Time passes, and the service is woken at the end only.
    Oversleep(Span),
    /// Time passes to so many microseconds after the end of a lock.
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
    /// So many blocks come on a chain.
    Blocks {
        mode: Mode,
        asset: Asset,
        blocks: u64,
    },
    Restart,
    /// A key is revoked, and another one made.
    NewKey(BookId),

    Open {
        name: Name,
        who: BookId,
        asset: Asset,
        cents: u64,
        currency: Currency,
        link: Option<Name>,
        /// How often the question of a link is answered.
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
        /// The transaction that the refund names.
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
        /// Whether it asks something, and whether that must be answered.
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

    /// What watchers say in one breath.
    Tell(Vec<Sighted>),

    /// An endpoint for the types whose places in the list of thirteen are set.
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
    /// The first delivery that is due is posted, and answered.
    Post(Answer),
    /// All that are due.
    PostAll(Answer),
    /// The first delivery that is due is posted, and nothing comes back yet.
    Take,
    Land {
        of: BookId,
        delivery: Nth,
        answer: Answer,
    },
    /// Everything is tried until nothing waits any more.
    Exhaust(Answer),

    /// The next page of a list that is being read; page 1 if none is.
    Turn {
        who: BookId,
        list: List,
        per_page: usize,
    },
    /// A page by its number, as who counts up reads it.
    Number {
        who: BookId,
        list: List,
        per_page: usize,
        page: usize,
    },
}

/// Why something is gone.
pub(super) const GONE: [Gone; 3] = [Gone::DoubleSpent, Gone::Replaced, Gone::Dropped];

impl Op {
    /// The highest number in what it makes: names and transactions count together.
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

    /// The idempotency key.
    pub(super) fn once(&self) -> Option<u8> {
        match self {
            Op::Open { once, .. }
            | Op::Cancel { by: By::Key(_), once, .. }
            | Op::Refund { once, .. }
            | Op::Issue { once, .. } => *once,
            _ => None,
        }
    }

    /// Operations that do less, for who looks for the shortest story. None leads back here.
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

/// What links ask.
pub(super) const QUESTION: &str = "Size";

/// The labels of so many answers.
pub(super) fn labels(answers: u8) -> Vec<String> {
    (0..answers).map(|_| QUESTION.to_owned()).collect()
}

/// The types of events whose places in the list of thirteen are set.
pub(super) fn types(kinds: u16) -> BTreeSet<String> {
    let all = EventType::ALL.into_iter().enumerate();
    all.filter(|(no, _)| kinds & (1 << no) != 0).map(|(_, kind)| kind.as_str().to_owned()).collect()
}
