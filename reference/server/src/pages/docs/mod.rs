//! `/docs`: the API reference, generated from the OpenAPI document, a chapter of the webhook guide, and the sample
//! handlers.

mod examples;
mod handlers;
mod webhooks;

use std::sync::OnceLock;

use askama::{
    Template,
    filters::{Escaper as _, Html as Escape},
};
use http::{HeaderValue, StatusCode};
use serde_json::Value;

use examples::{Example, Language};
use webhooks::Webhooks;

use super::{Asset, PageRequest, Site, home, html};
use crate::{
    openapi::OpenApiDocument,
    refusal::Refusal,
    response::{self, HttpResponse},
};

/// The default server address, which the recorded examples show.
const STORED_BASE_URL: &str = "http://127.0.0.1:8402";
/// The maximum depth of nested references.
const DEPTH_MAX: usize = 8;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// The style sheet of the page, in addition to that of the dashboard.
pub(super) static DOCS_CSS: Asset = Asset::css("docs", include_str!("../../../templates/docs.css"));
/// The script that filters the list of operations and sends requests from the page.
pub(super) static DOCS_JS: Asset = Asset::js("docs", include_str!("../../../templates/docs.js"));

/// The page's content, read from the document once.
#[derive(Default)]
pub(crate) struct Docs(OnceLock<DocsContent>);

struct DocsContent {
    webhooks: Webhooks,
    sections: Vec<Section>,
}

struct Section {
    id: String,
    name: String,
    about: String,
    operations: Vec<Operation>,
}

struct Operation {
    id: String,
    method: String,
    path: String,
    summary: String,
    about: String,
    /// The fields in path, query and headers, and those in the body.
    field_groups: [(&'static str, Vec<Field>); 2],
    /// The status and description of each response.
    responses: Vec<(String, String)>,
    /// A recorded response.
    example: Option<String>,
    needs_key: bool,
    /// A recorded request body, in one line.
    body: Option<String>,
}

struct Field {
    name: String,
    /// `path`, `query`, `header`, or `body`.
    location: String,
    /// The type or the allowed values.
    allowed_values: String,
    is_required: bool,
    about: String,
}

/// Returns a description as HTML: text with code between backticks.
fn prose(value: &Value) -> String {
    let mut html = String::new();
    for (index, part) in value.as_str().unwrap_or_default().split('`').enumerate() {
        let (open, close) = if index % 2 == 0 { ("", "") } else { ("<code>", "</code>") };
        html.push_str(open);
        Escape.write_escaped_str(&mut html, part).expect("writing to a string does not fail");
        html.push_str(close);
    }
    html
}

#[derive(Template)]
#[template(path = "docs.html")]
struct DocsPage<'a> {
    site: &'a Site,
    content: &'a DocsContent,
    language: Language,
    /// `true` if the caller may use the sandbox, and so send requests from the page.
    may_try: bool,
}

impl Operation {
    /// Returns the fields outside the body, which the page shows as form fields.
    fn parameters(&self) -> &[Field] {
        &self.field_groups[0].1
    }

    /// Returns an example of the body with line breaks.
    fn pretty_body(&self) -> Option<String> {
        let value: Value = serde_json::from_str(self.body.as_deref()?).ok()?;
        Some(format!("{value:#}"))
    }

    /// Returns an example of a request to the operation.
    fn code(&self, site: &Site, language: Language) -> String {
        let url = format!("{}{}", site.base, self.path);
        Example { method: &self.method, url, needs_key: self.needs_key, body: self.body.as_deref() }
            .code(language)
    }
}

impl DocsPage<'_> {
    /// Returns the option of `trigger` that names this server, if its address is not the default.
    fn trigger_target(&self) -> String {
        if self.site.base == STORED_BASE_URL { String::new() } else { format!(" --to {}", self.site.base) }
    }
}

/// Responds to `GET /docs` and the files below it.
pub(crate) fn docs(
    request: &PageRequest<'_>,
    docs: &Docs,
    document: &OpenApiDocument,
) -> Result<HttpResponse, Refusal> {
    let content = docs.0.get_or_init(|| {
        let document =
            serde_json::from_str(&document.with_base_url(STORED_BASE_URL)).expect("the document is JSON");
        let reader = DocumentReader { document };
        DocsContent { webhooks: Webhooks::read(&reader), sections: reader.sections() }
    });
    if let Some(rest) = request.path.strip_prefix("/docs/") {
        let handler = rest.strip_prefix("handlers/").and_then(|name| content.webhooks.handler(name));
        return match handler {
            Some(text) => Ok(response::with_media_type(StatusCode::OK, TEXT, text.to_owned())),
            None => home::not_found(request),
        };
    }
    let may_try = request.admit().is_ok();
    let language = Language::from_query(request.head.uri.query());
    html(StatusCode::OK, &DocsPage { site: &request.site()?, content, language, may_try })
}

