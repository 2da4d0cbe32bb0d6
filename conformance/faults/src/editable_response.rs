//! [`EditableResponse`]: a response with a parsed body, into which faults can be injected.

use conformance_model::body::Body;
use conformance_model::recording::ReceivedResponse;
use serde_json::Value;

/// Stands for a byte that is not UTF-8 in [`EditableResponse::body`] and [`EditableResponse::raw`].
pub(crate) const INVALID_BYTE: char = char::REPLACEMENT_CHARACTER;

/// A response with a parsed body, into which faults can be injected.
#[derive(Clone, Debug, PartialEq)]
pub struct EditableResponse {
    /// The status code.
    pub status: u16,
    /// The header fields, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The JSON body; ignored if `raw` is set.
    pub body: Value,
    /// The body as text, if it is not JSON or its formatting matters.
    pub raw: Option<String>,
}

impl EditableResponse {
    /// Returns a JSON response.
    pub fn json(status: u16, body: Value) -> EditableResponse {
        let headers = vec![("content-type".into(), "application/json".into())];
        EditableResponse { status, headers, body, raw: None }
    }

    /// Sets a header field, replacing others of the same name.
    pub fn set_header(&mut self, name: &str, value: &str) {
        self.remove_header(name);
        self.headers.push((name.into(), value.into()));
    }

    /// Returns the first value of a header field.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    /// Removes all header fields of a name.
    pub fn remove_header(&mut self, name: &str) {
        self.headers.retain(|(header, _)| header != name);
    }

    pub(crate) fn from_recorded(response: &ReceivedResponse) -> EditableResponse {
        let ReceivedResponse { status, headers, body } = response;
        let (body, raw) = match body.json() {
            Some(value) => (Value::clone(value), None),
            None => (Value::Null, Some(body.to_string())),
        };
        EditableResponse { status: *status, headers: headers.clone(), body, raw }
    }

    pub(crate) fn into_recorded(self) -> ReceivedResponse {
        let body = self.raw.unwrap_or_else(|| self.body.to_string());
        let body = match body.contains(INVALID_BYTE) {
            true => Body::not_utf8(body),
            false => body.into(),
        };
        ReceivedResponse { status: self.status, headers: self.headers, body }
    }
}
