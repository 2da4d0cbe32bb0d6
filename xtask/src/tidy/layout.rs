//! Rules about the existence of files.

use std::collections::BTreeMap;

/// The allowed entries of the root directory, besides files whose names start with a dot.
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

/// The list of disallowed functions in pure packages. Clippy reads one file per package and inherits nothing, so each
/// has a copy.
const PROHIBITIONS: &str = "reference/core/.clippy.toml";

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
    let Some(list) = files.get(PROHIBITIONS) else {
        return vec![format!("{PROHIBITIONS}: missing (prohibitions)")];
    };
    let others = files.iter().filter(|(path, text)| path.ends_with("/.clippy.toml") && *text != list);
    others
        .map(|(path, _)| format!("{path}: differs from {PROHIBITIONS}; they must be equal (prohibitions)"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree_with(extra: &[&str]) -> Vec<String> {
        TOP_LEVEL.iter().chain(extra).map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn dot_files_and_the_target_directory_may_stand_at_the_top() {
        assert!(top_level(&tree_with(&[".gitignore", ".ci", "target"])).is_empty());
    }

    #[test]
    fn anything_else_may_not() {
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
    fn the_lists_of_prohibitions_are_equal() {
        let files = |texts: &[(&str, &str)]| -> BTreeMap<String, String> {
            texts.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
        };
        let other = "simulator/.clippy.toml";
        // The list of the root directory applies to the other packages.
        let same = [(".clippy.toml", "lenient"), (PROHIBITIONS, "same"), (other, "same")];
        assert!(same_prohibitions(&files(&same)).is_empty());
        assert_eq!(
            same_prohibitions(&files(&[(PROHIBITIONS, "one"), (other, "two")])),
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
