//! Tests of `serve`: webhooks on the same machine, checks of the server, the banner, the log, and the options.

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
    support::{output_of, program, run, serve, serve_as},
};

const TOKEN: &str = "token-of-the-operator-1";

#[test]
fn webhooks_are_forwarded_to_a_handler_on_this_machine() {
    let directory = tempfile::tempdir().unwrap();
    let handler = Receiver::ok().unwrap();
    let address = handler.address.to_string();
    let server = serve(directory.path(), &["--forward-to", &format!("http://{address}/hooks")]);
    let secret =
        server.first_line_json["forwards"][0]["test_secret"].as_str().expect("the forward has a secret");
    assert!(secret.starts_with("whsec_"), "{secret}");
    for key in ["live_key", "test_key"] {
        let charge = json!({ "asset": "BTC", "amount": "10.00", "currency": "EUR" });
        server.post("/v1/charges", Some(server.value(key)), &charge);
        let (request, _) = handler.next(TIMEOUT).expect("the handler receives a delivery");
        assert_eq!(request.start_line, "POST /hooks HTTP/1.1");
        assert_eq!(request.header("Host"), Some(address.as_str()), "{request:?}");
        assert_eq!(request.header("X-Service-Event"), Some("charge.created"), "{request:?}");
    }
}

#[test]
fn a_served_world_passes_check_without_options_and_is_left_unchanged() {
    for arguments in [&["--demo"][..], &["--clock", "frozen"]] {
        let directory = tempfile::tempdir().unwrap();
        let handler = Receiver::ok().unwrap();
        let server = serve(directory.path(), arguments);
        server.post("/sandbox/forwards", None, &json!({ "to": format!("http://{}/hooks", handler.address) }));
        let state = || {
            let count = |mode: &str, kind: &str| {
                server.call("GET", &format!("/sandbox/books/acme/{mode}"), None, "").json()[kind].clone()
            };
            let worlds = server.call("GET", "/sandbox/worlds", None, "").json();
            let counts = ["charges", "endpoints"].map(|kind| [count("live", kind), count("test", kind)]);
            (counts, worlds["worlds"].clone())
        };
        let before = state();

        let checked = run(directory.path(), &["check", server.value("url")]);

        assert_eq!(checked.status.code(), Some(0), "{arguments:?}: {}", output_of(&checked));
        assert!(output_of(&checked).contains("Conforms: every required statement was judged and holds"));
        assert_eq!(state(), before, "{arguments:?}");
        assert!(
            handler.next(Duration::ZERO).is_none(),
            "the handler of the original world received a delivery"
        );
    }
}

/// Runs `check` for a URL with a live and a test key; returns the exit code and the output.
fn check_with_keys(url: &str, [live, test]: [&str; 2], arguments: &[&str]) -> (Option<i32>, String) {
    let directory = tempfile::tempdir().unwrap();
    let mut command = program(directory.path());
    command.args(["check", url]).args(arguments);
    command.env("CHARGEPROOF_LIVE_KEY", live).env("CHARGEPROOF_TEST_KEY", test);
    let checked = command.output().expect("the program starts");
    (checked.status.code(), output_of(&checked))
}

#[test]
fn a_served_world_passes_check_with_its_own_keys() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(directory.path(), &["--demo"]);
    let second_world = server.post("/sandbox/worlds", None, &json!({ "name": "second" }));
    for keys in [&server.first_line_json, &second_world] {
        let [live, test] =
            ["live_key", "test_key"].map(|name| keys[name].as_str().expect("a world has two keys"));
        let (code, printed_text) = check_with_keys(server.value("url"), [live, test], &[]);
        assert_eq!(code, Some(0), "{printed_text}");
        assert!(printed_text.contains("checks a branch of the world of these keys"), "{printed_text}");
    }
}

