//! Every hosted page in every state: readable by all, in both widths and colours, with nothing refused.
//!
//! With `CHARGEPROOF_PICTURES` set, a picture of each is left under `target/tmp/pictures`.

use serde_json::{Value, json};

use crate::{
    axe,
    driver::Browser,
    page::Look,
    shop::{Shop, picture},
};

/// Judges one page in every look.
async fn judge(browser: &Browser, shop: &Shop, name: &str, path: &str) {
    let page = browser.page().await;
    for look in Look::ALL {
        page.look(look).await;
        page.open(&shop.url(path)).await;
        page.wait_for("h1").await;
        page.must_fit().await;
        picture(&page, &format!("{name}-{}", look.name)).await;
        // Each colour scheme once, each at another width: the rules take their time.
        if [Look::DESKTOP, Look::PHONE_DARK].contains(&look) {
            axe::judge(&page, &format!("{name} {}", look.name)).await;
        }
    }
    assert_eq!(page.complaints(), Vec::<String>::new(), "{name}");
}

/// Opens a browser and a shop, makes pages, and judges each.
macro_rules! gallery {
    ($(#[$doc:meta])* $name:ident, $make:path) => {
        $(#[$doc])*
        #[tokio::test]
        async fn $name() {
            let Some(browser) = Browser::start().await else { return };
            let shop = Shop::frozen().await;
            for (name, path) in $make(&shop).await {
                judge(&browser, &shop, name, &path).await;
            }
        }
    };
}

gallery!(checkouts_are_for_everybody, checkouts);
gallery!(invoices_are_for_everybody, invoices);
gallery!(payment_links_are_for_everybody, links);

async fn checkouts(shop: &Shop) -> Vec<(&'static str, String)> {
    let waiting = shop.charge("BTC").await;
    let token = shop.charge("USDT_TRON").await;
    let confirming = shop.charge("LTC").await;
    shop.pay(&confirming, "1", 1).await;
    let underpaid = shop.charge("LTC").await;
    shop.pay(&underpaid, "0.5", 3).await;
    let paid = shop.charge("LTC").await;
    shop.pay(&paid, "1.2", 3).await;
    let canceled = shop.charge("ETH").await;
    shop.api("POST", &format!("/v1/charges/{}/cancel", Shop::code(&canceled)), json!({})).await;
    // What has run out by the time that the others are looked at would not be what it is called.
    let expired = shop.charge("DOGE").await;
    let late = shop.charge("SOL").await;
    shop.sandbox("advance", json!({ "by": "31m" })).await;
    shop.pay(&late, "1", 1).await;
    let (waiting, underpaid, confirming, token) = {
        drop((waiting, underpaid, confirming, token));
        let waiting = shop.charge("BTC").await;
        let token = shop.charge("USDT_TRON").await;
        let underpaid = shop.charge("LTC").await;
        shop.pay(&underpaid, "0.5", 3).await;
        let confirming = shop.charge("LTC").await;
        shop.pay(&confirming, "1", 1).await;
        (waiting, underpaid, confirming, token)
    };
    vec![
        ("checkout-receipt", format!("{paid}/receipt")),
        ("checkout-waiting", waiting),
        ("checkout-token", token),
        ("checkout-confirming", confirming),
        ("checkout-underpaid", underpaid),
        ("checkout-paid", paid),
        ("checkout-expired", expired),
        ("checkout-canceled", canceled),
        ("checkout-late", late),
        ("checkout-nowhere", "/c/aaaaaaaaaaaa".to_owned()),
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

async fn invoices(shop: &Shop) -> Vec<(&'static str, String)> {
    let open = shop.make("invoices", invoice()).await;
    let chosen = shop.make("invoices", invoice()).await;
    let paid = shop.make("invoices", invoice()).await;
    let void = shop.make("invoices", invoice()).await;
    shop.api("POST", &format!("/v1/invoices/{}/void", Shop::code(&void)), json!({})).await;
    for (path, asset) in [(&paid, "LTC"), (&chosen, "BTC")] {
        let charge =
            shop.sandbox(&format!("invoices/{}/choose", Shop::code(path)), json!({ "asset": asset })).await;
        if asset == "LTC" {
            shop.pay(charge["charge"].as_str().expect("a code"), "1", 3).await;
        }
    }
    vec![
        ("invoice-open", open),
        ("invoice-chosen", chosen),
        ("invoice-document", format!("{paid}/document")),
        ("invoice-paid", paid),
        ("invoice-void", void),
    ]
}

async fn links(shop: &Shop) -> Vec<(&'static str, String)> {
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
    let archived = shop.make("payment-links", fixed.clone()).await;
    shop.api("POST", &format!("/v1/payment-links/{}/archive", Shop::code(&archived)), json!({})).await;
    vec![
        ("link-fixed", shop.make("payment-links", fixed).await),
        ("link-open", shop.make("payment-links", open).await),
        ("link-archived", archived),
    ]
}
