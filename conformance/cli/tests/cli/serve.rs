//! Tests of `serve` for a developer whose shop runs on the same machine.

use std::{
    fs,
    io::{self, BufRead, BufReader},
    net::{Shutdown, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Stdio,
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use testkit::{Connection, Receiver, Request, RunningProgram, TIMEOUT, assert_eventually};

use crate::{
    cases::check_cases,
    support::{printed, program, run, serve, serve_as},
};

const TOKEN: &str = "token-of-the-operator-1";

#[test]
fn webhooks_are_forwarded_to_a_handler_on_this_machine() {
    let directory = tempfile::tempdir().unwrap();
    let shop = Receiver::ok().unwrap();
    let address = shop.address.to_string();
    let served = serve(directory.path(), &["--forward-to", &format!("http://{address}/hooks")]);
    let secret = served.ready["forwards"][0]["test_secret"].as_str().expect("a secret");
    assert!(secret.starts_with("whsec_"), "{secret}");
    for key in ["live_key", "test_key"] {
        let charge = json!({ "asset": "BTC", "amount": "10.00", "currency": "EUR" });
        served.post("/v1/charges", Some(served.value(key)), &charge);
        let (post, _) = shop.next(TIMEOUT).expect("a post");
        assert_eq!(post.start, "POST /hooks HTTP/1.1");
        assert_eq!(post.header("Host"), Some(address.as_str()), "{post:?}");
        assert_eq!(post.header("X-Service-Event"), Some("charge.created"), "{post:?}");
    }
}

#[test]
fn a_served_world_passes_check_without_options_and_is_left_unchanged() {
    for arguments in [&["--demo"][..], &["--clock", "frozen"]] {
        let directory = tempfile::tempdir().unwrap();
        let shop = Receiver::ok().unwrap();
        let served = serve(directory.path(), arguments);
        served.post("/sandbox/forwards", None, &json!({ "to": format!("http://{}/hooks", shop.address) }));
        let state = || {
            let count = |mode: &str, kind: &str| {
                served.call("GET", &format!("/sandbox/books/acme/{mode}"), None, "").json()[kind].clone()
            };
            let worlds = served.call("GET", "/sandbox/worlds", None, "").json();
            let counts = ["charges", "endpoints"].map(|kind| [count("live", kind), count("test", kind)]);
            (counts, worlds["worlds"].clone())
        };
        let before = state();

        let checked = run(directory.path(), &["check", served.value("url")]);

        assert_eq!(checked.status.code(), Some(0), "{arguments:?}: {}", printed(&checked));
        assert!(printed(&checked).contains("Conforms: every required statement was judged and holds"));
        assert_eq!(state(), before, "{arguments:?}");
        assert!(shop.next(Duration::ZERO).is_none(), "the handler of the served world received a delivery");
    }
}

/// Checks an address with the given keys, and returns the exit code and the output.
fn check_with_keys(url: &str, [live, test]: [&str; 2], arguments: &[&str]) -> (Option<i32>, String) {
    let directory = tempfile::tempdir().unwrap();
    let mut command = program(directory.path());
    command.args(["check", url]).args(arguments);
    command.env("CHARGEPROOF_LIVE_KEY", live).env("CHARGEPROOF_TEST_KEY", test);
    let checked = command.output().expect("the program starts");
    (checked.status.code(), printed(&checked))
}

#[test]
fn a_served_world_passes_check_with_its_own_keys() {
    let directory = tempfile::tempdir().unwrap();
    let served = serve(directory.path(), &["--demo"]);
    let opened = served.post("/sandbox/worlds", None, &json!({ "name": "opened" }));
    for keys in [&served.ready, &opened] {
        let [live, test] = ["live_key", "test_key"].map(|name| keys[name].as_str().expect("a key"));
        let (code, shown) = check_with_keys(served.value("url"), [live, test], &[]);
        assert_eq!(code, Some(0), "{shown}");
        assert!(shown.contains("checks a branch of the world of these keys"), "{shown}");
    }
}

/// A branch would not show faults that depend on the keys.
#[test]
fn given_keys_check_the_named_address_itself_behind_a_gateway_and_if_the_server_does_not_know_them() {
    let directory = tempfile::tempdir().unwrap();
    let served = serve(directory.path(), &["--clock", "frozen"]);
    let own = ["live_key", "test_key"].map(|name| served.value(name));
    let gateway_address = gateway(served.value("url").trim_start_matches("http://"));
    let only = ["--only", "account.served"];
    for (url, keys, arguments, expected) in [
        (&*gateway_address, own, &only[..], Some(0)),
        (served.value("url"), own, &["--only", "account.served", "--without", "webhooks"], Some(0)),
        // Keys in the wrong slots are a configuration error.
        (served.value("url"), [own[1], own[0]], &only, Some(2)),
        (served.value("url"), [own[0], "svc_test_AAAAAAAAAAAAAAAAAAAAAAAA"], &only, Some(2)),
    ] {
        let (code, shown) = check_with_keys(url, keys, arguments);
        assert_eq!(code, expected, "{url}: {shown}");
        assert!(!shown.contains("a branch of"), "{shown}");
    }
}

/// Starts a gateway that passes every byte on, and returns its URL.
fn gateway(to: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let to = to.to_owned();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(&to).unwrap();
            for (mut from, mut to) in
                [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)]
            {
                thread::spawn(move || io::copy(&mut from, &mut to).map(|_| to.shutdown(Shutdown::Write)));
            }
        }
    });
    url
}

