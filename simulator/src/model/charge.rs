//! What a charge must do, by the contract: acts, notices of the chain and time in, what must have happened out.

use reference_core::{
    sighting::{Depth, Sighting},
    time::{Span, Timestamp},
};

use super::money;

/// The rate of a charge is locked for so long.
pub const LOCK: Span = Span::mins(30);

/// The status of a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of the contract")]
pub enum Status {
    Pending,
    Underpaid,
    Paid,
    Expired,
    Canceled,
}

impl Status {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::Underpaid => "underpaid",
            Status::Paid => "paid",
            Status::Expired => "expired",
            Status::Canceled => "canceled",
        }
    }

    const fn waits(self) -> bool {
        matches!(self, Status::Pending | Status::Underpaid)
    }
}

/// What a transfer is to its charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Seen while the charge waited.
    Timely,
    /// Seen too late, or left over when time was up: the owner decides.
    Late,
    /// Late, and taken by the owner.
    Taken,
    /// More, to a charge that is paid.
    More,
}

/// One output of one transaction.
#[derive(Clone, Debug)]
pub struct Money {
    /// The transaction.
    pub txid: String,
    /// Which output of it.
    pub output: u32,
    /// In the coin's smallest units.
    pub units: u128,
    /// Confirmations; nothing when it is gone.
    pub depth: Option<u32>,
    first_seen: Timestamp,
    deep_since: Option<Timestamp>,
    role: Role,
    /// It is part of what the charge received.
    pub counted: bool,
    told_late: bool,
    told_short: bool,
}

/// What must be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tale {
    /// A transfer was seen in time.
    Detected {
        /// The transaction.
        txid: String,
        /// Its units.
        units: u128,
    },
    /// It is paid.
    Paid {
        /// The deciding transaction.
        txid: String,
        /// Received in total.
        units: u128,
    },
    /// What was confirmed is too little.
    Short {
        /// The transaction.
        txid: String,
        /// Received in total.
        units: u128,
    },
    /// Money came too late.
    Late {
        /// The transaction.
        txid: String,
        /// Its units.
        units: u128,
    },
    /// Time was up.
    Expired,
}

/// Where the chain stood for a charge when something was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the words say it")]
pub enum Situation {
    Nothing,
    Waiting,
    InBlock,
    Deep,
    Orphaned,
    Gone,
}

impl Situation {
    /// Every situation.
    pub const ALL: [Situation; 6] = [
        Situation::Nothing,
        Situation::Waiting,
        Situation::InBlock,
        Situation::Deep,
        Situation::Orphaned,
        Situation::Gone,
    ];

    /// The word in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Situation::Nothing => "no transfer",
            Situation::Waiting => "in mempool",
            Situation::InBlock => "in a block",
            Situation::Deep => "confirmed",
            Situation::Orphaned => "thrown back",
            Situation::Gone => "gone",
        }
    }
}

/// A charge as it must be.
#[derive(Clone, Debug)]
pub struct Charge {
    /// What is due, in the coin's smallest units.
    pub due: u128,
    /// Hundredths of a percent that may be missing.
    pub tolerance: u32,
    /// Hundredths of a percent from which it is overpaid.
    pub threshold: u32,
    /// Confirmations that make a transfer count.
    pub required: u32,
    /// The end of the lock.
    pub end: Timestamp,
    /// Where it stands.
    pub status: Status,
    /// Transfers to its address, in its coin.
    pub money: Vec<Money>,
    /// Sent back.
    pub refunded: u128,
    /// When the deciding transfer was deep enough.
    pub paid_at: Option<Timestamp>,
}

impl Charge {
    /// A charge that begins now. `due` is in the coin's smallest units, the bounds are tolerance and threshold in
    /// hundredths of a percent.
    pub fn open(at: Timestamp, due: u128, bounds: (u32, u32), required: u32) -> Charge {
        Charge {
            due,
            tolerance: bounds.0,
            threshold: bounds.1,
            required,
            end: at.plus(LOCK),
            status: Status::Pending,
            money: Vec::new(),
            refunded: 0,
            paid_at: None,
        }
    }

