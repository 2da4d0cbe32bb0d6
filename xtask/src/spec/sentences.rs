//! Splits the specification's text: list items and paragraphs into sentences, tables into rows.
//!
//! Reads no file and no catalogue. The same text always gives the same sentences with the same hashes.

use std::fmt;
use std::ops::RangeInclusive;

use sha2::{Digest, Sha256};

/// The numbered sections that the catalogue covers. The text outside of them states no requirements.
const SECTIONS: RangeInclusive<u32> = 1..=9;
/// The number of bytes of a hash in the catalogue.
const HASH_BYTES: usize = 8;
/// Words whose full stop does not end a sentence.
const ABBREVIATIONS: &[&str] = &["e.g.", "i.e.", "cf.", "vs.", "approx.", "no."];

/// One sentence, or one row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sentence {
    /// The number of the section: `4.1`.
    pub(super) section: String,
    /// The place within the section: `item 6`, `item 2, row 3`, `row 3`, `paragraph 1`.
    pub(super) place: String,
    /// The text without emphasis, backticks and line breaks.
    pub(super) text: String,
}

impl Sentence {
    /// Returns the hash by which the catalogue cites the sentence. It does not depend on the section, so a moved
    /// sentence keeps its hash.
    pub(super) fn hash(&self) -> String {
        let digest = Sha256::digest(self.text.as_bytes());
        digest[..HASH_BYTES].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Display for Sentence {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {} ({}): {}", self.section, self.place, self.hash(), self.text)
    }
}

/// Returns all sentences in the order of the text.
pub(super) fn sentences(text: &str) -> Vec<Sentence> {
    let mut splitter = Splitter::default();
    for line in text.lines() {
        splitter.line(line.trim());
    }
    splitter.close();
    splitter.found
}

/// The state of a pass over the lines of the text.
#[derive(Default)]
struct Splitter {
    /// The sentences so far.
    found: Vec<Sentence>,
    /// The current section, if it is a covered one.
    section: Option<String>,
    /// The number of list items in the section so far.
    items: u32,
    /// The number of paragraphs in the section so far.
    paragraphs: u32,
    /// The number of rows of the current table so far, without its header; `None` outside of a table.
    rows: Option<u32>,
    /// The place of the last item or paragraph, if it is an item that ends with a colon. A table that follows belongs to
    /// that item.
    announced_by: Option<String>,
    /// The place and the text so far of the current item or paragraph.
    open: Option<(String, String)>,
}

impl Splitter {
    /// Handles a line without its leading and trailing spaces.
    fn line(&mut self, line: &str) {
        if let Some(row) = line.strip_prefix('|') {
            self.close();
            return self.row(row);
        }
        self.rows = None;
        if line.is_empty() {
            self.close();
        } else if line.starts_with('#') {
            self.close();
            self.heading(line.trim_start_matches('#').trim_start());
        } else if let Some(item) = item(line) {
            self.close();
            self.items += 1;
            self.open = Some((format!("item {}", self.items), item.to_owned()));
        } else if let Some((_, text)) = &mut self.open {
            text.push(' ');
            text.push_str(line);
        } else {
            self.paragraphs += 1;
            self.open = Some((format!("paragraph {}", self.paragraphs), line.to_owned()));
        }
    }

    /// Handles a heading. One with a number starts a section, whose items and paragraphs are counted from 1; a heading
    /// without a number changes nothing.
    fn heading(&mut self, title: &str) {
        let number = title.split(' ').next().unwrap_or_default().trim_end_matches('.');
        let parts: Result<Vec<u32>, _> = number.split('.').map(str::parse).collect();
        if let Ok(parts) = parts {
            let section = SECTIONS.contains(&parts[0]).then(|| number.to_owned());
            *self = Splitter { found: std::mem::take(&mut self.found), section, ..Splitter::default() };
        }
    }

    /// Handles a row of a table. The first row, which names the columns, and rows of dashes and colons are not counted.
    fn row(&mut self, row: &str) {
        let Some(rows_before) = self.rows else {
            self.rows = Some(0);
            return;
        };
        let cells = cells(row);
        if cells.iter().all(|cell| cell.chars().all(|character| matches!(character, '-' | ':'))) {
            return;
        }
        self.rows = Some(rows_before + 1);
        let place = match &self.announced_by {
            Some(item) => format!("{item}, row {}", rows_before + 1),
            None => format!("row {}", rows_before + 1),
        };
        self.add_sentence(&place, cells.join(" | "));
    }

    /// Ends the current item or paragraph, and adds its sentences.
    fn close(&mut self) {
        let Some((place, text)) = self.open.take() else { return };
        for sentence in split(&text) {
            self.add_sentence(&place, plain_text(sentence));
        }
        self.announced_by = (place.starts_with("item") && text.ends_with(':')).then_some(place);
    }

