//! The errors of a scenario file, shown with the line that causes them.

use std::fmt;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// A range of the file, in bytes. A length of 0 marks the start of a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceSpan {
    /// The start, in bytes.
    pub offset: usize,
    /// The length in bytes.
    pub len: usize,
}

/// An error in a file, without the source that is needed to show its line.
#[derive(Clone, Debug)]
pub(crate) struct Diagnostic {
    pub(crate) title: String,
    pub(crate) span: SourceSpan,
    pub(crate) label: String,
}

/// An error of a scenario file, with the line that causes it.
#[derive(Clone, Debug)]
pub struct ScriptError {
    path: String,
    source: String,
    diagnostic: Diagnostic,
}

impl ScriptError {
    pub(super) fn new(path: &str, source: &str, diagnostic: Diagnostic) -> ScriptError {
        ScriptError { path: path.to_owned(), source: source.to_owned(), diagnostic }
    }

    /// Returns the message with its line, in colour for a terminal.
    pub fn in_colour(&self) -> String {
        render_diagnostic(&Renderer::styled(), &self.path, &self.source, &self.diagnostic)
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&render_diagnostic(&Renderer::plain(), &self.path, &self.source, &self.diagnostic))
    }
}

impl std::error::Error for ScriptError {}

/// Renders the title, then the line with the span underlined and the label beside it.
pub(crate) fn render_diagnostic(
    renderer: &Renderer,
    path: &str,
    source: &str,
    diagnostic: &Diagnostic,
) -> String {
    let start = source.floor_char_boundary(diagnostic.span.offset);
    let length = if diagnostic.span.len == 0 { first_key_len(&source[start..]) } else { diagnostic.span.len };
    let span = start..source.floor_char_boundary(start.saturating_add(length));
    let snippet = Snippet::source(source)
        .path(path)
        .annotation(AnnotationKind::Primary.span(span).label(diagnostic.label.as_str()));
    renderer.render(&[Level::ERROR.primary_title(diagnostic.title.as_str()).element(snippet)])
}

/// Returns the length of the first key of a map, which is underlined for the whole map.
fn first_key_len(rest: &str) -> usize {
    rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count()
}

/// Returns ``allowed: `a`, `b` or `c` ``.
pub(crate) fn list_allowed<T: AsRef<str>>(names: &[T]) -> String {
    match names {
        [] => "allowed: nothing".to_owned(),
        [only] => format!("allowed: `{}`", only.as_ref()),
        [others @ .., last] => {
            let others: Vec<_> = others.iter().map(|name| format!("`{}`", name.as_ref())).collect();
            format!("allowed: {} or `{}`", others.join(", "), last.as_ref())
        }
    }
}
