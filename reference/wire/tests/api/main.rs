//! Tests of the service through its public inputs and outputs: requests, sightings, the dashboard, hosted pages and
//! deliveries. Expectations follow the contract, not the code.

mod test_service;

mod bodies;
mod charge_life;
mod confirmations;
mod determinism;
mod histories;
mod hostile;
mod idempotency;
mod invoices;
mod isolation;
mod late_payments;
mod limit;
mod links;
mod outbox;
mod paging;
mod queries;
mod refunds;
mod routes;
mod shapes;
mod untouched;
mod wallets;
