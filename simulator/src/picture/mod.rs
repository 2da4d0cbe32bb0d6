//! An HTML page that shows one world: requests, chains, events and merchants in adjacent lanes, with the
//! verdict at the top and the scenario to download. [`page`] returns it as a string; the same world gives the
//! same page. The page loads no resource and runs only its own script.

mod formatting;
mod marks;

use std::collections::{BTreeMap, BTreeSet};

use askama::Template;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use reference_core::time::Timestamp;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use self::{
    formatting::{escape_invisible, format_elapsed, shell_quote},
    marks::{Mark, ObjectNames, build_marks},
};
use crate::{
    demo::DemoFault,
    invariant::{ReadDepth, Violation},
    script::Script,
    shrink::playable_script,
    sweep::Runner,
};

const STYLE: &str = include_str!("../../templates/world.css");
const SCRIPT: &str = include_str!("../../templates/world.js");
/// The maximum number of shown violation groups.
const GROUPS_MAX: usize = 20;

/// The world to show, and what is known about its failure.
#[derive(Clone, Copy)]
pub struct PageInput<'a> {
    /// The world.
    pub script: &'a Script,
    /// The enabled demo fault.
    pub fault: Option<&'static DemoFault>,
    /// The violation found before, possibly by a deeper check than the page performs.
    pub violation: Option<&'a Violation>,
    /// Another failure: an unmet expectation, or a different transcript.
    pub failure: Option<&'a str>,
}

#[derive(Template)]
#[template(path = "world.html")]
struct PicturePage<'a> {
    /// The content security policy.
    policy: String,
    style: &'static str,
    /// The JavaScript of the page.
    behavior: &'static str,
    title: String,
    result: &'static str,
    fault: Option<&'static DemoFault>,
    failure: Option<String>,
    violations: &'a [ViolationGroup],
    summary: String,
    lanes: &'a [String],
    /// The names of the selectable objects, by kind.
    groups: Vec<(&'static str, Vec<&'a str>)>,
    rows: Vec<Row<'a>>,
    /// The name of the scenario file.
    file: String,
    scenario: String,
    /// The commands that serve the scenario and check it again.
    commands: [String; 2],
    /// The details of the marks, as JSON.
    details: String,
}

/// The violations of one invariant with the same [`ViolationGroup::shape`]; the other fields are those of the first.
struct ViolationGroup {
    invariant: String,
    /// The kind of violation, without names and amounts.
    shape: String,
    details: String,
    /// The statements that the invariant is based on.
    rests_on: &'static str,
    /// The number of violations.
    count: usize,
    at: Option<Timestamp>,
}

impl ViolationGroup {
    /// Returns `true` if the violation names the mark's own id, or one of its objects. An object counts only
    /// at the time of the violation, if that is known.
    fn names(&self, mark: &Mark) -> bool {
        let names_id = |ids: &[String]| ids.iter().any(|id| self.details.contains(id.as_str()));
        let mut words = self.details.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_');
        let mut names_object =
            || names_id(&mark.object_ids) || words.any(|word| mark.objects.iter().any(|name| name == word));
        names_id(&mark.ids) || self.at.is_none_or(|at| at == mark.at) && names_object()
    }
}

/// A row of the table.
enum Row<'a> {
    /// The heading of a date.
    Day(String),
    TimeRow(TimeRow<'a>),
    /// A violation group, with its index.
    Violation(usize, &'a ViolationGroup),
}

/// The marks at one time.
struct TimeRow<'a> {
    at: Timestamp,
    /// The formatted time since the start of the world.
    since_start: String,
    /// The formatted time of day.
    time_of_day: String,
    /// `true` if the time is that of the row above.
    is_same_time: bool,
    /// For each lane: the marks and their indexes.
    lanes: Vec<Vec<(usize, &'a Mark)>>,
}

/// Plays a world and returns its page.
pub fn page(picture: &PageInput<'_>) -> String {
    let runner = Runner::with_fault(picture.fault);
    // A random world has no file yet; the page shows the scenario that it offers for download.
    let offered = picture.script.source.is_empty().then(|| playable_script(&runner, picture.script));
    let script = offered.as_ref().unwrap_or(picture.script);
    let mut run = runner.play(script);
    let (expected, state) = runner.expected_events(script, &mut run);
    let verdict = runner.judge(script, &mut run, ReadDepth::Objects);
    let violations = group_violations(picture.violation.into_iter().chain(&verdict.findings.violations));
    let names = ObjectNames::new(&run.dry_run.names, &state);
    let (lanes, mut marks) = build_marks(&run, &expected, &names);
    for mark in &mut marks {
        mark.is_in_violation = violations.iter().any(|violation| violation.names(mark));
    }
    let (file, commands) = commands(picture, script);
    let page = PicturePage {
        policy: policy(),
        style: STYLE,
        behavior: SCRIPT,
        title: escape_invisible(&script.title),
        result: if violations.is_empty() && picture.failure.is_none() { "pass" } else { "fail" },
        fault: picture.fault,
        failure: picture.failure.map(escape_invisible),
        violations: &violations,
        summary: format!(
            "steps: {}, events: {}, attempts: {}; begins {} UTC",
            script.steps.len(),
            verdict.events,
            verdict.attempts,
            formatting::format_date(script.start),
        ),
        lanes: &lanes,
        groups: object_groups(&marks, &names),
        rows: rows(script.start, &marks, &violations, lanes.len()),
        details: details(script.start, script.steps.len(), &marks),
        scenario: if script.source.is_empty() { script.to_yaml() } else { script.source.clone() },
        file,
        commands,
    };
    page.render().expect("the page template has no fallible filters")
}

/// Returns a content security policy that loads nothing and allows only the style and script of this page.
fn policy() -> String {
    let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text));
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
}

