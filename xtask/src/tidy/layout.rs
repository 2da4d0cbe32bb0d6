//! Rules about the entries of the root directory, and about files that must be equal.

use std::collections::BTreeMap;

/// The required entries of the root directory. No other entry is allowed, except `target` and names with a leading dot.
const TOP_LEVEL: &[&str] = &[
    "CHANGELOG.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "benches",
    "conformance",
    "reference",
    "scenarios",
    "simulator",
    "xtask",
];

/// The file that disallows functions in pure packages, which use no clock, file or randomness. Clippy's
/// configuration of a package does not inherit from another, so each pure package has a copy.
const DISALLOWED_FUNCTIONS: &str = "reference/core/.clippy.toml";

/// Returns unexpected and missing entries of the root directory.
pub(crate) fn top_level(names: &[String]) -> Vec<String> {
    let is_expected = |name: &str| name == "target" || name.starts_with('.') || TOP_LEVEL.contains(&name);
    let unexpected = names.iter().filter(|name| !is_expected(name)).map(|name| {
        format!(
            "{name}: the top level is for {}; move it to a subdirectory (top_level)",
            TOP_LEVEL.join(", ")
        )
    });
    let missing = TOP_LEVEL
        .iter()
        .filter(|name| !names.iter().any(|known| known == *name))
        .map(|name| format!("{name}: missing at the top level (top_level)"));
    unexpected.chain(missing).collect()
}

/// Checks that all pure packages disallow the same clocks, files and randomness.
pub(crate) fn same_prohibitions(files: &BTreeMap<String, String>) -> Vec<String> {
    let Some(expected) = files.get(DISALLOWED_FUNCTIONS) else {
        return vec![format!("{DISALLOWED_FUNCTIONS}: missing (prohibitions)")];
    };
    let others = files.iter().filter(|(path, text)| path.ends_with("/.clippy.toml") && *text != expected);
    others
        .map(|(path, _)| {
            format!("{path}: differs from {DISALLOWED_FUNCTIONS}; they must be equal (prohibitions)")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree_with(extra: &[&str]) -> Vec<String> {
        TOP_LEVEL.iter().chain(extra).map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn dot_files_and_the_target_directory_are_allowed_at_the_top() {
        assert!(top_level(&tree_with(&[".gitignore", ".ci", "target"])).is_empty());
    }

    #[test]
    fn other_entries_at_the_top_are_reported() {
        let found = top_level(&tree_with(&["notes.txt"]));
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("notes.txt: the top level is for CHANGELOG.md, "), "{found:?}");
    }

    #[test]
    fn required_entries_must_exist() {
        let without_readme: Vec<String> =
            tree_with(&[]).into_iter().filter(|name| name != "README.md").collect();
        assert_eq!(top_level(&without_readme), ["README.md: missing at the top level (top_level)"]);
    }

    #[test]
    fn the_lists_of_disallowed_functions_must_be_equal() {
        let files = |texts: &[(&str, &str)]| -> BTreeMap<String, String> {
            texts.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
        };
        let other = "simulator/.clippy.toml";
        // The list in the root directory, for packages that are not pure, may differ.
        let same = [(".clippy.toml", "lenient"), (DISALLOWED_FUNCTIONS, "same"), (other, "same")];
        assert!(same_prohibitions(&files(&same)).is_empty());
        assert_eq!(
            same_prohibitions(&files(&[(DISALLOWED_FUNCTIONS, "one"), (other, "two")])),
            [
                "simulator/.clippy.toml: differs from reference/core/.clippy.toml; they must be equal (prohibitions)"
            ]
        );
        assert_eq!(
            same_prohibitions(&BTreeMap::new()),
            ["reference/core/.clippy.toml: missing (prohibitions)"]
        );
    }
}
