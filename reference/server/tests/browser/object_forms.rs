//! The forms of the dashboard that create objects, the search, and payments of these objects.

use serde_json::json;

use testkit::browser::{Browser, Page};

use crate::shop::Shop;

const LIVE: &str = "/dashboard/acme/live";

/// A form that creates an object. Fields are CSS selectors with the text to enter.
struct Form {
    /// The path of the list that links to the form.
    list: &'static str,
    invalid_input: (&'static str, &'static str),
    /// A part of the error message at the invalid field.
    error: &'static str,
    valid_input: &'static [(&'static str, &'static str)],
    /// A part of the notice after the object was created.
    notice: &'static str,
}

const FORMS: [Form; 4] = [
    Form {
        list: "/charges",
        invalid_input: ("#amount", "ten"),
        error: "amount",
        valid_input: &[
            ("#amount", "12.50"),
            ("#customer_email", "ann@shop.example"),
            ("#metadata", "A-1001"),
        ],
        notice: "The charge is open",
    },
    Form {
        list: "/invoices",
        invalid_input: ("#item-1", "Consulting"),
        error: "unit_amount",
        valid_input: &[("#unit-amount-1", "80.00"), ("#quantity-1", "2")],
        notice: "The invoice is issued",
    },
    Form {
        list: "/links",
        invalid_input: ("#amount", "-1"),
        error: "amount",
        valid_input: &[("#title", "A cup of coffee"), ("#amount", "3.50")],
        notice: "The link was created",
    },
    Form {
        list: "/charges",
        invalid_input: ("#customer_email", "nobody"),
        error: "customer_email",
        valid_input: &[("#customer_email", "bob@shop.example"), ("#amount", "7")],
        notice: "The charge is open",
    },
];

/// Checks that the field still contains the input.
async fn assert_input_kept(page: &Page, (field, text): (&str, &str)) {
    assert_eq!(page.eval(&format!("document.querySelector('{field}').value")).await, json!(text), "{field}");
}

#[tokio::test]
async fn forms_create_objects_and_keep_invalid_input() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let page = browser.page().await;
    for form in FORMS {
        page.open(&shop.url(&format!("{LIVE}{}", form.list))).await;
        page.click_through("#new, #new-first").await;
        page.fill(form.invalid_input.0, form.invalid_input.1).await;
        page.click_through("#make").await;
        page.wait_for_text(&format!("{}-wrong", form.invalid_input.0), form.error).await;
        page.wait_for_text(".note.bad", "Not done").await;
        assert_input_kept(&page, form.invalid_input).await;
        for (field, text) in form.valid_input {
            page.fill(field, text).await;
        }
        page.click_through("#make").await;
        page.wait_for_text(".note.good", form.notice).await;
        assert!(!page.url().await.contains("/new"), "{}", form.list);
    }
    assert_eq!(page.errors(), Vec::<String>::new());
}

#[tokio::test]
async fn search_finds_objects() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let order = json!({
        "asset": "BTC", "amount": "49.90", "currency": "EUR", "customer_email": "ann@shop.example",
        "metadata": { "order_id": "A-1001" },
    });
    let code = Shop::code(&shop.create("charges", order).await).to_owned();
    let page = browser.page().await;
    for query in ["a-1001", "ANN@shop"] {
        page.open(&shop.url(LIVE)).await;
        page.fill("#search", query).await;
        page.press("Enter").await;
        page.wait_for_url("/search?q=").await;
        page.click_through("#hit-1").await;
        page.wait_for_url(&format!("/charges/{code}")).await;
    }
    page.open(&shop.url(&format!("{LIVE}/search?q=%3Cb%3Enobody"))).await;
    page.wait_for_text("main", "No results for <b>nobody").await;
    assert_eq!(page.errors(), Vec::<String>::new());
}

/// The title of a tab shows the state of the charge, and a customer cannot pay twice by mistake.
#[tokio::test]
async fn no_second_payment_is_offered_while_one_is_unconfirmed() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let path = shop.create_charge("BTC").await;
    let code = Shop::code(&path);
    let (page, hosted_page) = (browser.page().await, browser.page().await);
    page.open(&shop.url(&format!("{LIVE}/charges/{code}"))).await;
    hosted_page.open(&shop.url(&path)).await;
    let title_starts_with = |text: &'static str| format!("document.title.startsWith({})", json!(text));
    page.wait_until(&title_starts_with("pending · Charge"), || {
        "the title of the tab does not show the status".to_owned()
    })
    .await;
    page.fill("#amount", "0.0001").await;
    page.click_through("#pay").await;
    page.wait_for_text("main", "A payment is pending").await;
    assert!(!page.is_visible("#pay").await, "a second payment is offered without a further click");
    hosted_page.wait_for("#act-twice").await;
    assert_eq!(hosted_page.count("#act-exact").await, 0);
    // Input survives updates of the page.
    page.click("#pay-more summary").await;
    page.fill("#amount", "0.5").await;
    shop.sandbox("mine", json!({ "mode": "live", "asset": "BTC", "blocks": 1 })).await;
    page.wait_for_text("main", "1 of 2 confirmations").await;
    assert_input_kept(&page, ("#amount", "0.5")).await;
    shop.sandbox("mine", json!({ "mode": "live", "asset": "BTC", "blocks": 1 })).await;
    page.wait_until(&title_starts_with("paid · Charge"), || {
        "the title never showed that it is paid".to_owned()
    })
    .await;
    hosted_page
        .wait_until(&title_starts_with("Paid · "), || {
            "the customer's title never showed that it is paid".to_owned()
        })
        .await;
    assert_eq!(page.errors(), Vec::<String>::new());
    assert_eq!(hosted_page.errors(), Vec::<String>::new());
}

