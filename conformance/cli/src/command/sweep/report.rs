//! What a sweep says at its end, for people and for programs. Pure.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::{Value, json};
use simulator::{
    law::{Breach, Law},
    sweep::{Cell, Matrix, Verdict},
};

use super::{Group, Sum, merge::Merged};
use crate::{
    screen::{BAD, DIM, GOOD},
    signals::INTERRUPTED,
};

/// So many gaps are named; the JSON names all.
const GAPS_SHOWN: usize = 12;
/// So many breaches of a file are shown.
const BREACHES_SHOWN: usize = 5;

/// Per second, rounded down: enough for figures that differ from run to run.
fn rate(count: u64, sum: &Sum) -> u64 {
    let micros = sum.took.as_micros().max(1);
    u64::try_from(u128::from(count) * 1_000_000 / micros).unwrap_or(u64::MAX)
}

pub(super) fn text(sum: &Sum) -> String {
    let mut text = String::new();
    let mut line = |line: String| text.push_str(&(line + "\n"));
    let checks: u64 = sum.checks.iter().sum();
    line(format!(
        "{} simulations from seed {}, {} events, {} deliveries, {checks} checks of {} invariants",
        sum.worlds,
        sum.from,
        sum.events,
        sum.posts,
        Law::ALL.len()
    ));
    line(format!(
        "per second: {} simulations, {} events, {} checks, with {} jobs; {} twins and second runs",
        rate(sum.worlds, sum),
        rate(sum.events, sum),
        rate(checks, sum),
        sum.jobs,
        sum.beside
    ));
    let untried: Vec<&str> =
        Law::ALL.into_iter().filter(|law| sum.checks[*law as usize] == 0).map(Law::as_str).collect();
    if !untried.is_empty() {
        line(format!("not exercised: {}", untried.join(", ")));
    }
    line(String::new());
    text.push_str(&matrix(&sum.matrix));
    for (seed, difference) in &sum.differing {
        let _ = writeln!(text, "{BAD}differs{BAD:#}  seed {seed} gave two results: {difference}");
    }
    for group in sum.groups.values() {
        text.push_str(&failure(group));
    }
    let (style, verdict) = match sum.exit_code() {
        0 => (GOOD, "every invariant held".to_owned()),
        INTERRUPTED if sum.groups.is_empty() => {
            (BAD, "interrupted; until then every invariant held".to_owned())
        }
        INTERRUPTED => (BAD, format!("interrupted; {} kinds of failures found until then", sum.groups.len())),
        1 => (BAD, format!("{} kinds of failures found", sum.groups.len())),
        _ => (BAD, "two runs of one seed differ: this machine or this program failed".to_owned()),
    };
    let _ = writeln!(text, "{style}{verdict}{style:#}");
    text
}

fn failure(group: &Group) -> String {
    let mut text = String::new();
    let Group { breach, first, seeds, saved } = group;
    let _ = writeln!(text, "{BAD}broken{BAD:#}  {breach}");
    let _ = writeln!(text, "          rests on {}", breach.law.rests_on());
    let _ =
        writeln!(text, "          {seeds} seeds, first {first}: chargeproof sweep --from {first} --seeds 1");
    if let Some(saved) = saved {
        let path = saved.path.display();
        let _ = writeln!(text, "          {} steps after {} attempts: {path}", saved.steps, saved.attempts);
        let _ = writeln!(text, "          again: chargeproof sweep {path}");
        let _ = writeln!(text, "                 chargeproof play {path} --transcript");
    }
    text
}

/// The first seed that reached each cell: rows are types and situations, columns are faults.
fn matrix(matrix: &Matrix) -> String {
    let mut text = String::new();
    let rows = matrix.rows();
    if rows.is_empty() {
        return text;
    }
    let columns: Vec<_> = std::iter::once(None).chain(Matrix::columns().map(Some)).collect();
    let _ = writeln!(text, "first seed for each event, chain situation and fault; {DIM}·{DIM:#} is a gap");
    for (n, fault) in columns.iter().enumerate() {
        let word = fault.map_or("no fault", |fault| fault.as_str());
        let _ = write!(text, "  {:>2} {word:<16}", n);
        if n % 5 == 4 || n + 1 == columns.len() {
            text.push('\n');
        }
    }
    let _ = write!(text, "{:<37}", "");
    for n in 0..columns.len() {
        let _ = write!(text, "{n:>6}");
    }
    text.push('\n');
    for (kind, situation) in rows {
        let _ = write!(text, "{kind:<24} {:<12}", situation.as_str());
        for fault in &columns {
            match matrix.first(Cell { kind, situation, fault: *fault }) {
                Some(seed) => drop(write!(text, "{seed:>6}")),
                None => drop(write!(text, "{DIM}     ·{DIM:#}")),
            }
        }
        text.push('\n');
    }
    let gaps = matrix.gaps();
    if !gaps.is_empty() {
        let named: Vec<String> = gaps
            .iter()
            .take(GAPS_SHOWN)
            .map(|(kind, fault)| format!("{kind} under {}", fault.as_str()))
            .collect();
        let more = if gaps.len() > GAPS_SHOWN { ", …" } else { "" };
        let _ = writeln!(
            text,
            "{} pairs of event and fault were not reached (more seeds may reach them): {}{more}",
            gaps.len(),
            named.join(", ")
        );
    }
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (kind, fault, why) in matrix.impossible() {
        reasons.entry(why).or_default().push(format!("{kind} under {}", fault.as_str()));
    }
    for (why, pairs) in reasons {
        let _ = writeln!(text, "{} pairs are impossible, because {why}: {}", pairs.len(), pairs.join(", "));
    }
    text.push('\n');
    text
}

