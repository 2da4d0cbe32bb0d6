//! Stable names: each code and id of a run has one, given by the script or numbered in order of appearance.

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
    objects: BTreeMap<String, NamedObject>,
    names: BTreeMap<String, String>,
    /// Names that the script gives, now or later; numbering skips them.
    given: BTreeSet<String>,
    counted: BTreeMap<Kind, u32>,
}

impl Aliases {
    pub(super) fn new<'a>(given: impl IntoIterator<Item = &'a str>) -> Aliases {
        Aliases {
            objects: BTreeMap::new(),
            names: BTreeMap::new(),
            given: given.into_iter().map(str::to_owned).collect(),
            counted: BTreeMap::new(),
        }
    }

    /// Assigns a name that the script gives.
    pub(super) fn assign(&mut self, name: &str, thing: NamedObject) {
        self.names.insert(thing.id.clone(), name.to_owned());
        self.objects.insert(name.to_owned(), thing);
    }

    /// Returns the name of an object; assigns the next number if it has none.
    pub(super) fn name(&mut self, kind: Kind, mode: Mode, id: &str) -> String {
        if let Some(name) = self.names.get(id) {
            let thing = self.objects.get_mut(name).expect("every name has an object");
            if thing.kind == Kind::Saved {
                *thing = NamedObject { kind, mode, id: id.to_owned() };
            }
            return name.clone();
        }
        let count = self.counted.entry(kind).or_insert(0);
        let name = loop {
            *count += 1;
            let name = format!("{}{count}", kind.letter());
            if !self.given.contains(&name) {
                break name;
            }
        };
        self.assign(&name, NamedObject { kind, mode, id: id.to_owned() });
        name
    }

    /// Returns the object of a name, if it has appeared.
    pub(super) fn get(&self, name: &str) -> Option<&NamedObject> {
        self.objects.get(name)
    }

    /// Returns the name of an id or a code, if it has one. A saved value may be any string, so it names no other object.
    pub(super) fn name_of(&self, id: &str) -> Option<&str> {
        let name = self.names.get(id)?;
        let is_saved = self.objects.get(name).is_some_and(|thing| thing.kind == Kind::Saved);
        (!is_saved).then_some(name.as_str())
    }

    /// Returns the existing objects with names that the script gives.
    pub(super) fn script_objects(&self) -> BTreeMap<String, String> {
        let given = self.objects.iter().filter(|(name, _)| self.given.contains(*name));
        given.map(|(name, thing)| (name.clone(), thing.id.clone())).collect()
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
    fn numbering_skips_the_names_that_the_script_gives() {
        let mut aliases = Aliases::new(["c1", "c3"]);
        let mut name = |id| aliases.name(Kind::Charge, Mode::Live, id);
        assert_eq!([name("aaa"), name("bbb"), name("aaa")], ["c2", "c4", "c2"]);
        aliases.assign("c1", NamedObject { kind: Kind::Charge, mode: Mode::Test, id: "zzz".to_owned() });
        assert_eq!(aliases.name(Kind::Charge, Mode::Live, "zzz"), "c1");
    }

    #[test]
    fn a_saved_value_becomes_the_name_of_its_object() {
        let mut aliases = Aliases::new(["mine"]);
        aliases.assign("mine", NamedObject { kind: Kind::Saved, mode: Mode::Live, id: "abc".to_owned() });
        assert_eq!(aliases.name(Kind::Charge, Mode::Test, "abc"), "mine");
        assert_eq!(
            aliases.get("mine").map(|thing| (thing.kind, thing.mode)),
            Some((Kind::Charge, Mode::Test))
        );
    }
}
