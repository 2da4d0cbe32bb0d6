//! Robustness: echoed keys, foreign text, interrupts, closed and full outputs, and oversized files.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    net::TcpListener,
    path::Path,
    process::{Output, Stdio},
};

use testkit::{assert_eventually, signal};

use crate::support::{json, output_of, program, read, run, serve, text};

/// Keys that no server knows.
const LIVE: &str = "svc_live_Q8wZr3LmT6yVb1NxK5cJ";
const TEST: &str = "svc_test_H4gPs7DfU2kWe9RtY0oA";

/// Starts a target that responds with 418 to every request, and returns its URL. `body` returns the
/// body of a response to the key of the request.
fn start_target(body: impl Fn(&str) -> String + Send + Sync + 'static) -> String {
    testkit::serve_status(418, body).unwrap()
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Encodes Base64 without padding, independently of the program's implementation.
fn base64(text: &str) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits: String = text.bytes().map(|byte| format!("{byte:08b}")).collect();
    let sextets = bits.as_bytes().chunks(6).filter(|sextet| sextet.len() == 6);
    let value = |sextet: &[u8]| sextet.iter().fold(0, |value, bit| value * 2 + usize::from(*bit == b'1'));
    sextets.map(|sextet| char::from(DIGITS[value(sextet)])).collect()
}

/// Runs the program with `LIVE` and `TEST` as keys.
fn run_with_keys(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = program(directory);
    command.env("CHARGEPROOF_LIVE_KEY", LIVE).env("CHARGEPROOF_TEST_KEY", TEST).args(arguments);
    command.output().expect("the program starts")
}

#[test]
fn no_command_shows_a_key_that_the_target_echoes_in_any_encoding() {
    let directory = tempfile::tempdir().unwrap();
    let url = start_target(|key| {
        let encodings = [key.to_owned(), hex(key), percent(key), base64(key), base64(&format!("a:{key}"))];
        serde_json::json!({ "message": encodings.join(" ") }).to_string()
    });
    let url = url.as_str();
    let mut printed_text = String::new();
    for arguments in [
        &["check", url, "--record", "run.json", "--report", "html=run.html", "--report", "github=run.txt"][..],
        &["check", url, "--format", "json", "--profile", "extended"],
        &["load", url, "--rate", "5", "--for", "1s"],
        &["load", url, "--rate", "5", "--for", "1s", "--mix", "write", "--allow-writes", "--asset", "BTC"],
        &["fuzz", url, "--requests", "20", "--rate", "off", "--save", "found.json"],
    ] {
        printed_text += &output_of(&run_with_keys(directory.path(), arguments));
    }
    for file in fs::read_dir(directory.path()).unwrap() {
        printed_text += &fs::read_to_string(file.unwrap().path()).unwrap();
    }
    assert!(printed_text.contains("<key>"), "the echo is printed without the key: {printed_text}");
    let printed_text = printed_text.to_lowercase();
    for key in [LIVE, TEST] {
        let tail = &key["svc_live_".len()..];
        // The middle of the Base64 encoding, which does not depend on adjacent bytes.
        let base64_key = base64(key);
        for encoding in [tail.to_owned(), hex(tail), percent(tail), base64_key[14..30].to_owned()] {
            assert!(!printed_text.contains(&encoding.to_lowercase()), "{encoding} in {printed_text}");
        }
    }
}

#[test]
fn text_of_the_target_is_escaped_in_every_output() {
    let directory = tempfile::tempdir().unwrap();
    let hostile = "x\n::error::foreign\r\n##[error]foreign \u{202e}txt.exe";
    let url = start_target(move |_| hostile.to_owned());
    let url = url.as_str();
    for format in ["text", "json", "junit", "markdown", "html", "github"] {
        check_escaped(&run_with_keys(directory.path(), &["check", url, "--format", format]));
    }
    check_escaped(&run_with_keys(directory.path(), &["load", url, "--rate", "5", "--for", "1s"]));
    check_escaped(&run_with_keys(directory.path(), &["fuzz", url, "--requests", "10", "--rate", "off"]));
}

/// Checks that the output has no CI command and no control character of the target.
#[track_caller]
fn check_escaped(output: &Output) {
    let printed_text = output_of(output);
    assert!(!printed_text.contains('\u{202e}') && !printed_text.contains("##["), "{printed_text}");
    assert!(
        printed_text.lines().all(|line| !line.trim_start().starts_with("::error::foreign")),
        "{printed_text}"
    );
}

