//! Refunded and reorganised payments on the checkout page and in the dashboard.

use reference_server::Server;
use serde_json::{Value, json};

use super::{
    Client,
    dashboard::{BOOK_PATH, FORM, HOST, form_token, get, post, start},
};

/// A charge of 0.01 BTC in a world with a frozen clock.
struct Sale {
    _server: Server,
    client: Client,
    key: String,
    code: String,
}

impl Sale {
    async fn start() -> Sale {
        let (server, client) = start().await;
        let key = server.first_keys().expect("the world has no internal error").live;
        let mut sale = Sale { _server: server, client, key, code: String::new() };
        sale.call("/sandbox/rates", json!({"asset": "BTC", "currency": "EUR", "rate": "1000"})).await;
        let created =
            sale.call("/v1/charges", json!({"asset": "BTC", "amount": "10.00", "currency": "EUR"})).await;
        sale.code = created["data"]["code"].as_str().expect("a code").to_owned();
        sale
    }

    /// Sends a `POST` with a JSON body that must succeed; returns the body of the response.
    async fn call(&mut self, path: &str, body: Value) -> Value {
        let lines = format!("{HOST}Authorization: Bearer {}\r\nContent-Type: application/json\r\n", self.key);
        let response = post(&mut self.client, path, &lines, &body.to_string()).await;
        assert!(response.status < 300, "{path}: {} {}", response.status, response.body);
        serde_json::from_str(&response.body).expect("JSON")
    }

    /// Pays this amount to the charge and mines two blocks; returns the transaction id.
    async fn pay(&mut self, amount: &str) -> String {
        let paid = self.call("/sandbox/pay", json!({"charge": self.code, "amount": amount})).await;
        self.mine(2).await;
        paid["txid"].as_str().expect("a transaction").to_owned()
    }

    async fn mine(&mut self, blocks: u32) {
        self.call(
            "/sandbox/mine",
            json!({"mode": "live", "asset": "BTC", "blocks": blocks, "at_once": true}),
        )
        .await;
    }

    async fn refund(&mut self, amount: &str) {
        let path = format!("/v1/charges/{}/refunds", self.code);
        self.call(&path, json!({"amount": amount})).await;
    }

    /// Checks that a page contains `shown` and lacks `hidden`. `{code}` in the path is the charge's code.
    async fn check_page(&mut self, path: &str, shown: &[&str], hidden: &[&str]) {
        let path = path.replace("{code}", &self.code);
        let page = get(&mut self.client, &path, HOST).await.body;
        shown.iter().for_each(|part| assert!(page.contains(part), "{path} lacks `{part}`: {page}"));
        hidden.iter().for_each(|part| assert!(!page.contains(part), "{path} has `{part}`: {page}"));
    }
}

#[tokio::test]
async fn a_checkout_requests_the_refunded_amount_again() {
    let mut sale = Sale::start().await;
    sale.pay("0.004").await;
    sale.check_page("/c/{code}", &[">0.006</span>", "amount=0.006", "0.004 received"], &["sent back"]).await;
    sale.refund("0.003").await;
    let requested = [">0.009</span>", "amount=0.009", "0.004 received, 0.003 sent back"];
    sale.check_page("/c/{code}", &requested, &["amount=0.006"]).await;
    sale.pay("0.006").await;
    sale.check_page("/c/{code}", &["Partially paid", ">0.003</span>"], &[]).await;
    sale.pay("0.003").await;
    sale.check_page("/c/{code}", &["<h1 id=\"payment-heading\" data-say data-title=\"Paid "], &[]).await;
}

#[tokio::test]
async fn a_late_payment_that_was_refunded_is_not_accepted_from_an_old_page() {
    let mut sale = Sale::start().await;
    sale.call("/sandbox/advance", json!({"by": "1h"})).await;
    let txid = sale.pay("0.01").await;
    let path = format!("{BOOK_PATH}/charges/{}", sale.code);
    let outdated = get(&mut sale.client, &path, HOST).await;
    assert!(outdated.body.contains("id=\"accept-1\""), "{}", outdated.body);
    sale.refund("0.01").await;
    let form = format!("word={}&txid={txid}", form_token(&outdated));
    let accepted = post(&mut sale.client, &format!("{path}/accept"), &format!("{HOST}{FORM}"), &form).await;
    assert!(accepted.status == 409 || accepted.status == 303, "{}", accepted.status);
    sale.check_page(
        &format!("{BOOK_PATH}/charges/{{code}}"),
        &["sent back", "expired"],
        &["id=\"accept-1\""],
    )
    .await;
    sale.check_page("/c/{code}", &["late, and refunded"], &["was accepted"]).await;
}

#[tokio::test]
async fn a_paid_checkout_shows_a_reorganisation_of_its_block() {
    let mut sale = Sale::start().await;
    let txid = sale.pay("0.01").await;
    sale.mine(3).await;
    sale.check_page("/c/{code}", &["Other blocks replace the newest 5.", "&#34;depth&#34;:5"], &[]).await;
    let dashboard = format!("{BOOK_PATH}/charges/{{code}}");
    sale.check_page(&dashboard, &["5 confirmations"], &["reorganised"]).await;
    let depth = json!({"mode": "live", "asset": "BTC", "depth": 5});
    assert_eq!(sale.call("/sandbox/reorg", depth).await["orphaned"], json!([txid]));
    let expected =
        ["Paid, but no longer confirmed", "0 of 0.01 BTC is confirmed now", "waits for another block"];
    sale.check_page("/c/{code}", &expected, &["0 BTC received"]).await;
    sale.check_page("/c/{code}/receipt", &["took the payment out of the chain"], &[]).await;
    sale.check_page(&dashboard, &["a reorganisation of the chain removed"], &[]).await;
    sale.call("/sandbox/drop", json!({"txid": txid})).await;
    sale.check_page("/c/{code}", &expected[..2], &["waits for another block", "0 BTC received"]).await;
    sale.call("/sandbox/rebroadcast", json!({"txid": txid})).await;
    sale.mine(2).await;
    sale.check_page("/c/{code}", &["0.01 BTC received"], &["no longer confirmed"]).await;
    sale.check_page(&dashboard, &["2 confirmations"], &["reorganised"]).await;
}
