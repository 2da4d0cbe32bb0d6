//! `cargo xtask openapi`: generates clients from the served `/openapi.json` with third-party tools, and tests them.

use std::path::Path;
use std::process::Command;

use testkit::RunningProgram;

use crate::served;
use crate::tools::{self, succeeds};

/// The exact packages.
const NODE: [&str; 4] = [
    "@stoplight/spectral-cli@6.16.3",
    "openapi-typescript@7.13.0",
    "openapi-fetch@0.17.0",
    "typescript@5.9.3",
];
const PYTHON: [&str; 1] = ["openapi-python-client==0.29.1"];

/// Runs the available tools and prints the skipped ones. Returns `true` if there are no findings and the server
/// still runs.
///
/// # Errors
/// The program cannot be built or started, or a tool cannot be started.
pub(crate) fn run(root: &Path) -> Result<bool, String> {
    let program = served::build(root)?;
    let mut served = served::start(&program, &["--rate-limit", "off"])?;
    let mut no_finding = true;
    let (node_home, python_home) = (root.join("target/openapi/node"), root.join("target/openapi/python"));
    if !tools::is_installed("node") || !tools::is_installed(&tools::npm_program()) {
        println!("skipped: Spectral and openapi-typescript, because node and npm are not installed");
    } else if let Err(reason) = tools::install_npm_packages(&node_home, &NODE) {
        println!("skipped: Spectral and openapi-typescript: {reason}");
    } else {
        no_finding &= check_with_node_tools(root, &node_home, &served)?;
    }
    if !tools::is_installed("python3") {
        println!("skipped: openapi-python-client, because python3 is not installed");
    } else {
        match tools::install_python_packages(&python_home, &PYTHON) {
            Ok(programs) => no_finding &= check_python_client(root, (&python_home, &programs), &served)?,
            Err(reason) => println!("skipped: openapi-python-client: {reason}"),
        }
    }
    if !served.is_running() {
        println!("error: the server has ended");
    }
    Ok(no_finding && served.is_running())
}

/// Checks that Spectral has no error or warning for the document, and that a client with its types compiles.
fn check_with_node_tools(root: &Path, home: &Path, served: &RunningProgram) -> Result<bool, String> {
    let settings = root.join("xtask/openapi");
    let document = format!("{}/openapi.json", served.value("url"));
    let program = |name: &str| {
        let mut command = Command::new(tools::node_program(home, name));
        command.current_dir(home);
        command
    };
    println!("==> spectral: no error and no warning");
    let mut no_finding = succeeds(
        program("spectral")
            .args(["lint", &document, "--fail-severity", "warn", "--ruleset"])
            .arg(settings.join("spectral.yaml")),
    )?;
    println!("==> openapi-typescript and openapi-fetch: types that compile strictly");
    let has_types = succeeds(program("openapi-typescript").args([&document, "--output", "api.ts"]))?;
    std::fs::copy(settings.join("shop.ts"), home.join("shop.ts"))
        .map_err(|err| format!("cannot copy `shop.ts`: {err}"))?;
    let strict = ["--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--noEmit"];
    let modules = ["--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler"];
    no_finding &= has_types && succeeds(program("tsc").args(strict).args(modules).arg("shop.ts"))?;
    Ok(no_finding)
}

/// Checks that a client is generated without a warning, and that it opens, lists, gets and cancels a charge.
fn check_python_client(
    root: &Path,
    (home, programs): (&Path, &Path),
    served: &RunningProgram,
) -> Result<bool, String> {
    let settings = root.join("xtask/openapi");
    let package = home.join("client");
    tools::create_empty_dir(&package)?;
    println!("==> openapi-python-client: a client that works");
    // The generator formats its output with a program in the same environment.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(programs.to_owned()).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(paths).map_err(|err| format!("cannot extend PATH: {err}"))?;
    let is_generated = succeeds(
        Command::new(programs.join("openapi-python-client"))
            .env("PATH", path)
            .args(["generate", "--url", &format!("{}/openapi.json", served.value("url"))])
            .args(["--meta", "none", "--fail-on-warning", "--overwrite", "--output-path"])
            .arg(package.join("shop_client")),
    )?;
    Ok(is_generated
        && succeeds(
            Command::new(programs.join("python"))
                .arg(settings.join("shop.py"))
                .env("PYTHONPATH", &package)
                .env("PYTHONDONTWRITEBYTECODE", "1")
                .env("CHARGEPROOF_URL", served.value("url"))
                .env("CHARGEPROOF_TEST_KEY", served.value("test_key")),
        )?)
}
