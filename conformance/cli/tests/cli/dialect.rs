//! A configuration file with another dialect: all commands use its prefixes and user agent.

use std::{fs, path::Path, process::Output};

use serde_json::{Value, json};

use testkit::RunningProgram;

use crate::support::{output_of, program, serve, start};

const CONFIG: &str = r#"
[dialect]
key_prefix = "acme"
header_prefix = "X-Acme"
user_agent = "Acme-Webhooks/1.0"
"#;
/// The name of the environment variable with the secret.
const SECRET_VARIABLE: &str = "SHOP_SECRET";

/// Creates a directory with the configuration file and one without it.
fn directories() -> (tempfile::TempDir, tempfile::TempDir) {
    let (with_config, without_config) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(with_config.path().join("chargeproof.toml"), CONFIG).unwrap();
    (with_config, without_config)
}

/// Adds an endpoint and returns its id and secret, which depend on the seed only.
fn add_endpoint(server: &RunningProgram) -> (String, String) {
    let response = server.post(
        "/sandbox/endpoints",
        None,
        &json!({ "mode": "live", "url": "https://shop.example/hooks" }),
    );
    let field =
        |name: &str| response["endpoint"][name].as_str().unwrap_or_else(|| panic!("{response}")).to_owned();
    (field("id"), field("secret"))
}

#[test]
fn deliveries_and_the_receiver_use_the_configured_names() {
    let (with_config, without_config) = directories();
    // The receiver needs the secret before the server has its address. The seed determines the secret, so
    // a first server with the same seed provides it.
    let secret = {
        let server = serve(
            with_config.path(),
            &["--seed", "7", "--forward", "https://shop.example=http://127.0.0.1:9"],
        );
        add_endpoint(&server).1
    };
    let mut command = program(with_config.path());
    command.env(SECRET_VARIABLE, &secret);
    let record = without_config.path().join("received.jsonl");
    let listen = [
        "receiver",
        "listen",
        "--port",
        "0",
        "--secret-env",
        SECRET_VARIABLE,
        "--format",
        "json",
        "--record",
    ];
    command.args(listen).arg(&record);
    let mut receiver = start(command);

    let forward = format!("https://shop.example=http://{}", receiver.value("address"));
    let server = serve(with_config.path(), &["--seed", "7", "--forward", &forward]);
    let (id, second_secret) = add_endpoint(&server);
    assert_eq!(second_secret, secret, "the seed determines the secret");
    server.call("POST", &format!("/sandbox/endpoints/{id}/test"), None, "");
    let line = receiver.read_json_line();
    assert_eq!((&line["verdict"], &line["event"]), (&"verified".into(), &"charge.paid".into()), "{line}");
    // There is no note about headers or the user agent, only the one that this is a test delivery.
    let notes: Vec<&Value> =
        line["notes"].as_array().expect("notes are an array").iter().map(|note| &note["name"]).collect();
    assert_eq!(notes, ["test_delivery"], "{line}");
    assert_eq!(receiver.stop(), Some(0));

    let judge = |directory: &Path| -> Output {
        let mut command = program(directory);
        command
            .env(SECRET_VARIABLE, &secret)
            .args(["receiver", "judge", "--secret-env", SECRET_VARIABLE])
            .arg(&record);
        command.output().expect("the program starts")
    };
    let with_config_output = judge(with_config.path());
    assert_eq!(
        with_config_output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&with_config_output.stdout)
    );
    // Without the file the signature is not found, because its header has another name.
    assert_eq!(judge(without_config.path()).status.code(), Some(1));
}

#[test]
fn keys_the_openapi_document_and_check_use_the_configured_names() {
    let (with_config, without_config) = directories();
    let server = serve(with_config.path(), &["--seed", "7", "--clock", "wall"]);
    let [live, test] = ["live_key", "test_key"].map(|name| server.value(name).to_owned());
    assert!(live.starts_with("acme_live_") && test.starts_with("acme_test_"), "{}", server.first_line_json);
    let document = server.call("GET", "/openapi.json", None, "").body;
    for (configured, default) in
        [("X-Acme-Signature", "X-Service"), ("acme_test_", "svc_"), ("Acme-Webhooks/1.0", "Service-Webhooks")]
    {
        assert!(
            document.contains(configured) && !document.contains(default),
            "{configured} instead of {default}"
        );
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
    let with_config_output = check(with_config.path());
    // The run is incomplete, without violations.
    assert_eq!(with_config_output.status.code(), Some(3), "{}", output_of(&with_config_output));
    let without_config_output = check(without_config.path());
    assert_eq!(without_config_output.status.code(), Some(2), "{}", output_of(&without_config_output));
    assert!(
        output_of(&without_config_output).contains("set `key_prefix` in [dialect] of chargeproof.toml"),
        "{}",
        output_of(&without_config_output)
    );
}
