//! Browser tests of the pages: headless Chromium, controlled over its DevTools pipes.
//!
//! Without a browser, the tests print a message and pass. With `CI` set or `CHARGEPROOF_BROWSER=required`, they fail.

mod checkout;
mod dashboard;
mod dashboard_looks;
mod docs;
mod gallery;
mod hostile;
mod invoice;
mod link;
mod making;
mod plain;
mod shop;
mod world;
