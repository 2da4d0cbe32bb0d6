//! The dashboard over HTTP: access, forms, and response headers.

use reference_server::{ClockKind, Config, Server};
use testkit::Message;

use super::{Client, config};

pub(super) const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";
pub(super) const HOST: &str = "Host: localhost\r\n";
/// Headers of a proxy: the client is on another machine.
const REMOTE_CLIENT: &str = "Host: localhost\r\nVia: 1.1 proxy\r\n";
pub(super) const BOOK_PATH: &str = "/dashboard/acme/live";

/// Starts a sandbox with a frozen clock, and connects to it.
pub(super) async fn start() -> (Server, Client) {
    start_with(config(ClockKind::Frozen)).await
}

async fn start_with(config: Config) -> (Server, Client) {
    let server = Server::start(config).await.expect("loopback has a free port");
    let client = Client::connect(server.address()).await;
    (server, client)
}

/// Sends `GET` with these header lines.
pub(super) async fn get(client: &mut Client, path: &str, lines: &str) -> Message {
    client.call(format!("GET {path} HTTP/1.1\r\n{lines}\r\n")).await
}

/// Sends `POST` with these header lines and this body.
pub(super) async fn post(client: &mut Client, path: &str, lines: &str, body: &str) -> Message {
    client.call(format!("POST {path} HTTP/1.1\r\n{lines}Content-Length: {}\r\n\r\n{body}", body.len())).await
}

