//! What can happen: one deed of one person, one breath of a watcher, or time.

use std::fmt;

use reference_core::{
    asset::{Asset, Currency},
    mode::Mode,
    sighting::{Depth, Gone},
    time::Span,
};

/// An object, by the name it got when it was made: `c3` stays `c3` when the deeds before it are left out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name(pub(crate) char, pub(crate) u32);

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.0, self.1)
    }
}

/// A book: one account in one mode. Whoever holds a key of it acts there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(pub(crate) usize);

impl Place {
    pub(crate) const ALL: [Place; 4] = [Place(0), Place(1), Place(2), Place(3)];

    pub(crate) fn account(self) -> usize {
        self.0 / 2
    }

    pub(crate) fn mode(self) -> Mode {
        Mode::ALL[self.0 % 2]
    }
}

/// The two accounts.
pub(crate) const ACCOUNTS: [&str; 2] = ["acme", "bolt"];

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", ACCOUNTS[self.account()], self.mode())
    }
}

/// Who acts on an object: somebody with a key of this book, or its owner in the dashboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Key(Place),
    Owner,
}

/// To whom an invoice is mailed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    Nobody,
    Stranger,
    Member,
}

/// The price of a payment link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pricing {
    Fixed(u64),
    Open { min: u64, max: u64 },
}

/// A list that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Read {
    Charges,
    Invoices,
    Links,
    Events,
}

impl Read {
    pub(crate) const ALL: [Read; 4] = [Read::Charges, Read::Invoices, Read::Links, Read::Events];

    pub(crate) fn path(self) -> &'static str {
        match self {
            Read::Charges => "/v1/charges",
            Read::Invoices => "/v1/invoices",
            Read::Links => "/v1/payment-links",
            Read::Events => "/v1/events",
        }
    }
}

/// One word of a watcher: how one output stands now.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Notice {
    /// To whose address.
    pub(crate) charge: Name,
    pub(crate) txid: u32,
    pub(crate) output: u32,
    /// In the coin's smallest units.
    pub(crate) units: u128,
    pub(crate) depth: Depth,
    /// What is not as it should be.
    pub(crate) astray: Astray,
}

/// A transfer may reach an address and still not be the charge's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Astray {
    No,
    /// Another coin on the same address.
    Coin,
    /// The other mode's chain.
    Mode,
}

impl fmt::Debug for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Notice { charge, txid, output, units, depth, astray } = self;
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
pub(crate) enum Answer {
    Status(u16),
    Silence,
    NoConnection,
}

impl Answer {
    pub(crate) fn is_success(self) -> bool {
        matches!(self, Answer::Status(200..=299))
    }
}

/// The nth delivery of a book, from 0.
pub(crate) type Nth = usize;

/// One thing that happens.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Deed {
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
    Restart,
    /// A key is revoked, and another one made.
    NewKey(Place),

    Open {
        name: Name,
        who: Place,
        asset: Asset,
        cents: u64,
        currency: Currency,
        link: Option<Name>,
        once: Option<u8>,
    },
    Cancel {
        by: By,
        charge: Name,
        once: Option<u8>,
    },
    Refund {
        who: Place,
        charge: Name,
        units: u128,
        once: Option<u8>,
    },
    Accept {
        charge: Name,
        txid: Option<u32>,
    },
    Issue {
        name: Name,
        who: Place,
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
        who: Place,
        pricing: Pricing,
        only: Option<Asset>,
        max: Option<u32>,
        lasts: Option<Span>,
    },
    Archive {
        who: Place,
        link: Name,
        on: bool,
    },
    Limit {
        who: Place,
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
    },

    /// What watchers say in one breath.
    Tell(Vec<Notice>),

    /// An endpoint for the types whose places in the list of thirteen are set.
    Hook {
        name: Name,
        of: Place,
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
        of: Place,
        delivery: Nth,
    },
    /// The first delivery that is due is posted, and answered.
    Post(Answer),
    /// All that are due.
    PostAll(Answer),
    /// The first delivery that is due is posted, and nothing comes back yet.
    Take,
    Land {
        of: Place,
        delivery: Nth,
        answer: Answer,
    },
    /// Everything is tried until nothing waits any more.
    Exhaust(Answer),

    /// The next page of a list that is being read; page 1 if none is.
    Turn {
        who: Place,
        list: Read,
        per_page: usize,
    },
    /// A page by its number, as who counts up reads it.
    Number {
        who: Place,
        list: Read,
        per_page: usize,
        page: usize,
    },
}

/// Why something is gone.
pub(crate) const GONE: [Gone; 3] = [Gone::DoubleSpent, Gone::Replaced, Gone::Dropped];

impl Deed {
    /// The highest number in what it makes: names and transactions count together.
    pub(crate) fn number(&self) -> Option<u32> {
        match self {
            Deed::Open { name, .. }
            | Deed::Issue { name, .. }
            | Deed::Choose { name, .. }
            | Deed::MakeLink { name, .. }
            | Deed::PayLink { name, .. }
            | Deed::Hook { name, .. } => Some(name.1),
            Deed::Tell(notices) => notices.iter().map(|notice| notice.txid).max(),
            _ => None,
        }
    }

    /// Deeds that do less, for who looks for the shortest story. None leads back here.
    pub(crate) fn plainer(&self) -> Vec<Deed> {
        let mut other = self.clone();
        match &mut other {
            Deed::Open { once, .. } | Deed::Cancel { once, .. } | Deed::Refund { once, .. }
                if once.is_some() =>
            {
                *once = None;
            }
            Deed::Issue { once, send, .. } if once.is_some() || *send => (*once, *send) = (None, false),
            Deed::LockEnd { of, off } => {
                let end = Deed::LockEnd { of: *of, off: 0 };
                let sooner = Deed::Wait(Span::mins(5));
                return if *off == 0 { vec![sooner] } else { vec![sooner, end] };
            }
            Deed::Oversleep(span) => other = Deed::Wait(*span),
            Deed::Tell(notices) if notices.len() > 1 => {
                let without = |word: usize| {
                    let mut fewer = notices.clone();
                    fewer.remove(word);
                    Deed::Tell(fewer)
                };
                return (0..notices.len()).rev().map(without).collect();
            }
            _ => return Vec::new(),
        }
        vec![other]
    }
}
