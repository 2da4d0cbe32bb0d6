//! The allowed dependencies between the packages of the workspace.

use std::collections::BTreeSet;
use std::path::Path;

use crate::packages::{Workspace, WorkspaceDependency};

/// A package, and the packages of the workspace on which it may depend.
struct Layer {
    name: &'static str,
    uses: &'static [&'static str],
    /// Further packages, on which only its tests may depend.
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
    // The conformance packages judge any server, so they do not depend on the reference server. The judge and the
    // probes do not depend on each other: probes write a recording, and the judge returns verdicts for it.
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
    // Passes bytes to all parsers. Its tests and `cargo xtask hostile` run it.
    layer("hostile", &["reference-core", "reference-wire", "simulator", "conformance", "mutants"]),
    // Sends load to a server in any language.
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

/// Returns the dependencies that are not allowed, and the packages that are missing in [`LAYERS`].
pub(crate) fn findings(root: &Path) -> Result<Vec<String>, String> {
    let workspace = Workspace::load(root)?;
    Ok(check_layers(&workspace.members(), &workspace.workspace_dependencies()))
}

fn check_layers(members: &BTreeSet<&str>, dependencies: &BTreeSet<WorkspaceDependency>) -> Vec<String> {
    let unknown = members.iter().filter(|name| layer_of(name).is_none()).map(|name| {
        format!("`{name}` is not in the table of packages; add it and its allowed dependencies to xtask/src/direction.rs")
    });
    let not_allowed = dependencies.iter().filter_map(|dependency| {
        let layer = layer_of(&dependency.from)?;
        let allows = |list: &[&str]| list.contains(&dependency.on.as_str());
        let allowed = allows(layer.uses) || (dependency.dev_only && allows(layer.tests_use));
        let suffix = if dependency.dev_only { " in its tests" } else { "" };
        let uses = if layer.uses.is_empty() {
            "no package of this workspace".to_owned()
        } else {
            layer.uses.join(", ")
        };
        (!allowed).then(|| {
            format!("`{}` depends on `{}`{suffix}; it may depend on {uses}", dependency.from, dependency.on)
        })
    });
    unknown.chain(not_allowed).collect()
}

fn layer_of(name: &str) -> Option<&'static Layer> {
    LAYERS.iter().find(|layer| layer.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(from: &str, on: &str, dev_only: bool, expected: &[&str]) {
        let dependency = WorkspaceDependency { from: from.into(), on: on.into(), dev_only };
        assert_eq!(check_layers(&BTreeSet::from([from, on]), &BTreeSet::from([dependency])), expected);
    }

    #[test]
    fn the_core_depends_on_no_package_that_uses_it() {
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
    fn only_the_tests_of_the_suite_depend_on_the_reference_server() {
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
    fn only_tests_and_xtask_depend_on_testkit() {
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
                let dependency =
                    WorkspaceDependency { from: layer.name.into(), on: tool.into(), dev_only: true };
                assert_eq!(
                    check_layers(&BTreeSet::new(), &BTreeSet::from([dependency])).len(),
                    1,
                    "{} on {tool}",
                    layer.name
                );
            }
        }
    }

    #[test]
    fn a_package_without_an_entry_is_reported() {
        let found = check_layers(&BTreeSet::from(["attic"]), &BTreeSet::new());
        assert!(found[0].starts_with("`attic` is not in the table of packages"), "{found:?}");
    }
}
