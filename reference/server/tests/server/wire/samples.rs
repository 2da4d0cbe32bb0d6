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

/// A language with a code sample.
struct Language {
    /// The program that runs a file, with its arguments.
    program: &'static [&'static str],
    file: &'static str,
    sample: &'static str,
    /// Code that is appended to the sample: reads cases from standard input and prints 1 or 0 for each.
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

/// Returns the body of a webhook, an example of the OpenAPI document.
fn body() -> String {
    let document: Value = serde_json::from_str(include_str!("../../../../openapi.json")).expect("JSON");
    document["components"]["examples"]["webhook_charge_paid"]["value"].to_string()
}

/// A signed delivery, genuine or forged.
struct Case {
    secret: String,
    header: String,
    body: String,
    now: u64,
}

fn cases() -> Vec<Case> {
    let body = body();
    let valid = Signer::new(SECRET).sign(NOW, body.as_bytes());
    let full_case = |secret: &str, header: &str, body: &str, now| Case {
        secret: secret.to_owned(),
        header: header.to_owned(),
        body: body.to_owned(),
        now,
    };
    let case = |header: &str, now| full_case(SECRET, header, &body, now);
    vec![
        case(&valid, NOW),
        case(&valid, NOW + 300),
        case(&valid, NOW - 300),
        case(&valid, NOW + 301),
        case(&valid, NOW - 301),
        case(&format!("{valid},v1={}", "0".repeat(64)), NOW),
        case(&format!("v0=other,{valid}"), NOW),
        case(&valid.replace("t=1767603600", "t=1767603601"), NOW),
        case(&valid.replace("t=1767603600,", ""), NOW),
        case(&format!("t=1,{valid}"), NOW),
        case(&valid.replace("v1=", "v2="), NOW),
        case("", NOW),
        case("t=,v1=", NOW),
        case("t=soon,v1=00", NOW),
        case("nonsense", NOW),
        full_case("whsec_other", &valid, &body, NOW),
        full_case(SECRET, &valid, &format!("{body} "), NOW),
        full_case(SECRET, &Signer::new(SECRET).sign(NOW, "ü".as_bytes()), "ü", NOW),
    ]
}

/// Returns the result of a sample for each case; `None` if its language is not installed.
fn run(language: &Language, cases: &Value) -> Option<Vec<bool>> {
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let path = directory.path().join(language.file);
    // A Go program has one package, and imports come first.
    let sample = language.sample.replacen("package webhook", "package main", 1);
    let sample = match language.file {
        "verify.go" => sample.replacen("import (", "import (\n\t\"encoding/json\"\n\t\"fmt\"\n\t\"os\"", 1),
        _ => sample,
    };
    std::fs::write(&path, sample + language.driver).expect("the file can be written");
    let mut command = Command::new(language.program[0]);
    command.args(&language.program[1..]).arg(&path).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().ok()?;
    let mut input = child.stdin.take().expect("standard input is piped");
    input.write_all(cases.to_string().as_bytes()).expect("the program reads its input");
    drop(input);
    let output = child.wait_with_output().expect("the program exits");
    assert!(output.status.success(), "{} ends with {}", language.file, output.status);
    Some(String::from_utf8_lossy(&output.stdout).lines().map(|line| line == "1").collect())
}

#[test]
fn samples_accept_and_reject_the_same_deliveries_as_this_server() {
    let cases = cases();
    let expected: Vec<bool> = cases
        .iter()
        .map(|case| verify(&case.secret, &case.header, case.body.as_bytes(), case.now).is_ok())
        .collect();
    assert!(
        expected.contains(&true) && expected.contains(&false),
        "the cases contain valid and invalid signatures"
    );
    let all: Value = cases
        .iter()
        .map(|Case { secret, header, body, now }| {
            json!({ "secret": secret, "header": header, "body": body, "now": now })
        })
        .collect();
    for language in LANGUAGES {
        match run(&language, &all) {
            Some(found) => assert_eq!(found, expected, "{}", language.file),
            None => {
                // Not by `eprintln`, whose output a passing test hides.
                let notice =
                    format!("{} is skipped: `{}` is not installed\n", language.file, language.program[0]);
                std::io::stderr().write_all(notice.as_bytes()).expect("stderr is open");
            }
        }
    }
}
