//! The webhook chapter of `/docs`: events from the OpenAPI document, and the delivery rules from the guide.

use pulldown_cmark::{Options, Parser, html::push_html};
use reference_core::event::EventType;
use serde_json::Value;

use super::{DocumentReader, handlers::HANDLERS};

const GUIDE: &str = include_str!("../../../../WEBHOOKS.md");
/// The heading of the guide's chapter that the page shows.
const CHAPTER_HEADING: &str = "## Signature and retries\n";

/// The content of the webhook chapter.
pub(crate) struct Webhooks {
    pub(crate) events: Vec<WebhookEvent>,
    /// The headers of a delivery: name, and value or meaning.
    pub(crate) headers: Vec<(String, String)>,
    /// The rules on signatures, retries and duplicates as HTML.
    pub(crate) rules: String,
    pub(crate) handlers: Vec<HandlerFile>,
}

/// An event type.
pub(crate) struct WebhookEvent {
    pub(crate) name: &'static str,
    /// The description of the event.
    pub(crate) summary: String,
    /// An example of a delivery's body.
    pub(crate) body: String,
}

/// A complete handler with this server's names.
pub(crate) struct HandlerFile {
    pub(crate) framework: &'static str,
    pub(crate) name: &'static str,
    pub(crate) start: &'static str,
    pub(crate) text: String,
}

impl Webhooks {
    pub(super) fn read(reader: &DocumentReader) -> Webhooks {
        let document = &reader.document;
        // In the order of the specification, because a JSON object has no order.
        let events = EventType::ALL.map(EventType::as_str).into_iter().map(|name| {
            let operation = &document["webhooks"][name]["post"];
            let content = &operation["requestBody"]["content"]["application/json"];
            WebhookEvent {
                name,
                summary: operation["summary"].as_str().unwrap_or_default().to_owned(),
                body: reader.example(content).map(|body| format!("{body:#}")).unwrap_or_default(),
            }
        });
        let parameters = document.pointer("/webhooks/charge.paid/post/parameters").and_then(Value::as_array);
        let headers: Vec<(String, String)> = parameters
            .into_iter()
            .flatten()
            .map(|parameter| reader.resolve(parameter))
            .map(|header| {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let about = header.get("description").unwrap_or(&header["schema"]["const"]);
                (text(&header["name"]), text(about).replace('`', ""))
            })
            .collect();
        let signature = &document["components"]["parameters"]["webhookSignature"]["name"];
        let signature = signature.as_str().unwrap_or_default();
        let handlers = HANDLERS.iter().map(|handler| HandlerFile {
            framework: handler.framework,
            name: handler.file,
            start: handler.start,
            text: handler.text(signature),
        });
        let rules = rules_html(signature);
        Webhooks { events: events.collect(), headers, rules, handlers: handlers.collect() }
    }

    /// Returns the content of a handler's file.
    pub(super) fn handler(&self, name: &str) -> Option<&str> {
        self.handlers.iter().find(|handler| handler.name == name).map(|handler| handler.text.as_str())
    }
}

/// Returns the chapter of the guide as HTML. `signature`: the name of the signature header.
fn rules_html(signature: &str) -> String {
    let chapter = GUIDE.split_once(CHAPTER_HEADING).map_or("", |(_, rest)| rest);
    let chapter = chapter.split("\n## ").next().unwrap_or_default();
    let chapter = chapter.replace("X-Service-Signature", signature);
    let mut html = String::new();
    push_html(&mut html, Parser::new_ext(&chapter, Options::ENABLE_TABLES));
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chapter_is_complete_and_has_no_links() {
        let html = rules_html("X-Shop-Signature");
        for part in ["X-Shop-Signature", "15 seconds", "14 attempts", "event_id", "<table>", "<h3>"] {
            assert!(html.contains(part), "`{part}` is not in {html}");
        }
        assert!(!html.contains("<h2") && !html.contains("href="), "{html}");
    }
}