pub(super) fn json(sum: &Sum) -> Value {
    let laws: Vec<Value> = Law::ALL
        .into_iter()
        .map(|law| {
            json!({
                "number": law.number(), "law": law.as_str(), "rests_on": law.rests_on(),
                "checks": sum.checks[law as usize],
            })
        })
        .collect();
    let cells: Vec<Value> = sum
        .matrix
        .reached()
        .map(|(cell, seed)| {
            json!({
                "event": cell.kind, "situation": cell.situation.as_str(),
                "fault": cell.fault.map(|fault| fault.as_str()), "first_seed": seed,
            })
        })
        .collect();
    let gaps: Vec<Value> = sum
        .matrix
        .gaps()
        .into_iter()
        .map(|(kind, fault)| json!({ "event": kind, "fault": fault.as_str() }))
        .collect();
    let impossible: Vec<Value> = sum
        .matrix
        .impossible()
        .into_iter()
        .map(|(kind, fault, why)| json!({ "event": kind, "fault": fault.as_str(), "why": why }))
        .collect();
    let differing: Vec<Value> =
        sum.differing.iter().map(|(seed, what)| json!({ "seed": seed, "first_difference": what })).collect();
    let checks: u64 = sum.checks.iter().sum();
    json!({
        "result": match sum.exit_code() { 0 => "held", 1 => "broken", INTERRUPTED => "interrupted", _ => "differs" },
        "from": sum.from,
        "seeds": sum.worlds,
        "beside": sum.beside,
        "jobs": sum.jobs,
        "took_ms": u64::try_from(sum.took.as_millis()).unwrap_or(u64::MAX),
        "events": sum.events,
        "posts": sum.posts,
        "checks": checks,
        "per_second": { "seeds": rate(sum.worlds, sum), "events": rate(sum.events, sum), "checks": rate(checks, sum) },
        "laws": laws,
        "failures": sum.groups.values().map(failure_json).collect::<Vec<_>>(),
        "digests": sum.digests,
        "differing": differing,
        "matrix": cells,
        "gaps": gaps,
        "impossible": impossible,
    })
}

fn breach_json(breach: &Breach) -> Value {
    json!({
        "number": breach.law.number(),
        "law": breach.law.as_str(),
        "shape": breach.shape,
        "what": breach.what,
        "at": breach.at.map(|at| at.to_string()),
    })
}

fn failure_json(group: &Group) -> Value {
    let mut value = breach_json(&group.breach);
    value["first_seed"] = group.first.into();
    value["seeds"] = group.seeds.into();
    value["scenario"] = json!(group.saved.as_ref().map(|saved| saved.path.display().to_string()));
    value["steps"] = json!(group.saved.as_ref().map(|saved| saved.steps));
    value
}

/// What all shards together say, and which are missing.
pub(super) fn merged_text(merged: &Merged) -> String {
    let mut text = text(&merged.sum);
    let (sweep, seeds) = (&merged.sweep, merged.sweep.seeds);
    let present = merged.parts.len();
    let _ = writeln!(
        text,
        "{present} of {} shards of {seeds} simulations; {} ran on two machines and were compared",
        sweep.shards, merged.compared
    );
    for gap in &merged.gaps {
        let _ = writeln!(
            text,
            "{BAD}missing{BAD:#}  chargeproof sweep --from {} --seeds {seeds} --shard {gap}/{} --out FILE",
            sweep.from, sweep.shards
        );
    }
    for conflict in &merged.conflicts {
        let _ = writeln!(text, "{BAD}differs{BAD:#}  {conflict}");
    }
    text
}

/// The same for programs.
pub(super) fn merged_json(merged: &Merged) -> Value {
    let mut value = json(&merged.sum);
    value["shards"] = merged.sweep.shards.into();
    value["missing"] = json!(merged.gaps);
    value["conflicts"] = json!(merged.conflicts);
    value["compared"] = merged.compared.into();
    value["exit_code"] = merged.exit_code().into();
    value
}

pub(super) fn files_text(rows: &[(String, Verdict)]) -> String {
    let mut text = String::new();
    for (name, verdict) in rows {
        let breaches = &verdict.findings.breaches;
        let (style, word) = if breaches.is_empty() { (GOOD, "held") } else { (BAD, "broken") };
        let _ = writeln!(text, "{style}{word}{style:#}  {name}, {} checks", verdict.findings.total());
        for breach in breaches.iter().take(BREACHES_SHOWN) {
            let _ = writeln!(text, "        {breach}");
        }
        if breaches.len() > BREACHES_SHOWN {
            let _ = writeln!(text, "        and {} more", breaches.len() - BREACHES_SHOWN);
        }
    }
    text
}

pub(super) fn files_json(rows: &[(String, Verdict)]) -> Value {
    let rows: Vec<Value> = rows
        .iter()
        .map(|(name, verdict)| {
            let breaches: Vec<Value> = verdict.findings.breaches.iter().map(breach_json).collect();
            json!({ "scenario": name, "checks": verdict.findings.total(), "breaches": breaches })
        })
        .collect();
    json!({ "scenarios": rows })
}
