//! The dashboard in a browser: keys, endpoints, deliveries, late payments, wallets, and branches
//! (worlds that continue from an earlier state of another world).

use reference_server::ClockKind;
use serde_json::{Value, json};

use testkit::browser::{Browser, Page};

use crate::shop::Shop;

const LIVE: &str = "/dashboard/acme/live";

/// Presses Tab, at most 80 times, until the element has the focus.
async fn tab_to(page: &Page, id: &str) {
    for _ in 0..80 {
        if page.eval("document.activeElement.id").await == json!(id) {
            return;
        }
        page.press("Tab").await;
    }
    panic!("#{id} is not reached by the Tab key");
}

/// Sets a script variable that a reload deletes.
async fn set_reload_marker(page: &Page) {
    page.eval("window.kept = 'since the page was opened'").await;
}

async fn assert_not_reloaded(page: &Page) {
    assert_eq!(page.eval("window.kept").await, json!("since the page was opened"), "the page was reloaded");
}

#[tokio::test]
async fn a_key_is_created_shown_once_and_revoked() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let page = browser.page().await;
    page.open(&shop.url(&format!("{LIVE}/keys"))).await;
    page.click("#create-key").await;
    page.wait_for_url("notice=").await;
    let secret = page.text("#secret").await;
    assert!(secret.starts_with("svc_live_"), "{secret}");
    assert_eq!(shop.status_with_key(&secret, "/v1/account").await, 200);

    page.open(&shop.url(&format!("{LIVE}/keys"))).await;
    assert_eq!(page.count("#secret").await, 0, "the key is shown again");
    let key_suffix = format!("…{}", &secret[secret.len() - 4..]);
    page.wait_for_text("tbody tr:first-child th", &key_suffix).await;
    page.click("tbody tr:first-child summary").await;
    page.click("tbody tr:first-child form button").await;
    page.wait_for_text(".note.good", "revoked").await;
    page.wait_for_text("tbody tr:last-child", "revoked").await;
    assert_eq!(shop.status_with_key(&secret, "/v1/account").await, 401);
    assert_eq!(page.errors(), Vec::<String>::new());
}

#[tokio::test]
async fn a_test_event_is_sent_and_resent() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::with_clock(ClockKind::Wall).await;
    let page = browser.page().await;
    page.open(&shop.url(&format!("{LIVE}/endpoints"))).await;
    page.fill("#url", "https://10.0.0.7/hooks").await;
    page.click("#save").await;
    page.wait_for_text("#url-wrong", "10.0.0.7").await;
    // The invalid field gets the focus shortly after its error appears.
    page.wait_for("#url:focus").await;
    assert!(page.eval("document.title").await.as_str().is_some_and(|text| text.starts_with("Not done")));
    page.fill("#url", "https://shop.sim/hooks").await;
    page.click("#save").await;
    page.wait_for_url("/endpoints?notice=").await;
    assert!(page.text("#secret").await.starts_with("whsec_"));

    page.click("tbody th a").await;
    page.wait_for("#send-test").await;
    page.click("#send-test").await;
    page.wait_for_url("/deliveries/").await;
    set_reload_marker(&page).await;
    page.wait_for_text("#attempts-head", "One attempt").await;
    page.wait_for_text(".figure", "delivered").await;
    assert!(page.text("pre.code").await.contains(r#""test": true"#));
    assert_not_reloaded(&page).await;

    page.click("#resend").await;
    page.wait_for_text(".note.good", "on its way again").await;
    page.wait_for_text("#attempts-head", "2 attempts").await;
    page.wait_for_text(".figure", "delivered").await;
    page.open(&shop.url(&format!("{LIVE}/deliveries"))).await;
    assert_eq!(page.count("tbody tr").await, 1, "a resend is listed as another delivery");
    assert_eq!(page.errors(), Vec::<String>::new());
}

/// Creates a charge that expired before it was paid; returns its code.
async fn late_charge(shop: &Shop) -> String {
    let path = shop.create_charge("BTC").await;
    shop.sandbox("advance", json!({ "by": "31m" })).await;
    shop.pay(&path, "1", 2).await;
    Shop::code(&path).to_owned()
}

#[tokio::test]
async fn a_late_payment_is_accepted() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let code = late_charge(&shop).await;
    let page = browser.page().await;
    page.open(&shop.url(LIVE)).await;
    page.click("#late-note").await;
    page.wait_for_url("/late").await;
    page.click(".acts button").await;
    page.wait_for_text(".note.good", &code).await;
    page.wait_for_text("main", "No late payments").await;
    page.open(&shop.url(&format!("{LIVE}/charges/{code}"))).await;
    page.wait_for_text(".figure", "paid").await;
    page.wait_for_text(".timeline", "charge.paid").await;
    assert_eq!(page.errors(), Vec::<String>::new());
}

#[tokio::test]
async fn the_dashboard_can_be_used_by_keyboard() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let code = late_charge(&shop).await;
    let page = browser.page().await;
    page.open(&shop.url(LIVE)).await;
    page.press("Tab").await;
    assert_eq!(
        page.eval("document.activeElement.className").await,
        json!("skip"),
        "the first focused element is not the skip link"
    );
    tab_to(&page, "to-late").await;
    page.press("Enter").await;
    page.wait_for_url("/late").await;
    tab_to(&page, &format!("accept-{code}-1")).await;
    page.press("Enter").await;
    page.wait_for_text(".note.good", &code).await;

    tab_to(&page, "to-keys").await;
    page.press("Enter").await;
    page.wait_for_url("/keys").await;
    tab_to(&page, "create-key").await;
    page.press("Enter").await;
    page.wait_for("#secret").await;
    assert_eq!(page.errors(), Vec::<String>::new());
}

