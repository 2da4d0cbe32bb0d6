//! End-to-end tests of `chargeproof sweep`.

use std::{
    fs,
    path::Path,
    process::{Output, Stdio},
};

use testkit::{assert_eventually, signal};

use crate::{
    cases::check_cases,
    support::{self, json, program},
};

fn sweep(directory: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    program(directory)
        .arg("sweep")
        .args(arguments)
        .envs(environment.iter().copied())
        .output()
        .expect("the program starts")
}

/// Arguments for one simulation. The simulation of seed 3 is one of those that are run twice.
const ONE_SEED: [&str; 5] = ["--seed", "3", "--jobs", "1", "--format=json"];

#[test]
fn the_process_directory_and_environment_do_not_affect_a_world() {
    let (first_directory, second_directory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut first = json(&sweep(first_directory.path(), &ONE_SEED, &[("TZ", "UTC"), ("LANG", "C")]));
    let mut second = json(&sweep(
        second_directory.path(),
        &ONE_SEED,
        &[("TZ", "Asia/Tokyo"), ("LANG", "tr_TR.UTF-8"), ("HOME", "/")],
    ));
    for report in [&mut first, &mut second] {
        assert_eq!((&report["format"], &report["result"]), (&1.into(), &"pass".into()), "{report}");
        assert!(report["digests"]["3"].is_string(), "{report}");
        assert!(report["checks"].as_u64().is_some_and(|checks| checks > 1_000), "{report}");
        for field in ["took_ms", "per_second"] {
            report.as_object_mut().unwrap().remove(field);
        }
    }
    assert_eq!(first, second);
}

#[test]
fn a_world_is_rendered_as_one_page_without_external_resources() {
    let directory = tempfile::tempdir().unwrap();
    let output = sweep(directory.path(), &["--seed=1", "--jobs=1", "--html", "world.html"], &[]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.starts_with("pass  every invariant held in the simulation of seed 1\n"), "{text}");
    assert!(text.contains("--coverage shows the table") && !text.contains("charge.paid"), "{text}");
    let page = fs::read_to_string(directory.path().join("world.html")).unwrap();
    assert!(page.contains("charge.created") && page.contains("<time datetime=\"2"), "{page}");
    assert!(
        page.contains("default-src 'none'; style-src 'sha256-")
            || page.contains("default-src &#39;none&#39;")
    );
    for forbidden in ["src=", "href=", "url(", "@import", "<svg", "<img", "<link", "style=", "onclick"] {
        assert!(!page.contains(forbidden), "the page contains {forbidden}");
    }
}

/// The width of the row labels of the coverage table.
const LABEL_WIDTH: usize = 37;

#[test]
fn the_coverage_table_is_printed_on_request() {
    let directory = tempfile::tempdir().unwrap();
    let output = sweep(directory.path(), &["--night", "x", "--seeds=1", "--jobs=1", "--coverage"], &[]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let row =
        text.lines().find(|line| line.starts_with("charge.created ")).unwrap_or_else(|| panic!("{text}"));
    assert!(row[LABEL_WIDTH..].split_whitespace().all(|cell| matches!(cell, "0" | "·")), "{row}");
    assert!(text.lines().filter(|line| line.starts_with("charge.")).all(|line| line.chars().count() <= 100));
}

const PAID: &str = "title: A charge is paid\nsteps:\n  - endpoint: shop\n  - open: { charge: c1, asset: BTC, amount: 49.90 EUR }\n  - pay: c1\n  - mine: { asset: BTC, blocks: 2 }\n";

#[test]
fn a_demo_fault_is_found_shrunk_and_reproduced() {
    let directory = tempfile::tempdir().unwrap();
    let fault = ["--demo-fault", "one-confirmation-more"];
    let output = sweep(directory.path(), &[&["--seed=0", "--jobs=1"][..], &fault].concat(), &[]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.starts_with("fail  ") && text.contains("wrong on purpose"), "{text}");
    let repeat_command =
        text.lines().find_map(|line| line.trim().strip_prefix("again: chargeproof ")).expect(&text);
    let repeat_command: Vec<&str> = repeat_command.split(' ').collect();
    let code = |arguments: &[&str]| support::run(directory.path(), arguments).status.code();
    assert_eq!(code(&repeat_command), Some(1), "{repeat_command:?}");
    let with_html = [&repeat_command[..], &["--html", "again.html"]].concat();
    assert_eq!(code(&with_html), Some(1));
    let page = fs::read_to_string(directory.path().join("again.html")).unwrap();
    assert!(page.contains("class=\"breach\"") && page.contains("class=\"here\""), "{page}");
    // Without the fault the scenario passes.
    assert_eq!(code(&repeat_command[..2]), Some(0), "{repeat_command:?}");

    fs::write(directory.path().join("paid.yaml"), PAID).unwrap();
    assert_eq!(code(&["play", "paid.yaml", "--bless"]), Some(0));
    let played = support::run(
        directory.path(),
        &[&["play", "paid.yaml", "--html", "paid.html", "--format=json"][..], &fault].concat(),
    );
    assert_eq!(played.status.code(), Some(1));
    let report = json(&played);
    assert_eq!(
        (&report["format"], &report["scenarios"][0]["result"]),
        (&1.into(), &"fail".into()),
        "{report}"
    );
    let page = fs::read_to_string(directory.path().join("paid.html")).unwrap();
    assert!(page.contains("class=\"breach\""), "{page}");
}

#[test]
fn a_sweep_stops_at_the_first_failure_and_renders_it_shrunk() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["--seeds=400", "--jobs=2", "--first", "--html=first.html", "--demo-fault=retry-renamed"];
    let output = sweep(directory.path(), &arguments, &[]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert_eq!(text.matches("\nfail  ").count(), 1, "{text}");
    let saved_count = fs::read_dir(directory.path().join("sweep-failures")).unwrap().count();
    let page = fs::read_to_string(directory.path().join("first.html")).unwrap();
    assert!(saved_count == 1 && page.contains("<title>fail: Invariant "), "{saved_count} files, {page}");
}

#[test]
fn the_guides_quote_the_current_output() {
    let directory = tempfile::tempdir().unwrap();
    let check_quoted = |arguments: &[&str], first_line_part: &str, guides: &[&str]| {
        let output = support::run(directory.path(), arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let quoted = text.lines().skip_while(|line| !line.contains(first_line_part));
        for line in quoted.take_while(|line| !line.is_empty() && !line.starts_with("digest")) {
            let missing = guides.iter().position(|guide| !guide.contains(line.trim()));
            assert_eq!(missing, None, "a guide does not contain: {line}\n{text}");
        }
    };
    let simulator = include_str!("../../../../simulator/README.md");
    let fault = "--demo-fault=retry-renamed";
    check_quoted(&["sweep", "--seed=0", fault], "fail  invariant", &[simulator]);
    let saved = "sweep-failures/invariant-2-seed-0.yaml";
    check_quoted(&["play", saved, "--transcript", fault], "  event ", &[simulator]);
    let is_quotation = |line: &&str| line.contains("fail  invariant") || line.contains(" attempts: ");
    let readme = include_str!("../../../../README.md");
    for line in readme.lines().filter(is_quotation) {
        assert!(simulator.contains(line), "README.md and simulator/README.md differ in: {line}");
    }
}

#[test]
fn a_scenario_is_checked_for_the_invariants() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("paid.yaml"), PAID).unwrap();
    let output = sweep(directory.path(), &["paid.yaml", "--format=json"], &[]);
    assert_eq!(output.status.code(), Some(0));
    let report = json(&output);
    assert_eq!(report["scenarios"][0]["breaches"], serde_json::json!([]));
    assert!(report["scenarios"][0]["checks"].as_u64().is_some_and(|checks| checks > 50), "{report}");
}

#[test]
fn wrong_usage_is_not_a_violated_invariant() {
    check_cases("sweep");
}

#[test]
fn an_unwritable_result_is_a_failure_of_the_machine() {
    check_cases("sweep_output");
}

#[test]
fn an_interrupted_sweep_reports_its_results_and_writes_the_page() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = program(directory.path());
    command.args(["sweep", "--for", "5m", "--jobs", "1", "--html", "page.html", "--format", "json"]);
    let child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
    // The sweep is running when it catches signals and has three threads: the main one, one for signals,
    // and one for simulations.
    assert_eventually(|| {
        fs::read_to_string(format!("/proc/{}/status", child.id()))
            .is_ok_and(|text| !text.contains("SigCgt:\t0000000000000000") && text.contains("Threads:\t3"))
    });
    signal(child.id(), "INT").unwrap();
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(130));
    let report = json(&output);
    assert_eq!(report["result"], "interrupted", "{report}");
    assert!(directory.path().join("page.html").exists());
}

