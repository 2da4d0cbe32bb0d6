//! The choices in `reference/CHOICES.md`: every one has an id and is shown by a scenario that fails if it is broken, and
//! every id of a choice or a statement that is cited anywhere exists.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use simulator::{invariant::Invariant, script::Script};
use testkit::files_below;

/// The keys of a scenario that can fail. A transcript is no proof: `BLESS=1` rewrites it.
const EXPECTATIONS: [&str; 3] = ["expect:", "refused:", "walk:"];

/// A row of a table: `` | `open.charge.lock` | The rate is locked for 30 minutes. | [rate_is_locked](…) | ``.
struct Choice {
    id: String,
    text: String,
    shown_by: String,
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn choices() -> Vec<Choice> {
    let text = read(&workspace().join("reference/CHOICES.md"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.strip_prefix("| `open.")?.trim_end_matches('|').split(" | ").collect();
        let [id, text, shown_by] = cells[..] else {
            panic!("a choice has an id, a text and its proof: {line}")
        };
        let cell = |cell: &str| cell.trim().to_owned();
        Some(Choice {
            id: format!("open.{}", id.trim_end_matches('`')),
            text: cell(text),
            shown_by: cell(shown_by),
        })
    };
    text.lines().filter_map(row).collect()
}

/// Returns the targets of the Markdown links in a string.
fn links(text: &str) -> Vec<&str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target).collect()
}

/// Returns the strings in backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Returns the reason why the proof of a row is invalid; `None` if it is valid.
fn refuted(choice: &Choice) -> Option<String> {
    let path = |target: &str| workspace().join("reference").join(target);
    let targets = links(&choice.shown_by);
    if let Some(target) = targets.iter().find(|target| !path(target).is_file()) {
        return Some(format!("{target} does not exist"));
    }
    let (scenarios, tests): (Vec<&str>, Vec<&str>) =
        targets.into_iter().partition(|target| target.ends_with(".yaml"));
    for target in &scenarios {
        let script = Script::parse(target, &read(&path(target)));
        let written = script.unwrap_or_else(|error| panic!("{error}")).to_yaml();
        if !EXPECTATIONS.iter().any(|key| written.contains(key)) {
            return Some(format!("{target} expects nothing"));
        }
    }
    // A choice that no scenario can show names the file of a test, and then the functions.
    let functions = quoted(&choice.shown_by);
    match tests[..] {
        [] if scenarios.is_empty() => Some("it names neither a scenario nor a test".to_owned()),
        [] => None,
        [file] if functions.is_empty() => Some(format!("it names no test in {file}")),
        [file] => {
            let source = read(&path(file));
            let missing = functions.into_iter().find(|name| !source.contains(&format!("fn {name}(")))?;
            Some(format!("{file} has no test `{missing}`"))
        }
        _ => Some("it names tests in several files".to_owned()),
    }
}

#[test]
fn every_choice_is_shown_by_a_scenario_that_can_fail() {
    let choices = choices();
    assert!(choices.len() > 100, "the tables were not recognised: {} rows", choices.len());
    let wrong: Vec<String> = choices
        .iter()
        .filter_map(|choice| Some(format!("{} ({}): {}", choice.id, choice.text, refuted(choice)?)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let ids: BTreeSet<&String> = choices.iter().map(|choice| &choice.id).collect();
    assert_eq!(ids.len(), choices.len(), "an id is given twice");
}

/// Returns the ids of the specification's statements, such as `events.id`, and of the choices.
fn statements_and_choices() -> BTreeSet<String> {
    conformance::catalogue().into_keys().chain(choices().into_iter().map(|choice| choice.id)).collect()
}

#[test]
fn every_invariant_rests_on_statements_that_exist() {
    let known = statements_and_choices();
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
fn every_statement_and_choice_that_a_source_cites_exists() {
    let known = statements_and_choices();
    let chapters: BTreeSet<&str> = known.iter().filter_map(|id| Some(id.split_once('.')?.0)).collect();
    // `auth.no_header` is a statement, `account.rs` a file.
    let is_citation = |quoted: &&str| {
        let chapter = quoted.split_once('.').map_or("", |(chapter, _)| chapter);
        let is_id = quoted.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'.'));
        is_id && !quoted.ends_with(".rs") && chapters.contains(chapter)
    };
    let mut cited: BTreeMap<String, PathBuf> = BTreeMap::new();
    let packages = ["reference", "simulator", "conformance"].map(|name| workspace().join(name));
    for path in packages.iter().flat_map(|package| files_below(package, "rs")) {
        let text = read(&path);
        let comments = text.lines().filter(|line| line.trim_start().starts_with("//"));
        for id in comments.flat_map(quoted).filter(is_citation) {
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
