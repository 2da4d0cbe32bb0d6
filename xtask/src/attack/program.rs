//! Attacks on the program: hostile targets, signals, full disks and huge files.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use testkit::serve_status;

use super::case::{AttackCase, Bound, FiguresResult, Unit};
use super::context::{CaseContext, CaseFailure, ProgramResult, StartedProgram, create_empty_dir};
use super::dns;
use super::hostile_server::start_interim_flood;

const MEBIBYTE: u64 = 1024 * 1024;
/// The time after which a command is killed.
const TIMEOUT: Duration = Duration::from_secs(30);
/// A delay after which a command has started its work, but has not finished it.
const WORK_STARTED_AFTER: Duration = Duration::from_millis(900);

const LIVE_KEY: &str = "svc_live_Q8wZr3LmT6yVb1NxK5cJ";
const TEST_KEY: &str = "svc_test_H4gPs7DfU2kWe9RtY0oA";
const SECRET: &str = "whsec_0123456789abcdef0123456789abcdef";

pub(super) const CASES: &[AttackCase] = &[
    AttackCase {
        name: "echo",
        title: "a target echoes the API key of a request: plain, hex, percent-encoded and Base64",
        bounds: &[
            Bound {
                title: "encodings of a key in the output and files of commands",
                max: 0,
                unit: Unit::Count,
            },
            Bound { title: "commands that show neither the echo nor its status", max: 0, unit: Unit::Count },
        ],
        is_long: false,
        run: echo,
    },
    AttackCase {
        name: "foreign",
        title: "a target responds with CI workflow commands and characters that reverse text",
        bounds: &[
            Bound {
                title: "lines that begin with the target's text or reverse it",
                max: 0,
                unit: Unit::Count,
            },
            Bound { title: "reports without the target's text", max: 0, unit: Unit::Count },
        ],
        is_long: false,
        run: foreign_output,
    },
    AttackCase {
        name: "interrupt",
        title: "SIGINT or SIGTERM while a command is running",
        bounds: &[
            Bound { title: "commands with an unexpected exit code", max: 0, unit: Unit::Count },
            Bound { title: "commands that print nothing", max: 0, unit: Unit::Count },
            Bound { title: "until the slowest command has ended", max: 5_000, unit: Unit::Millis },
        ],
        is_long: false,
        run: interrupt,
    },
    AttackCase {
        name: "floods",
        title: "a target sends 100 Continue endlessly, from the first or the fifth request on",
        bounds: &[
            Bound { title: "commands that have to be killed", max: 0, unit: Unit::Count },
            Bound { title: "until the slowest command has ended", max: 8_000, unit: Unit::Millis },
        ],
        is_long: false,
        run: floods,
    },
    AttackCase {
        name: "outputs",
        title: "a closed stdout, a full disk, directories that do not exist",
        bounds: &[
            Bound { title: "panics", max: 0, unit: Unit::Count },
            Bound { title: "failures that are not reported", max: 0, unit: Unit::Count },
            Bound {
                title: "files that remain, or incomplete ones on the full disk",
                max: 0,
                unit: Unit::Count,
            },
        ],
        is_long: false,
        run: outputs,
    },
    AttackCase {
        name: "sizes",
        title: "responses of 4 MB to every request of a check; scenarios, settings and certificates of 100 MB",
        bounds: &[
            Bound { title: "memory of a check", max: 256, unit: Unit::Mebibytes },
            Bound { title: "memory for a file that is too large", max: 64, unit: Unit::Mebibytes },
            Bound { title: "characters of the error for such a file", max: 500, unit: Unit::Count },
            Bound { title: "files above the size limit that are read", max: 0, unit: Unit::Count },
        ],
        is_long: false,
        run: sizes,
    },
];

/// Runs the program as [`start`] does, and kills it after [`TIMEOUT`].
fn run(context: &CaseContext, directory: &Path, arguments: &[&str]) -> Result<ProgramResult, CaseFailure> {
    Ok(start(context, directory, arguments)?.wait_or_kill(TIMEOUT))
}

/// Starts the program in a directory, with API keys and a secret in its environment.
fn start(context: &CaseContext, directory: &Path, arguments: &[&str]) -> Result<StartedProgram, CaseFailure> {
    let mut command = context.command(arguments);
    command.current_dir(directory).env("CHARGEPROOF_LIVE_KEY", LIVE_KEY);
    command.env("CHARGEPROOF_TEST_KEY", TEST_KEY);
    command.env("HOOK_SECRET", SECRET);
    StartedProgram::start(command)
}

