//! Idle clients who take every seat and every descriptor, and a server that is to stop.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::actors::{ReceiverBehavior, Shop};
use super::case::{AttackCase, Bound, Measured, Unit};
use super::context::{CaseContext, Host, Miss, signal};
use super::names::SLOW;
use super::talk::Line;

/// Seats of a server. Said here once more, so that a changed bound is noticed.
const SEATS: usize = 1_024;
const PATIENCE: Duration = Duration::from_secs(40);

pub(super) const CASES: &[AttackCase] = &[
    AttackCase {
        name: "seats",
        what: "1,024 idle clients take every seat, half of them without a word",
        bounds: &[Bound { what: "until a new client is answered", most: 1_000, unit: Unit::Millis }],
        is_long: false,
        run: seats,
    },
    AttackCase {
        name: "descriptors",
        what: "idle clients take all descriptors of a process that may have 256",
        bounds: &[
            Bound { what: "until a delivery arrives", most: 2_000, unit: Unit::Millis },
            Bound { what: "connection errors that hide their cause", most: 0, unit: Unit::Count },
        ],
        is_long: false,
        run: descriptors,
    },
    AttackCase {
        name: "stop",
        what: "SIGTERM while a name is looked up for half a minute",
        bounds: &[Bound { what: "until the server has ended", most: 10_500, unit: Unit::Millis }],
        is_long: false,
        run: |context| stop(context, &["TERM"]),
    },
    AttackCase {
        name: "stop-twice",
        what: "the same, and a second SIGTERM",
        bounds: &[Bound { what: "until the server has ended", most: 1_000, unit: Unit::Millis }],
        is_long: false,
        run: |context| stop(context, &["TERM", "TERM"]),
    },
];

/// So many connections, every second one after a request. What the system does not give is left out.
fn idle(host: &Host, count: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for n in 0..count {
        let Ok(mut line) = Line::open(&host.address) else { break };
        if n % 2 == 0 && line.ask("GET", "/healthz", None, "").is_err() {
            break;
        }
        lines.push(line);
    }
    lines
}

fn seats(context: &CaseContext) -> Measured {
    let host = context.serve(&[])?;
    let lines = idle(&host, SEATS);
    if lines.len() < SEATS {
        let why = format!("this machine gives {} connections only; `ulimit -n` bounds them", lines.len());
        return Err(Miss::Skipped(why));
    }
    let mut longest = 0;
    for _ in 0..5 {
        let began = Instant::now();
        Line::open(&host.address)?.ask("GET", "/healthz", None, "")?;
        longest = longest.max(millis(began.elapsed()));
    }
    Ok(vec![longest])
}

fn descriptors(context: &CaseContext) -> Measured {
    let shop = Shop::open(ReceiverBehavior::Quick)?;
    let forward = shop.forward("shop.example");
    // Nobody listens at port 9 of this machine.
    let nobody = "https://nobody.example=http://127.0.0.1:9";
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 256 && exec \"$0\" \"$@\""]).arg(&context.program).stderr(Stdio::null());
    let mut host =
        Host::start(command, &["--rate-limit", "off", "--forward", &forward, "--forward", nobody])?;
    let mut tests = Vec::new();
    for url in ["https://shop.example/hooks", "https://nobody.example/"] {
        let answer = host.post("/sandbox/endpoints", &json!({ "url": url }))?;
        tests.push(format!(
            "/sandbox/endpoints/{}/test",
            answer["endpoint"]["id"].as_str().unwrap_or_default()
        ));
    }
    let _idle = idle(&host, 300);
    let began = Instant::now();
    host.post(&tests[0], &Value::Null)?;
    let came = shop.post_to("/hooks", PATIENCE).map_or(PATIENCE, |at| at.saturating_duration_since(began));

    let sent = host.post(&tests[1], &Value::Null)?;
    let path = format!("/sandbox/deliveries/{}", sent["delivery"].as_str().unwrap_or_default());
    let until = Instant::now() + PATIENCE;
    let error = loop {
        let delivery = host.ask("GET", &path, None, &Value::Null)?;
        if let Some(error) = delivery["delivery"]["attempts"][0]["error"].as_str() {
            break error.to_lowercase();
        }
        if Instant::now() > until {
            return Err(Miss::Broken("the attempt does not end".to_owned()));
        }
    };
    Ok(vec![millis(came), u64::from(!error.contains("refused"))])
}

fn stop(context: &CaseContext, signals: &[&str]) -> Measured {
    let names = context.names()?;
    names.be_slow(false);
    let mut host = context.serve(&[])?;
    let url = format!("https://{SLOW}-stop.example/");
    let answer = host.post("/sandbox/endpoints", &json!({ "url": url }))?;
    let id = answer["endpoint"]["id"].as_str().unwrap_or_default().to_owned();
    names.be_slow(true);
    let before = names.left_waiting();
    host.post(&format!("/sandbox/endpoints/{id}/test"), &Value::Null)?;
    let until = Instant::now() + PATIENCE;
    while names.left_waiting() == before && Instant::now() < until {
        thread::sleep(Duration::from_millis(5));
    }
    for name in signals {
        signal(host.pid(), name)?;
        // Two at once would be one.
        thread::sleep(Duration::from_millis(100));
    }
    let took = host.wait(PATIENCE).unwrap_or(PATIENCE);
    names.be_slow(false);
    Ok(vec![millis(took)])
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
