//! Commit subjects: imperative, with a capital letter first, at most 72 characters, without a full stop.
//!
//! [`findings`] is a step of `ci` for new commits; [`check_file`] is the `commit-msg` hook in `.github/hooks`.

use std::path::Path;
use std::process::Command;

const SUBJECT_CHARS_MAX: usize = 72;
/// The last commit before the rule. Later ones are checked.
const LAST_EXEMPT: &str = "4c9487923014fac2fa88bf112204e369db805df9";
/// First words that are not verbs: articles, pronouns, adverbs, numerals and question words.
const NOT_VERBS: &[&str] = &[
    "A", "All", "An", "Every", "Each", "Here", "How", "It", "Its", "No", "Nobody", "Nothing", "One", "Our",
    "That", "The", "There", "These", "This", "Those", "Three", "Two", "What", "When", "Where", "Whether",
    "Which", "Who", "Whoever", "Why",
];

/// Returns a finding for each new commit whose subject breaks the rule.
///
/// # Errors
/// git cannot be started, or this is not a repository.
pub(crate) fn findings(root: &Path) -> Result<Vec<String>, String> {
    let log = |range: &str| -> Result<Option<String>, String> {
        let mut git = Command::new("git");
        git.args(["log", "--no-merges", "--format=%h %s", range]).current_dir(root);
        let output = git.output().map_err(|err| format!("cannot start git: {err}"))?;
        Ok(output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned()))
    };
    // A shallow clone does not contain `LAST_EXEMPT`, so only the newest commit is checked.
    let subjects = match log(&format!("{LAST_EXEMPT}..HEAD"))? {
        Some(subjects) => subjects,
        None => log("-1")?.ok_or("git cannot list the commits of this directory")?,
    };
    Ok(subjects
        .lines()
        .filter_map(|line| {
            let (hash, subject) = line.split_once(' ')?;
            broken_rule(subject).map(|broken_rule| format!("commit {hash}: {broken_rule}"))
        })
        .collect())
}

/// Checks the message file that git passes to the `commit-msg` hook. Returns `false` after printing the broken rule.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn check_file(file: &Path) -> Result<bool, String> {
    let message =
        std::fs::read_to_string(file).map_err(|err| format!("cannot read `{}`: {err}", file.display()))?;
    let broken_rule = broken_rule(message.lines().next().unwrap_or_default());
    if let Some(broken_rule) = &broken_rule {
        eprintln!("{broken_rule}");
    }
    Ok(broken_rule.is_none())
}

/// Returns the rule that a subject breaks, as a message.
fn broken_rule(subject: &str) -> Option<String> {
    let count = subject.chars().count();
    let first = subject.split(' ').next().unwrap_or_default();
    let first_word = first.trim_end_matches([':', ',', '\'']);
    if count > SUBJECT_CHARS_MAX {
        Some(format!("`{subject}` has {count} characters; a subject has at most {SUBJECT_CHARS_MAX}"))
    } else if first.starts_with(char::is_lowercase) {
        Some(format!("`{subject}` begins with a small letter; begin with a capital"))
    } else if !first.starts_with(char::is_uppercase)
        || NOT_VERBS.contains(&first_word)
        || first.contains("'s")
    {
        Some(format!(
            "`{subject}` does not begin with a verb; write it as an order: `Evict idle connections`"
        ))
    } else if subject.ends_with('.') {
        Some(format!("`{subject}` ends with a full stop; a subject has none"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_imperative_capitalized_short_subjects_without_a_full_stop_are_accepted() {
        for good in [
            "Evict idle connections that wait for a body",
            "Test the core at its boundaries",
            &"E".repeat(72),
        ] {
            assert_eq!(broken_rule(good), None, "{good}");
        }
        for (bad, expected) in [
            ("A record that somebody looks at is copied", "does not begin with a verb"),
            ("What must not be shown has one place", "does not begin with a verb"),
            ("fix paging", "begins with a small letter"),
            ("Nobody's key is shown", "does not begin with a verb"),
            ("Format.", "full stop"),
            ("", "does not begin with a verb"),
            (&"E".repeat(73), "73 characters"),
        ] {
            assert!(broken_rule(bad).is_some_and(|broken_rule| broken_rule.contains(expected)), "{bad}");
        }
    }
}