/// Returns the form token of the server, from a page with a form.
pub(super) fn form_token(page: &Message) -> String {
    let (_, rest) = page.body.split_once(r#"name="word" value=""#).expect("the page has a form");
    rest.split('"').next().expect("the attribute ends with a quote").to_owned()
}

/// Returns the cookie that a response sets, as a browser sends it back.
fn cookie(response: &Message) -> String {
    let line = response.header("set-cookie").expect("a cookie");
    format!("Cookie: {}\r\n", line.split(';').next().expect("a value"))
}

async fn count_keys(client: &mut Client) -> usize {
    let response = get(client, "/sandbox/keys", HOST).await;
    serde_json::from_str::<serde_json::Value>(&response.body).expect("JSON")["keys"]
        .as_array()
        .map_or(0, Vec::len)
}

#[tokio::test]
async fn clients_on_this_machine_need_no_login() {
    let (server, mut client) = start().await;
    let response = get(&mut client, "/dashboard", HOST).await;
    assert_eq!((response.status, response.header("location")), (303, Some("/dashboard/acme/test")));
    let page = get(&mut client, BOOK_PATH, HOST).await;
    assert_eq!(page.status, 200);
    assert!(page.body.contains("<h1>Overview</h1>"), "{}", page.body);
    assert!(!page.body.contains(server.sandbox_token()), "the page contains the sandbox token");
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
    ] {
        assert_eq!(page.header(name), Some(value), "{name}");
    }
    let policy = page.header("content-security-policy").expect("a policy");
    for part in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "form-action 'self'"] {
        assert!(policy.contains(part), "{part} in {policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
}

#[tokio::test]
async fn clients_on_other_machines_must_log_in() {
    let (server, mut client) = start().await;
    for path in ["/dashboard", BOOK_PATH, "/dashboard/acme/live/keys", "/dashboard/nobody/live"] {
        let page = get(&mut client, path, REMOTE_CLIENT).await;
        assert_eq!(page.status, 401, "{path}");
        assert!(page.body.contains("Log in to the dashboard"), "{path}");
        assert!(!page.body.contains("acme"), "{path}: {}", page.body);
        assert!(page.header("content-security-policy").is_some());
    }
    let login = get(&mut client, "/dashboard/login", REMOTE_CLIENT).await;
    for form in
        [format!("word={}&token=sandbox_0000", form_token(&login)), format!("word={}", form_token(&login))]
    {
        let refused = post(&mut client, "/dashboard/login", &format!("{REMOTE_CLIENT}{FORM}"), &form).await;
        assert_eq!((refused.status, refused.header("set-cookie")), (403, None), "{form}");
    }
    let forged_cookie =
        format!("{REMOTE_CLIENT}Cookie: chargeproof_{}={}\r\n", server.address().port(), "0".repeat(40));
    assert_eq!(get(&mut client, BOOK_PATH, &forged_cookie).await.status, 401);

    let form = format!("word={}&token={}", form_token(&login), server.sandbox_token());
    let logged_in = post(&mut client, "/dashboard/login", &format!("{REMOTE_CLIENT}{FORM}"), &form).await;
    assert_eq!((logged_in.status, logged_in.header("location")), (303, Some("/dashboard")));
    let line = logged_in.header("set-cookie").expect("a cookie");
    assert!(line.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{line}");
    assert!(!line.contains(server.sandbox_token()), "the cookie is not the token");
    let page = get(&mut client, BOOK_PATH, &format!("{REMOTE_CLIENT}{}", cookie(&logged_in))).await;
    assert_eq!(page.status, 200);
    assert!(page.body.contains("Log out"));

    let lines = format!("{REMOTE_CLIENT}{FORM}{}", cookie(&logged_in));
    let logged_out =
        post(&mut client, "/dashboard/logout", &lines, &format!("word={}", form_token(&page))).await;
    assert_eq!(logged_out.status, 303);
    assert!(
        logged_out.header("set-cookie").is_some_and(|line| line.ends_with("Max-Age=0")),
        "{logged_out:?}"
    );
}

#[tokio::test]
async fn a_token_in_the_url_is_exchanged_for_a_cookie() {
    let (server, mut client) = start().await;
    let path = format!("{BOOK_PATH}/keys?token={}", server.sandbox_token());
    let response = get(&mut client, &path, REMOTE_CLIENT).await;
    assert_eq!((response.status, response.header("location")), (303, Some("/dashboard/acme/live/keys")));
    let page =
        get(&mut client, "/dashboard/acme/live/keys", &format!("{REMOTE_CLIENT}{}", cookie(&response))).await;
    assert_eq!(page.status, 200);
    let wrong = get(&mut client, &format!("{BOOK_PATH}?token=sandbox_x"), REMOTE_CLIENT).await;
    assert_eq!((wrong.status, wrong.header("set-cookie")), (403, None));
}

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused_even_with_credentials() {
    let (server, mut client) = start().await;
    let (port, token) = (server.address().port(), server.sandbox_token());
    for lines in [
        "Host: evil.example\r\n".to_owned(),
        format!("Host: evil.example\r\nAuthorization: Bearer {token}\r\n"),
        "Host: localhost\r\nOrigin: http://evil.example\r\n".to_owned(),
        "Host: localhost\r\nOrigin: null\r\n".to_owned(),
        "Host: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n".to_owned(),
        "Host: localhost\r\nSec-Fetch-Site: same-site\r\nSec-Fetch-Mode: cors\r\n".to_owned(),
    ] {
        let response = get(&mut client, BOOK_PATH, &lines).await;
        assert_eq!(response.status, 403, "{lines}");
        assert!(!response.body.contains("Overview</h1>"), "{lines}");
        let response = get(&mut client, &format!("{BOOK_PATH}?token={token}"), &lines).await;
        assert_eq!((response.status, response.header("set-cookie")), (403, None), "{lines}");
    }
    let link = "Host: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n";
    assert_eq!(get(&mut client, BOOK_PATH, link).await.status, 200, "links from other sites are allowed");
    let same_origin = format!("Host: localhost:{port}\r\nOrigin: http://localhost:{port}\r\n");
    assert_eq!(get(&mut client, BOOK_PATH, &same_origin).await.status, 200);
}

#[tokio::test]
async fn forms_without_a_valid_token_or_origin_change_nothing() {
    let (_server, mut client) = start().await;
    let page = get(&mut client, "/dashboard/acme/live/keys", HOST).await;
    let valid = format!("word={}", form_token(&page));
    let before = count_keys(&mut client).await;
    for (lines, body, status) in [
        (format!("{HOST}{FORM}"), "", 403),
        (format!("{HOST}{FORM}"), "word=", 403),
        (format!("{HOST}{FORM}"), "word=0000000000000000000000000000000000000000", 403),
        (format!("{HOST}{FORM}Origin: http://evil.example\r\n"), valid.as_str(), 403),
        (format!("{HOST}{FORM}Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n"), &valid, 403),
        (format!("{HOST}{FORM}Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: navigate\r\n"), &valid, 403),
        (format!("Host: evil.example\r\n{FORM}"), &valid, 403),
        (format!("{REMOTE_CLIENT}{FORM}"), &valid, 401),
        (format!("{HOST}Content-Type: text/plain\r\n"), &valid, 415),
        (format!("{HOST}Content-Type: application/json\r\n"), "{}", 415),
    ] {
        let response = post(&mut client, "/dashboard/acme/live/keys", &lines, body).await;
        assert_eq!(response.status, status, "{lines}{body}: {}", response.body);
        assert_eq!(count_keys(&mut client).await, before, "{lines}{body}");
    }
    let response = post(&mut client, "/dashboard/acme/live/keys", &format!("{HOST}{FORM}"), &valid).await;
    assert_eq!(response.status, 303);
    assert_eq!(count_keys(&mut client).await, before + 1);
}

#[tokio::test]
async fn a_secret_is_shown_once_and_is_in_no_url() {
    let (_server, mut client) = start().await;
    let page = get(&mut client, "/dashboard/acme/test/keys", HOST).await;
    let lines = format!("{HOST}{FORM}");
    let body = format!("word={}", form_token(&page));
    let made = post(&mut client, "/dashboard/acme/test/keys", &lines, &body).await;
    let location = made.header("location").expect("the response is a redirect").to_owned();
    assert!(!location.contains("svc_"), "{location}");
    let first_view = get(&mut client, &location, HOST).await;
    let (_, rest) =
        first_view.body.split_once("<code id=\"secret\" dir=\"ltr\">").expect("the page shows the secret");
    let secret = rest.split('<').next().expect("the element is closed");
    assert!(secret.starts_with("svc_test_"), "{secret}");
    let account = format!("Host: localhost\r\nAuthorization: Bearer {secret}\r\n");
    assert_eq!(get(&mut client, "/v1/account", &account).await.status, 200);
    let reloaded = get(&mut client, &location, HOST).await;
    assert_eq!(reloaded.status, 200);
    assert!(!reloaded.body.contains(secret), "the secret is shown again");
}

#[tokio::test]
async fn a_refused_form_is_shown_with_its_input() {
    let (_server, mut client) = start().await;
    let page = get(&mut client, "/dashboard/acme/live/endpoints", HOST).await;
    let lines = format!("{HOST}{FORM}");
    for (typed, expected) in [
        ("https%3A%2F%2F10.0.0.1%2Fx", "https://10.0.0.1/x"),
        ("http%3A%2F%2Fshop.sim%2F%3Cb%3E", "http://shop.sim/&#60;b&#62;"),
    ] {
        let body = format!("word={}&url={typed}&events=charge.paid", form_token(&page));
        let response = post(&mut client, "/dashboard/acme/live/endpoints", &lines, &body).await;
        assert_eq!(response.status, 422, "{typed}");
        assert!(response.body.contains(&format!("value=\"{expected}\"")), "{typed}: {}", response.body);
        assert!(response.body.contains(r#"aria-invalid="true""#), "{typed}");
        assert_eq!(response.body.matches(" checked").count(), 1, "the selected event type stays selected");
    }
}

#[tokio::test]
async fn objects_of_other_books_are_not_found() {
    let (server, mut client) = start().await;
    let live = server.first_keys().expect("the world has no internal error").live;
    let json = "Content-Type: application/json\r\n";
    let lines = format!("{HOST}Authorization: Bearer {live}\r\n{json}");
    let made = post(&mut client, "/v1/charges", &lines, r#"{"asset":"BTC","amount":"5"}"#).await;
    let made: serde_json::Value = serde_json::from_str(&made.body).expect("JSON");
    let code = made["data"]["code"].as_str().expect("a code");
    let added = post(
        &mut client,
        "/sandbox/endpoints",
        &format!("{HOST}{json}"),
        r#"{"mode":"live","url":"https://a.sim"}"#,
    )
    .await;
    let added: serde_json::Value = serde_json::from_str(&added.body).expect("JSON");
    let endpoint = added["endpoint"]["id"].as_str().expect("an id");
    let page = get(&mut client, "/dashboard/acme/live/keys", HOST).await;
    let body = format!("word={}", form_token(&page));
    for path in [format!("charges/{code}"), format!("endpoints/{endpoint}")] {
        assert_eq!(
            get(&mut client, &format!("/dashboard/acme/live/{path}"), HOST).await.status,
            200,
            "{path}"
        );
        assert_eq!(
            get(&mut client, &format!("/dashboard/acme/test/{path}"), HOST).await.status,
            404,
            "{path}"
        );
    }
    for path in [format!("charges/{code}/cancel"), format!("endpoints/{endpoint}/remove")] {
        let path = format!("/dashboard/acme/test/{path}");
        let response = post(&mut client, &path, &format!("{HOST}{FORM}"), &body).await;
        assert_eq!(response.status, 404, "{path}");
    }
    for path in
        ["/dashboard/acme/both", "/dashboard/nobody/live", "/dashboard/acme/live/nowhere", "/dashboard/acme"]
    {
        let response = get(&mut client, path, HOST).await;
        assert_eq!(response.status, 404, "{path}");
        assert!(response.body.contains("Page not found"), "{path}");
    }
    let response = client.call(format!("DELETE {BOOK_PATH} HTTP/1.1\r\n{HOST}\r\n")).await;
    assert_eq!((response.status, response.header("allow")), (405, Some("GET, HEAD, POST")));
}

#[tokio::test]
async fn links_and_the_cookie_have_the_public_path_prefix() {
    let public_url = Some("https://shop.example/pay".to_owned());
    let (server, mut client) = start_with(Config { public_url, ..config(ClockKind::Frozen) }).await;
    let host = "Host: shop.example\r\n";
    let path = format!("/pay/dashboard?token={}", server.sandbox_token());
    let response = get(&mut client, &path, host).await;
    assert_eq!((response.status, response.header("location")), (303, Some("/pay/dashboard")));
    let line = response.header("set-cookie").expect("a cookie");
    assert!(line.ends_with("; Path=/pay/; HttpOnly; SameSite=Strict; Secure"), "{line}");
    let lines = format!("{host}{}", cookie(&response));
    let page = get(&mut client, "/pay/dashboard/acme/live", &lines).await;
    assert_eq!(page.status, 200);
    assert!(page.body.contains(r#"href="/pay/dashboard/acme/live/charges""#));
    assert!(!page.body.contains(r#"="/dashboard"#), "a link has no prefix");
}

#[tokio::test]
async fn forms_redirect_to_pages_of_their_book_only() {
    let (_server, mut client) = start().await;
    let page = get(&mut client, "/dashboard/acme/live/world", HOST).await;
    for (back, location) in [
        ("%2Fcharges", "/dashboard/acme/live/charges?notice="),
        ("", "/dashboard/acme/live?notice="),
        ("https%3A%2F%2Fevil.example", "/dashboard/acme/live/world?notice="),
        ("%2F%2Fevil.example", "/dashboard/acme/live/world?notice="),
        ("%2Fcharges%2F..%2F..", "/dashboard/acme/live/world?notice="),
        ("%2Fcharges%0d%0aX%3A+y", "/dashboard/acme/live/world?notice="),
    ] {
        let body = format!("word={}&by=1s&back={back}", form_token(&page));
        let response =
            post(&mut client, "/dashboard/acme/live/world/advance", &format!("{HOST}{FORM}"), &body).await;
        assert_eq!(response.status, 303, "{back}");
        assert!(
            response.header("location").is_some_and(|found| found.starts_with(location)),
            "{back}: {response:?}"
        );
    }
}

/// Checks that the list of requests with this query contains `shown` and lacks `hidden`.
async fn check_requests(client: &mut Client, query: &str, shown: &[&str], hidden: &[&str]) {
    let page = get(client, &format!("{BOOK_PATH}/requests{query}"), HOST).await;
    assert_eq!(page.status, 200, "{query}");
    let list = page.body.split_once("data-part=\"requests\"").expect("the list").1;
    for part in shown {
        assert!(list.contains(part), "{query}: {part} in {list}");
    }
    for part in hidden {
        assert!(!list.contains(part), "{query}: {part} does not match: {list}");
    }
}

#[tokio::test]
async fn requests_to_the_api_are_shown_with_their_responses_and_without_keys() {
    let (server, mut client) = start().await;
    let keys = server.first_keys().expect("the world has no internal error");
    let lines =
        |key: &str| format!("{HOST}Authorization: Bearer {key}\r\nContent-Type: application/json\r\n");
    let valid = "{\"asset\":\"BTC\",\"amount\":\"49.90\",\"currency\":\"EUR\",\"description\":\"<b>it's\u{202e}</b>\"}";
    assert_eq!(post(&mut client, "/v1/charges", &lines(&keys.live), valid).await.status, 201);
    let invalid = format!(r#"{{"amount":"ten","description":"{}"}}"#, keys.live);
    assert_eq!(post(&mut client, "/v1/charges?a=b", &lines(&keys.live), &invalid).await.status, 422);
    get(&mut client, "/v1/account", &lines(&keys.test)).await;
    get(&mut client, "/v1/events", HOST).await;
    get(&mut client, "/sandbox", HOST).await;

    let (created, refused, anonymous) = ("POST <bdi>/v1/charges</bdi>", "charges?a=b", "/v1/events</bdi>");
    check_requests(
        &mut client,
        "",
        &[created, refused, anonymous, "svc_live_…"],
        &["/v1/account", "sandbox"],
    )
    .await;
    check_requests(&mut client, "?status=refused", &[refused, anonymous], &[created]).await;
    check_requests(&mut client, "?status=succeeded", &[created], &[refused, anonymous]).await;
    check_requests(&mut client, "?status=failed&q=x", &["No requests here", "Show all"], &["/v1"]).await;
    check_requests(&mut client, "?q=CHARGES?a", &[refused], &[created, anonymous]).await;
    check_requests(&mut client, "?before=2", &[created], &[refused, anonymous]).await;

    let page = get(&mut client, &format!("{BOOK_PATH}/requests/2"), HOST).await;
    assert_eq!(page.status, 200);
    for part in [
        "svc_live_…",
        "&#34;ten&#34;",
        "curl -i -X POST",
        "Bearer $CHARGEPROOF_LIVE_KEY",
        "422",
        "asset field",
    ] {
        assert!(page.body.contains(part), "{part} in {}", page.body);
    }
    let secret = keys.live.strip_prefix("svc_live_").expect("a live key");
    assert!(!page.body.contains(secret), "the page contains the key");
    let first = get(&mut client, &format!("{BOOK_PATH}/requests/1"), HOST).await;
    assert!(!first.body.contains('\u{202e}'), "the description changes the text direction: {}", first.body);
    assert!(first.body.contains(r"it&#39;\&#39;&#39;s") && !first.body.contains("<b>it"), "{}", first.body);
    for (prefix, n, status) in [
        ("/dashboard/acme/test", 2, 404),
        ("/dashboard/acme/test", 3, 200),
        ("/dashboard/acme/test", 4, 200),
        (BOOK_PATH, 3, 404),
        (BOOK_PATH, 5, 404),
    ] {
        assert_eq!(
            get(&mut client, &format!("{prefix}/requests/{n}"), HOST).await.status,
            status,
            "{prefix} {n}"
        );
    }
}

#[tokio::test]
async fn the_overview_offers_mining_instead_of_payment_while_a_payment_is_unconfirmed() {
    let (server, mut client) = start().await;
    let key = server.first_keys().expect("the world has no internal error").live;
    let json = format!("{HOST}Authorization: Bearer {key}\r\nContent-Type: application/json\r\n");
    let body = r#"{"asset":"BTC","amount":"49.90","currency":"EUR"}"#;
    let opened = post(&mut client, "/v1/charges", &json, body).await;
    let opened: serde_json::Value = serde_json::from_str(&opened.body).expect("JSON");
    let code = opened["data"]["id"].as_str().expect("an id");
    let (pay, mine) = (format!("id=\"pay-{code}\""), format!("id=\"mine-{code}\""));
    let before = get(&mut client, BOOK_PATH, HOST).await.body;
    assert!(before.contains(&pay) && !before.contains(&mine), "{before}");
    post(&mut client, "/sandbox/pay", &json, &format!(r#"{{"charge":"{code}"}}"#)).await;
    let after = get(&mut client, BOOK_PATH, HOST).await.body;
    assert!(after.contains(&mine) && !after.contains(&pay), "{after}");
    let page = get(&mut client, &format!("{BOOK_PATH}/charges/{code}"), HOST).await.body;
    assert!(page.contains("&#34;deposit_address&#34;: "), "the page has no JSON of the charge: {page}");
}

/// Checks that the history with this query contains `shown` and lacks `hidden`; returns the page.
async fn check_history(client: &mut Client, query: &str, shown: &[&str], hidden: &[&str]) -> Message {
    let page = get(client, &format!("{BOOK_PATH}/history{query}"), HOST).await;
    assert_eq!(page.status, 200, "{query}");
    let list = page.body.split_once("data-part=\"history\"").expect("the list").1.to_owned();
    shown.iter().for_each(|part| assert!(list.contains(part), "{query}: {part} in {list}"));
    hidden.iter().for_each(|part| assert!(!list.contains(part), "{query}: {part} in {list}"));
    page
}

#[tokio::test]
async fn the_history_is_filtered_and_its_rows_can_start_branches() {
    let (server, mut client) = start().await;
    let keys = server.first_keys().expect("the world has no internal error");
    check_history(&mut client, "", &["No entries here", "curl -s"], &["<table"]).await;
    let json = "Content-Type: application/json\r\n";
    let lines = format!("{HOST}Authorization: Bearer {}\r\n{json}", keys.live);
    let charge = r#"{"asset":"BTC","amount":"49.90","currency":"EUR","description":"<b>"}"#;
    let made = post(&mut client, "/v1/charges", &lines, charge).await.body;
    let made: serde_json::Value = serde_json::from_str(&made).expect("JSON");
    let code = made["data"]["code"].as_str().expect("a code");
    let sandbox = format!("{HOST}{json}");
    for (path, body) in [
        ("endpoints", r#"{"account":"acme","mode":"live","url":"https://shop.sim/hooks"}"#.to_owned()),
        ("pay", format!(r#"{{"charge":"{code}"}}"#)),
        ("keys", r#"{"account":"acme"}"#.to_owned()),
        ("advance", r#"{"by":"2h"}"#.to_owned()),
        ("mine", r#"{"asset":"BTC","blocks":"<script>"}"#.to_owned()),
    ] {
        post(&mut client, &format!("/sandbox/{path}"), &sandbox, &body).await;
    }
    let (request, paid, event) = ("POST /v1/charges 201", "transfer of", "/events/");
    let (clock, delivery, pay) = ("/sandbox/advance", "POST to shop.sim", "/sandbox/pay");
    let all = [request, paid, event, clock, delivery, pay, "&#34;2h&#34;", "/requests/1"];
    check_history(&mut client, "", &all, &["No entries here", "<script>", "/sandbox/mine", "/sandbox/keys"])
        .await;
    for (query, shown, hidden) in [
        ("?part=requests", &[request][..], &[paid, event, clock, delivery][..]),
        ("?part=payments", &[paid, pay], &[request, clock, delivery]),
        ("?part=events", &[event], &[paid, request, clock]),
        ("?part=clock", &[clock], &[paid, request, delivery]),
        ("?part=deliveries", &[delivery, "/sandbox/endpoints"], &[paid, request, clock]),
        ("?part=blocks", &["No entries here", "Show all"], &["<table"]),
        ("?q=SHOP.SIM", &[delivery], &[paid, request]),
        ("?q=%3Cb%3E&page=7", &["No entries here"], &["<b>"]),
        ("?page=99999999999999999999", &[request], &[]),
    ] {
        check_history(&mut client, query, shown, hidden).await;
    }

    let page = check_history(&mut client, "?part=requests", &[request], &[]).await;
    let at = "2026-09-20T10:05:41.000000Z";
    assert!(page.body.contains(&format!(r#"name="at" value="{at}""#)), "{}", page.body);
    let form = |at: &str| format!("word={}&back=%2Fhistory&at={}", form_token(&page), at.replace(':', "%3A"));
    let (path, lines) = (format!("{BOOK_PATH}/world/branch"), format!("{HOST}{FORM}"));
    let response = post(&mut client, &path, &lines, &form(at)).await;
    let location = response.header("location").expect("the response is a redirect").to_owned();
    let (dashboard, _) = location.split_once("?notice=").expect("a notice");
    assert!(
        response.status == 303 && dashboard.starts_with("/w/") && dashboard.ends_with(BOOK_PATH),
        "{location}"
    );
    let page = get(&mut client, &location, HOST).await;
    assert!(
        page.body.contains("a branch that continues from") && page.body.contains("World "),
        "{}",
        page.body
    );
    let branch = get(&mut client, &format!("{dashboard}/charges"), HOST).await;
    assert!(branch.status == 200 && branch.body.contains(code) && branch.body.contains("pending"));
    let too_late = form("2026-09-20T12:05:41.000001Z");
    let response = post(&mut client, &path, &lines, &too_late).await;
    assert!(
        response.status == 422 && response.body.contains("from 2026-09-20T10:05:41"),
        "{}",
        response.body
    );
    assert_eq!(post(&mut client, &path, &lines, &form("soon")).await.status, 404);
    let forged = post(&mut client, &path, &lines, &format!("word=x&at={at}")).await;
    assert_eq!(forged.status, 403);
    check_scenario_file(&mut client).await;
}

/// Checks the scenario file that the history page offers, against that of the sandbox.
async fn check_scenario_file(client: &mut Client) {
    let file = get(client, &format!("{BOOK_PATH}/scenario"), HOST).await;
    assert_eq!(file.header("content-type"), Some("application/yaml"));
    assert!(file.header("content-disposition").is_some_and(|value| value.contains("scenario.yaml")));
    let text = get(client, "/sandbox/scenario", &format!("{HOST}Accept: application/yaml\r\n")).await;
    assert_eq!((text.header("content-type"), &text.body), (Some("application/yaml"), &file.body));
    assert!(
        file.body.contains("path: /v1/charges") && file.body.ends_with("  - wait: 2h\n"),
        "{}",
        file.body
    );
}
