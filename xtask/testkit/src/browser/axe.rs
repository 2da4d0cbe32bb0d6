//! Checks the accessibility of pages with axe-core, which npm installs into the target directory.

use std::{io::Write, path::PathBuf, process::Command, sync::OnceLock};

use serde_json::Value;

use super::{Page, is_required};

/// The version of axe-core.
const VERSION: &str = "4.10.3";

/// Returns the script of axe-core; `None`, with a message, if it cannot be installed.
fn script() -> Option<&'static str> {
    static SCRIPT: OnceLock<Option<String>> = OnceLock::new();
    SCRIPT.get_or_init(install).as_deref()
}

/// Returns the directory for temporary files in the target directory.
fn temporary_directory() -> PathBuf {
    let program = std::env::current_exe().expect("a program has a path");
    program.ancestors().nth(3).expect("a test is in target/PROFILE/deps").join("tmp")
}

/// Installs axe-core if it is not installed yet, and returns its script. If npm cannot be started or fails, prints a
/// message and returns `None`; but panics if npm fails where a [browser is required](is_required).
fn install() -> Option<String> {
    let prefix = temporary_directory().join(format!("axe-core-{VERSION}"));
    let file = prefix.join("node_modules/axe-core/axe.min.js");
    if !file.exists() {
        std::fs::create_dir_all(&prefix).expect("the directory can be created");
        let npm = Command::new("npm")
            .args(["install", "--no-save", "--no-audit", "--no-fund", "--silent", "--prefix"])
            .arg(&prefix)
            .arg(format!("axe-core@{VERSION}"))
            .output();
        let problem = match npm {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Some("npm is not installed".to_owned())
            }
            Err(error) => Some(error.to_string()),
            Ok(output) if output.status.success() => None,
            Ok(output) => {
                let error = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(!is_required(), "npm could not fetch axe-core {VERSION}: {error}");
                Some(error)
            }
        };
        if let Some(problem) = problem {
            let _ =
                writeln!(std::io::stderr(), "NOT RUN, NO AXE-CORE: accessibility is not checked ({problem})");
            return None;
        }
    }
    Some(std::fs::read_to_string(&file).expect("npm installed the script"))
}

/// Asserts that the page violates no rule of axe-core, best practices included. Does nothing without axe-core.
pub async fn assert_accessible(page: &Page, page_name: &str) {
    let Some(script) = script() else { return };
    // The script has half a megabyte, so it is loaded once per document.
    if page.eval("typeof axe").await == "undefined" {
        page.eval(&format!("{script}; true")).await;
    }
    let violations = page
        .eval("axe.run(document, { resultTypes: ['violations'] }).then((result) => result.violations)")
        .await;
    let problems: Vec<String> = violations
        .as_array()
        .expect("a list of violations")
        .iter()
        .map(|violation| {
            let nodes = violation["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
            let elements: Vec<&str> = nodes.iter().filter_map(|node| node["html"].as_str()).take(3).collect();
            let reason = nodes.first().map(|node| node["failureSummary"].to_string()).unwrap_or_default();
            format!("{}: {} {elements:?} {reason}", text(violation, "id"), text(violation, "help"))
        })
        .collect();
    assert!(problems.is_empty(), "{page_name}:\n{}", problems.join("\n"));
}

/// Returns a text member of an object; empty if there is none.
fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}
