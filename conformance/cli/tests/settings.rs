//! What a check takes from `chargeproof.toml`, from files and from the environment.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use serde_json::Value;

fn program(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chargeproof"));
    for (name, _) in env::vars().filter(|(name, _)| name.starts_with("CHARGEPROOF_")) {
        command.env_remove(name);
    }
    command.env("NO_COLOR", "1").current_dir(directory);
    command
}

fn run(directory: &Path, arguments: &[&str]) -> Output {
    program(directory).args(arguments).output().expect("the program starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_commented_configuration_is_written_once() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let first = run(here, &["check", "--init"]);
    assert_eq!(first.status.code(), Some(0), "{}", said(&first));
    let written = fs::read_to_string(here.join("chargeproof.toml")).unwrap();
    assert!(written.contains("#target = "), "{written}");
    let second = run(here, &["check", "--init"]);
    assert_eq!(second.status.code(), Some(2));
    assert!(
        said(&second).contains("is there already and stays as it is; name another file"),
        "{}",
        said(&second)
    );
    assert_eq!(fs::read_to_string(here.join("chargeproof.toml")).unwrap(), written);
    assert_eq!(run(here, &["check", "--init", "other.toml"]).status.code(), Some(0));
    assert_eq!(fs::read_to_string(here.join("other.toml")).unwrap(), written);
    // It is read, and changes nothing.
    assert_eq!(run(here, &["check", "--list"]).status.code(), Some(0));
}

/// A served reference, stopped when it is dropped.
struct Served {
    child: Child,
    ready: Value,
}

impl Served {
    fn start(directory: &Path) -> Served {
        let mut child = program(directory)
            .args(["serve", "--format", "json", "--listen", "127.0.0.1:0", "--seed", "5"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("it says so");
        Served { child, ready: serde_json::from_str(&line).expect("one line of JSON") }
    }

    fn word(&self, name: &str) -> &str {
        self.ready[name].as_str().expect("a text")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_target_and_its_keys_may_stand_in_files() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let served = Served::start(here);
    let url = served.word("url");
    for name in ["live", "test"] {
        let path = here.join(format!("{name}.key"));
        fs::write(&path, format!("{}\n", served.word(&format!("{name}_key")))).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let settings = format!(
        "[check]\ntarget = \"{url}\"\nlive_key_file = \"live.key\"\ntest_key_file = \"test.key\"\n\
         only = [\"account.*\"]\n"
    );
    fs::write(here.join("chargeproof.toml"), settings).unwrap();
    let judged = run(here, &["check", "--format", "json"]);
    assert_eq!(judged.status.code(), Some(0), "{}", said(&judged));
    let report: Value = serde_json::from_slice(&judged.stdout).expect("JSON");
    assert_eq!(report["base"], format!("{url}/"));
    assert_eq!(String::from_utf8_lossy(&judged.stderr), "", "nobody else can read the files");

    // The command line goes before the file, and the environment before the key files.
    let other = run(here, &["check", "--format", "json", "--only", "answers.*"]);
    let report: Value = serde_json::from_slice(&other.stdout).expect("JSON");
    assert!(report["statements"].as_array().unwrap().iter().all(|it| it["id"] != "account.mode"), "{report}");
    let wrong = program(here)
        .env("CHARGEPROOF_LIVE_KEY", "svc_live_0123456789abcdef0123456789abcdef01234567")
        .args(["check"])
        .output()
        .unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(said(&wrong).contains("the live key is refused with 401"), "{}", said(&wrong));

    fs::set_permissions(here.join("live.key"), fs::Permissions::from_mode(0o644)).unwrap();
    let seen = run(here, &["check"]);
    assert_eq!(seen.status.code(), Some(0));
    assert!(said(&seen).contains("`live.key` holds a key, and others can read it; chmod 600 live.key"));

    let built_in = run(here, &["check", "--built-in", "--format", "json"]);
    let report: Value = serde_json::from_slice(&built_in.stdout).expect("JSON");
    assert_ne!(report["base"], format!("{url}/"));
}

#[track_caller]
fn check_refused(settings: &str, arguments: &[&str], part: &str) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("chargeproof.toml"), settings).unwrap();
    fs::write(directory.path().join("two.key"), "a\nb\n").unwrap();
    let output = run(directory.path(), &[&["check"], arguments].concat());
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains(part), "{part:?} in {}", said(&output));
}

#[test]
fn what_is_wrong_in_the_settings_is_told_before_anything_is_asked() {
    check_refused("[check]\ntarget = \"http://127.0.0.1:9\"", &[], "`check.live_key_file` names no file");
    check_refused("[check]\ntarget = \"shop\"", &[], "`shop` is not an address");
    let keys = "[check]\ntarget = \"http://127.0.0.1:9\"\nlive_key_file = ";
    check_refused(
        &format!("{keys}\"none.key\""),
        &[],
        "`none.key`, which `check.live_key_file` names, can't be read",
    );
    check_refused(&format!("{keys}\"two.key\""), &[], "does not hold one key and nothing else");
    check_refused(
        "[check]\nonly = [\"nothing.*\"]",
        &[],
        "no statement that is judged is called `nothing.*`",
    );
    check_refused("[check]\nwithout = [\"burst\"]", &["--built-in"], "`check.without` names `burst`");
    check_refused("[check]\ntime_limit = 999", &["--built-in"], "`check.time_limit` is `999`");
    check_refused("", &["--time-limit", "0"], "takes a whole number of seconds from 1 to 300");
    check_refused("", &["--built-in", "http://127.0.0.1:9"], "--built-in");
    check_refused("", &["--without", "burst"], "revoked, second, other, inserts");
}
