//! [`ModuleNames`]: the items that a module defines, the names it imports and the paths it contains.
//!
//! Reads the syntax only. Code for tests is ignored.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree};

/// A path in the source, without generics, such as `["crate", "wire", "Page"]`.
pub(crate) type SourcePath = Vec<String>;

/// The names of one module.
#[derive(Default)]
pub(crate) struct ModuleNames {
    /// The names of the defined types, functions, constants and statics.
    pub(crate) items: BTreeSet<String>,
    /// The structs, enums, unions, traits and type aliases among them.
    pub(crate) types: Vec<String>,
    /// The names that `use` binds, and their paths; without `use name`, whose path is the name itself.
    pub(crate) imports: BTreeMap<String, SourcePath>,
    /// The modules and enums with glob imports.
    pub(crate) globs: Vec<SourcePath>,
    /// All paths in imports, signatures, bodies and macros, except glob imports.
    pub(crate) paths: BTreeSet<SourcePath>,
}

/// A module inside another, with its own file or inline.
pub(crate) struct ChildModule<'a> {
    pub(crate) name: String,
    /// The items of an inline module; `None` if the module has its own file.
    pub(crate) items: Option<&'a [Item]>,
}

impl ModuleNames {
    /// Reads the items of one module. Nested modules are only listed.
    pub(crate) fn read(items: &[Item]) -> (ModuleNames, Vec<ChildModule<'_>>) {
        let mut names = ModuleNames::default();
        let mut children = Vec::new();
        for item in items.iter().filter(|item| !is_for_tests(attributes(item))) {
            if let Item::Mod(module) = item {
                let items = module.content.as_ref().map(|(_, items)| items.as_slice());
                children.push(ChildModule { name: module.ident.to_string(), items });
                continue;
            }
            if let Some((name, is_type)) = definition(item) {
                names.types.extend(is_type.then(|| name.clone()));
                names.items.insert(name);
            }
            names.visit_item(item);
        }
        (names, children)
    }

    /// Adds the paths and names of a `use` item. `path_prefix` is the path before `use_tree`.
    fn import(&mut self, use_tree: &UseTree, mut path_prefix: SourcePath) {
        match use_tree {
            UseTree::Path(path) => {
                path_prefix.push(path.ident.to_string());
                self.import(&path.tree, path_prefix);
            }
            UseTree::Name(name) => self.bind(path_prefix, &name.ident.to_string(), None),
            UseTree::Rename(name) => {
                self.bind(path_prefix, &name.ident.to_string(), Some(name.rename.to_string()));
            }
            UseTree::Glob(_) => self.globs.push(path_prefix),
            UseTree::Group(group) => {
                for use_tree in &group.items {
                    self.import(use_tree, path_prefix.clone());
                }
            }
        }
    }

    /// Adds one imported path, and the name that it binds.
    fn bind(&mut self, mut path: SourcePath, name: &str, alias: Option<String>) {
        if name != "self" {
            path.push(name.to_owned());
        }
        self.paths.insert(path.clone());
        let Some(bound) = alias.or_else(|| path.last().cloned()) else { return };
        // Underscore imports bind no name, but the path counts.
        if bound != "_" && path != [bound.as_str()] {
            self.imports.insert(bound, path);
        }
    }

    /// Scans the tokens of a macro: identifiers separated by `::` count as a path.
    fn scan(&mut self, tokens: TokenStream) {
        let mut path = SourcePath::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.paths.insert(std::mem::take(&mut path));
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                other => {
                    self.paths.insert(std::mem::take(&mut path));
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.scan(group.stream());
                    }
                }
            }
        }
        self.paths.insert(path);
    }
}

impl<'ast> Visit<'ast> for ModuleNames {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.import(&item.tree, SourcePath::new());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.paths.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.scan(call.tokens.clone());
    }

    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

/// Returns the name that an item defines, and `true` if it is a type.
fn definition(item: &Item) -> Option<(String, bool)> {
    let (ident, is_type) = match item {
        Item::Struct(item) => (&item.ident, true),
        Item::Enum(item) => (&item.ident, true),
        Item::Union(item) => (&item.ident, true),
        Item::Trait(item) => (&item.ident, true),
        Item::Type(item) => (&item.ident, true),
        Item::Fn(item) => (&item.sig.ident, false),
        Item::Const(item) => (&item.ident, false),
        Item::Static(item) => (&item.ident, false),
        _ => return None,
    };
    Some((ident.to_string(), is_type))
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns `true` for `#[cfg(test)]`, alone or as the first of several conditions.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let Ok(list) = attribute.meta.require_list() else { return false };
        let condition = list.tokens.to_string().replace(' ', "");
        list.path.is_ident("cfg") && (condition == "test" || condition.starts_with("all(test,"))
    })
}
