//! Attacks by which one account delays the deliveries of another: full queues, slow hosts, slow DNS.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::case::{AttackCase, Bound, FiguresResult, Unit};
use super::context::{CaseContext, CaseFailure, ServedReference};
use super::dns::SLOW_PREFIX;
use super::hostile_server::start_interim_flood;
use testkit::{Connection, Receiver};

/// The maximum wait for a delivery, and the figure if it does not arrive.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The maximum number of endpoints of an account in one mode. Repeated here, so that a changed limit is noticed.
const ENDPOINTS_MAX: usize = 50;

const FIRST_ATTEMPT: Bound =
    Bound { title: "until another account's first attempt", max: 1_000, unit: Unit::Millis };

pub(super) const CASES: &[AttackCase] = &[
    AttackCase {
        name: "queue",
        title: "an account with all its endpoints on a host that never responds opens 30 charges",
        bounds: &[
            FIRST_ATTEMPT,
            Bound {
                title: "endpoints that an account may have in a mode",
                max: ENDPOINTS_MAX as u64,
                unit: Unit::Count,
            },
            Bound { title: "queued deliveries that used up an attempt", max: 0, unit: Unit::Count },
        ],
        is_long: false,
        run: delivery_queue,
    },
    AttackCase {
        name: "hosts-32",
        title: "one account delivers to 32 hosts that never respond",
        bounds: &[FIRST_ATTEMPT],
        is_long: false,
        run: |context| slow_hosts(context, 32),
    },
    AttackCase {
        name: "hosts-600",
        title: "six accounts deliver to 600 hosts that never respond",
        bounds: &[FIRST_ATTEMPT],
        is_long: true,
        run: |context| slow_hosts(context, 600),
    },
    AttackCase {
        name: "accounts-9",
        title: "nine accounts deliver to 32 hosts that never respond",
        bounds: &[FIRST_ATTEMPT],
        is_long: false,
        run: |context| slow_hosts_of_accounts(context, 9, ENDPOINTS_MAX),
    },
    AttackCase {
        name: "accounts-300",
        title: "300 accounts, more than there are delivery slots, deliver to 32 hosts that never respond",
        // The server frees a slot by aborting an attempt after three seconds.
        bounds: &[Bound { max: 4_000, ..FIRST_ATTEMPT }],
        is_long: true,
        run: |context| slow_hosts_of_accounts(context, 300, 2),
    },
    AttackCase {
        name: "interim",
        title: "eight receivers send 100 Continue endlessly",
        bounds: &[
            Bound { title: "median of another client's requests", max: 3, unit: Unit::ShortMillis },
            Bound { title: "attempts that do not report this as the error", max: 0, unit: Unit::Count },
        ],
        is_long: false,
        run: interim,
    },
    AttackCase {
        name: "one-host",
        title: "two accounts share a host that never responds, and one of them sends 50 deliveries",
        bounds: &[FIRST_ATTEMPT],
        is_long: false,
        run: one_host,
    },
    AttackCase {
        name: "lookups",
        title: "300 host names (short: 120) whose lookups take half a minute are used in deliveries and in new endpoints",
        bounds: &[
            Bound { title: "threads of the server", max: 100, unit: Unit::Count },
            Bound { title: "until another account has saved an endpoint", max: 1_000, unit: Unit::Millis },
            Bound { title: "valid names that are rejected", max: 0, unit: Unit::Count },
            Bound { title: "timeouts reported as another error", max: 0, unit: Unit::Count },
        ],
        is_long: false,
        run: lookups,
    },
];

/// Creates an endpoint of an account. Returns the path that sends a test delivery to it.
fn create_endpoint(
    server: &mut ServedReference,
    account: &str,
    mode: &str,
    url: &str,
) -> Result<String, CaseFailure> {
    let body = json!({ "account": account, "mode": mode, "url": url });
    let response = server.post("/sandbox/endpoints", &body)?;
    let id = response["endpoint"]["id"].as_str().ok_or("an endpoint has no id")?;
    Ok(format!("/sandbox/endpoints/{id}/test"))
}

fn create_account(server: &mut ServedReference, id: &str) -> Result<(), CaseFailure> {
    server.post("/sandbox/accounts", &json!({ "id": id })).map(drop)
}

