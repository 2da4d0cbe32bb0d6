//! `/docs` and its forms that send requests, `/`, and the list of requests on the dashboard.

use testkit::browser::{Browser, Viewport, axe};

use crate::shop::{Shop, save_screenshot};

#[tokio::test]
async fn a_call_is_sent_from_its_documentation() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let page = browser.page().await;
    page.open(&shop.url("/docs")).await;
    page.click("button[data-make-key]").await;
    page.wait_for_text("#try-key-status", "A new test key").await;
    // The body is the document's example.
    page.click("#createCharge-try summary").await;
    page.click("#createCharge-try button").await;
    page.wait_for_text("#createCharge-try [data-try-result]", "201 after").await;
    let response = page.text("#createCharge-try [data-try-result]").await;
    let code =
        response.split_once(r#""code": ""#).and_then(|(_, rest)| rest.split('"').next()).expect("a code");

    page.click("#getCharge-try summary").await;
    for (input, expected) in [("nobody", "404 after"), (code, r#""status": "pending""#)] {
        page.fill("#getCharge-try input[data-in=path]", input).await;
        page.click("#getCharge-try button").await;
        page.wait_for_text("#getCharge-try [data-try-result]", expected).await;
    }
    page.fill("#try-key", "svc_test_wrong").await;
    page.click("#getCharge-try button").await;
    page.wait_for_text("#getCharge-try [data-try-result]", "401 after").await;
    assert_eq!(page.errors(), Vec::<String>::new(), "the page reported errors");

    // The request is listed on the dashboard.
    page.open(&shop.url("/dashboard/acme/test/requests?status=refused")).await;
    page.wait_for_text("main", "GET /v1/charges/nobody").await;
    page.open(&shop.url("/dashboard/acme/test/requests?q=post")).await;
    page.click_through("tbody tr:first-child th a").await;
    page.wait_for_text(".figure", "/v1/charges").await;
    page.wait_for_text(".figure .badge", "201").await;
    page.wait_for_text("#request-curl", "curl -i -X POST").await;
    assert_eq!(page.errors(), Vec::<String>::new());
}

#[tokio::test]
async fn documentation_pages_are_accessible_and_searchable() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let page = browser.page().await;
    for (name, path, expected) in [
        ("home", "/", "First steps"),
        ("not-found", "/nowhere", "no page at this address"),
        ("docs", "/docs", "Signature and retries"),
        ("docs in Python", "/docs?examples=python", "requests.post"),
    ] {
        for viewport in Viewport::ALL {
            page.set_viewport(viewport).await;
            page.open(&shop.url(path)).await;
            page.wait_for_text("main", expected).await;
            page.assert_fits().await;
            save_screenshot(&page, &format!("{name}-{}", viewport.name)).await;
        }
        axe::assert_accessible(&page, name).await;
    }
    page.set_viewport(Viewport::DESKTOP).await;
    page.open(&shop.url("/docs")).await;
    page.click("details[id='flask_hooks.py'] summary").await;
    page.wait_for_text("details[id='flask_hooks.py']", "def verify").await;
    // The filter finds a call by its method, path or summary, and hides the other groups.
    page.fill("#filter", "post refunds").await;
    let visible_entries = "[...document.querySelectorAll('#menu li')].filter((it) => it.checkVisibility()).map((it) => it.innerText.replace(/\\s+/g, ' '))";
    let entries = page.eval(visible_entries).await;
    assert!(entries.as_array().is_some_and(|all| (1..=3).contains(&all.len())), "{entries}");
    assert!(entries.to_string().contains("/v1/charges/{id}/refunds"), "{entries}");
    page.fill("#filter", "no such call").await;
    page.wait_for_text("#filter-none", "No entry contains this text").await;
    assert_eq!(page.eval(visible_entries).await, serde_json::json!([]));
    // A link to an event type opens its entry.
    page.open(&shop.url("/docs#charge.paid")).await;
    page.wait_for_text("details[id='charge.paid']", "chargeproof trigger charge.paid").await;
    assert_eq!(page.errors(), Vec::<String>::new());
}
