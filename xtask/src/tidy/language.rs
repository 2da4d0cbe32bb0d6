//! Rules about language.
//!
//! The first sentence of a doc comment names the thing ("The number of …", "Returns …"). An indirect question
//! ("What is left") makes the reader work out the answer. Identifiers, comments and messages use standard words, so
//! that a reader has no vocabulary to learn first.

use std::collections::BTreeMap;

/// First words of an indirect question, a condition, or a sentence with an indefinite subject.
const OPENINGS: [&str; 15] = [
    "How", "If", "Nobody", "Nothing", "Somebody", "What", "When", "Where", "Whether", "Which", "Who",
    "Whoever", "Whom", "Whose", "Why",
];

/// A word to avoid, its replacement, and the maximum number of occurrences in Rust files.
struct NonstandardWord {
    word: &'static str,
    replacement: &'static str,
    occurrences_max: usize,
}

const fn avoid(word: &'static str, replacement: &'static str, occurrences_max: usize) -> NonstandardWord {
    NonstandardWord { word, replacement, occurrences_max }
}

/// All nonstandard words. Lower the maximum of a word after replacing occurrences.
const WORDS: [NonstandardWord; 24] = [
    avoid("told", "recorded, reported or stated", 0),
    avoid("tell", "report, state or distinguish", 0),
    avoid("tells", "reports, states or distinguishes", 0),
    avoid("teller", "the writer or reporter of what it reports", 0),
    avoid("hear", "receive", 0),
    avoid("heard", "received", 0),
    avoid("hears", "receives", 0),
    avoid("somebody", "the actor: the client, the customer, the operator", 2),
    avoid("nobody", "the actor, or `not`: 'is not read', 'unused'", 28),
    avoid("everybody", "the actors: all clients, all accounts", 5),
    avoid("whoever", "the actor: a client that …", 1),
    avoid("looker", "observer", 0),
    avoid("lookers", "observers", 0),
    avoid("stranger", "the unknown or foreign thing itself", 0),
    avoid("strangers", "the unknown or foreign things themselves", 0),
    avoid("anew", "again, or: new", 2),
    avoid("learnt", "observed", 0),
    avoid("trio", "the comparison or triple it is", 0),
    avoid("octets", "bytes", 0),
    avoid("doors", "access, routes or API", 0),
    avoid("seats", "connection slots", 0),
    avoid("luck", "the drawn number", 4),
    avoid("greedy", "busy, or: that uses all slots", 0),
    avoid("unfair", "abusive", 0),
];
/// Files that may contain any number of these words.
const EXEMPT_FILES: [&str; 1] = ["xtask/src/tidy/language.rs"];
/// The number of locations that a finding lists.
const LISTED_MAX: usize = 10;

/// Returns one finding if doc comments open with an indirect question, with the first locations.
pub(super) fn indirect_openings(files: &BTreeMap<String, String>) -> Vec<String> {
    let mut total = 0;
    let mut indirect = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".rs")) {
        for (line, opening) in openings(text) {
            total += 1;
            let first = opening.split(' ').next().unwrap_or_default();
            if OPENINGS.contains(&first) {
                indirect.push(format!("{path}:{line}: {opening}"));
            }
        }
    }
    if indirect.is_empty() {
        return Vec::new();
    }
    let listed =
        indirect.iter().take(LISTED_MAX).map(|opening| format!("\n    {opening}")).collect::<String>();
    vec![format!(
        "{} of {total} doc comments open with an indirect question. Name the thing instead (\"The number of …\", \"Returns …\"):{listed}",
        indirect.len()
    )]
}

/// Returns a finding for each word that occurs more often than its maximum, with the first locations.
pub(super) fn nonstandard_words(files: &BTreeMap<String, String>) -> Vec<String> {
    words_above_maximum(files, &WORDS)
}

