//! Runs the sample functions of `/docs` that verify deliveries, in their languages, on deliveries that this server
//! signs.
//!
//! A language that is not installed is skipped with a message.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use reference_core::signature::{Signer, verify};
use serde_json::{Value, json};

const SECRET: &str = "whsec_0123456789abcdefghijklmnopqrstuv";
const NOW: u64 = 1_767_603_600;

/// A language: its program, the check that it is installed, and the code that reads cases, appended to the sample.
struct Language {
    program: &'static [&'static str],
    file: &'static str,
    sample: &'static str,
    driver: &'static str,
}

const LANGUAGES: [Language; 4] = [
    Language {
        program: &["python3"],
        file: "verify.py",
        sample: include_str!("../../../templates/verify/verify.py"),
        driver: "\nimport json, sys\nfor c in json.load(sys.stdin):\n    print(int(verify(c['body'].encode(), c['header'], c['secret'], now=c['now'])))\n",
    },
    Language {
        program: &["node"],
        file: "verify.js",
        sample: include_str!("../../../templates/verify/verify.js"),
        driver: "\nfor (const c of JSON.parse(require('fs').readFileSync(0)))\n  console.log(Number(verify(Buffer.from(c.body), c.header, c.secret, 300, c.now)));\n",
    },
    Language {
        program: &["php"],
        file: "verify.php",
        sample: include_str!("../../../templates/verify/verify.php"),
        driver: "\nforeach (json_decode(stream_get_contents(STDIN), true) as $c)\n    echo (int) verify($c['body'], $c['header'], $c['secret'], 300, $c['now']), \"\\n\";\n",
    },
    Language {
        program: &["go", "run"],
        file: "verify.go",
        sample: include_str!("../../../templates/verify/verify.go"),
        driver: "\nfunc main() {\n\tvar all []struct{ Secret, Header, Body string; Now int64 }\n\tif err := json.NewDecoder(os.Stdin).Decode(&all); err != nil {\n\t\tpanic(err)\n\t}\n\tfor _, c := range all {\n\t\tif Verify([]byte(c.Body), c.Header, c.Secret, 5*time.Minute, time.Unix(c.Now, 0)) {\n\t\t\tfmt.Println(1)\n\t\t} else {\n\t\t\tfmt.Println(0)\n\t\t}\n\t}\n}\n",
    },
];

/// Returns a recorded body.
fn body() -> String {
    let document: Value = serde_json::from_str(include_str!("../../../../openapi.json")).expect("JSON");
    document["components"]["examples"]["webhook_charge_paid"]["value"].to_string()
}

/// Returns secret, header, body and time of genuine and of forged deliveries.
fn cases() -> Vec<(String, String, String, u64)> {
    let body = body();
    let good = Signer::new(SECRET).sign(NOW, body.as_bytes());
    let case = |header: &str, now| (SECRET.to_owned(), header.to_owned(), body.clone(), now);
    vec![
        case(&good, NOW),
        case(&good, NOW + 300),
        case(&good, NOW - 300),
        case(&good, NOW + 301),
        case(&good, NOW - 301),
        case(&format!("{good},v1={}", "0".repeat(64)), NOW),
        case(&format!("v0=other,{good}"), NOW),
        case(&good.replace("t=1767603600", "t=1767603601"), NOW),
        case(&good.replace("t=1767603600,", ""), NOW),
        case(&format!("t=1,{good}"), NOW),
        case(&good.replace("v1=", "v2="), NOW),
        case("", NOW),
        case("t=,v1=", NOW),
        case("t=soon,v1=00", NOW),
        case("nonsense", NOW),
        ("whsec_other".to_owned(), good.clone(), body.clone(), NOW),
        (SECRET.to_owned(), good.clone(), format!("{body} "), NOW),
        (SECRET.to_owned(), Signer::new(SECRET).sign(NOW, "ü".as_bytes()), "ü".to_owned(), NOW),
    ]
}

/// Returns the output of a sample for each case; `None` if its language is not installed.
fn run(language: &Language, cases: &Value) -> Option<Vec<bool>> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join(language.file);
    // A Go program has one package, and imports come first.
    let sample = language.sample.replacen("package webhook", "package main", 1);
    let sample = match language.file {
        "verify.go" => sample.replacen("import (", "import (\n\t\"encoding/json\"\n\t\"fmt\"\n\t\"os\"", 1),
        _ => sample,
    };
    std::fs::write(&path, sample + language.driver).expect("a file");
    let mut command = Command::new(language.program[0]);
    command.args(&language.program[1..]).arg(&path).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().ok()?;
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(cases.to_string().as_bytes()).expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{} ends with {}", language.file, output.status);
    Some(String::from_utf8_lossy(&output.stdout).lines().map(|line| line == "1").collect())
}

#[test]
fn samples_judge_deliveries_as_this_server_does() {
    let cases = cases();
    let expected: Vec<bool> = cases
        .iter()
        .map(|(secret, header, body, now)| verify(secret, header, body.as_bytes(), *now).is_ok())
        .collect();
    assert!(expected.contains(&true) && expected.contains(&false), "both kinds are there");
    let all = cases.iter().map(
        |(secret, header, body, now)| json!({ "secret": secret, "header": header, "body": body, "now": now }),
    );
    let all: Value = all.collect();
    for language in LANGUAGES {
        match run(&language, &all) {
            Some(found) => assert_eq!(found, expected, "{}", language.file),
            None => {
                // Not by `eprintln`, whose output a passing test hides.
                let notice = format!("{} is not run: there is no `{}`\n", language.file, language.program[0]);
                std::io::stderr().write_all(notice.as_bytes()).expect("stderr is open");
            }
        }
    }
}
