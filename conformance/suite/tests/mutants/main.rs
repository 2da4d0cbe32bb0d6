//! Lies that the suite must notice: each breaks one rule of the mini service or warps its answers on
//! the wire, and must break exactly the statements it names.

mod inserts;
mod keys;
mod limits;
#[path = "../mini/mod.rs"]
mod mini;
mod pages;
mod rows;
mod second;
mod walls;

use std::collections::BTreeSet;

use conformance::{judged, report};
use mini::{Asked, Mini, Reply, named, run};

struct Mutant {
    name: &'static str,
    breaks: &'static [&'static str],
    spoil: fn(&mut Mini),
}

fn mutants() -> impl Iterator<Item = &'static Mutant> {
    [keys::MUTANTS, walls::MUTANTS, limits::MUTANTS, pages::MUTANTS, rows::MUTANTS, second::MUTANTS, inserts::MUTANTS].into_iter().flatten()
}

/// Warps every answer of a status to a path that fits.
fn warp(mini: &mut Mini, status: u16, fits: fn(&Asked) -> bool, change: fn(&Asked, &mut Reply)) {
    mini.warp(move |asked, reply| {
        if reply.status == status && fits(asked) {
            change(asked, reply);
        }
    });
}

fn lists(mini: &mut Mini, change: fn(&Asked, &mut Reply)) {
    warp(mini, 200, Asked::is_list, change);
}

fn empty(reply: &Reply) -> bool {
    reply.body["data"].as_array().is_some_and(Vec::is_empty)
}

#[test]
fn each_mutant_breaks_what_it_names_and_nothing_else() {
    let mut wrong = Vec::new();
    for mutant in mutants() {
        let mut mini = Mini::default();
        (mutant.spoil)(&mut mini);
        let outcome = run(mini);
        let broken = named(&outcome, &["fail", "warn"]);
        let mut expected: Vec<_> = mutant.breaks.iter().map(|id| (*id).to_owned()).collect();
        expected.sort();
        if broken != expected {
            wrong.push(format!(
                "{}: expected {expected:?}, broken {broken:?}, {:?}",
                mutant.name, outcome.stop
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_statement_that_can_be_broken_has_a_mutant() {
    let named: BTreeSet<_> = mutants().flat_map(|mutant| mutant.breaks.iter().copied()).collect();
    for (id, requirement) in judged() {
        let open = requirement.level.word() == "open";
        assert!(open || named.contains(id.as_str()), "no mutant breaks {id}");
    }
}

#[test]
fn a_failure_ends_with_what_to_type() {
    let mut mini = Mini::default();
    warp(&mut mini, 404, walls::foreign, |_, reply| reply.status = 403);
    let outcome = run(mini);
    let text = report::text(&outcome, report::Style::Plain);
    let base = &outcome.recording.base;
    let asked =
        format!("asked     curl -i -H \"Authorization: Bearer $CHARGEPROOF_LIVE_KEY\" '{base}v1/events/");
    assert!(text.contains(&asked), "{text}");
    assert!(text.contains("--only isolation.not_found"), "{text}");
    assert!(text.ends_with("exit 1\n"), "{text}");
}
