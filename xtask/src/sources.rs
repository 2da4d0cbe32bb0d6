//! The sources of the published packages, collected from `conformance/cli` and the rest of the workspace.

use std::fs;
use std::path::Path;

use crate::tools::{copy, create_empty_dir, read, write};

/// The tests below `xtask/worlds` that the guide and the README of the packages contain.
const EXAMPLES: [&str; 2] = ["pytest/test_shop.py", "vitest/shop.test.mjs"];

/// Writes the Python package `chargeproof` into `directory`.
pub(crate) fn write_python_package(root: &Path, directory: &Path) -> Result<(), String> {
    let package = directory.join("chargeproof");
    copy_files(&root.join("conformance/cli/python/chargeproof"), &package)?;
    copy(&root.join("reference/server/templates/verify/verify.py"), &package.join("_verify.py"))
}

/// Writes the files of the npm package into `directory`.
pub(crate) fn write_npm_package(root: &Path, directory: &Path) -> Result<(), String> {
    copy_files(&root.join("conformance/cli/npm"), directory)?;
    let verify = read(&root.join("reference/server/templates/verify/verify.js"))?;
    write(&directory.join("verify.js"), format!("{verify}\nmodule.exports = verify;\n"))
}

/// Returns the README of the packages. `files`: the URL of the repository's files, such as
/// `https://host/owner/name/blob/v1.0.0`; without it, links become plain text.
pub(crate) fn readme(root: &Path, files: Option<&str>) -> Result<String, String> {
    let mut text = read(&root.join("conformance/cli/PACKAGE.md"))?;
    for example in EXAMPLES {
        text = text.replace(&format!("{{{{{example}}}}}"), &read(&root.join("xtask/worlds").join(example))?);
    }
    Ok(match files {
        Some(files) => text.replace("](repository:", &format!("]({files}/")),
        None => without_links(&text),
    })
}

/// Removes the links into the repository and keeps their texts.
fn without_links(text: &str) -> String {
    let mut parts = text.split("](repository:");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        if let Some(open) = plain.rfind('[') {
            plain.remove(open);
        }
        plain.push_str(part.split_once(')').map_or(part, |(_, rest)| rest));
    }
    plain
}

/// Copies the files of a directory, without subdirectories, into another, which is emptied first.
pub(crate) fn copy_files(from: &Path, to: &Path) -> Result<(), String> {
    create_empty_dir(to)?;
    let unread = |err| format!("cannot read `{}`: {err}", from.display());
    for entry in fs::read_dir(from).map_err(unread)? {
        let entry = entry.map_err(unread)?;
        if entry.path().is_file() {
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is inside the workspace")
    }

    #[test]
    fn the_readme_has_the_tests_and_no_relative_link() {
        let readme = |files| readme(root(), files).expect("the texts exist");
        let linked = readme(Some("https://example.org/blob/v1"));
        assert!(linked.contains("](https://example.org/blob/v1/reference/WORLDS.md)"), "{linked}");
        let plain = readme(None);
        assert!(plain.contains("each test gets a world of its own"), "{plain}");
        for text in [linked, plain] {
            assert!(!text.contains("repository:") && !text.contains("{{"), "{text}");
            assert!(
                text.contains("def test_a_paid_charge") && text.contains("\"chargeproof/vitest\""),
                "{text}"
            );
        }
    }

    #[test]
    fn the_guide_contains_the_tests_that_are_run() {
        let guide = read(&root().join("reference/WORLDS.md")).expect("the guide is readable");
        let files = ["pytest/test_shop.py", "vitest/shop.test.mjs", "node/shop.test.mjs"]
            .map(|file| format!("xtask/worlds/{file}"));
        for file in files.iter().map(String::as_str).chain(["reference/server/tests/server/guide.rs"]) {
            let text = read(&root().join(file)).expect("the test file is readable");
            let example = text.split_once("// guide\n").map_or(text.as_str(), |(_, example)| example);
            assert!(guide.contains(example.trim_end()), "reference/WORLDS.md does not contain {file}");
        }
    }
}
