//! Attacks on the program: hostile targets, signals, full disks and huge files.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use testkit::serve_status;

use super::actors::interim_flood;
use super::case::{AttackCase, Bound, MeasureResult, Unit};
use super::context::{CaseContext, CaseFailure, ProgramResult, StartedProgram, create_empty_dir};
use super::names;

const MEBIBYTE: u64 = 1024 * 1024;
/// The time after which a command is killed.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The time after which a command is in the middle of its work.
const UNDER_WAY: Duration = Duration::from_millis(900);

const LIVE: &str = "svc_live_Q8wZr3LmT6yVb1NxK5cJ";
const TEST: &str = "svc_test_H4gPs7DfU2kWe9RtY0oA";
const SECRET: &str = "whsec_0123456789abcdef0123456789abcdef";

pub(super) const CASES: &[AttackCase] = &[
    AttackCase {
        name: "echo",
        title: "a target echoes the key that it was sent: plain, in hex, percent and base64",
        bounds: &[
            Bound { title: "forms of a key in the output and files of commands", most: 0, unit: Unit::Count },
            Bound { title: "commands that show no part of the echo", most: 0, unit: Unit::Count },
        ],
        is_long: false,
        run: echo,
    },
    AttackCase {
        name: "foreign",
        title: "a target answers with workflow commands and characters that reverse text",
        bounds: &[
            Bound { title: "lines that the target's text starts or reverses", most: 0, unit: Unit::Count },
            Bound { title: "reports without any of the text", most: 0, unit: Unit::Count },
        ],
        is_long: false,
        run: foreign_output,
    },
    AttackCase {
        name: "interrupt",
        title: "SIGINT or SIGTERM while a command works",
        bounds: &[
            Bound { title: "commands with an unexpected exit code", most: 0, unit: Unit::Count },
            Bound { title: "commands that do not report their completed work", most: 0, unit: Unit::Count },
            Bound { title: "until the slowest command has ended", most: 5_000, unit: Unit::Millis },
        ],
        is_long: false,
        run: interrupt,
    },
    AttackCase {
        name: "floods",
        title: "a target answers with 100 Continue for ever, from the first request or from the fifth on",
        bounds: &[
            Bound { title: "commands that have to be killed", most: 0, unit: Unit::Count },
            Bound { title: "until the slowest command has ended", most: 8_000, unit: Unit::Millis },
        ],
        is_long: false,
        run: floods,
    },
    AttackCase {
        name: "outputs",
        title: "a closed stdout, a full disk, directories that do not exist",
        bounds: &[
            Bound { title: "panics", most: 0, unit: Unit::Count },
            Bound { title: "failures that are not reported", most: 0, unit: Unit::Count },
            Bound { title: "complete or partial files left behind", most: 0, unit: Unit::Count },
        ],
        is_long: false,
        run: outputs,
    },
    AttackCase {
        name: "sizes",
        title: "answers of 4 MB to every request of a check; scenarios and settings of 100 MB",
        bounds: &[
            Bound { title: "memory of a check", most: 256, unit: Unit::Mebibytes },
            Bound { title: "memory for a file that is too large", most: 64, unit: Unit::Mebibytes },
            Bound { title: "characters of an error about it", most: 500, unit: Unit::Count },
            Bound { title: "files above the size limit that are read", most: 0, unit: Unit::Count },
        ],
        is_long: false,
        run: sizes,
    },
];

/// Runs a command with keys to completion.
fn run(context: &CaseContext, directory: &Path, arguments: &[&str]) -> Result<ProgramResult, CaseFailure> {
    Ok(start(context, directory, arguments)?.end(TIMEOUT))
}

fn start(context: &CaseContext, directory: &Path, arguments: &[&str]) -> Result<StartedProgram, CaseFailure> {
    let mut command = context.command(arguments);
    command.current_dir(directory).env("CHARGEPROOF_LIVE_KEY", LIVE).env("CHARGEPROOF_TEST_KEY", TEST);
    command.env("HOOK_SECRET", SECRET);
    StartedProgram::start(command)
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn base64(text: &str) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits: String = text.bytes().map(|byte| format!("{byte:08b}")).collect();
    let whole = bits.as_bytes().chunks(6).filter(|six| six.len() == 6);
    let value = |six: &[u8]| six.iter().fold(0, |value, bit| value * 2 + usize::from(*bit == b'1'));
    whole.map(|six| char::from(DIGITS[value(six)])).collect()
}

