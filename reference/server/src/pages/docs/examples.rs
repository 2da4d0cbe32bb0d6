//! Examples of an API request in curl, Python and JavaScript.

use serde_json::Value;

/// The language of the examples on the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Language {
    Curl,
    Python,
    JavaScript,
}

impl Language {
    pub(crate) const ALL: [Language; 3] = [Language::Curl, Language::Python, Language::JavaScript];

    /// Returns the value of `examples` in the page's query.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Language::Curl => "curl",
            Language::Python => "python",
            Language::JavaScript => "javascript",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Language::Curl => "curl",
            Language::Python => "Python",
            Language::JavaScript => "JavaScript",
        }
    }

    /// Returns the language in a query; curl if the language is missing or unknown.
    pub(crate) fn from_query(query: Option<&str>) -> Language {
        let id = query.unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("examples="));
        Language::ALL.into_iter().find(|language| Some(language.id()) == id).unwrap_or(Language::Curl)
    }
}

/// An example of an API request.
pub(super) struct Example<'a> {
    pub(super) method: &'a str,
    pub(super) url: String,
    pub(super) needs_key: bool,
    /// The body as JSON in one line.
    pub(super) body: Option<&'a str>,
}

impl Example<'_> {
    pub(super) fn code(&self, language: Language) -> String {
        match language {
            Language::Curl => self.curl(),
            Language::Python => self.python(),
            Language::JavaScript => self.javascript(),
        }
    }

    fn curl(&self) -> String {
        let mut command = "curl -s".to_owned();
        if self.method != "GET" {
            command.push_str(&format!(" -X {}", self.method));
        }
        if self.needs_key {
            command.push_str(" -H \"Authorization: Bearer $CHARGEPROOF_TEST_KEY\"");
        }
        if let Some(body) = self.body {
            let body = body.replace('\'', r"'\''");
            command.push_str(&format!(" -H 'Content-Type: application/json' -d '{body}'"));
        }
        format!("{command} '{}'", self.url)
    }

    /// Returns the example for the package `requests`.
    fn python(&self) -> String {
        let mut call = format!("requests.{}(\n    \"{}\",\n", self.method.to_lowercase(), self.url);
        let mut imports = "import requests\n";
        if self.needs_key {
            imports = "import os\nimport requests\n";
            call.push_str(
                "    headers={\"Authorization\": f\"Bearer {os.environ['CHARGEPROOF_TEST_KEY']}\"},\n",
            );
        }
        if let Some(value) = self.body_value() {
            call.push_str(&format!("    json={},\n", python_literal(&value)));
        }
        format!("{imports}\nresponse = {call})\nprint(response.status_code, response.json())")
    }

    fn javascript(&self) -> String {
        let mut headers = Vec::new();
        if self.needs_key {
            headers.push("Authorization: `Bearer ${process.env.CHARGEPROOF_TEST_KEY}`".to_owned());
        }
        if self.body.is_some() {
            headers.push("\"Content-Type\": \"application/json\"".to_owned());
        }
        let mut fields = Vec::new();
        if self.method != "GET" {
            fields.push(format!("  method: \"{}\",\n", self.method));
        }
        if !headers.is_empty() {
            fields.push(format!("  headers: {{ {} }},\n", headers.join(", ")));
        }
        if let Some(body) = self.body {
            fields.push(format!("  body: JSON.stringify({body}),\n"));
        }
        let options = if fields.is_empty() { String::new() } else { format!(", {{\n{}}}", fields.concat()) };
        format!(
            "const response = await fetch(\"{}\"{options});\nconsole.log(response.status, await response.json());",
            self.url
        )
    }

    fn body_value(&self) -> Option<Value> {
        serde_json::from_str(self.body?).ok()
    }
}

/// Returns a JSON value as a Python literal.
fn python_literal(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(python_literal).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| format!("{}: {}", Value::from(name.as_str()), python_literal(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        // A JSON string is a valid Python string.
        Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: Option<&str>, needs_key: bool, language: Language, expected: &[&str]) {
        let method = if body.is_some() { "POST" } else { "GET" };
        let example = Example { method, url: "http://host/v1/charges".to_owned(), needs_key, body };
        let code = example.code(language);
        for part in expected {
            assert!(code.contains(part), "`{part}` is not in:\n{code}");
        }
    }

    #[test]
    fn a_body_is_a_literal_of_the_language() {
        let body = Some(r#"{"gift":true,"note":"it's","none":null,"items":[1,false]}"#);
        check(body, true, Language::Curl, &["-X POST", r"it'\''s", "Bearer $CHARGEPROOF_TEST_KEY"]);
        let literal = r#"json={"gift": True, "items": [1, False], "none": None, "note": "it's"}"#;
        check(
            body,
            true,
            Language::Python,
            &["requests.post(", literal, "os.environ['CHARGEPROOF_TEST_KEY']"],
        );
        check(
            body,
            true,
            Language::JavaScript,
            &["method: \"POST\"", "JSON.stringify({\"gift\":true,", "${process.env.CHARGEPROOF_TEST_KEY}"],
        );
    }

    #[test]
    fn a_request_without_body_and_key_is_short() {
        check(None, false, Language::Curl, &["curl -s 'http://host/v1/charges'"]);
        check(
            None,
            false,
            Language::Python,
            &["import requests\n\nresponse = requests.get(\n    \"http://host/v1/charges\",\n)"],
        );
        check(None, false, Language::JavaScript, &["await fetch(\"http://host/v1/charges\");"]);
    }

    #[test]
    fn an_unknown_language_is_curl() {
        for (query, expected) in [
            (None, Language::Curl),
            (Some("examples=python"), Language::Python),
            (Some("a=1&examples=javascript"), Language::JavaScript),
            (Some("examples=cobol"), Language::Curl),
        ] {
            assert_eq!(Language::from_query(query), expected, "{query:?}");
        }
    }
}
