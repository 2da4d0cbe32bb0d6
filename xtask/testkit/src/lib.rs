//! Test support for all packages: HTTP messages, connections that send any bytes, receivers in threads, processes, lists
//! of files, and a headless browser.
//!
//! For development only. Depends on no package that it helps to test. Must not contain: rules of the service.

#[cfg(feature = "tokio")]
mod async_connection;
#[cfg(feature = "browser")]
pub mod browser;
mod connection;
mod files;
mod message;
mod process;
mod receiver;

#[cfg(feature = "tokio")]
pub use async_connection::AsyncConnection;
pub use connection::{Connection, call};
pub use files::files_below;
pub use message::{Message, Request, response};
pub use process::{
    RunningProgram, TIMEOUT, assert_eventually, command_for, free_address, free_ports, signal, wait_until,
};
pub use receiver::{Receiver, serve, serve_status};
