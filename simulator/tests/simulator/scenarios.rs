//! Plays every file under `scenarios/` in this process and compares it with its transcript.
//!
//! `BLESS=1 cargo test -p simulator --test simulator scenarios` rewrites the schema and the transcripts.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use serde_json::Value;
use simulator::{
    play::{LocalStage, PlaySummary, golden, play},
    script::{Script, schema},
};
use testkit::files_below;

/// Seeds with which every scenario without its own seed is played. Their number multiplies the time of the test.
const OTHER_SEEDS: [u64; 3] = [2, 30, u64::MAX];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios")
}

fn is_blessing() -> bool {
    std::env::var_os("BLESS").is_some()
}

/// Returns every scenario with its text, sorted by path.
pub(crate) fn scenarios() -> Vec<(PathBuf, String)> {
    let with_text = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a scenario can be read");
        (path, text)
    };
    files_below(&directory(), "yaml").into_iter().map(with_text).collect()
}

/// Returns the path from the root of the workspace, for messages.
fn display_path(path: &Path) -> String {
    let inside = path.strip_prefix(directory()).expect("a scenario lies under scenarios/");
    format!("scenarios/{}", inside.to_string_lossy().replace('\\', "/"))
}

/// Compares a golden file with the actual content, or rewrites it if `BLESS` is set.
fn compare(path: &Path, actual: &str) -> Result<(), String> {
    if is_blessing() {
        fs::write(path, actual).expect("scenarios/ can be written");
        return Ok(());
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    match golden::compare(&expected, actual) {
        None => Ok(()),
        Some(diff) => Err(format!("{} differs; BLESS=1 rewrites it\n{diff}", display_path(path))),
    }
}

fn play_file(path: &Path, text: &str) -> Result<PlaySummary, String> {
    let script = Script::parse(&display_path(path), text).map_err(|error| error.to_string())?;
    play(&script, None, &mut LocalStage::new()).map_err(|error| error.to_string())
}

/// The results of all scenarios, in the order of [`scenarios`].
static RESULTS: LazyLock<Vec<Result<PlaySummary, String>>> =
    LazyLock::new(|| scenarios().iter().map(|(path, text)| play_file(path, text)).collect());

/// Writing a scenario to a file and parsing it back changes nothing.
#[test]
fn a_rewritten_scenario_has_the_same_transcript() {
    for (path, text) in scenarios() {
        let script = Script::parse(&display_path(&path), &text).unwrap_or_else(|error| panic!("{error}"));
        let written = script.to_yaml();
        let again = play_file(&path, &written).unwrap_or_else(|error| panic!("{error}\n{written}"));
        if !is_blessing() {
            let golden =
                fs::read_to_string(path.with_extension("transcript")).expect("the scenario has a transcript");
            assert_eq!(again.transcript, golden, "{}\n{written}", display_path(&path));
        }
    }
}

#[test]
fn every_scenario_passes_and_matches_its_transcript() {
    let found = scenarios();
    assert!(!found.is_empty(), "there are scenarios");
    let failures: Vec<String> = found
        .iter()
        .zip(&*RESULTS)
        .filter_map(|((path, _), result)| {
            let result = result.as_ref().map_err(Clone::clone);
            result.and_then(|result| compare(&path.with_extension("transcript"), &result.transcript)).err()
        })
        .collect();
    assert!(failures.is_empty(), "{} of {} failed\n\n{}", failures.len(), found.len(), failures.join("\n\n"));
}

#[test]
fn a_scenario_played_twice_has_the_same_digest() {
    for ((path, text), result) in scenarios().iter().zip(&*RESULTS) {
        let digest = |result: &Result<PlaySummary, String>| result.clone().map(|result| result.digest);
        assert_eq!(digest(result), digest(&play_file(path, text)), "{}", display_path(path));
    }
}

/// Expectations must hold for every seed. A file that depends on its seed has `seed:`.
#[test]
fn expectations_hold_under_other_seeds() {
    for (path, text) in
        scenarios().iter().filter(|(_, text)| !text.lines().any(|line| line.starts_with("seed:")))
    {
        let script = Script::parse(&display_path(path), text).unwrap_or_else(|error| panic!("{error}"));
        for seed in OTHER_SEEDS {
            play(&script, Some(seed), &mut LocalStage::new())
                .unwrap_or_else(|error| panic!("with seed {seed}\n{error}"));
        }
    }
}

#[test]
fn every_transcript_belongs_to_a_scenario() {
    for (path, _) in scenarios() {
        let directory = path.parent().expect("a file lies in a directory");
        for entry in fs::read_dir(directory).expect("scenarios/ can be listed") {
            let entry = entry.expect("the directory entries can be read").path();
            if entry.extension().is_some_and(|extension| extension == "transcript") {
                assert!(entry.with_extension("yaml").is_file(), "{} has no scenario", display_path(&entry));
            }
        }
    }
}

#[test]
fn the_published_schema_is_current() {
    compare(&directory().join("scenario.schema.json"), &schema()).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn every_scenario_fits_the_schema() {
    let schema: Value = serde_json::from_str(&schema()).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the JSON Schema is valid");
    for (path, text) in scenarios() {
        let value = simulator::script::parse_untyped(&text).expect("a scenario is YAML");
        let errors: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| format!("{} at {}", error, error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{}: {}", display_path(&path), errors.join("; "));
    }
}

/// Returns the examples in the README's tables: text in back quotes that begins with the name of a step.
fn examples<'a>(readme: &'a str, names: &[&str]) -> Vec<&'a str> {
    let rows = readme.lines().filter(|line| line.starts_with("| "));
    let codes = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    let is_example = |code: &&str| {
        let name = code.split_once(':').map_or(*code, |(name, _)| name);
        names.contains(&name) && (code.contains(": ") || *code == "restart")
    };
    codes.filter(is_example).collect()
}

#[test]
fn the_readme_shows_every_step_and_its_examples_fit_the_schema() {
    let readme = fs::read_to_string(directory().join("README.md")).expect("the README can be read");
    let mut schema: Value = serde_json::from_str(&schema()).expect("the schema is JSON");
    let alternatives =
        schema.pointer("/$defs/Step/oneOf").and_then(Value::as_array).expect("a step has alternatives");
    let names: Vec<&str> = alternatives
        .iter()
        .map(|step| step.pointer("/required/0").or_else(|| step.get("const")))
        .map(|name| name.and_then(Value::as_str).expect("each alternative has a name"))
        .collect();
    let examples = examples(&readme, &names);
    for name in names {
        let is_example_of_step =
            |example: &&str| example.split_once(':').map_or(*example, |(name, _)| name) == name;
        assert!(examples.iter().any(is_example_of_step), "the README has no example of {name}");
    }
    let definitions = schema["$defs"].take();
    let step = serde_json::json!({ "$defs": definitions, "$ref": "#/$defs/Step" });
    let validator = jsonschema::validator_for(&step).expect("the JSON Schema is valid");
    for example in examples {
        let value =
            simulator::script::parse_untyped(example).unwrap_or_else(|| panic!("`{example}` is not YAML"));
        assert!(validator.is_valid(&value), "`{example}` does not fit the schema");
    }
}
