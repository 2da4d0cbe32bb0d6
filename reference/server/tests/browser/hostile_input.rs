//! Hostile input: markup, long words and right-to-left text are displayed, not interpreted.

use serde_json::{Value, json};

use testkit::browser::{Browser, Page, Viewport, axe};

use crate::shop::{Shop, save_screenshot};

const MARKUP: &str =
    "</title></script><script>window.ran=1</script><img src=x onerror=window.ran=1>\"'`{{7*7}}";
const ARABIC: &str = "مرحبا بالعالم \u{202e}gnp.exe";

fn long_word() -> String {
    "Donaudampfschifffahrtsgesellschaft".repeat(7)
}

/// Checks that markup on the page was not interpreted, and that the page is accessible and fits.
async fn check_page(page: &Page, name: &str) {
    for viewport in [Viewport::DESKTOP, Viewport::PHONE_DARK] {
        page.set_viewport(viewport).await;
        page.assert_fits().await;
        save_screenshot(page, &format!("hostile-{name}-{}", viewport.name)).await;
        axe::assert_accessible(page, name).await;
    }
    assert_eq!(
        page.eval("window.ran ?? null").await,
        Value::Null,
        "{name}: a script of the input was executed"
    );
    assert_eq!(page.count("img, main script").await, 0, "{name}: markup of the input became elements");
    assert_eq!(page.errors(), Vec::<String>::new(), "{name}");
}

#[tokio::test]
async fn markup_in_input_is_displayed_and_not_interpreted() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let settings =
        json!({ "display_name": format!("{MARKUP}{ARABIC}"), "support_email": "\"<b>\"@shop.example" });
    shop.patch("/sandbox/accounts/acme", settings).await;
    let metadata: serde_json::Map<String, Value> = (0..20)
        .map(|n| (format!("{n}<b>{}", "k".repeat(20)), json!(format!("{MARKUP}{}", long_word()))))
        .collect();
    let charge = json!({
        "asset": "LTC", "amount": "1000000.00", "currency": "CZK", "description": format!("{MARKUP} {} {ARABIC}", long_word()),
        "metadata": metadata, "customer_name": MARKUP,
    });
    let charge = shop.create("charges", charge).await;
    let page = browser.page().await;
    page.open(&shop.url(&charge)).await;
    page.wait_for_text(".merchant", "<script>").await;
    page.wait_for_text(".payment-head", "onerror").await;
    check_page(&page, "checkout").await;
    shop.pay(&charge, "1", 3).await;
    page.wait_for_text("h1", "Paid").await;
    check_page(&page, "paid").await;
    page.open(&shop.url(&format!("{charge}/receipt"))).await;
    page.wait_for_text("dl", "onerror").await;
    check_page(&page, "receipt").await;

    let items: Vec<Value> = (0..30)
        .map(|n| json!({ "description": format!("{n} {MARKUP} {}", long_word().get(..100).unwrap()), "quantity": "0.125", "unit_amount": "99999.99" }))
        .collect();
    let invoice =
        json!({ "customer_name": format!("{ARABIC} {MARKUP}"), "memo": MARKUP.repeat(5), "items": items });
    let invoice = shop.create("invoices", invoice).await;
    for path in [invoice.clone(), format!("{invoice}/document")] {
        page.open(&shop.url(&path)).await;
        page.wait_for_text(".items", "onerror").await;
        check_page(&page, if path == invoice { "invoice" } else { "document" }).await;
    }

    let fields: Vec<Value> = (0..20)
        .map(|n| json!({ "label": format!("{n} {MARKUP}{}", long_word().get(..80).unwrap()), "required": n % 2 == 0 }))
        .collect();
    let link = json!({ "title": format!("{MARKUP} {ARABIC}"), "description": long_word(), "amount": "5.00", "custom_fields": fields });
    let link = shop.create("payment-links", link).await;
    page.open(&shop.url(&link)).await;
    page.wait_for_text("h1", "onerror").await;
    check_page(&page, "link").await;
}
