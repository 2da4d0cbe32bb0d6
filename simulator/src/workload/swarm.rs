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
    /// A fault in every eighth case.
    Rate,
    /// A fault in every second case.
    Burst,
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

    /// Draws the occurrence of a fault: returns `true` if it occurs.
    pub(super) fn draws_fault(&self, fault: Fault, draw: &mut RngStream) -> bool {
        match self.level(fault) {
            Level::Off => false,
            Level::Rate => draw.chance(1, 8),
            Level::Burst => draw.chance(1, 2),
        }
    }

    /// Draws the number of times that a fault occurs in the whole world.
    pub(super) fn draw_count(&self, fault: Fault, draw: &mut RngStream, count_max: u64) -> u64 {
        match self.level(fault) {
            Level::Off => 0,
            Level::Rate => draw.between(1, count_max.div_ceil(3)),
            Level::Burst => draw.between(count_max.div_ceil(2), count_max),
        }
    }
}