/// Returns a key in all encodings of the echo, Base64 in three forms, because it depends on the position in the text.
fn encodings_of(key: &str) -> Vec<String> {
    let encoded = ["", "a", "ab"].map(|before| base64(&format!("{before}{key}")));
    [key.to_owned(), hex(key), percent(key)].into_iter().chain(encoded).collect()
}

fn echo(context: &CaseContext) -> MeasureResult {
    let directory = create_empty_dir(&context.directory, "echo")?;
    let url = serve_status(418, |key| {
        let text = format!("echo {}", encodings_of(key).join(" "));
        serde_json::json!({ "message": text }).to_string()
    })?;
    let url = url.as_str();
    let mut output = String::new();
    let mut silent = 0;
    for arguments in [
        &["check", url, "--record", "run.json", "--report", "html=run.html", "--report", "github=run.txt"][..],
        &["check", url, "--format", "json", "--profile", "extended"],
        &["load", url, "--rate", "5", "--for", "1s"],
        &["fuzz", url, "--requests", "20", "--rate", "off", "--save", "found.json"],
    ] {
        let ran = run(context, &directory, arguments)?;
        silent += u64::from(!ran.output.contains("echo") && !ran.output.contains("418"));
        output += &ran.output;
    }
    for file in fs::read_dir(&directory)? {
        output += &fs::read_to_string(file?.path())?;
    }
    let output = output.to_lowercase();
    let mut shown = 0;
    for key in [LIVE, TEST] {
        // The prefix of a key is not secret.
        let tail = &key["svc_live_".len()..];
        // The middle of the Base64 form, which does not depend on neighbouring bytes.
        let middle = encodings_of(key).split_off(3).into_iter().map(|form| form[15..30].to_owned());
        let whole = [tail.to_owned(), hex(tail), percent(tail)];
        shown += whole.into_iter().chain(middle).filter(|form| output.contains(&form.to_lowercase())).count();
    }
    Ok(vec![shown as u64, silent])
}

fn foreign_output(context: &CaseContext) -> MeasureResult {
    let directory = create_empty_dir(&context.directory, "foreign")?;
    let url = serve_status(418, |_| "x\n::error::foreign\r\n##[error]foreign \u{202e}txt.exe".into())?;
    let url = url.as_str();
    let mut commands = vec![
        vec!["load", url, "--rate", "5", "--for", "1s"],
        vec!["fuzz", url, "--requests", "10", "--rate", "off"],
    ];
    let formats = ["text", "json", "junit", "markdown", "html", "github"];
    commands.extend(formats.map(|format| vec!["check", url, "--format", format]));
    let (mut lines, mut without) = (0, 0);
    for arguments in &commands {
        let output = run(context, &directory, arguments)?.output;
        let begins = |line: &&str| {
            let line = line.trim_start();
            line.starts_with("::error::foreign") || line.contains("##[") || line.contains('\u{202e}')
        };
        lines += output.lines().filter(begins).count();
        without += u64::from(arguments[0] == "check" && !output.contains("foreign"));
    }
    Ok(vec![lines as u64, without])
}

