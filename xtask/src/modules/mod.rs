//! Rules about modules that the compiler does not check: dependencies have no cycles, and no type name is defined
//! twice within a package.

mod cycles;
mod module_names;
mod tree;

use std::collections::BTreeMap;
use std::path::Path;

use self::cycles::Cycle;
use self::tree::ModuleTree;
use crate::packages::Workspace;

/// Allowed cycles: package, modules in alphabetical order, reason.
const CYCLES_ALLOWED: &[(&str, &[&str], &str)] = &[(
    "reference-core",
    &["crate::account", "crate::book"],
    "an account owns its two books, and a book reads the settings of its account",
)];

/// Type names that may be defined more than once in a package: package, name, reason.
const NAMES_ALLOWED: &[(&str, &str, &str)] = &[
    ("conformance", "Format", "`report::Format` of a check, and the shorter list of `handler::Format`"),
    ("conformance", "Outcome", "`Outcome` of a check and `fuzz::Outcome`, which is named with its module"),
    (
        "conformance",
        "Progress",
        "`fuzz::Progress` and `handler::Progress`, which are named with their modules",
    ),
];

/// The number of causes of a dependency that a finding shows.
const CAUSES_SHOWN: usize = 4;

/// Returns the violations in all packages, and the exceptions that are not needed.
pub(crate) fn findings(root: &Path) -> Result<Vec<String>, String> {
    let workspace = Workspace::load(root)?;
    let mut findings = Vec::new();
    for (package, crates) in workspace.crates() {
        let trees: Vec<ModuleTree> =
            crates.iter().map(|file| ModuleTree::read(root, file)).collect::<Result<_, _>>()?;
        findings.extend(trees.iter().flat_map(|tree| cycle_findings(package, tree)));
        findings.extend(duplicate_types(package, &trees));
        findings.extend(unneeded_exceptions(package, &trees));
    }
    Ok(findings)
}

/// Returns a finding for each exception of a package that is not needed.
fn unneeded_exceptions(package: &str, trees: &[ModuleTree]) -> Vec<String> {
    let found: Vec<Cycle> = trees.iter().flat_map(cycles::find).collect();
    let cycles = CYCLES_ALLOWED
        .iter()
        .filter(|(allowed_in, modules, _)| {
            *allowed_in == package && found.iter().all(|cycle| cycle.modules != **modules)
        })
        .map(|(_, modules, _)| modules.join(", "));
    let count = |name: &str| {
        let types = trees.iter().flat_map(|tree| &tree.modules).flat_map(|module| &module.names.types);
        types.filter(|type_name| *type_name == name).count()
    };
    let names = NAMES_ALLOWED
        .iter()
        .filter(|(allowed_in, name, _)| *allowed_in == package && count(name) < 2)
        .map(|(_, name, _)| (*name).to_owned());
    cycles
        .chain(names)
        .map(|exception| {
            format!("{package}: {exception} is allowed but not needed; remove it from the list (allowed)")
        })
        .collect()
}

fn cycle_findings(package: &str, tree: &ModuleTree) -> Vec<String> {
    let is_allowed = |cycle: &&Cycle| {
        CYCLES_ALLOWED
            .iter()
            .any(|(allowed_in, modules, _)| *allowed_in == package && cycle.modules == **modules)
    };
    cycles::find(tree)
        .iter()
        .filter(|cycle| !is_allowed(cycle))
        .map(|cycle| describe_cycle(package, cycle))
        .collect()
}

fn describe_cycle(package: &str, cycle: &Cycle) -> String {
    let mut text = format!("{package}: {} form a cycle (cycle)", cycle.modules.join(", "));
    for dependency in &cycle.dependencies {
        text.push_str(&format!("\n    {} -> {}: ", dependency.from, dependency.to));
        let causes: Vec<&str> = dependency.causes.iter().take(CAUSES_SHOWN).map(String::as_str).collect();
        text.push_str(&causes.join(", "));
        if dependency.causes.len() > CAUSES_SHOWN {
            text.push_str(&format!(" and {} more", dependency.causes.len() - CAUSES_SHOWN));
        }
    }
    text
}

