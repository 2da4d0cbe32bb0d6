//! `cargo xtask frameworks`: runs `chargeproof check` on small correct servers that use other frameworks.
//!
//! The servers are in `conformance/mutants/frameworks`. A framework is skipped, with a message, if its language is
//! not installed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use crate::served;
use crate::target::{Keys, check_command, output, start_listening};

/// The keys of every server.
const LIVE_KEY: &str = "svc_live_aZ3kP9vQ7rT2mX5cB8nL";
const TEST_KEY: &str = "svc_test_wE6yU1iO4pS9dF2gH7jK";
/// The parts that the servers do not support, as options of `check`.
const WITHOUT: [&str; 5] = ["webhooks", "inserts", "revoked", "second", "other"];
/// The exact packages from PyPI.
const PYTHON: [&str; 4] =
    ["fastapi==0.165.0", "uvicorn==0.54.0", "Django==5.2.19", "djangorestframework==3.18.3"];

struct Framework {
    name: &'static str,
    language: Language,
    /// The command line, in the directory of the servers; `PORT` is replaced by the port.
    command: &'static [&'static str],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Python,
    Node,
}

const FRAMEWORKS: [Framework; 3] = [
    Framework {
        name: "FastAPI",
        language: Language::Python,
        command: &["venv/bin/uvicorn", "fastapi_shop:app", "--port", "PORT", "--no-access-log"],
    },
    Framework {
        name: "Django REST framework",
        language: Language::Python,
        command: &["venv/bin/python", "django_shop.py", "127.0.0.1:PORT"],
    },
    Framework { name: "Express", language: Language::Node, command: &["node", "express_shop.js", "PORT"] },
];

/// Judges every server. `extra` is passed to `chargeproof check`. Returns `true` if every check of the servers that
/// are not skipped passed without a warning.
pub(crate) fn run(root: &Path, extra: &[String]) -> Result<bool, String> {
    let home = root.join("target/frameworks");
    copy(&root.join("conformance/mutants/frameworks"), &home)?;
    let skip_reasons = [(Language::Python, install_python(&home)?), (Language::Node, install_node(&home)?)];
    let program = &served::build(root)?;
    let reports = thread::scope(|scope| {
        let home_dir = &home;
        let running = FRAMEWORKS.iter().map(|framework| {
            let install_result = skip_reasons.iter().find(|(language, _)| *language == framework.language);
            let skip_reason = install_result.and_then(|(_, reason)| reason.clone());
            scope.spawn(move || match skip_reason {
                Some(reason) => Ok((true, format!("skipped: {reason}\n"))),
                None => check_server(program, home_dir, framework, extra),
            })
        });
        let running: Vec<_> = running.collect();
        running.into_iter().map(|thread| thread.join().expect("no check panics")).collect::<Vec<_>>()
    });
    let mut all_passed = true;
    for (framework, report) in FRAMEWORKS.iter().zip(reports) {
        let (has_passed, text) = report?;
        println!("==> {}\n{text}", framework.name);
        all_passed &= has_passed;
    }
    Ok(all_passed)
}

/// Starts a server and runs the check on it. Returns `true` if it passed without a warning, and the text to print.
fn check_server(
    program: &Path,
    home: &Path,
    framework: &Framework,
    extra: &[String],
) -> Result<(bool, String), String> {
    let [port] = testkit::free_ports()?;
    let command_line: Vec<_> =
        framework.command.iter().map(|argument| argument.replace("PORT", &port.to_string())).collect();
    let executable = if command_line[0].contains('/') {
        home.join(&command_line[0])
    } else {
        command_line[0].clone().into()
    };
    let mut server = Command::new(&executable);
    server.current_dir(home).args(&command_line[1..]).env("PYTHONDONTWRITEBYTECODE", "1");
    server.env("SHOP_LIVE_KEY", LIVE_KEY).env("SHOP_TEST_KEY", TEST_KEY);
    server.stdout(Stdio::null()).stderr(Stdio::null());
    let _listening = start_listening(&mut server, port)?;
    let keys = Keys { live: LIVE_KEY, test: TEST_KEY };
    let output = output(check_command(program, port, keys, &WITHOUT).args(extra).current_dir(home))?;
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    // If every check passes, only the line with their number is printed.
    let counts = text.lines().find(|line| line.contains("checks reported"));
    match counts.filter(|counts| output.status.success() && !counts.contains("warned")) {
        Some(counts) => Ok((true, format!("{counts}\n"))),
        None => Ok((false, text.into_owned())),
    }
}

/// Installs the Python packages. Returns the reason for skipping them if Python is not installed.
fn install_python(home: &Path) -> Result<Option<String>, String> {
    if !is_installed("python3") {
        return Ok(Some("`python3` is not installed".to_owned()));
    }
    let stamp = home.join("python.installed");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == PYTHON.join(" ")) {
        return Ok(None);
    }
    println!("==> installing {}", PYTHON.join(" "));
    let venv = home.join("venv");
    let is_created = succeeds(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv));
    let pip = ["install", "--quiet", "--disable-pip-version-check"];
    if !is_created || !succeeds(Command::new(venv.join("bin/pip")).args(pip).args(PYTHON)) {
        return Err(
            "the frameworks for Python cannot be installed; they come from PyPI, and need venv".to_owned()
        );
    }
    write_stamp(&stamp, &PYTHON.join(" "))
}

/// Installs the Node.js packages. Returns the reason for skipping them if Node.js is not installed.
fn install_node(home: &Path) -> Result<Option<String>, String> {
    if !is_installed("node") || !is_installed("npm") {
        return Ok(Some("`node` or `npm` is not installed".to_owned()));
    }
    let manifest = fs::read_to_string(home.join("package.json"))
        .map_err(|err| format!("cannot read `package.json` of the servers: {err}"))?;
    let stamp = home.join("node.installed");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == manifest) {
        return Ok(None);
    }
    println!("==> installing the packages of package.json");
    let npm_options = ["install", "--no-fund", "--no-audit", "--loglevel", "error"];
    if !succeeds(Command::new("npm").args(npm_options).current_dir(home)) {
        return Err("the frameworks for Node.js cannot be installed; they come from npm".to_owned());
    }
    write_stamp(&stamp, &manifest)
}

/// Records that packages are installed. Returns `None`: no reason to skip.
fn write_stamp(stamp: &Path, text: &str) -> Result<Option<String>, String> {
    fs::write(stamp, text).map_err(|err| format!("cannot write `{}`: {err}", stamp.display()))?;
    Ok(None)
}

/// Copies the files of a directory into another.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |err: std::io::Error| format!("cannot copy `{}`: {err}", from.display());
    fs::create_dir_all(to).map_err(failed)?;
    for entry in fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        fs::copy(entry.path(), to.join(entry.file_name())).map_err(failed)?;
    }
    Ok(())
}

fn is_installed(program: &str) -> bool {
    let version = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

fn succeeds(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}
