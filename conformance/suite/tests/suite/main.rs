//! The suite against correct, faulty and unusual servers.

mod budget;
mod canary;
mod conforming;
mod deliveries;
mod fuzz;
mod har;
mod inserts;
mod interference;
mod interrupts;
mod invalid_responses;
mod judge_properties;
mod mutants;
mod over_tls;
mod run_file;
