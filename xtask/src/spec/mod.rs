//! `cargo xtask spec`: compares the catalogue of the conformance suite with the specification's text.
//!
//! The user provides the text. The repository contains only paraphrases of its sentences and their hashes.

mod coverage;
mod sentences;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use coverage::{Coverage, Statement};
use sentences::sentences;

/// The directory with the statements: one file for each chapter.
const CATALOGUE: &str = "conformance/model/requirements";

/// The file with the hashes and places of all sentences, without their text, for reports.
const PLACES: &str = "conformance/model/requirements/sentences.txt";

/// The options of the task.
#[derive(Args)]
pub(crate) struct SpecOptions {
    /// The text of the specification
    file: PathBuf,
    /// Prints the sentences with the hashes by which the catalogue cites them
    #[arg(long, conflicts_with = "places")]
    hashes: bool,
    /// Prints the hash, section and place of each sentence
    #[arg(long)]
    places: bool,
}

/// Compares the catalogue with the text, or with `--hashes` or `--places` lists the sentences. Returns `false` if the
/// comparison has findings or [`PLACES`] is out of date.
pub(crate) fn run(root: &Path, options: &SpecOptions) -> Result<bool, String> {
    let file = options.file.display();
    let text = fs::read_to_string(&options.file).map_err(|err| format!("cannot read `{file}`: {err}"))?;
    let sentences = sentences(&text);
    if sentences.is_empty() {
        return Err(format!("`{file}` has no sentence under a heading such as `## 1. Name`"));
    }
    if options.places {
        print!("{}", places(&sentences));
        return Ok(true);
    }
    if options.hashes {
        for sentence in &sentences {
            let (hash, place) = (sentence.hash(), &sentence.place);
            println!("{hash}  {:<4} {place:<14}  {}", sentence.section, sentence.text);
        }
        return Ok(true);
    }
    let coverage = Coverage::new(&sentences, &statements(&root.join(CATALOGUE))?);
    print!("{coverage}");
    let known = fs::read_to_string(root.join(PLACES)).unwrap_or_default();
    let is_current = known == places(&sentences);
    if !is_current {
        println!("`{PLACES}` is out of date; run: cargo xtask spec FILE --places > {PLACES}");
    }
    Ok(coverage.is_complete() && is_current)
}

/// Returns the content of [`PLACES`]: a comment, and a line for each sentence with its hash, section and place.
fn places(sentences: &[sentences::Sentence]) -> String {
    let mut out = "# Every sentence of the specification: its hash, its section and its place there. \
                   `cargo xtask spec FILE --places` prints it.\n"
        .to_owned();
    for sentence in sentences {
        out += &format!("{} {} {}\n", sentence.hash(), sentence.section, sentence.place);
    }
    out
}

/// Returns all statements of the catalogue by id.
fn statements(directory: &Path) -> Result<BTreeMap<String, Statement>, String> {
    let unreadable = |err| format!("cannot read `{}`: {err}", directory.display());
    let mut found = BTreeMap::new();
    for file in fs::read_dir(directory).map_err(unreadable)? {
        let path = file.map_err(unreadable)?.path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(unreadable)?;
        let chapters: BTreeMap<String, BTreeMap<String, Statement>> =
            toml::from_str(&text).map_err(|err| format!("`{}`: {err}", path.display()))?;
        for (chapter, statements) in chapters {
            let with_ids =
                statements.into_iter().map(|(name, statement)| (format!("{chapter}.{name}"), statement));
            found.extend(with_ids);
        }
    }
    Ok(found)
}
