//! The heights of the chains.

use serde::{Deserialize, Serialize};

use crate::{asset::Asset, mode::Mode};

/// The height of every chain as last reported, 0 where none was. Heights never fall: the branch that wins a
/// reorganisation is the longer one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ChainHeights([[u64; Asset::ALL.len()]; Mode::ALL.len()]);

impl ChainHeights {
    /// The height of a coin's chain.
    pub const fn get(&self, mode: Mode, asset: Asset) -> u64 {
        self.0[mode as usize][asset as usize]
    }

    /// A chain has this height at least.
    pub fn raise(&mut self, mode: Mode, asset: Asset, height: u64) {
        let known = &mut self.0[mode as usize][asset as usize];
        *known = height.max(*known);
    }
}