/// Opens the account `neighbour` with an endpoint. Returns the time in milliseconds until its first delivery
/// arrives, at most [`TIMEOUT`].
fn first_attempt_millis(
    server: &mut ServedReference,
    receiver: &Receiver,
    url: &str,
    path: &str,
) -> Result<u64, CaseFailure> {
    create_account(server, "neighbour")?;
    let test_path = create_endpoint(server, "neighbour", "live", &format!("{url}{path}"))?;
    let started = Instant::now();
    server.post(&test_path, &Value::Null)?;
    let arrived_at = receiver.arrival_time(path, TIMEOUT);
    Ok(millis(arrived_at.map_or(TIMEOUT, |at| at.saturating_duration_since(started))))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn delivery_queue(context: &CaseContext) -> FiguresResult {
    let (slow, quick) = (Receiver::silent()?, Receiver::ok()?);
    let forwards = [slow.forward_option("slow.example"), quick.forward_option("quick.example")];
    let mut server = context.serve(&["--forward", &forwards[0], "--forward", &forwards[1]])?;
    let accepted = (0..ENDPOINTS_MAX + 10)
        .take_while(|nth| {
            create_endpoint(&mut server, "acme", "live", &format!("https://slow.example/{nth}")).is_ok()
        })
        .count();
    let live = server.live_key.clone();
    for _ in 0..30 {
        let charge = json!({ "asset": "BTC", "amount": "10.00", "currency": "EUR" });
        server.call("POST", "/v1/charges", Some(&live), &charge)?;
    }
    let neighbour_millis = first_attempt_millis(&mut server, &quick, "https://quick.example", "/neighbour")?;
    let log = server.call("GET", "/sandbox/deliveries?account=acme", None, &Value::Null)?;
    let deliveries = log["deliveries"].as_array().ok_or("the delivery log is not a list")?;
    if deliveries.len() < accepted {
        return Err(CaseFailure::Broken(format!("the log shows {} deliveries", deliveries.len())));
    }
    // The log lists only ended attempts. A running attempt has not ended yet, because the host never responds and the
    // timeout of an attempt is longer than this case.
    let with_attempt = deliveries
        .iter()
        .filter(|delivery| delivery["attempts"].as_array().is_none_or(|attempts| !attempts.is_empty()));
    Ok(vec![neighbour_millis, accepted as u64, with_attempt.count() as u64])
}

/// Creates an endpoint for each URL, with as few accounts as possible. Returns the paths that send test deliveries.
fn create_endpoints(
    server: &mut ServedReference,
    urls: impl Iterator<Item = String>,
) -> Result<Vec<String>, CaseFailure> {
    let mut paths = Vec::new();
    for (nth, url) in urls.enumerate() {
        let (account, index) = (nth / (2 * ENDPOINTS_MAX), nth % (2 * ENDPOINTS_MAX));
        let name = format!("busy-{account}");
        if index == 0 {
            create_account(server, &name)?;
        }
        let mode = if index < ENDPOINTS_MAX { "live" } else { "test" };
        paths.push(create_endpoint(server, &name, mode, &url)?);
    }
    Ok(paths)
}

/// Posts to each path of [`create_endpoints`]. Returns the ids of the test deliveries.
fn send_test_deliveries(server: &mut ServedReference, paths: &[String]) -> Result<Vec<String>, CaseFailure> {
    let mut delivery_ids = Vec::new();
    for path in paths {
        let response = server.post(path, &Value::Null)?;
        delivery_ids.push(response["delivery"].as_str().ok_or("a test delivery has no id")?.to_owned());
    }
    Ok(delivery_ids)
}

/// Delivers to `hosts` hosts that never respond, from as few accounts as possible.
fn slow_hosts(context: &CaseContext, hosts: usize) -> FiguresResult {
    let (slow, quick) = (Receiver::silent()?, Receiver::ok()?);
    let mut options = vec!["--forward".to_owned(), quick.forward_option("quick.example")];
    for n in 0..hosts {
        options.extend(["--forward".to_owned(), slow.forward_option(&format!("slow{n}.example"))]);
    }
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let mut server = context.serve(&options)?;
    let paths = create_endpoints(&mut server, (0..hosts).map(|n| format!("https://slow{n}.example/")))?;
    send_test_deliveries(&mut server, &paths)?;
    Ok(vec![first_attempt_millis(&mut server, &quick, "https://quick.example", "/neighbour")?])
}

/// Opens accounts with `per_mode` endpoints in each mode, on 32 hosts that never respond.
fn slow_hosts_of_accounts(context: &CaseContext, accounts: usize, per_mode: usize) -> FiguresResult {
    const HOSTS: usize = 32;
    let (slow, quick) = (Receiver::silent()?, Receiver::ok()?);
    let mut options = vec!["--forward".to_owned(), quick.forward_option("quick.example")];
    for n in 0..HOSTS {
        options.extend(["--forward".to_owned(), slow.forward_option(&format!("slow{n}.example"))]);
    }
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let mut server = context.serve(&options)?;
    let mut paths = Vec::new();
    for nth in 0..accounts {
        let name = format!("busy-{nth}");
        create_account(&mut server, &name)?;
        for n in 0..2 * per_mode {
            let mode = if n < per_mode { "live" } else { "test" };
            paths.push(create_endpoint(
                &mut server,
                &name,
                mode,
                &format!("https://slow{}.example/", n % HOSTS),
            )?);
        }
    }
    send_test_deliveries(&mut server, &paths)?;
    Ok(vec![first_attempt_millis(&mut server, &quick, "https://quick.example", "/neighbour")?])
}

fn interim(context: &CaseContext) -> FiguresResult {
    let flood = start_interim_flood(0)?;
    let mut server = context.serve(&["--forward", &format!("https://flood.example=http://{flood}")])?;
    let paths = create_endpoints(&mut server, (0..8).map(|n| format!("https://flood.example/{n}")))?;
    let delivery_ids = send_test_deliveries(&mut server, &paths)?;
    let live = server.live_key.clone();
    let mut waits = Vec::new();
    for _ in 0..41 {
        let started = Instant::now();
        server.call("GET", "/v1/account", Some(&live), &Value::Null)?;
        waits.push(millis(started.elapsed()));
    }
    waits.sort_unstable();
    let mut other_errors = 0;
    for delivery in delivery_ids {
        let error = first_attempt_error(&mut server, &delivery)?;
        other_errors += u64::from(!error.contains("interim responses before it exceed"));
    }
    Ok(vec![waits[waits.len() / 2], other_errors])
}

/// Returns the error of a delivery's first attempt, in lower case.
pub(super) fn first_attempt_error(
    server: &mut ServedReference,
    delivery: &str,
) -> Result<String, CaseFailure> {
    let path = format!("/sandbox/deliveries/{delivery}");
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let found = server.call("GET", &path, None, &Value::Null)?;
        if let Some(error) = found["delivery"]["attempts"][0]["error"].as_str() {
            return Ok(error.to_lowercase());
        }
        if Instant::now() > deadline {
            return Err(CaseFailure::Broken("the attempt does not end".to_owned()));
        }
    }
}

