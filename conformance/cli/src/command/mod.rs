//! One module for each command.

pub(crate) mod check;
pub(crate) mod fuzz;
pub(crate) mod judge;
pub(crate) mod load;
pub(crate) mod play;
pub(crate) mod receiver;
pub(crate) mod serve;
pub(crate) mod sweep;
