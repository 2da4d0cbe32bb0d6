//! How everything must be: plain values and exact sums, by the specification and the contract.
//!
//! Charges and money are the simulator's own model, which was written apart from the service; books, invoices, links,
//! lists, repeated requests and deliveries are here. Nothing of the service is asked for what is right; only the table of
//! coins, with their decimals and confirmations, is the same.

use std::collections::BTreeMap;
use std::fmt;

use reference_core::{
    asset::{Asset, Currency},
    mode::Mode,
    time::{Span, Timestamp},
};
use simulator::model::{Charge, Status};

use crate::deed::{Answer, Deed, Name, Place, Pricing, Read, Reader};

/// 2026-09-20T10:00:00Z.
pub(crate) const OPENING: Timestamp = Timestamp(1_789_898_400_000_000);
/// A year that begins there is more than a log keeps: worlds end before.
pub(crate) const LONGEST: Span = Span::days(25);
/// An answer is kept for so long.
pub(crate) const ANSWER_KEPT: Span = Span::hours(24);

/// What somebody must be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nobody asked.
    Nothing,
    Status(u16),
    /// The same as the nth answer that was kept.
    Replay(usize),
}

/// What something happened to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The nth charge of the book.
    Charge(usize),
    /// The nth invoice of the book.
    Invoice(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Details {
    None,
    Transfer { txid: String, units: u128 },
    Refund { units: u128 },
    Reason(&'static str),
}

#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) at: Timestamp,
    pub(crate) kind: &'static str,
    pub(crate) subject: Subject,
    pub(crate) details: Details,
    /// The subject as it was then, as deliveries show it.
    pub(crate) then: Then,
}

/// What a delivery shows of a charge or an invoice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Then {
    pub(crate) status: &'static str,
    /// What a charge had received, in smallest units.
    pub(crate) received: u128,
    /// What the charges of an invoice were.
    pub(crate) charges: Vec<&'static str>,
}

#[derive(Clone)]
pub(crate) struct ChargeOf {
    pub(crate) asset: Asset,
    pub(crate) cents: u64,
    pub(crate) currency: Currency,
    pub(crate) rate: u64,
    pub(crate) opened: Timestamp,
    pub(crate) link: Option<usize>,
    pub(crate) invoice: Option<usize>,
    pub(crate) refunds: Vec<u128>,
    pub(crate) it: Charge,
    /// The timer of its lock has gone off.
    pub(crate) rang: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paper {
    Open,
    Paid,
    Void,
}

impl Paper {
    pub(crate) const ALL: [Paper; 3] = [Paper::Open, Paper::Paid, Paper::Void];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Paper::Open => "open",
            Paper::Paid => "paid",
            Paper::Void => "void",
        }
    }
}

#[derive(Clone)]
pub(crate) struct InvoiceOf {
    pub(crate) cents: u64,
    pub(crate) reader: Reader,
    pub(crate) issued: Timestamp,
    pub(crate) status: Paper,
    pub(crate) charges: Vec<usize>,
    pub(crate) sent_at: Option<Timestamp>,
    pub(crate) viewed_at: Option<Timestamp>,
    pub(crate) paid_at: Option<Timestamp>,
    pub(crate) voided_at: Option<Timestamp>,
}

#[derive(Clone)]
pub(crate) struct LinkOf {
    pub(crate) pricing: Pricing,
    pub(crate) only: Option<Asset>,
    pub(crate) max: Option<u32>,
    pub(crate) ends: Option<Timestamp>,
    pub(crate) archived: bool,
    pub(crate) views: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    On,
    Off,
    Gone,
}

#[derive(Clone)]
pub(crate) struct Hook {
    pub(crate) kinds: u16,
    pub(crate) switch: Switch,
    pub(crate) failed_in_a_row: u32,
    /// Which secret of the book it has.
    pub(crate) secret: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Waiting(Timestamp),
    Flying,
    Delivered,
    Failed,
    Canceled,
}

#[derive(Clone)]
pub(crate) struct Delivery {
    /// The nth event; nothing for a test.
    pub(crate) event: Option<usize>,
    pub(crate) opened: Timestamp,
    /// The nth endpoint.
    pub(crate) hook: usize,
    pub(crate) standing: Standing,
    /// Attempts that ended, over all resends.
    pub(crate) attempts: u32,
    /// Attempts since it was opened or sent again.
    pub(crate) tries: u32,
}

/// A request whose answer is kept.
#[derive(Clone)]
pub(crate) struct Kept {
    pub(crate) at: Timestamp,
    pub(crate) asked: String,
    pub(crate) answer: usize,
}

/// All objects of one account in one mode, each kind in order of creation.
#[derive(Clone)]
pub(crate) struct Book {
    pub(crate) place: Place,
    pub(crate) charges: Vec<ChargeOf>,
    pub(crate) invoices: Vec<InvoiceOf>,
    pub(crate) links: Vec<LinkOf>,
    pub(crate) events: Vec<Event>,
    pub(crate) hooks: Vec<Hook>,
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) secrets: usize,
    pub(crate) kept: BTreeMap<String, Kept>,
}

/// A list that somebody reads page by page: how long it was when they began, and the page they read last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) total: usize,
    pub(crate) page: usize,
}

/// Who reads what, in pages of how many.
pub(crate) type Desire = (Place, Read, usize);

/// One thing that a host does for the service.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Beat {
    Wake(Timestamp),
    /// The nth delivery of a book is posted, and answered at once or not yet.
    Post {
        of: Place,
        delivery: usize,
        at: Timestamp,
        attempt: u32,
        answer: Option<Answer>,
    },
}

