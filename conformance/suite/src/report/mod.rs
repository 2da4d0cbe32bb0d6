//! Reports: pure functions of an outcome. One module per format; `view` holds what they share.

mod command;
mod coverage;
mod github;
#[cfg(test)]
mod hostile;
mod html;
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
pub use json::{json, tame};
pub use junit::junit;
pub use markdown::markdown;
pub(crate) use text::Tone;
pub use text::{Detail, Layout, Style, text};
pub use view::{is_unseen, one_line};

use crate::check::Outcome;

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// For people at a terminal.
    Text,
    /// For programs, as `report.schema.json` describes it.
    Json,
    /// For CI systems that count tests.
    Junit,
    /// For the summary of a job.
    Markdown,
    /// For people with a browser: one file with nothing outside.
    Html,
    /// Annotations for a workflow on GitHub.
    Github,
}

/// A report in any format, ending with a line break. The layout is for text only.
pub fn render(outcome: &Outcome, format: Format, layout: impl Into<Layout>) -> String {
    match format {
        Format::Text => text::laid_out(outcome, layout.into()),
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

    /// Samples must not change with the catalogue, which the coverage shows all of.
    fn without_coverage(report: &str) -> String {
        const MARKS: [(&str, &str); 2] =
            [("<!-- coverage -->", "<!-- end -->\n"), (",\n  \"coverage\": [", "\n  ]\n")];
        for (begin, end) in MARKS {
            if let Some((before, rest)) = report.split_once(begin) {
                let after = rest.split_once(end).map_or("", |(_, after)| after);
                return format!("{before}\n{after}");
            }
        }
        report.to_owned()
    }

    #[track_caller]
    fn check(format: Format, ending: &str) {
        for (name, outcome) in samples::all() {
            let told = without_coverage(&render(&outcome, format, Style::Plain));
            insta::assert_snapshot!(format!("{name}.{ending}"), told);
        }
    }

    #[test]
    fn the_text_reads_like_this() {
        check(Format::Text, "txt");
    }

    #[test]
    fn the_brief_text_reads_like_this_in_eighty_columns() {
        let layout = Layout { style: Style::Plain, detail: Detail::Brief, columns: Some(80) };
        for (name, outcome) in samples::all() {
            insta::assert_snapshot!(format!("{name}.brief.txt"), render(&outcome, Format::Text, layout));
        }
    }

    #[test]
    fn no_line_of_a_text_is_wider_than_the_terminal_but_commands() {
        for columns in [40, 80, 120] {
            for (detail, style) in [(Detail::Brief, Style::Plain), (Detail::Full, Style::Colour)] {
                let layout = Layout { style, detail, columns: Some(columns) };
                for (name, mut outcome) in samples::all() {
                    outcome.recording.base = "https://大きい.example".to_owned();
                    for line in render(&outcome, Format::Text, layout).lines() {
                        let is_command = line.trim_start().starts_with("asked ")
                            || line.trim_start().starts_with("again ");
                        let width = textwrap::core::display_width(line);
                        assert!(is_command || width <= columns, "{name}: {width} of {columns}: {line}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_json_reads_like_this() {
        check(Format::Json, "json");
    }

    #[test]
    fn the_junit_xml_reads_like_this() {
        check(Format::Junit, "xml");
    }

    #[test]
    fn the_markdown_reads_like_this() {
        check(Format::Markdown, "md");
    }

    #[test]
    fn the_annotations_read_like_this() {
        check(Format::Github, "github");
    }

    #[test]
    fn the_page_reads_like_this() {
        check(Format::Html, "html");
    }

    #[test]
    fn every_format_says_how_many_checks_were_expected_and_reported() {
        let outcome = samples::mixed();
        let (expected, reported) = (outcome.expected(), outcome.rows.len());
        let sentence = format!("{reported} of {expected} checks reported");
        let whole = |format| render(&outcome, format, Style::Plain);
        for format in [Format::Text, Format::Junit, Format::Markdown, Format::Html, Format::Github] {
            assert!(whole(format).contains(&sentence), "{format:?}");
        }
        let json = whole(Format::Json);
        assert!(json.contains(&format!("\"expected\": {expected}")) && json.contains("\"reported\": 9"));
    }

    #[test]
    fn a_page_needs_nothing_from_outside_and_runs_nothing() {
        for (name, outcome) in samples::all() {
            let page = html(&outcome);
            for part in ["<script", "src=", "<link", "@import", "url(", "<iframe", "onload", "onclick"] {
                assert!(!page.contains(part), "{part} in {name}");
            }
        }
    }

    #[test]
    fn foreign_text_begins_no_line_in_any_format_and_turns_none_round() {
        const FORMATS: [Format; 6] =
            [Format::Text, Format::Json, Format::Junit, Format::Markdown, Format::Html, Format::Github];
        for (name, outcome) in samples::all() {
            for format in FORMATS {
                let told = render(&outcome, format, Style::Plain);
                let own = |line: &str| format == Format::Github && line.starts_with("::");
                let foreign = |line: &&str| line.trim_start().starts_with("::") && !own(line);
                assert_eq!(told.lines().find(foreign), None, "{name} as {format:?}");
                assert!(!told.contains("##[") && !told.contains('\u{202e}'), "{name} as {format:?}");
            }
        }
    }

    #[test]
    fn annotations_are_whole_lines_of_ours() {
        for (name, outcome) in samples::all() {
            for line in github(&outcome).lines() {
                let begins = ["::error title=", "::warning title=", "::notice title="];
                assert!(begins.iter().any(|it| line.starts_with(it)), "{name}: {line}");
            }
        }
    }
}
