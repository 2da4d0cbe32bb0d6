//! Stable names of objects: each code and id in a transcript is replaced by the name from the script, or by a letter
//! and a number in order of appearance (`c1`, `e1`).

use std::collections::{BTreeMap, BTreeSet};

use reference_core::mode::Mode;

use crate::script::Kind;

/// The object of a name.
#[derive(Clone, Debug)]
pub(super) struct NamedObject {
    pub(super) kind: Kind,
    pub(super) mode: Mode,
    /// The code, id or value in this world.
    pub(super) id: String,
}

/// The names of one run.
#[derive(Debug)]
pub(super) struct Aliases {
    /// The object of each name.
    objects: BTreeMap<String, NamedObject>,
    /// The name of each code or id.
    names: BTreeMap<String, String>,
    /// The names that any step of the script assigns; numbering skips them.
    script_names: BTreeSet<String>,
    /// The last number assigned to each kind.
    last_numbers: BTreeMap<Kind, u32>,
}

impl Aliases {
    pub(super) fn new<'a>(script_names: impl IntoIterator<Item = &'a str>) -> Aliases {
        Aliases {
            objects: BTreeMap::new(),
            names: BTreeMap::new(),
            script_names: script_names.into_iter().map(str::to_owned).collect(),
            last_numbers: BTreeMap::new(),
        }
    }

    /// Assigns a name to an object.
    pub(super) fn assign(&mut self, name: &str, object: NamedObject) {
        self.names.insert(object.id.clone(), name.to_owned());
        self.objects.insert(name.to_owned(), object);
    }

    /// Returns the name of an object; assigns a numbered one if it has none. The name of a saved value then
    /// stands for this object.
    pub(super) fn name_or_assign(&mut self, kind: Kind, mode: Mode, id: &str) -> String {
        if let Some(name) = self.names.get(id) {
            let object = self.objects.get_mut(name).expect("every name has an object");
            if object.kind == Kind::Saved {
                *object = NamedObject { kind, mode, id: id.to_owned() };
            }
            return name.clone();
        }
        let number = self.last_numbers.entry(kind).or_insert(0);
        let name = loop {
            *number += 1;
            let name = format!("{}{number}", kind.letter());
            if !self.script_names.contains(&name) {
                break name;
            }
        };
        self.assign(&name, NamedObject { kind, mode, id: id.to_owned() });
        name
    }

    /// Returns the object of a name; `None` if the name is not assigned yet.
    pub(super) fn get(&self, name: &str) -> Option<&NamedObject> {
        self.objects.get(name)
    }

    /// Returns the name of an id or a code, if it has one. A saved value may be any string, so it names no other object.
    pub(super) fn name_of(&self, id: &str) -> Option<&str> {
        let name = self.names.get(id)?;
        let is_saved = self.objects.get(name).is_some_and(|object| object.kind == Kind::Saved);
        (!is_saved).then_some(name.as_str())
    }

    /// Returns the ids of the existing objects that the script names, by name.
    pub(super) fn script_objects(&self) -> BTreeMap<String, String> {
        let named = self.objects.iter().filter(|(name, _)| self.script_names.contains(*name));
        named.map(|(name, object)| (name.clone(), object.id.clone())).collect()
    }

    /// Returns all names so far.
    pub(super) fn all_names(&self) -> impl Iterator<Item = &str> {
        self.objects.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbering_skips_the_names_of_the_script() {
        let mut aliases = Aliases::new(["c1", "c3"]);
        let mut name = |id| aliases.name_or_assign(Kind::Charge, Mode::Live, id);
        assert_eq!([name("aaa"), name("bbb"), name("aaa")], ["c2", "c4", "c2"]);
        aliases.assign("c1", NamedObject { kind: Kind::Charge, mode: Mode::Test, id: "zzz".to_owned() });
        assert_eq!(aliases.name_or_assign(Kind::Charge, Mode::Live, "zzz"), "c1");
    }

    #[test]
    fn a_saved_value_becomes_the_name_of_its_object() {
        let mut aliases = Aliases::new(["mine"]);
        aliases.assign("mine", NamedObject { kind: Kind::Saved, mode: Mode::Live, id: "abc".to_owned() });
        assert_eq!(aliases.name_or_assign(Kind::Charge, Mode::Test, "abc"), "mine");
        assert_eq!(
            aliases.get("mine").map(|object| (object.kind, object.mode)),
            Some((Kind::Charge, Mode::Test))
        );
    }
}