fn interrupt(context: &CaseContext) -> MeasureResult {
    let directory = create_empty_dir(&context.directory, "interrupt")?;
    let plays = create_empty_dir(&directory, "plays")?;
    let scenario =
        "title: One charge\nsteps:\n  - open: { charge: c1, asset: BTC, amount: 10.00 EUR }\n  - wait: 2h\n";
    for n in 0..2_000 {
        fs::write(plays.join(format!("{n}.yaml")), scenario)?;
    }
    // With a rate limit, so that a check has to wait.
    let host = context.serve_limited(&[])?;
    let url = format!("http://{}", host.address);
    // A handler that never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0")?;
    let handler = format!("http://{}/hooks", silent.local_addr()?);
    let (url, handler) = (url.as_str(), handler.as_str());
    let cases: &[(&[&str], &str, i32)] = &[
        (&["sweep", "--seeds", "1000000", "--jobs", "1"], "INT", 130),
        // With an option that leaves something out, the address itself is checked, in real time.
        (&["check", url, "--without", "webhooks"], "TERM", 130),
        (&["fuzz", url, "--requests", "5000"], "INT", 130),
        (&["load", url, "--rate", "20", "--for", "60s"], "TERM", 130),
        (&["receiver", "try", handler, "--secret-env", "HOOK_SECRET", "--without", "acts"], "INT", 130),
        (&["play", "plays"], "TERM", 130),
        // A signal is the normal end; the exit code states that no delivery was verified.
        (&["receiver", "listen", "--listen", "127.0.0.1:0", "--secret-env", "HOOK_SECRET"], "INT", 3),
    ];
    let mut running = Vec::new();
    for (arguments, name, code) in cases {
        let mut command = context.command(arguments);
        command.current_dir(&directory).env("HOOK_SECRET", SECRET);
        command.env("CHARGEPROOF_LIVE_KEY", &host.live).env("CHARGEPROOF_TEST_KEY", &host.test);
        running.push((StartedProgram::start(command)?, arguments[0], name, *code));
    }
    thread::sleep(UNDER_WAY * 2);
    for (command, _, name, _) in &running {
        command.signal(name)?;
    }
    let (mut wrong, mut mute, mut slowest) = (0, 0, 0);
    for (command, name, _, code) in running {
        let ran = command.end(TIMEOUT);
        if ran.code != Some(code) {
            eprintln!("{name} ended with {:?}, not {code}: {}", ran.code, ran.output);
            wrong += 1;
        }
        mute += u64::from(ran.output.trim().is_empty());
        slowest = slowest.max(u64::try_from(ran.took.as_millis()).unwrap_or(u64::MAX));
    }
    Ok(vec![wrong, mute, slowest])
}

fn floods(context: &CaseContext) -> MeasureResult {
    let directory = create_empty_dir(&context.directory, "floods")?;
    let (mut killed, mut slowest) = (0, 0);
    for (good, arguments, signal) in [
        (0, &["check", "--quick"][..], None),
        (0, &["receiver", "try", "--secret-env", "HOOK_SECRET", "--without", "acts"], None),
        (0, &["fuzz", "--requests", "10", "--rate", "off"], None),
        (4, &["load", "--rate", "50", "--for", "2s"], None),
        (4, &["load", "--for", "60s"], Some("INT")),
    ] {
        let url = format!("http://{}/", interim_flood(good)?);
        let running = start(context, &directory, &[arguments, &[&url]].concat())?;
        if let Some(name) = signal {
            thread::sleep(UNDER_WAY);
            running.signal(name)?;
        }
        let ran = running.end(TIMEOUT);
        if ran.code.is_none() {
            eprintln!("{arguments:?} does not end: {}", ran.output);
        }
        killed += u64::from(ran.code.is_none());
        slowest = slowest.max(u64::try_from(ran.took.as_millis()).unwrap_or(u64::MAX));
    }
    Ok(vec![killed, slowest])
}

