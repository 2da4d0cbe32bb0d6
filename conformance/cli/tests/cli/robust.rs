//! Robustness: echoed keys, foreign text, interrupts, closed and full outputs, and oversized files.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    net::TcpListener,
    path::Path,
    process::{Output, Stdio},
};

use testkit::{assert_eventually, signal};

use crate::support::{json, printed, program, read, run, serve, text};

const LIVE: &str = "svc_live_Q8wZr3LmT6yVb1NxK5cJ";
const TEST: &str = "svc_test_H4gPs7DfU2kWe9RtY0oA";

/// Starts a target that answers every request with the given text and 418.
fn target(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> String {
    testkit::serve_status(418, answer).unwrap()
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Encodes Base64, independently of the program's implementation.
fn base64(text: &str) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits: String = text.bytes().map(|byte| format!("{byte:08b}")).collect();
    let whole = bits.as_bytes().chunks(6).filter(|six| six.len() == 6);
    let value = |six: &[u8]| six.iter().fold(0, |value, bit| value * 2 + usize::from(*bit == b'1'));
    whole.map(|six| char::from(DIGITS[value(six)])).collect()
}

fn with_keys(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = program(directory);
    command.env("CHARGEPROOF_LIVE_KEY", LIVE).env("CHARGEPROOF_TEST_KEY", TEST).args(arguments);
    command.output().expect("the program starts")
}

#[test]
fn no_command_shows_a_key_that_the_target_echoes_in_any_encoding() {
    let directory = tempfile::tempdir().unwrap();
    let url = target(|key| {
        let forms = [key.to_owned(), hex(key), percent(key), base64(key), base64(&format!("a:{key}"))];
        serde_json::json!({ "message": forms.join(" ") }).to_string()
    });
    let url = url.as_str();
    let mut shown = String::new();
    for arguments in [
        &["check", url, "--record", "run.json", "--report", "html=run.html", "--report", "github=run.txt"][..],
        &["check", url, "--format", "json", "--profile", "extended"],
        &["load", url, "--rate", "5", "--for", "1s"],
        &["load", url, "--rate", "5", "--for", "1s", "--mix", "write", "--allow-writes", "--asset", "BTC"],
        &["fuzz", url, "--requests", "20", "--rate", "off", "--save", "found.json"],
    ] {
        shown += &printed(&with_keys(directory.path(), arguments));
    }
    for file in fs::read_dir(directory.path()).unwrap() {
        shown += &fs::read_to_string(file.unwrap().path()).unwrap();
    }
    assert!(shown.contains("<key>"), "the echo is shown without the key: {shown}");
    let shown = shown.to_lowercase();
    for key in [LIVE, TEST] {
        let tail = &key["svc_live_".len()..];
        // The middle of the Base64 text, which does not depend on neighbouring bytes.
        let encoded = base64(key);
        for form in [tail.to_owned(), hex(tail), percent(tail), encoded[14..30].to_owned()] {
            assert!(!shown.contains(&form.to_lowercase()), "{form} in {shown}");
        }
    }
}

#[test]
fn foreign_text_starts_no_line_and_changes_no_direction() {
    let directory = tempfile::tempdir().unwrap();
    let hostile = "x\n::error::foreign\r\n##[error]foreign \u{202e}txt.exe";
    let url = target(move |_| hostile.to_owned());
    let url = url.as_str();
    for format in ["text", "json", "junit", "markdown", "html", "github"] {
        check_lines(&with_keys(directory.path(), &["check", url, "--format", format]));
    }
    check_lines(&with_keys(directory.path(), &["load", url, "--rate", "5", "--for", "1s"]));
    check_lines(&with_keys(directory.path(), &["fuzz", url, "--requests", "10", "--rate", "off"]));
}

#[track_caller]
fn check_lines(output: &Output) {
    let shown = printed(output);
    assert!(!shown.contains('\u{202e}') && !shown.contains("##["), "{shown}");
    assert!(shown.lines().all(|line| !line.trim_start().starts_with("::error::foreign")), "{shown}");
}

#[test]
fn an_interrupted_check_reports_and_saves_its_results() {
    let directory = tempfile::tempdir().unwrap();
    let served = serve(directory.path(), &["--seed", "1"]);
    let mut command = program(directory.path());
    command
        .env("CHARGEPROOF_LIVE_KEY", served.value("live_key"))
        .env("CHARGEPROOF_TEST_KEY", served.value("test_key"))
        .args(["check", served.value("url"), "--without", "registration"])
        .args(["--record", "run.json", "--report", "json=run.report"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut notes = BufReader::new(child.stderr.take().expect("the stream is piped"));
    let mut line = String::new();
    // The burst is over, and the rate limit must be waited for.
    while !line.starts_with("waiting") {
        line.clear();
        assert!(notes.read_line(&mut line).unwrap() > 0, "it ended early");
    }
    signal(child.id(), "INT").unwrap();
    let output = child.wait_with_output().expect("it ends");
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(130), "{shown}");
    assert!(shown.contains("judged: interrupted") && shown.contains("pass"), "{shown}");
    assert!(shown.contains("the run was interrupted before all its requests were sent"), "{shown}");
    assert!(!shown.contains("  fail  "), "what was not asked is no violation: {shown}");
    let report: serde_json::Value = serde_json::from_str(&read(directory.path(), "run.report")).unwrap();
    assert_eq!((&report["interrupted"], &report["exit_code"]), (&true.into(), &130.into()));
    let judged = run(directory.path(), &["judge", "run.json", "--format", "json"]);
    assert_eq!((judged.status.code(), &json(&judged)), (Some(130), &report));
}

#[test]
fn an_interrupt_does_not_wait_for_a_missing_response() {
    let directory = tempfile::tempdir().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let mut command = program(directory.path());
    command.env("CHARGEPROOF_LIVE_KEY", LIVE).env("CHARGEPROOF_TEST_KEY", TEST);
    command.args(["check", &url, "--time-limit", "300"]).stdout(Stdio::piped());
    let child = command.spawn().expect("the program starts");
    let (mut stream, _) = silent.accept().unwrap();
    stream.read_exact(&mut [0; 4]).unwrap();
    signal(child.id(), "TERM").unwrap();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stdout));
}

