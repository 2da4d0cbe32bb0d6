//! Table-driven tests of command lines and their output.

use std::{collections::BTreeMap, fs};

use serde::Deserialize;

use crate::support::{output_of, program, text};

/// The cases of one test.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseGroup {
    /// The first words of every command line.
    #[serde(default)]
    start: String,
    #[serde(default)]
    is_stdout_empty: bool,
    /// The files of every case: content by path.
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cases: Vec<CommandCase>,
}

/// A command line with the expected output and exit code.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandCase {
    /// The command line after `start`. A no-break space stands for a space within an argument.
    run: String,
    /// The part that the output must contain.
    #[serde(rename = "says")]
    expected_part: String,
    #[serde(default = "usage_code")]
    code: i32,
    #[serde(default)]
    files: BTreeMap<String, String>,
}

fn usage_code() -> i32 {
    2
}

/// Runs the command lines of `cases.toml` with this name.
#[track_caller]
pub(crate) fn check_cases(name: &str) {
    let mut groups: BTreeMap<String, CaseGroup> =
        toml::from_str(include_str!("cases.toml")).expect("cases.toml is valid");
    let group = groups.remove(name).unwrap_or_else(|| panic!("cases.toml has no {name}"));
    assert!(!group.cases.is_empty(), "{name} has no case");
    group.cases.iter().for_each(|case| run_case(&group, case));
}

#[track_caller]
fn run_case(group: &CaseGroup, case: &CommandCase) {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in group.files.iter().chain(&case.files) {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().expect("the path has a parent")).unwrap();
        fs::write(path, content).unwrap();
    }
    let line = format!("{} {}", group.start, case.run);
    let arguments = line.split(' ').filter(|word| !word.is_empty()).map(|word| word.replace('\u{a0}', " "));
    let output = program(directory.path()).args(arguments).envs(&group.env).output().unwrap();
    let printed = output_of(&output);
    assert_eq!(output.status.code(), Some(case.code), "{line}: {printed}");
    assert!(printed.contains(&case.expected_part), "{line}: {:?} in {printed}", case.expected_part);
    assert!(!group.is_stdout_empty || output.stdout.is_empty(), "{line}: {}", text(&output.stdout));
}
