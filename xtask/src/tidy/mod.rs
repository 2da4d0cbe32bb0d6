//! Project rules that no lint checks.
//!
//! Reads the files and applies the rules, which are pure functions of path and text.

mod language;
mod layout;
mod links;
mod rules;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::modules;

/// Directories with a leading dot that belong to the project; editors create others.
const OWN_DOT_DIRECTORIES: &[&str] = &[".cargo", ".ci", ".github"];

/// Returns all violations in the workspace.
pub(crate) fn findings(root: &Path) -> Result<Vec<String>, String> {
    let mut files = BTreeMap::new();
    collect(root, "", &mut files).map_err(|err| format!("cannot read the workspace: {err}"))?;
    let top: Vec<String> = entries(root).map_err(|err| format!("cannot list the workspace: {err}"))?;

    let mut found = layout::top_level(&top);
    found.extend(layout::same_prohibitions(&files));
    found.extend(links::broken_links(&files));
    found.extend(language::indirect_openings(&files));
    found.extend(language::nonstandard_words(&files));
    for (path, text) in &files {
        found.extend(rules::judge(path, text));
    }
    found.extend(modules::findings(root)?);
    Ok(found)
}

fn entries(directory: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Reads all text files under `directory`, by their paths relative to the workspace, with `/` on every system.
fn collect(directory: &Path, prefix: &str, files: &mut BTreeMap<String, String>) -> std::io::Result<()> {
    for name in entries(directory)? {
        let on_disk = directory.join(&name);
        let path = format!("{prefix}{name}");
        if is_foreign(&path, on_disk.is_dir()) {
            continue;
        }
        if on_disk.is_dir() {
            collect(&on_disk, &format!("{path}/"), files)?;
        } else if let Ok(text) = String::from_utf8(fs::read(&on_disk)?) {
            files.insert(path, text);
        }
    }
    Ok(())
}

/// Returns `true` for build outputs, the Git directory and files of editors.
fn is_foreign(path: &str, is_directory: bool) -> bool {
    let is_own = !path.starts_with('.') || OWN_DOT_DIRECTORIES.contains(&path);
    // In a linked worktree `.git` is a file.
    path == ".git" || is_directory && (path == "target" || !is_own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_project_are_read() {
        for (path, is_directory, expected) in [
            ("reference", true, false),
            ("README.md", false, false),
            (".gitignore", false, false),
            (".ci", true, false),
            (".git", true, true),
            (".git", false, true),
            (".idea", true, true),
            ("target", true, true),
            ("scenarios/target", true, false),
        ] {
            assert_eq!(is_foreign(path, is_directory), expected, "{path}");
        }
    }
}
