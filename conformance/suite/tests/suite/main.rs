//! The whole suite against servers of its own tests: honest ones, faulty ones, odd ones.

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
mod kept;
mod mutants;
mod odd_answers;
mod over_tls;
