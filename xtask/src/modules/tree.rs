//! [`ModuleTree`]: the modules of one crate, and the resolution of paths.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use syn::Item;

use super::module_names::ModuleNames;

/// The maximum length of a chain of imports. Longer chains count as cycles of `use` items, which the compiler rejects.
const HOPS_MAX: usize = 32;

/// The modules of a library or a program. The first is the root, and each follows its parent.
pub(crate) struct ModuleTree {
    pub(crate) modules: Vec<Module>,
}

/// One module.
pub(crate) struct Module {
    /// The path: `crate`, `crate::wire`, `crate::wire::json`.
    pub(crate) path: String,
    /// The file of the module, relative to the workspace.
    pub(crate) file: PathBuf,
    pub(crate) names: ModuleNames,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
}

/// The target of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathTarget {
    Module(usize),
    /// An item of this module.
    Item(usize),
}

impl ModuleTree {
    /// Reads the crate with the root `file`. The files in the tree are relative to `workspace`.
    ///
    /// # Errors
    /// A file cannot be read, or is not Rust.
    pub(crate) fn read(workspace: &Path, file: &Path) -> Result<ModuleTree, String> {
        let mut tree = ModuleTree { modules: Vec::new() };
        let directory = file.parent().ok_or("a crate without a directory")?;
        tree.read_file(workspace, file, directory, None, "crate")?;
        Ok(tree)
    }

    /// Parses a crate with inline modules only.
    #[cfg(test)]
    pub(crate) fn parse(text: &str) -> Result<ModuleTree, String> {
        let parsed = syn::parse_file(text).map_err(|err| err.to_string())?;
        let mut tree = ModuleTree { modules: Vec::new() };
        tree.add(Path::new(""), Path::new("lib.rs"), Path::new(""), None, "crate", &parsed.items)?;
        Ok(tree)
    }

    /// Reads a module with its own file, and adds it as [`ModuleTree::add`] does.
    fn read_file(
        &mut self,
        workspace: &Path,
        file: &Path,
        directory: &Path,
        parent: Option<usize>,
        name: &str,
    ) -> Result<usize, String> {
        let text =
            fs::read_to_string(file).map_err(|err| format!("cannot read `{}`: {err}", file.display()))?;
        let parsed =
            syn::parse_file(&text).map_err(|err| format!("`{}` is not Rust: {err}", file.display()))?;
        self.add(workspace, file, directory, parent, name, &parsed.items)
    }

    /// Adds a module and its content. `directory` has the files of its child modules. Returns the index of the module.
    fn add(
        &mut self,
        workspace: &Path,
        file: &Path,
        directory: &Path,
        parent: Option<usize>,
        name: &str,
        items: &[Item],
    ) -> Result<usize, String> {
        let (names, children) = ModuleNames::read(items);
        let path = match parent {
            Some(parent) => format!("{}::{name}", self.modules[parent].path),
            None => name.to_owned(),
        };
        let index = self.modules.len();
        let relative = file.strip_prefix(workspace).unwrap_or(file).to_owned();
        self.modules.push(Module { path, file: relative, names, parent, children: BTreeMap::new() });
        for child in children {
            let child_directory = directory.join(&child.name);
            let added = match child.items {
                Some(items) => {
                    self.add(workspace, file, &child_directory, Some(index), &child.name, items)?
                }
                None => {
                    let flat = directory.join(format!("{}.rs", child.name));
                    let file = if flat.is_file() { flat } else { child_directory.join("mod.rs") };
                    self.read_file(workspace, &file, &child_directory, Some(index), &child.name)?
                }
            };
            self.modules[index].children.insert(child.name, added);
        }
        Ok(index)
    }

    /// Returns the target of a path written in `module`; `None` for names that are not defined in this crate.
    pub(crate) fn resolve(&self, module: usize, path: &[String]) -> Option<PathTarget> {
        self.resolve_path(module, path, HOPS_MAX)
    }

    fn resolve_path(&self, module: usize, path: &[String], hops: usize) -> Option<PathTarget> {
        let hops = hops.checked_sub(1)?;
        let (first, mut rest) = path.split_first()?;
        let mut target = match first.as_str() {
            "crate" => PathTarget::Module(0),
            "self" => PathTarget::Module(module),
            "super" => PathTarget::Module(self.modules[module].parent?),
            name => self.look_up(module, name, rest.is_empty(), hops)?,
        };
        while let (PathTarget::Module(inner), [name, remaining @ ..]) = (target, rest) {
            target = match name.as_str() {
                "super" => PathTarget::Module(self.modules[inner].parent?),
                // An unknown name was defined by a macro of that module.
                name => {
                    self.look_up(inner, name, remaining.is_empty(), hops).unwrap_or(PathTarget::Item(inner))
                }
            };
            rest = remaining;
        }
        Some(target)
    }

    /// Returns the target of a name in `module`. If a module and an item share the name, it means the item at the
    /// end of a path, and the module before the end.
    fn look_up(&self, module: usize, name: &str, is_last: bool, hops: usize) -> Option<PathTarget> {
        let current = &self.modules[module];
        if is_last && current.names.items.contains(name) {
            return Some(PathTarget::Item(module));
        }
        if let Some(child) = current.children.get(name) {
            return Some(PathTarget::Module(*child));
        }
        if current.names.items.contains(name) {
            return Some(PathTarget::Item(module));
        }
        if let Some(path) = current.names.imports.get(name) {
            return self.resolve_path(module, path, hops);
        }
        current.names.globs.iter().find_map(|glob| match self.resolve_path(module, glob, hops)? {
            PathTarget::Module(other) if other != module => {
                self.look_up(other, name, is_last, hops.checked_sub(1)?)
            }
            _ => None,
        })
    }

    /// Returns the modules from the root to this one, both included.
    pub(crate) fn ancestors(&self, module: usize) -> Vec<usize> {
        let mut path: Vec<usize> =
            std::iter::successors(Some(module), |module| self.modules[*module].parent).collect();
        path.reverse();
        path
    }
}