fn words_above_maximum(files: &BTreeMap<String, String>, avoided: &[NonstandardWord]) -> Vec<String> {
    let mut locations: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let is_checked = |path: &str| path.ends_with(".rs") && !EXEMPT_FILES.contains(&path);
    for (path, text) in files.iter().filter(|(path, _)| is_checked(path)) {
        for (number, line) in (1..).zip(text.lines()) {
            for word in words(line).filter(|word| avoided.iter().any(|rule| rule.word == word)) {
                locations.entry(word).or_default().push(format!("\n    {path}:{number}"));
            }
        }
    }
    let finding = |&NonstandardWord { word, replacement, occurrences_max }: &NonstandardWord| {
        let found = locations.get(word).filter(|found| found.len() > occurrences_max)?;
        let listed = found[..found.len().min(LISTED_MAX)].concat();
        let count = found.len();
        Some(format!(
            "`{word}` occurs {count} times, but at most {occurrences_max} are allowed; use {replacement}:{listed}"
        ))
    };
    avoided.iter().filter_map(finding).collect()
}

/// Returns the words of identifiers and sentences in lower case: `told_bytes` and `ToldBytes` are two words each.
fn words(line: &str) -> impl Iterator<Item = String> {
    let letter_runs = line.split(|c: char| !c.is_ascii_alphabetic());
    let words = letter_runs.flat_map(|run| {
        let is_lower = |index: usize| run.as_bytes()[index].is_ascii_lowercase();
        let word_starts = (1..run.len()).filter(|&index| is_lower(index - 1) && !is_lower(index));
        // The start of each word, and the end of the last one.
        let bounds: Vec<usize> = [0].into_iter().chain(word_starts).chain([run.len()]).collect();
        bounds.windows(2).map(|pair| run[pair[0]..pair[1]].to_ascii_lowercase()).collect::<Vec<_>>()
    });
    words.filter(|word| !word.is_empty())
}

/// Returns the first line of each doc comment, with its line number, counted from 1.
fn openings(text: &str) -> impl Iterator<Item = (usize, &str)> {
    // The kind of doc comment: 0 for `///`, 1 for `//!`; `None` for another line.
    let doc_marker = |line: &'_ str| -> Option<usize> {
        let line = line.trim_start();
        ["/// ", "//! "].iter().position(|mark| line.starts_with(mark) || line == mark.trim_end())
    };
    let mut previous = None;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let marker = doc_marker(line);
        let is_first = marker.is_some() && marker != previous;
        previous = marker;
        is_first.then(|| (index + 1, line.trim_start()[3..].trim_start()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn openings_in(text: &str) -> Vec<String> {
        indirect_openings(&BTreeMap::from([("a/src/lib.rs".to_owned(), text.to_owned())]))
    }

    #[test]
    fn a_nonstandard_word_above_its_maximum_is_reported() {
        let findings_in = |text: &str| {
            words_above_maximum(
                &BTreeMap::from([("a/src/lib.rs".to_owned(), text.to_owned())]),
                &[avoid("told", "`reported`", 1)],
            )
        };
        assert_eq!(findings_in("// It was told.\nlet untold = toldest;\n"), [""; 0]);
        let finding = findings_in("//! It was Told.\n\nlet told_bytes = 1;\nstruct WasTold;\n");
        assert_eq!(finding.len(), 1);
        assert!(
            finding[0].starts_with("`told` occurs 3 times, but at most 1 are allowed; use `reported`:"),
            "{finding:?}"
        );
        assert!(finding[0].contains("a/src/lib.rs:4"), "{finding:?}");
    }

    #[test]
    fn a_doc_comment_names_the_thing() {
        assert_eq!(
            openings_in("//! The outbox.\n\n/// The number of posts.\n/// What follows is free.\nfn a() {}"),
            [""; 0]
        );
        // Other comments are not checked.
        assert_eq!(openings_in("// What a plain comment says.\n"), [""; 0]);
        let finding =
            openings_in("//! The outbox.\n\n/// What is left.\nfn a() {}\n    /// Whether it is on.\n");
        assert!(finding[0].starts_with("2 of 3 doc comments"), "{finding:?}");
        assert!(finding[0].contains("a/src/lib.rs:3: What is left."), "{finding:?}");
    }
}
