//! The heights of the chains, from which confirmations are computed.

use serde::{Deserialize, Serialize};

use crate::{asset::Asset, mode::Mode};

/// The last reported height of each chain; 0 before the first report. Heights never fall: the winning branch of a
/// reorganisation is the longer one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ChainHeights([[u64; Asset::ALL.len()]; Mode::ALL.len()]);

impl ChainHeights {
    /// Returns the height of a coin's chain.
    pub const fn get(&self, mode: Mode, asset: Asset) -> u64 {
        self.0[mode as usize][asset as usize]
    }

    /// Raises the height of a chain; a lower height is ignored.
    pub fn raise(&mut self, mode: Mode, asset: Asset, height: u64) {
        let known = &mut self.0[mode as usize][asset as usize];
        *known = height.max(*known);
    }
}
