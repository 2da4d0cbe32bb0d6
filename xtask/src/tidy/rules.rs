//! Rules about single files: each is a pure function of path and text.
//!
//! The rules apply to this file, too, so it contains no complete example of a machine path or an ignored test.

/// The maximum number of lines of a Rust file.
const LINES_MAX: usize = 600;

/// Names of modules that do not describe a subject.
const VAGUE_NAMES: &[&str] = &["utils", "util", "helpers", "helper", "common", "manager", "misc"];
const JSON: &str = "serde_json";
const FLOATS: &[&str] = &["f32", "f64"];
/// First directories of paths that are specific to one machine.
const MACHINE_DIRECTORIES: &[&str] = &["home", "root", "Users", "work"];

type Rule = fn(&str, &str) -> Vec<Finding>;

const RULES: &[(&str, Rule)] = &[
    ("lines", lines),
    ("module_name", module_name),
    ("header", header),
    ("ignored_test", ignored_test),
    ("machine_path", machine_path),
    ("json_in_core", json_in_core),
    ("float_in_core", float_in_core),
];

#[derive(Debug, PartialEq, Eq)]
struct Finding {
    /// The line number, counted from 1.
    line: usize,
    message: String,
}

/// Returns the violations in one file, as `path:line: message (rule)`.
pub(crate) fn judge(path: &str, text: &str) -> Vec<String> {
    let apply = |(name, rule): &(&str, Rule)| -> Vec<String> {
        rule(path, text)
            .into_iter()
            .map(|finding| format!("{path}:{}: {} ({name})", finding.line, finding.message))
            .collect()
    };
    RULES.iter().flat_map(apply).collect()
}

fn lines(path: &str, text: &str) -> Vec<Finding> {
    let count = text.lines().count();
    if !is_rust(path) || count <= LINES_MAX {
        return Vec::new();
    }
    vec![Finding {
        line: count,
        message: format!("{count} lines; at most {LINES_MAX}, so split it into modules by subject"),
    }]
}

fn module_name(path: &str, _: &str) -> Vec<Finding> {
    let Some(module) = path.strip_suffix(".rs") else {
        return Vec::new();
    };
    let vague = module.split('/').filter(|name| VAGUE_NAMES.contains(name));
    let message = |name| format!("`{name}` does not describe a subject; name the module after its subject");
    vague.map(|name| Finding { line: 1, message: message(name) }).collect()
}

fn header(path: &str, text: &str) -> Vec<Finding> {
    let is_test = path.contains("/tests/") || path.ends_with("/tests.rs");
    let is_module = is_rust(path) && path.contains("/src/");
    if !is_module || is_test || text.starts_with("//!") {
        return Vec::new();
    }
    vec![Finding {
        line: 1,
        message: "no `//!` on the first line; state the content of the module".to_owned(),
    }]
}

fn ignored_test(path: &str, text: &str) -> Vec<Finding> {
    in_code(path, text, |code| {
        let is_ignored = code.trim_start().strip_prefix("#[").is_some_and(|rest| rest.starts_with("ignore"));
        is_ignored.then(|| "an ignored test proves nothing; fix it or delete it".to_owned())
    })
}

fn machine_path(_: &str, text: &str) -> Vec<Finding> {
    per_line(text, |line| {
        let found = MACHINE_DIRECTORIES.iter().find(|name| {
            let path = format!("/{name}/");
            // The name may also stand inside a longer path or a URL.
            let starts_path = |start: usize| {
                !line[..start]
                    .ends_with(|c: char| c.is_alphanumeric() || ['/', '.', '_', '-', '}', '*'].contains(&c))
            };
            line.match_indices(&path).any(|(start, _)| starts_path(start))
        })?;
        Some(format!("`/{found}/…` exists on one machine only; write a path from the root of the workspace"))
    })
}

fn json_in_core(path: &str, text: &str) -> Vec<Finding> {
    if !is_core(path) {
        return Vec::new();
    }
    in_code(path, text, |code| {
        let found = identifiers(code).any(|name| name == JSON);
        found.then(|| format!("`{JSON}` in the core; JSON belongs to `reference/wire`"))
    })
}

fn float_in_core(path: &str, text: &str) -> Vec<Finding> {
    if !is_core(path) {
        return Vec::new();
    }
    in_code(path, text, |code| {
        // The trait `Serializer` of serde requires these methods, even if they return an error.
        if code.contains("fn serialize_f32(self, _:") || code.contains("fn serialize_f64(self, _:") {
            return None;
        }
        let float = FLOATS.iter().find(|float| identifiers(code).any(|name| name == **float))?;
        Some(format!("`{float}` in the core; money, rates and time are exact"))
    })
}

fn is_rust(path: &str) -> bool {
    path.ends_with(".rs")
}

fn is_core(path: &str) -> bool {
    path.starts_with("reference/core/src/") && is_rust(path)
}

/// Returns a finding for each line for which `message_for` returns a message.
fn per_line(text: &str, message_for: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    text.split('\n')
        .enumerate()
        .filter_map(|(index, line)| message_for(line).map(|message| Finding { line: index + 1, message }))
        .collect()
}

