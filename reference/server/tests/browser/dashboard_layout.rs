//! Layout, colours and accessibility of every page of the dashboard: empty, and with hostile data.

use serde_json::{Value, json};

use testkit::browser::{Browser, Page, Viewport, axe};

use crate::shop::{Shop, save_screenshot};

const LIVE: &str = "/dashboard/acme/live";

/// Returns markup, a direction override, and a word that is longer than a line.
fn hostile_string() -> String {
    format!(
        "<img src=x onerror=\"window.pwned=1\"><script>window.pwned=1</script> \u{202e}שלום {}",
        "m".repeat(200)
    )
}

/// Creates an object through the API and returns its code.
async fn create(shop: &Shop, kind: &str, body: Value) -> String {
    let created = shop.api("POST", &format!("/v1/{kind}"), body).await;
    created["code"].as_str().expect("a code").to_owned()
}

fn hostile_charge(long: &str, short: &str, link: &str) -> Value {
    let metadata: serde_json::Map<String, Value> = (0..20)
        .map(|n| {
            (
                format!("<b>key {n:02}</b> {}", "k".repeat(20)),
                json!(format!("{long}{short}").chars().take(500).collect::<String>()),
            )
        })
        .collect();
    json!({
        "asset": "ETH", "amount": "123456.78", "payment_link": link, "description": long,
        "customer": { "name": short, "email": format!("{}@shop.example", "e".repeat(200)), "metadata": metadata },
        "metadata": metadata,
        "custom_fields": [{ "label": short, "value": short }],
    })
}

fn hostile_link(long: &str, short: &str) -> Value {
    json!({
        "title": short, "description": long, "pricing_type": "open", "currency": "EUR",
        "custom_fields": [{ "label": short, "required": true }],
    })
}

fn hostile_invoice(long: &str, short: &str) -> Value {
    json!({
        "customer_name": short, "customer_email": format!("{}@shop.example", "e".repeat(200)), "memo": long,
        "currency": "EUR", "items": [{ "description": short, "quantity": "2", "unit_amount": "80.00" }],
    })
}

/// Fills a book with hostile data, so that no page is empty; returns the names and paths of its pages.
async fn fill_book(shop: &Shop) -> Vec<(&'static str, String)> {
    let long = hostile_string();
    let short: String = long.chars().take(250).collect();
    let endpoint =
        shop.sandbox("endpoints", json!({ "mode": "live", "url": "https://shop.sim/hooks" })).await;
    let endpoint = endpoint["endpoint"]["id"].as_str().expect("an id").to_owned();
    let long_url = format!("https://down.sim/{}", "very/long/path/".repeat(20));
    shop.sandbox("endpoints", json!({ "mode": "live", "url": long_url })).await;
    shop.sandbox("merchants", json!({ "name": "down", "state": "down" })).await;
    let link = create(shop, "payment-links", hostile_link(&long, &short)).await;
    let charge = create(shop, "charges", hostile_charge(&long, &short, &link)).await;
    shop.pay(&format!("/c/{charge}"), "0.5", 12).await;
    shop.pay(&format!("/c/{charge}"), "0.25", 0).await;
    let refund = json!({ "amount": "0.001", "reason": long });
    shop.api("POST", &format!("/v1/charges/{charge}/refunds"), refund).await;
    let late_charge = Shop::code(&shop.create_charge("BTC").await).to_owned();
    shop.sandbox("advance", json!({ "by": "31m" })).await;
    shop.pay(&format!("/c/{late_charge}"), "1", 2).await;
    let open_charge = shop.create_charge("LTC").await;
    let invoice = create(shop, "invoices", hostile_invoice(&long, &short)).await;
    shop.sandbox(&format!("invoices/{invoice}/send"), Value::Null).await;
    shop.sandbox(&format!("endpoints/{endpoint}/test"), Value::Null).await;
    shop.sandbox("advance", json!({ "by": "2m" })).await;
    shop.sandbox("accounts", json!({ "id": "a-second-account-with-the-longest-name-0" })).await;
    let account = json!({ "name": short, "display_name": short });
    shop.patch("/sandbox/accounts/acme", account).await;
    let events = shop.api("GET", "/v1/events", Value::Null).await;
    let event = events[0]["id"].as_str().expect("an id").to_owned();
    let log = shop.read("/sandbox/deliveries?status=waiting").await;
    let delivery = log["deliveries"][0]["id"].as_str().expect("a delivery that waits for a retry").to_owned();
    let other = log["deliveries"][1]["id"].as_str().expect("another delivery").to_owned();
    let path = |rest: &str| format!("{LIVE}{rest}");
    vec![
        ("overview", path("")),
        ("charges", path("/charges")),
        ("charges-none", path("/charges?status=canceled")),
        ("charges-new", path("/charges/new")),
        ("invoices-new", path("/invoices/new")),
        ("links-new", path("/links/new")),
        ("search", path(&format!("/search?q={charge}"))),
        ("search-none", path("/search?q=%3Cscript%3Enobody")),
        ("compared", path(&format!("/deliveries/{delivery}?with={other}"))),
        ("charge", path(&format!("/charges/{charge}"))),
        ("charge-late", path(&format!("/charges/{late_charge}"))),
        ("charge-open", path(&format!("/charges/{}", Shop::code(&open_charge)))),
        ("invoices", path("/invoices")),
        ("invoice", path(&format!("/invoices/{invoice}"))),
        ("links", path("/links")),
        ("link", path(&format!("/links/{link}"))),
        ("late", path("/late")),
        ("events", path("/events")),
        ("event", path(&format!("/events/{event}"))),
        ("deliveries", path("/deliveries")),
        ("delivery", path(&format!("/deliveries/{delivery}"))),
        ("endpoints", path("/endpoints")),
        ("endpoint", path(&format!("/endpoints/{endpoint}"))),
        ("requests", path("/requests")),
        ("requests-refused", path("/requests?status=refused")),
        ("request", path("/requests/1")),
        ("keys", path("/keys")),
        ("wallets", path("/wallets")),
        ("wallet", path("/wallets/BTC")),
        ("wallet-list", path("/wallets/SOL")),
        ("outbox", path("/outbox")),
        ("world", path("/world")),
        ("history", path("/history")),
        ("settings", path("/settings")),
    ]
}

