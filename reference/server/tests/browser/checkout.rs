//! The checkout page: payments and failures by the buttons of the sandbox panel, and updates of the page.

use reference_server::ClockKind;
use serde_json::json;

use testkit::browser::Browser;

use crate::shop::Shop;

#[tokio::test]
async fn the_page_follows_a_payment_without_a_reload() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::with_clock(ClockKind::Wall).await;
    let page = browser.page().await;
    page.open(&shop.url(&shop.create_charge("BTC").await)).await;
    // A script variable that a reload would delete.
    page.eval("window.kept = 'since the page was opened'").await;
    page.wait_for_text("h1", "Waiting for your payment").await;
    assert!(page.text(".left time").await.contains(':'), "the remaining time is not shown");

    page.click("#act-exact").await;
    page.wait_for_text("[data-result]", "Sent.").await;
    page.wait_for_text("h1", "Payment seen, confirming").await;
    page.wait_for_text("#announce", "Payment seen, confirming").await;

    page.click("#act-mine-enough").await;
    page.wait_for_text("h1", "Paid").await;
    assert_eq!(page.eval("window.kept").await, json!("since the page was opened"));

    page.click(".payment a.primary").await;
    page.wait_for_url("/receipt").await;
    page.wait_for_text("h1", "Receipt").await;
    assert_eq!(page.errors(), Vec::<String>::new());
}

#[tokio::test]
async fn the_page_shows_the_results_of_panel_buttons() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let page = browser.page().await;
    page.open(&shop.url(&shop.create_charge("LTC").await)).await;
    // The clicked button, the resulting heading, and a part of the list of transfers (empty: not checked).
    for (button, heading, transfers) in [
        ("exact", "Payment seen, confirming", "seen, not in a block yet"),
        ("replaced", "Waiting for your payment", "replaced by its sender"),
        ("short", "Payment seen, confirming", "seen, not in a block yet"),
        ("dropped", "Waiting for your payment", "dropped by the network"),
        ("over", "Payment seen, confirming", "seen, not in a block yet"),
        ("double-spent", "Payment seen, confirming", ""),
        ("mine", "Waiting for your payment", "double-spent"),
        ("split", "Payment seen, confirming", "seen, not in a block yet"),
        ("mine", "Payment seen, confirming", "1 of 3 confirmations"),
        ("reorganised", "Payment seen, confirming", "seen, not in a block yet"),
        ("mine-enough", "Paid", "confirmed"),
        // The heading stays the same, so the list of transfers shows when the page has changed: before that, the next
        // click could hit a button that is being removed.
        ("again", "Paid", "seen, not in a block yet"),
        ("mine-enough", "Paid", "confirmed"),
    ] {
        page.eval("document.querySelector('[data-result]').textContent = ''").await;
        page.click(&format!("#act-{button}")).await;
        page.wait_until("document.querySelector('[data-result]').textContent", || {
            format!("{button} shows no result")
        })
        .await;
        let result = page.text("[data-result]").await;
        assert_eq!(page.count("[data-result].bad").await, 0, "{button}: {result}");
        page.wait_for_text("h1", heading).await;
        if !transfers.is_empty() {
            page.wait_for_text(".transfers", transfers).await;
        }
    }
    assert_eq!(page.errors(), Vec::<String>::new());
}

#[tokio::test]
async fn an_underpaid_charge_shows_the_remaining_amount() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let page = browser.page().await;
    page.open(&shop.url(&shop.create_charge("LTC").await)).await;
    let full_amount = page.text("#pay-amount").await;
    page.click("#act-short").await;
    page.wait_for_text("h1", "Payment seen, confirming").await;
    page.wait_for_text(".due", &format!("remaining of {full_amount} LTC")).await;
    let rest = page.text("#pay-amount").await;
    assert_ne!(rest, full_amount);
    page.click("#act-mine-enough").await;
    page.wait_for_text("h1", "Partially paid").await;
    assert_eq!(page.text("#pay-amount").await, rest);
    page.click("#act-exact").await;
    page.wait_for_text(".payment", "There is nothing more to do").await;
    assert_eq!(page.count("#pay-amount").await, 0);
    page.click("#act-mine-enough").await;
    page.wait_for_text("h1", "Paid").await;
}

