//! The crypto payment service as one pure state machine.
//!
//! No clock, no socket, no file, no dice: `now` and the seed are arguments. If you look for "now",
//! look at who called.

pub mod asset;
pub mod draw;
pub mod endpoint;
pub mod mode;
pub mod money;
pub mod sighting;
pub mod time;
pub mod wallet;
pub mod wire;