#[test]
fn an_interrupted_check_reports_and_saves_its_results() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(directory.path(), &["--seed", "1"]);
    let mut command = program(directory.path());
    command
        .env("CHARGEPROOF_LIVE_KEY", server.value("live_key"))
        .env("CHARGEPROOF_TEST_KEY", server.value("test_key"))
        .args(["check", server.value("url"), "--without", "registration"])
        .args(["--record", "run.json", "--report", "json=run.report"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut stderr = BufReader::new(child.stderr.take().expect("the stream is piped"));
    let mut line = String::new();
    // The check waits for the rate limit after the burst.
    while !line.starts_with("waiting") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "the check ended early");
    }
    signal(child.id(), "INT").unwrap();
    let output = child.wait_with_output().expect("the program ends");
    let printed_text = text(&output.stdout);
    assert_eq!(output.status.code(), Some(130), "{printed_text}");
    assert!(printed_text.contains("judged: interrupted") && printed_text.contains("pass"), "{printed_text}");
    assert!(
        printed_text.contains("the run was interrupted before all its requests were sent"),
        "{printed_text}"
    );
    assert!(
        !printed_text.contains("  fail  "),
        "a statement without a request is not violated: {printed_text}"
    );
    let report: serde_json::Value = serde_json::from_str(&read(directory.path(), "run.report")).unwrap();
    assert_eq!((&report["interrupted"], &report["exit_code"]), (&true.into(), &130.into()));
    let judged = run(directory.path(), &["judge", "run.json", "--format", "json"]);
    assert_eq!((judged.status.code(), &json(&judged)), (Some(130), &report));
}

#[test]
fn an_interrupt_does_not_wait_for_a_missing_response() {
    let directory = tempfile::tempdir().unwrap();
    let silent_target = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent_target.local_addr().unwrap());
    let mut command = program(directory.path());
    command.env("CHARGEPROOF_LIVE_KEY", LIVE).env("CHARGEPROOF_TEST_KEY", TEST);
    command.args(["check", &url, "--time-limit", "300"]).stdout(Stdio::piped());
    let child = command.spawn().expect("the program starts");
    let (mut stream, _) = silent_target.accept().unwrap();
    stream.read_exact(&mut [0; 4]).unwrap();
    signal(child.id(), "TERM").unwrap();
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stdout));
}

/// Starts a command, waits until `wait_until_running` returns, sends SIGINT, and checks that the
/// command exits with 130 and its output contains `parts`. The value that `wait_until_running`
/// returns, such as a connection, is dropped afterwards.
#[track_caller]
fn check_interrupted<T>(
    directory: &Path,
    arguments: &[&str],
    wait_until_running: impl FnOnce(&mut dyn BufRead) -> T,
    parts: &[&str],
) {
    let mut command = program(directory);
    command.env("CHARGEPROOF_LIVE_KEY", LIVE).env("CHARGEPROOF_TEST_KEY", TEST).env("HOOK", LIVE);
    let mut child = command.args(arguments).stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut lines = BufReader::new(child.stdout.take().expect("the stream is piped"));
    let _connection = wait_until_running(&mut lines);
    signal(child.id(), "INT").unwrap();
    let mut printed_text = String::new();
    lines.read_to_string(&mut printed_text).expect("valid UTF-8");
    assert_eq!(child.wait().expect("the program ends").code(), Some(130), "{arguments:?}: {printed_text}");
    for part in parts {
        assert!(printed_text.contains(part), "{arguments:?}: {part:?} in {printed_text}");
    }
}

#[test]
fn an_interrupted_command_reports_its_results() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    let (notify, requests) = std::sync::mpsc::sync_channel(1_000);
    let url = testkit::serve_status(200, move |_| {
        // Fails when the channel is full, because no more notifications are needed.
        let _ = notify.try_send(());
        r#"{"data":{},"meta":{"mode":"live"}}"#.to_owned()
    })
    .unwrap();
    let wait_for_five_requests =
        |_: &mut dyn BufRead| (0..5).for_each(|_| requests.recv().expect("a request arrives"));
    let load = ["load", &url, "--rate", "50", "--for", "10m", "--path", "/v1/account"];
    check_interrupted(dir, &load, wait_for_five_requests, &["interrupted  after", "statuses     200: "]);

    let silent_target = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hooks", silent_target.local_addr().unwrap());
    let accept_delivery = |_: &mut dyn BufRead| {
        let (mut stream, _) = silent_target.accept().unwrap();
        stream.read_exact(&mut [0; 4]).unwrap();
        stream
    };
    let try_handler =
        ["receiver", "try", &url, "--secret-env", "HOOK", "--without", "acts", "--time-limit", "300"];
    check_interrupted(dir, &try_handler, accept_delivery, &["interrupted: ", "exit 130"]);
    let accept_request = |_: &mut dyn BufRead| {
        let (mut stream, _) = silent_target.accept().unwrap();
        stream.read_exact(&mut [0; 4]).unwrap();
        stream
    };
    let url = url.trim_end_matches("/hooks");
    check_interrupted(dir, &["fuzz", url], accept_request, &["interrupted: ", "exit 130"]);

    for n in 0..500 {
        fs::write(dir.join(format!("{n:03}.yaml")), "title: A\nsteps:\n  - wait: 1h\n").unwrap();
    }
    let read_first_line = |lines: &mut dyn BufRead| drop(lines.read_line(&mut String::new()));
    check_interrupted(dir, &["play", "."], read_first_line, &["interrupted: ", "were not played"]);
}

