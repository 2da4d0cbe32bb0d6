//! The cycles among modules.
//!
//! Modules are compared where their paths part: `wire::json` using `book::page` means that `wire` needs `book`.
//! Among the modules of one parent, each taken with everything inside it, the needs must have a direction. A
//! module and its content may use each other.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::{Found, Tree};

/// The needs of modules, with their causes.
type Needs = BTreeMap<(usize, usize), BTreeSet<String>>;

/// Modules of one parent that need each other.
pub(crate) struct Circle {
    /// Their paths, in alphabetical order.
    pub(crate) modules: Vec<String>,
    /// Each need inside the circle. Those with the fewest causes, which are the easiest to cut, come first.
    pub(crate) needs: Vec<Need>,
}

/// One module uses names of another.
pub(crate) struct Need {
    pub(crate) from: String,
    pub(crate) to: String,
    /// Such as `wire::json uses book::Page`.
    pub(crate) causes: BTreeSet<String>,
}

/// Every circle of the crate.
pub(crate) fn find(tree: &Tree) -> Vec<Circle> {
    let needs = needs(tree);
    let reached: Vec<BTreeSet<usize>> = (0..tree.modules.len()).map(|from| reachable(from, &needs)).collect();
    let mut circles = Vec::new();
    let mut seen = BTreeSet::new();
    for from in 0..tree.modules.len() {
        let circle: BTreeSet<usize> =
            reached[from].iter().copied().filter(|to| reached[*to].contains(&from)).collect();
        if circle.len() < 2 || !seen.insert(circle.clone()) {
            continue;
        }
        let name = |module: &usize| tree.modules[*module].path.clone();
        let inside = needs.iter().filter(|((from, to), _)| circle.contains(from) && circle.contains(to));
        let mut inside: Vec<Need> = inside
            .map(|((from, to), causes)| Need { from: name(from), to: name(to), causes: causes.clone() })
            .collect();
        inside.sort_by_key(|need| need.causes.len());
        let mut modules: Vec<String> = circle.iter().map(name).collect();
        modules.sort();
        circles.push(Circle { modules, needs: inside });
    }
    circles
}

fn needs(tree: &Tree) -> Needs {
    let mut needs = Needs::new();
    for (at, module) in tree.modules.iter().enumerate() {
        for path in module.source.paths.iter().chain(&module.source.globs) {
            let (Some(Found::Module(to) | Found::Item(to)), Some(name)) =
                (tree.resolve(at, path), path.last())
            else {
                continue;
            };
            let (from_line, to_line) = (tree.line(at), tree.line(to));
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

/// Returns the modules that `from` needs, directly or through others.
fn reachable(from: usize, needs: &Needs) -> BTreeSet<usize> {
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