fn to_hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn percent_encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Encodes as Base64, without padding and without the last bits if they are too few for a digit.
fn to_base64(text: &str) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits: String = text.bytes().map(|byte| format!("{byte:08b}")).collect();
    let groups = bits.as_bytes().chunks(6).filter(|group| group.len() == 6);
    let value = |group: &[u8]| group.iter().fold(0, |value, bit| value * 2 + usize::from(*bit == b'1'));
    groups.map(|group| char::from(DIGITS[value(group)])).collect()
}

/// Returns a key in all encodings of the echo: plain, hex, percent-encoded, and three times Base64, which depends
/// on the key's offset in the encoded text.
fn encodings_of(key: &str) -> Vec<String> {
    let encoded = ["", "a", "ab"].map(|prefix| to_base64(&format!("{prefix}{key}")));
    [key.to_owned(), to_hex(key), percent_encode(key)].into_iter().chain(encoded).collect()
}

fn echo(context: &CaseContext) -> FiguresResult {
    let directory = create_empty_dir(&context.directory, "echo")?;
    let url = serve_status(418, |key| {
        let text = format!("echo {}", encodings_of(key).join(" "));
        serde_json::json!({ "message": text }).to_string()
    })?;
    let url = url.as_str();
    let mut output = String::new();
    let mut without_echo = 0;
    for arguments in [
        &["check", url, "--record", "run.json", "--report", "html=run.html", "--report", "github=run.txt"][..],
        &["check", url, "--format", "json", "--profile", "extended"],
        &["load", url, "--rate", "5", "--for", "1s"],
        &["fuzz", url, "--requests", "20", "--rate", "off", "--save", "found.json"],
    ] {
        let result = run(context, &directory, arguments)?;
        without_echo += u64::from(!result.output.contains("echo") && !result.output.contains("418"));
        output += &result.output;
    }
    for file in fs::read_dir(&directory)? {
        output += &fs::read_to_string(file?.path())?;
    }
    let output = output.to_lowercase();
    let mut found = 0;
    for key in [LIVE_KEY, TEST_KEY] {
        // The prefix of a key is not secret. Both prefixes have this length.
        let secret_part = &key["svc_live_".len()..];
        // The Base64 encodings are the last three. Their middle encodes only secret bytes.
        let base64_parts =
            encodings_of(key).split_off(3).into_iter().map(|encoding| encoding[15..30].to_owned());
        let other_encodings = [secret_part.to_owned(), to_hex(secret_part), percent_encode(secret_part)];
        found += other_encodings
            .into_iter()
            .chain(base64_parts)
            .filter(|encoding| output.contains(&encoding.to_lowercase()))
            .count();
    }
    Ok(vec![found as u64, without_echo])
}

fn foreign_output(context: &CaseContext) -> FiguresResult {
    let directory = create_empty_dir(&context.directory, "foreign")?;
    let url = serve_status(418, |_| "x\n::error::foreign\r\n##[error]foreign \u{202e}txt.exe".into())?;
    let url = url.as_str();
    let mut commands = vec![
        vec!["load", url, "--rate", "5", "--for", "1s"],
        vec!["fuzz", url, "--requests", "10", "--rate", "off"],
    ];
    let formats = ["text", "json", "junit", "markdown", "html", "github"];
    commands.extend(formats.map(|format| vec!["check", url, "--format", format]));
    let (mut affected_lines, mut reports_without_text) = (0, 0);
    for arguments in &commands {
        let output = run(context, &directory, arguments)?.output;
        let is_affected = |line: &&str| {
            let line = line.trim_start();
            line.starts_with("::error::foreign") || line.contains("##[") || line.contains('\u{202e}')
        };
        affected_lines += output.lines().filter(is_affected).count();
        reports_without_text += u64::from(arguments[0] == "check" && !output.contains("foreign"));
    }
    Ok(vec![affected_lines as u64, reports_without_text])
}

/// A command that is interrupted by a signal, and its expected exit code.
struct InterruptCase<'a> {
    arguments: &'a [&'a str],
    signal: &'static str,
    exit_code: i32,
}