    /// What it has received.
    pub fn received(&self) -> u128 {
        self.money.iter().filter(|money| money.counted).map(|money| money.units).sum()
    }

    /// Where the chain stands for it.
    pub fn situation(&self) -> Situation {
        let Some(newest) = self.money.last() else { return Situation::Nothing };
        match newest.depth {
            None => Situation::Gone,
            Some(0) if newest.deep_since.is_some() => Situation::Orphaned,
            Some(0) => Situation::Waiting,
            Some(depth) if depth < self.required => Situation::InBlock,
            Some(_) => Situation::Deep,
        }
    }

    fn is_deep(&self, money: &Money) -> bool {
        money.depth.is_some_and(|depth| depth >= self.required)
    }

    /// Something seen before the end of the lock is still under way.
    pub fn is_held(&self) -> bool {
        let under_way = |money: &&Money| money.depth.is_some_and(|depth| depth < self.required);
        let mut timely = self.money.iter().filter(|money| money.role == Role::Timely);
        timely.any(|money| money.first_seen < self.end && under_way(&money))
    }

    /// What the watcher said in one breath, and what that makes to tell. `unit`: what the notices count one smallest
    /// unit of the coin as.
    pub fn hear(&mut self, now: Timestamp, notices: &[&Sighting], unit: u128) -> Vec<Tale> {
        let mut tales = Vec::new();
        let mut moved = Vec::new();
        let (known, new): (Vec<&Sighting>, Vec<&Sighting>) =
            notices.iter().copied().partition(|notice| self.find(notice).is_some());
        for notice in known {
            let place = self.find(notice).expect("just found");
            self.note_depth(now, place, notice.depth);
            let money = &mut self.money[place];
            if money.role == Role::Late && money.depth.is_some() && !money.told_late {
                money.told_late = true;
                tales.push(Tale::Late { txid: money.txid.clone(), units: money.units });
            }
            moved.push(place);
        }
        // A hold that ends now ends before anything new is seen.
        if now >= self.end && !self.is_held() {
            self.count(&moved, &mut tales);
            self.run_out(now, &mut tales);
        }
        for notice in new {
            let place = match self.find(notice) {
                Some(place) => place,
                None if matches!(notice.depth, Depth::Gone(_)) || notice.amount.atto() == 0 => continue,
                None => self.meet(now, notice, unit, &mut tales),
            };
            self.note_depth(now, place, notice.depth);
            moved.push(place);
        }
        self.count(&moved, &mut tales);
        self.run_out(now, &mut tales);
        tales
    }

    fn find(&self, notice: &Sighting) -> Option<usize> {
        self.money.iter().position(|money| money.txid == notice.txid && money.output == notice.output)
    }

    fn meet(&mut self, now: Timestamp, notice: &Sighting, unit: u128, tales: &mut Vec<Tale>) -> usize {
        let role = match self.status {
            Status::Paid => Role::More,
            status if status.waits() => Role::Timely,
            _ => Role::Late,
        };
        let (txid, units) = (notice.txid.clone(), notice.amount.atto() / unit);
        tales.push(match role {
            Role::Timely => Tale::Detected { txid: txid.clone(), units },
            _ => Tale::Late { txid: txid.clone(), units },
        });
        self.money.push(Money {
            txid,
            output: notice.output,
            units,
            depth: Some(0),
            first_seen: now,
            deep_since: None,
            role,
            counted: false,
            told_late: role != Role::Timely,
            told_short: false,
        });
        self.money.len() - 1
    }

    fn note_depth(&mut self, now: Timestamp, place: usize, depth: Depth) {
        let required = self.required;
        let money = &mut self.money[place];
        let was_deep = money.depth.is_some_and(|depth| depth >= required);
        money.depth = match depth {
            Depth::Confirmations(n) => Some(n),
            Depth::Gone(_) => None,
        };
        if !was_deep && money.depth.is_some_and(|depth| depth >= required) {
            money.deep_since = Some(now);
        }
    }

