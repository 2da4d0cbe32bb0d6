//! Injection tests: each format except text, parsed after a hostile server sent special characters.

use html5ever::tendril::TendrilSink;
use markup5ever_rcdom::{Handle, NodeData, RcDom};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use serde_json::Value;

use conformance_model::recording::ExchangeOutcome;
use conformance_model::verdict::{Finding, Stop, Verdict};

use crate::check::Outcome;
use crate::report::json::schema;
use crate::report::{Format, Style, render, samples};

/// Texts that could end a string, a line, a table cell, an element or a document of a format.
const TEXTS: [&str; 14] = [
    "\u{fffe}\u{ffff}\u{1fffe}\u{10ffff}\u{fdd0}",
    "\0\u{1}\u{8}\u{b}\u{c}\u{1b}[31m\u{7f}\u{85}\u{9b}2J",
    "]]><failure message=\"x\"/>&amp;&#0;&#xfffe;&unknown;",
    "</testcase></testsuite><!-- --- --><?xml version=\"1.1\"?><!DOCTYPE x>",
    "</td></details></table><script>alert(1)</script><plaintext><svg onload=x>",
    "\"><img src=x onerror='a'> &lt; &",
    "| a | b |\n|---|---|\n\n# heading\n- item",
    "\\| \\` `` ``` ~~~ **b** [x](y) ![i](j) <b> ~~s~~ $m$ @you",
    "::error::x%0A::warning::y\r\n::stop-commands::z\n##[group]",
    "title=a,line=1::b: c, d",
    "\u{202e}\u{2066}\u{2028}\u{2029}\u{feff}\u{200b}\u{e0041}",
    "大きい👩‍👩‍👧\u{301}\u{0}",
    "\\u0000 \\ \" \u{2028} {\"a\": 1}",
    "",
];

/// Returns the mixed sample with the text in all places where a server's text may occur.
fn outcome_with(text: &str) -> Outcome {
    let mut outcome = samples::mixed();
    outcome.stale_entries = vec![text.to_owned()];
    for row in &mut outcome.rows {
        row.verdict = match row.verdict.clone() {
            Verdict::Pass { .. } => Verdict::Pass { note: Some(text.to_owned()) },
            Verdict::Fail(finding) => {
                Verdict::Fail(Finding { actual: text.to_owned(), expected: text.to_owned(), ..finding })
            }
            Verdict::Warn(finding) => Verdict::Warn(Finding { actual: text.to_owned(), ..finding }),
            Verdict::NotJudged { .. } => Verdict::NotJudged { why: text.to_owned(), remedy: text.to_owned() },
            Verdict::NotApplicable { .. } => Verdict::NotApplicable { why: text.to_owned() },
            Verdict::Observed { .. } => Verdict::Observed { seen: text.to_owned() },
            unchanged => unchanged,
        };
    }
    for exchange in &mut outcome.recording.exchanges {
        exchange.target += text;
        if let ExchangeOutcome::Answered(response) = &mut exchange.outcome {
            response.headers.push((text.to_owned(), text.to_owned()));
            response.headers.push(("x-ratelimit-".to_owned() + text, text.to_owned()));
            response.body = text.to_owned().into();
        }
    }
    outcome
}

/// Returns an outcome with rows and one that was stopped, both with the text.
fn outcomes(text: &str) -> [Outcome; 2] {
    let stopped = Outcome { stop: Some(Stop::Unreachable(text.to_owned())), ..samples::unreachable() };
    [outcome_with(text), stopped]
}

#[track_caller]
fn check(format: Format, assert_safe: impl Fn(&Outcome, &str)) {
    for outcome in TEXTS.iter().flat_map(|text| outcomes(text)) {
        assert_safe(&outcome, &render(&outcome, format, Style::Plain));
    }
}

#[test]
fn junit_is_well_formed_xml_with_a_case_for_each_row() {
    check(Format::Junit, |outcome, report| {
        let document = roxmltree::Document::parse(report).unwrap_or_else(|error| panic!("{error}: {report}"));
        let cases = document.descendants().filter(|node| node.has_tag_name("testcase"));
        let names: Vec<_> = cases.filter_map(|case| case.attribute("name")).collect();
        assert_eq!(names.len(), outcome.rows.len() + 1, "{report}");
        assert!(outcome.rows.iter().all(|row| names.contains(&row.id.as_str())), "{report}");
        // The failed statement, and the incomplete run.
        let failures = document.descendants().filter(|node| node.has_tag_name("failure")).count();
        assert_eq!(failures, usize::from(!outcome.rows.is_empty()) * 2, "{report}");
    });
}

