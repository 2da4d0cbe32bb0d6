//! The levels of faults in a world: each family of faults is off, occasional or frequent (swarm testing).
//!
//! In every world some families are off, because a fault that always occurs hides the states that it prevents.

use reference_core::rng::{RngStream, Seed};

macro_rules! faults {
    ($($variant:ident $name:literal;)*) => {
        /// A family of faults and difficult situations.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "the names describe them")]
        pub enum Fault { $($variant),* }

        impl Fault {
            /// All families. New ones are appended, so that existing worlds do not change.
            pub const ALL: [Fault; [$($name),*].len()] = [$(Fault::$variant),*];

            /// Returns the name in reports.
            pub const fn as_str(self) -> &'static str {
                match self { $(Fault::$variant => $name),* }
            }
        }
    };
}

faults! {
    Reorg          "reorg";
    DoubleSpend    "double_spend";
    Replace        "replace";
    Drop           "drop";
    LowFee         "low_fee";
    Stuck          "stuck";
    // A transaction that is first seen in a block.
    Unseen         "unseen";
    Congestion     "congestion";
    Stall          "stall";
    Watcher        "watcher";
    WrongCoin      "wrong_coin";
    WrongNetwork   "wrong_network";
    // A payment of one smallest unit of the coin.
    Dust           "dust";
    // A payment in several outputs of one transaction.
    Outputs        "outputs";
    // Objects that are created at the same time.
    SameMoment     "same_moment";
    // A payment within a microsecond of the end of the rate lock.
    LockEdge       "lock_edge";
    // A rate that is unavailable for a while.
    RateGone       "rate_gone";
    RateMoves      "rate_moves";
    Outage         "outage";
    BadAnswer      "bad_answer";
    AnswerLost     "answer_lost";
    DoublePost     "double_post";
    // Attempts that arrive late, and overtake each other.
    Lag            "lag";
    Rotation       "rotation";
    EndpointChange "endpoint_change";
    Resend         "resend";
    Restart        "restart";
    CancelRace     "cancel_race";
    Settings       "settings";
    // A list that is read page by page while it grows.
    Walk           "walk";
    // Requests up to the rate limit at the same time.
    Burst          "burst";
    LongOutage     "long_outage";
    // A stuck transaction shortly before the end of the rate lock.
    StuckAtEnd     "stuck_at_end";
    // Such a transaction, replaced after the end by one with a higher fee.
    BumpAtEnd      "bump_at_end";
    LateRefund     "late_refund";
    // More customers than a payment link accepts payments.
    FullLink       "full_link";
    // A payment that is replaced at the same time.
    BumpAtOnce     "bump_at_once";
}

/// The level of a fault family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// No fault of the family.
    Off,
    /// Occasional: a fault in one of eight cases on average.
    Occasional,
    /// Frequent: a fault in one of two cases on average.
    Frequent,
}

/// The level of each family in one world.
#[derive(Clone, Debug)]
pub struct Swarm {
    levels: [Level; Fault::ALL.len()],
}

impl Swarm {
    pub(super) fn draw(seed: Seed) -> Swarm {
        let levels_key = seed.rng_key("workload", "world", "swarm");
        let mut levels = [Level::Off; Fault::ALL.len()];
        for (n, level) in (0..).zip(&mut levels) {
            *level = match levels_key.stream(n).below(8) {
                0..=4 => Level::Off,
                5 | 6 => Level::Occasional,
                _ => Level::Frequent,
            };
        }
        // One family per world is forced, so that each occurs regularly in consecutive worlds.
        levels[(seed.0 % Fault::ALL.len() as u64) as usize] = Level::Frequent;
        Swarm { levels }
    }

    /// Returns the level of a family in this world.
    pub fn level(&self, fault: Fault) -> Level {
        self.levels[fault as usize]
    }

    /// Draws the occurrence of a fault: returns `true` if it occurs.
    pub(super) fn draws_fault(&self, fault: Fault, draw: &mut RngStream) -> bool {
        match self.level(fault) {
            Level::Off => false,
            Level::Occasional => draw.chance(1, 8),
            Level::Frequent => draw.chance(1, 2),
        }
    }

    /// Draws the number of times that a fault occurs in the whole world.
    pub(super) fn draw_count(&self, fault: Fault, draw: &mut RngStream, count_max: u64) -> u64 {
        match self.level(fault) {
            Level::Off => 0,
            Level::Occasional => draw.between(1, count_max.div_ceil(3)),
            Level::Frequent => draw.between(count_max.div_ceil(2), count_max),
        }
    }
}
