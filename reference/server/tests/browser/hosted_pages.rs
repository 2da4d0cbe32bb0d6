//! Every hosted page in every state: layout in all viewports, accessibility, and resources without errors.
//!
//! With `CHARGEPROOF_PICTURES` set, a screenshot of each page is stored under `target/tmp/pictures`.

use serde_json::{Value, json};

use testkit::browser::{Browser, Viewport, axe};

use crate::shop::{Shop, save_screenshot};

/// The name of a page for messages, its path, and a string that it contains.
type HostedPage = (&'static str, String, &'static str);

/// Checks that a page fits every viewport, is accessible and reports no errors.
async fn check_page(browser: &Browser, shop: &Shop, (name, path, expected): HostedPage) {
    let page = browser.page().await;
    page.open(&shop.url(&path)).await;
    page.wait_for_text("main", expected).await;
    for viewport in Viewport::ALL {
        page.set_viewport(viewport).await;
        page.assert_fits().await;
        save_screenshot(&page, &format!("{name}-{}", viewport.name)).await;
        // One viewport of each colour scheme, because the accessibility rules are slow.
        if [Viewport::DESKTOP, Viewport::PHONE_DARK].contains(&viewport) {
            axe::assert_accessible(&page, &format!("{name} {}", viewport.name)).await;
        }
    }
    assert_eq!(page.errors(), Vec::<String>::new(), "{name}");
}

/// Defines a test that checks each page that `$create` returns.
macro_rules! gallery {
    ($(#[$doc:meta])* $name:ident, $create:path) => {
        $(#[$doc])*
        #[tokio::test]
        async fn $name() {
            let Some(browser) = Browser::start().await else { return };
            let shop = Shop::frozen().await;
            for page in $create(&shop).await {
                check_page(&browser, &shop, page).await;
            }
        }
    };
}

gallery!(checkouts_are_accessible, checkouts);
gallery!(invoices_are_accessible, invoices);
gallery!(payment_links_are_accessible, links);

async fn checkouts(shop: &Shop) -> Vec<HostedPage> {
    let canceled = shop.create_charge("ETH").await;
    shop.api("POST", &format!("/v1/charges/{}/cancel", Shop::code(&canceled)), json!({})).await;
    let paid = shop.create_charge("LTC").await;
    shop.pay(&paid, "1.2", 3).await;
    let (expired, late) = (shop.create_charge("DOGE").await, shop.create_charge("SOL").await);
    shop.sandbox("advance", json!({ "by": "31m" })).await;
    shop.pay(&late, "1", 1).await;
    // Open charges are created last and need few blocks, so that they do not expire meanwhile.
    let underpaid = shop.create_charge("LTC").await;
    shop.pay(&underpaid, "0.5", 3).await;
    let confirming = shop.create_charge("LTC").await;
    shop.pay(&confirming, "1", 1).await;
    let (waiting, token) = (shop.create_charge("BTC").await, shop.create_charge("USDT_TRON").await);
    vec![
        ("checkout-receipt", format!("{paid}/receipt"), "Received"),
        ("checkout-waiting", waiting, "Waiting for your payment"),
        ("checkout-token", token, "Tether USD address on Tron"),
        ("checkout-confirming", confirming, "1 of 3 confirmations"),
        ("checkout-underpaid", underpaid, "Partially paid"),
        ("checkout-paid", paid, "You paid more than the amount due"),
        ("checkout-expired", expired, "This payment has expired"),
        ("checkout-canceled", canceled, "This payment was canceled"),
        ("checkout-late", late, "Your payment arrived too late"),
        ("checkout-nowhere", "/c/aaaaaaaaaaaa".to_owned(), "Page not found"),
    ]
}

fn invoice() -> Value {
    json!({
        "customer_name": "Ada Lovelace",
        "customer_email": "ada@customer.example",
        "items": [
            { "description": "Analytical engine, yearly maintenance", "quantity": "1", "unit_amount": "1200.00" },
            { "description": "Punched cards, box of 500", "quantity": "2.5", "unit_amount": "19.90" },
        ],
        "memo": "Thank you for your order.\nPayable within 14 days.",
        "due_at": "2026-10-15",
    })
}

async fn invoices(shop: &Shop) -> Vec<HostedPage> {
    let open = shop.create("invoices", invoice()).await;
    let chosen = shop.create("invoices", invoice()).await;
    let paid = shop.create("invoices", invoice()).await;
    let void = shop.create("invoices", invoice()).await;
    shop.api("POST", &format!("/v1/invoices/{}/void", Shop::code(&void)), json!({})).await;
    for (path, asset) in [(&paid, "LTC"), (&chosen, "BTC")] {
        let charge =
            shop.sandbox(&format!("invoices/{}/choose", Shop::code(path)), json!({ "asset": asset })).await;
        if asset == "LTC" {
            shop.pay(charge["charge"].as_str().expect("a code"), "1", 3).await;
        }
    }
    vec![
        ("invoice-open", open, "Pay with"),
        ("invoice-chosen", chosen, "Pay with another coin"),
        ("invoice-document", format!("{paid}/document"), "Transaction"),
        ("invoice-paid", paid, "Receipt"),
        ("invoice-void", void, "This invoice was voided"),
    ]
}

async fn links(shop: &Shop) -> Vec<HostedPage> {
    let fixed = json!({
        "title": "Concert ticket", "description": "One evening, one seat.", "amount": "35.00", "currency": "EUR",
        "collect_name": true, "require_email": true, "cancel_url": "https://shop.example/back",
        "custom_fields": [{ "label": "Seat", "required": true }, { "label": "Dietary wishes", "required": false }],
    });
    let open = json!({
        "title": "Support our work", "pricing_type": "open", "currency": "EUR",
        "suggested_amounts": ["10.00", "25.00", "1000.00"], "min_amount": "5.00", "max_amount": "5000.00",
        "accepted_assets": ["BTC", "ETH", "USDC_BASE"],
    });
    let archived = shop.create("payment-links", fixed.clone()).await;
    shop.api("POST", &format!("/v1/payment-links/{}/archive", Shop::code(&archived)), json!({})).await;
    vec![
        ("link-fixed", shop.create("payment-links", fixed).await, "Dietary wishes"),
        ("link-open", shop.create("payment-links", open).await, "Another amount"),
        ("link-archived", archived, "This payment link was archived"),
    ]
}
