//! Compares the catalogue of the conformance suite with the specification's text.
//!
//! The text is the operator's own file. The repository holds our wording of it and hashes of its sentences.

mod coverage;
mod sentences;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use coverage::{Coverage, Entry};
use sentences::sentences;

/// One file of statements per chapter.
const CATALOGUE: &str = "conformance/suite/requirements";

const USAGE: &str = "`spec` takes the specification's text, then perhaps `--hashes`";

/// Whether the catalogue covers the text, or with `--hashes` only what there is to cover.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<bool, String> {
    let (file, is_list) = match arguments {
        [file] if !file.starts_with('-') => (file, false),
        [file, "--hashes"] | ["--hashes", file] => (file, true),
        [] => return Err(format!("no text to compare with; {USAGE}")),
        _ => return Err(format!("`{}` is not understood; {USAGE}", arguments.join(" "))),
    };
    let text = fs::read_to_string(file).map_err(|err| format!("cannot read `{file}`: {err}"))?;
    let sentences = sentences(&text);
    if sentences.is_empty() {
        return Err(format!("`{file}` has no sentence under a heading such as `## 1. Name`"));
    }
    if is_list {
        for it in &sentences {
            println!("{}  {:<4} {:<14}  {}", it.hash(), it.section, it.place, it.text);
        }
        return Ok(true);
    }
    let coverage = Coverage::of(&sentences, &entries(&root.join(CATALOGUE))?);
    print!("{coverage}");
    Ok(coverage.is_complete())
}

/// Every statement of the catalogue by its name.
fn entries(directory: &Path) -> Result<BTreeMap<String, Entry>, String> {
    let unreadable = |err| format!("cannot read `{}`: {err}", directory.display());
    let mut found = BTreeMap::new();
    for file in fs::read_dir(directory).map_err(unreadable)? {
        let path = file.map_err(unreadable)?.path();
        if path.extension().is_none_or(|it| it != "toml") {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(unreadable)?;
        let chapters: BTreeMap<String, BTreeMap<String, Entry>> =
            toml::from_str(&text).map_err(|err| format!("`{}`: {err}", path.display()))?;
        for (chapter, statements) in chapters {
            found.extend(statements.into_iter().map(|(name, it)| (format!("{chapter}.{name}"), it)));
        }
    }
    Ok(found)
}
