//! A charge is opened, paid on the panel, and seen to be paid.

use reference_server::ClockKind;
use serde_json::json;

use crate::{driver::Browser, shop::Shop};

#[tokio::test]
async fn a_charge_is_paid_on_the_panel_and_the_page_follows_without_a_reload() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::open(ClockKind::Wall).await;
    let page = browser.page().await;
    page.open(&shop.url(&shop.charge("BTC").await)).await;
    page.eval("window.kept = 'since the page was opened'").await;
    page.wait_for_text("h1", "Waiting for your payment").await;
    assert!(page.text(".left time").await.contains(':'), "the time left counts down");

    page.click("#act-exact").await;
    page.wait_for_text("[data-result]", "Sent.").await;
    page.wait_for_text("h1", "Payment seen, confirming").await;
    page.wait_for_text("#announce", "Payment seen, confirming").await;

    page.click("#act-mine-enough").await;
    page.wait_for_text("h1", "Paid").await;
    assert_eq!(page.eval("window.kept").await, json!("since the page was opened"));

    page.click(".payment a.primary").await;
    page.wait_for_address("/receipt").await;
    page.wait_for_text("h1", "Receipt").await;
    assert_eq!(page.complaints(), Vec::<String>::new());
}
