//! One world on one page: requests, chains, events and network in adjacent lanes, with the verdict at the top and the
//! scenario to download. Opens no file: the page is returned as a string, and the same world gives the same page. The
//! page loads no resource, and runs only its own script.

mod formatting;
mod marks;

use std::collections::{BTreeMap, BTreeSet};

use askama::Template;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use reference_core::time::Timestamp;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use self::{
    formatting::{escape_invisible, format_elapsed, shell_word},
    marks::{Mark, ObjectNames, marks},
};
use crate::{
    demo::DemoFault,
    invariant::{Depth, Violation},
    script::Script,
    shrink::as_played,
    sweep::Runner,
};

const STYLE: &str = include_str!("../../templates/world.css");
const SCRIPT: &str = include_str!("../../templates/world.js");
/// The maximum number of shown kinds of failures.
const KINDS_MAX: usize = 20;

/// The input of a page.
#[derive(Clone, Copy)]
pub struct Picture<'a> {
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
    policy: String,
    style: &'static str,
    behavior: &'static str,
    title: String,
    result: &'static str,
    fault: Option<&'static DemoFault>,
    failure: Option<String>,
    broken: &'a [ViolationGroup],
    summary: String,
    lanes: &'a [String],
    groups: Vec<(&'static str, Vec<&'a str>)>,
    rows: Vec<Row<'a>>,
    file: String,
    scenario: String,
    commands: [String; 2],
    details: String,
}

/// A violated invariant, and the number of violations of the same shape.
struct ViolationGroup {
    invariant: String,
    shape: String,
    what: String,
    rests_on: &'static str,
    times: usize,
    at: Option<Timestamp>,
}

impl ViolationGroup {
    /// Returns `true` if the violation names the object of a mark at its time.
    fn names(&self, mark: &Mark) -> bool {
        let names = |ids: &[String]| ids.iter().any(|id| self.what.contains(id.as_str()));
        let mut words = self.what.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_');
        let mut is_about =
            || names(&mark.about) || words.any(|word| mark.objects.iter().any(|name| name == word));
        names(&mark.ids) || self.at.is_none_or(|at| at == mark.at) && is_about()
    }
}

enum Row<'a> {
    Day(String),
    TimeRow(TimeRow<'a>),
    /// The index and violation at this position.
    Here(usize, &'a ViolationGroup),
}

struct TimeRow<'a> {
    at: Timestamp,
    since: String,
    clock: String,
    /// `true` if the time is that of the row above.
    is_same: bool,
    lanes: Vec<Vec<(usize, &'a Mark)>>,
}

/// Plays a world and renders its page.
pub fn page(picture: &Picture<'_>) -> String {
    let runner = Runner::with_fault(picture.fault);
    // A random world is shown as the file that the page offers.
    let drawn = picture.script.source.is_empty().then(|| as_played(&runner, picture.script));
    let script = drawn.as_ref().unwrap_or(picture.script);
    let mut run = runner.play(script);
    let (expected, shown) = runner.expected_events(script, &mut run);
    let verdict = runner.judge(script, &mut run, Depth::Objects);
    let broken = group_violations(picture.violation.into_iter().chain(&verdict.findings.violations));
    let names = ObjectNames::new(&run.dry_run.names, &shown);
    let (lanes, mut marks) = marks(&run, &expected, &names);
    for mark in &mut marks {
        mark.is_named = broken.iter().any(|violation| violation.names(mark));
    }
    let (file, commands) = commands(picture, script);
    let page = PicturePage {
        policy: policy(),
        style: STYLE,
        behavior: SCRIPT,
        title: escape_invisible(&script.title),
        result: if broken.is_empty() && picture.failure.is_none() { "pass" } else { "fail" },
        fault: picture.fault,
        failure: picture.failure.map(escape_invisible),
        broken: &broken,
        summary: format!(
            "steps: {}, events: {}, posts: {}; begins {} UTC",
            script.steps.len(),
            verdict.events,
            verdict.posts,
            formatting::date(script.start),
        ),
        lanes: &lanes,
        groups: groups(&marks, &names),
        rows: rows(script.start, &marks, &broken, lanes.len()),
        details: details(script.start, script.steps.len(), &marks),
        scenario: if script.source.is_empty() { script.to_yaml() } else { script.source.clone() },
        file,
        commands,
    };
    page.render().expect("the page template has no fallible filters")
}

/// Returns a policy that loads nothing and allows only the style and script of this page.
fn policy() -> String {
    let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text));
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
}

