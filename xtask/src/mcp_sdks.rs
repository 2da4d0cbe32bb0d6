//! `cargo xtask mcp-sdks`: calls the served `/mcp` with the official MCP SDKs.
//!
//! The clients validate each result against the output schema of its tool, so invalid results fail here.

use std::path::Path;
use std::process::Command;

use testkit::RunningProgram;

use crate::served;
use crate::tools::{self, succeeds};

/// The npm packages, at exact versions: both generations of the TypeScript SDK.
const NODE: [&str; 2] = ["@modelcontextprotocol/sdk@1.32.2", "@modelcontextprotocol/client@2.4.0"];
/// The modules of each SDK: one, or one for the client and one for the transport.
const TYPESCRIPT_SDKS: [(&str, &[&str]); 2] = [
    (
        NODE[0],
        &["@modelcontextprotocol/sdk/client/index.js", "@modelcontextprotocol/sdk/client/streamableHttp.js"],
    ),
    (NODE[1], &["@modelcontextprotocol/client"]),
];
/// The package from PyPI, at an exact version.
const PYTHON: [&str; 1] = ["mcp==2.3.0"];

/// Runs the available clients and prints the skipped ones. Returns `true` if all succeeded and the server still runs.
///
/// # Errors
/// The program cannot be built or started, or a client cannot be started.
pub(crate) fn run(root: &Path) -> Result<bool, String> {
    let program = served::build(root)?;
    let mut served = served::start(&program, &["--rate-limit", "off"])?;
    let (node_home, python_home) = (root.join("target/mcp-sdks/node"), root.join("target/mcp-sdks/python"));
    let mut all_succeeded = true;
    if !tools::is_installed("node") || !tools::is_installed(&tools::npm_program()) {
        println!("skipped: the TypeScript SDKs, because node and npm are not installed");
    } else if let Err(reason) = tools::install_npm_packages(&node_home, &NODE) {
        println!("skipped: the TypeScript SDKs: {reason}");
    } else {
        all_succeeded &= run_typescript_clients(root, &node_home, &served)?;
    }
    if !tools::is_installed("python3") {
        println!("skipped: the Python SDK, because python3 is not installed");
    } else {
        match tools::install_python_packages(&python_home, &PYTHON) {
            Ok(programs) => {
                println!("==> {}", PYTHON[0]);
                let mut client = Command::new(programs.join("python"));
                all_succeeded &=
                    succeeds(with_server_env(&served, client.arg(root.join("xtask/mcp/sdk.py"))))?;
            }
            Err(reason) => println!("skipped: the Python SDK: {reason}"),
        }
    }
    if !served.is_running() {
        println!("error: the server has ended");
    }
    Ok(all_succeeded && served.is_running())
}

/// Runs the client with each TypeScript SDK. Returns `true` if all succeeded.
fn run_typescript_clients(root: &Path, home: &Path, served: &RunningProgram) -> Result<bool, String> {
    // Node finds packages in the directory of the script.
    std::fs::copy(root.join("xtask/mcp/sdk.mjs"), home.join("sdk.mjs"))
        .map_err(|err| format!("cannot copy `sdk.mjs`: {err}"))?;
    let mut all_succeeded = true;
    for (name, modules) in TYPESCRIPT_SDKS {
        println!("==> {name}");
        let mut client = Command::new("node");
        all_succeeded &=
            succeeds(with_server_env(served, client.current_dir(home).arg("sdk.mjs").args(modules)))?;
    }
    Ok(all_succeeded)
}

/// Adds the address and the test key of the server to a command's environment.
fn with_server_env<'c>(served: &RunningProgram, command: &'c mut Command) -> &'c mut Command {
    let url = format!("{}/mcp", served.value("url"));
    command.env("MCP_SERVER_URL", url).env("MCP_SERVER_KEY", served.value("test_key"))
}
