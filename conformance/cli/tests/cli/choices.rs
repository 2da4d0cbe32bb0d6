//! The choices in `reference/CHOICES.md`: each has an id and a proof, which is a scenario or a test that fails if the
//! server chooses differently. Every id of a choice or a statement that a comment or an invariant cites exists.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use simulator::{invariant::Invariant, script::Script};
use testkit::files_below;

/// The keys of steps with an expectation. A transcript is not a proof, because `BLESS=1` rewrites it.
const EXPECTATIONS: [&str; 3] = ["expect:", "refused:", "walk:"];

/// A row of a table: `` | `open.charge.lock` | The rate is locked for 30 minutes. | [rate_is_locked](…) | ``.
struct Choice {
    id: String,
    text: String,
    /// The last cell: links to scenarios, or to a test file with the names of test functions.
    proof: String,
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Reads a file that must exist.
fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the rows of the tables of choices.
fn choices() -> Vec<Choice> {
    let text = read(&workspace().join("reference/CHOICES.md"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.strip_prefix("| `open.")?.trim_end_matches('|').split(" | ").collect();
        let [id, text, proof] = cells[..] else { panic!("a choice has an id, a text and its proof: {line}") };
        let cell = |cell: &str| cell.trim().to_owned();
        Some(Choice {
            id: format!("open.{}", id.trim_end_matches('`')),
            text: cell(text),
            proof: cell(proof),
        })
    };
    text.lines().filter_map(row).collect()
}

/// Returns the targets of the Markdown links in a string.
fn link_targets(text: &str) -> Vec<&str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target).collect()
}

/// Returns the strings in backticks.
fn in_backticks(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Returns the reason why the proof of a row is invalid; `None` if it is valid.
fn proof_error(choice: &Choice) -> Option<String> {
    let path = |target: &str| workspace().join("reference").join(target);
    let targets = link_targets(&choice.proof);
    if let Some(target) = targets.iter().find(|target| !path(target).is_file()) {
        return Some(format!("{target} does not exist"));
    }
    let (scenarios, tests): (Vec<&str>, Vec<&str>) =
        targets.into_iter().partition(|target| target.ends_with(".yaml"));
    for target in &scenarios {
        let script = Script::parse(target, &read(&path(target)));
        let yaml = script.unwrap_or_else(|error| panic!("{error}")).to_yaml();
        if !EXPECTATIONS.iter().any(|key| yaml.contains(key)) {
            return Some(format!("{target} has no expectation"));
        }
    }
    // The proof of a choice that no scenario can prove is a test file and test functions in it.
    let functions = in_backticks(&choice.proof);
    match tests[..] {
        [] if scenarios.is_empty() => Some("the proof is neither a scenario nor a test".to_owned()),
        [] => None,
        [file] if functions.is_empty() => Some(format!("the proof names no test in {file}")),
        [file] => {
            let source = read(&path(file));
            let missing = functions.into_iter().find(|name| !source.contains(&format!("fn {name}(")))?;
            Some(format!("{file} has no test `{missing}`"))
        }
        _ => Some("the proof names tests in several files".to_owned()),
    }
}

#[test]
fn every_choice_is_proved_by_a_scenario_or_a_test_that_can_fail() {
    let choices = choices();
    assert!(choices.len() > 100, "the tables were not recognised: {} rows", choices.len());
    let invalid: Vec<String> = choices
        .iter()
        .filter_map(|choice| Some(format!("{} ({}): {}", choice.id, choice.text, proof_error(choice)?)))
        .collect();
    assert!(invalid.is_empty(), "{}", invalid.join("\n"));
    let ids: BTreeSet<&String> = choices.iter().map(|choice| &choice.id).collect();
    assert_eq!(ids.len(), choices.len(), "two choices have the same id");
}

/// Returns the ids of the specification's statements, such as `events.id`, and of the choices.
fn statement_and_choice_ids() -> BTreeSet<String> {
    conformance::catalogue().into_keys().chain(choices().into_iter().map(|choice| choice.id)).collect()
}

#[test]
fn every_invariant_rests_on_statements_that_exist() {
    let known = statement_and_choice_ids();
    for invariant in Invariant::ALL {
        for id in invariant.rests_on().split(", ") {
            assert!(
                known.contains(id),
                "invariant {} rests on {id}, which does not exist",
                invariant.as_str()
            );
        }
    }
}

#[test]
fn every_statement_and_choice_that_a_comment_cites_exists() {
    let known = statement_and_choice_ids();
    let chapters: BTreeSet<&str> = known.iter().filter_map(|id| Some(id.split_once('.')?.0)).collect();
    // `auth.no_header` is a statement, `account.rs` a file.
    let is_citation = |word: &&str| {
        let chapter = word.split_once('.').map_or("", |(chapter, _)| chapter);
        let is_id = word.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'.'));
        is_id && !word.ends_with(".rs") && chapters.contains(chapter)
    };
    let mut cited: BTreeMap<String, PathBuf> = BTreeMap::new();
    let packages = ["reference", "simulator", "conformance"].map(|name| workspace().join(name));
    for path in packages.iter().flat_map(|package| files_below(package, "rs")) {
        let text = read(&path);
        let comments = text.lines().filter(|line| line.trim_start().starts_with("//"));
        for id in comments.flat_map(in_backticks).filter(is_citation) {
            cited.insert(id.to_owned(), path.clone());
        }
    }
    assert!(cited.len() >= 30, "the comments were not recognised: {cited:?}");
    for (id, path) in cited {
        assert!(
            known.contains(&id),
            "{} cites `{id}`, which neither the catalogue nor CHOICES.md has",
            path.display()
        );
    }
}
