//! Known faults of implementations, and which of them a recording would have shown.
//!
//! A fault is a pure function: it spoils what one place shows, at one position, in one mode. Because a verdict is a
//! pure function of a recording, a recording can be spoiled and judged again. If no verdict changes, the run that
//! made the recording would not have noticed a server with that fault. The same faults spoil the answers of the
//! fake server that the suite is tested with.

mod envelopes;
mod fault;
mod grid;
mod objects;
mod pages;
mod place;
mod power;
mod refusals;
mod reply;
mod sent;
mod spoil;

pub use fault::Fault;
pub use grid::faults;
pub use place::{Place, Position, Show};
pub use power::{Chapter, Power, Reach, Tried, power, tried};
pub use reply::Reply;
pub use spoil::Seen;
