//! The report of a sweep, as text and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};
use simulator::{
    demo::DemoFault,
    invariant::{Invariant, Violation},
    sweep::Verdict,
};

use super::{
    FailureGroup, SweepTotals,
    coverage::{self, Width},
    merge::MergedSweep,
};
use crate::{
    signals::INTERRUPTED,
    terminal::{BAD, GOOD},
};

/// The maximum number of violations shown for a file.
const VIOLATIONS_SHOWN_MAX: usize = 5;

/// Returns a count per second of the sweep, rounded down.
fn per_second(count: u64, totals: &SweepTotals) -> u64 {
    let micros = totals.elapsed.as_micros().max(1);
    u64::try_from(u128::from(count) * 1_000_000 / micros).unwrap_or(u64::MAX)
}

/// The version of the JSON, incremented when older readers would misread it.
const FORMAT: u32 = 1;

/// Returns the report: the verdict, the failures, the figures, and the coverage table if its width is given.
pub(super) fn text(totals: &SweepTotals, table: Option<Width>) -> String {
    verdict_line(totals.exit_code(), totals, None) + &failures(totals) + &figures(totals, table)
}

/// Returns the name of the result that an exit code stands for.
fn result_name(code: u8) -> &'static str {
    match code {
        0 => "pass",
        1 => "fail",
        3 => "incomplete",
        INTERRUPTED => "interrupted",
        _ => "differs",
    }
}

fn verdict_line(code: u8, totals: &SweepTotals, merged: Option<&MergedSweep>) -> String {
    let style = if code == 0 { GOOD } else { BAD };
    let simulations = match totals.simulations {
        1 => format!("the simulation of seed {}", totals.start_seed),
        simulations => format!("{simulations} simulations"),
    };
    let verdict = match totals.groups.len() {
        0 => format!("every invariant held in {simulations}"),
        kinds => {
            let seeds: u64 = totals.groups.values().map(|group| group.seed_count).sum();
            let kinds = if kinds == 1 {
                "1 kind of failure".to_owned()
            } else {
                format!("{kinds} kinds of failures")
            };
            match totals.simulations {
                1 => format!("{kinds} in {simulations}"),
                all => format!("{kinds} in {seeds} of {all} simulations"),
            }
        }
    };
    let summary = match (code, merged) {
        (5, Some(_)) => format!("results of machines differ; {verdict}"),
        (5, None) => "two runs of one seed differ: this machine or this program is faulty".to_owned(),
        (_, Some(MergedSweep { missing_shards, sweep, .. })) if !missing_shards.is_empty() => {
            format!("{} of {} shards are missing; {verdict}", missing_shards.len(), sweep.shards)
        }
        _ => verdict,
    };
    let summary = if code == INTERRUPTED { format!("until then, {summary}") } else { summary };
    format!("{style}{}{style:#}  {summary}\n", result_name(code))
}

fn failures(totals: &SweepTotals) -> String {
    let mut text = String::new();
    if let Some(fault) = totals.fault {
        let _ = writeln!(text, "wrong on purpose (--demo-fault {}): {}", fault.name, fault.what);
    }
    for (seed, difference) in &totals.differing {
        let _ = writeln!(text, "\n{BAD}differs{BAD:#}  seed {seed} gave two results: {difference}");
    }
    for group in totals.groups.values() {
        text.push_str(&failure_text(group, totals.fault));
    }
    text
}

fn figures(totals: &SweepTotals, table: Option<Width>) -> String {
    let mut text = String::from("\n");
    let mut line = |line: String| text.push_str(&(line + "\n"));
    let checks: u64 = totals.checks.iter().sum();
    line(format!(
        "{} from seed {}, {} events, {} delivery attempts, {checks} checks of {} invariants",
        if totals.simulations == 1 {
            "1 simulation".to_owned()
        } else {
            format!("{} simulations", totals.simulations)
        },
        totals.start_seed,
        totals.events,
        totals.attempts,
        Invariant::ALL.len()
    ));
    line(format!(
        "per second: {} simulations, {} events, {} checks, with {} jobs; {} comparison runs",
        per_second(totals.simulations, totals),
        per_second(totals.events, totals),
        per_second(checks, totals),
        totals.jobs,
        totals.extra_runs
    ));
    let unchecked: Vec<&str> = Invariant::ALL
        .into_iter()
        .filter(|invariant| totals.checks[*invariant as usize] == 0)
        .map(Invariant::as_str)
        .collect();
    if !unchecked.is_empty() {
        line(format!("not exercised: {}", unchecked.join(", ")));
    }
    match table {
        None => line(coverage::summary_line(&totals.matrix)),
        Some(width) => line(format!("\n{}", coverage::table(totals, width).trim_end())),
    }
    text
}

