//! `chargeproof sweep` as a user meets it.

use std::{
    fs,
    path::Path,
    process::{Output, Stdio},
};

use crate::support::{self, json, program};

fn sweep(directory: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    program(directory)
        .arg("sweep")
        .args(arguments)
        .envs(environment.iter().copied())
        .output()
        .expect("the program runs")
}

/// Seed 3 is one of those that are played twice.
const ONE: [&str; 7] = ["--from", "3", "--seeds", "1", "--jobs", "1", "--format=json"];

#[test]
fn another_process_directory_and_environment_see_the_same_world() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut one = json(&sweep(here.path(), &ONE, &[("TZ", "UTC"), ("LANG", "C")]));
    let mut two =
        json(&sweep(there.path(), &ONE, &[("TZ", "Asia/Tokyo"), ("LANG", "tr_TR.UTF-8"), ("HOME", "/")]));
    for report in [&mut one, &mut two] {
        assert_eq!(report["result"], "held", "{report}");
        assert!(report["digests"]["3"].is_string(), "{report}");
        assert!(report["checks"].as_u64().is_some_and(|checks| checks > 1_000), "{report}");
        for figure in ["took_ms", "per_second"] {
            report.as_object_mut().unwrap().remove(figure);
        }
    }
    assert_eq!(one, two);
}

#[test]
fn a_world_is_drawn_on_one_page_that_loads_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let output = sweep(directory.path(), &["--from=1", "--seeds=1", "--jobs=1", "--html", "world.html"], &[]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("every invariant held") && text.contains("charge.paid"), "{text}");
    let page = fs::read_to_string(directory.path().join("world.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("charge.created") && page.contains("<title>2"), "{page}");
    for load in ["src=", "href=", "url(", "@import", "<script"] {
        assert!(!page.contains(load), "the page has {load}");
    }
}

#[test]
fn a_scenario_is_judged_by_the_laws() {
    let directory = tempfile::tempdir().unwrap();
    let scenario = "title: A charge is paid\nsteps:\n  - endpoint: shop\n  - open: { charge: c1, asset: BTC, amount: 49.90 EUR }\n  - pay: c1\n  - mine: { asset: BTC, blocks: 2 }\n";
    fs::write(directory.path().join("paid.yaml"), scenario).unwrap();
    let output = sweep(directory.path(), &["paid.yaml", "--format=json"], &[]);
    assert_eq!(output.status.code(), Some(0));
    let report = json(&output);
    assert_eq!(report["scenarios"][0]["breaches"], serde_json::json!([]));
    assert!(report["scenarios"][0]["checks"].as_u64().is_some_and(|checks| checks > 50), "{report}");
}

#[track_caller]
fn check_code(arguments: &[&str], code: i32, said: &str) {
    let directory = tempfile::tempdir().unwrap();
    let output = sweep(directory.path(), arguments, &[]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(text.contains(said), "{text}");
}

#[test]
fn wrong_usage_is_not_a_broken_law() {
    check_code(&["--for", "soon"], 2, "30s, 5m or 1h30m");
    check_code(&["--seeds", "0"], 2, "0");
    check_code(&["--seeds", "1", "--for", "1s"], 2, "cannot be used with");
    check_code(&["nowhere.yaml"], 2, "nowhere.yaml");
}

#[test]
fn a_result_with_nowhere_to_go_is_a_broken_machine() {
    check_code(&["--seeds=1", "--jobs=1", "--html", "no/such/place.html"], 5, "can't be written");
}

#[test]
fn an_interrupted_sweep_reports_and_saves_what_it_has_run() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = program(directory.path());
    command.args(["sweep", "--for", "5m", "--jobs", "1", "--html", "page.html", "--format", "json"]);
    let child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
    // It has begun once it has looked whether its files can be written, and is stopped in the midst of its work.
    support::until(|| {
        fs::read_to_string(format!("/proc/{}/status", child.id()))
            .is_ok_and(|it| !it.contains("SigCgt:\t0000000000000000") && it.contains("Threads:\t3"))
    });
    support::signal(&child, "INT");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    let report = json(&output);
    assert_eq!(report["result"], "interrupted", "{report}");
    assert!(directory.path().join("page.html").exists());
}