#[test]
fn a_closed_stdout_is_no_error_and_a_full_disk_is_one() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in
        [&["check", "--list"][..], &["sweep", "--seeds", "1", "--jobs", "1"], &["play"], &["--help"]]
    {
        let mut child = program(directory.path())
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("the program ends");
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{arguments:?}");
    }
    let full_device = File::options().write(true).open("/dev/full").unwrap();
    let output = program(directory.path()).args(["check", "--list"]).stdout(full_device).output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", output_of(&output));
    assert!(output_of(&output).contains("stdout can't be written"), "{}", output_of(&output));
}

/// Checks that a file which exceeds its maximum size is refused with a short message.
#[track_caller]
fn check_bounded(name: &str, mebibytes: usize, arguments: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join(name), "x".repeat(mebibytes * 1024 * 1024 + 1)).unwrap();
    let output = run(directory.path(), arguments);
    let printed_text = output_of(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert!(
        printed_text.contains(&format!("larger than {mebibytes} MiB")) && printed_text.len() < 500,
        "{}",
        printed_text.len()
    );
}

#[test]
fn oversized_files_are_refused_with_a_short_message() {
    check_bounded("chargeproof.toml", 1, &["check"]);
    check_bounded("a.yaml", 4, &["play", "a.yaml"]);
    check_bounded("a.yaml", 4, &["sweep", "a.yaml"]);
    check_bounded("a.pem", 1, &["serve", "--cacert", "a.pem"]);
    check_bounded("a.json", 256, &["judge", "a.json"]);
}

