//! One file renames the service, and every command goes by the new names: a world is served, judged and received.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use serde_json::Value;

const CONFIG: &str = r#"
[dialect]
key_prefix = "acme"
header_prefix = "X-Acme"
user_agent = "Acme-Webhooks/1.0"
"#;
const SECRET: &str = "SHOP_SECRET";

fn program(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chargeproof"));
    // Whatever the tester's own environment says must not decide.
    for (name, _) in env::vars().filter(|(name, _)| name.starts_with("CHARGEPROOF_")) {
        command.env_remove(name);
    }
    command.current_dir(directory).env("NO_COLOR", "1").stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A directory with the file, and another without it.
fn directories() -> (tempfile::TempDir, tempfile::TempDir) {
    let (renamed, usual) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(renamed.path().join("chargeproof.toml"), CONFIG).unwrap();
    (renamed, usual)
}

/// A command that goes on until it is told to stop.
struct Running {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
    ready: Value,
}

impl Running {
    fn start(mut command: Command) -> Running {
        let mut child = command.spawn().expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped"));
        let ready = read(&mut lines);
        Running { child, lines, ready }
    }

    fn word(&self, name: &str) -> &str {
        self.ready[name].as_str().unwrap_or_else(|| panic!("{name} in {}", self.ready))
    }

    /// The answer to a request over a connection of its own.
    fn ask(&self, method: &str, path: &str, body: &str) -> Value {
        let address = self.word("address");
        let mut stream = TcpStream::connect(address).expect("it listens");
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let body = answer.split("\r\n\r\n").nth(1).expect("an answer has a body");
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }

    fn stop(&mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Already over, if the test came to its end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(lines: &mut impl BufRead) -> Value {
    let mut line = String::new();
    lines.read_line(&mut line).expect("it says something");
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}

fn serve(directory: &Path, options: &[&str]) -> Running {
    let mut command = program(directory);
    command.args(["serve", "--format", "json", "--listen", "127.0.0.1:0", "--seed", "7"]).args(options);
    Running::start(command)
}

/// The endpoint's id and secret: the same in every world of the seed.
fn add_endpoint(server: &Running) -> (String, String) {
    let answer = server.ask("POST", "/sandbox/endpoints", r#"{"url":"https://shop.example/hooks"}"#);
    let word =
        |name: &str| answer["endpoint"][name].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    (word("id"), word("secret"))
}

#[test]
fn deliveries_carry_the_new_names_and_the_receiver_knows_them() {
    let (renamed, usual) = directories();
    let secret = {
        let server = serve(renamed.path(), &["--forward", "https://shop.example=http://127.0.0.1:9"]);
        add_endpoint(&server).1
    };
    let mut command = program(renamed.path());
    command.env(SECRET, &secret);
    let record = usual.path().join("caught.jsonl");
    let listen =
        ["receiver", "listen", "--port", "0", "--secret-env", SECRET, "--format", "json", "--record"];
    command.args(listen).arg(&record);
    let mut receiver = Running::start(command);

    let forward = format!("https://shop.example=http://{}", receiver.word("address"));
    let server = serve(renamed.path(), &["--forward", &forward]);
    let (id, again) = add_endpoint(&server);
    assert_eq!(again, secret, "one seed, one secret");
    server.ask("POST", &format!("/sandbox/endpoints/{id}/test"), "");
    let line = read(&mut receiver.lines);
    assert_eq!((&line["verdict"], &line["event"]), (&"verified".into(), &"charge.paid".into()), "{line}");
    // Headers and user agent are the expected ones: there is nothing else to note than what was sent on purpose.
    let notes: Vec<&Value> =
        line["notes"].as_array().expect("a list").iter().map(|note| &note["name"]).collect();
    assert_eq!(notes, ["test_delivery"], "{line}");
    assert_eq!(receiver.stop(), Some(0));

    let judge = |directory: &Path| -> Output {
        let mut command = program(directory);
        command.env(SECRET, &secret).args(["receiver", "judge", "--secret-env", SECRET]).arg(&record);
        command.output().expect("the program starts")
    };
    let good = judge(renamed.path());
    assert_eq!(good.status.code(), Some(0), "{}", String::from_utf8_lossy(&good.stdout));
    // Without the file nobody finds the signature, which stands under another name.
    assert_eq!(judge(usual.path()).status.code(), Some(1));
}

#[test]
fn keys_and_the_document_carry_the_new_names_and_the_suite_knows_them() {
    let (renamed, usual) = directories();
    let server = serve(renamed.path(), &["--clock", "wall"]);
    let [live, test] = ["live_key", "test_key"].map(|name| server.word(name).to_owned());
    assert!(live.starts_with("acme_live_") && test.starts_with("acme_test_"), "{}", server.ready);
    let document = server.ask("GET", "/openapi.json", "").to_string();
    for (new, old) in
        [("X-Acme-Signature", "X-Service"), ("acme_test_", "svc_"), ("Acme-Webhooks/1.0", "Service-Webhooks")]
    {
        assert!(document.contains(new) && !document.contains(old), "{new} in place of {old}");
    }

    let check = |directory: &Path| -> Output {
        let mut command = program(directory);
        command.env("CHARGEPROOF_LIVE_KEY", &live).env("CHARGEPROOF_TEST_KEY", &test).args([
            "check",
            server.word("url"),
            "--quick",
            "--without",
            "revoked,second",
        ]);
        command.output().expect("the program starts")
    };
    let told = |output: &Output| {
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    let good = check(renamed.path());
    // Not all was asked, and all that was asked held.
    assert_eq!(good.status.code(), Some(3), "{}", told(&good));
    let bad = check(usual.path());
    assert_eq!(bad.status.code(), Some(2), "{}", told(&bad));
    assert!(told(&bad).contains("does not begin with `svc_live_`"), "{}", told(&bad));
}
