//! The settings of `check` from `chargeproof.toml`, from files and from the environment.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Output};

use serde_json::Value;
use testkit::RunningProgram;

use crate::{
    cases::check_cases,
    support::{output_of, program, run, serve},
};

#[test]
fn a_commented_configuration_is_written_once() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    let first = run(dir, &["check", "--init"]);
    assert_eq!(first.status.code(), Some(0), "{}", output_of(&first));
    let written = fs::read_to_string(dir.join("chargeproof.toml")).unwrap();
    assert!(written.contains("#target = "), "{written}");
    let second = run(dir, &["check", "--init"]);
    assert_eq!(second.status.code(), Some(2));
    assert!(
        output_of(&second).contains("already exists; not overwritten. Name another file"),
        "{}",
        output_of(&second)
    );
    assert_eq!(fs::read_to_string(dir.join("chargeproof.toml")).unwrap(), written);
    assert_eq!(run(dir, &["check", "--init", "other.toml"]).status.code(), Some(0));
    assert_eq!(fs::read_to_string(dir.join("other.toml")).unwrap(), written);
    // The written file is valid.
    assert_eq!(run(dir, &["check", "--list"]).status.code(), Some(0));
}

/// Starts a server, and names it and its keys in the configuration file of a directory. Returns the server and its URL.
fn serve_configured(dir: &Path) -> (RunningProgram, String) {
    let server = serve(dir, &["--seed", "5"]);
    let url = server.value("url").to_owned();
    for name in ["live", "test"] {
        let path = dir.join(format!("{name}.key"));
        fs::write(&path, format!("{}\n", server.value(&format!("{name}_key")))).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let settings = format!(
        "[check]\ntarget = \"{url}\"\nlive_key_file = \"live.key\"\ntest_key_file = \"test.key\"\n\
         only = [\"account.*\"]\n"
    );
    fs::write(dir.join("chargeproof.toml"), settings).unwrap();
    (server, url)
}

fn parse_report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("the report is JSON")
}

#[test]
fn the_target_and_its_keys_can_be_read_from_files() {
    let directory = tempfile::tempdir().unwrap();
    let (_server, url) = serve_configured(directory.path());
    let judged = run(directory.path(), &["check", "--format", "json"]);
    assert_eq!(judged.status.code(), Some(0), "{}", output_of(&judged));
    assert_eq!(parse_report(&judged)["base"], format!("{url}/"));
    assert_eq!(String::from_utf8_lossy(&judged.stderr), "", "only the owner can read the files");
}

#[test]
fn options_override_the_configuration_and_the_environment_overrides_key_files() {
    let directory = tempfile::tempdir().unwrap();
    let (_server, url) = serve_configured(directory.path());
    let with_option = run(directory.path(), &["check", "--format", "json", "--only", "answers.*"]);
    let report = parse_report(&with_option);
    assert!(
        report["statements"].as_array().unwrap().iter().all(|row| row["id"] != "account.mode"),
        "{report}"
    );

    // Without --built-in, the target of the report is `url`.
    let built_in = run(directory.path(), &["check", "--built-in", "--format", "json"]);
    assert_ne!(parse_report(&built_in)["base"], format!("{url}/"));

    let with_invalid_key = program(directory.path())
        .env("CHARGEPROOF_LIVE_KEY", "svc_live_0123456789abcdef0123456789abcdef01234567")
        .args(["check"])
        .output()
        .unwrap();
    assert_eq!(with_invalid_key.status.code(), Some(2));
    assert!(
        output_of(&with_invalid_key).contains("the live key is refused with 401"),
        "{}",
        output_of(&with_invalid_key)
    );
}

#[test]
fn a_key_file_that_other_users_can_read_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let _server = serve_configured(directory.path());
    fs::set_permissions(directory.path().join("live.key"), fs::Permissions::from_mode(0o644)).unwrap();
    let judged = run(directory.path(), &["check"]);
    assert_eq!(judged.status.code(), Some(0));
    assert!(
        output_of(&judged)
            .contains("`live.key` contains a key and is readable by other users; run: chmod 600 live.key")
    );
}

#[test]
fn invalid_settings_are_reported_before_the_first_request() {
    check_cases("settings");
}
