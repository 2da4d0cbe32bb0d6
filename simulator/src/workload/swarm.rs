//! The faults of a world: none, a few or many of each family.
//!
//! In every world some are off, because a fault that always occurs hides the states that it prevents.

use reference_core::rng::{RngStream, Seed};

macro_rules! faults {
    ($($variant:ident $word:literal;)*) => {
        /// A family of faults and difficult situations.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "the words say it")]
        pub enum Fault { $($variant),* }

        impl Fault {
            /// All families. New ones are appended, so that existing worlds do not change.
            pub const ALL: [Fault; [$($word),*].len()] = [$(Fault::$variant),*];

            /// Returns the name in reports.
            pub const fn as_str(self) -> &'static str {
                match self { $(Fault::$variant => $word),* }
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
    Unseen         "unseen";
    Congestion     "congestion";
    Stall          "stall";
    Watcher        "watcher";
    WrongCoin      "wrong_coin";
    WrongNetwork   "wrong_network";
    Dust           "dust";
    Outputs        "outputs";
    SameMoment     "same_moment";
    LockEdge       "lock_edge";
    RateGone       "rate_gone";
    RateMoves      "rate_moves";
    Outage         "outage";
    BadAnswer      "bad_answer";
    AnswerLost     "answer_lost";
    DoublePost     "double_post";
    Lag            "lag";
    Rotation       "rotation";
    EndpointChange "endpoint_change";
    Resend         "resend";
    Restart        "restart";
    CancelRace     "cancel_race";
    Settings       "settings";
    Walk           "walk";
    Burst          "burst";
    LongOutage     "long_outage";
    StuckAtEnd     "stuck_at_end";
    BumpAtEnd      "bump_at_end";
    LateRefund     "late_refund";
    FullLink       "full_link";
    BumpAtOnce     "bump_at_once";
}

/// The level of a fault family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// No fault of the family.
    Off,
    /// Occasional faults.
    Rate,
    /// Every second time.
    Burst,
}

/// The level of each family in one world.
#[derive(Clone, Debug)]
pub struct Swarm {
    levels: [Level; Fault::ALL.len()],
}

impl Swarm {
    pub(super) fn draw(seed: Seed) -> Swarm {
        let lot = seed.rng_key("workload", "world", "swarm");
        let mut levels = [Level::Off; Fault::ALL.len()];
        for (n, level) in (0..).zip(&mut levels) {
            *level = match lot.stream(n).below(8) {
                0..=4 => Level::Off,
                5 | 6 => Level::Rate,
                _ => Level::Burst,
            };
        }
        // One family per world is forced, so that each occurs regularly in consecutive worlds.
        levels[(seed.0 % Fault::ALL.len() as u64) as usize] = Level::Burst;
        Swarm { levels }
    }

    /// Returns the level of a family in this world.
    pub fn level(&self, fault: Fault) -> Level {
        self.levels[fault as usize]
    }

    /// Returns `true` if the fault occurs now.
    pub(super) fn strikes(&self, fault: Fault, draw: &mut RngStream) -> bool {
        match self.level(fault) {
            Level::Off => false,
            Level::Rate => draw.chance(1, 8),
            Level::Burst => draw.chance(1, 2),
        }
    }

    /// Returns the number of times that the fault occurs in the whole world.
    pub(super) fn times(&self, fault: Fault, draw: &mut RngStream, most: u64) -> u64 {
        match self.level(fault) {
            Level::Off => 0,
            Level::Rate => draw.between(1, most.div_ceil(3)),
            Level::Burst => draw.between(most.div_ceil(2), most),
        }
    }
}
