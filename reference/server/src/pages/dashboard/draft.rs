//! The draft of a refused form, so that nobody types it twice.

use crate::pages::{Complaint, form::Form};

/// A refused form; empty if none was.
#[derive(Default)]
pub(super) struct Draft {
    /// The form: the path that it was sent to, below the place.
    form: String,
    fields: Option<Form>,
    pub(super) complaint: Option<Complaint>,
}

impl Draft {
    pub(super) fn new(form: impl Into<String>, fields: Form, complaint: Complaint) -> Draft {
        Draft { form: form.into(), fields: Some(fields), complaint: Some(complaint) }
    }

    /// Something was refused that no form asked for.
    pub(super) fn refused(complaint: Complaint) -> Draft {
        Draft { complaint: Some(complaint), ..Draft::default() }
    }

    fn fields_of(&self, form: &str) -> Option<&Form> {
        self.fields.as_ref().filter(|_| self.form == form)
    }

    /// Returns `true` if this form was refused.
    pub(super) fn is_of(&self, form: &str) -> bool {
        self.fields_of(form).is_some()
    }

    /// Returns the text that was typed into a field of this form.
    pub(super) fn typed(&self, form: &str, name: &str) -> &str {
        self.fields_of(form).and_then(|fields| fields.text(name)).unwrap_or_default()
    }

    /// The same, or what stands there at first.
    pub(super) fn typed_or<'a>(&'a self, form: &str, name: &str, first: &'a str) -> &'a str {
        if self.is_of(form) { self.typed(form, name) } else { first }
    }

    /// Returns the errors of a field of this form as a whole, without those of its parts.
    pub(super) fn wrong_itself(&self, form: &str, name: &str) -> Vec<&str> {
        let Some(complaint) = self.complaint.as_ref().filter(|_| self.is_of(form)) else {
            return Vec::new();
        };
        complaint.errors.get(name).into_iter().flatten().map(String::as_str).collect()
    }

    /// Every value that was typed into the fields of this name, in order.
    pub(super) fn all(&self, form: &str, name: &str) -> Vec<&str> {
        self.fields_of(form).map(|fields| fields.all(name).collect()).unwrap_or_default()
    }

    /// Returns `true` if a box was ticked, or an option chosen.
    pub(super) fn chosen(&self, form: &str, name: &str, value: &str) -> bool {
        self.fields_of(form).is_some_and(|fields| fields.all(name).any(|it| it == value))
    }

    /// Returns the errors of a field of this form.
    pub(super) fn wrong(&self, form: &str, name: &str) -> Vec<&str> {
        let Some(complaint) = self.complaint.as_ref().filter(|_| self.is_of(form)) else {
            return Vec::new();
        };
        let below = |field: &str| field.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        let named = complaint.errors.iter().filter(|(field, _)| *field == name || below(field));
        named.flat_map(|(_, messages)| messages).map(String::as_str).collect()
    }
}