/// `check` opens no branch if the target is a gateway, with `--without`, or with keys that are not
/// those of the server.
#[test]
fn the_address_itself_is_checked_if_a_branch_would_hide_its_faults() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(directory.path(), &["--clock", "frozen"]);
    let server_keys = ["live_key", "test_key"].map(|name| server.value(name));
    let gateway_url = start_gateway(server.value("url").trim_start_matches("http://"));
    let only = ["--only", "account.served"];
    for (url, keys, arguments, expected) in [
        (&*gateway_url, server_keys, &only[..], Some(0)),
        (server.value("url"), server_keys, &["--only", "account.served", "--without", "webhooks"], Some(0)),
        // A test key as live key and the reverse is a configuration error.
        (server.value("url"), [server_keys[1], server_keys[0]], &only, Some(2)),
        (server.value("url"), [server_keys[0], "svc_test_AAAAAAAAAAAAAAAAAAAAAAAA"], &only, Some(2)),
    ] {
        let (code, printed_text) = check_with_keys(url, keys, arguments);
        assert_eq!(code, expected, "{url}: {printed_text}");
        assert!(!printed_text.contains("a branch of"), "{printed_text}");
    }
}

/// Starts a gateway that forwards all bytes to an address, and returns its URL.
fn start_gateway(target: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let target = target.to_owned();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(&target).unwrap();
            for (mut source, mut destination) in
                [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)]
            {
                thread::spawn(move || {
                    io::copy(&mut source, &mut destination).map(|_| destination.shutdown(Shutdown::Write))
                });
            }
        }
    });
    url
}

#[test]
fn a_violation_in_a_branch_is_reported_with_the_address_of_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve_as(program(directory.path()), &["--rate-limit", "100"]);
    let checked = output_of(&run(directory.path(), &["check", server.value("url")]));
    let repeat_command = format!("chargeproof check {} --only limits.served", server.value("url"));
    assert!(checked.contains(&repeat_command), "{checked}");
    assert!(checked.contains(&format!("'{}/v1/account'", server.value("url"))), "{checked}");
}

/// Starts `serve`, returns the lines of its banner, and kills it.
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
    let mut banner_lines = Vec::new();
    for line in lines.map_while(Result::ok) {
        let is_last = line.starts_with("Press Ctrl-C");
        banner_lines.push(line);
        if is_last {
            break;
        }
    }
    if arguments.contains(&"--open") {
        assert_eventually(|| directory.join("opened").exists());
    }
    child.kill().expect("the server runs");
    child.wait().expect("the server ends");
    banner_lines
}

#[test]
fn the_banner_prints_shell_exports() {
    let directory = tempfile::tempdir().unwrap();
    let lines = banner(directory.path(), &["--seed", "7", "--forward-to", "http://localhost:3000/hooks"]);
    let value = |name: &str| {
        let start = format!("  export {name}=");
        let found = lines.iter().find_map(|line| line.strip_prefix(&start));
        found.unwrap_or_else(|| panic!("{name} in {lines:#?}")).to_owned()
    };
    assert!(
        value("CHARGEPROOF_URL").starts_with("http://127.0.0.1:"),
        "--port overrides the port of --listen"
    );
    assert!(value("CHARGEPROOF_LIVE_KEY").starts_with("svc_live_"));
    assert!(value("CHARGEPROOF_TEST_KEY").starts_with("svc_test_"));
    assert!(value("CHARGEPROOF_LIVE_WEBHOOK_SECRET").starts_with("whsec_"));
    assert_ne!(value("CHARGEPROOF_LIVE_WEBHOOK_SECRET"), value("CHARGEPROOF_TEST_WEBHOOK_SECRET"));
    let forward = "forward   http://localhost:3000/hooks";
    assert!(lines.iter().any(|line| line.starts_with(forward)), "{lines:#?}");
}

