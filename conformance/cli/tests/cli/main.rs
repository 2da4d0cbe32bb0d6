//! The program as a user runs it: real processes, real sockets, real files. One binary, so that it is linked once.

mod cases;
mod deliveries;
mod dialect;
mod extended;
mod program;
mod receiver;
mod reports;
mod robust;
mod serve;
mod settings;
mod suggestions;
mod support;
mod sweep;
mod trigger;
