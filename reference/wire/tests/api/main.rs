//! Tests of the service through its public inputs and outputs: requests, sightings, the dashboard, hosted pages and
//! deliveries. Expectations follow the contract, not the code.

mod test_service;

mod charge_lifecycle;
mod confirmations;
mod determinism;
mod field_validation;
mod histories;
mod idempotency;
mod invoices;
mod isolation;
mod late_payments;
mod links;
mod malformed_requests;
mod outbox;
mod paging;
mod rate_limit;
mod refunds;
mod request_bodies;
mod routes;
mod shapes;
mod untouched_charges;
mod wallets;
