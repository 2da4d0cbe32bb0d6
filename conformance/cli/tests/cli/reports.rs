//! Recordings and reports: every report format, `judge`, `compare`, and the CI jobs of
//! `check --init`.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;
use testkit::RunningProgram;

use crate::{
    cases::check_cases,
    support::{program, read, run, serve, text},
};

/// The report formats, each with a part of its output.
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
    let dir = directory.path();
    let reports: Vec<_> =
        FORMATS.iter().map(|(format, _)| format!("--report={format}=first.{format}")).collect();
    let mut arguments = vec!["check", "--quick", "--record", "run.json", "--format", "json"];
    arguments.extend(reports.iter().map(String::as_str));
    let checked = run(dir, &arguments);
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
    assert_eq!(text(&checked.stdout), read(dir, "first.json"));

    for (format, part) in FORMATS {
        let judged = run(dir, &["judge", "run.json", "--format", format]);
        assert_eq!(judged.status.code(), Some(0), "{}", text(&judged.stderr));
        let first = read(dir, &format!("first.{format}"));
        assert!(text(&judged.stdout) == first, "{format} differs");
        assert!(first.contains(part), "{part} in {first}");
    }
    let file_count = fs::read_dir(dir).unwrap().count();
    // The reports and the recording.
    assert_eq!(file_count, FORMATS.len() + 1, "no temporary file is left");
}

#[test]
fn a_private_run_is_marked_and_has_the_same_verdicts() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    let verdicts_and_privacy = |output: &Output| {
        let report: Value = serde_json::from_slice(&output.stdout).expect("the report is JSON");
        let statements = report["statements"].as_array().expect("`statements` is an array").clone();
        let verdicts =
            statements.iter().map(|row| format!("{} {}", row["id"], row["verdict"])).collect::<Vec<_>>();
        (verdicts, report["private"].as_bool().expect("`private` is a boolean"))
    };
    let public = verdicts_and_privacy(&run(dir, &["check", "--quick", "--format", "json"]));
    let private = verdicts_and_privacy(&run(
        dir,
        &["check", "--quick", "--privacy", "--record", "run.json", "--format", "json"],
    ));
    assert_eq!(public.0, private.0);
    assert_eq!((public.1, private.1), (false, true));
    let judged = verdicts_and_privacy(&run(dir, &["judge", "run.json", "--format", "json"]));
    assert_eq!(judged, private);
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
fn no_output_contains_a_key_of_the_target() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    let server = serve(dir, &["--seed", "3"]);
    let output = program(dir)
        .env("CHARGEPROOF_LIVE_KEY", server.value("live_key"))
        .env("CHARGEPROOF_TEST_KEY", server.value("test_key"))
        .args(["check", server.value("url"), "--quick", "--record", "run.json", "--report", "html=run.html"])
        .output()
        .expect("the program starts");
    let outputs = [text(&output.stdout), text(&output.stderr), read(dir, "run.json"), read(dir, "run.html")];
    assert!(outputs[0].contains("checks reported"), "{outputs:?}");
    for key in ["live_key", "test_key"] {
        let tail = server.value(key).rsplit('_').next().expect("a key has parts");
        assert!(
            outputs.iter().all(|text| !text.contains(tail) && !text.contains(&tail[..12])),
            "an output contains {key}"
        );
    }
}

