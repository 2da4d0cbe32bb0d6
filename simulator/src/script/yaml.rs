//! YAML in, typed values with their places out. Knows the YAML library, as the tree that it fills does.

use serde::de::DeserializeOwned;
use serde_saphyr::{DuplicateKeyPolicy, Error, Location};

use super::{
    diagnostic::{Diagnostic, SourceSpan},
    node::{Node, span},
    typed::typed,
};

/// Reads one YAML document. Duplicate keys, anchors and merges are refused: each line says what it means.
pub(super) fn read<T: DeserializeOwned>(source: &str) -> Result<T, Diagnostic> {
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: serde_saphyr::MergeKeyPolicy::Error,
        budget: serde_saphyr::budget! { max_anchors: 0, max_aliases: 0 },
        strict_booleans: true,
        with_snippet: false,
    };
    let read = serde_saphyr::from_str_with_options::<Node>(source, options);
    let typed = read.map_err(|error| diagnostic(&error, source)).and_then(|node| typed(&node, source));
    // Either makes what follows read as something else, and another error stands at another place.
    typed.map_err(|found| tab(source).or_else(|| unclosed(source, found.span.offset)).unwrap_or(found))
}

/// A tab where a line is indented, which the library reports at another place.
fn tab(source: &str) -> Option<Diagnostic> {
    let mut offset = 0;
    for line in source.split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        if let Some(place) = line[..indent].find('\t').filter(|_| !line.trim().is_empty()) {
            return Some(Diagnostic {
                title: "a tab stands where spaces must".to_owned(),
                span: SourceSpan { offset: offset + place, len: 1 },
                label: "indent with spaces".to_owned(),
            });
        }
        offset += line.len();
    }
    None
}

/// The first bracket before `error` that nobody closes: what follows it is read as a part of it, so the error stands
/// elsewhere.
fn unclosed(source: &str, error: usize) -> Option<Diagnostic> {
    let mut open = Vec::new();
    let (mut quote, mut before) = (None, ' ');
    let mut in_comment = false;
    for (place, char) in source.char_indices() {
        match (quote, char) {
            _ if in_comment => in_comment = char != '\n',
            (Some(mark), _) => quote = Some(mark).filter(|mark| *mark != char),
            // Elsewhere they are apostrophes and parts of words.
            (None, '"' | '\'') if matches!(before, ' ' | '\n' | ',' | ':' | '{' | '[') => quote = Some(char),
            (None, '#') if matches!(before, ' ' | '\n') => in_comment = true,
            (None, '{' | '[') => open.push((place, char)),
            (None, '}' | ']') => match open.pop() {
                // Closed by the other kind: this one is open, whatever follows.
                Some(top) if closing(top.1) != char => {
                    open = vec![top];
                    break;
                }
                _ => {}
            },
            _ => {}
        }
        before = char;
    }
    // What the library finds before it reads any value, it reports at the beginning.
    let (offset, bracket) = open.into_iter().find(|(place, _)| error == 0 || *place <= error)?;
    let close = closing(bracket);
    Some(Diagnostic {
        title: "a bracket is not closed".to_owned(),
        span: SourceSpan { offset, len: 1 },
        label: format!("close it with `{close}`"),
    })
}

const fn closing(bracket: char) -> char {
    if bracket == '{' { '}' } else { ']' }
}

fn diagnostic(error: &Error, source: &str) -> Diagnostic {
    // A file that ends too soon has no place of its own; its end is the best one.
    let end = SourceSpan { offset: source.len(), len: 0 };
    let span = error.location().filter(|place| *place != Location::UNKNOWN).map_or(end, span);
    let diagnostic = |title: &str, label: String| Diagnostic { title: title.to_owned(), span, label };
    match error.without_snippet() {
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().unwrap_or("this key");
            diagnostic("a key stands twice", format!("`{key}` is already said above"))
        }
        Error::Budget { .. } => diagnostic(
            "this file asks for too much",
            "anchors, aliases and endless files are refused".to_owned(),
        ),
        other => {
            let text = other.to_string();
            let text = text.split(" at line ").next().unwrap_or_default().to_owned();
            diagnostic("this is not a scenario", text)
        }
    }
}
