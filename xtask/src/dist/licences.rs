//! The licences of all packages that are linked into the program: each text once, below the packages that have it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::packages::{ask, cargo};

/// The starts of the names of licence files, in lower case.
const NAMES: [&str; 5] = ["license", "licence", "copying", "notice", "copyright"];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    manifest_path: PathBuf,
}

/// Returns the licence texts for one platform.
///
/// # Errors
/// Cargo fails, or a package has no licence.
pub(super) fn of_dependencies(root: &Path, platform: &str) -> Result<String, String> {
    let linked = linked(root, platform)?;
    let answer = ask(cargo(root).args(["metadata", "--locked", "--format-version", "1"]))?;
    let metadata: Metadata =
        serde_json::from_str(&answer).map_err(|err| format!("`cargo metadata` answers oddly: {err}"))?;
    let mut heads = String::from("The program contains the following packages.\n\n");
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in &metadata.packages {
        let name = format!("{} {}", package.name, package.version);
        if metadata.workspace_members.contains(&package.id) || !linked.contains(&name) {
            continue;
        }
        let files = terms(package.manifest_path.parent().unwrap_or(root))?;
        let Some(expression) = &package.license else {
            return Err(format!("{name} states no licence; an SPDX expression is needed"));
        };
        heads.push_str(&format!("{name}: {expression}\n"));
        for text in files {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    let mut bodies: Vec<(Vec<String>, String)> =
        texts.into_iter().map(|(text, names)| (names, text)).collect();
    bodies.sort();
    for (names, text) in bodies {
        heads.push_str(&format!("\n{}\n{}\n\n{text}\n", "=".repeat(80), names.join(", ")));
    }
    Ok(heads)
}

/// Returns name and version of each package that is linked into the program.
fn linked(root: &Path, platform: &str) -> Result<BTreeSet<String>, String> {
    let answer = ask(cargo(root)
        .args(["tree", "--locked", "--package", "chargeproof", "--edges", "normal,no-proc-macro"])
        .args(["--target", platform, "--prefix", "none", "--format", "{p}"]))?;
    // `name v1.2.3 (where)`; `cargo metadata` also lists optional packages that are not built.
    let read = |line: &str| {
        let mut words = line.split(' ');
        Some(format!("{} {}", words.next()?, words.next()?.strip_prefix('v')?))
    };
    answer
        .lines()
        .map(|line| read(line).ok_or_else(|| format!("`cargo tree` answers oddly: `{line}`")))
        .collect()
}

fn terms(directory: &Path) -> Result<Vec<String>, String> {
    let unread = |err| format!("cannot read `{}`: {err}", directory.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(unread)? {
        let entry = entry.map_err(unread)?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if NAMES.iter().any(|it| name.starts_with(it)) && entry.path().is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    files
        .iter()
        .map(|file| fs::read_to_string(file).map_err(unread))
        .map(|text| text.map(|it| it.trim().to_owned()))
        .collect()
}
