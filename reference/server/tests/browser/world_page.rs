//! The page of a simulated world, as `sweep --html` and `play --html` write it: a file that is opened from a disk.
//!
//! A *mark* is a button in its table: a request, a state of a transfer, an event or an attempt of a delivery.

use simulator::{
    demo::DemoFault,
    picture::{self, PageInput},
    script::Script,
    workload,
};
use tempfile::TempDir;

use testkit::browser::{Browser, Page, Viewport, axe};

use crate::shop::save_screenshot;

/// A scenario whose title has a direction override, with a replaced transfer and a repeated delivery.
const SOURCE: &str = r#"title: "Paid twice over \u202e<b onclick=alert(1)>"
steps:
  - endpoint: shop
  - endpoint: { name: till, mode: test }
  - merchant: { shop: [lost, 500] }
  - open: { charge: c1, asset: BTC, amount: 49.90 EUR, description: "</script><script>alert(1)</script>" }
  - open: { charge: c2, asset: LTC, amount: 12.00 EUR }
  - pay: { charge: c1, tx: t1, fee: low }
  - replace: { tx: t1, as: t2, fee: high }
  - cancel: c2
  - mine: { asset: BTC, blocks: 3 }
"#;
const NARROW: Viewport = Viewport { name: "narrow", width: 390, height: 844, scheme: "light" };

/// Opens the page of a scenario or a random world, run with this demo fault.
async fn open(browser: &Browser, script: &Script, fault: Option<&str>) -> (TempDir, Page) {
    open_with_failure(browser, script, fault, None).await
}

/// Like [`open`], with an unmet expectation that `failure` describes.
async fn open_with_failure(
    browser: &Browser,
    script: &Script,
    fault: Option<&str>,
    failure: Option<&str>,
) -> (TempDir, Page) {
    let fault =
        fault.map(|name| DemoFault::ALL.iter().find(|fault| fault.name == name).expect("the fault exists"));
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("world.html");
    let html = picture::page(&PageInput { script, fault, violation: None, failure });
    std::fs::write(&path, html).expect("a page can be written");
    let page = browser.page().await;
    page.open(&format!("file://{}", path.display())).await;
    (directory, page)
}

fn scenario() -> Script {
    Script::parse("paid.yaml", SOURCE).unwrap_or_else(|error| panic!("{error}"))
}

/// Checks that the page reported no error and made no request.
async fn assert_no_errors_or_requests(page: &Page) {
    assert_eq!(page.errors(), Vec::<String>::new());
    assert_eq!(page.eval("performance.getEntriesByType('resource').length").await, 0);
}

#[tokio::test]
async fn a_world_page_is_accessible() {
    let Some(browser) = Browser::start().await else { return };
    let random_world = workload::draw(4).script;
    let unmet = "expected  expired\nactual    paid\n".repeat(20);
    for (name, script, fault, failure, expected) in [
        ("world-random", &random_world, None, None, "every invariant held"),
        ("world-passed", &scenario(), None, None, "every invariant held"),
        ("world-failed", &scenario(), Some("retry-renamed"), None, "invariant 2 (once) is broken"),
        ("world-unmet", &scenario(), None, Some(unmet.as_str()), "the scenario did not go as written"),
    ] {
        let (_directory, page) = open_with_failure(&browser, script, fault, failure).await;
        assert_eq!(
            page.is_visible(".failure pre").await,
            failure.is_some(),
            "{name}: the details of an unmet expectation are shown"
        );
        for viewport in Viewport::ALL.into_iter().chain([NARROW]) {
            page.set_viewport(viewport).await;
            page.wait_for_text(".verdict", expected).await;
            page.assert_fits().await;
            save_screenshot(&page, &format!("{name}-{}", viewport.name)).await;
            // The accessibility rules are slow on a large page.
            if name != "world-random" && [Viewport::DESKTOP, Viewport::PHONE_DARK].contains(&viewport) {
                axe::assert_accessible(&page, &format!("{name} {}", viewport.name)).await;
            }
            page.click(".mark[tabindex='0']").await;
            page.assert_fits().await;
            save_screenshot(&page, &format!("{name}-details-{}", viewport.name)).await;
            page.press("Escape").await;
        }
        page.use_print_styles().await;
        assert!(
            !page.is_visible("form").await
                && page.is_visible(".mark").await
                && page.is_visible("thead").await,
            "{name}"
        );
        assert_no_errors_or_requests(&page).await;
    }
}