/// Starts the command, sends the signal once `is_under_way` returns, and checks how the command ends. The value that
/// `is_under_way` returns, such as a connection, is dropped afterwards.
#[track_caller]
fn check_interrupted<T>(
    directory: &Path,
    arguments: &[&str],
    is_under_way: impl FnOnce(&mut dyn BufRead) -> T,
    parts: &[&str],
) {
    let mut command = program(directory);
    command.env("CHARGEPROOF_LIVE_KEY", LIVE).env("CHARGEPROOF_TEST_KEY", TEST).env("HOOK", LIVE);
    let mut child = command.args(arguments).stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut lines = BufReader::new(child.stdout.take().expect("the stream is piped"));
    let _kept = is_under_way(&mut lines);
    signal(child.id(), "INT").unwrap();
    let mut shown = String::new();
    lines.read_to_string(&mut shown).expect("valid UTF-8");
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "{arguments:?}: {shown}");
    for part in parts {
        assert!(shown.contains(part), "{arguments:?}: {part:?} in {shown}");
    }
}

#[test]
fn an_interrupted_command_reports_its_results() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let (notify, requests) = std::sync::mpsc::sync_channel(1_000);
    let url = testkit::serve_status(200, move |_| {
        // Later notifications are not needed.
        let _ = notify.try_send(());
        r#"{"data":{},"meta":{"mode":"live"}}"#.to_owned()
    })
    .unwrap();
    let five = |_: &mut dyn BufRead| (0..5).for_each(|_| requests.recv().expect("a request arrives"));
    let load = ["load", &url, "--rate", "50", "--for", "10m", "--path", "/v1/account"];
    check_interrupted(here, &load, five, &["interrupted  after", "statuses     200: "]);
    requests.try_iter().count();

    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hooks", silent.local_addr().unwrap());
    let posted = |_: &mut dyn BufRead| {
        let (mut stream, _) = silent.accept().unwrap();
        stream.read_exact(&mut [0; 4]).unwrap();
        stream
    };
    let attempt =
        ["receiver", "try", &url, "--secret-env", "HOOK", "--without", "acts", "--time-limit", "300"];
    check_interrupted(here, &attempt, posted, &["interrupted: ", "exit 130"]);
    let silent_again = |_: &mut dyn BufRead| {
        let (mut stream, _) = silent.accept().unwrap();
        stream.read_exact(&mut [0; 4]).unwrap();
        stream
    };
    let url = url.trim_end_matches("/hooks");
    check_interrupted(here, &["fuzz", url], silent_again, &["interrupted: ", "exit 130"]);

    for n in 0..500 {
        fs::write(here.join(format!("{n:03}.yaml")), "title: A\nsteps:\n  - wait: 1h\n").unwrap();
    }
    let one = |lines: &mut dyn BufRead| drop(lines.read_line(&mut String::new()));
    check_interrupted(here, &["play", "."], one, &["interrupted: ", "were not played"]);
}

