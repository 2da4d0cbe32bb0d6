//! Wrong usage: every mistake is answered with what is wrong, what is allowed and what to do next.

use std::fs;

use crate::support::{Running, program, run, said};

/// Files that are wrong.
const FILES: [(&str, &str); 5] = [
    ("bad.yaml", "title: Bad\nsteps:\n  - payy: c1\n"),
    ("bad.toml", "[serve]\nwhatever = 1\n"),
    ("tab.yaml", "title: Bad\nsteps:\n\t- endpoint: shop\n"),
    (
        "brace.yaml",
        "title: Bad\nsteps:\n  - open: { charge: c1, asset: BTC, amount: 1 EUR\n  - pay: { charge: c1 }\n",
    ),
    ("status.yaml", "title: Bad\nsteps:\n  - expect: { c1: payed }\n"),
];

/// Command lines, and a part of what is said to them.
const MISTAKES: [(&str, &str); 66] = [
    ("check api.example.com", "did you mean `https://api.example.com`?"),
    ("check api.example.com:8443/pay", "did you mean `https://api.example.com:8443/pay`?"),
    ("check localhost:8402", "did you mean `http://localhost:8402`?"),
    ("trigger paid", "did you mean `charge.paid` or `invoice.paid`?"),
    ("trigger viewed", "did you mean `invoice.viewed`?"),
    ("fuzz http://127.0.0.1:9 --for 5m --requests 3", "cannot be used with"),
    ("play nowhere.yaml", "`nowhere.yaml` can't be read"),
    ("play bad.yaml", "did you mean `pay`?"),
    ("play --bless", "--bless"),
    ("play --against ftp://x", "`ftp://x` is not a served reference"),
    (
        "serve --config bad.toml",
        "`serve.whatever` is not a setting; it takes cacert, checkpoint_after, clock",
    ),
    ("serve --config none.toml", "`none.toml` can't be read"),
    ("serve --start today", "2026-01-05T09:00:00Z"),
    ("serve --rate-limit 0", "`off`"),
    ("serve --listen localhost:1", "such as 127.0.0.1:8402"),
    ("serve --seed x", "a whole number from 0"),
    ("play --seed 1.5", "a whole number from 0"),
    ("serve --clock fast --speed 0", "a whole number from 1"),
    ("serve --speed 5", "`--speed` is for `--clock fast`"),
    ("play bad.yaml --seed 2", "again: chargeproof play bad.yaml --seed 2"),
    ("play bad.yaml", "1 scenario: 0 passed, 1 failed"),
    ("serve --public-url shop", "error: the public address is `shop`"),
    ("serve --forward shop", "--forward"),
    ("serve --cacert none.pem", "`none.pem` can't be read"),
    ("serve --cacert bad.yaml", "bad.yaml"),
    ("check http://127.0.0.1:9", "CHARGEPROOF_LIVE_KEY"),
    ("check --only nothing.like_it", "nothing.like_it"),
    ("sweep --seed 7 --seeds 2", "cannot be used with"),
    ("sweep --demo-fault page-gaps", "a similar value exists: 'page-gap'"),
    ("play --demo-fault gremlin", "retry-renamed"),
    ("sweep --seeds abc", "takes a whole number from 1"),
    ("check --url http://a", "the URL is given without an option"),
    ("check --key a", "keys come from the environment: CHARGEPROOF_LIVE_KEY"),
    ("check --only pagin.joined", "did you mean `paging.joined`?"),
    ("load http://127.0.0.1:9", "say how fast: `--rate 100`"),
    ("load 127.0.0.1:9 --max", "did you mean `http://127.0.0.1:9`?"),
    ("judge bad.yaml", "`bad.yaml` is a scenario; run it: chargeproof play bad.yaml"),
    ("judge none/run.json", "`none/run.json` can't be read"),
    ("chek", "a similar subcommand exists: 'check'"),
    ("serve --lisen 127.0.0.1:0", "a similar argument exists: '--listen'"),
    (
        "serve --port",
        "Port to listen on, in place of the one of `--listen`; takes a whole number from 0 to 65535",
    ),
    ("serve --port abc", "takes a whole number from 0 to 65535"),
    ("serve --port 70000", "takes a whole number from 0 to 65535"),
    ("receiver listen --port abc", "takes a whole number from 0 to 65535"),
    ("sweep --seed", "Run the simulation of this seed only; takes a whole number from 0"),
    ("load", "for example: chargeproof load http://127.0.0.1:8402 --rate 200"),
    ("load http://127.0.0.1:9 --rate 0", "takes a whole number from 1 to 4294967295"),
    (
        "load --url http://127.0.0.1:9",
        "the URL is given without an option: `chargeproof load http://127.0.0.1:8402",
    ),
    (
        "fuzz --url http://127.0.0.1:9",
        "the URL is given without an option: `chargeproof fuzz https://api.example.com`",
    ),
    ("play --only paid", "name the files to play: `chargeproof play"),
    ("check --only limts", "did you mean `limits.*`?"),
    ("check --skip retires.*", "no statement that is judged is called `retires.*`"),
    ("play tab.yaml", "--> tab.yaml:3:1"),
    ("play tab.yaml", "indent with spaces"),
    ("play brace.yaml", "--> brace.yaml:3:11"),
    ("play brace.yaml", "close it with `}`"),
    ("play status.yaml", "`payed` is no status; did you mean `paid`?"),
    ("judge https://shop.example", "it is an address, and this takes a file"),
    ("play none", "there is no `none` in `"),
    ("sweep none/a.yaml", "there is no `none` in `"),
    ("sweep .", "it is a directory; name a file in it"),
    ("check --report html=none/a.html", "`none` is not a directory; create it first: mkdir -p none"),
    ("serve --ready-file none/a.json", "create it first: mkdir -p none"),
    (
        "serve --listen 127.0.0.1:0 --data bad.yaml",
        "`bad.yaml` can't keep a world: File exists (os error 17); `--data` takes a directory",
    ),
    ("serve --listen 127.0.0.1:0 --from bad.yaml", "GET /sandbox/snapshots/{id} of a server gives one"),
    ("trigger charge.payed", "a similar value exists: 'charge.paid'"),
];

#[track_caller]
fn check(arguments: &str, part: &str) {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in FILES {
        fs::write(directory.path().join(name), content).unwrap();
    }
    let output = run(directory.path(), &arguments.split_whitespace().collect::<Vec<_>>());
    let said = said(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
    assert!(said.contains(part), "{arguments}: {part:?} in {said}");
}

#[test]
fn a_mistake_is_answered_with_what_to_do() {
    for (arguments, part) in MISTAKES {
        check(arguments, part);
    }
}

#[test]
fn a_port_in_use_is_told_with_a_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let served = Running::serve(directory.path(), &[]);
    check(&format!("serve --listen {}", served.word("address")), "another port with `--port`");
}

#[test]
fn keys_of_another_prefix_name_the_setting() {
    let directory = tempfile::tempdir().unwrap();
    let output = program(directory.path())
        .env("CHARGEPROOF_LIVE_KEY", "acme_live_0123456789abcdef0123456789abcdef01234567")
        .env("CHARGEPROOF_TEST_KEY", "acme_test_0123456789abcdef0123456789abcdef01234567")
        .args(["check", "http://127.0.0.1:9"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let told =
        "does not begin with `svc_live_`; if this API's keys begin with something else, set `key_prefix`";
    assert!(said(&output).contains(told), "{}", said(&output));
}