#[tokio::test]
async fn changes_appear_without_a_reload() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let page = browser.page().await;
    page.open(&shop.url(LIVE)).await;
    page.wait_for_text("main", "No events yet").await;
    set_reload_marker(&page).await;
    let path = shop.create_charge("LTC").await;
    page.wait_for_text("main", "charge.created").await;
    page.wait_for_text("main", Shop::code(&path)).await;
    page.wait_for_text(".tiles li:first-child", "1").await;
    let clock = page.text("time[data-clock]").await;
    shop.sandbox("advance", json!({ "by": "31m" })).await;
    page.wait_for_text("main", "charge.expired").await;
    assert_ne!(
        page.text("time[data-clock]").await,
        clock,
        "the clock on the page does not follow the world's clock"
    );
    assert_not_reloaded(&page).await;

    page.open(&shop.url(&format!("{LIVE}/late"))).await;
    set_reload_marker(&page).await;
    shop.pay(&path, "1", 3).await;
    page.wait_for_text(".acts", "Accept").await;
    page.wait_for_text("#to-late", "1").await;
    assert_not_reloaded(&page).await;
}

#[tokio::test]
async fn the_dashboard_works_without_scripts() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let code = Shop::code(&shop.create_charge("BTC").await).to_owned();
    let page = browser.page().await;
    page.disable_scripts().await;
    page.open(&shop.url(LIVE)).await;
    assert!(!page.is_visible("button.scripted-only").await, "a button that needs scripts is shown");
    page.click(&format!("#pay-{code}")).await;
    page.wait_for_url("notice=").await;
    page.open(&shop.url(&format!("{LIVE}/charges/{code}"))).await;
    for confirmations in ["1 of 2 confirmations", "2 confirmations"] {
        page.click("button[name=at_once]").await;
        page.wait_for_text(".transfers", confirmations).await;
    }
    page.wait_for_text(".figure", "paid").await;
    page.open(&shop.url(&format!("{LIVE}/world"))).await;
    page.fill("#by", "soon").await;
    page.click("form[action$='/advance'] button").await;
    page.wait_for_text("#by-wrong", "30s").await;
    page.wait_for_url("/world/advance").await;
    page.fill("#by", "2h").await;
    page.click("form[action$='/advance'] button").await;
    page.wait_for_text(".note.good", "2026-09-20 12:").await;
}

#[tokio::test]
async fn a_wallet_is_validated_set_and_removed() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let page = browser.page().await;
    let wallets: Value = shop.read("/sandbox/wallets").await;
    let wallet_key = |mode: &str| {
        let rows = wallets["wallets"].as_array().expect("a list");
        let found = rows.iter().find(|row| row["mode"] == mode && row["asset"] == "BTC").expect("a wallet");
        found["key"].as_str().expect("a key").to_owned()
    };
    page.open(&shop.url("/dashboard/acme/test/wallets/BTC")).await;
    for (typed, expected) in [("nonsense", "checksum"), (wallet_key("live").as_str(), "vpub or tpub or upub")]
    {
        page.fill("#key", typed).await;
        page.click("#save").await;
        page.wait_for_text("#key-wrong", expected).await;
        assert_eq!(
            page.eval("document.getElementById('key').value").await,
            json!(typed),
            "the input is lost"
        );
    }
    let private = "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHi";
    page.fill("#key", private).await;
    page.click("#save").await;
    page.wait_for_text("#key-wrong", "private key").await;
    assert_eq!(page.eval("document.documentElement.innerHTML.includes('xprv9s21')").await, json!(false));
    page.open(&shop.url("/dashboard/acme/test/wallets/BTC")).await;
    page.click("#remove summary").await;
    page.click("#remove-now").await;
    page.wait_for_text("tbody tr:first-child", "not accepted").await;
    page.open(&shop.url("/dashboard/acme/test/wallets/BTC")).await;
    page.fill("#key", &wallet_key("test")).await;
    page.click("#save").await;
    page.wait_for_text("tbody tr:first-child", "extended public key").await;
    assert_eq!(page.errors(), Vec::<String>::new());
}

#[tokio::test]
async fn a_branch_starts_from_a_row_of_the_history() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let charge = shop.create_charge("BTC").await;
    shop.sandbox("advance", json!({ "by": "3h" })).await;
    let page = browser.page().await;
    page.open(&shop.url("/dashboard/acme/live/history?part=requests")).await;
    page.wait_for_text("main", "POST /v1/charges 201").await;
    page.click_through("tbody tr:last-child button").await;
    page.wait_for_url("/w/").await;
    page.wait_for_text(".note.good", "a branch that continues from").await;
    let world =
        page.url().await.split("/w/").nth(1).and_then(|rest| rest.split('/').next().map(str::to_owned));
    let world = world.expect("the address names the world");
    page.wait_for_text(".top", &format!("World {world}")).await;
    let title = page.eval("document.title").await;
    assert!(title.as_str().is_some_and(|title| title.ends_with(&format!("· world {world}"))), "{title}");
    // Searching for a complete code opens its object.
    page.fill("#search", Shop::code(&charge)).await;
    page.click_through(".search button").await;
    page.wait_for_url(&format!("/charges/{}", Shop::code(&charge))).await;
    page.wait_for_text("main", "pending").await;
    assert_eq!(page.errors(), Vec::<String>::new());
}
