//! Replays the corpus: seeds, and inputs that once revealed a fault.

use std::fs;
use std::path::{Path, PathBuf};

use hostile::{TARGETS, Target};

/// Runs a target on the files of a directory and its subdirectories that are scenarios, HAR files or have no extension.
/// Returns their number.
fn feed_all(target: &Target, directory: &Path) -> usize {
    let entries = fs::read_dir(directory).unwrap_or_else(|err| panic!("{}: {err}", directory.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut count = 0;
    for file in files {
        if file.is_dir() {
            count += feed_all(target, &file);
        } else if file.extension().is_none_or(|extension| extension == "yaml" || extension == "har") {
            // The test harness shows this only if a target panics.
            println!("{}", file.display());
            (target.feed)(&fs::read(&file).unwrap());
            count += 1;
        }
    }
    count
}

/// Runs a target on its corpus.
#[track_caller]
fn check(name: &str) {
    let target = hostile::target(name).unwrap();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    assert!(feed_all(&target, &corpus) > 0, "{name} has no corpus");
}

#[test]
fn every_request_of_the_corpus_gets_a_valid_response() {
    check("request");
}

#[test]
fn scenarios_survive_writing_and_parsing() {
    check("scenario");
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    // There are about 200 files; a much lower number would mean that subdirectories were skipped.
    assert!(feed_all(&hostile::target("scenario").unwrap(), &scenarios) > 50);
}

#[test]
fn recordings_survive_writing_and_parsing() {
    check("recording");
}

#[test]
fn edited_recordings_are_judged() {
    check("judge");
}

#[test]
fn every_target_has_a_corpus_and_every_corpus_a_target() {
    let corpora = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")).unwrap();
    let mut corpora: Vec<String> =
        corpora.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    corpora.sort();
    let mut names = TARGETS.map(|target| target.name);
    names.sort_unstable();
    assert_eq!(corpora, names);
}