#[test]
fn two_recordings_are_compared() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    run(dir, &["check", "--quick", "--record", "a.json"]);
    let changed = read(dir, "a.json").replace("\"application/json\"", "\"text/plain\"");
    fs::write(dir.join("b.json"), changed).unwrap();
    let check_compare = |arguments: &[&str], code: i32, part: &str| {
        let compared = run(dir, &[&["compare"], arguments].concat());
        assert_eq!(compared.status.code(), Some(code), "{}", text(&compared.stderr));
        let printed_text = text(&compared.stdout) + &text(&compared.stderr);
        assert!(printed_text.contains(part), "{part} in {printed_text}");
        printed_text
    };
    check_compare(&["a.json", "a.json"], 0, "0 statements and 0 open choices differ");
    let printed_text = check_compare(&["a.json", "b.json"], 1, "left open: Media type of a 404");
    assert!(printed_text.contains("  A  pass") && printed_text.contains("  B  fail"), "{printed_text}");
    let comparison: Value =
        serde_json::from_str(&check_compare(&["a.json", "b.json", "--format", "json"], 1, "")).unwrap();
    assert_eq!(comparison["statements"][0]["verdicts"][1]["verdict"], "fail", "{comparison}");
    // Only the second run has a burst.
    run(dir, &["check", "--record", "full.json"]);
    let printed_text =
        check_compare(&["a.json", "full.json"], 0, "judged in B only: limits.every_path, limits.json");
    assert!(
        printed_text.contains("choices seen in B only: ") && printed_text.contains("\n0 statements and "),
        "{printed_text}"
    );
    let stop = "\"stop\":{\"stopped_by\":\"unreachable\",\"why\":\"refused\"}";
    fs::write(dir.join("c.json"), read(dir, "a.json").replace("\"stop\":null", stop)).unwrap();
    check_compare(&["a.json", "c.json"], 4, "not compared; exit 4");
    check_compare(&["a.json", "none.json"], 2, "`none.json` can't be read");
    check_compare(&["a.json", "http://127.0.0.1:1"], 2, "CHARGEPROOF_LIVE_KEY");
}

#[test]
fn a_server_does_not_differ_from_itself() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    let server = serve(dir, &["--demo", "--rate-limit", "off"]);
    let output = program(dir)
        .env("CHARGEPROOF_LIVE_KEY", server.value("live_key"))
        .env("CHARGEPROOF_TEST_KEY", server.value("test_key"))
        .args(["compare", server.value("url"), server.value("url"), "--quick"])
        .output()
        .expect("the program starts");
    let printed_text = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{printed_text}");
    for part in ["A  http://127", "B  http://127", "0 statements and 0 open choices differ"] {
        assert!(printed_text.contains(part), "{part} in {printed_text}");
    }
}

/// Runs the command of a CI job in a shell, with the server as its target.
fn run_job(dir: &Path, command: &str, server: &RunningProgram) -> Output {
    let bin = Path::new(env!("CARGO_BIN_EXE_chargeproof")).parent().expect("the program is in a directory");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", command]).current_dir(dir).env("PATH", path).env("NO_COLOR", "1");
    shell.env("CHARGEPROOF_TARGET", server.value("url"));
    shell.env("CHARGEPROOF_LIVE_KEY", server.value("live_key"));
    shell.env("CHARGEPROOF_TEST_KEY", server.value("test_key"));
    shell.output().expect("the shell starts")
}

#[test]
fn the_ci_job_passes_on_a_new_server_and_is_complete_with_sample_data() {
    for (ci_system, file) in
        [("github", ".github/workflows/chargeproof.yml"), ("gitlab", ".gitlab/chargeproof.yml")]
    {
        let directory = tempfile::tempdir().unwrap();
        let dir = directory.path();
        let written = run(dir, &["check", "--init", ci_system]);
        let left_out = "second, other, revoked, inserts, webhooks";
        assert!(text(&written.stdout).contains(&format!("left out: {left_out}")), "{written:?}");
        let job = read(dir, file);
        assert!(["KEYS", "WITHOUT", "COMMAND", "VERSION"].iter().all(|word| !job.contains(word)), "{job}");
        assert!(job.contains("install") && job.contains("\"$CHARGEPROOF_WHEEL\""), "{job}");
        assert!(
            !job.contains("install chargeproof"),
            "the job must not install a package that others can publish: {job}"
        );
        let command =
            job.lines().find_map(|line| line.find("chargeproof check \"").map(|start| &line[start..]));
        let command = command.expect("the job has a check command");
        let on_new_server = run_job(dir, command, &serve(dir, &[]));
        assert_eq!(on_new_server.status.code(), Some(0), "{}", text(&on_new_server.stdout));
        let strict = command.replace(" --accept incomplete", "").replace(" --format github", "");
        let on_demo = run_job(dir, &strict, &serve(dir, &["--demo"]));
        assert_eq!(on_demo.status.code(), Some(0), "{}", text(&on_demo.stdout));
        assert!(
            text(&on_demo.stdout).contains("--without revoked, second, other, inserts, webhooks"),
            "{on_demo:?}"
        );
        assert_eq!(
            run(dir, &["check", "--init", ci_system]).status.code(),
            Some(2),
            "the job is not overwritten"
        );
    }
}
