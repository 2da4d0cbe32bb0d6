//! [`Draft`]: the input of a refused form, shown again with its errors.

use crate::pages::{ErrorResponse, form::Form};

/// The input of a refused form; empty if no form was refused.
#[derive(Default)]
pub(super) struct Draft {
    /// The path that the form was sent to, below account and mode.
    form_path: String,
    fields: Option<Form>,
    pub(super) error_response: Option<ErrorResponse>,
}

impl Draft {
    pub(super) fn new(form_path: impl Into<String>, fields: Form, error_response: ErrorResponse) -> Draft {
        Draft { form_path: form_path.into(), fields: Some(fields), error_response: Some(error_response) }
    }

    /// Creates a draft that shows an error without a form.
    pub(super) fn from_error_response(error_response: ErrorResponse) -> Draft {
        Draft { error_response: Some(error_response), ..Draft::default() }
    }

    /// Returns the input if the form with this path was refused.
    fn fields_for(&self, form: &str) -> Option<&Form> {
        self.fields.as_ref().filter(|_| self.form_path == form)
    }

    /// Returns `true` if this form was refused.
    pub(super) fn is_for(&self, form: &str) -> bool {
        self.fields_for(form).is_some()
    }

    /// Returns the input of a field of this form; empty if another form was refused.
    pub(super) fn value(&self, form: &str, name: &str) -> &str {
        self.fields_for(form).and_then(|fields| fields.text(name)).unwrap_or_default()
    }

    /// Returns the input of a field if this form was refused, else its initial value.
    pub(super) fn value_or<'a>(&'a self, form: &str, name: &str, initial: &'a str) -> &'a str {
        if self.is_for(form) { self.value(form, name) } else { initial }
    }

    /// Returns the errors of a field as a whole, such as `items`, without those of its parts, such as `items.0`.
    pub(super) fn own_errors(&self, form: &str, name: &str) -> Vec<&str> {
        let Some(error_response) = self.error_response.as_ref().filter(|_| self.is_for(form)) else {
            return Vec::new();
        };
        error_response.errors.get(name).into_iter().flatten().map(String::as_str).collect()
    }

    /// Returns the input of all fields of this form with this name, in order.
    pub(super) fn values(&self, form: &str, name: &str) -> Vec<&str> {
        self.fields_for(form).map(|fields| fields.values(name).collect()).unwrap_or_default()
    }

    /// Returns `true` if a checkbox or an option of this form was selected.
    pub(super) fn is_selected(&self, form: &str, name: &str, value: &str) -> bool {
        self.fields_for(form).is_some_and(|fields| fields.values(name).any(|selected| selected == value))
    }

    /// Returns the errors of a field of this form and of its parts.
    pub(super) fn errors(&self, form: &str, name: &str) -> Vec<&str> {
        let Some(error_response) = self.error_response.as_ref().filter(|_| self.is_for(form)) else {
            return Vec::new();
        };
        let is_part = |field: &str| field.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        let matching = error_response.errors.iter().filter(|(field, _)| *field == name || is_part(field));
        matching.flat_map(|(_, messages)| messages).map(String::as_str).collect()
    }
}
