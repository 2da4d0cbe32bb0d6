//! The comparison of a transcript with its golden file.

use std::fmt;

use similar::{ChangeTag, TextDiff};

/// The number of context lines around a difference.
const CONTEXT: usize = 3;

/// The kind of a line in a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffLineKind {
    /// The heading of a hunk, with the line numbers: `@@ -3,7 +3,8 @@`.
    Hunk,
    /// A line of both texts.
    Same,
    /// A line of the expected text only.
    Removed,
    /// A line of the actual text only.
    Added,
}

/// A line of a diff, without its line break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffLine {
    /// The kind: a heading, or the texts that contain the line.
    pub kind: DiffLineKind,
    /// The line.
    pub text: String,
}

/// The difference between a transcript and its golden file. Displays as a unified diff without file names and colour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diff {
    /// The lines in order.
    pub lines: Vec<DiffLine>,
}

impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for DiffLine { kind, text } in &self.lines {
            let prefix = match kind {
                DiffLineKind::Hunk => "",
                DiffLineKind::Same => " ",
                DiffLineKind::Removed => "-",
                DiffLineKind::Added => "+",
            };
            writeln!(f, "{prefix}{text}")?;
        }
        Ok(())
    }
}

/// Compares two texts; returns their difference, or `None` if they are equal. A CRLF in `expected` counts as LF.
pub fn compare(expected: &str, actual: &str) -> Option<Diff> {
    let expected = expected.replace("\r\n", "\n");
    if expected == actual {
        return None;
    }
    let diff = TextDiff::from_lines(expected.as_str(), actual);
    let mut lines = Vec::new();
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        lines.push(DiffLine { kind: DiffLineKind::Hunk, text: hunk.header().to_string() });
        for change in hunk.iter_changes() {
            let kind = match change.tag() {
                ChangeTag::Equal => DiffLineKind::Same,
                ChangeTag::Delete => DiffLineKind::Removed,
                ChangeTag::Insert => DiffLineKind::Added,
            };
            lines.push(DiffLine { kind, text: change.value().trim_end_matches('\n').to_owned() });
        }
    }
    Some(Diff { lines })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_no_diff() {
        assert_eq!(compare("a\nb\n", "a\nb\n"), None);
        assert_eq!(compare("a\r\nb\r\n", "a\nb\n"), None);
    }

    #[test]
    fn a_diff_shows_removed_and_added_lines() {
        let diff = compare("a\nb\nc\n", "a\nx\nc\n").expect("b is not x");
        assert_eq!(diff.to_string(), "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
    }
}
