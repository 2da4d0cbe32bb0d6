//! Reports, as pure functions of an outcome. One module per format; `view` has the common content.

#[cfg(test)]
mod browser_tests;
mod command;
mod coverage;
mod github;
mod html;
#[cfg(test)]
mod injection_tests;
mod json;
mod junit;
mod markdown;
#[cfg(test)]
pub(crate) mod samples;
mod text;
mod view;

pub use github::github;
pub use html::html;
pub(crate) use json::pretty;
pub use json::{escape_invisible, json};
pub use junit::junit;
pub use markdown::markdown;
pub(crate) use text::Tone;
pub use text::{Detail, Layout, Style, text};
pub use view::{is_invisible, one_line};

use crate::check::Outcome;

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Text for a terminal.
    Text,
    /// JSON with the schema `report.schema.json`.
    Json,
    /// JUnit XML for CI systems.
    Junit,
    /// Markdown for the summary of a CI job.
    Markdown,
    /// HTML in one file, without external resources.
    Html,
    /// Annotations for a GitHub workflow.
    Github,
}

/// Returns a report in a format, with a final line break. The layout applies to text only.
pub fn render(outcome: &Outcome, format: Format, layout: impl Into<Layout>) -> String {
    match format {
        Format::Text => text::text_with_layout(outcome, layout.into()),
        Format::Json => json(outcome) + "\n",
        Format::Junit => junit(outcome),
        Format::Markdown => markdown(outcome),
        Format::Html => html(outcome),
        Format::Github => github(outcome),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Removes the coverage from a report, so that snapshots do not change with the catalogue.
    fn without_coverage(report: &str) -> String {
        const MARKERS: [(&str, &str); 2] =
            [("<!-- coverage -->", "<!-- end -->\n"), (",\n  \"coverage\": [", "\n  ]\n")];
        for (begin, end) in MARKERS {
            if let Some((before, rest)) = report.split_once(begin) {
                let after = rest.split_once(end).map_or("", |(_, after)| after);
                return format!("{before}\n{after}");
            }
        }
        report.to_owned()
    }

    #[track_caller]
    fn check(format: Format, extension: &str) {
        for (name, outcome) in samples::all() {
            let report = without_coverage(&render(&outcome, format, Style::Plain));
            insta::assert_snapshot!(format!("{name}.{extension}"), report);
        }
    }

    #[test]
    fn the_text_equals_its_snapshot() {
        check(Format::Text, "txt");
    }

    #[test]
    fn the_brief_text_in_eighty_columns_equals_its_snapshot() {
        let layout = Layout { style: Style::Plain, detail: Detail::Brief, columns: Some(80) };
        for (name, outcome) in samples::all() {
            insta::assert_snapshot!(format!("{name}.brief.txt"), render(&outcome, Format::Text, layout));
        }
    }

    #[test]
    fn no_line_except_commands_is_wider_than_the_terminal() {
        for columns in [40, 80, 120] {
            for (detail, style) in [(Detail::Brief, Style::Plain), (Detail::Full, Style::Colour)] {
                let layout = Layout { style, detail, columns: Some(columns) };
                for (name, mut outcome) in samples::all() {
                    outcome.recording.base = "https://大きい.example".to_owned();
                    for line in render(&outcome, Format::Text, layout).lines() {
                        let is_command = line.trim_start().starts_with("request ")
                            || line.trim_start().starts_with("again ");
                        let width = textwrap::core::display_width(line);
                        assert!(is_command || width <= columns, "{name}: {width} of {columns}: {line}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_json_equals_its_snapshot() {
        check(Format::Json, "json");
    }

    #[test]
    fn the_junit_xml_equals_its_snapshot() {
        check(Format::Junit, "xml");
    }

    #[test]
    fn the_markdown_equals_its_snapshot() {
        check(Format::Markdown, "md");
    }

    #[test]
    fn the_annotations_equal_their_snapshot() {
        check(Format::Github, "github");
    }

    #[test]
    fn the_page_equals_its_snapshot() {
        check(Format::Html, "html");
    }

    #[test]
    fn every_format_reports_the_numbers_of_expected_and_reported_checks() {
        let outcome = samples::mixed();
        let (expected, reported) = (outcome.expected_check_count(), outcome.rows.len());
        let sentence = format!("{reported} of {expected} checks reported");
        let report_as = |format| render(&outcome, format, Style::Plain);
        for format in [Format::Text, Format::Junit, Format::Markdown, Format::Html, Format::Github] {
            assert!(report_as(format).contains(&sentence), "{format:?}");
        }
        let json = report_as(Format::Json);
        assert!(
            json.contains(&format!("\"expected\": {expected}"))
                && json.contains(&format!("\"reported\": {reported}"))
        );
    }

    #[test]
    fn a_page_has_no_scripts_and_no_external_resources() {
        for (name, outcome) in samples::all() {
            let page = html(&outcome);
            for part in ["<script", "src=", "<link", "@import", "url(", "<iframe", "onload", "onclick"] {
                assert!(!page.contains(part), "{part} in {name}");
            }
        }
    }

    #[test]
    fn text_of_a_server_cannot_start_a_line_or_reverse_it_in_any_format() {
        const FORMATS: [Format; 6] =
            [Format::Text, Format::Json, Format::Junit, Format::Markdown, Format::Html, Format::Github];
        for (name, outcome) in samples::all() {
            for format in FORMATS {
                let report = render(&outcome, format, Style::Plain);
                let is_annotation = |line: &str| format == Format::Github && line.starts_with("::");
                let is_injected = |line: &&str| line.trim_start().starts_with("::") && !is_annotation(line);
                assert_eq!(report.lines().find(is_injected), None, "{name} as {format:?}");
                assert!(!report.contains("##[") && !report.contains('\u{202e}'), "{name} as {format:?}");
            }
        }
    }

    #[test]
    fn every_line_of_the_annotations_is_a_command() {
        for (name, outcome) in samples::all() {
            for line in github(&outcome).lines() {
                let prefixes = ["::error title=", "::warning title=", "::notice title="];
                assert!(prefixes.iter().any(|prefix| line.starts_with(prefix)), "{name}: {line}");
            }
        }
    }
}
