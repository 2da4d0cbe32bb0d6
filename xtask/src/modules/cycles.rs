//! The cycles among modules.
//!
//! Modules are compared where their paths diverge: `wire::json` using `book::page` means that `wire` depends on `book`.
//! Among the modules of one parent, each with everything inside it, dependencies must not form a cycle. A module and
//! its content may use each other.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::{Resolved, Tree};

/// Dependencies between modules, with their causes.
type ModuleDependencies = BTreeMap<(usize, usize), BTreeSet<String>>;

/// Modules of one parent that depend on each other.
pub(crate) struct Cycle {
    /// The paths of the modules, in alphabetical order.
    pub(crate) modules: Vec<String>,
    /// The dependencies inside the cycle. Those with the fewest causes, which are the easiest to remove, come first.
    pub(crate) needs: Vec<ModuleDependency>,
}

/// A dependency of one module on another.
pub(crate) struct ModuleDependency {
    pub(crate) from: String,
    pub(crate) to: String,
    /// The causes, such as `wire::json uses book::Page`.
    pub(crate) causes: BTreeSet<String>,
}

/// Returns all cycles of the crate.
pub(crate) fn find(tree: &Tree) -> Vec<Cycle> {
    let needs = module_dependencies(tree);
    let reached: Vec<BTreeSet<usize>> = (0..tree.modules.len()).map(|from| reachable(from, &needs)).collect();
    let mut cycles = Vec::new();
    let mut seen = BTreeSet::new();
    for from in 0..tree.modules.len() {
        let circle: BTreeSet<usize> =
            reached[from].iter().copied().filter(|to| reached[*to].contains(&from)).collect();
        if circle.len() < 2 || !seen.insert(circle.clone()) {
            continue;
        }
        let name = |module: &usize| tree.modules[*module].path.clone();
        let inside = needs.iter().filter(|((from, to), _)| circle.contains(from) && circle.contains(to));
        let mut inside: Vec<ModuleDependency> = inside
            .map(|((from, to), causes)| ModuleDependency {
                from: name(from),
                to: name(to),
                causes: causes.clone(),
            })
            .collect();
        inside.sort_by_key(|need| need.causes.len());
        let mut modules: Vec<String> = circle.iter().map(name).collect();
        modules.sort();
        cycles.push(Cycle { modules, needs: inside });
    }
    cycles
}

fn module_dependencies(tree: &Tree) -> ModuleDependencies {
    let mut needs = ModuleDependencies::new();
    for (at, module) in tree.modules.iter().enumerate() {
        for path in module.source.paths.iter().chain(&module.source.globs) {
            let (Some(Resolved::Module(to) | Resolved::Item(to)), Some(name)) =
                (tree.resolve(at, path), path.last())
            else {
                continue;
            };
            let (from_line, to_line) = (tree.ancestors(at), tree.ancestors(to));
            let parting = from_line.iter().zip(&to_line).position(|(from, to)| from != to);
            if let Some(parting) = parting {
                let inner = |path: &str| path.trim_start_matches("crate::").to_owned();
                let cause = format!("{} uses {}::{name}", inner(&module.path), inner(&tree.modules[to].path));
                needs.entry((from_line[parting], to_line[parting])).or_default().insert(cause);
            }
        }
    }
    needs
}

/// Returns the modules that `from` depends on, directly or indirectly.
fn reachable(from: usize, needs: &ModuleDependencies) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        for ((_, to), _) in needs.range((at, 0)..(at + 1, 0)) {
            if reached.insert(*to) {
                open.push(*to);
            }
        }
    }
    reached
}