#[tokio::test]
async fn late_payments_are_shown_as_late() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let page = browser.page().await;
    let path = shop.create_charge("BTC").await;
    page.open(&shop.url(&path)).await;
    page.click("#act-late").await;
    page.wait_for_text("h1", "Your payment arrived too late").await;
    page.click("#act-mine-enough").await;
    page.wait_for_text("[data-result]", "The clock was advanced").await;
    shop.sandbox(&format!("charges/{}/accept", Shop::code(&path)), json!({})).await;
    page.wait_for_text("h1", "Paid").await;
}

#[tokio::test]
async fn a_button_shows_its_curl_command() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let path = shop.create_charge("BTC").await;
    let page = browser.page().await;
    page.open(&shop.url(&path)).await;
    page.click("#curl-exact > summary").await;
    let command = page.text("#line-exact").await;
    let body = format!(r#"{{"charge":"{}"}}"#, Shop::code(&path));
    assert_eq!(
        command,
        format!("curl -X POST {} -H 'Content-Type: application/json' -d '{body}'", shop.url("/sandbox/pay"))
    );
    // Updates of other parts of the page do not hide the command.
    shop.sandbox("advance", json!({ "by": "1s" })).await;
    shop.pay(&path, "0.5", 0).await;
    page.wait_for_text("h1", "Payment seen, confirming").await;
    assert!(page.is_visible("#line-exact").await, "the command is hidden after an update");
}

#[tokio::test]
async fn the_remaining_time_follows_the_service_clock() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::with_clock(ClockKind::Fast { factor: std::num::NonZeroU32::new(600).unwrap() }).await;
    let page = browser.page().await;
    page.open(&shop.url(&shop.create_charge("BTC").await)).await;
    // Half an hour passes in three seconds, and the page follows.
    page.wait_for_text("h1", "This payment has expired").await;

    let shop = Shop::frozen().await;
    page.open(&shop.url(&shop.create_charge("BTC").await)).await;
    page.wait_for_text(".left time", "30:00").await;
    shop.sandbox("advance", json!({ "by": "90s" })).await;
    page.wait_for_text(".left time", "28:30").await;
}

#[tokio::test]
async fn the_page_works_without_scripts() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let page = browser.page().await;
    page.disable_scripts().await;
    page.open(&shop.url(&shop.create_charge("LTC").await)).await;
    page.wait_for_text(".left time", "30 minutes").await;
    assert!(!page.is_visible("#copy-address").await, "the copy button is shown although it needs scripts");
    assert_eq!(page.count("meta[http-equiv=refresh]").await, 1, "the page does not reload itself");
    for (button, heading) in [
        ("exact", "Payment seen, confirming"),
        ("advance", "Payment seen, confirming"),
        ("mine-enough", "Paid"),
    ] {
        page.click_through(&format!("#act-{button}")).await;
        page.wait_for_text("h1", heading).await;
    }
    assert_eq!(page.count("meta[http-equiv=refresh]").await, 0, "a paid page still reloads itself");
}

#[tokio::test]
async fn the_page_can_be_used_by_keyboard() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let page = browser.page().await;
    page.open(&shop.url(&shop.create_charge("LTC").await)).await;
    page.press("Tab").await;
    assert_eq!(page.eval("document.activeElement.className").await, json!("skip"));
    page.press("Enter").await;
    let focused = "document.activeElement.id";
    assert_eq!(page.eval(focused).await, json!("main"));
    for id in ["copy-amount", "copy-address"] {
        page.press("Tab").await;
        assert_eq!(page.eval(focused).await, json!(id));
    }
    page.press("Tab").await;
    page.press("Tab").await;
    assert_eq!(page.eval(focused).await, json!("act-exact"));
    page.press("Enter").await;
    page.wait_for_text("[data-result]", "Sent.").await;
    // The button is removed after the payment: the focus moves to the panel, so that the next key press pays nothing.
    page.wait_for("#act-replaced").await;
    assert_eq!(page.count("#act-exact").await, 0);
    assert_eq!(page.eval("document.activeElement.dataset.part").await, json!("sandbox"));
}