fn failure_text(group: &FailureGroup, fault: Option<&DemoFault>) -> String {
    let mut text = String::new();
    let FailureGroup { violation, saved, .. } = group;
    let (first_seed, seed_count) = (group.first_seed, group.seed_count);
    let fault_option = fault.map(|fault| format!(" --demo-fault {}", fault.name)).unwrap_or_default();
    let _ = writeln!(text, "\n{BAD}fail{BAD:#}  {violation}");
    let _ = writeln!(text, "      rests on {}", violation.invariant.rests_on());
    let seeds_text = if seed_count == 1 {
        format!("seed {first_seed}")
    } else {
        format!("{seed_count} seeds, first {first_seed}")
    };
    let _ = writeln!(text, "      {seeds_text}: chargeproof sweep --seed {first_seed}{fault_option}");
    if let Some(saved) = saved {
        let path = saved.path.display();
        let _ = writeln!(
            text,
            "      {} steps after {} attempts: {path}",
            saved.shrunk.script.steps.len(),
            saved.shrunk.attempts
        );
        let _ = writeln!(text, "      again: chargeproof sweep {path}{fault_option}");
        let _ = writeln!(text, "             chargeproof play {path} --transcript{fault_option}");
    }
    text
}

/// Returns the report as JSON.
pub(super) fn json(totals: &SweepTotals) -> Value {
    let invariants: Vec<Value> = Invariant::ALL
        .into_iter()
        .map(|invariant| {
            json!({
                "number": invariant.number(), "law": invariant.as_str(), "rests_on": invariant.rests_on(),
                "checks": totals.checks[invariant as usize],
            })
        })
        .collect();
    let cells: Vec<Value> = totals
        .matrix
        .reached_cells()
        .map(|(cell, seed)| {
            json!({
                "event": cell.kind, "situation": cell.situation.as_str(),
                "fault": cell.fault.map(|fault| fault.as_str()), "first_seed": seed,
            })
        })
        .collect();
    let gaps: Vec<Value> = totals
        .matrix
        .gaps()
        .into_iter()
        .map(|(kind, fault)| json!({ "event": kind, "fault": fault.as_str() }))
        .collect();
    let impossible: Vec<Value> = totals
        .matrix
        .impossible_pairs()
        .into_iter()
        .map(|(kind, fault, why)| json!({ "event": kind, "fault": fault.as_str(), "why": why }))
        .collect();
    let differing: Vec<Value> = totals
        .differing
        .iter()
        .map(|(seed, difference)| json!({ "seed": seed, "first_difference": difference }))
        .collect();
    let checks: u64 = totals.checks.iter().sum();
    json!({
        "format": FORMAT,
        "result": result_name(totals.exit_code()),
        "demo_fault": totals.fault.map(|fault| fault.name),
        "from": totals.start_seed,
        "seeds": totals.simulations,
        "beside": totals.extra_runs,
        "jobs": totals.jobs,
        "took_ms": u64::try_from(totals.elapsed.as_millis()).unwrap_or(u64::MAX),
        "events": totals.events,
        "posts": totals.attempts,
        "checks": checks,
        "per_second": {
            "seeds": per_second(totals.simulations, totals),
            "events": per_second(totals.events, totals),
            "checks": per_second(checks, totals),
        },
        "laws": invariants,
        "failures": totals.groups.values().map(failure_json).collect::<Vec<_>>(),
        "digests": totals.digests,
        "differing": differing,
        "matrix": cells,
        "gaps": gaps,
        "impossible": impossible,
    })
}