fn outputs(context: &CaseContext) -> MeasureResult {
    let directory = create_empty_dir(&context.directory, "outputs")?;
    let (mut panics, mut untold, mut left) = (0, 0, 0);
    let mut look = |ran: &ProgramResult, arguments: &[&str], fails: bool| {
        let panicked = ran.code.is_none() || ran.code == Some(101) || ran.output.contains("panicked");
        let is_untold = fails && (ran.code == Some(0) || !ran.output.contains("written"));
        if panicked || is_untold {
            eprintln!("{arguments:?} ended with {:?}: {}", ran.code, ran.output);
        }
        panics += u64::from(panicked);
        untold += u64::from(is_untold);
    };
    let work: [&[&str]; 4] =
        [&["check", "--list"], &["sweep", "--seeds", "1", "--jobs", "1"], &["play"], &["--help"]];
    for arguments in work {
        let mut command = context.command(arguments);
        let mut child =
            command.current_dir(&directory).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        drop(child.stdout.take());
        let ended = child.wait_with_output()?;
        let output = String::from_utf8_lossy(&ended.stderr).into_owned();
        look(
            &ProgramResult { code: ended.status.code(), output, peak: 0, took: Duration::ZERO },
            arguments,
            false,
        );
    }
    let mut destinations = vec!["no/such".to_owned()];
    // A file system of 64 KiB that is almost full.
    let full = context.directory.join("full");
    if names::is_in_namespaces() {
        fs::write(full.join("filler"), vec![0; 128 * 1024]).err().ok_or("the full disk is not full")?;
        destinations.push(full.display().to_string());
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" check --list > /dev/full"]).arg(&context.program);
        look(&StartedProgram::start(command)?.end(TIMEOUT), &["check", "--list"], true);
    }
    let refusing = serve_status(418, |_| "{}".to_owned())?;
    for destination in &destinations {
        let at = |name: &str| format!("{destination}/{name}");
        let report = format!("html={}", at("run.html"));
        let commands: [&[&str]; 6] = [
            &["sweep", "--seeds", "1", "--jobs", "1", "--out", &at("out")],
            &["sweep", "--seeds", "1", "--jobs", "1", "--html", &at("out.html")],
            &["check", "--quick", "--report", &report],
            &["check", "--quick", "--record", &at("run.json")],
            &["fuzz", &refusing, "--requests", "10", "--rate", "off", "--save", &at("found.json")],
            &["serve", "--listen", "127.0.0.1:0", "--ready-file", &at("ready.json")],
        ];
        for arguments in commands {
            // Output that fits is not a failure, and a server that is ready continues.
            let fails = destination.starts_with("no/");
            let running = start(context, &directory, arguments)?;
            if arguments[0] == "serve" && !fails {
                thread::sleep(UNDER_WAY);
                let _ = running.signal("TERM");
            }
            look(&running.end(TIMEOUT), arguments, fails);
        }
    }
    if names::is_in_namespaces() {
        // An existing file is complete, so it has the ending of its format.
        for file in fs::read_dir(&full)? {
            let path = file?.path();
            let text = fs::read(&path)?;
            let is_whole = text.ends_with(b"\n") || text.ends_with(b"}") || text.ends_with(b">");
            left += u64::from(!path.ends_with("filler") && !is_whole);
            fs::remove_file(path)?;
        }
    }
    left += fs::read_dir(&directory)?.count() as u64;
    Ok(vec![panics, untold, left])
}

fn sizes(context: &CaseContext) -> MeasureResult {
    let directory = create_empty_dir(&context.directory, "sizes")?;
    let huge = format!("{{\"data\":[\"{}\"]}}", "x".repeat(4_000_000));
    let url = serve_status(200, move |_| huge.clone())?;
    let checked = run(context, &directory, &["check", &url, "--quick"])?;
    if checked.peak == 0 {
        return Err(CaseFailure::Skipped("requires /proc of Linux".to_owned()));
    }
    let (mut memory, mut longest, mut taken) = (0, 0, 0);
    let text = vec![b'x'; 100_000_000];
    for (name, arguments) in [
        ("a.yaml", &["play", "a.yaml"][..]),
        ("a.yaml", &["sweep", "a.yaml"]),
        ("chargeproof.toml", &["check", "--list"]),
        ("a.pem", &["serve", "--listen", "127.0.0.1:0", "--cacert", "a.pem"]),
    ] {
        let path = directory.join(name);
        fs::write(&path, &text)?;
        let ran = run(context, &directory, arguments)?;
        memory = memory.max(ran.peak);
        longest = longest.max(ran.output.len() as u64);
        taken += u64::from(ran.code != Some(2));
        fs::remove_file(path)?;
    }
    Ok(vec![checked.peak.div_ceil(MEBIBYTE), memory.div_ceil(MEBIBYTE), longest, taken])
}