#[test]
fn a_violation_in_a_branch_is_reported_with_the_served_address() {
    let directory = tempfile::tempdir().unwrap();
    let served = serve_as(program(directory.path()), &["--rate-limit", "100"]);
    let checked = printed(&run(directory.path(), &["check", served.value("url")]));
    let again = format!("chargeproof check {} --only limits.served", served.value("url"));
    assert!(checked.contains(&again), "{checked}");
    assert!(checked.contains(&format!("'{}/v1/account'", served.value("url"))), "{checked}");
}

/// Returns the lines that `serve` prints for users, up to the last.
fn banner(directory: &Path, arguments: &[&str]) -> Vec<String> {
    let mut child = program(directory)
        .args(["serve", "--listen", "127.0.0.1:9", "--port", "0"])
        .args(arguments)
        .env("OPERATOR_TOKEN", TOKEN)
        .env("BROWSER", directory.join("browser"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let lines = BufReader::new(child.stdout.take().expect("the stream is piped")).lines();
    let mut shown = Vec::new();
    for line in lines.map_while(Result::ok) {
        let is_last = line.starts_with("Press Ctrl-C");
        shown.push(line);
        if is_last {
            break;
        }
    }
    if arguments.contains(&"--open") {
        assert_eventually(|| directory.join("opened").exists());
    }
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    shown
}

#[test]
fn the_banner_prints_shell_exports() {
    let directory = tempfile::tempdir().unwrap();
    let shown = banner(directory.path(), &["--seed", "7", "--forward-to", "http://localhost:3000/hooks"]);
    let value = |name: &str| {
        let start = format!("  export {name}=");
        let found = shown.iter().find_map(|line| line.strip_prefix(&start));
        found.unwrap_or_else(|| panic!("{name} in {shown:#?}")).to_owned()
    };
    assert!(value("CHARGEPROOF_URL").starts_with("http://127.0.0.1:"), "the port is the one of --port");
    assert!(value("CHARGEPROOF_LIVE_KEY").starts_with("svc_live_"));
    assert!(value("CHARGEPROOF_TEST_KEY").starts_with("svc_test_"));
    assert!(value("CHARGEPROOF_LIVE_WEBHOOK_SECRET").starts_with("whsec_"));
    assert_ne!(value("CHARGEPROOF_LIVE_WEBHOOK_SECRET"), value("CHARGEPROOF_TEST_WEBHOOK_SECRET"));
    let forward = "forward   http://localhost:3000/hooks";
    assert!(shown.iter().any(|line| line.starts_with(forward)), "{shown:#?}");
}

#[test]
fn https_has_a_certificate_that_clients_can_trust() {
    let directory = tempfile::tempdir().unwrap();
    let shown = banner(directory.path(), &["--tls"]);
    assert!(shown[0].starts_with("serving   https://127.0.0.1:"), "{shown:#?}");
    let trust = shown.iter().find_map(|line| line.strip_prefix("trust     ")).expect("a path");
    let path = trust.split_whitespace().next().expect("a path");
    assert!(shown.iter().any(|line| line.contains(&format!("curl --cacert {path} "))), "{shown:#?}");
    let pem = fs::read_to_string(path).expect("the certificate");
    assert!(pem.starts_with("-----BEGIN CERTIFICATE-----") && !pem.contains("PRIVATE KEY"), "{pem}");
    // The process was killed, so it did not delete the file.
    fs::remove_file(path).expect("the file belongs to the test");
    check_cases("tls");
}

#[test]
fn a_browser_is_opened_at_the_dashboard() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("browser");
    // Renamed when complete, so that no partial file is read.
    fs::write(&script, "#!/bin/sh\necho \"$1\" > opened.part && mv opened.part opened\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let shown = banner(directory.path(), &["--open"]);
    let opened = fs::read_to_string(directory.path().join("opened")).unwrap();
    assert!(shown.contains(&format!("dashboard {}", opened.trim())), "{opened} in {shown:#?}");
}

#[test]
fn a_configured_token_gives_other_machines_access_to_the_sandbox() {
    let directory = tempfile::tempdir().unwrap();
    let mut program = program(directory.path());
    program.env("OPERATOR_TOKEN", TOKEN);
    let served = serve_as(program, &["--sandbox-token-env", "OPERATOR_TOKEN"]);
    assert_eq!(served.value("sandbox_token"), TOKEN);
    let from_elsewhere = |token: &str| {
        let request =
            Request { key: Some(token), header_lines: "Via: 1.1 proxy\r\n", ..Request::get("/sandbox/keys") };
        testkit::call(served.value("address"), request).expect("the server responds").status
    };
    assert_eq!(from_elsewhere(TOKEN), 200);
    assert_eq!(from_elsewhere("token-of-the-operator-2"), 403);
}

#[test]
fn an_invalid_token_is_refused_and_not_repeated() {
    let directory = tempfile::tempdir().unwrap();
    for (token, part) in [(None, "export OPERATOR_TOKEN=…"), (Some("short-secret"), "use 20 to 200")] {
        let mut program = program(directory.path());
        if let Some(token) = token {
            program.env("OPERATOR_TOKEN", token);
        }
        let output =
            program.args(["serve", "--port", "0", "--sandbox-token-env", "OPERATOR_TOKEN"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(
            printed(&output).contains(part) && !printed(&output).contains("short-secret"),
            "{}",
            printed(&output)
        );
    }
    let twice =
        ["serve", "--port", "0", "--forward-to", "http://localhost:1", "--forward-to", "http://localhost:1"];
    let output = run(directory.path(), &twice);
    assert_eq!(output.status.code(), Some(2));
    assert!(printed(&output).contains("is already the target of a forward"), "{}", printed(&output));
}

#[test]
fn a_demo_has_some_history_and_ends_now() {
    let directory = tempfile::tempdir().unwrap();
    let start = "2026-01-05T09:00:00Z";
    let served = serve(directory.path(), &["--demo", "--clock", "frozen", "--start", start, "--seed", "1"]);
    let get = |path: &str| served.call("GET", path, None, "").json();
    assert_eq!(get("/sandbox")["now"].as_str().map(|now| &now[..16]), Some("2026-01-08T09:00"));
    for (mode, least) in [("live", [10, 3, 2]), ("test", [2, 1, 2])] {
        let counts = get(&format!("/sandbox/books/acme/{mode}"));
        let found = [&counts["charges"]["all"], &counts["invoices"]["all"], &counts["links"]];
        for (found, least) in found.iter().zip(least) {
            assert!(found.as_u64().is_some_and(|found| found >= least), "{mode}: {counts}");
        }
    }
    let deliveries = get("/sandbox/deliveries?mode=live");
    let retried = |value: &Value| value["attempts"].as_array().is_some_and(|attempts| attempts.len() > 1);
    assert!(deliveries["deliveries"].as_array().is_some_and(|all| all.iter().any(retried)), "{deliveries}");
    let keys = get("/sandbox/keys");
    let unused =
        keys["keys"].as_array().expect("an array").iter().filter(|key| key["revoked_at"].is_null()).count();
    assert_eq!(unused, 2, "its own keys are revoked: {keys}");
}

#[test]
fn a_scenario_is_opened_in_the_state_after_a_step() {
    let directory = tempfile::tempdir().unwrap();
    let text = "title: A charge is paid\nseed: 9\nsteps:\n  - open: { charge: c1, asset: BTC, amount: 49.90 EUR }\n  - pay: c1\n  - mine: { asset: BTC, blocks: 2 }\n";
    std::fs::write(directory.path().join("paid.yaml"), text).unwrap();
    std::fs::write(
        directory.path().join("wrong.yaml"),
        format!("{text}  - expect: {{ c1: {{ status: expired }} }}\n"),
    )
    .unwrap();
    for (arguments, status, detected) in [
        (&["--scenario", "paid.yaml", "--until", "1"][..], "pending", false),
        (&["--scenario", "paid.yaml", "--until", "2"], "pending", true),
        (&["--scenario", "paid.yaml", "--seed", "4"], "paid", true),
        // The world has the state in which the scenario stopped.
        (&["--scenario", "wrong.yaml"], "paid", true),
    ] {
        let served = serve(directory.path(), arguments);
        assert_eq!(served.ready["seed"], if arguments[2..].contains(&"4") { 4 } else { 9 });
        assert_eq!(served.value("clock"), "frozen");
        let body = served.call("GET", "/v1/charges", Some(served.value("live_key")), "").json();
        let charge = &body["data"][0];
        assert_eq!(
            (&charge["status"], charge["transactions"][0].is_object()),
            (&status.into(), detected),
            "{body}"
        );
    }
    for (arguments, part) in [
        (&["--scenario", "paid.yaml", "--until", "4"][..], "steps 1 to 3"),
        (&["--scenario", "paid.yaml", "--clock", "wall"], "cannot be used with"),
        (&["--until", "4"], "--scenario"),
        (&["--scenario", "nowhere.yaml"], "nowhere.yaml"),
    ] {
        let output = run(directory.path(), &[&["serve", "--port", "0"], arguments].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(printed(&output).contains(part), "{}", printed(&output));
    }
}

#[test]
fn manual_calls_are_saved_as_a_scenario_that_plays() {
    let directory = tempfile::tempdir().unwrap();
    let served = serve(directory.path(), &["--clock", "frozen", "--start", "2026-01-05T09:00:00Z"]);
    one_charge(&served);
    let charge = served.call("GET", "/v1/charges", Some(served.value("live_key")), "").json();
    served.post("/sandbox/pay", None, &json!({ "charge": charge["data"][0]["code"] }));
    let url = &format!("http://{}", served.value("address"));
    for (arguments, code, part) in [
        (&["play", "--save-from", url, "mine.yaml"][..], 0, "wrote `mine.yaml`"),
        (&["play", "mine.yaml", "--bless"], 0, "mine"),
        (&["play", "mine.yaml"], 0, "mine"),
        (&["play", "--save-from", url, "nowhere/mine.yaml"], 2, "nowhere/mine.yaml"),
        (&["play", "--save-from", "http://127.0.0.1:1", "other.yaml"], 4, "127.0.0.1:1"),
    ] {
        let output = run(directory.path(), arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", printed(&output));
        assert!(printed(&output).contains(part), "{arguments:?}: {}", printed(&output));
    }
    let scenario = fs::read_to_string(directory.path().join("mine.yaml")).unwrap();
    assert!(scenario.contains("/v1/charges") && scenario.contains("/sandbox/pay"), "{scenario}");
    assert!(!directory.path().join("other.yaml").exists());
}

#[test]
fn an_invalid_world_file_is_refused_in_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let served = serve(directory.path(), &["--clock", "frozen", "--start", "2026-01-05T09:00:00Z"]);
    one_charge(&served);
    served.post("/sandbox/snapshots", None, &json!({ "name": "one charge" }));
    let file = served.call("GET", "/sandbox/snapshots/s1", None, "").body;
    let (head, records) = file.split_once('\n').expect("a file");
    let head: Value = serde_json::from_str(head).expect("valid JSON");
    let now = head["setup"]["start"].to_string();
    for (of_head, from, to) in [
        (false, now.as_str(), "18446744073709551615"),
        (false, "\"key\":0", "\"key\":77"),
        (false, "\"book\":[0,", "\"book\":[9,"),
        (true, now.as_str(), "18446744073709551615"),
        (true, "\"rate_limit\":120", "\"rate_limit\":-1"),
    ] {
        let spoiled = |text: &str, is_meant: bool| {
            assert!(!is_meant || text.contains(from), "{from} in {text}");
            if is_meant { text.replace(from, to) } else { text.to_owned() }
        };
        let records = spoiled(records, !of_head);
        let mut head = head.clone();
        head["sha256"] = hex::encode(Sha256::digest(&records)).into();
        fs::write(
            directory.path().join("spoiled"),
            format!("{}\n{records}", spoiled(&head.to_string(), of_head)),
        )
        .unwrap();
        let output = run(directory.path(), &["serve", "--port", "0", "--from", "spoiled"]);
        assert_eq!(output.status.code(), Some(2), "{from} {to}: {}", printed(&output));
        let shown = printed(&output);
        assert!(shown.starts_with("error: ") && !shown.contains("panicked"), "{from} {to}: {shown}");
    }
}

/// Returns the lines of stderr after these requests, up to the line with `last`.
fn log_lines(arguments: &[&str], last: &str, send: impl Fn(&RunningProgram)) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let mut program = program(directory.path());
    program.stderr(Stdio::piped());
    let mut served = serve_as(program, &[&["--clock", "frozen"], arguments].concat());
    let lines = BufReader::new(served.child.stderr.take().expect("the stream is piped")).lines();
    send(&served);
    let mut logged = Vec::new();
    for line in lines.map_while(Result::ok) {
        logged.push(line);
        if logged.last().is_some_and(|line| line.contains(last)) {
            break;
        }
    }
    logged
}

fn one_charge(served: &RunningProgram) {
    served.call("POST", "/sandbox/endpoints", None, r#"{"mode":"live","url":"https://shop.sim/hooks"}"#);
    let key = served.value("live_key");
    served.call("POST", "/v1/charges", Some(key), r#"{"amount":"ten"}"#);
    served.call("POST", "/v1/charges", Some(key), r#"{"asset":"BTC","amount":"10.00","currency":"EUR"}"#);
    served.call("POST", "/sandbox/advance", None, r#"{"by":"1s"}"#);
}

#[test]
fn the_log_has_lines_without_keys() {
    let lines = log_lines(&["--log", "text"], "/sandbox/advance", one_charge);
    for part in [
        "POST /sandbox/endpoints  200",
        "POST /v1/charges  422",
        "POST /v1/charges  201",
        "charge.created ",
        "POST to shop.sim: charge.created, try 1: 200  live",
    ] {
        assert!(lines.iter().any(|line| line.contains(part)), "{part} in {lines:#?}");
    }
    let refused = lines.iter().find(|line| line.contains("422")).expect("a refusal");
    assert!(refused.contains("  svc_live_…") && refused.contains("field"), "it says why: {refused}");
    assert!(!lines.iter().any(|line| line.contains("\u{1b}")), "no colours without a terminal: {lines:#?}");
}

#[test]
fn the_log_is_available_as_json() {
    let lines = log_lines(&["--log", "json"], "/sandbox/advance", one_charge);
    let lines: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).expect(line)).collect();
    let requests = lines.iter().filter(|line| line["what"] == "request").count();
    assert_eq!(requests, 4, "{lines:#?}");
    let post = lines.iter().find(|line| line["what"] == "post").expect("a delivery");
    assert_eq!((&post["type"], &post["answer"]), (&json!("charge.created"), &json!("200")));
}

#[test]
fn no_log_is_printed_without_a_terminal() {
    let lines = log_lines(&[], "stopping", |served| {
        one_charge(served);
        served.signal("INT").unwrap();
    });
    assert_eq!(lines, ["stopping; press Ctrl-C again to stop without waiting for open requests"]);
}

#[test]
fn signals_end_a_server_whose_log_is_not_read() {
    // More than a pipe and the queue of the log can hold.
    const REQUESTS: usize = 600;
    let directory = tempfile::tempdir().unwrap();
    let mut program = program(directory.path());
    program.stderr(Stdio::piped());
    let mut served = serve_as(program, &["--log", "json"]);
    let long = format!("/v1/account?{}", "x".repeat(1_000));
    (0..REQUESTS).for_each(|_| drop(served.call("GET", &long, None, "")));
    let mut open = Connection::open(served.value("address")).unwrap();
    open.send("POST /v1/charges HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n{").unwrap();
    // Concurrent signals count as one.
    assert_eventually(|| {
        served.signal("TERM").unwrap();
        served.child.try_wait().expect("the process was started").is_some()
    });
    assert_eq!(served.child.wait().expect("the process has ended").code(), Some(0));
}
