//! Rules about modules that the compiler does not check: dependencies have no cycles, and no type name is defined twice
//! within a package.

mod cycles;
mod source;
mod tree;

use std::collections::BTreeMap;
use std::path::Path;

use self::cycles::Cycle;
use self::tree::Tree;
use crate::packages::Workspace;

/// Allowed cycles: package, modules, reason.
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

/// Returns the faults of the packages, and exceptions that are no longer needed.
pub(crate) fn findings(root: &Path) -> Result<Vec<String>, String> {
    let workspace = Workspace::load(root)?;
    let mut findings = Vec::new();
    for (package, crates) in workspace.crates() {
        let trees: Vec<Tree> = crates.iter().map(|file| Tree::read(root, file)).collect::<Result<_, _>>()?;
        findings.extend(trees.iter().flat_map(|tree| cycles(package, tree)));
        findings.extend(duplicate_types(package, &trees));
        findings.extend(unneeded_exceptions(package, &trees));
    }
    Ok(findings)
}

/// Returns the exceptions that are not needed.
fn unneeded_exceptions(package: &str, trees: &[Tree]) -> Vec<String> {
    let found: Vec<Cycle> = trees.iter().flat_map(cycles::find).collect();
    let cycles = CYCLES_ALLOWED
        .iter()
        .filter(|(of, modules, _)| *of == package && found.iter().all(|circle| circle.modules != **modules))
        .map(|(_, modules, _)| modules.join(", "));
    let times = |name: &str| {
        let types = trees.iter().flat_map(|tree| &tree.modules).flat_map(|module| &module.source.types);
        types.filter(|kind| *kind == name).count()
    };
    let names = NAMES_ALLOWED
        .iter()
        .filter(|(of, name, _)| *of == package && times(name) < 2)
        .map(|(_, name, _)| (*name).to_owned());
    cycles
        .chain(names)
        .map(|what| format!("{package}: {what} is allowed but not needed; take it off the list (allowed)"))
        .collect()
}

fn cycles(package: &str, tree: &Tree) -> Vec<String> {
    let is_allowed = |circle: &&Cycle| {
        CYCLES_ALLOWED.iter().any(|(of, modules, _)| *of == package && circle.modules == **modules)
    };
    cycles::find(tree)
        .iter()
        .filter(|circle| !is_allowed(circle))
        .map(|circle| describe_cycle(package, circle))
        .collect()
}

fn describe_cycle(package: &str, circle: &Cycle) -> String {
    let mut text = format!("{package}: {} use each other in a circle (circle)", circle.modules.join(", "));
    for need in &circle.needs {
        text.push_str(&format!("\n    {} -> {}: ", need.from, need.to));
        let causes: Vec<&str> = need.causes.iter().take(CAUSES_SHOWN).map(String::as_str).collect();
        text.push_str(&causes.join(", "));
        if need.causes.len() > CAUSES_SHOWN {
            text.push_str(&format!(" and {} more", need.causes.len() - CAUSES_SHOWN));
        }
    }
    text
}

fn duplicate_types(package: &str, trees: &[Tree]) -> Vec<String> {
    let mut files: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for module in trees.iter().flat_map(|tree| &tree.modules) {
        for name in &module.source.types {
            files.entry(name).or_default().push(module.file.display().to_string());
        }
    }
    let is_allowed =
        |name: &str| NAMES_ALLOWED.iter().any(|(of, allowed, _)| *of == package && *allowed == name);
    files.retain(|name, files| files.len() > 1 && !is_allowed(name));
    let message = |(name, files): (&str, Vec<String>)| {
        format!("{package}: `{name}` is defined {} times: {} (type_name)", files.len(), files.join(", "))
    };
    files.into_iter().map(message).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a source. `expected`: one finding per line, without the causes of a cycle.
    #[track_caller]
    fn check(source: &str, expected: &[&str]) {
        let tree = Tree::parse(source).expect("the source is valid Rust");
        let mut found = cycles("p", &tree);
        found.extend(duplicate_types("p", &[tree]));
        let heads: Vec<&str> = found.iter().filter_map(|text| text.lines().next()).collect();
        assert_eq!(heads, expected);
    }

    const CIRCLE: &[&str] = &["p: crate::a, crate::b use each other in a circle (circle)"];

    #[test]
    fn modules_that_use_each_other_are_found() {
        check("mod a { use crate::b::B; pub struct A; } mod b { use super::a::A; pub struct B; }", CIRCLE);
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
            check(&format!("mod a {{ use crate::b::X; }} mod b {{ {body} }}"), CIRCLE);
        }
    }

    #[test]
    fn a_longer_cycle_is_one_finding() {
        check(
            "mod a { use crate::b::B; } mod b { use crate::c::C; } mod c { use crate::a::A; } mod d { use crate::a::A; }",
            &["p: crate::a, crate::b, crate::c use each other in a circle (circle)"],
        );
    }

    #[test]
    fn a_module_stands_for_what_it_contains() {
        check(
            "mod a { mod inner { use crate::b::B; } pub struct A; } mod b { mod inner { use crate::a::A; } }",
            CIRCLE,
        );
        check(
            "mod a { mod x { use super::y::Y; } mod y { use super::x::X; } }",
            &["p: crate::a::x, crate::a::y use each other in a circle (circle)"],
        );
    }

    #[test]
    fn parent_and_child_may_use_each_other() {
        check("mod a { use self::inner::I; pub struct A; mod inner { use super::A; pub struct I; } }", &[]);
        check("mod a { use crate::Root; pub struct A; } use a::A; pub struct Root;", &[]);
    }

    #[test]
    fn names_are_followed_to_where_they_are_defined() {
        // `crate::B` is defined in `b`, and `crate::shelf::A` in `a`.
        check(
            "pub use b::B; mod a { use crate::B; pub struct A; } mod b { use crate::shelf::A; pub struct B; } \
             mod shelf { pub use crate::a::A; }",
            CIRCLE,
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