#[test]
fn https_has_a_certificate_that_clients_can_trust() {
    let directory = tempfile::tempdir().unwrap();
    let lines = banner(directory.path(), &["--tls"]);
    assert!(lines[0].starts_with("serving   https://127.0.0.1:"), "{lines:#?}");
    let trust =
        lines.iter().find_map(|line| line.strip_prefix("trust     ")).expect("a line names the certificate");
    let path = trust.split_whitespace().next().expect("the line contains a path");
    assert!(lines.iter().any(|line| line.contains(&format!("curl --cacert {path} "))), "{lines:#?}");
    let pem = fs::read_to_string(path).expect("the certificate can be read");
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
    let lines = banner(directory.path(), &["--open"]);
    let opened = fs::read_to_string(directory.path().join("opened")).unwrap();
    assert!(lines.contains(&format!("dashboard {}", opened.trim())), "{opened} in {lines:#?}");
}

#[test]
fn a_configured_token_gives_other_machines_access_to_the_sandbox() {
    let directory = tempfile::tempdir().unwrap();
    let mut program = program(directory.path());
    program.env("OPERATOR_TOKEN", TOKEN);
    let server = serve_as(program, &["--sandbox-token-env", "OPERATOR_TOKEN"]);
    assert_eq!(server.value("sandbox_token"), TOKEN);
    let status_through_proxy = |token: &str| {
        let request =
            Request { key: Some(token), header_lines: "Via: 1.1 proxy\r\n", ..Request::get("/sandbox/keys") };
        testkit::call(server.value("address"), request).expect("the server responds").status
    };
    assert_eq!(status_through_proxy(TOKEN), 200);
    assert_eq!(status_through_proxy("token-of-the-operator-2"), 403);
}

#[test]
fn an_invalid_token_is_not_printed_and_a_repeated_forward_is_refused() {
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
            output_of(&output).contains(part) && !output_of(&output).contains("short-secret"),
            "{}",
            output_of(&output)
        );
    }
    let twice =
        ["serve", "--port", "0", "--forward-to", "http://localhost:1", "--forward-to", "http://localhost:1"];
    let output = run(directory.path(), &twice);
    assert_eq!(output.status.code(), Some(2));
    assert!(output_of(&output).contains("is already the target of a forward"), "{}", output_of(&output));
}

#[test]
fn sample_data_covers_three_days_and_revokes_its_keys() {
    let directory = tempfile::tempdir().unwrap();
    let start = "2026-01-05T09:00:00Z";
    let server = serve(directory.path(), &["--demo", "--clock", "frozen", "--start", start, "--seed", "1"]);
    let get = |path: &str| server.call("GET", path, None, "").json();
    assert_eq!(get("/sandbox")["now"].as_str().map(|now| &now[..16]), Some("2026-01-08T09:00"));
    for (mode, minimums) in [("live", [10, 3, 2]), ("test", [2, 1, 2])] {
        let counts = get(&format!("/sandbox/books/acme/{mode}"));
        let found = [&counts["charges"]["all"], &counts["invoices"]["all"], &counts["links"]];
        for (count, minimum) in found.iter().zip(minimums) {
            assert!(count.as_u64().is_some_and(|count| count >= minimum), "{mode}: {counts}");
        }
    }
    let deliveries = get("/sandbox/deliveries?mode=live");
    let is_retried =
        |delivery: &Value| delivery["attempts"].as_array().is_some_and(|attempts| attempts.len() > 1);
    assert!(
        deliveries["deliveries"].as_array().is_some_and(|all| all.iter().any(is_retried)),
        "{deliveries}"
    );
    let keys = get("/sandbox/keys");
    let active = keys["keys"]
        .as_array()
        .expect("`keys` is an array")
        .iter()
        .filter(|key| key["revoked_at"].is_null())
        .count();
    assert_eq!(active, 2, "the keys that created the sample data are revoked: {keys}");
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
        // The world keeps the state reached before the step that failed.
        (&["--scenario", "wrong.yaml"], "paid", true),
    ] {
        let server = serve(directory.path(), arguments);
        assert_eq!(server.first_line_json["seed"], if arguments[2..].contains(&"4") { 4 } else { 9 });
        assert_eq!(server.value("clock"), "frozen");
        let body = server.call("GET", "/v1/charges", Some(server.value("live_key")), "").json();
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
        (&["--scenario", "missing.yaml"], "missing.yaml"),
    ] {
        let output = run(directory.path(), &[&["serve", "--port", "0"], arguments].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(output_of(&output).contains(part), "{}", output_of(&output));
    }
}