/// A reader of the OpenAPI document.
struct DocumentReader {
    document: Value,
}

impl DocumentReader {
    /// Returns the target of a reference, or the value itself.
    fn resolve<'v>(&'v self, value: &'v Value) -> &'v Value {
        let mut found = value;
        for _ in 0..DEPTH_MAX {
            match found["$ref"].as_str().and_then(|reference| self.document.pointer(reference.get(1..)?)) {
                Some(next) => found = next,
                None => break,
            }
        }
        found
    }

    fn sections(&self) -> Vec<Section> {
        let tags = self.document["tags"].as_array().into_iter().flatten();
        let section = |tag: &Value| {
            let name = tag["name"].as_str().unwrap_or_default().to_owned();
            let operations = self.operations(&name);
            Section {
                id: name.to_lowercase().replace(' ', "-"),
                about: prose(&tag["description"]),
                name,
                operations,
            }
        };
        tags.map(section).filter(|section| !section.operations.is_empty()).collect()
    }

    fn operations(&self, tag: &str) -> Vec<Operation> {
        let paths = self.document["paths"].as_object().into_iter().flatten();
        let all = paths.flat_map(|(path, item)| {
            item.as_object().into_iter().flatten().map(move |(method, operation)| (path, method, operation))
        });
        // Operations of the sandbox that read a book (`look…`) repeat those of the API, so they are left out.
        let with_tag = all.filter(|(_, _, operation)| {
            operation["tags"].as_array().is_some_and(|tags| tags.iter().any(|name| name == tag))
                && !operation["operationId"].as_str().is_some_and(|id| id.starts_with("look"))
        });
        with_tag.map(|(path, method, operation)| self.operation(path, method, operation)).collect()
    }

    fn operation(&self, path: &str, method: &str, operation: &Value) -> Operation {
        let item = &self.document["paths"][path];
        let parameters = [&item["parameters"], &operation["parameters"]]
            .into_iter()
            .flat_map(|list| list.as_array().into_iter().flatten())
            .map(|parameter| {
                let parameter = self.resolve(parameter);
                let is_required = parameter["required"] == true;
                let location = parameter["in"].as_str().unwrap_or_default();
                let name = parameter["name"].as_str().unwrap_or_default();
                self.field((location, name), parameter, &parameter["schema"], is_required)
            })
            .collect();
        let content = &self.resolve(&operation["requestBody"])["content"]["application/json"];
        let responses = operation["responses"].as_object().into_iter().flatten();
        let success = responses.clone().find(|(status, _)| status.starts_with('2'));
        let success_content =
            success.map(|(_, response)| &self.resolve(response)["content"]["application/json"]);
        Operation {
            id: operation["operationId"].as_str().unwrap_or_default().to_owned(),
            method: method.to_uppercase(),
            path: path.to_owned(),
            summary: operation["summary"].as_str().unwrap_or_default().to_owned(),
            about: prose(&operation["description"]),
            field_groups: [("Parameters", parameters), ("Body", self.fields(&content["schema"], 0))],
            responses: responses
                .map(|(status, response)| (status.clone(), prose(&self.resolve(response)["description"])))
                .collect(),
            example: success_content
                .and_then(|content| self.example(content))
                .map(|value| format!("{value:#}")),
            needs_key: path.starts_with("/v1") || path == "/mcp",
            body: self.example(content).map(ToString::to_string),
        }
    }

    /// Returns the first example of a content.
    fn example<'v>(&'v self, content: &'v Value) -> Option<&'v Value> {
        let (_, example) = content["examples"].as_object()?.iter().next()?;
        self.resolve(example).get("value")
    }

    /// Returns the fields of an object and of its `allOf` parts.
    fn fields(&self, schema: &Value, depth: usize) -> Vec<Field> {
        let schema = self.resolve(schema);
        if depth == DEPTH_MAX {
            return Vec::new();
        }
        let parts = schema["allOf"].as_array().into_iter().flatten();
        let mut fields: Vec<Field> = parts.flat_map(|part| self.fields(part, depth + 1)).collect();
        let is_required = |name: &str| {
            schema["required"].as_array().is_some_and(|all| all.iter().any(|required| required == name))
        };
        let own = schema["properties"].as_object().into_iter().flatten();
        fields.extend(own.map(|(name, value)| self.field(("body", name), value, value, is_required(name))));
        fields
    }