fn duplicate_types(package: &str, trees: &[ModuleTree]) -> Vec<String> {
    let mut files_by_type: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for module in trees.iter().flat_map(|tree| &tree.modules) {
        for name in &module.names.types {
            files_by_type.entry(name).or_default().push(module.file.display().to_string());
        }
    }
    let is_allowed = |name: &str| {
        NAMES_ALLOWED
            .iter()
            .any(|(allowed_in, allowed_name, _)| *allowed_in == package && *allowed_name == name)
    };
    files_by_type.retain(|name, files| files.len() > 1 && !is_allowed(name));
    let message = |(name, files): (&str, Vec<String>)| {
        format!("{package}: `{name}` is defined {} times: {} (type_name)", files.len(), files.join(", "))
    };
    files_by_type.into_iter().map(message).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a source. `expected`: one finding per line, without the causes of a cycle.
    #[track_caller]
    fn check(source: &str, expected: &[&str]) {
        let tree = ModuleTree::parse(source).expect("the source is valid Rust");
        let mut found = cycle_findings("p", &tree);
        found.extend(duplicate_types("p", &[tree]));
        let heads: Vec<&str> = found.iter().filter_map(|text| text.lines().next()).collect();
        assert_eq!(heads, expected);
    }

    const CYCLE: &[&str] = &["p: crate::a, crate::b form a cycle (cycle)"];

    #[test]
    fn modules_that_use_each_other_are_reported() {
        check("mod a { use crate::b::B; pub struct A; } mod b { use super::a::A; pub struct B; }", CYCLE);
        check("mod a { use crate::b::B; pub struct A; } mod b { pub struct B; }", &[]);
    }

    #[test]
    fn a_use_counts_wherever_it_is_written() {
        for body in [
            "fn f() { crate::a::f() }",
            "fn f() { use crate::a; a::f() }",
            "fn f(it: &crate::a::A) {}",
            "use crate::a::{self as other, A as _};",
            "use crate::a::*;",
            "fn f() { assert!(super::a::yes()) }",
            "struct B<T: crate::a::A>(T);",
        ] {
            check(&format!("mod a {{ use crate::b::X; }} mod b {{ {body} }}"), CYCLE);
        }
    }

    #[test]
    fn a_longer_cycle_is_one_finding() {
        check(
            "mod a { use crate::b::B; } mod b { use crate::c::C; } mod c { use crate::a::A; } mod d { use crate::a::A; }",
            &["p: crate::a, crate::b, crate::c form a cycle (cycle)"],
        );
    }

    #[test]
    fn uses_inside_a_module_count_as_uses_of_the_module() {
        check(
            "mod a { mod inner { use crate::b::B; } pub struct A; } mod b { mod inner { use crate::a::A; } }",
            CYCLE,
        );
        check(
            "mod a { mod x { use super::y::Y; } mod y { use super::x::X; } }",
            &["p: crate::a::x, crate::a::y form a cycle (cycle)"],
        );
    }

    #[test]
    fn parent_and_child_may_use_each_other() {
        check("mod a { use self::inner::I; pub struct A; mod inner { use super::A; pub struct I; } }", &[]);
        check("mod a { use crate::Root; pub struct A; } use a::A; pub struct Root;", &[]);
    }

    #[test]
    fn reexported_names_are_resolved_to_their_definitions() {
        // `crate::B` is defined in `b`, and `crate::shelf::A` in `a`.
        check(
            "pub use b::B; mod a { use crate::B; pub struct A; } mod b { use crate::shelf::A; pub struct B; } \
             mod shelf { pub use crate::a::A; }",
            CYCLE,
        );
    }

    #[test]
    fn code_for_tests_may_use_everything() {
        check(
            "mod a { use crate::b::B; pub struct A; #[cfg(test)] mod tests { struct A; } } \
             mod b { pub struct B; #[cfg(test)] use crate::a::A; #[cfg(test)] fn f(_: crate::a::A) {} }",
            &[],
        );
    }

    #[test]
    fn names_of_other_crates_are_not_our_modules() {
        check("mod a { use crate::b::B; } mod b { use serde::a; fn f() { std::a::f() } }", &[]);
    }

    #[test]
    fn a_type_name_is_defined_once() {
        check(
            "mod a { pub struct Page; } mod b { enum Page {} type Line = u8; } mod c { fn page() { struct Line; } }",
            &["p: `Page` is defined 2 times: lib.rs, lib.rs (type_name)"],
        );
    }
}
