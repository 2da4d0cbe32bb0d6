//! The error of a run: the line of the scenario, the expected and the actual result. The main type is [`PlayError`].

use std::fmt;

use annotate_snippets::Renderer;

use super::stage::StageError;
use crate::script::{Diagnostic, Script, SourceSpan, render_diagnostic};

/// The cause of an error that stops a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The world does not meet an expectation of the scenario.
    UnmetExpectation,
    /// The scenario requires something impossible in this world, such as an unknown object.
    Impossible,
    /// A request to the world failed: no response, or an unexpected one.
    StageFailure,
}

/// The error of a run: cause, position and transcript.
#[derive(Clone, Debug)]
pub struct PlayError {
    /// The cause.
    pub cause: Cause,
    /// The transcript up to the error.
    pub transcript: String,
    path: String,
    source: String,
    error: Box<StepError>,
}

impl PlayError {
    pub(super) fn new(script: &Script, transcript: &str, error: StepError) -> PlayError {
        PlayError {
            cause: error.cause,
            transcript: transcript.to_owned(),
            path: script.path.clone(),
            source: script.source.clone(),
            error: Box::new(error),
        }
    }

    /// Returns the message with its line, in colour for a terminal.
    pub fn in_colour(&self) -> String {
        self.render(&Renderer::styled())
    }

    fn render(&self, renderer: &Renderer) -> String {
        let mut text = render_diagnostic(renderer, &self.path, &self.source, &self.error.diagnostic);
        if let Some((expected, actual)) = &self.error.difference {
            text.push_str(&format!("\n  expected  {expected}\n  actual    {actual}"));
        }
        match self.transcript.is_empty() {
            true => text.push_str("\nno events before the failure"),
            false => {
                text.push_str(&format!("\ntranscript until the failure:\n{}", self.transcript.trim_end()))
            }
        }
        text
    }
}

impl fmt::Display for PlayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(&Renderer::plain()))
    }
}

impl std::error::Error for PlayError {}

/// The error of a step, without the script that is needed to show its line.
#[derive(Clone, Debug)]
pub(super) struct StepError {
    pub(super) cause: Cause,
    diagnostic: Diagnostic,
    /// The expected and the actual value.
    difference: Option<(String, String)>,
}

impl StepError {
    pub(super) fn unmet_expectation(
        span: SourceSpan,
        title: String,
        label: &str,
        expected: String,
        actual: String,
    ) -> StepError {
        let diagnostic = Diagnostic { title, span, label: label.to_owned() };
        StepError { cause: Cause::UnmetExpectation, diagnostic, difference: Some((expected, actual)) }
    }

    pub(super) fn impossible(
        span: SourceSpan,
        title: impl Into<String>,
        label: impl Into<String>,
    ) -> StepError {
        let diagnostic = Diagnostic { title: title.into(), span, label: label.into() };
        StepError { cause: Cause::Impossible, diagnostic, difference: None }
    }

    pub(super) fn stage_failure(span: SourceSpan, label: impl Into<String>) -> StepError {
        let diagnostic =
            Diagnostic { title: "a request to the world failed".to_owned(), span, label: label.into() };
        StepError { cause: Cause::StageFailure, diagnostic, difference: None }
    }

    pub(super) fn from_stage_error(span: SourceSpan, error: &StageError) -> StepError {
        StepError::stage_failure(span, error.to_string())
    }

    /// Returns the message in one line, without the position.
    pub(super) fn summary(&self) -> String {
        match &self.difference {
            Some((expected, actual)) => {
                format!("{}: expected {expected}, got {actual}", self.diagnostic.title)
            }
            None => format!("{}: {}", self.diagnostic.title, self.diagnostic.label),
        }
    }
}