    /// Counts what is deep now, and takes back what no longer is while that still matters.
    fn count(&mut self, moved: &[usize], tales: &mut Vec<Tale>) {
        let mut fresh = Vec::new();
        for &place in moved {
            let deep = self.is_deep(&self.money[place]);
            let is_paid = self.status == Status::Paid;
            let money = &mut self.money[place];
            if money.role == Role::Late {
                // It waits for its owner; an owner who took it changed its role.
                continue;
            }
            if deep && !money.counted {
                money.counted = true;
                fresh.push(place);
            } else if !deep && money.counted && !is_paid {
                money.counted = false;
                fresh.retain(|other| *other != place);
            }
        }
        self.weigh(&fresh, tales);
    }

    fn weigh(&mut self, fresh: &[usize], tales: &mut Vec<Tale>) {
        let Some(&last) = fresh.last() else { return };
        let by_owner = self.money.iter().any(|money| money.counted && money.role == Role::Taken);
        if self.status == Status::Paid || !(self.status.waits() || by_owner) {
            return;
        }
        let txid = self.money[last].txid.clone();
        let received = self.received();
        if money::is_enough(received, self.due, self.tolerance) {
            let counted = self.money.iter().filter(|money| money.counted);
            self.paid_at = counted.filter_map(|money| money.deep_since).max();
            self.status = Status::Paid;
            for place in 0..self.money.len() {
                if !self.money[place].counted {
                    self.money[place].role = Role::More;
                    self.money[place].counted = self.is_deep(&self.money[place]);
                }
            }
            tales.push(Tale::Paid { txid, units: self.received() });
            return;
        }
        if self.status.waits() {
            self.status = Status::Underpaid;
        }
        let mut news = false;
        for &place in fresh {
            news |= !self.money[place].told_short;
            self.money[place].told_short = true;
        }
        if news {
            tales.push(Tale::Short { txid, units: received });
        }
    }

    /// The lock has run out, if it has and nothing holds the charge open.
    pub fn run_out(&mut self, now: Timestamp, tales: &mut Vec<Tale>) {
        if !self.status.waits() || now < self.end || self.is_held() {
            return;
        }
        self.status = Status::Expired;
        tales.push(Tale::Expired);
        for money in &mut self.money {
            if money.role == Role::Timely && !money.counted {
                money.role = Role::Late;
                if money.depth.is_some() {
                    money.told_late = true;
                    tales.push(Tale::Late { txid: money.txid.clone(), units: money.units });
                }
            }
        }
    }

    /// Whether it can be called off.
    pub fn cancel(&mut self) -> bool {
        let may = self.is_untouched();
        if may {
            self.status = Status::Canceled;
        }
        may
    }

    /// It waits, and no transfer was ever seen.
    pub fn is_untouched(&self) -> bool {
        self.status == Status::Pending && self.money.is_empty()
    }

    /// Whether money that arrives now is on time.
    pub fn waits(&self) -> bool {
        self.status.waits()
    }

    /// Whether so much can be sent back.
    pub fn refund(&mut self, units: u128) -> bool {
        let may = units > 0 && self.refunded + units <= self.received();
        if may {
            self.refunded += units;
        }
        may
    }

    /// The owner takes late money; nothing if there is none to take.
    pub fn take_late(&mut self, txid: Option<&str>) -> Option<Vec<Tale>> {
        if !matches!(self.status, Status::Expired | Status::Canceled) {
            return None;
        }
        let wanted = |money: &Money| money.role == Role::Late && txid.is_none_or(|txid| txid == money.txid);
        let taken: Vec<usize> = (0..self.money.len())
            .filter(|place| wanted(&self.money[*place]) && self.is_deep(&self.money[*place]))
            .collect();
        if taken.is_empty() {
            return None;
        }
        for &place in &taken {
            let money = &mut self.money[place];
            (money.role, money.counted, money.told_short) = (Role::Taken, true, false);
        }
        let mut tales = Vec::new();
        self.weigh(&taken, &mut tales);
        Some(tales)
    }
}