/// The panels of invoices and links choose a coin and pay, as the dashboard does.
#[tokio::test]
async fn invoices_and_links_are_paid_by_one_click() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let invoice = shop.create("invoices", json!({ "amount": "99.00", "currency": "EUR" })).await;
    let link = json!({
        "title": "Support us", "pricing_type": "open", "currency": "EUR", "require_email": true,
        "custom_fields": [{ "label": "Seat", "required": true }],
    });
    let link = shop.create("payment-links", link).await;
    let page = browser.page().await;
    page.open(&shop.url(&invoice)).await;
    page.click("#act-pay-btc").await;
    page.wait_for_text("main", "Payment seen, confirming").await;
    page.open(&shop.url(&link)).await;
    page.click_through("#act-pay-btc").await;
    page.wait_for_url("/c/").await;
    page.wait_for_text("main", "Payment seen, confirming").await;
    page.open(&shop.url(&format!("{LIVE}/invoices/{}", Shop::code(&invoice)))).await;
    assert_eq!(page.count("#pay-in").await, 0, "a payment is offered although one is unconfirmed");
    let other = shop.create("invoices", json!({ "amount": "9.00", "currency": "EUR" })).await;
    for (list, path) in [("invoices", &other), ("links", &link)] {
        page.open(&shop.url(&format!("{LIVE}/{list}/{}", Shop::code(path)))).await;
        page.click_through("#pay-in").await;
        page.wait_for_text(".note.good", "opened charge").await;
    }
    assert_eq!(page.errors(), Vec::<String>::new());
}

/// A refunded late payment can no longer be accepted, and the customer sees the refund.
#[tokio::test]
async fn a_refunded_late_payment_is_shown_as_refunded() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let path = shop.create_charge("BTC").await;
    shop.sandbox("advance", json!({ "by": "31m" })).await;
    shop.pay(&path, "1", 2).await;
    let due = shop.api("GET", &format!("/v1/charges/{}", Shop::code(&path)), json!(null)).await;
    let due = due["asset_amount"].as_str().expect("an amount").to_owned();
    let page = browser.page().await;
    page.open(&shop.url(&format!("{LIVE}/late"))).await;
    page.click_through(".acts a").await;
    page.wait_for_text(".transfers", "late").await;
    page.wait_for("#refund[open]").await;
    page.fill("#refund-amount", "21").await;
    page.fill("#reason", "Too late").await;
    page.click_through("#refund-now").await;
    page.wait_for_text("#refund-amount-wrong", "amount").await;
    assert_input_kept(&page, ("#reason", "Too late")).await;
    page.fill("#refund-amount", &due).await;
    page.click_through("#refund-now").await;
    page.wait_for_text(".note.good", "The refund is recorded").await;
    page.wait_for_text(".transfers", "sent back").await;
    page.wait_for_text("main", "Too late").await;
    page.open(&shop.url(&format!("{LIVE}/late"))).await;
    page.wait_for_text("main", "No late payments").await;
    page.open(&shop.url(&path)).await;
    page.wait_for_text("main", &format!("{due} BTC was sent back to you")).await;
    page.wait_for_text(".transfers", "late, and refunded").await;
    assert!(
        !page.text("main").await.contains("decides whether to accept it"),
        "the page announces a decision about a refunded payment"
    );
    assert_eq!(page.errors(), Vec::<String>::new());
}

#[tokio::test]
async fn a_link_is_archived_and_restored() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::frozen().await;
    let link = json!({ "title": "Support us", "pricing_type": "open", "currency": "EUR" });
    let link = shop.create("payment-links", link).await;
    let page = browser.page().await;
    page.open(&shop.url(&format!("{LIVE}/links/{}", Shop::code(&link)))).await;
    page.click("#archive summary").await;
    page.click_through("#archive-now").await;
    page.wait_for_text(".note.good", "The link was archived").await;
    page.wait_for_text(".figure", "archived").await;
    assert_eq!(page.count("#pay-in").await, 0, "an archived link offers payment");
    page.click_through("#restore").await;
    page.wait_for_text(".note.good", "active again").await;
    page.wait_for_text(".figure", "active").await;
    assert_eq!(page.errors(), Vec::<String>::new());
}
