//! A line-by-line diff of two texts.

use similar::{ChangeTag, TextDiff};

/// The maximum number of compared lines of each text.
const LINES_MAX: usize = 2_000;

/// A line of one text or of both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// `-` for a line of the first text only, `+` for one of the second only, a space for a common line.
    pub(super) sign: char,
    pub(super) text: String,
}

impl Line {
    /// Returns the text for screen readers, which do not read the sign. The page shows the second text and compares it
    /// with the first.
    pub(super) fn screen_reader_text(&self) -> &'static str {
        match self.sign {
            '-' => "only in the other: ",
            '+' => "only in this one: ",
            _ => "",
        }
    }

    pub(super) fn class(&self) -> &'static str {
        match self.sign {
            '-' => "gone",
            '+' => "new",
            _ => "same",
        }
    }
}

/// Returns the lines of both texts in order; at most 2,000 of each.
pub(super) fn diff_lines(first: &str, second: &str) -> Vec<Line> {
    let first_lines =
        |text: &str| text.lines().take(LINES_MAX).map(|line| format!("{line}\n")).collect::<String>();
    let (first, second) = (first_lines(first), first_lines(second));
    let diff = TextDiff::from_lines(&first, &second);
    let to_line = |change: similar::Change<&str>| Line {
        sign: match change.tag() {
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
            ChangeTag::Equal => ' ',
        },
        text: change.value().trim_end_matches('\n').to_owned(),
    };
    diff.iter_all_changes().map(to_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_marked_with_the_text_that_has_them() {
        for (first, second, expected) in [
            ("a", "a", " a"),
            ("", "a", "+a"),
            ("a\nb\nc", "a\nc", " a-b c"),
            ("{\n  1\n}", "{\n  2\n}", " {-  1+  2 }"),
        ] {
            let lines = diff_lines(first, second);
            let rendered: String = lines.iter().map(|line| format!("{}{}", line.sign, line.text)).collect();
            assert_eq!(rendered, expected, "{first:?} {second:?}");
        }
    }
}
