//! The settings of `check` from `chargeproof.toml`, from files and from the environment.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::Value;

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

#[test]
fn the_target_and_its_keys_can_be_read_from_files() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    let server = serve(dir, &["--seed", "5"]);
    let url = server.value("url");
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
    let judged = run(dir, &["check", "--format", "json"]);
    assert_eq!(judged.status.code(), Some(0), "{}", output_of(&judged));
    let report: Value = serde_json::from_slice(&judged.stdout).expect("the report is JSON");
    assert_eq!(report["base"], format!("{url}/"));
    assert_eq!(String::from_utf8_lossy(&judged.stderr), "", "only the owner can read the files");

    // Options override the file, and the environment overrides the key files.
    let with_option = run(dir, &["check", "--format", "json", "--only", "answers.*"]);
    let report: Value = serde_json::from_slice(&with_option.stdout).expect("the report is JSON");
    assert!(
        report["statements"].as_array().unwrap().iter().all(|row| row["id"] != "account.mode"),
        "{report}"
    );
    let with_invalid_key = program(dir)
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

    fs::set_permissions(dir.join("live.key"), fs::Permissions::from_mode(0o644)).unwrap();
    let with_readable_file = run(dir, &["check"]);
    assert_eq!(with_readable_file.status.code(), Some(0));
    assert!(
        output_of(&with_readable_file)
            .contains("`live.key` contains a key and is readable by other users; run: chmod 600 live.key")
    );

    let built_in = run(dir, &["check", "--built-in", "--format", "json"]);
    let report: Value = serde_json::from_slice(&built_in.stdout).expect("the report is JSON");
    assert_ne!(report["base"], format!("{url}/"));
}

#[test]
fn invalid_settings_are_reported_before_the_first_request() {
    check_cases("settings");
}
