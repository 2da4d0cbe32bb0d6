//! Checks the accessibility rules of axe-core on a page. Fetched by npm into the target directory, because it is not
//! part of the program.

use std::{io::Write, path::PathBuf, process::Command, sync::OnceLock};

use serde_json::Value;

use super::{Page, is_required};

const VERSION: &str = "4.10.3";

/// Returns the script; `None`, with a message, if npm is not installed.
fn script() -> Option<&'static str> {
    static SCRIPT: OnceLock<Option<String>> = OnceLock::new();
    SCRIPT.get_or_init(fetch).as_deref()
}

/// The directory for temporary files in the target directory, in which this test program is.
fn directory() -> PathBuf {
    let program = std::env::current_exe().expect("a program has a path");
    program.ancestors().nth(3).expect("a test is in target/PROFILE/deps").join("tmp")
}

fn fetch() -> Option<String> {
    let home = directory().join(format!("axe-core-{VERSION}"));
    let file = home.join("node_modules/axe-core/axe.min.js");
    if !file.exists() {
        std::fs::create_dir_all(&home).expect("the directory can be created");
        let npm = Command::new("npm")
            .args(["install", "--no-save", "--no-audit", "--no-fund", "--silent", "--prefix"])
            .arg(&home)
            .arg(format!("axe-core@{VERSION}"))
            .output();
        let problem = match npm {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => "npm is not installed".to_owned(),
            Err(error) => error.to_string(),
            Ok(output) if output.status.success() => String::new(),
            Ok(output) => {
                let error = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(!is_required(), "npm could not fetch axe-core {VERSION}: {error}");
                error
            }
        };
        if !problem.is_empty() {
            let _ =
                writeln!(std::io::stderr(), "NOT RUN, NO AXE-CORE: accessibility is not judged ({problem})");
            return None;
        }
    }
    Some(std::fs::read_to_string(&file).expect("npm installed it"))
}

/// Asserts that the page breaks no rule of axe-core, best practices included. Does nothing without axe-core.
pub async fn judge(page: &Page, what: &str) {
    let Some(script) = script() else { return };
    // The script has half a megabyte, so it is loaded once per document.
    if page.eval("typeof axe").await == "undefined" {
        page.eval(&format!("{script}; true")).await;
    }
    let found =
        page.eval("axe.run(document, { resultTypes: ['violations'] }).then((it) => it.violations)").await;
    let problems: Vec<String> = found
        .as_array()
        .expect("a list of violations")
        .iter()
        .map(|element| {
            let nodes = element["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
            let elements: Vec<&str> = nodes.iter().filter_map(|node| node["html"].as_str()).take(3).collect();
            let why = nodes.first().map(|node| node["failureSummary"].to_string()).unwrap_or_default();
            format!("{}: {} {elements:?} {why}", text(element, "id"), text(element, "help"))
        })
        .collect();
    assert!(problems.is_empty(), "{what}:\n{}", problems.join("\n"));
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}
