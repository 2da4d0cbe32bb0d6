//! The licences of all packages that are linked into the program. Each text occurs once, below the names of its
//! packages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::packages::{cargo, stdout_of};

/// The prefixes of the names of licence files, in lower case.
const LICENCE_PREFIXES: [&str; 5] = ["license", "licence", "copying", "notice", "copyright"];

/// The names of directories with third-party code in a package, which has its own licence.
const VENDOR_DIRECTORIES: [&str; 3] = ["depend", "third_party", "vendor"];

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

/// Returns the text with all licences for one platform.
///
/// # Errors
/// Cargo fails, a package states no licence, or a file cannot be read.
pub(super) fn dependency_licences(root: &Path, platform: &str) -> Result<String, String> {
    let linked = linked_packages(root, platform)?;
    let metadata_json = stdout_of(cargo(root).args(["metadata", "--locked", "--format-version", "1"]))?;
    let metadata: Metadata = serde_json::from_str(&metadata_json)
        .map_err(|err| format!("`cargo metadata` returned invalid JSON: {err}"))?;
    let mut notices = String::from("The program contains the following packages.\n\n");
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in &metadata.packages {
        let name = format!("{} {}", package.name, package.version);
        if metadata.workspace_members.contains(&package.id) || !linked.contains(&name) {
            continue;
        }
        let files = licence_texts(package.manifest_path.parent().unwrap_or(root))?;
        let Some(expression) = &package.license else {
            return Err(format!("{name} states no licence; an SPDX expression is required"));
        };
        notices.push_str(&format!("{name}: {expression}\n"));
        for text in files {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    let mut names_and_text: Vec<(Vec<String>, String)> =
        texts.into_iter().map(|(text, names)| (names, text)).collect();
    names_and_text.sort();
    for (names, text) in names_and_text {
        notices.push_str(&format!("\n{}\n{}\n\n{text}\n", "=".repeat(80), names.join(", ")));
    }
    Ok(notices)
}

/// Returns name and version of each package that is linked into the program.
fn linked_packages(root: &Path, platform: &str) -> Result<BTreeSet<String>, String> {
    let tree = stdout_of(
        cargo(root)
            .args(["tree", "--locked", "--package", "chargeproof", "--edges", "normal,no-proc-macro"])
            .args(["--target", platform, "--prefix", "none", "--format", "{p}"]),
    )?;
    // Each line is `name v1.2.3 (source)`. `cargo metadata` cannot be used: it also lists optional packages.
    let name_and_version = |line: &str| {
        let mut columns = line.split(' ');
        Some(format!("{} {}", columns.next()?, columns.next()?.strip_prefix('v')?))
    };
    tree.lines()
        .map(|line| {
            name_and_version(line).ok_or_else(|| format!("`cargo tree` printed an unknown line: `{line}`"))
        })
        .collect()
}

/// Returns the texts of the licence files of a package and of its vendored code.
fn licence_texts(directory: &Path) -> Result<Vec<String>, String> {
    let mut files = Vec::new();
    let mut directories = vec![(directory.to_owned(), false)];
    while let Some((directory, is_vendored)) = directories.pop() {
        let unread = |err| format!("cannot read `{}`: {err}", directory.display());
        for entry in fs::read_dir(&directory).map_err(unread)? {
            let path = entry.map_err(unread)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
            if path.is_dir() {
                if is_vendored || VENDOR_DIRECTORIES.contains(&&*name) {
                    directories.push((path, true));
                }
            } else if LICENCE_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
                files.push(path);
            }
        }
    }
    files.sort();
    let read_trimmed = |file: &PathBuf| {
        let text =
            fs::read_to_string(file).map_err(|err| format!("cannot read `{}`: {err}", file.display()))?;
        Ok(text.trim().to_owned())
    };
    files.iter().map(read_trimmed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_of_vendored_code_are_found() {
        let package = std::env::temp_dir().join(format!("chargeproof-licences-{}", std::process::id()));
        for (path, text) in [
            ("LICENSE", "one\n"),
            ("src/license.rs", "no terms"),
            ("depend/lib/COPYING", "two"),
            ("depend/lib/src/field.h", "code"),
        ] {
            let path = package.join(path);
            fs::create_dir_all(path.parent().expect("a file has a directory"))
                .expect("the directory can be created");
            fs::write(path, text).expect("the file can be written");
        }
        let found = licence_texts(&package);
        fs::remove_dir_all(&package).expect("the directory exists");
        assert_eq!(found, Ok(vec!["one".to_owned(), "two".to_owned()]));
    }
}
