//! [`Handler`]: responds to MCP requests with server information, tools and results of calls.

use http::request::Parts;
use reference_core::{
    mode::Mode,
    time::{Span, Timestamp},
};
use reference_wire::{Request, Response};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod,
        CompleteRequestParams, CompleteResult, ContentBlock, DiscoverResult, Implementation,
        InitializeRequestParams, InitializeResult, JsonObject, ListPromptsRequestMethod, ListPromptsResult,
        ListResourceTemplatesRequestMethod, ListResourceTemplatesResult, ListResourcesRequestMethod,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use serde_json::Value;

use super::{Caller, toolbox::Toolbox};
use crate::{backend::Backend, config::McpClockAccess, refusal::Refusal};

/// The instructions for every client.
const INSTRUCTIONS: &str = "Tools of a crypto payment service. Amounts are decimal strings such as \"49.90\". Lists \
are paged: request the next `page` with the `anchor` of the first. Pass `idempotency_key` with calls that create \
something, so that a repeated call creates it only once.";
/// The addition for a live key.
const LIVE: &str = "The key is a live key: it sees live objects only, and its charges request real money.";
/// The addition for a test key.
const TEST: &str = "The key is a test key: it sees test objects only, and nothing has value.";
/// The addition for a client that may use the sandbox tools.
const SANDBOX: &str = "More tools act on the simulated world: pay a charge with `pay`, mine blocks with `mine`, advance \
the clock with `advance`, and list events with `list_events`. All clients share the clock, and it cannot be moved back.";
/// The maximum number of days by which one call may move the clock.
const ADVANCE_DAYS_MAX: u64 = 366;

/// The handler of all MCP requests.
#[derive(Clone)]
pub(super) struct Handler;

/// Returns the caller, which [`Mcp::respond`](super::Mcp::respond) stored in the request.
fn caller(context: &RequestContext<RoleServer>) -> Result<&Caller, ErrorData> {
    let parts = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Caller>());
    parts.ok_or_else(|| ErrorData::internal_error("the caller of the request is unknown", None))
}

impl Handler {
    /// Returns the server information for the mode and access of the client's key.
    fn info_for(&self, context: &RequestContext<RoleServer>) -> Result<ServerConfig, ErrorData> {
        let caller = caller(context)?;
        let mode = if caller.admitted.mode() == Mode::Live { LIVE } else { TEST };
        let parts = [INSTRUCTIONS, mode, SANDBOX];
        let instructions = if caller.may_use_sandbox { &parts[..] } else { &parts[..2] };
        Ok(self.get_info().with_instructions(instructions.join(" ")))
    }

    /// Checks that a call that moves the clock may do so: the clock is shared, and a mistake of a language model must not
    /// expire the charges of other users.
    fn check_clock_move(backend: &Backend, tool: &str, arguments: &JsonObject) -> Result<(), String> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let moves_clock = match tool {
            "advance" => true,
            "mine" => arguments.get("at_once") != Some(&Value::Bool(true)),
            _ => false,
        };
        if !moves_clock {
            return Ok(());
        }
        if !backend.host.is_frozen() && backend.mcp_clock == McpClockAccess::FrozenOnly {
            return Err(
                "This server's clock follows real time, and tools may not move it. Wait instead, or ask \
                        the operator of the server to allow it or to start it with a frozen clock."
                    .to_owned(),
            );
        }
        let now = backend.host.time_and_next_due().map(|(now, _)| now).unwrap_or_default();
        let by = text("by").and_then(Span::parse);
        let to = text("to").and_then(Timestamp::parse).map(|to| to.since(now));
        if by.or(to).is_some_and(|span| span > Span::days(ADVANCE_DAYS_MAX)) {
            return Err(format!("One call moves the clock by {ADVANCE_DAYS_MAX} days at most."));
        }
        Ok(())
    }
}

impl ServerHandler for Handler {
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let info = self.info_for(&context)?;
        context.peer.set_peer_info(request.clone());
        let mut result = self.negotiate_initialize(&request)?;
        result.instructions = info.instructions;
        Ok(result)
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let info = self.info_for(&context)?;
        Ok(DiscoverResult::from_server_info(self.supported_protocol_versions().into_owned(), info))
    }

    fn get_info(&self) -> ServerConfig {
        let implementation = Implementation::new("chargeproof", env!("CARGO_PKG_VERSION"))
            .with_title("Crypto payment service (reference server)");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(implementation)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let may_use_sandbox = caller(&context)?.may_use_sandbox;
        Ok(ListToolsResult::with_all_items(Toolbox::get().tools_for(may_use_sandbox)))
    }

    // The SDK's defaults return empty lists; methods that are not offered must return an error.

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

    /// Returns a tool, whether or not the client may use it.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        Toolbox::get().find(name, true).map(|tool| tool.definition.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = caller(&context)?;
        let name = &request.name;
        let Some(tool) = Toolbox::get().find(name, caller.may_use_sandbox) else {
            let why = match Toolbox::get().find(name, true) {
                Some(_) => "it requires a test key, and the server's own machine or its sandbox token",
                None => "tools/list lists the available tools",
            };
            return Err(ErrorData::invalid_params(
                format!("the tool `{name}` is not available: {why}"),
                None,
            ));
        };
        let arguments = request.arguments.unwrap_or_default();
        let request = match Handler::check_clock_move(&caller.backend, name, &arguments)
            .and_then(|()| tool.request(arguments))
        {
            Ok(request) => request,
            Err(why) => return Ok(CallToolResult::error(vec![ContentBlock::text(why)]).into()),
        };
        let request = Request {
            query: request.query.as_deref(),
            idempotency_key: request.idempotency_key.as_deref().map(str::as_bytes),
            ..Request::json(&caller.base, request.method, &request.path, &request.body)
        };
        match caller.backend.host.respond_as(&caller.admitted, &request).await {
            Ok(response) => Ok(tool_result(&response).into()),
            Err(error) => Err(ErrorData::internal_error(Refusal::from(error).to_string(), None)),
        }
    }
}

/// Converts an API response to a tool result. An error has no structured content: clients validate it against the tool's
/// output schema, even if `isError` is true.
fn tool_result(response: &Response) -> CallToolResult {
    let value: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    if response.status >= 400 {
        return CallToolResult::error(vec![ContentBlock::text(refusal_text(&value, response))]);
    }
    let text = ContentBlock::text(String::from_utf8_lossy(&response.body));
    let mut result = CallToolResult::success(vec![text]);
    result.structured_content = Some(value);
    result
}

/// Returns an error as text: status, message, the errors of each field, and the time to retry.
fn refusal_text(refusal: &Value, response: &Response) -> String {
    let message = refusal["message"].as_str().unwrap_or("The call was refused.");
    let mut text = format!("HTTP {}: {message}", response.status);
    for (field, messages) in refusal["errors"].as_object().into_iter().flatten() {
        for message in messages.as_array().into_iter().flatten().filter_map(Value::as_str) {
            text.push_str(&format!("\n{field}: {message}"));
        }
    }
    if let Some((_, seconds)) = response.headers.iter().find(|(name, _)| *name == "retry-after") {
        text.push_str(&format!("\nTry again in {seconds} seconds."));
    }
    text
}
