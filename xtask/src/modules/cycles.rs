//! The cycles among modules.
//!
//! Modules are compared where their paths diverge: `wire::json` using `book::page` means that `wire` depends on
//! `book`. Among the modules of one parent, each with everything inside it, dependencies must not form a cycle. A
//! module and its content may use each other.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::{ModuleTree, PathTarget};

/// Dependencies between modules: from the first index to the second, with their causes.
type ModuleDependencies = BTreeMap<(usize, usize), BTreeSet<String>>;

/// Modules of one parent, each of which depends on all others, directly or indirectly.
pub(crate) struct Cycle {
    /// The paths of the modules, in alphabetical order.
    pub(crate) modules: Vec<String>,
    /// The dependencies inside the cycle. Those with the fewest causes, which are the easiest to remove, come first.
    pub(crate) dependencies: Vec<ModuleDependency>,
}

/// A dependency of one module on another.
pub(crate) struct ModuleDependency {
    pub(crate) from: String,
    pub(crate) to: String,
    /// The causes, such as `wire::json uses book::Page`.
    pub(crate) causes: BTreeSet<String>,
}

/// Returns all cycles of the crate.
pub(crate) fn find(tree: &ModuleTree) -> Vec<Cycle> {
    let all_dependencies = module_dependencies(tree);
    let reached: Vec<BTreeSet<usize>> =
        (0..tree.modules.len()).map(|from| reachable(from, &all_dependencies)).collect();
    let mut cycles = Vec::new();
    let mut found = BTreeSet::new();
    for from in 0..tree.modules.len() {
        let cycle: BTreeSet<usize> =
            reached[from].iter().copied().filter(|to| reached[*to].contains(&from)).collect();
        if cycle.len() < 2 || !found.insert(cycle.clone()) {
            continue;
        }
        let name = |module: &usize| tree.modules[*module].path.clone();
        let dependencies =
            all_dependencies.iter().filter(|((from, to), _)| cycle.contains(from) && cycle.contains(to));
        let mut dependencies: Vec<ModuleDependency> = dependencies
            .map(|((from, to), causes)| ModuleDependency {
                from: name(from),
                to: name(to),
                causes: causes.clone(),
            })
            .collect();
        dependencies.sort_by_key(|dependency| dependency.causes.len());
        let mut modules: Vec<String> = cycle.iter().map(name).collect();
        modules.sort();
        cycles.push(Cycle { modules, dependencies });
    }
    cycles
}

/// Returns the dependencies between modules of one parent.
fn module_dependencies(tree: &ModuleTree) -> ModuleDependencies {
    let mut dependencies = ModuleDependencies::new();
    for (index, module) in tree.modules.iter().enumerate() {
        for path in module.names.paths.iter().chain(&module.names.globs) {
            let (Some(PathTarget::Module(to) | PathTarget::Item(to)), Some(name)) =
                (tree.resolve(index, path), path.last())
            else {
                continue;
            };
            let (from_ancestors, to_ancestors) = (tree.ancestors(index), tree.ancestors(to));
            let divergence = from_ancestors.iter().zip(&to_ancestors).position(|(from, to)| from != to);
            // A module and its content do not diverge.
            if let Some(depth) = divergence {
                let without_crate = |path: &str| path.trim_start_matches("crate::").to_owned();
                let cause = format!(
                    "{} uses {}::{name}",
                    without_crate(&module.path),
                    without_crate(&tree.modules[to].path)
                );
                dependencies.entry((from_ancestors[depth], to_ancestors[depth])).or_default().insert(cause);
            }
        }
    }
    dependencies
}

/// Returns the modules that `from` depends on, directly or indirectly.
fn reachable(from: usize, dependencies: &ModuleDependencies) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut pending = vec![from];
    while let Some(module) = pending.pop() {
        for ((_, to), _) in dependencies.range((module, 0)..(module + 1, 0)) {
            if reached.insert(*to) {
                pending.push(*to);
            }
        }
    }
    reached
}