fn interrupt(context: &CaseContext) -> FiguresResult {
    let directory = create_empty_dir(&context.directory, "interrupt")?;
    let scenarios = create_empty_dir(&directory, "plays")?;
    let scenario =
        "title: One charge\nsteps:\n  - open: { charge: c1, asset: BTC, amount: 10.00 EUR }\n  - wait: 2h\n";
    // So many that the command is still running when it gets the signal.
    for nth in 0..2_000 {
        fs::write(scenarios.join(format!("{nth}.yaml")), scenario)?;
    }
    // With a rate limit, so that a check has to wait.
    let server = context.serve_limited(&[])?;
    let url = format!("http://{}", server.address);
    // A handler that never responds.
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let handler = format!("http://{}/hooks", listener.local_addr()?);
    let (url, handler) = (url.as_str(), handler.as_str());
    let cases = [
        InterruptCase {
            arguments: &["sweep", "--seeds", "1000000", "--jobs", "1"],
            signal: "INT",
            exit_code: 130,
        },
        // With `--without`, the check runs in the world of the server, in real time, and not in a copy.
        InterruptCase { arguments: &["check", url, "--without", "webhooks"], signal: "TERM", exit_code: 130 },
        InterruptCase { arguments: &["fuzz", url, "--requests", "5000"], signal: "INT", exit_code: 130 },
        InterruptCase {
            arguments: &["load", url, "--rate", "20", "--for", "60s"],
            signal: "TERM",
            exit_code: 130,
        },
        InterruptCase {
            arguments: &["receiver", "try", handler, "--secret-env", "HOOK_SECRET", "--without", "acts"],
            signal: "INT",
            exit_code: 130,
        },
        InterruptCase { arguments: &["play", "plays"], signal: "TERM", exit_code: 130 },
        // A signal is the normal end; the exit code states that no delivery was verified.
        InterruptCase {
            arguments: &["receiver", "listen", "--listen", "127.0.0.1:0", "--secret-env", "HOOK_SECRET"],
            signal: "INT",
            exit_code: 3,
        },
    ];
    let mut running = Vec::new();
    for case in &cases {
        let mut command = context.command(case.arguments);
        command.current_dir(&directory).env("HOOK_SECRET", SECRET);
        command.env("CHARGEPROOF_LIVE_KEY", &server.live_key).env("CHARGEPROOF_TEST_KEY", &server.test_key);
        running.push((StartedProgram::start(command)?, case));
    }
    thread::sleep(WORK_STARTED_AFTER * 2);
    for (command, case) in &running {
        command.signal(case.signal)?;
    }
    let (mut wrong_code, mut without_output, mut slowest) = (0, 0, 0);
    for (command, case) in running {
        let result = command.wait_or_kill(TIMEOUT);
        if result.code != Some(case.exit_code) {
            let (name, expected) = (case.arguments[0], case.exit_code);
            eprintln!("{name} ended with {:?}, not {expected}: {}", result.code, result.output);
            wrong_code += 1;
        }
        without_output += u64::from(result.output.trim().is_empty());
        slowest = slowest.max(u64::try_from(result.ended_after.as_millis()).unwrap_or(u64::MAX));
    }
    Ok(vec![wrong_code, without_output, slowest])
}

fn floods(context: &CaseContext) -> FiguresResult {
    let directory = create_empty_dir(&context.directory, "floods")?;
    let (mut killed, mut slowest) = (0, 0);
    for (valid_responses, arguments, signal) in [
        (0, &["check", "--quick"][..], None),
        (0, &["receiver", "try", "--secret-env", "HOOK_SECRET", "--without", "acts"], None),
        (0, &["fuzz", "--requests", "10", "--rate", "off"], None),
        (4, &["load", "--rate", "50", "--for", "2s"], None),
        (4, &["load", "--for", "60s"], Some("INT")),
    ] {
        let url = format!("http://{}/", start_interim_flood(valid_responses)?);
        let running = start(context, &directory, &[arguments, &[&url]].concat())?;
        if let Some(name) = signal {
            thread::sleep(WORK_STARTED_AFTER);
            running.signal(name)?;
        }
        let result = running.wait_or_kill(TIMEOUT);
        if result.code.is_none() {
            eprintln!("{arguments:?} does not end: {}", result.output);
        }
        killed += u64::from(result.code.is_none());
        slowest = slowest.max(u64::try_from(result.ended_after.as_millis()).unwrap_or(u64::MAX));
    }
    Ok(vec![killed, slowest])
}