#[tokio::test]
async fn marks_are_reachable_by_keyboard() {
    let Some(browser) = Browser::start().await else { return };
    let (_directory, page) = open(&browser, &scenario(), None).await;
    let focused = "document.activeElement.textContent";
    page.eval("[...document.querySelectorAll('#filter input')].at(-1).focus()").await;
    page.press("Tab").await;
    let first = page.eval(focused).await;
    assert_eq!(first, "endpoints shop 200", "the next Tab stop is not the first mark");
    page.press("ArrowDown").await;
    page.press("ArrowDown").await;
    assert_eq!(page.eval(focused).await, "merchants shop lost 500, then up 200");
    assert!(!page.is_visible("#panel").await);
    page.press("Enter").await;
    page.wait_for_text("#panel-details", "POST /sandbox/merchants").await;
    page.wait_for_text("#until", "chargeproof serve --scenario paid.yaml --until 3").await;
    // With the panel open, keys move through its contents.
    for (key, expected) in [
        ("ArrowRight", "charges BTC c1 201"),
        ("ArrowRight", "charge.created c1"),
        ("ArrowRight", "charge.created c1 unreachable"),
        ("ArrowDown", "charge.created c2 500"),
        ("Home", "endpoints shop 200"),
        ("ArrowLeft", "endpoints shop 200"),
    ] {
        page.press(key).await;
        page.wait_for_text("#panel-title", expected).await;
    }
    page.press("Escape").await;
    assert!(!page.is_visible("#panel").await);
    assert_eq!(page.eval(focused).await, first, "the focus did not return to the mark");
    assert_no_errors_or_requests(&page).await;
}

#[tokio::test]
async fn filters_show_only_the_selected_objects() {
    let Some(browser) = Browser::start().await else { return };
    let (_directory, page) = open(&browser, &scenario(), None).await;
    let visible_marks = "[...document.querySelectorAll('.mark')].filter((it) => it.checkVisibility()).map((it) => it.textContent)";
    let all = page.eval(visible_marks).await.as_array().expect("a list").len();
    page.click(".mark.chain").await;
    page.wait_for_text("#panel-objects", "only t1").await;
    page.click("#panel-objects button:last-child").await;
    let of_transfer = page.eval(visible_marks).await;
    let of_transfer = of_transfer.as_array().expect("a list");
    assert!((5..all).contains(&of_transfer.len()), "{of_transfer:?}");
    assert!(!of_transfer.iter().any(|mark| mark.to_string().contains("c2")), "{of_transfer:?}");
    page.wait_for_text("#count", &format!("{} of {all} marks", of_transfer.len())).await;
    // Only the transfers are shown: a payment is one mark, however often it was confirmed.
    for lane in [1, 3, 4, 5] {
        page.eval(&format!("document.querySelector('#filter input[value=\"{lane}\"]')?.click()")).await;
    }
    let transfers = page.eval(visible_marks).await;
    assert_eq!(transfers, serde_json::json!(["t1 unconfirmed", "t1 replaced", "t2 2 conf."]));
    assert_eq!(page.count("thead th:not([hidden])").await, 2);
    assert_no_errors_or_requests(&page).await;
}

#[tokio::test]
async fn a_violated_invariant_links_to_its_time_and_the_scenario() {
    let Some(browser) = Browser::start().await else { return };
    let (_directory, page) = open(&browser, &scenario(), Some("retry-renamed")).await;
    page.click("[data-go='here-0']").await;
    let is_focused = "document.activeElement.id === 'here-0' && document.activeElement.getBoundingClientRect().bottom < innerHeight";
    page.wait_until(is_focused, || "the mark is not visible".to_owned()).await;
    assert!(page.count(".mark.named").await > 0);

    page.click(".take summary").await;
    assert_eq!(page.eval("document.getElementById('scenario').value").await, SOURCE);
    page.eval("{ const make = URL.createObjectURL; URL.createObjectURL = (blob) => { globalThis.saved = blob; return make.call(URL, blob); }; }").await;
    page.click("#save").await;
    assert_eq!(page.eval("saved.text()").await, SOURCE);
    let command = page.text("#again").await;
    assert_eq!(command, "chargeproof sweep paid.yaml --demo-fault retry-renamed");
    assert_no_errors_or_requests(&page).await;
}