#[test]
fn a_scope_is_exhausted_and_a_fault_is_saved_as_a_scenario() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["--exhaust", "endpoint", "--depth", "1", "--format=json"];
    let report = json(&sweep(directory.path(), &arguments, &[]));
    assert_eq!((&report["format"], &report["result"]), (&1.into(), &"pass".into()), "{report}");
    let scope = &report["scopes"][0];
    assert!(scope["depth"] == 1 && scope["states"].as_u64() > Some(5), "{report}");

    let fault = ["--demo-fault", "retry-renamed"];
    let output =
        sweep(directory.path(), &[&["--exhaust", "endpoint", "--depth", "2"][..], &fault].concat(), &[]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    let repeat_command =
        text.lines().find_map(|line| line.trim().strip_prefix("again: chargeproof ")).expect(&text);
    let repeat_command: Vec<&str> = repeat_command.split(' ').collect();
    let code = |arguments: &[&str]| support::run(directory.path(), arguments).status.code();
    assert_eq!((code(&repeat_command), code(&repeat_command[..2])), (Some(1), Some(0)), "{text}");
}

#[test]
fn results_are_merged_as_they_arrive() {
    let directory = tempfile::tempdir().unwrap();
    let shards = directory.path().join("shards");
    fs::create_dir(&shards).unwrap();
    let run_shard = |shard: &str, out: &str| {
        let arguments = ["--from", "9", "--seeds", "2", "--jobs", "1", "--shard", shard, "--out", out];
        assert_eq!(sweep(directory.path(), &arguments, &[]).status.code(), Some(0));
    };
    let merge = |duration: &str| {
        let arguments = ["merge", "--watch", "shards", "--for", duration, "--format=json"];
        sweep(directory.path(), &arguments, &[])
    };
    assert_eq!(merge("1ms").status.code(), Some(3), "no result has arrived");
    run_shard("1/2", "shards/1.json");
    let incomplete = merge("1ms");
    assert_eq!((incomplete.status.code(), &json(&incomplete)["missing"]), (Some(3), &serde_json::json!([2])));
    let complete = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| merge("5m"));
        // Renamed when complete, so that no partial file is read.
        run_shard("2/2", "2.json");
        fs::rename(directory.path().join("2.json"), shards.join("2.json")).unwrap();
        watcher.join().expect("the merge ends")
    });
    assert_eq!((complete.status.code(), &json(&complete)["result"]), (Some(0), &"pass".into()));
}
