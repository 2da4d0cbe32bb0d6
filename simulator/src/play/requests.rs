//! The step `request`, and the replacement of placeholders such as `${c1}` in strings.

use reference_core::mode::Mode;
use serde_json::Value;

use super::{Player, StageRequest, StageResponse, alias::NamedObject, error_message, failure::StepError};
use crate::script::{
    At, Kind, SourceSpan,
    step::{ExpectedResponse, Request},
    value::Name,
};

impl Player<'_> {
    pub(super) fn request(&mut self, request: &Request) -> Result<(), StepError> {
        let at = self.now;
        let method = request.method.as_deref().unwrap_or("GET");
        let path =
            path_and_query(&self.fill_placeholders(&request.path.value, request.path.span)?).to_owned();
        let body = match &request.body {
            Some(body) => Some(self.fill_json(body)?),
            None => None,
        };
        let mut headers = Vec::new();
        for (name, value) in &request.headers {
            headers.push((name.to_ascii_lowercase(), self.fill_placeholders(value, self.step_span)?));
        }
        let has_authorization = headers.iter().any(|(name, _)| name == "authorization");
        let bearer = if has_authorization || path.starts_with("/sandbox") {
            None
        } else {
            self.bearer(request.key.as_ref())?
        };
        let times = request.times.unwrap_or(1);
        let mut summary = format!("{method} {}", request.path.value);
        if let Some(key) = &request.key {
            summary.push_str(&format!(" as {}", key.value));
        }
        if times > 1 {
            summary.push_str(&format!(" {times} times"));
        }
        let mut status = 0;
        for _ in 0..times {
            let call = StageRequest {
                method,
                path: &path,
                bearer: bearer.as_deref(),
                headers: &headers,
                body: body.as_ref(),
            };
            let response = self.send_request(&call)?;
            status = response.status;
            if let Some(refusals) = &mut self.refusals {
                // A dry run accepts any response.
                if (200..300).contains(&status) {
                    self.save(request, &response)?;
                } else {
                    refusals.insert(self.step_index, status);
                }
                continue;
            }
            if let Err(error) = self.check_response(&request.expect, &response, &summary) {
                self.write_line(at, "request", &summary, Some(&status.to_string()));
                return Err(error);
            }
            self.save(request, &response)?;
        }
        self.write_line(at, "request", &summary, Some(&status.to_string()));
        Ok(())
    }

    fn check_response(
        &self,
        expect: &ExpectedResponse,
        response: &StageResponse,
        summary: &str,
    ) -> Result<(), StepError> {
        let title = || format!("{summary} has an unexpected response");
        let actual = || format!("{} {}", response.status, error_message(response));
        match &expect.status {
            Some(status) if status.value != response.status => {
                return Err(StepError::unmet_expectation(
                    status.span,
                    title(),
                    "is not the status",
                    status.value.to_string(),
                    actual(),
                ));
            }
            None if !(200..300).contains(&response.status) => {
                return Err(StepError::unmet_expectation(
                    self.step_span,
                    title(),
                    "is refused",
                    "any 2xx".to_owned(),
                    actual(),
                ));
            }
            _ => {}
        }
        let body = response.json();
        for (pointer, expected) in &expect.body {
            let expected_value = self.fill_json(&expected.value)?;
            let actual = body.pointer(pointer).cloned();
            if actual.as_ref() != Some(&expected_value) {
                let actual = actual.map_or_else(|| "nothing".to_owned(), |actual| actual.to_string());
                let label = format!("is not at {pointer}");
                return Err(StepError::unmet_expectation(
                    expected.span,
                    title(),
                    &label,
                    expected_value.to_string(),
                    actual,
                ));
            }
        }
        for (name, expected) in &expect.headers {
            let actual = response.header(name).unwrap_or("nothing");
            if actual != expected.value {
                let label = format!("is not in {name}");
                return Err(StepError::unmet_expectation(
                    expected.span,
                    title(),
                    &label,
                    expected.value.clone(),
                    actual.to_owned(),
                ));
            }
        }
        for pointer in &expect.absent {
            if let Some(actual) = body.pointer(pointer) {
                return Err(StepError::unmet_expectation(
                    pointer.span,
                    title(),
                    "is present",
                    "nothing".to_owned(),
                    actual.to_string(),
                ));
            }
        }
        Ok(())
    }

    /// Assigns the names of `save` to values of the response.
    fn save(&mut self, request: &Request, response: &StageResponse) -> Result<(), StepError> {
        let body = response.json();
        let mode = match request.key.as_ref().map(|key| key.value.0.as_str()) {
            Some("test") => Mode::Test,
            Some("live") => Mode::Live,
            Some(key) => self.aliases.get(key).map_or(self.script.mode, |key| key.mode),
            None => self.script.mode,
        };
        for (name, pointer) in &request.save {
            let value = match body.pointer(pointer) {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => {
                    let label = format!("the response has no value at {pointer}");
                    return Err(StepError::impossible(
                        self.step_span,
                        format!("`{name}` cannot be saved"),
                        label,
                    ));
                }
            };
            self.aliases.assign(name, NamedObject { kind: Kind::Saved, mode, id: value });
        }
        Ok(())
    }

    /// Returns the API key for a request: the named one, by default that of the script's mode. The name
    /// `none` stands for no key; a saved value may be a key, too.
    pub(super) fn bearer(&self, key: Option<&At<Name>>) -> Result<Option<String>, StepError> {
        let (name, span) = match key {
            Some(key) if key.value.0 == "none" => return Ok(None),
            Some(key) => (key.value.0.as_str(), key.span),
            None => (self.script.mode.as_str(), self.step_span),
        };
        match self.keys.get(name) {
            Some(secret) => Ok(Some(secret.clone())),
            None => self.find_object(name, span).map(|saved| Some(saved.id)),
        }
    }

    /// Replaces each `${name}` in a string by the API key, or by the code or id of the object, of this name.
    pub(super) fn fill_placeholders(&self, text: &str, span: SourceSpan) -> Result<String, StepError> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, remainder) = after.split_once('}').ok_or_else(|| {
                StepError::impossible(span, "a name is not closed", "`${` needs a `}`, as in ${c1}")
            })?;
            filled.push_str(before);
            match self.keys.get(name) {
                Some(secret) => filled.push_str(secret),
                None => filled.push_str(&self.find_object(name, span)?.id),
            }
            rest = remainder;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn fill_json(&self, value: &Value) -> Result<Value, StepError> {
        Ok(match value {
            Value::String(text) => Value::String(self.fill_placeholders(text, self.step_span)?),
            Value::Array(list) => {
                Value::Array(list.iter().map(|item| self.fill_json(item)).collect::<Result<_, _>>()?)
            }
            Value::Object(map) => {
                let filled = map.iter().map(|(key, value)| Ok((key.clone(), self.fill_json(value)?)));
                Value::Object(filled.collect::<Result<_, StepError>>()?)
            }
            other => other.clone(),
        })
    }
}

/// Returns a URL without scheme and host; anything else unchanged.
pub(super) fn path_and_query(url: &str) -> &str {
    let Some((_, rest)) = url.split_once("://").filter(|(scheme, _)| *scheme == "https" || *scheme == "http")
    else {
        return url;
    };
    rest.find('/').map_or("/", |start| &rest[start..])
}