#[test]
fn a_closed_stdout_ends_a_command_quietly_and_a_full_one_is_an_error() {
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
        let output = child.wait_with_output().expect("it ends");
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{arguments:?}");
    }
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = program(directory.path()).args(["check", "--list"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", printed(&output));
    assert!(printed(&output).contains("stdout can't be written"), "{}", printed(&output));
}

#[track_caller]
fn check_bounded(name: &str, megabytes: usize, arguments: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join(name), "x".repeat(megabytes * 1024 * 1024 + 1)).unwrap();
    let output = run(directory.path(), arguments);
    let shown = printed(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert!(shown.contains(&format!("larger than {megabytes} MiB")) && shown.len() < 500, "{}", shown.len());
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
fn an_error_quotes_little_of_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let long = "y".repeat(900_000);
    for (name, content, arguments) in [
        ("chargeproof.toml", format!("[check]\na = \"{long}"), &["check"][..]),
        ("a.yaml", format!("title: A\nsteps:\n  - {long}"), &["play", "a.yaml"]),
        ("a.json", format!("{{\"{long}\": 1}}"), &["judge", "a.json"]),
    ] {
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        let shown = printed(&run(directory.path(), arguments));
        assert!(shown.len() < 4_000, "{name}: {} bytes", shown.len());
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
        let output = with_keys(directory.path(), arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", printed(&output));
        assert!(printed(&output).contains("can't be written"), "{}", printed(&output));
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn a_baseline_is_written_filled_in_and_read() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let first = run(here, &["check", "--only", "account.*", "--baseline-write", "known.toml"]);
    assert_eq!(first.status.code(), Some(0), "{}", printed(&first));
    assert!(read(here, "known.toml").starts_with("# Failures that are known."));
    fs::write(
        here.join("known.toml"),
        "[\"account.served\"]\nreason = \"\"\nfingerprint = \"00\"\nexpires = 2999-01-01\n",
    )
    .unwrap();
    let empty = run(here, &["check", "--only", "account.*", "--baseline-file", "known.toml"]);
    assert_eq!(empty.status.code(), Some(2), "{}", printed(&empty));
    assert!(printed(&empty).contains("`account.served` has no reason; fill it in"), "{}", printed(&empty));
    fs::write(
        here.join("known.toml"),
        "[\"account.served\"]\nreason = \"a\"\nfingerprint = \"00\"\nexpires = 2999-01-01\n",
    )
    .unwrap();
    let stale = run(here, &["check", "--only", "account.*", "--baseline-file", "known.toml"]);
    assert_eq!(stale.status.code(), Some(1), "{}", printed(&stale));
    assert!(printed(&stale).contains("account.served holds now"), "{}", printed(&stale));
}

#[test]
fn gaps_that_are_accepted_do_not_fail_a_run() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    // No other statement requires the burst.
    let recorded =
        run(here, &["check", "--only", "limits.*,account.*", "--without", "burst", "--record", "run.json"]);
    assert_eq!(recorded.status.code(), Some(0), "{}", printed(&recorded));
    let text = read(here, "run.json").replace("[\"burst\"]", "[]");
    fs::write(here.join("run.json"), text).unwrap();
    for (accept, exit) in [("incomplete", 0), ("incomplete=burst", 0), ("incomplete=second,other", 3)] {
        let output = run(here, &["judge", "run.json", "--accept", accept]);
        assert_eq!(output.status.code(), Some(exit), "{}", printed(&output));
        let allowed = format!("incomplete, which --accept {accept} allows");
        assert_eq!(printed(&output).contains(&allowed), exit == 0, "{}", printed(&output));
    }
    let wrong = run(here, &["judge", "run.json", "--accept", "incomplete=tide"]);
    assert!(printed(&wrong).contains("some of revoked, second, other"), "{}", printed(&wrong));
}

#[test]
fn a_quick_run_passes_and_lists_what_it_skips() {
    let directory = tempfile::tempdir().unwrap();
    let output = run(directory.path(), &["check", "--quick"]);
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    for part in ["--quick: the burst is left out", "left out", "Conforms: "] {
        assert!(printed(&output).contains(part), "{part} in {}", printed(&output));
    }
}

#[test]
fn a_command_prepares_the_target() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let url = target(|_| "{}".to_owned());
    let prepare = "printf %s \"$CHARGEPROOF_URL\" > url; exit 7";
    let output = with_keys(here, &["check", &url, "--prepare", prepare]);
    assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
    assert!(
        printed(&output).contains("the --prepare command ended with exit status: 7"),
        "{}",
        printed(&output)
    );
    assert_eq!(read(here, "url"), format!("{url}/"));
}

/// A command that starts a background process and writes its id to a file.
const LASTING: &str = "sleep 1000 & echo $! > id.new; mv id.new id; wait";

/// Checks that the process of `LASTING` has ended.
#[track_caller]
fn check_ended(here: &Path) {
    let status = format!("/proc/{}/stat", read(here, "id").trim());
    assert_eventually(|| fs::read_to_string(&status).map_or(true, |stat| stat.contains(") Z ")));
}

#[test]
fn a_prepare_command_and_what_it_started_end_at_its_time_limit() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let url = target(|_| "{}".to_owned());
    let output = with_keys(here, &["check", &url, "--prepare", LASTING, "--prepare-time-limit", "1"]);
    assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
    assert!(printed(&output).contains("the --prepare command took longer than 1 s"), "{}", printed(&output));
    check_ended(here);
}

#[test]
fn a_prepare_command_and_what_it_started_end_on_a_signal() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let url = target(|_| "{}".to_owned());
    let mut command = program(here);
    command.env("CHARGEPROOF_LIVE_KEY", LIVE).env("CHARGEPROOF_TEST_KEY", TEST);
    command.args(["check", &url, "--prepare", LASTING]).stderr(Stdio::piped());
    let child = command.spawn().expect("the program starts");
    assert_eventually(|| here.join("id").exists());
    signal(child.id(), "TERM").unwrap();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", printed(&output));
    check_ended(here);
}