fn one_host(context: &CaseContext) -> FiguresResult {
    let slow = Receiver::silent()?;
    let forward = slow.forward_option("slow.example");
    let mut server = context.serve(&["--forward", &forward])?;
    let paths =
        create_endpoints(&mut server, (0..ENDPOINTS_MAX).map(|n| format!("https://slow.example/{n}")))?;
    send_test_deliveries(&mut server, &paths)?;
    Ok(vec![first_attempt_millis(&mut server, &slow, "https://slow.example", "/neighbour")?])
}

fn lookups(context: &CaseContext) -> FiguresResult {
    let dns_server = context.dns_server()?;
    dns_server.set_slow(false);
    let mut server = context.serve(&[])?;
    let count = context.long_or_short(300, 120);
    let slow_url = |nth: usize| format!("https://{SLOW_PREFIX}{nth}.example/");
    let paths = create_endpoints(&mut server, (0..count).map(slow_url))?;
    create_account(&mut server, "neighbour")?;
    dns_server.set_slow(true);
    let delivery_ids = send_test_deliveries(&mut server, &paths)?;
    // More endpoints are saved, with names that no delivery uses, each over a new connection, without waiting for the
    // response.
    let mut connections = Vec::new();
    for nth in 0..16 {
        let mut connection = Connection::open(&server.address)?;
        let body = json!({ "account": "acme", "url": slow_url(1_000 + nth) }).to_string();
        connection.send_request("POST", "/sandbox/endpoints", None, &body)?;
        connections.push(connection);
    }
    // Waits until the lookups have started.
    let deadline = Instant::now() + TIMEOUT;
    while dns_server.unanswered_queries() < 16 && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(10));
    }
    let mut threads = server.threads()?;
    let started = Instant::now();
    let result = create_endpoint(&mut server, "neighbour", "live", "https://good.example/");
    let saved_after = millis(started.elapsed());
    threads = threads.max(server.threads()?);
    let mut messages = Vec::new();
    for mut connection in connections {
        messages
            .push(connection.message()?.json()["errors"]["url"][0].as_str().unwrap_or_default().to_owned());
    }
    // The first attempts have timed out by now.
    let first_delivery =
        server.call("GET", &format!("/sandbox/deliveries/{}", delivery_ids[0]), None, &Value::Null)?;
    let error = first_delivery["delivery"]["attempts"][0]["error"].as_str().unwrap_or_default().to_owned();
    dns_server.set_slow(false);
    let other_errors =
        messages.iter().filter(|message| !message.contains("could not be looked up in time")).count()
            + usize::from(!error.ends_with("the name lookup timed out"));
    Ok(vec![threads, saved_after, u64::from(result.is_err()), other_errors as u64])
}
