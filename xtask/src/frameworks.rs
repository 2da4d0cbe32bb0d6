//! `cargo xtask frameworks`: runs `chargeproof check` on small correct servers that use other frameworks.
//!
//! The servers are in `conformance/mutants/frameworks`. A framework is skipped, with a message, if its language is not
//! installed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use crate::served;
use crate::target::{Keys, check, output, start_listening};

/// The keys of every server.
const LIVE_KEY: &str = "svc_live_aZ3kP9vQ7rT2mX5cB8nL";
const TEST_KEY: &str = "svc_test_wE6yU1iO4pS9dF2gH7jK";
/// The parts that the servers do not have.
const WITHOUT: [&str; 5] = ["webhooks", "inserts", "revoked", "second", "other"];
/// The exact packages from PyPI.
const PYTHON: [&str; 4] =
    ["fastapi==0.165.0", "uvicorn==0.54.0", "Django==5.2.19", "djangorestframework==3.18.3"];

struct Framework {
    name: &'static str,
    language: Language,
    /// The command line; `PORT` is replaced by the port.
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

/// Judges every server. `extra` is passed to `chargeproof check`. Returns `true` if no violation was reported.
pub(crate) fn run(root: &Path, extra: &[String]) -> Result<bool, String> {
    let home = root.join("target/frameworks");
    copy(&root.join("conformance/mutants/frameworks"), &home)?;
    let ready = [(Language::Python, install_python(&home)?), (Language::Node, install_node(&home)?)];
    let program = &served::build(root)?;
    let reports = thread::scope(|scope| {
        let here = &home;
        let judged = FRAMEWORKS.iter().map(|framework| {
            let missing = ready.iter().find(|(language, _)| *language == framework.language);
            let skipped = missing.and_then(|(_, why)| why.clone());
            scope.spawn(move || match skipped {
                Some(why) => Ok((true, format!("skipped: {why}\n"))),
                None => judge(program, here, framework, extra),
            })
        });
        let judged: Vec<_> = judged.collect();
        judged.into_iter().map(|judged| judged.join().expect("no judge panics")).collect::<Vec<_>>()
    });
    let mut good = true;
    for (framework, report) in FRAMEWORKS.iter().zip(reports) {
        let (sound, text) = report?;
        println!("==> {}\n{text}", framework.name);
        good &= sound;
    }
    Ok(good)
}

/// Starts a server, judges it, and stops it.
fn judge(
    program: &Path,
    home: &Path,
    framework: &Framework,
    extra: &[String],
) -> Result<(bool, String), String> {
    let [port] = testkit::free_ports()?;
    let words: Vec<_> =
        framework.command.iter().map(|command| command.replace("PORT", &port.to_string())).collect();
    let first = if words[0].contains('/') { home.join(&words[0]) } else { words[0].clone().into() };
    let mut server = Command::new(&first);
    server.current_dir(home).args(&words[1..]).env("PYTHONDONTWRITEBYTECODE", "1");
    server.env("SHOP_LIVE_KEY", LIVE_KEY).env("SHOP_TEST_KEY", TEST_KEY);
    server.stdout(Stdio::null()).stderr(Stdio::null());
    let _listening = start_listening(&mut server, port)?;
    let keys = Keys { live: LIVE_KEY, test: TEST_KEY };
    let output = output(check(program, port, keys, &WITHOUT).args(extra).current_dir(home))?;
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    // Passed checks are reported by their number.
    let counts = text.lines().find(|line| line.contains("checks reported"));
    match counts.filter(|counts| output.status.success() && !counts.contains("warned")) {
        Some(counts) => Ok((true, format!("{counts}\n"))),
        None => Ok((false, text.into_owned())),
    }
}

/// Installs the Python packages; returns the reason if there is no Python.
fn install_python(home: &Path) -> Result<Option<String>, String> {
    if !exists("python3") {
        return Ok(Some("`python3` is not installed".to_owned()));
    }
    let stamp = home.join("python.installed");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == PYTHON.join(" ")) {
        return Ok(None);
    }
    println!("==> installing {}", PYTHON.join(" "));
    let venv = home.join("venv");
    let made = succeeds(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv));
    let pip = ["install", "--quiet", "--disable-pip-version-check"];
    if !made || !succeeds(Command::new(venv.join("bin/pip")).args(pip).args(PYTHON)) {
        return Err(
            "the frameworks for Python cannot be installed; they come from PyPI, and need venv".to_owned()
        );
    }
    write(&stamp, &PYTHON.join(" "))
}

/// Installs the Node.js packages; returns the reason if there is no Node.js.
fn install_node(home: &Path) -> Result<Option<String>, String> {
    if !exists("node") || !exists("npm") {
        return Ok(Some("`node` or `npm` is not installed".to_owned()));
    }
    let wanted = fs::read_to_string(home.join("package.json"))
        .map_err(|err| format!("cannot read `package.json` of the servers: {err}"))?;
    let stamp = home.join("node.installed");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(None);
    }
    println!("==> installing the packages of package.json");
    let npm = ["install", "--no-fund", "--no-audit", "--loglevel", "error"];
    if !succeeds(Command::new("npm").args(npm).current_dir(home)) {
        return Err("the frameworks for Node.js cannot be installed; they come from npm".to_owned());
    }
    write(&stamp, &wanted)
}

fn write(stamp: &Path, text: &str) -> Result<Option<String>, String> {
    fs::write(stamp, text).map_err(|err| format!("cannot write `{}`: {err}", stamp.display()))?;
    Ok(None)
}

/// Copies the files of a directory.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |err: std::io::Error| format!("cannot copy `{}`: {err}", from.display());
    fs::create_dir_all(to).map_err(failed)?;
    for entry in fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        fs::copy(entry.path(), to.join(entry.file_name())).map_err(failed)?;
    }
    Ok(())
}

fn exists(program: &str) -> bool {
    let version = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

fn succeeds(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}
