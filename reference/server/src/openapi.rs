//! `/openapi.json`: the OpenAPI document with the names and the address of this server.
//!
//! The stored document is written by hand for the default dialect and address. This module replaces only these; tests
//! compare the rest with the server.

use reference_core::{dialect::Dialect, mode::Mode};

/// The document as stored in the repository.
pub(crate) const DOCUMENT: &str = include_str!("../../openapi.json");
/// The server address in the stored document.
const STORED_BASE_URL: &str = "http://127.0.0.1:8402";

/// The document, split at each occurrence of the server's address.
pub(crate) struct OpenApiDocument {
    parts: Vec<String>,
}

impl OpenApiDocument {
    /// Creates the document for a dialect.
    pub(crate) fn new(dialect: &Dialect) -> OpenApiDocument {
        let default = Dialect::default();
        let mut text = DOCUMENT.to_owned();
        for mode in Mode::ALL {
            text = text.replace(&default.key_start(mode), &escape_json(&dialect.key_start(mode)));
        }
        text = text.replace(&default.user_agent, &escape_json(&dialect.user_agent));
        let header_start = |dialect: &Dialect| format!("\"{}-", dialect.header_prefix);
        text = text.replace(&header_start(&default), &header_start(dialect));
        OpenApiDocument { parts: text.split(STORED_BASE_URL).map(str::to_owned).collect() }
    }

    /// Returns the document for clients that use this address.
    pub(crate) fn with_base_url(&self, base: &str) -> String {
        self.parts.join(&escape_json(base))
    }
}

/// Escapes a string for JSON, without the quotes.
fn escape_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn render(dialect: &Dialect, base: &str) -> (String, Value) {
        let text = OpenApiDocument::new(dialect).with_base_url(base);
        let value = serde_json::from_str(&text).expect("the document is JSON");
        (text, value)
    }

    #[test]
    fn the_default_dialect_leaves_the_document_unchanged() {
        assert_eq!(OpenApiDocument::new(&Dialect::default()).with_base_url(STORED_BASE_URL), DOCUMENT);
    }

    #[test]
    fn every_name_of_the_dialect_is_replaced() {
        let dialect = Dialect {
            key_prefix: "acme".to_owned(),
            header_prefix: "X-Acme".to_owned(),
            user_agent: r#"Acme "7" \ Hooks"#.to_owned(),
        };
        let (text, value) = render(&dialect, "https://pay.example/shop");
        for default_name in ["svc_", "X-Service", "Service-Webhooks", STORED_BASE_URL] {
            assert!(!text.contains(default_name), "{default_name} is left");
        }
        let parameters = &value["components"]["parameters"];
        assert_eq!(parameters["webhookSignature"]["name"], "X-Acme-Signature");
        assert_eq!(parameters["webhookAgent"]["schema"]["const"], dialect.user_agent);
        let schemes = &value["components"]["securitySchemes"];
        assert!(schemes["apiKey"]["description"].as_str().is_some_and(|text| text.contains("`acme_live_`")));
        assert_eq!(value["servers"][0]["url"], "https://pay.example/shop");
    }

    #[test]
    fn an_address_is_escaped_for_json() {
        let (_, value) = render(&Dialect::default(), r#"https://pay.example/"a\"#);
        assert_eq!(value["servers"][0]["url"], r#"https://pay.example/"a\"#);
    }
}
