//! What the SDK asks us: who we are, which tools there are, and what a call comes to.

use std::sync::Arc;

use http::request::Parts;
use reference_core::wire::http::{Request, Response};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod,
        CompleteRequestParams, CompleteResult, ContentBlock, Implementation, ListPromptsRequestMethod,
        ListPromptsResult, ListResourceTemplatesRequestMethod, ListResourceTemplatesResult,
        ListResourcesRequestMethod, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use serde_json::Value;

use super::{Caller, JSON, toolbox::Toolbox};
use crate::host::Host;

const INSTRUCTIONS: &str = "Tools of a crypto payment service. The key's prefix says the mode: a live key sees \
live objects only, a test key test objects only. Amounts are decimal texts such as \"49.90\". In test mode nothing \
has value, and more tools act on the simulated world: pay a charge with `pay`, let blocks come with `mine`, let time \
pass with `advance`, and read what happened with `list_events`.";

/// Answers the protocol's questions.
#[derive(Clone)]
pub(super) struct Handler {
    host: Arc<Host>,
}

impl Handler {
    pub(super) fn new(host: Arc<Host>) -> Handler {
        Handler { host }
    }
}

fn caller(context: &RequestContext<RoleServer>) -> Result<&Caller, ErrorData> {
    let parts = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Caller>());
    parts.ok_or_else(|| ErrorData::internal_error("the request names no caller", None))
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let who = Implementation::new("chargeproof", env!("CARGO_PKG_VERSION"))
            .with_title("Crypto payment service (reference server)");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(who)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let in_sandbox = caller(&context)?.in_sandbox;
        Ok(ListToolsResult::with_all_items(Toolbox::get().shown(in_sandbox)))
    }

    // The SDK would answer these with empty lists. What is not offered is not found.

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        Toolbox::get().find(name, true).map(|tool| tool.shown.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = caller(&context)?;
        let name = &request.name;
        let Some(tool) = Toolbox::get().find(name, caller.in_sandbox) else {
            let why = match Toolbox::get().find(name, true) {
                Some(_) => {
                    "it needs a key of mode test, on the server's own machine or with its sandbox token"
                }
                None => "tools/list names those that there are",
            };
            return Err(ErrorData::invalid_params(format!("no tool `{name}` for this key: {why}"), None));
        };
        let asked = match tool.ask(request.arguments.unwrap_or_default()) {
            Ok(asked) => asked,
            Err(why) => return Ok(CallToolResult::error(vec![ContentBlock::text(why)]).into()),
        };
        let request = Request {
            method: asked.method,
            path: &asked.path,
            query: asked.query.as_deref(),
            authorization: None,
            content_type: Some(JSON.as_bytes()),
            idempotency_key: asked.idempotency_key.as_deref().map(str::as_bytes),
            base: &caller.base,
            body: asked.body.as_bytes(),
        };
        match self.host.respond_as(&caller.guest, &request).await {
            Ok(response) => Ok(told(&response).into()),
            Err(broken) => {
                Err(ErrorData::internal_error(crate::refusal::Refusal::from(broken).to_string(), None))
            }
        }
    }
}

/// The world's answer as a tool's: its body, or the sentences of its refusal.
fn told(response: &Response) -> CallToolResult {
    let value: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let mut result = if response.status < 400 {
        CallToolResult::success(vec![ContentBlock::text(String::from_utf8_lossy(&response.body))])
    } else {
        CallToolResult::error(vec![ContentBlock::text(sentences(&value, response))])
    };
    result.structured_content = Some(value);
    result
}

fn sentences(refusal: &Value, response: &Response) -> String {
    let mut text = refusal["message"].as_str().unwrap_or("The call was refused.").to_owned();
    for (field, all) in refusal["errors"].as_object().into_iter().flatten() {
        for sentence in all.as_array().into_iter().flatten().filter_map(Value::as_str) {
            text.push_str(&format!("\n{field}: {sentence}"));
        }
    }
    if let Some((_, seconds)) = response.headers.iter().find(|(name, _)| *name == "retry-after") {
        text.push_str(&format!("\nTry again in {seconds} seconds."));
    }
    text
}
