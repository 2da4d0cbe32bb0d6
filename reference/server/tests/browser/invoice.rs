//! The invoice page: choosing and switching the coin, payment, and views.

use serde_json::{Value, json};

use testkit::browser::Browser;

use crate::shop::{Shop, save_screenshot};

/// Returns coin and status of each charge of an invoice.
async fn charges(shop: &Shop, invoice: &str) -> Vec<(String, String)> {
    let invoice = shop.api("GET", &format!("/v1/invoices/{}", Shop::code(invoice)), Value::Null).await;
    let rows = invoice["charges"].as_array().expect("a list").iter();
    rows.map(|row| (row["asset"].as_str().unwrap().to_owned(), row["status"].as_str().unwrap().to_owned()))
        .collect()
}

#[tokio::test]
async fn an_invoice_is_paid_after_its_coin_was_switched() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let path = shop.create("invoices", json!({ "amount": "80.00", "customer_name": "Ada" })).await;
    let page = browser.page().await;
    page.open(&shop.url(&path)).await;
    page.wait_for_text("h1", "Invoice INV-0001").await;

    page.click("label[for=coin-BTC]").await;
    page.click("#choose-coin").await;
    page.wait_for_text("#payment h2", "Waiting for your payment").await;
    page.wait_for_text(".due", "BTC").await;
    let first_address = page.text("#pay-address").await;

    page.click("#switch-coin > summary").await;
    page.click("label[for=coin-LTC]").await;
    page.click("#choose-coin").await;
    page.wait_for_text(".due", "LTC").await;
    assert_ne!(page.text("#pay-address").await, first_address);
    let expected = [("BTC".to_owned(), "canceled".to_owned()), ("LTC".to_owned(), "pending".to_owned())];
    assert_eq!(charges(&shop, &path).await, expected);

    // A script variable that a reload would delete.
    page.eval("window.kept = 1").await;
    page.click("#act-exact").await;
    page.wait_for_text("[data-result]", "Sent.").await;
    page.wait_for_text("#payment h2", "Payment seen, confirming").await;
    assert_eq!(
        page.count("#choose-coin").await,
        0,
        "another coin can be chosen although a payment is unconfirmed"
    );
    page.click("#act-mine-enough").await;
    page.wait_for_text("#payment h2", "Paid").await;
    assert_eq!(page.eval("window.kept").await, json!(1), "the page was reloaded");

    page.open(&shop.url(&format!("{path}/document"))).await;
    page.wait_for_text(".badge", "paid").await;
    assert!(page.is_visible("[data-print]").await);
    page.use_print_styles().await;
    assert!(!page.is_visible("[data-print]").await, "the printed page has a button");
    save_screenshot(&page, "invoice-printed").await;
    assert_eq!(page.errors(), Vec::<String>::new());
}

#[tokio::test]
async fn the_first_view_of_an_invoice_is_recorded_once() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let path = shop.create("invoices", json!({ "amount": "80.00" })).await;
    let views = async || {
        let list = format!("/v1/events?type=invoice.viewed&invoice={}", Shop::code(&path));
        shop.api("GET", &list, Value::Null).await.as_array().expect("a list").len()
    };
    let page = browser.page().await;
    page.open(&shop.url(&format!("{path}/document"))).await;
    assert_eq!(views().await, 0, "the document counts as a view");
    page.open(&shop.url(&path)).await;
    page.open(&shop.url(&path)).await;
    assert_eq!(views().await, 1);
}
