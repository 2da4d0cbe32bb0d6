//! Rules about language.
//!
//! The first sentence of a doc comment names the thing ("The number of …", "Returns …"). An indirect question ("What is left")
//! makes the reader work out the answer. Identifiers, comments and messages use standard words, so that a reader
//! has no vocabulary to learn first.

use std::collections::BTreeMap;

/// First words of an indirect question, or of a sentence with an indefinite subject.
const OPENINGS: [&str; 15] = [
    "How", "If", "Nobody", "Nothing", "Somebody", "What", "When", "Where", "Whether", "Which", "Who",
    "Whoever", "Whom", "Whose", "Why",
];
/// Nonstandard words, with the standard word and the maximum number of occurrences in Rust files. Lower the maximum when
/// words were replaced.
const WORDS: [(&str, &str, usize); 24] = [
    ("told", "recorded, reported or stated", 0),
    ("tell", "report, state or distinguish", 0),
    ("tells", "reports, states or distinguishes", 0),
    ("teller", "the writer or reporter of what it reports", 0),
    ("hear", "receive", 0),
    ("heard", "received", 0),
    ("hears", "receives", 0),
    ("somebody", "the actor: the client, the customer, the operator", 2),
    ("nobody", "the actor, or `not`: 'is not read', 'unused'", 28),
    ("everybody", "the actors: all clients, all accounts", 5),
    ("whoever", "the actor: a client that …", 1),
    ("looker", "observer", 0),
    ("lookers", "observers", 0),
    ("stranger", "the unknown or foreign thing itself", 0),
    ("strangers", "the unknown or foreign things themselves", 0),
    ("anew", "again, or: new", 2),
    ("learnt", "observed", 0),
    ("trio", "the comparison or triple it is", 0),
    ("octets", "bytes", 0),
    ("doors", "access, routes or API", 0),
    ("seats", "connection slots", 0),
    ("luck", "the drawn number", 4),
    ("greedy", "busy, or: that uses all slots", 0),
    ("unfair", "abusive", 0),
];
/// Files that may name these words.
const WORDS_EXCEPT: [&str; 1] = ["xtask/src/tidy/language.rs"];
/// The number of locations that a finding lists.
const LISTED_MAX: usize = 10;

/// Returns a finding if too many doc comments open with an indirect question, with the first locations.
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

/// Returns a finding for each word of `standards` that occurs more often than its ceiling, with the first locations.
pub(super) fn nonstandard_words(files: &BTreeMap<String, String>) -> Vec<String> {
    words_above_ceiling(files, &WORDS)
}

fn words_above_ceiling(files: &BTreeMap<String, String>, standards: &[(&str, &str, usize)]) -> Vec<String> {
    let mut locations: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let of_rust = |path: &str| path.ends_with(".rs") && !WORDS_EXCEPT.contains(&path);
    for (path, text) in files.iter().filter(|(path, _)| of_rust(path)) {
        for (line, text) in (1..).zip(text.lines()) {
            for word in words(text).filter(|word| standards.iter().any(|(known, ..)| known == word)) {
                locations.entry(word).or_default().push(format!("\n    {path}:{line}"));
            }
        }
    }
    let finding = |&(word, standard, most): &(&str, &str, usize)| {
        let found = locations.get(word).filter(|found| found.len() > most)?;
        let listed = found[..found.len().min(LISTED_MAX)].concat();
        Some(format!("`{word}` occurs {} times, {most} may be left; use {standard}:{listed}", found.len()))
    };
    standards.iter().filter_map(finding).collect()
}

/// Returns the words of identifiers and sentences in lower case: `told_bytes` and `ToldBytes` are two words each.
fn words(line: &str) -> impl Iterator<Item = String> {
    let runs = line.split(|c: char| !c.is_ascii_alphabetic());
    let parts = runs.flat_map(|run| {
        let starts = (1..run.len()).filter(|&at| run[at - 1..].starts_with(|c: char| c.is_ascii_lowercase()));
        let starts = starts.filter(|&at| run[at..].starts_with(|c: char| c.is_ascii_uppercase()));
        let bounds: Vec<usize> = [0].into_iter().chain(starts).chain([run.len()]).collect();
        bounds.windows(2).map(|pair| run[pair[0]..pair[1]].to_ascii_lowercase()).collect::<Vec<_>>()
    });
    parts.filter(|word| !word.is_empty())
}

/// Returns the first line of each doc comment, with its line number from 1.
fn openings(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let doc = |line: &'_ str| -> Option<usize> {
        let line = line.trim_start();
        ["/// ", "//! "].iter().position(|mark| line.starts_with(mark) || line == mark.trim_end())
    };
    let mut before = None;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let kind = doc(line);
        let opens = kind.is_some() && kind != before;
        before = kind;
        opens.then(|| (index + 1, line.trim_start()[3..].trim_start()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn openings_in(text: &str) -> Vec<String> {
        indirect_openings(&BTreeMap::from([("a/src/lib.rs".to_owned(), text.to_owned())]))
    }

    #[test]
    fn a_nonstandard_word_does_not_spread() {
        let of = |text: &str| {
            words_above_ceiling(
                &BTreeMap::from([("a/src/lib.rs".to_owned(), text.to_owned())]),
                &[("told", "`reported`", 1)],
            )
        };
        assert_eq!(of("// It was told.\nlet untold = toldest;\n"), [""; 0]);
        let finding = of("//! It was Told.\n\nlet told_bytes = 1;\nstruct WasTold;\n");
        assert_eq!(finding.len(), 1);
        assert!(
            finding[0].starts_with("`told` occurs 3 times, 1 may be left; use `reported`:"),
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
        // Whatever a plain comment says.
        assert_eq!(openings_in("// What a plain comment says.\n"), [""; 0]);
        let finding =
            openings_in("//! The outbox.\n\n/// What is left.\nfn a() {}\n    /// Whether it is on.\n");
        assert!(finding[0].starts_with("2 of 3 doc comments"), "{finding:?}");
        assert!(finding[0].contains("a/src/lib.rs:3: What is left."), "{finding:?}");
    }
}
