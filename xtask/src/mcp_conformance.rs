//! `cargo xtask mcp-conformance`: runs the official MCP conformance suite on the served `/mcp`.

use std::path::Path;
use std::process::Command;

use crate::served;
use crate::tools::{self, succeeds};

/// The exact packages: the suite, a pre-release of it for revision 2026-07-28, and the Node.js that both require.
const TOOLS: [&str; 3] = [
    "@modelcontextprotocol/conformance@0.1.16",
    "next@npm:@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "node@22.23.3",
];
const NODE: &str = "node_modules/node/bin/node";

/// A run of one version of the suite.
struct SuiteRun {
    title: &'static str,
    suite: &'static str,
    options: &'static [&'static str],
    /// The file in `xtask/mcp` with the expected failures.
    baseline: &'static str,
}

const SUITE_RUNS: [SuiteRun; 2] = [
    SuiteRun {
        title: "revisions 2025-06-18 and 2025-11-25",
        suite: "node_modules/@modelcontextprotocol/conformance/dist/index.js",
        options: &[],
        baseline: "baseline.yml",
    },
    SuiteRun {
        title: "revision 2026-07-28",
        suite: "node_modules/next/dist/index.js",
        options: &["--suite", "all", "--spec-version", "2026-07-28"],
        baseline: "baseline-2026-07-28.yml",
    },
];

/// Runs both versions of the suite with `extra` arguments. Returns `true` if the results match the baselines and
/// the server still runs.
pub(crate) fn run(root: &Path, extra: &[String]) -> Result<bool, String> {
    let home = root.join("target/mcp-conformance");
    tools::install_npm_packages(&home, &TOOLS)?;
    let program = served::build(root)?;
    let mut served = served::start(&program, &["--rate-limit", "off"])?;
    let settings = root.join("xtask/mcp");
    let mut as_expected = true;
    for suite_run in SUITE_RUNS {
        println!("==> {}; exceptions are listed in xtask/mcp/{}", suite_run.title, suite_run.baseline);
        let mut command = Command::new(home.join(NODE));
        command
            .current_dir(&home)
            .env("MCP_SERVER_KEY", served.value("test_key"))
            // The suite does not support API keys: this module adds one to each request.
            .arg("--import")
            .arg(settings.join("bearer.mjs"))
            .arg(suite_run.suite)
            .args(["server", "--url", &format!("{}/mcp", served.value("url"))])
            .args(suite_run.options)
            .arg("--expected-failures")
            .arg(settings.join(suite_run.baseline))
            .args(extra);
        as_expected &= succeeds(&mut command)?;
    }
    if !served.is_running() {
        println!("error: the server has ended");
    }
    Ok(as_expected && served.is_running())
}