    fn add_sentence(&mut self, place: &str, text: String) {
        if let Some(section) = self.section.clone() {
            self.found.push(Sentence { section, place: place.to_owned(), text });
        }
    }
}

/// Returns the text of a list item, such as `- text` or `3. text`; `None` for another line.
fn item(line: &str) -> Option<&str> {
    let (mark, text) = line.split_once(' ')?;
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_mark = matches!(mark, "-" | "*" | "+") || mark.strip_suffix('.').is_some_and(is_number);
    is_mark.then(|| text.trim_start())
}

/// Returns the cells of a row whose first bar was removed. A bar within code does not separate cells.
fn cells(row: &str) -> Vec<String> {
    let row = row.strip_suffix('|').unwrap_or(row);
    let mut cells = Vec::new();
    let mut start = 0;
    for (offset, character, is_code) in characters(row) {
        if character == '|' && !is_code {
            cells.push(plain_text(&row[start..offset]));
            start = offset + 1;
        }
    }
    cells.push(plain_text(&row[start..]));
    cells
}

/// Splits a paragraph into sentences. A full stop, question mark or exclamation mark ends a sentence if it is
/// outside code and brackets, at the end of a word that is not an abbreviation, and not followed by lower case.
fn split(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut start, mut depth) = (0, 0_u32);
    for (offset, character, is_code) in characters(text) {
        match character {
            _ if is_code => {}
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            '.' | '?' | '!' if depth == 0 => {
                let (before, after) = text.split_at(offset + 1);
                let word = before.rsplit([' ', '(']).next().unwrap_or_default().to_lowercase();
                let next = after.trim_start().chars().next();
                let continues = after.starts_with(|character: char| !character.is_whitespace())
                    || next.is_none_or(char::is_lowercase)
                    || ABBREVIATIONS.contains(&word.as_str());
                if !continues {
                    found.push(text[start..=offset].trim());
                    start = offset + 1;
                }
            }
            _ => {}
        }
    }
    found.push(text[start..].trim());
    found
}

/// Returns the text without asterisks outside code and without backticks, and with single spaces. Underscores stay,
/// because a name may end with one.
fn plain_text(text: &str) -> String {
    let kept: String = characters(text)
        .filter(|(_, character, is_code)| *character != '`' && (*is_code || *character != '*'))
        .map(|part| part.1)
        .collect();
    kept.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns every character with its offset, and `true` if it is code: between a pair of backticks. An unpaired backtick
/// starts no code.
fn characters(text: &str) -> impl Iterator<Item = (usize, char, bool)> {
    let mut is_code = false;
    text.char_indices().map(move |(offset, character)| {
        if character == '`' {
            is_code = !is_code && text[offset + 1..].contains('`');
        }
        (offset, character, is_code)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(split(text), expected);
    }

    #[test]
    fn a_sentence_ends_where_another_begins() {
        check("It works. It ends.", &["It works.", "It ends."]);
        check("Does it? Yes! `page` follows.", &["Does it?", "Yes!", "`page` follows."]);
        check("One. {id} is two. 120 is three.", &["One.", "{id} is two.", "120 is three."]);
        check(
            "See the dashboard (Developers, keys). A key is shown.",
            &["See the dashboard (Developers, keys).", "A key is shown."],
        );
    }

    #[test]
    fn a_full_stop_within_a_word_or_a_number_ends_no_sentence() {
        check(
            "The event charge.paid costs 0.5 or Service-Webhooks/1.0 more.",
            &["The event charge.paid costs 0.5 or Service-Webhooks/1.0 more."],
        );
        check("GET /v1/events/{id}.json responds.", &["GET /v1/events/{id}.json responds."]);
    }

    #[test]
    fn an_abbreviation_ends_no_sentence() {
        check("A type, e.g. Charge or i.e. Invoice.", &["A type, e.g. Charge or i.e. Invoice."]);
        check("A list, cf. Section 4, of it.", &["A list, cf. Section 4, of it."]);
        // Not one of `ABBREVIATIONS`, but followed by lower case.
        check("Keys, secrets, etc. are hidden.", &["Keys, secrets, etc. are hidden."]);
    }

    #[test]
    fn code_and_brackets_are_not_split() {
        check(
            "The filter `?status=a. B` selects. Another.",
            &["The filter `?status=a. B` selects.", "Another."],
        );
        check(
            "A list (URLs. Null at the end.) of pages. Next.",
            &["A list (URLs. Null at the end.) of pages.", "Next."],
        );
        check("A lone ` marks nothing. So this is two.", &["A lone ` marks nothing.", "So this is two."]);
    }

    #[test]
    fn marks_and_white_space_are_not_part_of_a_sentence() {
        for (marked, expected) in [
            ("**Amounts** are  `string`s", "Amounts are strings"),
            ("`a * b` of *c*", "a * b of c"),
            ("svc_live_ and `svc_test_`", "svc_live_ and svc_test_"),
            ("one\ttwo\n three", "one two three"),
        ] {
            assert_eq!(plain_text(marked), expected);
        }
    }

    const TEXT: &str = "\
# Title

Before the sections. Not counted.

## 1. First

- One. Two
  goes on.
- Three:

| Name | Value |
|---|:--|
| a | `x|y` |
| b | **two** |

A paragraph. Its end.

### 1.2 Second

| Name |
|---|
| c |

## 10. Beyond

Not counted.
";

    #[test]
    fn a_place_names_the_section_and_the_item_row_or_paragraph() {
        let found: Vec<_> = sentences(TEXT)
            .iter()
            .map(|found| format!("{} {}: {}", found.section, found.place, found.text))
            .collect();
        assert_eq!(
            found,
            [
                "1 item 1: One.",
                "1 item 1: Two goes on.",
                "1 item 2: Three:",
                "1 item 2, row 1: a | x|y",
                "1 item 2, row 2: b | two",
                "1 paragraph 1: A paragraph.",
                "1 paragraph 1: Its end.",
                "1.2 row 1: c",
            ]
        );
    }

    #[test]
    fn a_hash_depends_on_neither_section_nor_place_nor_emphasis() {
        let hash = |text: &str| sentences(text)[0].hash();
        let one = hash("## 1. A\n\nPages have `data`.");
        assert_eq!(one, hash("## 2. B\n\n- Pages\n  have **data**.\n"));
        assert_ne!(one, hash("## 1. A\n\nPages have data!"));
        assert_eq!(one.len(), 2 * HASH_BYTES);
    }
}