/// Everything.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) now: Timestamp,
    /// Eight decimals.
    pub(crate) rates: BTreeMap<(Asset, Currency), Option<u64>>,
    /// Tolerance and threshold of each account, in hundredths of a percent.
    pub(crate) bounds: [(u32, u32); 2],
    pub(crate) books: [Book; 4],
    /// Where each object is.
    pub(crate) homes: BTreeMap<Name, (Place, usize)>,
    /// Names that were given out; no other object gets one of them.
    pub(crate) names: u32,
    pub(crate) readings: BTreeMap<Desire, Reading>,
    /// When a key last read page 1 of a list, and how long the list was.
    pub(crate) memories: BTreeMap<Desire, (Timestamp, usize)>,
    /// The page that was read by its number.
    pub(crate) numbered: Reading,
    /// What the last deed must be answered.
    pub(crate) due: Due,
    /// How many answers were kept.
    pub(crate) answers: usize,
    /// What a host had to do during the last deed, in order.
    pub(crate) beats: Vec<Beat>,
    /// Writes that carried an idempotency key, to be sent again.
    pub(crate) keyed: Vec<Deed>,
}

/// What proptest prints of the beginning: there is only one.
impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the world at {}", self.now)
    }
}

/// The coins of these worlds: a quick one, one with 18 decimals, and one on the same network.
pub(crate) const COINS: [Asset; 3] = [Asset::Btc, Asset::Eth, Asset::Usdt];
pub(crate) const CURRENCIES: [Currency; 2] = [Currency::Eur, Currency::Usd];

impl World {
    pub(crate) fn new() -> World {
        let book = |place| Book {
            place,
            charges: Vec::new(),
            invoices: Vec::new(),
            links: Vec::new(),
            events: Vec::new(),
            hooks: Vec::new(),
            deliveries: Vec::new(),
            secrets: 0,
            kept: BTreeMap::new(),
        };
        let pairs = COINS.into_iter().flat_map(|asset| CURRENCIES.map(|currency| (asset, currency)));
        World {
            now: OPENING,
            rates: pairs.map(|pair| (pair, Some(first_rate(pair.0)))).collect(),
            bounds: [(100, 300); 2],
            books: Place::ALL.map(book),
            homes: BTreeMap::new(),
            names: 0,
            readings: BTreeMap::new(),
            memories: BTreeMap::new(),
            numbered: Reading { total: 0, page: 1 },
            due: Due::Nothing,
            answers: 0,
            beats: Vec::new(),
            keyed: Vec::new(),
        }
    }

    pub(crate) fn book(&mut self, place: Place) -> &mut Book {
        &mut self.books[place.0]
    }

    /// Where an object is; the deeds name only what there is.
    pub(crate) fn home(&self, name: Name) -> (Place, usize) {
        self.homes[&name]
    }

    pub(crate) fn charge(&self, name: Name) -> &ChargeOf {
        let (place, no) = self.home(name);
        &self.books[place.0].charges[no]
    }

    /// When the service must be woken next.
    pub(crate) fn next_wake(&self) -> Option<Timestamp> {
        self.books.iter().filter_map(Book::next_wake).min()
    }
}

/// In units of 10⁻⁸: one that divides nothing evenly.
pub(crate) fn first_rate(asset: Asset) -> u64 {
    match asset {
        Asset::Btc => 6_549_059_000_000,
        Asset::Eth => 300_007_000_000,
        _ => 99_700_000,
    }
}

impl Book {
    pub(crate) fn mode(&self) -> Mode {
        self.place.mode()
    }

    /// When the book must be woken next: a lock ends, or a delivery is due.
    fn next_wake(&self) -> Option<Timestamp> {
        let locks = self.charges.iter().filter(|charge| !charge.rang && charge.it.waits());
        let locks = locks.map(|charge| charge.it.end);
        let due = self.deliveries.iter().filter_map(|delivery| match delivery.standing {
            Standing::Waiting(at) => Some(at),
            _ => None,
        });
        locks.chain(due).min()
    }

    /// How many charges of a link were paid.
    fn paid_of(&self, link: usize) -> usize {
        let of = self.charges.iter().filter(|charge| charge.link == Some(link));
        of.filter(|charge| charge.it.status == Status::Paid).count()
    }

    pub(crate) fn link_accepts(&self, link: usize, now: Timestamp) -> bool {
        let it = &self.links[link];
        !it.archived
            && it.ends.is_none_or(|end| now < end)
            && it.max.is_none_or(|max| self.paid_of(link) < max as usize)
    }

    /// The subject as it is now.
    pub(crate) fn then(&self, subject: Subject) -> Then {
        match subject {
            Subject::Charge(no) => {
                let it = &self.charges[no].it;
                Then { status: it.status.as_str(), received: it.received(), charges: Vec::new() }
            }
            Subject::Invoice(no) => {
                let invoice = &self.invoices[no];
                let charges = invoice.charges.iter().map(|no| self.charges[*no].it.status.as_str());
                Then { status: invoice.status.as_str(), received: 0, charges: charges.collect() }
            }
        }
    }

    pub(crate) fn length(&self, list: Read) -> usize {
        match list {
            Read::Charges => self.charges.len(),
            Read::Invoices => self.invoices.len(),
            Read::Links => self.links.len(),
            Read::Events => self.events.len(),
        }
    }
}