#[test]
fn calls_are_saved_as_a_scenario_that_can_be_played() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(directory.path(), &["--clock", "frozen", "--start", "2026-01-05T09:00:00Z"]);
    send_sample_requests(&server);
    let charge = server.call("GET", "/v1/charges", Some(server.value("live_key")), "").json();
    server.post("/sandbox/pay", None, &json!({ "charge": charge["data"][0]["code"] }));
    let url = &format!("http://{}", server.value("address"));
    for (arguments, code, part) in [
        (&["play", "--save-from", url, "mine.yaml"][..], 0, "wrote `mine.yaml`"),
        (&["play", "mine.yaml", "--bless"], 0, "mine"),
        (&["play", "mine.yaml"], 0, "mine"),
        (&["play", "--save-from", url, "missing/mine.yaml"], 2, "missing/mine.yaml"),
        (&["play", "--save-from", "http://127.0.0.1:1", "other.yaml"], 4, "127.0.0.1:1"),
    ] {
        let output = run(directory.path(), arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", output_of(&output));
        assert!(output_of(&output).contains(part), "{arguments:?}: {}", output_of(&output));
    }
    let scenario = fs::read_to_string(directory.path().join("mine.yaml")).unwrap();
    assert!(scenario.contains("/v1/charges") && scenario.contains("/sandbox/pay"), "{scenario}");
    assert!(!directory.path().join("other.yaml").exists());
}

#[test]
fn an_invalid_world_file_is_refused_without_a_panic() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(directory.path(), &["--clock", "frozen", "--start", "2026-01-05T09:00:00Z"]);
    send_sample_requests(&server);
    server.post("/sandbox/snapshots", None, &json!({ "name": "one charge" }));
    let file = server.call("GET", "/sandbox/snapshots/s1", None, "").body;
    let (header, records) = file.split_once('\n').expect("a snapshot file has a header line");
    let header: Value = serde_json::from_str(header).expect("the header is JSON");
    let start = header["setup"]["start"].to_string();
    for (is_in_header, old, new) in [
        (false, start.as_str(), "18446744073709551615"),
        (false, "\"key\":0", "\"key\":77"),
        (false, "\"book\":[0,", "\"book\":[9,"),
        (true, start.as_str(), "18446744073709551615"),
        (true, "\"rate_limit\":120", "\"rate_limit\":-1"),
    ] {
        let replace_if = |is_changed: bool, text: &str| {
            assert!(!is_changed || text.contains(old), "{old} in {text}");
            if is_changed { text.replace(old, new) } else { text.to_owned() }
        };
        let records = replace_if(!is_in_header, records);
        let mut header = header.clone();
        header["sha256"] = hex::encode(Sha256::digest(&records)).into();
        fs::write(
            directory.path().join("invalid"),
            format!("{}\n{records}", replace_if(is_in_header, &header.to_string())),
        )
        .unwrap();
        let output = run(directory.path(), &["serve", "--port", "0", "--from", "invalid"]);
        assert_eq!(output.status.code(), Some(2), "{old} {new}: {}", output_of(&output));
        let printed_text = output_of(&output);
        assert!(
            printed_text.starts_with("error: ") && !printed_text.contains("panicked"),
            "{old} {new}: {printed_text}"
        );
    }
}

