//! Test support shared by the tests and tools of every package: HTTP messages, connections that send any bytes,
//! receivers in threads, and programs that run.
//!
//! For development only. It depends on no package that it helps to test, and it must contain no rule of the service.

#[cfg(feature = "tokio")]
mod async_connection;
mod connection;
mod message;
mod process;
mod receiver;

#[cfg(feature = "tokio")]
pub use async_connection::AsyncConnection;
pub use connection::{Connection, ask};
pub use message::{Message, Request, response};
pub use process::{PATIENCE, Running, free_address, free_ports, program, signal, until, wait_until};
pub use receiver::{Receiver, serve, target};
