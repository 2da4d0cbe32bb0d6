//! The allowed dependencies between the packages of the workspace.

use std::collections::BTreeSet;
use std::path::Path;

use crate::packages::{Workspace, WorkspaceDependency};

struct Layer {
    name: &'static str,
    uses: &'static [&'static str],
    tests_use: &'static [&'static str],
}

const fn layer(name: &'static str, uses: &'static [&'static str]) -> Layer {
    Layer { name, uses, tests_use: &[] }
}

const LAYERS: &[Layer] = &[
    // Sockets and programs for tests. It depends on no package, so that the tests of every package may use it.
    layer("testkit", &[]),
    layer("reference-core", &[]),
    layer("reference-wire", &["reference-core"]),
    Layer { name: "simulator", uses: &["reference-core", "reference-wire"], tests_use: &["testkit"] },
    Layer {
        name: "reference-server",
        uses: &["reference-core", "reference-wire", "simulator"],
        tests_use: &["testkit"],
    },
    // Judge a server in any language, so they may not depend on this server. The judge and the probes do not depend on
    // each other: a run is a recording, and a verdict is a function of it.
    layer("conformance-model", &[]),
    layer("conformance-judge", &["conformance-model"]),
    // Injects faults into a recording and judges it again.
    layer("conformance-faults", &["conformance-model", "conformance-judge"]),
    Layer { name: "conformance-receiver", uses: &["conformance-model"], tests_use: &["testkit"] },
    layer("conformance-probe", &["conformance-model", "conformance-receiver"]),
    // The tests need a server to judge.
    Layer {
        name: "conformance",
        uses: &[
            "conformance-model",
            "conformance-judge",
            "conformance-receiver",
            "conformance-probe",
            "conformance-faults",
        ],
        tests_use: &["reference-core", "simulator", "reference-server", "mutants", "testkit"],
    },
    // Depends on the suite and not on the reference server: it tests the suite, not the other way round.
    layer("mutants", &["conformance", "conformance-faults", "conformance-model"]),
    // Passes bytes to all parsers. Only its tests run it.
    layer("hostile", &["reference-core", "reference-wire", "simulator", "conformance", "mutants"]),
    // Loads a server in any language.
    Layer { name: "load", uses: &[], tests_use: &["testkit"] },
    Layer {
        name: "chargeproof",
        uses: &["reference-core", "simulator", "reference-server", "conformance", "load"],
        tests_use: &["testkit"],
    },
    layer(
        "benches",
        &[
            "reference-core",
            "reference-wire",
            "simulator",
            "reference-server",
            "conformance",
            "load",
            "chargeproof",
        ],
    ),
    layer(
        "xtask",
        &[
            "reference-core",
            "simulator",
            "reference-server",
            "conformance",
            "mutants",
            "load",
            "chargeproof",
            "testkit",
        ],
    ),
];

/// Returns dependencies in a direction that is not allowed.
pub(crate) fn findings(root: &Path) -> Result<Vec<String>, String> {
    let workspace = Workspace::load(root)?;
    Ok(judge(&workspace.members(), &workspace.workspace_dependencies()))
}

fn judge(members: &BTreeSet<&str>, inside: &BTreeSet<WorkspaceDependency>) -> Vec<String> {
    let unknown = members.iter().filter(|name| layer_of(name).is_none()).map(|name| {
        format!("`{name}` is not in the table of packages; add it and its allowed dependencies to xtask/src/direction.rs")
    });
    let wrong = inside.iter().filter_map(|edge| {
        let layer = layer_of(&edge.from)?;
        let allows = |list: &[&str]| list.contains(&edge.on.as_str());
        let allowed = allows(layer.uses) || (edge.dev_only && allows(layer.tests_use));
        let suffix = if edge.dev_only { " in its tests" } else { "" };
        let uses = if layer.uses.is_empty() {
            "no package of this workspace".to_owned()
        } else {
            layer.uses.join(", ")
        };
        (!allowed)
            .then(|| format!("`{}` depends on `{}`{suffix}; it may depend on {uses}", edge.from, edge.on))
    });
    unknown.chain(wrong).collect()
}

fn layer_of(name: &str) -> Option<&'static Layer> {
    LAYERS.iter().find(|layer| layer.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(from: &str, on: &str, dev_only: bool, expected: &[&str]) {
        let edge = WorkspaceDependency { from: from.into(), on: on.into(), dev_only };
        assert_eq!(judge(&BTreeSet::from([from, on]), &BTreeSet::from([edge])), expected);
    }

    #[test]
    fn hosts_use_the_core_and_never_the_other_way_round() {
        check("simulator", "reference-core", false, &[]);
        check("reference-server", "simulator", false, &[]);
        check(
            "reference-core",
            "simulator",
            false,
            &["`reference-core` depends on `simulator`; it may depend on no package of this workspace"],
        );
        check(
            "reference-core",
            "simulator",
            true,
            &[
                "`reference-core` depends on `simulator` in its tests; it may depend on no package of this workspace",
            ],
        );
    }

    #[test]
    fn only_the_tests_of_the_suite_know_our_server() {
        check("conformance", "reference-server", true, &[]);
        check(
            "conformance",
            "reference-server",
            false,
            &[
                "`conformance` depends on `reference-server`; it may depend on conformance-model, conformance-judge, \
               conformance-receiver, conformance-probe, conformance-faults",
            ],
        );
    }

    #[test]
    fn only_tests_and_tasks_use_the_test_support() {
        check("load", "testkit", true, &[]);
        check("xtask", "testkit", false, &[]);
        check(
            "load",
            "testkit",
            false,
            &["`load` depends on `testkit`; it may depend on no package of this workspace"],
        );
    }

    #[test]
    fn no_package_depends_on_tasks_and_benchmarks() {
        for tool in ["xtask", "benches", "hostile"] {
            for layer in LAYERS {
                let edge = WorkspaceDependency { from: layer.name.into(), on: tool.into(), dev_only: true };
                assert_eq!(
                    judge(&BTreeSet::new(), &BTreeSet::from([edge])).len(),
                    1,
                    "{} on {tool}",
                    layer.name
                );
            }
        }
    }

    #[test]
    fn a_new_package_must_be_entered() {
        let found = judge(&BTreeSet::from(["attic"]), &BTreeSet::new());
        assert!(found[0].starts_with("`attic` is not in the table of packages"), "{found:?}");
    }
}
