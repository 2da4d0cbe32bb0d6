//! The page of a payment link: its form, the charge that it creates, and links that accept no payments.

use serde_json::{Value, json};

use testkit::browser::Browser;

use crate::shop::Shop;

#[tokio::test]
async fn the_form_of_a_link_creates_a_charge_with_the_custom_fields() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let path = shop
        .create(
            "payment-links",
            json!({
                "title": "Workshop", "pricing_type": "open", "currency": "EUR",
                "suggested_amounts": ["10.00", "25.00"], "min_amount": "5.00", "max_amount": "100.00",
                "collect_name": true, "require_email": true, "accepted_assets": ["BTC", "LTC"],
                "custom_fields": [{ "label": "T-shirt size", "required": true }, { "label": "Notes" }],
                "success_url": "https://shop.example/thanks", "success_message": "See you there!",
            }),
        )
        .await;
    let page = browser.page().await;
    page.open(&shop.url(&path)).await;
    page.wait_for_text("h1", "Workshop").await;
    assert_eq!(page.count("input[name=asset]").await, 2, "the page offers other coins than the link accepts");

    // Input that the browser accepts and the service refuses: the form is shown again with all input.
    page.click("label[for=suggested-2]").await;
    page.fill("#amount", "500").await;
    assert_eq!(page.count("input[name=suggested]:checked").await, 0, "a suggested amount is still selected");
    page.fill("#customer-email", "ada@customer.example").await;
    page.fill("#customer-name", "Ada").await;
    page.fill("#question-1", "M").await;
    page.click("label[for=coin-LTC]").await;
    page.click("#choose-coin").await;
    page.wait_for_text("#amount-hint", "The amount must not be greater than 100.00.").await;
    assert_eq!(page.eval("document.querySelector('#question-1').value").await, json!("M"));
    assert_eq!(page.count("#coin-LTC:checked").await, 1);

    page.fill("#amount", "12.50").await;
    page.click("#choose-coin").await;
    page.wait_for_url("/c/").await;
    page.wait_for_text(".due", "12.50 EUR in Litecoin").await;
    let charge =
        shop.api("GET", &format!("/v1/charges/{}", Shop::code(&page.url().await)), Value::Null).await;
    assert_eq!(charge["fiat_amount"], "12.50");
    assert_eq!(charge["customer_email"], "ada@customer.example");
    assert_eq!(charge["customer_name"], "Ada");
    assert_eq!(charge["custom_fields"], json!([{ "label": "T-shirt size", "value": "M" }]));

    shop.pay(&page.url().await, "1", 3).await;
    page.wait_for_text("h1", "Paid").await;
    page.wait_for_text(".payment", "See you there!").await;
    let success_url = page.eval("document.querySelector('.payment a[rel]').href").await;
    assert_eq!(success_url, json!("https://shop.example/thanks"));
    assert_eq!(page.errors(), Vec::<String>::new());
}

#[tokio::test]
async fn a_link_that_accepts_no_payments_shows_the_reason() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let link_body = |fields: Value| {
        let mut link = json!({ "title": "Book", "amount": "9.00", "currency": "EUR" });
        link.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        link
    };
    let archived = shop.create("payment-links", link_body(json!({}))).await;
    shop.api("POST", &format!("/v1/payment-links/{}/archive", Shop::code(&archived)), json!({})).await;
    let expired =
        shop.create("payment-links", link_body(json!({ "expires_at": "2026-09-21T00:00:00Z" }))).await;
    let sold_out = shop.create("payment-links", link_body(json!({ "max_payments": 1 }))).await;
    let choice = json!({ "asset": "LTC" });
    let charge = shop.sandbox(&format!("links/{}/choose", Shop::code(&sold_out)), choice).await;
    shop.pay(charge["charge"].as_str().expect("a code"), "1", 3).await;
    shop.sandbox("advance", json!({ "by": "2d" })).await;

    let page = browser.page().await;
    for (path, expected) in [(&archived, "archived"), (&expired, "expired"), (&sold_out, "sold out")] {
        page.open(&shop.url(path)).await;
        page.wait_for_text(".note", expected).await;
        assert_eq!(page.count("form").await, 0, "{expected}");
    }
}