/// Returns the name of the scenario file, and the commands that serve it and check it again.
fn commands(picture: &Picture<'_>, script: &Script) -> (String, [String; 2]) {
    let path = match script.path.as_str() {
        "" => format!("seed-{}.yaml", script.seed),
        path => path.to_owned(),
    };
    let word = shell_word(&path);
    let switch = picture.fault.map(|fault| format!(" --demo-fault {}", fault.name)).unwrap_or_default();
    let own = Script::parse("", &script.source).map_or(script.seed, |written| written.seed);
    let (verb, seed) = match script.seed {
        seed if seed == own => ("sweep", String::new()),
        other => ("play", format!(" --seed {other}")),
    };
    let file = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let serve = format!("chargeproof serve --scenario {word}{seed}");
    (escape_invisible(file), [serve, format!("chargeproof {verb} {word}{seed}{switch}")])
}

/// Returns one entry for each kind of failure, at its first occurrence.
fn group_violations<'a>(violations: impl Iterator<Item = &'a Violation>) -> Vec<ViolationGroup> {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut kinds: Vec<ViolationGroup> = Vec::new();
    for violation in violations.filter(|violation| seen.insert(violation.to_string())) {
        let invariant =
            format!("invariant {} ({})", violation.invariant.number(), violation.invariant.as_str());
        match kinds.iter().position(|known| known.invariant == invariant && known.shape == violation.shape) {
            Some(known) => kinds[known].times += 1,
            None if kinds.len() < KINDS_MAX => kinds.push(ViolationGroup {
                invariant,
                shape: violation.shape.clone(),
                what: escape_invisible(&violation.details),
                rests_on: violation.invariant.rests_on(),
                times: 1,
                at: violation.at,
            }),
            None => {}
        }
    }
    kinds
}

/// Returns the objects that can be selected, by kind.
fn groups<'a>(marks: &'a [Mark], names: &ObjectNames) -> Vec<(&'static str, Vec<&'a str>)> {
    let mut groups: BTreeMap<&'static str, BTreeSet<(usize, &str)>> = BTreeMap::new();
    for object in marks.iter().flat_map(|mark| &mark.objects) {
        // Orders `c2` before `c10`.
        groups.entry(names.kind(object)).or_default().insert((object.len(), object.as_str()));
    }
    groups.into_iter().map(|(kind, all)| (kind, all.into_iter().map(|(_, name)| name).collect())).collect()
}

/// Arranges marks in rows. Marks at the same time share a row as long as their lanes increase; a violation has a
/// separate row.
fn rows<'a>(start: Timestamp, marks: &'a [Mark], broken: &'a [ViolationGroup], lanes: usize) -> Vec<Row<'a>> {
    let mut here: Vec<(Timestamp, usize)> =
        broken.iter().enumerate().filter_map(|(n, violation)| Some((violation.at?, n))).collect();
    here.sort_unstable();
    let mut here = here.into_iter().peekable();
    let mut rows = Vec::new();
    let (mut day, mut last) = (String::new(), None);
    for (number, mark) in marks.iter().enumerate() {
        while let Some((_, n)) = here.next_if(|(at, _)| *at < mark.at) {
            rows.push(Row::Here(n, &broken[n]));
            last = None;
        }
        let clock = formatting::date(mark.at);
        if day != clock[..10] {
            day = clock[..10].to_owned();
            rows.push(Row::Day(day.clone()));
            last = None;
        }
        let fits = last.is_some_and(|(at, lane)| at == mark.at && mark.lane >= lane);
        if !fits {
            rows.push(Row::TimeRow(TimeRow {
                at: mark.at,
                since: format_elapsed(mark.at.since(start)),
                clock: clock[11..19].to_owned(),
                is_same: last.is_some_and(|(at, _)| at == mark.at),
                lanes: vec![Vec::new(); lanes],
            }));
        }
        if let Some(Row::TimeRow(moment)) = rows.last_mut() {
            moment.lanes[mark.lane].push((number, mark));
        }
        last = Some((mark.at, mark.lane));
    }
    rows.extend(here.map(|(_, n)| Row::Here(n, &broken[n])));
    rows
}

/// Returns the details of the marks as JSON that cannot end an HTML element.
fn details(start: Timestamp, steps: usize, marks: &[Mark]) -> String {
    let marks: Vec<_> = marks
        .iter()
        .map(|mark| {
            let when = format!("{} UTC", formatting::date(mark.at));
            let mut details = vec![("since start", format!("{}", mark.at.since(start))), ("at", when)];
            details.extend(mark.details.iter().map(|(name, text)| (*name, escape_invisible(text))));
            // Events after the last step need further calls to advance the clock.
            json!({ "objects": mark.objects, "step": (mark.step <= steps).then_some(mark.step), "details": details })
        })
        .collect();
    json!(marks).to_string().replace('<', "\\u003c")
}

#[cfg(test)]
mod tests;
