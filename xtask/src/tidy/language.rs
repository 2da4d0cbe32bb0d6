//! Rules about the language of comments.
//!
//! The first sentence of a doc comment names the thing ("The number of …", "Returns …"). An indirect question ("What is left")
//! makes the reader work out the answer.

use std::collections::BTreeMap;

/// First words of an indirect question, or of a sentence whose subject is nobody.
const OPENINGS: [&str; 15] = [
    "How", "If", "Nobody", "Nothing", "Somebody", "What", "When", "Where", "Whether", "Which", "Who",
    "Whoever", "Whom", "Whose", "Why",
];
/// The share of doc comments that may open so, in thousandths.
const SHARE_MAX: usize = 30;
/// The number of places that a finding lists.
const LISTED_MAX: usize = 10;

/// Returns a finding if too many doc comments open with an indirect question, with the first places.
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
    if indirect.len() * 1000 <= total * SHARE_MAX {
        return Vec::new();
    }
    let listed = indirect.iter().take(LISTED_MAX).map(|place| format!("\n    {place}")).collect::<String>();
    vec![format!(
        "{} of {total} doc comments open with an indirect question; at most {SHARE_MAX} in 1000 may. Name the thing instead \
         (\"The number of …\", \"Returns …\"):{listed}",
        indirect.len()
    )]
}

/// The first line of each doc comment, with its line number from 1.
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

    fn found(text: &str) -> Vec<String> {
        indirect_openings(&BTreeMap::from([("a/src/lib.rs".to_owned(), text.to_owned())]))
    }

    #[test]
    fn a_doc_comment_names_the_thing() {
        assert_eq!(
            found("//! The outbox.\n\n/// The number of posts.\n/// What follows is free.\nfn a() {}"),
            [""; 0]
        );
        // Whatever a plain comment says.
        assert_eq!(found("// What a plain comment says.\n"), [""; 0]);
        let finding = found("//! The outbox.\n\n/// What is left.\nfn a() {}\n    /// Whether it is on.\n");
        assert!(finding[0].starts_with("2 of 3 doc comments"), "{finding:?}");
        assert!(finding[0].contains("a/src/lib.rs:3: What is left."), "{finding:?}");
    }
}
