//! [`Form`]: the fields of a submitted form.

use http::{HeaderMap, header::CONTENT_TYPE};
use serde::Serialize;
use simulator::api::CustomFieldValue;
use url::form_urlencoded;

use crate::refusal::Refusal;

/// The maximum number of fields, more than any form has.
const FIELDS_MAX: usize = 200;

/// The fields of a form, in order.
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    /// Parses the body of a submitted form.
    pub(crate) fn parse(headers: &HeaderMap, body: &[u8]) -> Result<Form, Refusal> {
        let is_form = headers.get(CONTENT_TYPE).is_some_and(|value| {
            let media_type = value.as_bytes().split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
            media_type.eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
        });
        if !is_form && !body.is_empty() {
            return Err(Refusal::NotAForm);
        }
        let fields = form_urlencoded::parse(body).take(FIELDS_MAX);
        Ok(Form(fields.map(|(name, value)| (name.into_owned(), value.into_owned())).collect()))
    }

    /// Returns the first value of a field without surrounding white space; `None` if that is empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(field, _)| field == name)?;
        Some(value.trim()).filter(|value| !value.is_empty())
    }

    /// Returns all values of a field, unchanged.
    pub(crate) fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(field, _)| field == name).map(|(_, value)| value.as_str())
    }
}

/// A customer's input on a payment link or an invoice. Empty fields are omitted.
#[derive(Default, Serialize)]
pub(crate) struct CustomerChoice<'f> {
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) asset: &'f str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) amount: &'f str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) customer_email: &'f str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) customer_name: &'f str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) custom_fields: Vec<CustomFieldValue>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(content_type: Option<&str>, body: &str) -> Result<Form, Refusal> {
        let mut headers = HeaderMap::new();
        if let Some(content_type) = content_type {
            headers.insert(CONTENT_TYPE, content_type.parse().expect("headers in tests are valid"));
        }
        Form::parse(&headers, body.as_bytes())
    }

    #[test]
    fn fields_are_found_by_name() {
        let form =
            parse(Some("application/x-www-form-urlencoded; charset=utf-8"), "a=+1%20&b=&a=2&c=%3Cb%3E")
                .unwrap_or_else(|refusal| panic!("{refusal}"));
        assert_eq!(form.text("a"), Some("1"));
        assert_eq!(form.text("b"), None);
        assert_eq!(form.text("c"), Some("<b>"));
        assert_eq!(form.values("a").collect::<Vec<_>>(), [" 1 ", "2"]);
    }

    #[test]
    fn other_content_types_are_not_forms() {
        assert!(matches!(parse(Some("application/json"), "{}"), Err(Refusal::NotAForm)));
        assert!(matches!(parse(None, "a=1"), Err(Refusal::NotAForm)));
        assert!(parse(None, "").is_ok());
    }
}
