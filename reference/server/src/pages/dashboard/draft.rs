//! [`Draft`]: the input of a refused form, shown again with its errors.

use crate::pages::{Complaint, form::Form};

/// The input of a refused form; empty if no form was refused.
#[derive(Default)]
pub(super) struct Draft {
    /// The path that the form was sent to, below account and mode.
    form: String,
    fields: Option<Form>,
    pub(super) complaint: Option<Complaint>,
}

impl Draft {
    pub(super) fn new(form: impl Into<String>, fields: Form, complaint: Complaint) -> Draft {
        Draft { form: form.into(), fields: Some(fields), complaint: Some(complaint) }
    }

    /// Creates a draft for an error without a form.
    pub(super) fn from_complaint(complaint: Complaint) -> Draft {
        Draft { complaint: Some(complaint), ..Draft::default() }
    }

    fn fields_of(&self, form: &str) -> Option<&Form> {
        self.fields.as_ref().filter(|_| self.form == form)
    }

    /// Returns `true` if this form was refused.
    pub(super) fn is_of(&self, form: &str) -> bool {
        self.fields_of(form).is_some()
    }

    /// Returns the input of a field of this form.
    pub(super) fn typed(&self, form: &str, name: &str) -> &str {
        self.fields_of(form).and_then(|fields| fields.text(name)).unwrap_or_default()
    }

    /// Returns the input of a field if this form was refused, else its initial value.
    pub(super) fn typed_or<'a>(&'a self, form: &str, name: &str, first: &'a str) -> &'a str {
        if self.is_of(form) { self.typed(form, name) } else { first }
    }

    /// Returns the errors of a field as a whole, without those of its parts.
    pub(super) fn own_errors(&self, form: &str, name: &str) -> Vec<&str> {
        let Some(complaint) = self.complaint.as_ref().filter(|_| self.is_of(form)) else {
            return Vec::new();
        };
        complaint.errors.get(name).into_iter().flatten().map(String::as_str).collect()
    }

    /// Returns all values of the fields with this name, in order.
    pub(super) fn values(&self, form: &str, name: &str) -> Vec<&str> {
        self.fields_of(form).map(|fields| fields.values(name).collect()).unwrap_or_default()
    }

    /// Returns `true` if a checkbox or an option was selected.
    pub(super) fn chosen(&self, form: &str, name: &str, value: &str) -> bool {
        self.fields_of(form).is_some_and(|fields| fields.values(name).any(|typed| typed == value))
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