    fn field(
        &self,
        (location, name): (&str, &str),
        described: &Value,
        schema: &Value,
        is_required: bool,
    ) -> Field {
        let about = match described.get("description") {
            Some(own) => prose(own),
            None => prose(&self.resolve(described)["description"]),
        };
        Field {
            name: name.to_owned(),
            location: location.to_owned(),
            allowed_values: self.allowed_values(schema, 0),
            is_required,
            about,
        }
    }

    /// Returns the type or the allowed values of a field: `BTC, ETH`, `list of string`.
    fn allowed_values(&self, schema: &Value, depth: usize) -> String {
        let schema = self.resolve(schema);
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let list = |value: &Value, separator: &str| {
            value.as_array().map(|all| all.iter().map(text).collect::<Vec<_>>().join(separator))
        };
        if let Some(names) = list(&schema["enum"], ", ") {
            return names;
        }
        if let Some(constant) = schema.get("const") {
            return text(constant);
        }
        for combinator in ["anyOf", "oneOf", "allOf"] {
            if let Some(choices) = schema[combinator].as_array().filter(|_| depth < DEPTH_MAX) {
                // The schema of null and the empty string, which mean that no value is given.
                let not_given = Some("#/components/schemas/NotGiven");
                let mut alternatives: Vec<String> = choices
                    .iter()
                    .filter(|option| option["$ref"].as_str() != not_given)
                    .map(|option| self.allowed_values(option, depth + 1))
                    .collect();
                alternatives.dedup();
                return alternatives.join(" or ");
            }
        }
        let kind = list(&schema["type"], " or ").or_else(|| schema["type"].as_str().map(str::to_owned));
        match kind.as_deref() {
            Some("array") if depth < DEPTH_MAX => {
                format!("list of {}", self.allowed_values(&schema["items"], depth + 1))
            }
            Some(kind) => match schema["format"].as_str() {
                Some(format) => format!("{kind} ({format})"),
                None => kind.to_owned(),
            },
            None => "anything".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use reference_core::dialect::Dialect;

    use super::*;

    fn sections() -> Vec<Section> {
        let document =
            serde_json::from_str(&OpenApiDocument::new(&Dialect::default()).with_base_url(STORED_BASE_URL))
                .expect("the document is JSON");
        DocumentReader { document }.sections()
    }

    #[test]
    fn every_operation_is_in_exactly_one_section() {
        let sections = sections();
        let document: Value = serde_json::from_str(crate::openapi::DOCUMENT).expect("it is JSON");
        let documented = document["paths"].as_object().expect("it has paths").values();
        let ids = documented.flat_map(|item| item.as_object().expect("a path is an object").values());
        let mut ids: Vec<&str> = ids.filter_map(|operation| operation["operationId"].as_str()).collect();
        ids.retain(|id| !id.starts_with("look"));
        let mut listed: Vec<&str> = sections
            .iter()
            .flat_map(|section| &section.operations)
            .map(|operation| operation.id.as_str())
            .collect();
        ids.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, ids);
    }

    #[test]
    fn parameters_and_responses_are_resolved_through_references() {
        let sections = sections();
        let find = |id: &str| {
            let mut all = sections.iter().flat_map(|section| &section.operations);
            all.find(|operation| operation.id == id).unwrap_or_else(|| panic!("{id} is not in the document"))
        };
        let create = find("createCharge");
        let field =
            |name: &str| create.field_groups[1].1.iter().find(|field| field.name == name).expect(name);
        assert!(field("asset").allowed_values.contains("BTC, "), "{}", field("asset").allowed_values);
        assert!(
            create.body.as_ref().is_some_and(|body| body.contains("\"BTC\"")),
            "the body is a recorded one"
        );
        assert!(
            create.example.as_ref().is_some_and(|text| text.contains("\"pending\"")),
            "the response is a recorded one"
        );
        assert!(create.responses.iter().any(|(status, text)| status == "422" && !text.is_empty()));
        let list = find("listCharges");
        assert!(
            list.field_groups[0]
                .1
                .iter()
                .any(|field| field.name == "per_page" && !field.allowed_values.is_empty())
        );
        assert!(
            sections
                .iter()
                .flat_map(|section| &section.operations)
                .all(|operation| !operation.summary.is_empty())
        );
    }
}
