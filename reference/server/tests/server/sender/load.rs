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

use super::{BOUNDS, add_endpoint, call, config, resolver::TestResolver, sender_config};

const ENDPOINTS: usize = 50;
const EVENTS: usize = 200;

/// The concurrent requests to the hosts.
#[derive(Default)]
struct Concurrency {
    /// The number of open requests by host.
    open: BTreeMap<String, usize>,
    /// The largest number of open requests so far.
    max: usize,
    /// The largest number of open requests to one host so far.
    max_per_host: usize,
}

/// The requests that fifty hosts behind one socket have received.
#[derive(Default)]
struct Hosts {
    /// The number of attempts of each delivery, and its host.
    attempts: Mutex<BTreeMap<String, (usize, String)>>,
    concurrency: Mutex<Concurrency>,
    connections: AtomicUsize,
}

/// Returns `true` for every other host: h0, h2, …
fn is_failing(host: &str) -> bool {
    let number = host.strip_prefix('h').and_then(|rest| rest.strip_suffix(".example"));
    number.and_then(|n| n.parse::<usize>().ok()).expect("hosts are h0 to h49").is_multiple_of(2)
}

impl Hosts {
    fn on_start(&self, host: &str) {
        let mut guard = self.concurrency.lock().expect("no test panics here");
        let concurrency = &mut *guard;
        let open = concurrency.open.entry(host.to_owned()).or_default();
        *open += 1;
        concurrency.max_per_host = (*open).max(concurrency.max_per_host);
        concurrency.max = concurrency.open.values().sum::<usize>().max(concurrency.max);
    }

    fn on_end(&self, host: &str) {
        let mut concurrency = self.concurrency.lock().expect("no test panics here");
        *concurrency.open.get_mut(host).expect("the request was counted at its start") -= 1;
    }

    /// Returns the largest number of concurrent requests: in total, and to one host.
    fn max_concurrent(&self) -> (usize, usize) {
        let concurrency = self.concurrency.lock().expect("no test panics here");
        (concurrency.max, concurrency.max_per_host)
    }

    async fn serve(&self, stream: TcpStream) {
        self.connections.fetch_add(1, SeqCst);
        let mut connection = AsyncConnection::from_stream(stream);
        let head = connection.head().await.expect("the webhook sender sends a complete request");
        let [host, delivery] =
            ["Host", "X-Service-Delivery"].map(|name| head.header(name).expect("a header").to_owned());
        self.on_start(&host);
        connection.read_body(head).await.expect("the webhook sender sends a complete request");
        self.attempts.lock().expect("no test panics here").entry(delivery).or_insert((0, host.clone())).0 +=
            1;
        let status = if is_failing(&host) { "500 No" } else { "200 OK" };
        // Counted as ended before the webhook sender receives the response.
        self.on_end(&host);
        let response = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        connection.send(response).await;
    }
}

/// Checks the number of attempts of every delivery, to working and to failing hosts.
#[track_caller]
fn check_attempts(hosts: &Hosts, to_working: usize, to_failing: usize) {
    let attempts = hosts.attempts.lock().expect("no test panics here");
    assert_eq!(attempts.len(), ENDPOINTS * EVENTS, "no delivery is lost");
    for (delivery, (count, host)) in attempts.iter() {
        assert_eq!(*count, if is_failing(host) { to_failing } else { to_working }, "{delivery} to {host}");
    }
}

async fn advance(server: &Server, by: &str) {
    let (status, response) = call(server, "POST", "/sandbox/advance", &json!({ "by": by })).await;
    assert_eq!(status, 200, "{response}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_deliveries_are_each_sent_once_per_attempt() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let address = listener.local_addr().expect("the listener is bound");
    let hosts = Arc::new(Hosts::default());
    let mut listeners = JoinSet::new();
    listeners.spawn({
        let hosts = Arc::clone(&hosts);
        async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.expect("the listener accepts");
                let hosts = Arc::clone(&hosts);
                connections.spawn(async move { hosts.serve(stream).await });
                while connections.try_join_next().is_some() {}
            }
        }
    });
    let forwards: Vec<String> =
        (0..ENDPOINTS).map(|n| format!("https://h{n}.example=http://{address}")).collect();
    let server =
        Server::start(config(sender_config(&TestResolver::default(), &forwards))).await.expect("a free port");
    for n in 0..ENDPOINTS {
        assert_eq!(add_endpoint(&server, &format!("https://h{n}.example/hooks")).await.0, 200);
    }
    for _ in 0..EVENTS {
        let charge = json!({ "asset": "BTC", "amount": "49.90", "currency": "EUR" });
        assert_eq!(call(&server, "POST", "/v1/charges", &charge).await.0, 201);
    }
    advance(&server, "1s").await;
    check_attempts(&hosts, 1, 1);
    advance(&server, "2m").await;
    check_attempts(&hosts, 1, 2);

    let (max, max_per_host) = hosts.max_concurrent();
    assert!(max <= BOUNDS.attempts && max_per_host <= BOUNDS.attempts_per_host, "{max} {max_per_host}");
    // One attempt of each delivery, and a second one to the half of the hosts that fail.
    assert_eq!(hosts.connections.load(SeqCst), ENDPOINTS * EVENTS * 3 / 2);
    let (_, log) = call(&server, "GET", "/sandbox/deliveries", &Value::Null).await;
    for delivery in log["deliveries"].as_array().expect("deliveries") {
        let attempts = delivery["attempts"].as_array().expect("attempts");
        let statuses: Vec<_> = attempts.iter().map(|attempt| attempt["status"].as_u64()).collect();
        let expected: &[_] = if delivery["status"] == "delivered" { &[Some(200)] } else { &[Some(500); 2] };
        assert_eq!(statuses, expected, "{delivery}");
    }
}