/// Checks that a page fits every viewport, is accessible, and has interpreted no input. Messages contain its name.
async fn check_page(page: &Page, shop: &Shop, name: &str, path: &str) {
    page.open(&shop.url(path)).await;
    page.wait_for("main h1").await;
    for viewport in Viewport::ALL {
        page.set_viewport(viewport).await;
        page.assert_fits().await;
        save_screenshot(page, &format!("dashboard-{name}-{}", viewport.name)).await;
        // Each colour scheme once and each width once: colours depend on one, layout on the other.
        if [Viewport::DESKTOP.name, Viewport::PHONE_DARK.name].contains(&viewport.name) {
            axe::assert_accessible(page, &format!("{name}, {}", viewport.name)).await;
        }
    }
    assert_eq!(page.eval("window.pwned").await, Value::Null, "{name}: a script of the input was executed");
    assert_eq!(page.count("main img, main script").await, 0, "{name}: markup of the input became elements");
    assert_eq!(page.errors(), Vec::<String>::new(), "{name}");
}

#[tokio::test]
async fn every_page_with_hostile_content_is_accessible_and_fits() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let pages = fill_book(&shop).await;
    let page = browser.page().await;
    for (name, path) in &pages {
        check_page(&page, &shop, name, path).await;
    }
}

#[tokio::test]
async fn empty_pages_state_the_next_step() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let page = browser.page().await;
    for (name, expected) in [
        ("", "curl -s"),
        ("/charges", "curl -s"),
        ("/invoices", "curl -s"),
        ("/links", "curl -s"),
        ("/events", "curl -s"),
        ("/late", "No late payments"),
        ("/deliveries", "New webhook endpoint"),
        ("/endpoints", "https://shop.sim/hooks"),
        ("/requests", "curl -s"),
        ("/history", "curl -s"),
        ("/outbox", "Send an invoice"),
    ] {
        let path = format!("/dashboard/acme/test{name}");
        page.open(&shop.url(&path)).await;
        page.wait_for_text("main", expected).await;
        check_page(&page, &shop, &format!("empty{}", name.replace('/', "-")), &path).await;
    }
}

#[tokio::test]
async fn errors_secrets_menu_and_login_are_accessible() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let page = browser.page().await;
    for viewport in [Viewport::DESKTOP, Viewport::PHONE_DARK] {
        page.set_viewport(viewport).await;
        page.open(&shop.url(&format!("{LIVE}/endpoints"))).await;
        page.fill("#url", "https://localhost/hooks").await;
        page.click("#save").await;
        page.wait_for("#url-wrong").await;
        page.assert_fits().await;
        axe::assert_accessible(&page, "a refused endpoint").await;
        page.open(&shop.url(&format!("{LIVE}/keys"))).await;
        page.click("#create-key").await;
        page.wait_for("#secret").await;
        page.assert_fits().await;
        axe::assert_accessible(&page, "a new key").await;
        save_screenshot(&page, &format!("dashboard-new-key-{}", viewport.name)).await;
        page.open(&shop.url(&format!("{LIVE}#menu"))).await;
        page.assert_fits().await;
        axe::assert_accessible(&page, "the menu").await;
        page.open(&shop.url(&format!("{LIVE}/charges/aaaaaaaaaaaa"))).await;
        page.wait_for_text("h1", "Page not found").await;
        axe::assert_accessible(&page, "a missing page").await;
        page.open(&shop.url("/dashboard?token=wrong")).await;
        page.wait_for("#token-wrong").await;
        axe::assert_accessible(&page, "the login").await;
    }
}
