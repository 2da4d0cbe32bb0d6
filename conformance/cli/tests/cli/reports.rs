//! Recordings and reports: all formats of one run, and equal verdicts offline.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;
use testkit::RunningProgram;

use crate::{
    cases::check_cases,
    support::{program, read, run, serve, text},
};

const FORMATS: [(&str, &str); 6] = [
    ("text", "checks reported"),
    ("json", "\"statements\""),
    ("junit", "<testsuites"),
    ("markdown", "## "),
    ("html", "<!DOCTYPE html>"),
    ("github", "::notice title="),
];

#[test]
fn one_run_is_reported_in_every_format_and_judged_again_identically() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let reports: Vec<_> =
        FORMATS.iter().map(|(format, _)| format!("--report={format}=first.{format}")).collect();
    let mut arguments = vec!["check", "--quick", "--record", "run.json", "--format", "json"];
    arguments.extend(reports.iter().map(String::as_str));
    let checked = run(here, &arguments);
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
    assert_eq!(text(&checked.stdout), read(here, "first.json"));

    for (format, part) in FORMATS {
        let judged = run(here, &["judge", "run.json", "--format", format]);
        assert_eq!(judged.status.code(), Some(0), "{}", text(&judged.stderr));
        let first = read(here, &format!("first.{format}"));
        assert!(text(&judged.stdout) == first, "{format} differs");
        assert!(first.contains(part), "{part} in {first}");
    }
    let left = fs::read_dir(here).unwrap().count();
    assert_eq!(left, FORMATS.len() + 1, "nothing half written stays behind");
}

#[test]
fn a_private_run_is_marked_and_has_the_same_verdicts() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let words = |output: &Output| {
        let report: Value = serde_json::from_slice(&output.stdout).expect("valid JSON");
        let statements = report["statements"].as_array().expect("an array").clone();
        let shown =
            statements.iter().map(|row| format!("{} {}", row["id"], row["verdict"])).collect::<Vec<_>>();
        (shown, report["private"].as_bool().expect("a flag"))
    };
    let open = words(&run(here, &["check", "--quick", "--format", "json"]));
    let hidden =
        words(&run(here, &["check", "--quick", "--privacy", "--record", "run.json", "--format", "json"]));
    assert_eq!(open.0, hidden.0);
    assert_eq!((open.1, hidden.1), (false, true));
    let judged = words(&run(here, &["judge", "run.json", "--format", "json"]));
    assert_eq!(judged, hidden);
}

#[test]
fn a_stale_baseline_entry_fails_the_run_and_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let entry = "{ reason = \"ticket 7\", fingerprint = \"00\", expires = 2999-01-01 }";
    let settings = format!("[check.baseline]\n\"account.served\" = {entry}\n");
    fs::write(directory.path().join("chargeproof.toml"), settings).unwrap();
    let output = run(directory.path(), &["check", "--only", "account.*"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("account.served holds now; remove its entry"));
}

#[test]
fn unreadable_and_unwritable_files_are_reported_before_the_first_request() {
    check_cases("reports");
}

#[test]
fn no_key_of_a_served_target_is_in_any_file() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let served = serve(here, &["--seed", "3"]);
    let output = program(here)
        .env("CHARGEPROOF_LIVE_KEY", served.value("live_key"))
        .env("CHARGEPROOF_TEST_KEY", served.value("test_key"))
        .args(["check", served.value("url"), "--quick", "--record", "run.json", "--report", "html=run.html"])
        .output()
        .expect("the program starts");
    let shown = [text(&output.stdout), text(&output.stderr), read(here, "run.json"), read(here, "run.html")];
    assert!(shown[0].contains("checks reported"), "{shown:?}");
    for key in ["live_key", "test_key"] {
        let tail = served.value(key).rsplit('_').next().expect("a last part");
        assert!(shown.iter().all(|text| !text.contains(tail) && !text.contains(&tail[..12])), "a key shows");
    }
}