fn violation_json(violation: &Violation) -> Value {
    json!({
        "number": violation.invariant.number(),
        "law": violation.invariant.as_str(),
        "shape": violation.shape,
        "what": violation.details,
        "at": violation.at.map(|at| at.to_string()),
    })
}

fn failure_json(group: &FailureGroup) -> Value {
    let mut value = violation_json(&group.violation);
    value["first_seed"] = group.first_seed.into();
    value["seeds"] = group.seed_count.into();
    value["scenario"] = json!(group.saved.as_ref().map(|saved| saved.path.display().to_string()));
    value["steps"] = json!(group.saved.as_ref().map(|saved| saved.shrunk.script.steps.len()));
    value
}

/// Returns the report of merged shards, with the missing ones.
pub(super) fn merged_text(merged: &MergedSweep, table: Option<Width>) -> String {
    let mut text = verdict_line(merged.exit_code(), &merged.totals, Some(merged));
    let (sweep, seeds) = (&merged.sweep, merged.sweep.seeds);
    for shard in &merged.missing_shards {
        let _ = writeln!(
            text,
            "{BAD}missing{BAD:#}  chargeproof sweep --from {} --seeds {seeds} --shard {shard}/{} --out FILE",
            sweep.from, sweep.shards
        );
    }
    for conflict in &merged.conflicts {
        let _ = writeln!(text, "{BAD}differs{BAD:#}  {conflict}");
    }
    text.push_str(&failures(&merged.totals));
    text.push_str(&figures(&merged.totals, table));
    let _ = writeln!(
        text,
        "{} of {} shards of {seeds} simulations; {} ran on two machines and were compared",
        merged.results.len(),
        sweep.shards,
        merged.compared
    );
    text
}

/// Returns the merged report as JSON.
pub(super) fn merged_json(merged: &MergedSweep) -> Value {
    let mut value = json(&merged.totals);
    value["shards"] = merged.sweep.shards.into();
    value["missing"] = json!(merged.missing_shards);
    value["conflicts"] = json!(merged.conflicts);
    value["compared"] = merged.compared.into();
    value["result"] = result_name(merged.exit_code()).into();
    value["exit_code"] = merged.exit_code().into();
    value
}

/// Returns the results of checked scenario files.
pub(super) fn files_text(rows: &[(String, Verdict)]) -> String {
    let mut text = String::new();
    for (name, verdict) in rows {
        let violations = &verdict.findings.violations;
        let (style, result) = (if violations.is_empty() { GOOD } else { BAD }, file_result_name(verdict));
        let _ =
            writeln!(text, "{style}{result}{style:#}  {name}, {} checks", verdict.findings.total_checks());
        for violation in violations.iter().take(VIOLATIONS_SHOWN_MAX) {
            let _ = writeln!(text, "      {violation}");
        }
        if violations.len() > VIOLATIONS_SHOWN_MAX {
            let _ = writeln!(text, "      and {} more", violations.len() - VIOLATIONS_SHOWN_MAX);
        }
        for skipped in &verdict.skipped {
            let _ = writeln!(text, "      not judged: {skipped}");
        }
    }
    text
}

/// Returns the name of the result of a file. A file with a skipped step has not passed.
fn file_result_name(verdict: &Verdict) -> &'static str {
    match (verdict.findings.violations.is_empty(), verdict.skipped.is_empty()) {
        (true, true) => result_name(0),
        (true, false) => result_name(3),
        (false, _) => result_name(1),
    }
}

pub(super) fn files_json(rows: &[(String, Verdict)]) -> Value {
    let rows: Vec<Value> = rows
        .iter()
        .map(|(name, verdict)| {
            let violations: Vec<Value> = verdict.findings.violations.iter().map(violation_json).collect();
            let (result, checks) = (file_result_name(verdict), verdict.findings.total_checks());
            let mut row =
                json!({ "scenario": name, "result": result, "checks": checks, "breaches": violations });
            if !verdict.skipped.is_empty() {
                row["not_judged"] = json!(verdict.skipped);
            }
            row
        })
        .collect();
    json!({ "format": FORMAT, "scenarios": rows })
}