#[test]
fn json_matches_the_schema_and_keeps_the_text_of_a_failure() {
    let validator = jsonschema::validator_for(&schema()).expect("the schema is valid");
    check(Format::Json, |outcome, report| {
        let report: Value = serde_json::from_str(report).expect("a JSON report");
        let errors: Vec<_> = validator.iter_errors(&report).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        for (row, statement) in outcome.rows.iter().zip(report["statements"].as_array().expect("a list")) {
            if let Verdict::Fail(finding) = &row.verdict {
                assert_eq!(statement["actual"], *finding.actual);
            }
        }
    });
}

/// Collects the elements of a document with the names of their attributes, in order.
fn elements(node: &Handle, into: &mut Vec<String>) {
    if let NodeData::Element { name, attrs, .. } = &node.data {
        let attribute_text = |attribute: &html5ever::Attribute| format!(" {}", attribute.name.local);
        into.push(name.local.to_string() + &attrs.borrow().iter().map(attribute_text).collect::<String>());
    }
    node.children.borrow().iter().for_each(|child| elements(child, into));
}

fn parse_elements(page: &str) -> Vec<String> {
    let document = html5ever::parse_document(RcDom::default(), Default::default()).one(page);
    let errors = document.errors.borrow();
    assert!(errors.is_empty(), "{errors:?} in {page}");
    let mut found = Vec::new();
    elements(&document.document, &mut found);
    found
}

#[test]
fn a_page_has_no_other_kinds_of_elements_whatever_a_server_sends() {
    let harmless =
        outcomes("plain").map(|outcome| parse_elements(&render(&outcome, Format::Html, Style::Plain)));
    let kinds = |found: &[String]| found.iter().cloned().collect::<std::collections::BTreeSet<_>>();
    check(Format::Html, |outcome, report| {
        let found = kinds(&parse_elements(report));
        let known = kinds(&harmless[usize::from(outcome.stop.is_some())]);
        assert!(found.is_subset(&known), "{:?} in {report}", found.difference(&known));
    });
}

/// Returns the number of cells of each table of a Markdown text, and the other kinds of elements.
fn tables(text: &str) -> (Vec<usize>, Vec<String>) {
    let (mut cells, mut kinds) = (Vec::new(), Vec::new());
    for event in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Start(Tag::Table(_)) => cells.push(0),
            Event::End(TagEnd::TableCell) => *cells.last_mut().expect("a cell is in a table") += 1,
            Event::Start(
                tag @ (Tag::Heading { .. } | Tag::Link { .. } | Tag::Image { .. } | Tag::List(_)),
            ) => {
                kinds.push(format!("{tag:?}"));
            }
            Event::Start(Tag::Strikethrough) => kinds.push("strikethrough".to_owned()),
            Event::InlineHtml(html) | Event::Html(html) => kinds.push(html.to_string()),
            _ => {}
        }
    }
    (cells, kinds)
}

#[test]
fn markdown_has_the_same_tables_and_headings_whatever_a_server_sends() {
    let harmless =
        outcomes("plain").map(|outcome| tables(&render(&outcome, Format::Markdown, Style::Plain)).1);
    check(Format::Markdown, |outcome, report| {
        let (cells, kinds) = tables(report);
        assert_eq!(kinds, harmless[usize::from(outcome.stop.is_some())], "{report}");
        if outcome.stop.is_none() {
            let every_statement = cells.last().expect("the statements are in a table");
            // Four columns, with a header row.
            assert_eq!(*every_statement, 4 * (outcome.rows.len() + 1), "{report}");
        }
    });
}

/// Returns the kind and the title of an annotation, parsed as GitHub's runner does: `::kind name=value,…::text`.
fn kind_and_title(line: &str) -> (String, String) {
    let (head, _) = line.strip_prefix("::").and_then(|command| command.split_once("::")).expect(line);
    let (kind, properties) = head.split_once(' ').expect(line);
    let values: Vec<_> =
        properties.split(',').map(|property| property.split_once('=').expect(line)).collect();
    let [("title", title)] = values[..] else { panic!("{line}") };
    let title = title.replace("%3A", ":").replace("%2C", ",");
    (kind.to_owned(), title.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%"))
}

#[test]
fn each_annotation_is_one_command_on_one_line() {
    check(Format::Github, |outcome, report| {
        let annotations: Vec<_> =
            report.split(['\n', '\r']).filter(|line| !line.is_empty()).map(kind_and_title).collect();
        let errors = annotations.iter().filter(|(kind, _)| kind == "error").count();
        // The failure or the reason of the stop, and the summary.
        assert_eq!(errors, 2, "{report}");
        assert!(annotations.iter().all(|(_, title)| !title.is_empty()), "{report}");
        let failed = outcome.rows.iter().find(|row| matches!(row.verdict, Verdict::Fail(_)));
        let is_listed = |id: &str| annotations.iter().any(|(_, title)| *title == format!("fail: {id}"));
        assert!(failed.is_none_or(|row| is_listed(&row.id)), "{report}");
    });
}