#[test]
fn two_recordings_are_compared() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    run(here, &["check", "--quick", "--record", "a.json"]);
    let spoiled = read(here, "a.json").replace("\"application/json\"", "\"text/plain\"");
    fs::write(here.join("b.json"), spoiled).unwrap();
    let check = |arguments: &[&str], exit: i32, part: &str| {
        let compared = run(here, &[&["compare"], arguments].concat());
        assert_eq!(compared.status.code(), Some(exit), "{}", text(&compared.stderr));
        let shown = text(&compared.stdout) + &text(&compared.stderr);
        assert!(shown.contains(part), "{part} in {shown}");
        shown
    };
    check(&["a.json", "a.json"], 0, "0 statements and 0 open choices differ");
    let shown = check(&["a.json", "b.json"], 1, "left open: Media type of a 404");
    assert!(shown.contains("  A  pass") && shown.contains("  B  fail"), "{shown}");
    let shown: Value =
        serde_json::from_str(&check(&["a.json", "b.json", "--format", "json"], 1, "")).unwrap();
    assert_eq!(shown["statements"][0]["verdicts"][1]["verdict"], "fail", "{shown}");
    // Only one of these runs judges the burst.
    run(here, &["check", "--record", "full.json"]);
    let shown = check(&["a.json", "full.json"], 0, "judged in B only: limits.every_path, limits.json");
    assert!(shown.contains("choices seen in B only: ") && shown.contains("\n0 statements and "), "{shown}");
    let stop = "\"stop\":{\"stopped_by\":\"unreachable\",\"why\":\"refused\"}";
    fs::write(here.join("c.json"), read(here, "a.json").replace("\"stop\":null", stop)).unwrap();
    check(&["a.json", "c.json"], 4, "not compared; exit 4");
    check(&["a.json", "none.json"], 2, "`none.json` can't be read");
    check(&["a.json", "http://127.0.0.1:1"], 2, "CHARGEPROOF_LIVE_KEY");
}

#[test]
fn a_server_compared_with_itself_does_not_differ() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let served = serve(here, &["--demo", "--rate-limit", "off"]);
    let output = program(here)
        .env("CHARGEPROOF_LIVE_KEY", served.value("live_key"))
        .env("CHARGEPROOF_TEST_KEY", served.value("test_key"))
        .args(["compare", served.value("url"), served.value("url"), "--quick"])
        .output()
        .expect("the program starts");
    let shown = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    for part in ["A  http://127", "B  http://127", "0 statements and 0 open choices differ"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}

/// Runs the command of a CI job by a shell.
fn run_job(here: &Path, command: &str, served: &RunningProgram) -> Output {
    let bin = Path::new(env!("CARGO_BIN_EXE_chargeproof")).parent().expect("a directory");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", command]).current_dir(here).env("PATH", path).env("NO_COLOR", "1");
    shell.env("CHARGEPROOF_TARGET", served.value("url"));
    shell.env("CHARGEPROOF_LIVE_KEY", served.value("live_key"));
    shell.env("CHARGEPROOF_TEST_KEY", served.value("test_key"));
    shell.output().expect("there is a shell")
}

#[test]
fn the_ci_job_passes_on_a_new_server_and_the_demo_has_no_gaps() {
    for (host, file) in
        [("github", ".github/workflows/chargeproof.yml"), ("gitlab", ".gitlab/chargeproof.yml")]
    {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        let written = run(here, &["check", "--init", host]);
        let left_out = "second, other, revoked, inserts, webhooks";
        assert!(text(&written.stdout).contains(&format!("left out: {left_out}")), "{written:?}");
        let job = read(here, file);
        assert!(["KEYS", "WITHOUT", "COMMAND", "VERSION"].iter().all(|word| !job.contains(word)), "{job}");
        assert!(job.contains("install") && job.contains("\"$CHARGEPROOF_WHEEL\""), "{job}");
        assert!(!job.contains("install chargeproof"), "by a name that anybody may register: {job}");
        let line = job.lines().find_map(|line| line.find("chargeproof check \"").map(|at| &line[at..]));
        let command = line.expect("a command");
        let fresh = run_job(here, command, &serve(here, &[]));
        assert_eq!(fresh.status.code(), Some(0), "{}", text(&fresh.stdout));
        let strict = command.replace(" --accept incomplete", "").replace(" --format github", "");
        let demo = run_job(here, &strict, &serve(here, &["--demo"]));
        assert_eq!(demo.status.code(), Some(0), "{}", text(&demo.stdout));
        assert!(
            text(&demo.stdout).contains("--without revoked, second, other, inserts, webhooks"),
            "{demo:?}"
        );
        assert_eq!(run(here, &["check", "--init", host]).status.code(), Some(2), "it overwrites nothing");
    }
}
