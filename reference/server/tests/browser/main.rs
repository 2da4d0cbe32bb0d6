//! Browser tests of the pages: headless Chromium, controlled over its DevTools pipes.
//!
//! Without a browser, the tests print a message and pass. With `CI` set or `CHARGEPROOF_BROWSER=required`, they fail.

mod checkout;
mod dashboard;
mod dashboard_layout;
mod docs;
mod hosted_pages;
mod hostile_input;
mod invoice;
mod link;
mod object_forms;
mod page_headers;
mod shop;
mod world_page;
