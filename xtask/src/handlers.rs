//! `cargo xtask handlers`: tests the webhook handlers of `/docs` by `chargeproof receiver try`.
//!
//! The files are fetched from a served `/docs`. A handler is skipped, with a message, if its language is not
//! installed or its registry cannot be reached.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::packages::stdout_of;
use crate::served;
use crate::target::{output, start_listening};
use crate::tools::{self, create_empty_dir, runs_with, write};

const SECRET: &str = "whsec_0123456789abcdefghijklmnopqrstuv";
/// The value of `--acted`: a command that counts in the handler's log how often it shipped the order of a charge.
const ACTED: &str = "grep -c \"ship the order of charge $CHARGEPROOF_CHARGE\" log || true";
/// The packages, at exact versions.
const PYTHON: [&str; 3] = ["Flask==3.1.2", "fastapi==0.165.0", "uvicorn==0.54.0"];
const NODE: [&str; 1] = ["express@5.1.0"];

struct Handler {
    /// The name of the file under `/docs/handlers`.
    file: &'static str,
    /// Returns the command that starts the handler on a port, or the reason why it cannot be started.
    command: fn(&Path, u16) -> Result<Command, String>,
}

const HANDLERS: [Handler; 5] = [
    Handler { file: "flask_hooks.py", command: flask },
    Handler { file: "fastapi_hooks.py", command: fastapi },
    Handler { file: "express_hooks.js", command: express },
    Handler { file: "hooks.php", command: php },
    Handler { file: "hooks.go", command: go },
];

/// Tests every handler that can be started. Returns `true` if each accepts valid deliveries and rejects invalid ones.
///
/// # Errors
/// The program cannot be built or served, or a file cannot be fetched.
pub(crate) fn run(root: &Path) -> Result<bool, String> {
    let program = served::build(root)?;
    let reference = served::start(&program, &[])?;
    let home = root.join("target/handlers");
    let mut all_passed = true;
    for handler in HANDLERS {
        println!("==> {}", handler.file);
        create_empty_dir(&home.join("handled"))?;
        let url = format!("{}/docs/handlers/{}", reference.value("url"), handler.file);
        let source = stdout_of(Command::new("curl").args(["--silent", "--fail", &url]))?;
        write(&home.join(handler.file), source)?;
        let [port] = testkit::free_ports()?;
        match (handler.command)(&home, port) {
            Err(reason) => println!("skipped: {reason}"),
            Ok(mut command) => all_passed &= try_handler(&program, &mut command, &home, port)?,
        }
    }
    Ok(all_passed)
}

/// Starts a handler, and sends it valid and invalid deliveries by `receiver try`. Returns `true` if that succeeds.
fn try_handler(program: &Path, command: &mut Command, home: &Path, port: u16) -> Result<bool, String> {
    command.current_dir(home).env("WEBHOOK_SECRET", SECRET).env("PORT", port.to_string());
    command.env("HANDLED_EVENTS", home.join("handled"));
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONUNBUFFERED", "1");
    let log =
        File::create(home.join("log")).map_err(|err| format!("cannot write the handler's log: {err}"))?;
    let log_for_stderr = log.try_clone().map_err(|err| format!("cannot write the handler's log: {err}"))?;
    command.stdout(log).stderr(log_for_stderr);
    let _listening = start_listening(command, port)?;
    let mut receiver_try = Command::new(program);
    receiver_try.args(["receiver", "try", &format!("http://127.0.0.1:{port}/hooks")]);
    receiver_try.args(["--secret-env", "WEBHOOK_SECRET", "--acted", ACTED]);
    let output = output(receiver_try.current_dir(home).env("WEBHOOK_SECRET", SECRET))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.success() {
        println!("{}", text.trim_end().lines().last().unwrap_or_default());
    } else {
        println!("{text}{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(output.status.success())
}

/// Returns a command for a program of the Python environment.
fn python(home: &Path, name: &str, arguments: &[&str]) -> Result<Command, String> {
    if !tools::is_installed("python3") {
        return Err("python3 is not installed".to_owned());
    }
    let mut command = Command::new(tools::install_python_packages(home, &PYTHON)?.join(name));
    command.args(arguments);
    Ok(command)
}

fn flask(home: &Path, port: u16) -> Result<Command, String> {
    python(&home.join("python"), "flask", &["--app", "flask_hooks", "run", "--port", &port.to_string()])
}

fn fastapi(home: &Path, port: u16) -> Result<Command, String> {
    python(&home.join("python"), "uvicorn", &["fastapi_hooks:app", "--port", &port.to_string()])
}

fn express(home: &Path, _port: u16) -> Result<Command, String> {
    if !tools::is_installed("node") || !tools::is_installed(&tools::npm_program()) {
        return Err("node or npm is not installed".to_owned());
    }
    tools::install_npm_packages(home, &NODE)?;
    let mut command = Command::new("node");
    command.arg("express_hooks.js");
    Ok(command)
}

fn php(_home: &Path, port: u16) -> Result<Command, String> {
    if !runs_with("php", "--version") {
        return Err("php is not installed".to_owned());
    }
    let mut command = Command::new("php");
    command.args(["-S", &format!("127.0.0.1:{port}"), "hooks.php"]);
    Ok(command)
}

fn go(home: &Path, _port: u16) -> Result<Command, String> {
    if !runs_with("go", "version") {
        return Err("go is not installed".to_owned());
    }
    let executable: PathBuf = home.join("hooks");
    stdout_of(Command::new("go").current_dir(home).arg("build").arg("-o").arg(&executable).arg("hooks.go"))?;
    Ok(Command::new(executable))
}
