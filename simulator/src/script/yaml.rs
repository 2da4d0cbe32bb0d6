//! Parses YAML to typed values with their positions. Only this module and `node` use the YAML library.

use serde::de::DeserializeOwned;
use serde_saphyr::{DuplicateKeyPolicy, Error, Location};

use super::{
    diagnostic::{Diagnostic, SourceSpan},
    node::{Node, source_span},
    typed::deserialize_node,
};

/// Parses one YAML document. Duplicate keys, anchors and merge keys are errors.
pub(super) fn parse_yaml<T: DeserializeOwned>(source: &str) -> Result<T, Diagnostic> {
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: serde_saphyr::MergeKeyPolicy::Error,
        budget: serde_saphyr::budget! { max_anchors: 0, max_aliases: 0 },
        strict_booleans: true,
        with_snippet: false,
    };
    let tree = serde_saphyr::from_str_with_options::<Node>(source, options);
    let typed =
        tree.map_err(|error| diagnostic(&error, source)).and_then(|node| deserialize_node(&node, source));
    // After a tab or an unclosed bracket the library misreads the rest, so it reports another error elsewhere.
    typed.map_err(|error| {
        find_tab(source).or_else(|| find_unclosed_bracket(source, error.span.offset)).unwrap_or(error)
    })
}

/// Finds a tab in an indentation, which the library reports at another position.
fn find_tab(source: &str) -> Option<Diagnostic> {
    let mut offset = 0;
    for line in source.split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        if let Some(index) = line[..indent].find('\t').filter(|_| !line.trim().is_empty()) {
            return Some(Diagnostic {
                title: "tabs are not allowed in indentation".to_owned(),
                span: SourceSpan { offset: offset + index, len: 1 },
                label: "indent with spaces".to_owned(),
            });
        }
        offset += line.len();
    }
    None
}

/// Finds the first unclosed bracket before the offset of an error. The text after it is read as its content, so the
/// library reports the error elsewhere.
fn find_unclosed_bracket(source: &str, error_offset: usize) -> Option<Diagnostic> {
    let mut open = Vec::new();
    let (mut quote, mut previous) = (None, ' ');
    let mut in_comment = false;
    for (index, char) in source.char_indices() {
        match (quote, char) {
            _ if in_comment => in_comment = char != '\n',
            (Some(open_quote), _) => quote = Some(open_quote).filter(|open_quote| *open_quote != char),
            // Elsewhere quotes are apostrophes or parts of words.
            (None, '"' | '\'') if matches!(previous, ' ' | '\n' | ',' | ':' | '{' | '[') => {
                quote = Some(char)
            }
            (None, '#') if matches!(previous, ' ' | '\n') => in_comment = true,
            (None, '{' | '[') => open.push((index, char)),
            (None, '}' | ']') => match open.pop() {
                // A bracket of the other kind closes here, so this one is unclosed.
                Some(top) if closing_bracket(top.1) != char => {
                    open = vec![top];
                    break;
                }
                _ => {}
            },
            _ => {}
        }
        previous = char;
    }
    // Errors that the library finds before the first value have the offset 0.
    let (offset, bracket) =
        open.into_iter().find(|(index, _)| error_offset == 0 || *index <= error_offset)?;
    let close = closing_bracket(bracket);
    Some(Diagnostic {
        title: "a bracket is not closed".to_owned(),
        span: SourceSpan { offset, len: 1 },
        label: format!("close it with `{close}`"),
    })
}

const fn closing_bracket(bracket: char) -> char {
    if bracket == '{' { '}' } else { ']' }
}

/// Converts an error of the YAML library.
fn diagnostic(error: &Error, source: &str) -> Diagnostic {
    // An unexpected end of the file has no location; use the end.
    let end = SourceSpan { offset: source.len(), len: 0 };
    let span = error.location().filter(|location| *location != Location::UNKNOWN).map_or(end, source_span);
    let diagnostic = |title: &str, label: String| Diagnostic { title: title.to_owned(), span, label };
    match error.without_snippet() {
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().unwrap_or("this key");
            diagnostic("duplicate key", format!("`{key}` is already given above"))
        }
        Error::Budget { .. } => diagnostic(
            "this file is too complex",
            "anchors, aliases and very large files are not allowed".to_owned(),
        ),
        other => {
            let text = other.to_string();
            let text = text.split(" at line ").next().unwrap_or_default().to_owned();
            diagnostic("this is not a scenario", text)
        }
    }
}
