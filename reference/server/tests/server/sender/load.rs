//! Load test: many deliveries to many endpoints, half of which fail.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use reference_server::Server;
use serde_json::{Value, json};
use testkit::AsyncConnection;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::{BOUNDS, call, config, names::Names, save, sender};

const ENDPOINTS: usize = 50;
const EVENTS: usize = 200;

/// The requests that fifty hosts behind one socket have received.
#[derive(Default)]
struct Hosts {
    /// The number of attempts of each delivery, and its host.
    posts: Mutex<BTreeMap<String, (usize, String)>>,
    /// The number of concurrent requests by host, and the maximum so far: in total, and with one host.
    open: Mutex<(BTreeMap<String, usize>, usize, usize)>,
    connections: AtomicUsize,
}

/// Returns `true` for every other host.
fn is_failing(host: &str) -> bool {
    let number = host.strip_prefix('h').and_then(|rest| rest.strip_suffix(".example"));
    number.and_then(|n| n.parse::<usize>().ok()).expect("hosts are h0 to h49").is_multiple_of(2)
}

impl Hosts {
    fn on_start(&self, host: &str) {
        let mut open = self.open.lock().expect("no test panics here");
        let (by_host, most, most_per_host) = &mut *open;
        let with_host = by_host.entry(host.to_owned()).or_default();
        *with_host += 1;
        *most_per_host = (*with_host).max(*most_per_host);
        *most = by_host.values().sum::<usize>().max(*most);
    }

    fn on_end(&self, host: &str) {
        *self.open.lock().expect("no test panics here").0.get_mut(host).expect("it entered") -= 1;
    }

    fn max_concurrent(&self) -> (usize, usize) {
        let open = self.open.lock().expect("no test panics here");
        (open.1, open.2)
    }

    async fn serve(&self, stream: TcpStream) {
        self.connections.fetch_add(1, SeqCst);
        let mut connection = AsyncConnection::from_stream(stream);
        let head = connection.reply_without_body().await.expect("the webhook sender is polite");
        let [host, delivery] =
            ["Host", "X-Service-Delivery"].map(|name| head.header(name).expect("a header").to_owned());
        self.on_start(&host);
        connection.with_body(head).await.expect("the webhook sender is polite");
        self.posts.lock().expect("no test panics here").entry(delivery).or_insert((0, host.clone())).0 += 1;
        let status = if is_failing(&host) { "500 No" } else { "200 OK" };
        // Counted as left before the webhook sender can know the result.
        self.on_end(&host);
        let response = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        connection.send(response).await;
    }
}

/// Checks the number of attempts of every delivery: to hosts that work, and to hosts that fail.
#[track_caller]
fn check(hosts: &Hosts, work: usize, fail: usize) {
    let posts = hosts.posts.lock().expect("no test panics here");
    assert_eq!(posts.len(), ENDPOINTS * EVENTS, "none is lost");
    for (delivery, (count, host)) in posts.iter() {
        assert_eq!(*count, if is_failing(host) { fail } else { work }, "{delivery} to {host}");
    }
}

async fn advance(server: &Server, by: &str) {
    let (status, response) = call(server, "POST", "/sandbox/advance", &json!({ "by": by })).await;
    assert_eq!(status, 200, "{response}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_deliveries_are_each_posted_once_per_attempt() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound");
    let hosts = Arc::new(Hosts::default());
    let mut shops = JoinSet::new();
    shops.spawn({
        let hosts = Arc::clone(&hosts);
        async move {
            let mut lines = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.expect("it listens");
                let hosts = Arc::clone(&hosts);
                lines.spawn(async move { hosts.serve(stream).await });
                while lines.try_join_next().is_some() {}
            }
        }
    });
    let forwards: Vec<String> =
        (0..ENDPOINTS).map(|n| format!("https://h{n}.example=http://{address}")).collect();
    let server = Server::start(config(sender(&Names::default(), &forwards))).await.expect("a free port");
    for n in 0..ENDPOINTS {
        assert_eq!(save(&server, &format!("https://h{n}.example/hooks")).await.0, 200);
    }
    for _ in 0..EVENTS {
        let charge = json!({ "asset": "BTC", "amount": "49.90", "currency": "EUR" });
        assert_eq!(call(&server, "POST", "/v1/charges", &charge).await.0, 201);
    }
    advance(&server, "1s").await;
    check(&hosts, 1, 1);
    advance(&server, "2m").await;
    check(&hosts, 1, 2);

    let (most, most_per_host) = hosts.max_concurrent();
    assert!(most <= BOUNDS.posts && most_per_host <= BOUNDS.posts_per_host, "{most} {most_per_host}");
    assert_eq!(hosts.connections.load(SeqCst), ENDPOINTS * EVENTS * 3 / 2);
    let (_, log) = call(&server, "GET", "/sandbox/deliveries", &Value::Null).await;
    for delivery in log["deliveries"].as_array().expect("deliveries") {
        let attempts = delivery["attempts"].as_array().expect("attempts");
        let ends: Vec<_> = attempts.iter().map(|attempt| attempt["status"].as_u64()).collect();
        let expected: &[_] = if delivery["status"] == "delivered" { &[Some(200)] } else { &[Some(500); 2] };
        assert_eq!(ends, expected, "{delivery}");
    }
}
