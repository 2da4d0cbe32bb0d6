//! The step `expect`: checks the current state of objects.

use reference_core::event::EventType;
use serde_json::Value;

use super::{Player, failure::StepError, lines::trim_trailing_zeros};
use crate::script::{
    At, Kind,
    step::{Expect, Expected},
    value::EventTypeName,
};

impl Player<'_> {
    pub(super) fn expect(&mut self, expect: &Expect) -> Result<(), StepError> {
        expect.iter().try_for_each(|(name, expected)| self.check_object(name, expected))
    }

    /// Checks the expectations on one object.
    fn check_object(&mut self, name: &str, expected: &At<Expected>) -> Result<(), StepError> {
        let named = self.find_object(name, expected.span)?;
        let id = named.id.as_str();
        let object = match named.kind {
            Kind::Charge => self.read_json(self.book_of(&named), &format!("/v1/charges/{id}"))?,
            Kind::Invoice => self.read_json(self.book_of(&named), &format!("/v1/invoices/{id}"))?,
            Kind::Link => self.read_json(self.book_of(&named), &format!("/v1/payment-links/{id}"))?,
            Kind::Endpoint => self.find_in_list("/sandbox/endpoints", "/endpoints", id, "removed")?,
            Kind::Delivery => self.find_in_list("/sandbox/deliveries", "/deliveries", id, "unknown")?,
            Kind::Transaction => {
                let state = self.tally.transfers.get(id).map_or("unseen", |state| state);
                serde_json::json!({ "status": state })
            }
            Kind::Key | Kind::Account | Kind::Event | Kind::Saved => {
                let label = format!("it is a {}", named.kind);
                return Err(StepError::impossible(expected.span, format!("`{name}` has no state"), label));
            }
        };
        let check = Check { name, expected, object: &object };
        check.check_text("status", "/status", expected.status.as_deref())?;
        check.check_text("received", "/received_amount", expected.received.as_deref())?;
        for (pointer, value) in &expected.fields {
            let actual = object.pointer(pointer).unwrap_or(&Value::Null);
            check.check_equal(pointer, value == actual, value.to_string(), actual.to_string())?;
        }
        if let Some(types) = &expected.events {
            check.check_types("events", types, self.tally.events.get(id))?;
        }
        if let Some(results) = &expected.answers {
            let actual = self.tally.attempt_results.get(id).map(Vec::as_slice).unwrap_or_default();
            check.check_list(
                "answers",
                results.iter().map(String::as_str),
                actual.iter().map(String::as_str),
            )?;
        }
        if let Some(types) = &expected.acknowledged {
            check.check_types("acknowledged", types, self.tally.acknowledged.get(id))?;
        }
        Ok(())
    }

    /// Returns the object with an id from a sandbox list. If it is not in the list, returns an object whose
    /// status is `absent`.
    fn find_in_list(
        &mut self,
        path: &str,
        pointer: &str,
        id: &str,
        absent: &str,
    ) -> Result<Value, StepError> {
        let response = self.request_ok("GET", path, None)?.json();
        let list = response.pointer(pointer).and_then(Value::as_array);
        let found =
            list.into_iter().flatten().find(|item| item.get("id").and_then(Value::as_str) == Some(id));
        Ok(found.cloned().unwrap_or_else(|| serde_json::json!({ "status": absent })))
    }
}

/// The checks of one object. The name and position are for error messages.
struct Check<'a> {
    name: &'a str,
    expected: &'a At<Expected>,
    object: &'a Value,
}

impl Check<'_> {
    fn check_text(&self, field: &str, pointer: &str, expected: Option<&str>) -> Result<(), StepError> {
        let Some(expected) = expected else { return Ok(()) };
        let actual = self.object.pointer(pointer).and_then(Value::as_str).unwrap_or("nothing");
        self.check_equal(
            field,
            trim_trailing_zeros(expected) == trim_trailing_zeros(actual),
            expected.to_owned(),
            trim_trailing_zeros(actual),
        )
    }

    fn check_types(
        &self,
        field: &str,
        expected: &[EventTypeName],
        actual: Option<&Vec<EventType>>,
    ) -> Result<(), StepError> {
        let actual = actual.map(Vec::as_slice).unwrap_or_default();
        self.check_list(
            field,
            expected.iter().map(|kind| kind.0.as_str()),
            actual.iter().map(|kind| kind.as_str()),
        )
    }

    fn check_list<'s>(
        &self,
        field: &str,
        expected: impl Iterator<Item = &'s str>,
        actual: impl Iterator<Item = &'s str>,
    ) -> Result<(), StepError> {
        let (expected, actual): (Vec<&str>, Vec<&str>) = (expected.collect(), actual.collect());
        let format_list = |list: &[&str]| if list.is_empty() { "none".to_owned() } else { list.join(" ") };
        self.check_equal(field, expected == actual, format_list(&expected), format_list(&actual))
    }

    fn check_equal(
        &self,
        field: &str,
        is_equal: bool,
        expected: String,
        actual: String,
    ) -> Result<(), StepError> {
        if is_equal {
            return Ok(());
        }
        let title = format!("{} of {} is not as expected", field, self.name);
        let label = if actual.len() <= 40 { format!("is `{actual}`") } else { "differs".to_owned() };
        Err(StepError::unmet_expectation(self.expected.span, title, &label, expected, actual))
    }
}
