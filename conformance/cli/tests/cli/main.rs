//! End-to-end tests with real processes, sockets and files. One binary, so that it is linked once.

mod cases;
mod choices;
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