#[test]
fn an_error_about_a_file_is_short() {
    let directory = tempfile::tempdir().unwrap();
    let long_text = "y".repeat(900_000);
    for (name, content, arguments) in [
        ("chargeproof.toml", format!("[check]\na = \"{long_text}"), &["check"][..]),
        ("a.yaml", format!("title: A\nsteps:\n  - {long_text}"), &["play", "a.yaml"]),
        ("a.json", format!("{{\"{long_text}\": 1}}"), &["judge", "a.json"]),
    ] {
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        let printed_text = output_of(&run(directory.path(), arguments));
        assert!(printed_text.len() < 4_000, "{name}: {} bytes", printed_text.len());
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn unwritable_results_are_refused_before_the_work_without_leftovers() {
    let directory = tempfile::tempdir().unwrap();
    for (arguments, code) in [
        (&["sweep", "--out", "no/such/file"][..], 5),
        (&["sweep", "--html", "no/such/file"], 5),
        (&["check", "--baseline-write", "no/such/file"], 2),
        (&["fuzz", "http://127.0.0.1:9", "--save", "no/such/file"], 2),
        (&["serve", "--ready-file", "no/such/file"], 2),
    ] {
        let output = run_with_keys(directory.path(), arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", output_of(&output));
        assert!(output_of(&output).contains("can't be written"), "{}", output_of(&output));
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "no file is left");
}

#[test]
fn a_written_baseline_needs_reasons_and_is_judged() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    let first = run(dir, &["check", "--only", "account.*", "--baseline-write", "known.toml"]);
    assert_eq!(first.status.code(), Some(0), "{}", output_of(&first));
    assert!(read(dir, "known.toml").starts_with("# Failures that are known."));
    fs::write(
        dir.join("known.toml"),
        "[\"account.served\"]\nreason = \"\"\nfingerprint = \"00\"\nexpires = 2999-01-01\n",
    )
    .unwrap();
    let without_reason = run(dir, &["check", "--only", "account.*", "--baseline-file", "known.toml"]);
    assert_eq!(without_reason.status.code(), Some(2), "{}", output_of(&without_reason));
    assert!(
        output_of(&without_reason).contains("`account.served` has no reason; fill it in"),
        "{}",
        output_of(&without_reason)
    );
    fs::write(
        dir.join("known.toml"),
        "[\"account.served\"]\nreason = \"a\"\nfingerprint = \"00\"\nexpires = 2999-01-01\n",
    )
    .unwrap();
    let stale = run(dir, &["check", "--only", "account.*", "--baseline-file", "known.toml"]);
    assert_eq!(stale.status.code(), Some(1), "{}", output_of(&stale));
    assert!(output_of(&stale).contains("account.served holds now"), "{}", output_of(&stale));
}

#[test]
fn an_accepted_incomplete_run_exits_with_0() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    // Only the statements of the chapter `limits` require the burst.
    let recorded =
        run(dir, &["check", "--only", "limits.*,account.*", "--without", "burst", "--record", "run.json"]);
    assert_eq!(recorded.status.code(), Some(0), "{}", output_of(&recorded));
    let text = read(dir, "run.json").replace("[\"burst\"]", "[]");
    fs::write(dir.join("run.json"), text).unwrap();
    for (accept, code) in [("incomplete", 0), ("incomplete=burst", 0), ("incomplete=second,other", 3)] {
        let output = run(dir, &["judge", "run.json", "--accept", accept]);
        assert_eq!(output.status.code(), Some(code), "{}", output_of(&output));
        let allowed = format!("incomplete, which --accept {accept} allows");
        assert_eq!(output_of(&output).contains(&allowed), code == 0, "{}", output_of(&output));
    }
    let invalid = run(dir, &["judge", "run.json", "--accept", "incomplete=tide"]);
    assert!(output_of(&invalid).contains("some of revoked, second, other"), "{}", output_of(&invalid));
}

#[test]
fn a_quick_run_passes_and_lists_what_it_skips() {
    let directory = tempfile::tempdir().unwrap();
    let output = run(directory.path(), &["check", "--quick"]);
    assert_eq!(output.status.code(), Some(0), "{}", output_of(&output));
    for part in ["--quick: the burst is left out", "left out", "Conforms: "] {
        assert!(output_of(&output).contains(part), "{part} in {}", output_of(&output));
    }
}

#[test]
fn a_failed_prepare_command_ends_the_check() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    let url = start_target(|_| "{}".to_owned());
    let prepare = "printf %s \"$CHARGEPROOF_URL\" > url; exit 7";
    let output = run_with_keys(dir, &["check", &url, "--prepare", prepare]);
    assert_eq!(output.status.code(), Some(2), "{}", output_of(&output));
    assert!(
        output_of(&output).contains("the --prepare command ended with exit status: 7"),
        "{}",
        output_of(&output)
    );
    assert_eq!(read(dir, "url"), format!("{url}/"));
}

/// A command that starts a background process, writes its process id to the file `id`, and waits.
const LONG_COMMAND: &str = "sleep 1000 & echo $! > id.new; mv id.new id; wait";

/// Checks that the process of `LONG_COMMAND` has ended.
#[track_caller]
fn check_background_process_ended(dir: &Path) {
    let status = format!("/proc/{}/stat", read(dir, "id").trim());
    assert_eventually(|| fs::read_to_string(&status).map_or(true, |stat| stat.contains(") Z ")));
}

#[test]
fn a_prepare_command_and_its_processes_end_at_the_time_limit() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    let url = start_target(|_| "{}".to_owned());
    let output = run_with_keys(dir, &["check", &url, "--prepare", LONG_COMMAND, "--prepare-time-limit", "1"]);
    assert_eq!(output.status.code(), Some(2), "{}", output_of(&output));
    assert!(
        output_of(&output).contains("the --prepare command took longer than 1 s"),
        "{}",
        output_of(&output)
    );
    check_background_process_ended(dir);
}

#[test]
fn a_prepare_command_and_its_processes_end_on_a_signal() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    let url = start_target(|_| "{}".to_owned());
    let mut command = program(dir);
    command.env("CHARGEPROOF_LIVE_KEY", LIVE).env("CHARGEPROOF_TEST_KEY", TEST);
    command.args(["check", &url, "--prepare", LONG_COMMAND]).stderr(Stdio::piped());
    let child = command.spawn().expect("the program starts");
    assert_eventually(|| dir.join("id").exists());
    signal(child.id(), "TERM").unwrap();
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(130), "{}", output_of(&output));
    check_background_process_ended(dir);
}