/// Applies [`per_line`] to the lines of a Rust file without their comments.
fn in_code(path: &str, text: &str, message_for: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    if !is_rust(path) {
        return Vec::new();
    }
    per_line(text, |line| message_for(without_comment(line)))
}

/// Returns a line without its comment. The character before `//` distinguishes a comment from a URL.
fn without_comment(line: &str) -> &str {
    let is_comment = |start: usize| start == 0 || line[..start].ends_with(' ');
    match line.match_indices("//").find(|(start, _)| is_comment(*start)) {
        Some((start, _)) => &line[..start],
        None => line,
    }
}

/// Returns the identifiers and numbers of a line.
fn identifiers(line: &str) -> impl Iterator<Item = &str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = line;
    std::iter::from_fn(move || {
        let start = rest.find(is_word)?;
        let word = &rest[start..];
        let end = word.find(|c| !is_word(c)).unwrap_or(word.len());
        rest = &word[end..];
        Some(&word[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a file. `expected`: the lines and rules of the findings, such as `1 header, 3 ignored_test`.
    #[track_caller]
    fn check(path: &str, text: &str, expected: &str) {
        let found: Vec<String> = RULES
            .iter()
            .flat_map(|(name, rule)| {
                rule(path, text).into_iter().map(move |finding| format!("{} {name}", finding.line))
            })
            .collect();
        assert_eq!(found.join(", "), expected, "{path}");
    }

    const CORE: &str = "reference/core/src/charge.rs";

    #[test]
    fn a_tidy_file_has_no_findings() {
        check(CORE, "//! Charges.\n\npub struct Charge;\n", "");
        check("README.md", "Text.  \n\n\tcode\n", "");
    }

    #[test]
    fn a_file_has_at_most_600_lines() {
        let file = |lines: usize| format!("//! Long.\n{}", "\n".repeat(lines - 1));
        check(CORE, &file(600), "");
        check(CORE, &file(601), "601 lines");
        check("reference/core/src/data.csv", &file(601), "");
    }

    #[test]
    fn a_module_is_named_after_its_subject() {
        check("simulator/src/utils.rs", "//! x", "1 module_name");
        check("simulator/src/common/mod.rs", "//! x", "1 module_name");
        check("simulator/tests/helpers/mod.rs", "", "1 module_name");
        check("simulator/src/uncommon.rs", "//! x", "");
        check("scenarios/common.yaml", "", "");
    }

    #[test]
    fn a_module_starts_with_its_documentation() {
        check(CORE, "use std::fmt;\n//! Late.\n", "1 header");
        check(CORE, "", "1 header");
        check("simulator/src/chain/tests.rs", "use super::*;", "");
        check("simulator/src/chain/tests/invariants.rs", "use super::*;", "");
        check("simulator/tests/golden.rs", "use simulator;", "");
    }

    #[test]
    fn every_test_runs() {
        // Split, so that a search for ignored tests finds none here.
        let word = ["ign", "ore"].concat();
        check(CORE, &format!("//! x\n    #[{word}]\n"), "2 ignored_test");
        check(CORE, &format!("//! x\n#[{word} = \"slow\"]\n"), "2 ignored_test");
        check(CORE, &format!("//! x\n// An #[{word}] is not allowed.\n"), "");
    }

    #[test]
    fn a_path_of_one_machine_is_reported() {
        for name in MACHINE_DIRECTORIES {
            check("README.md", &format!("Run /{name}/me/bin/x"), "1 machine_path");
            check("a.toml", &format!("\n\npath = \"/{name}/me\""), "3 machine_path");
            check("README.md", &format!("See https://site.example/{name}/page and ./{name}/x"), "");
        }
    }

    #[test]
    fn the_core_does_not_use_json() {
        check(CORE, "//! x\nuse serde_json::Value;", "2 json_in_core");
        check(CORE, "//! x\nlet text = serde_json::to_string(&it);", "2 json_in_core");
        // The core may serialise its state, but not as JSON.
        check(CORE, "//! x\nuse serde::Serialize;\n#[derive(Clone, Serialize)]", "");
        check(CORE, "//! x\n// Not serde_json.\nstruct NotSerdeJson;", "");
        check("reference/wire/src/json.rs", "//! x\nuse serde_json::Value;", "");
        check("simulator/src/script.rs", "//! x\nuse serde_json::Value;", "");
    }

    #[test]
    fn the_core_has_no_floats() {
        check(CORE, "//! x\nfn rate() -> f64;", "2 float_in_core");
        check(CORE, "//! x\nfn serialize_f64(self, _: f64) -> Done {", "");
        check(CORE, "//! x\nconst F32: u8 = 0xf3; // no f32", "");
        check("simulator/src/draw.rs", "//! x\nfn chance() -> f64;", "");
    }

    #[test]
    fn a_finding_names_location_problem_and_rule() {
        assert_eq!(
            judge(CORE, "//! x\nlet a: f32;\n"),
            [
                "reference/core/src/charge.rs:2: `f32` in the core; money, rates and time are exact (float_in_core)"
            ]
        );
    }
}