/// Returns the lines of stderr after `send` has sent requests, up to the line that contains `last`.
fn log_lines(arguments: &[&str], last: &str, send: impl Fn(&RunningProgram)) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let mut program = program(directory.path());
    program.stderr(Stdio::piped());
    let mut server = serve_as(program, &[&["--clock", "frozen"], arguments].concat());
    let lines = BufReader::new(server.child.stderr.take().expect("the stream is piped")).lines();
    send(&server);
    let mut logged = Vec::new();
    for line in lines.map_while(Result::ok) {
        logged.push(line);
        if logged.last().is_some_and(|line| line.contains(last)) {
            break;
        }
    }
    logged
}

/// Sends four requests: creates an endpoint, fails to create a charge, creates a charge, and advances
/// the clock by one second.
fn send_sample_requests(server: &RunningProgram) {
    server.call("POST", "/sandbox/endpoints", None, r#"{"mode":"live","url":"https://shop.sim/hooks"}"#);
    let key = server.value("live_key");
    server.call("POST", "/v1/charges", Some(key), r#"{"amount":"ten"}"#);
    server.call("POST", "/v1/charges", Some(key), r#"{"asset":"BTC","amount":"10.00","currency":"EUR"}"#);
    server.call("POST", "/sandbox/advance", None, r#"{"by":"1s"}"#);
}

#[test]
fn the_log_lists_requests_events_and_attempts() {
    let lines = log_lines(&["--log", "text"], "/sandbox/advance", send_sample_requests);
    for part in [
        "POST /sandbox/endpoints  200",
        "POST /v1/charges  422",
        "POST /v1/charges  201",
        "charge.created ",
        "POST to shop.sim: charge.created, try 1: 200  live",
    ] {
        assert!(lines.iter().any(|line| line.contains(part)), "{part} in {lines:#?}");
    }
    let refused = lines.iter().find(|line| line.contains("422")).expect("the log contains the refusal");
    assert!(
        refused.contains("  svc_live_…") && refused.contains("field"),
        "the line contains the reason: {refused}"
    );
    assert!(!lines.iter().any(|line| line.contains("\u{1b}")), "no colours without a terminal: {lines:#?}");
}

#[test]
fn the_log_is_available_as_json() {
    let lines = log_lines(&["--log", "json"], "/sandbox/advance", send_sample_requests);
    let lines: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).expect(line)).collect();
    let requests = lines.iter().filter(|line| line["what"] == "request").count();
    assert_eq!(requests, 4, "{lines:#?}");
    let attempt = lines.iter().find(|line| line["what"] == "post").expect("the log contains the attempt");
    assert_eq!((&attempt["type"], &attempt["answer"]), (&json!("charge.created"), &json!("200")));
}

#[test]
fn no_log_is_printed_without_a_terminal() {
    let lines = log_lines(&[], "stopping", |server| {
        send_sample_requests(server);
        server.signal("INT").unwrap();
    });
    assert_eq!(lines, ["stopping; press Ctrl-C again to stop without waiting for open requests"]);
}

#[test]
fn signals_end_a_server_whose_log_is_not_read() {
    // The log of so many requests exceeds the capacity of the pipe and of the queue.
    const REQUESTS: usize = 600;
    let directory = tempfile::tempdir().unwrap();
    let mut program = program(directory.path());
    program.stderr(Stdio::piped());
    let mut server = serve_as(program, &["--log", "json"]);
    let long_path = format!("/v1/account?{}", "x".repeat(1_000));
    (0..REQUESTS).for_each(|_| drop(server.call("GET", &long_path, None, "")));
    let mut connection = Connection::open(server.value("address")).unwrap();
    connection.send("POST /v1/charges HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n{").unwrap();
    // Repeated, because concurrent signals count as one.
    assert_eventually(|| {
        server.signal("TERM").unwrap();
        server.child.try_wait().expect("the process was started").is_some()
    });
    assert_eq!(server.child.wait().expect("the process has ended").code(), Some(0));
}