fn outputs(context: &CaseContext) -> FiguresResult {
    let directory = create_empty_dir(&context.directory, "outputs")?;
    let (mut panics, mut unreported, mut leftover_files) = (0, 0, 0);
    let mut record_result = |result: &ProgramResult, arguments: &[&str], must_fail: bool| {
        // 101 is the exit code of a panic. A program that had to be killed counts as one, too.
        let is_panic =
            result.code.is_none() || result.code == Some(101) || result.output.contains("panicked");
        let is_unreported = must_fail && (result.code == Some(0) || !result.output.contains("written"));
        if is_panic || is_unreported {
            eprintln!("{arguments:?} ended with {:?}: {}", result.code, result.output);
        }
        panics += u64::from(is_panic);
        unreported += u64::from(is_unreported);
    };
    let commands_with_output: [&[&str]; 4] =
        [&["check", "--list"], &["sweep", "--seeds", "1", "--jobs", "1"], &["play"], &["--help"]];
    // Each command writes to a pipe whose reading end is closed.
    for arguments in commands_with_output {
        let mut command = context.command(arguments);
        let mut child =
            command.current_dir(&directory).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        drop(child.stdout.take());
        let finished = child.wait_with_output()?;
        let output = String::from_utf8_lossy(&finished.stderr).into_owned();
        record_result(
            &ProgramResult {
                code: finished.status.code(),
                output,
                peak_memory: 0,
                ended_after: Duration::ZERO,
            },
            arguments,
            false,
        );
    }
    let mut destinations = vec!["no/such".to_owned()];
    // A file system of 64 KiB, which the filler fills.
    let full_disk = context.directory.join("full");
    if dns::is_in_namespaces() {
        fs::write(full_disk.join("filler"), vec![0; 128 * 1024]).err().ok_or("the full disk is not full")?;
        destinations.push(full_disk.display().to_string());
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" check --list > /dev/full"]).arg(&context.program);
        record_result(&StartedProgram::start(command)?.wait_or_kill(TIMEOUT), &["check", "--list"], true);
    }
    let error_server = serve_status(418, |_| "{}".to_owned())?;
    for destination in &destinations {
        let path_of = |name: &str| format!("{destination}/{name}");
        let report = format!("html={}", path_of("run.html"));
        let commands: [&[&str]; 6] = [
            &["sweep", "--seeds", "1", "--jobs", "1", "--out", &path_of("out")],
            &["sweep", "--seeds", "1", "--jobs", "1", "--html", &path_of("out.html")],
            &["check", "--quick", "--report", &report],
            &["check", "--quick", "--record", &path_of("run.json")],
            &["fuzz", &error_server, "--requests", "10", "--rate", "off", "--save", &path_of("found.json")],
            &["serve", "--listen", "127.0.0.1:0", "--ready-file", &path_of("ready.json")],
        ];
        for arguments in commands {
            // On the full disk, a small output may still fit, and `serve` may start; it must be stopped then.
            let must_fail = destination.starts_with("no/");
            let running = start(context, &directory, arguments)?;
            if arguments[0] == "serve" && !must_fail {
                thread::sleep(WORK_STARTED_AFTER);
                let _ = running.signal("TERM");
            }
            record_result(&running.wait_or_kill(TIMEOUT), arguments, must_fail);
        }
    }
    if dns::is_in_namespaces() {
        leftover_files += remove_files(&full_disk)?;
    }
    leftover_files += fs::read_dir(&directory)?.count() as u64;
    Ok(vec![panics, unreported, leftover_files])
}

/// Removes all files of a full disk. Returns the number of incomplete ones, without the filler: those that do not end
/// with the last character of their format.
fn remove_files(directory: &Path) -> Result<u64, CaseFailure> {
    let mut incomplete = 0;
    for file in fs::read_dir(directory)? {
        let path = file?.path();
        let content = fs::read(&path)?;
        let is_complete = content.ends_with(b"\n") || content.ends_with(b"}") || content.ends_with(b">");
        incomplete += u64::from(!path.ends_with("filler") && !is_complete);
        fs::remove_file(path)?;
    }
    Ok(incomplete)
}

fn sizes(context: &CaseContext) -> FiguresResult {
    let directory = create_empty_dir(&context.directory, "sizes")?;
    let huge = format!("{{\"data\":[\"{}\"]}}", "x".repeat(4_000_000));
    let url = serve_status(200, move |_| huge.clone())?;
    let check = run(context, &directory, &["check", &url, "--quick"])?;
    if check.peak_memory == 0 {
        return Err(CaseFailure::Skipped("requires /proc of Linux".to_owned()));
    }
    let (mut memory, mut longest, mut accepted) = (0, 0, 0);
    let content = vec![b'x'; 100_000_000];
    for (name, arguments) in [
        ("a.yaml", &["play", "a.yaml"][..]),
        ("a.yaml", &["sweep", "a.yaml"]),
        ("chargeproof.toml", &["check", "--list"]),
        ("a.pem", &["serve", "--listen", "127.0.0.1:0", "--cacert", "a.pem"]),
    ] {
        let path = directory.join(name);
        fs::write(&path, &content)?;
        let result = run(context, &directory, arguments)?;
        memory = memory.max(result.peak_memory);
        longest = longest.max(result.output.len() as u64);
        accepted += u64::from(result.code != Some(2));
        fs::remove_file(path)?;
    }
    Ok(vec![check.peak_memory.div_ceil(MEBIBYTE), memory.div_ceil(MEBIBYTE), longest, accepted])
}
