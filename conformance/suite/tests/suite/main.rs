//! The suite against correct, faulty and unusual servers.

mod any_recording;
mod budget;
mod canary;
mod conforming;
mod deliveries;
mod fuzz;
mod har;
mod inserts;
mod interference;
mod interrupts;
mod mutants;
mod odd_answers;
mod over_tls;
mod run_file;
