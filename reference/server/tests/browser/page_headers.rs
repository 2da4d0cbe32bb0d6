//! Headers and access rules of the hosted pages, tested over HTTP without a browser.

use testkit::{AsyncConnection, Message};

use crate::shop::Shop;

/// Sends a request; adds the server's `Host` unless `headers` contains one, and the content type of forms to `POST`.
async fn call(shop: &Shop, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Message {
    let mut request = format!("{method} {path} HTTP/1.1\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        request += &format!("Host: {}\r\n", shop.server.address());
    }
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    if method == "POST" {
        request += "Content-Type: application/x-www-form-urlencoded\r\n";
    }
    request += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
    AsyncConnection::connect(shop.server.address()).await.call(request).await
}

#[tokio::test]
async fn a_page_has_a_strict_content_security_policy() {
    let shop = Shop::frozen().await;
    let page = call(&shop, "GET", &shop.create_charge("BTC").await, &[], "").await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(
        page.header("content-security-policy"),
        Some(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
             form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        )
    );
    for (name, value) in [
        ("x-frame-options", "DENY"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
        ("cache-control", "no-store"),
        ("cross-origin-opener-policy", "same-origin"),
    ] {
        assert_eq!(page.header(name), Some(value), "{name}");
    }
    // Nothing is loaded from another origin, and there are no inline styles or handlers.
    for forbidden in ["http://", "https://", "style=", "onclick"] {
        let excerpts = page.body.match_indices(forbidden).map(|(index, _)| &page.body[index..index + 40]);
        // The curl commands contain the server's address.
        let found: Vec<&str> = excerpts.filter(|excerpt| !excerpt.contains(&shop.url(""))).collect();
        assert!(found.is_empty(), "{found:?}");
    }
}

#[tokio::test]
async fn assets_are_cached_under_names_that_contain_their_digest() {
    let shop = Shop::frozen().await;
    let page = call(&shop, "GET", &shop.create_charge("BTC").await, &[], "").await;
    let files: Vec<&str> = page.body.split(['"', ' ']).filter(|word| word.starts_with("/assets/")).collect();
    assert_eq!(files.len(), 6, "{files:?}");
    for file in files {
        let found = call(&shop, "GET", file, &[], "").await;
        assert_eq!(found.status, 200, "{file}");
        assert_eq!(found.header("cache-control"), Some("public, max-age=31536000, immutable"), "{file}");
    }
    assert_eq!(call(&shop, "GET", "/assets/frame-000000000000.css", &[], "").await.status, 404);
}

#[tokio::test]
async fn the_panel_is_shown_only_to_clients_with_sandbox_access() {
    let shop = Shop::frozen().await;
    let path = shop.create_charge("BTC").await;
    let action = format!("{path}/sandbox");
    let remote: [(&str, &str); 1] = [("X-Forwarded-For", "192.0.2.9")];
    assert!(call(&shop, "GET", &path, &[], "").await.body.contains("id=\"act-exact\""));
    let page = call(&shop, "GET", &path, &remote, "").await;
    assert_eq!(page.status, 200);
    assert!(!page.body.contains("Sandbox") && !page.body.contains("act-exact"), "{}", page.body);
    assert_eq!(call(&shop, "POST", &action, &remote, "act=exact").await.status, 403);
    let bearer = format!("Bearer {}", shop.server.sandbox_token());
    let authorized = [remote[0], ("Authorization", bearer.as_str())];
    assert_eq!(
        call(&shop, "POST", &action, &authorized, "act=exact").await.status,
        403,
        "without the form's token"
    );
    let exact_form = format!("act=exact&word={}", form_token(&shop, &path).await);
    assert_eq!(call(&shop, "POST", &action, &remote, &exact_form).await.status, 403);
    assert_eq!(call(&shop, "POST", &action, &authorized, &exact_form).await.status, 303);
}

/// Returns the form token of the panel on a page.
async fn form_token(shop: &Shop, path: &str) -> String {
    let page = call(shop, "GET", path, &[], "").await.body;
    let (_, rest) = page.split_once(r#"name="word" value=""#).expect("a page with a panel");
    rest.split('"').next().expect("a closed attribute").to_owned()
}

/// Checks the status of the response to a form with these headers.
#[track_caller]
fn check_status(response: &Message, expected: u16, headers: &[(&str, &str)]) {
    assert_eq!(response.status, expected, "{headers:?}: {}", response.body);
}

#[tokio::test]
async fn forms_of_other_sites_are_refused() {
    let shop = Shop::frozen().await;
    let invoice = shop.create("invoices", serde_json::json!({ "amount": "5.00" })).await;
    let link = shop.create("payment-links", serde_json::json!({ "title": "Book", "amount": "5.00" })).await;
    let charge = shop.create_charge("BTC").await;
    let own_origin = shop.url("");
    let token = form_token(&shop, &charge).await;
    let form_body = |name: &str| format!("act={name}&word={token}");
    let forms = [
        (format!("{charge}/sandbox"), form_body("advance")),
        (format!("{invoice}/sandbox"), form_body("advance")),
        (format!("{link}/sandbox"), form_body("advance")),
        (format!("{invoice}/coin"), "asset=BTC".to_owned()),
        (link, "asset=BTC".to_owned()),
    ];
    for (path, body) in &forms {
        for headers in [
            [("Origin", "https://evil.example")].as_slice(),
            &[("Origin", "null")],
            &[("Sec-Fetch-Site", "cross-site")],
            &[("Sec-Fetch-Site", "same-site")],
            &[("Sec-Fetch-Site", "none")],
            &[("Origin", own_origin.as_str()), ("Sec-Fetch-Site", "cross-site")],
        ] {
            check_status(&call(&shop, "POST", path, headers, body).await, 403, headers);
        }
        if path.ends_with("/sandbox") {
            for body in ["act=advance", "act=advance&word=", "act=advance&word=0000"] {
                check_status(&call(&shop, "POST", path, &[], body).await, 403, &[]);
            }
        }
        let same_origin = [("Origin", own_origin.as_str()), ("Sec-Fetch-Site", "same-origin")];
        check_status(&call(&shop, "POST", path, &same_origin, body).await, 303, &same_origin);
    }
}

#[tokio::test]
async fn a_foreign_host_name_shows_no_panel() {
    let shop = Shop::frozen().await;
    let path = shop.create_charge("BTC").await;
    // DNS rebinding: another site lets its host name resolve to this server.
    let rebound = [("Host", "evil.example")];
    let page = call(&shop, "GET", &path, &rebound, "").await;
    assert_eq!(page.status, 200, "customer pages need no login");
    assert!(!page.body.contains("act-exact"));
    let rebound_origin = [("Host", "evil.example"), ("Origin", "http://evil.example")];
    let form = format!("act=advance&word={}", form_token(&shop, &path).await);
    assert_eq!(call(&shop, "POST", &format!("{path}/sandbox"), &rebound_origin, &form).await.status, 403);
}

#[tokio::test]
async fn other_methods_get_405_and_unknown_pages_404() {
    let shop = Shop::frozen().await;
    let charge = shop.create_charge("BTC").await;
    let code = Shop::code(&charge);
    for (method, path, allow) in [
        ("POST", format!("/c/{code}"), "GET, HEAD"),
        ("DELETE", format!("/pay/{code}"), "GET, HEAD, POST"),
        ("GET", format!("/i/{code}/coin"), "POST"),
        ("PUT", format!("/c/{code}/sandbox"), "POST"),
    ] {
        let response = call(&shop, method, &path, &[], "").await;
        assert_eq!((response.status, response.header("allow")), (405, Some(allow)), "{method} {path}");
    }
    for path in
        ["/c/aaaaaaaaaaaa", "/c/x", "/c/", "/i/aaaaaaaaaaaa/document", "/pay/aaaaaaaaaaaa", "/c/a/b/c"]
    {
        let response = call(&shop, "GET", path, &[], "").await;
        assert_eq!(response.status, 404, "{path}");
        assert!(response.body.contains("<h1>Page not found</h1>"), "{path}");
    }
}

#[tokio::test]
async fn only_a_paid_charge_has_a_receipt() {
    let shop = Shop::frozen().await;
    let charge = shop.create_charge("LTC").await;
    let receipt = format!("{charge}/receipt");
    let unpaid = call(&shop, "GET", &receipt, &[], "").await;
    assert_eq!((unpaid.status, unpaid.header("location")), (303, Some(charge.as_str())));
    shop.pay(&charge, "1", 3).await;
    assert_eq!(call(&shop, "GET", &receipt, &[], "").await.status, 200);
}

#[tokio::test]
async fn pages_with_live_updates_do_not_block_shutdown() {
    let shop = Shop::frozen().await;
    let path = format!("{}/live", shop.create_charge("BTC").await);
    let mut client = AsyncConnection::connect(shop.server.address()).await;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", shop.server.address());
    let head = client.call(request).await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(shop.server.stop().await, 0, "connections were aborted");
}

#[tokio::test]
async fn live_updates_use_at_most_half_of_the_connections() {
    let shop = Shop::with_connections(4).await;
    let path = format!("{}/live", shop.create_charge("BTC").await);
    let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", shop.server.address());
    let mut open = Vec::new();
    for status in [200, 200, 503] {
        let mut client = AsyncConnection::connect(shop.server.address()).await;
        assert_eq!(client.call(&request).await.status, status);
        open.push(client);
    }
}

#[tokio::test]
async fn unknown_pages_have_no_stream() {
    let shop = Shop::frozen().await;
    for path in ["/c/aaaaaaaaaaaa/live", "/i/aaaaaaaaaaaa/live"] {
        assert_eq!(call(&shop, "GET", path, &[], "").await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn links_of_a_page_start_with_the_public_path() {
    let shop = Shop::with_public_url("https://pay.example/shop").await;
    let path = shop.create("payment-links", serde_json::json!({ "title": "Book", "amount": "5.00" })).await;
    let page = call(&shop, "GET", &path, &[], "").await;
    let links = page.body.split('"').filter(|word| word.starts_with('/')).collect::<Vec<_>>();
    assert!(links.len() >= 6 && links.iter().all(|link| link.starts_with("/shop/")), "{links:?}");
    let chosen = call(&shop, "POST", &format!("/shop{path}"), &[], "asset=BTC").await;
    assert_eq!(chosen.status, 303);
    assert!(chosen.header("location").is_some_and(|path| path.starts_with("/shop/c/")), "{chosen:?}");
}