/// Returns the name of the scenario file, and the commands that serve it and check it again.
fn commands(picture: &PageInput<'_>, script: &Script) -> (String, [String; 2]) {
    let path = match script.path.as_str() {
        "" => format!("seed-{}.yaml", script.seed),
        path => path.to_owned(),
    };
    let quoted_path = shell_quote(&path);
    let fault_option = picture.fault.map(|fault| format!(" --demo-fault {}", fault.name)).unwrap_or_default();
    let seed_in_file = Script::parse("", &script.source).map_or(script.seed, |file| file.seed);
    let (command, seed_option) = match script.seed {
        seed if seed == seed_in_file => ("sweep", String::new()),
        other => ("play", format!(" --seed {other}")),
    };
    let file = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let serve = format!("chargeproof serve --scenario {quoted_path}{seed_option}");
    let check = format!("chargeproof {command} {quoted_path}{seed_option}{fault_option}");
    (escape_invisible(file), [serve, check])
}

/// Groups violations of the same invariant and shape; each group is at its first occurrence.
fn group_violations<'a>(violations: impl Iterator<Item = &'a Violation>) -> Vec<ViolationGroup> {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut groups: Vec<ViolationGroup> = Vec::new();
    for violation in violations.filter(|violation| seen.insert(violation.to_string())) {
        let invariant =
            format!("invariant {} ({})", violation.invariant.number(), violation.invariant.as_str());
        match groups.iter().position(|known| known.invariant == invariant && known.shape == violation.shape) {
            Some(index) => groups[index].count += 1,
            None if groups.len() < GROUPS_MAX => groups.push(ViolationGroup {
                invariant,
                shape: violation.shape.clone(),
                details: escape_invisible(&violation.details),
                rests_on: violation.invariant.rests_on(),
                count: 1,
                at: violation.at,
            }),
            None => {}
        }
    }
    groups
}

/// Returns the names of the objects that can be selected, by kind.
fn object_groups<'a>(marks: &'a [Mark], names: &ObjectNames) -> Vec<(&'static str, Vec<&'a str>)> {
    let mut groups: BTreeMap<&'static str, BTreeSet<(usize, &str)>> = BTreeMap::new();
    for object in marks.iter().flat_map(|mark| &mark.objects) {
        // Orders `c2` before `c10`.
        groups.entry(names.kind(object)).or_default().insert((object.len(), object.as_str()));
    }
    groups
        .into_iter()
        .map(|(kind, names)| (kind, names.into_iter().map(|(_, name)| name).collect()))
        .collect()
}

/// Arranges marks in rows. Marks at the same time share a row as long as their lanes do not decrease; a
/// violation has a separate row.
fn rows<'a>(
    start: Timestamp,
    marks: &'a [Mark],
    violations: &'a [ViolationGroup],
    lanes: usize,
) -> Vec<Row<'a>> {
    let mut violations_by_time: Vec<(Timestamp, usize)> =
        violations.iter().enumerate().filter_map(|(n, violation)| Some((violation.at?, n))).collect();
    violations_by_time.sort_unstable();
    let mut violations_by_time = violations_by_time.into_iter().peekable();
    let mut rows = Vec::new();
    let (mut day, mut last_mark) = (String::new(), None);
    for (index, mark) in marks.iter().enumerate() {
        while let Some((_, n)) = violations_by_time.next_if(|(at, _)| *at < mark.at) {
            rows.push(Row::Violation(n, &violations[n]));
            last_mark = None;
        }
        let date_and_time = formatting::format_date(mark.at);
        if day != date_and_time[..10] {
            day = date_and_time[..10].to_owned();
            rows.push(Row::Day(day.clone()));
            last_mark = None;
        }
        let fits_in_row = last_mark.is_some_and(|(at, lane)| at == mark.at && mark.lane >= lane);
        if !fits_in_row {
            rows.push(Row::TimeRow(TimeRow {
                at: mark.at,
                since_start: format_elapsed(mark.at.since(start)),
                time_of_day: date_and_time[11..19].to_owned(),
                is_same_time: last_mark.is_some_and(|(at, _)| at == mark.at),
                lanes: vec![Vec::new(); lanes],
            }));
        }
        if let Some(Row::TimeRow(row)) = rows.last_mut() {
            row.lanes[mark.lane].push((index, mark));
        }
        last_mark = Some((mark.at, mark.lane));
    }
    rows.extend(violations_by_time.map(|(_, n)| Row::Violation(n, &violations[n])));
    rows
}

/// Returns the details of the marks as JSON that cannot end an HTML element.
fn details(start: Timestamp, steps: usize, marks: &[Mark]) -> String {
    let marks: Vec<_> = marks
        .iter()
        .map(|mark| {
            let time = format!("{} UTC", formatting::format_date(mark.at));
            let mut details = vec![("since start", format!("{}", mark.at.since(start))), ("at", time)];
            details.extend(mark.details.iter().map(|(name, text)| (*name, escape_invisible(text))));
            // A mark after the last step has no step: the world must advance beyond the scenario to show it.
            json!({ "objects": mark.objects, "step": (mark.step <= steps).then_some(mark.step), "details": details })
        })
        .collect();
    json!(marks).to_string().replace('<', "\\u003c")
}

#[cfg(test)]
mod tests;
