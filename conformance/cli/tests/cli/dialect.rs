//! A configuration file with another dialect: all commands use its names.

use std::{fs, path::Path, process::Output};

use serde_json::{Value, json};

use testkit::RunningProgram;

use crate::support::{printed, program, serve, start};

const CONFIG: &str = r#"
[dialect]
key_prefix = "acme"
header_prefix = "X-Acme"
user_agent = "Acme-Webhooks/1.0"
"#;
const SECRET: &str = "SHOP_SECRET";

/// Creates a directory with the file and one without it.
fn directories() -> (tempfile::TempDir, tempfile::TempDir) {
    let (renamed, usual) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(renamed.path().join("chargeproof.toml"), CONFIG).unwrap();
    (renamed, usual)
}

/// Adds an endpoint; its id and secret depend on the seed only.
fn add_endpoint(server: &RunningProgram) -> (String, String) {
    let answer = server.post(
        "/sandbox/endpoints",
        None,
        &json!({ "mode": "live", "url": "https://shop.example/hooks" }),
    );
    let word =
        |name: &str| answer["endpoint"][name].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    (word("id"), word("secret"))
}

#[test]
fn deliveries_carry_the_new_names_and_the_receiver_knows_them() {
    let (renamed, usual) = directories();
    let secret = {
        let server =
            serve(renamed.path(), &["--seed", "7", "--forward", "https://shop.example=http://127.0.0.1:9"]);
        add_endpoint(&server).1
    };
    let mut command = program(renamed.path());
    command.env(SECRET, &secret);
    let record = usual.path().join("received.jsonl");
    let listen =
        ["receiver", "listen", "--port", "0", "--secret-env", SECRET, "--format", "json", "--record"];
    command.args(listen).arg(&record);
    let mut receiver = start(command);

    let forward = format!("https://shop.example=http://{}", receiver.value("address"));
    let server = serve(renamed.path(), &["--seed", "7", "--forward", &forward]);
    let (id, again) = add_endpoint(&server);
    assert_eq!(again, secret, "one seed, one secret");
    server.call("POST", &format!("/sandbox/endpoints/{id}/test"), None, "");
    let line = receiver.line();
    assert_eq!((&line["verdict"], &line["event"]), (&"verified".into(), &"charge.paid".into()), "{line}");
    // Headers and user agent are as expected: the only notes are about deliberate errors.
    let notes: Vec<&Value> =
        line["notes"].as_array().expect("an array").iter().map(|note| &note["name"]).collect();
    assert_eq!(notes, ["test_delivery"], "{line}");
    assert_eq!(receiver.stop(), Some(0));

    let judge = |directory: &Path| -> Output {
        let mut command = program(directory);
        command.env(SECRET, &secret).args(["receiver", "judge", "--secret-env", SECRET]).arg(&record);
        command.output().expect("the program starts")
    };
    let good = judge(renamed.path());
    assert_eq!(good.status.code(), Some(0), "{}", String::from_utf8_lossy(&good.stdout));
    // Without the file the signature is not found, because its header has another name.
    assert_eq!(judge(usual.path()).status.code(), Some(1));
}

#[test]
fn keys_and_the_document_carry_the_new_names_and_the_suite_knows_them() {
    let (renamed, usual) = directories();
    let server = serve(renamed.path(), &["--seed", "7", "--clock", "wall"]);
    let [live, test] = ["live_key", "test_key"].map(|name| server.value(name).to_owned());
    assert!(live.starts_with("acme_live_") && test.starts_with("acme_test_"), "{}", server.ready);
    let document = server.call("GET", "/openapi.json", None, "").body;
    for (new, old) in
        [("X-Acme-Signature", "X-Service"), ("acme_test_", "svc_"), ("Acme-Webhooks/1.0", "Service-Webhooks")]
    {
        assert!(document.contains(new) && !document.contains(old), "{new} in place of {old}");
    }

    let check = |directory: &Path| -> Output {
        let mut command = program(directory);
        command.env("CHARGEPROOF_LIVE_KEY", &live).env("CHARGEPROOF_TEST_KEY", &test).args([
            "check",
            server.value("url"),
            "--quick",
            "--without",
            "revoked,second",
        ]);
        command.output().expect("the program starts")
    };
    let good = check(renamed.path());
    // The run is incomplete, without violations.
    assert_eq!(good.status.code(), Some(3), "{}", printed(&good));
    let bad = check(usual.path());
    assert_eq!(bad.status.code(), Some(2), "{}", printed(&bad));
    assert!(printed(&bad).contains("set `key_prefix` in [dialect] of chargeproof.toml"), "{}", printed(&bad));
}
