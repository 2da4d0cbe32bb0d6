//! One simulated chain: mempool, blocks, and what can go wrong on it.
