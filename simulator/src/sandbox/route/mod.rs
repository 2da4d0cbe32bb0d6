//! The calls under `/sandbox`: the simulated world as JSON, so that scripts can control all of it.
//!
//! [`ROUTES`] lists all of them, with the methods of each path, the allowed callers, the allowed fields and the
//! handlers. Request and response types are in [`crate::api`].
//!
//! Must not contain sockets: the server and the player call the same functions, the server after reading HTTP.

mod account;
mod advance;
mod book;
mod call;
mod chain;
mod clock;
mod delivery;
mod hosted;
mod owner;
mod page;
mod records;
mod search;

use reference_core::error::ApiError;
use reference_wire::{BODY_MAX, Request, Response, fields::Fields};
use serde::Serialize;
use serde_json::{Map, Value};

pub(super) use self::advance::AdvanceTarget;
pub use self::advance::{PendingAdvance, Progress};
use self::call::SandboxCall;
pub use self::delivery::DeliveryFilter;
use super::{Sandbox, observe::AccountBook};
use crate::api::{self, Body, EmptyResponse, RequestBody, WorldEvent};

/// The only book that a call may access.
pub(super) type Within = AccountBook;

/// The maximum number of world events in one response; clients page through the rest. Writing them blocks other
/// requests.
pub(crate) const EVENTS_MAX: usize = 1_000;

/// A path under `/sandbox` with its methods.
pub struct Route {
    /// The path. Segments in braces match any text: `/sandbox/keys/{id}`. A last segment `{*}` matches all remaining
    /// segments.
    pub path: &'static str,
    /// The methods, as the `Allow` header lists them.
    pub allow: &'static str,
    /// The methods of the route.
    pub methods: &'static [RouteMethod],
}

/// One method of a path.
pub struct RouteMethod {
    /// `GET`, which includes `HEAD`, `POST`, `PUT`, `PATCH` or `DELETE`.
    pub method: &'static str,
    /// The allowed callers.
    pub reach: RouteReach,
    /// The allowed fields of a body, or the query parameters of `GET`. [`ANY`] allows any, like the API, which ignores
    /// unknown ones.
    pub fields: &'static [&'static str],
    /// The required fields, with `None` in place of each optional one; `None` if the handler itself reads the body.
    pub required: Option<&'static [Option<&'static str>]>,
    handler: Handler,
}

/// The callers that a route allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteReach {
    /// Only callers that may use the whole sandbox.
    World,
    /// API keys too, for the objects of their account and mode. The clock and the chains are shared between all keys: a
    /// key can advance them for all, but can remove confirmations only from transfers to charges of its own book.
    Book,
}

type Handler = fn(&mut SandboxCall<'_>, Fields<'_>) -> Outcome;

/// The successful result of a handler.
enum HandlerResponse {
    /// The fields of the response, to which the events that the call caused are added.
    Fields(Map<String, Value>),
    /// A response of the API, which is sent unchanged.
    Raw(Response),
}

type Outcome = Result<HandlerResponse, ApiError>;

/// Returns a result with the fields of a response type.
fn json_response(value: impl Serialize) -> Outcome {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => Ok(HandlerResponse::Fields(fields)),
        other => unreachable!("a response is a JSON object, not {other:?}"),
    }
}

/// Returns a result without fields.
fn empty_response() -> Outcome {
    json_response(EmptyResponse {})
}

macro_rules! allowed {
    (GET) => {
        "GET, HEAD"
    };
    ($method:ident) => {
        stringify!($method)
    };
}

/// One method of a path. Its fields are those of a request type, or a list if the handler itself reads the body.
macro_rules! route_method {
    ($method:ident $reach:ident [$($field:expr),*], $handler:path) => {
        route_method!($method $reach ([$($field),*]), $handler)
    };
    ($method:ident $reach:ident ($list:expr), $handler:path) => {
        RouteMethod {
            method: stringify!($method),
            reach: RouteReach::$reach,
            fields: &$list,
            required: None,
            handler: $handler,
        }
    };
    ($method:ident $reach:ident $body:ident, $handler:path) => {
        RouteMethod {
            method: stringify!($method),
            reach: RouteReach::$reach,
            fields: <api::$body as RequestBody>::FIELDS,
            required: Some(<api::$body as RequestBody>::REQUIRED),
            handler: |call, fields| $handler(call, Body::<api::$body>::read(fields)),
        }
    };
}

macro_rules! routes {
    ($($path:literal: $first:ident $reach:ident $body:tt, $handler:path
        $(; $method:ident $other_reach:ident $other_body:tt, $other_handler:path)*;)*) => {
        /// Every path under `/sandbox`.
        ///
        /// ```
        /// use simulator::sandbox::ROUTES;
        ///
        /// let pay = ROUTES.iter().find(|route| route.path == "/sandbox/pay").unwrap();
        /// assert_eq!(pay.allow, "POST");
        /// assert!(pay.methods[0].fields.contains(&"charge"));
        /// ```
        pub const ROUTES: &[Route] = &[$(Route {
            path: $path,
            allow: concat!(allowed!($first) $(, ", ", allowed!($method))*),
            methods: &[
                route_method!($first $reach $body, $handler),
                $(route_method!($method $other_reach $other_body, $other_handler),)*
            ],
        },)*];
    };
}

/// Allows any field, see [`RouteMethod::fields`].
pub const ANY: [&str; 1] = ["*"];
/// The fields of a new account.
const ACCOUNT: [&str; 14] = [
    "id",
    "type",
    "name",
    "display_name",
    "logo_url",
    "website_url",
    "support_email",
    "support_phone",
    "brand_color",
    "business",
    "default_currency",
    "underpayment_tolerance",
    "overpayment_threshold",
    "members",
];
/// The settings of an account.
const SETTINGS: [&str; 12] = {
    let [_, _, settings @ ..] = ACCOUNT;
    settings
};
/// The fields of a new charge.
const CHARGE: [&str; 9] = [
    "asset",
    "amount",
    "currency",
    "payment_link",
    "customer",
    "customer_email",
    "description",
    "metadata",
    "custom_fields",
];
/// The fields of a new invoice.
const INVOICE: [&str; 8] =
    ["customer_name", "customer_email", "currency", "amount", "items", "memo", "due_at", "send_email"];
/// The fields of a new payment link.
const LINK: [&str; 17] = [
    "title",
    "description",
    "pricing_type",
    "amount",
    "suggested_amounts",
    "min_amount",
    "max_amount",
    "currency",
    "accepted_assets",
    "success_url",
    "cancel_url",
    "collect_name",
    "require_email",
    "custom_fields",
    "success_message",
    "expires_at",
    "max_payments",
];
/// The filters of the delivery log.
const DELIVERIES: [&str; 9] =
    ["account", "mode", "status", "endpoint", "event", "charge", "invoice", "before", "limit"];

routes! {
    "/sandbox": GET World [], clock::overview;
    "/sandbox/scenario": GET World [], clock::scenario;
    "/sandbox/happenings": GET Book ["after"], clock::world_events;
    "/sandbox/world": POST World ["seed", "start", "account", "journal"], clock::replace_world;
    "/sandbox/advance": POST Book AdvanceRequest, clock::advance;
    "/sandbox/restart": POST World [], clock::restart;
    "/sandbox/rates": POST World RateRequest, clock::set_rate;

    "/sandbox/accounts": POST World (ACCOUNT), account::open;
    "/sandbox/accounts/{id}": PATCH World (SETTINGS), account::change;
    "/sandbox/books/{account}/{mode}": GET World [], book::counts;
    "/sandbox/books/{account}/{mode}/late": GET World [], book::late_payments;
    "/sandbox/books/{account}/{mode}/search": GET World ["q"], search::search;
    "/sandbox/books/{account}/{mode}/charges/{id}/transfers": GET World [], book::transfers;
    "/sandbox/books/{account}/{mode}/charges": GET World (ANY), book::owner_reads; POST World (CHARGE), book::owner_writes;
    "/sandbox/books/{account}/{mode}/invoices": GET World (ANY), book::owner_reads; POST World (INVOICE), book::owner_writes;
    "/sandbox/books/{account}/{mode}/payment-links": GET World (ANY), book::owner_reads; POST World (LINK), book::owner_writes;
    "/sandbox/books/{account}/{mode}/charges/{id}/refunds": POST World ["amount", "txid", "reason"], book::owner_writes;
    "/sandbox/books/{account}/{mode}/payment-links/{id}/archive": POST World [], book::owner_writes;
        DELETE World [], book::owner_writes;
    "/sandbox/books/{account}/{mode}/{*}": GET World (ANY), book::owner_reads;
    "/sandbox/keys": GET World [], account::keys; POST World KeyRequest, account::create_key;
    "/sandbox/keys/{id}": DELETE World [], account::revoke_key;
    "/sandbox/wallets": GET World [], account::wallets;
        PUT World WalletRequest, account::set_wallet;
        DELETE World WalletRemovalRequest, account::remove_wallet;

    "/sandbox/endpoints": GET Book [], owner::endpoints;
        POST Book EndpointRequest, owner::add_endpoint;
    "/sandbox/endpoints/{id}": PATCH Book EndpointChangeRequest, owner::change_endpoint;
        DELETE Book [], owner::remove_endpoint;
    "/sandbox/endpoints/{id}/rotate": POST Book [], owner::rotate;
    "/sandbox/endpoints/{id}/test": POST Book [], owner::test;
    "/sandbox/charges/{id}/accept": POST Book AcceptRequest, owner::accept;
    "/sandbox/charges/{id}/cancel": POST World [], owner::cancel;
    "/sandbox/invoices/{id}/void": POST World [], owner::void;
    "/sandbox/invoices/{id}/send": POST World [], owner::send;
    "/sandbox/mails": GET Book ["account", "mode", "limit"], owner::mails;

    "/sandbox/deliveries": GET Book (DELIVERIES), delivery::list_deliveries;
    "/sandbox/deliveries/{id}": GET Book [], delivery::read_delivery;
    "/sandbox/deliveries/{id}/resend": POST Book [], delivery::resend;
    "/sandbox/merchants": POST World MerchantRequest, delivery::set_merchant;

    "/sandbox/invoices/{id}/view": POST Book [], hosted::view_invoice;
    "/sandbox/invoices/{id}/choose": POST Book InvoiceCoinRequest, hosted::choose_coin;
    "/sandbox/links/{id}/view": POST Book [], hosted::view_link;
    "/sandbox/links/{id}/choose": POST Book LinkCoinRequest, hosted::pay_link;

    "/sandbox/pages/c/{id}": GET World [], page::charge;
    "/sandbox/pages/i/{id}": GET World [], page::invoice;
    "/sandbox/pages/pay/{id}": GET World [], page::link;

    "/sandbox/pay": POST Book PayRequest, chain::pay;
    "/sandbox/mine": POST Book Mine, chain::mine;
    "/sandbox/reorg": POST Book ReorgRequest, chain::reorganise;
    "/sandbox/double-spend": POST Book TransactionRequest, chain::double_spend;
    "/sandbox/replace": POST Book ReplaceRequest, chain::replace;
    "/sandbox/drop": POST Book TransactionRequest, chain::drop_transaction;
    "/sandbox/rebroadcast": POST Book TransactionRequest, chain::rebroadcast;
    "/sandbox/stall": POST Book Stall, chain::stall;
    "/sandbox/congest": POST World CongestRequest, chain::congest;
    "/sandbox/watchers": POST World Watcher, chain::watch;
}

impl Route {
    /// Returns the values of the segments in braces if the path matches this route.
    fn parameters<'p>(&self, path: &'p str) -> Option<Vec<&'p str>> {
        let (path, pattern) = (path.trim_start_matches('/'), &self.path[1..]);
        // Fast path: nearly all routes differ from a path before their first parameter.
        if !path.starts_with(pattern.split('{').next().unwrap_or_default()) {
            return None;
        }
        let mut parameters = Vec::new();
        let mut rest = path.split('/');
        let mut pattern = pattern.split('/');
        loop {
            match (pattern.next(), rest.next()) {
                (None, None) => return Some(parameters),
                (Some("{*}"), Some(first)) => {
                    parameters.push(first);
                    parameters.extend(rest);
                    return Some(parameters);
                }
                (Some(part), Some(segment)) if part.starts_with('{') => parameters.push(segment),
                (Some(part), Some(segment)) if part == segment => {}
                _ => return None,
            }
        }
    }
}

/// Returns `true` if the route of a call allows a field.
pub(super) fn accepts_field(method: &str, path: &str, field: &str) -> bool {
    let route = ROUTES.iter().find(|route| route.parameters(path).is_some());
    let method = route.and_then(|route| route.methods.iter().find(|allowed| allowed.method == method));
    method.is_some_and(|method| method.fields.contains(&field))
}

/// Responds to a call under `/sandbox`; `within` restricts it to one book.
pub(super) fn respond(sandbox: &mut Sandbox, request: &Request<'_>, within: Option<Within>) -> Progress {
    // The log of a new world is empty.
    let before = if request.path == "/sandbox/world" { 0 } else { sandbox.log().count() };
    let outcome = dispatch(sandbox, request, within);
    // Even a refused call may have changed something, so the cached due time is cleared.
    sandbox.world.cached_due.set(None);
    let (mut fields, target) = match outcome {
        Ok((HandlerResponse::Fields(fields), target)) => (fields, target),
        Ok((HandlerResponse::Raw(response), _)) => {
            sandbox.perform_due();
            return Progress::Done(response);
        }
        Err(error) => return Progress::Done(Response::refusal(&error)),
    };
    // The response includes the events that the call caused.
    sandbox.perform_due();
    if let Some(target) = target {
        let pending = PendingAdvance::new(sandbox, target, before, within);
        return sandbox.run_until_blocked(pending);
    }
    if !is_read(request) && !sandbox.observers.is_log_disabled() {
        add_events(sandbox, &mut fields, before, within);
    }
    Progress::Done(finish(sandbox, fields))
}

fn is_read(request: &Request<'_>) -> bool {
    matches!(request.method, "GET" | "HEAD")
}

/// Checks the method and path of an unrestricted call before its body has arrived.
///
/// # Errors
///
/// 404 for an unknown path, 405 for a method that the path does not allow.
pub fn check_head(method: &str, path: &str) -> Result<(), ApiError> {
    find_route(method, path, None).map(drop)
}

/// Returns the method of a route, and the values of the segments in braces.
fn find_route<'p>(
    method: &str,
    path: &'p str,
    within: Option<Within>,
) -> Result<(&'static RouteMethod, Vec<&'p str>), ApiError> {
    let found = ROUTES.iter().find_map(|route| Some((route, route.parameters(path)?)));
    let (route, parameters) = found.ok_or(ApiError::NotFound)?;
    let method = if method == "HEAD" { "GET" } else { method };
    let method = route.methods.iter().find(|allowed| allowed.method == method);
    if within.is_some() && method.is_none_or(|method| method.reach != RouteReach::Book) {
        return Err(ApiError::NotFound);
    }
    Ok((method.ok_or(ApiError::MethodNotAllowed { allow: route.allow.into() })?, parameters))
}

/// Calls the handler of a request. Returns its result, and the time to which it moves the clock.
fn dispatch(
    sandbox: &mut Sandbox,
    request: &Request<'_>,
    within: Option<Within>,
) -> Result<(HandlerResponse, Option<AdvanceTarget>), ApiError> {
    let (method, parameters) = find_route(request.method, request.path, within)?;
    if request.body.len() > BODY_MAX {
        return Err(ApiError::BodyTooLarge);
    }
    let query;
    let body: &[u8] = if !is_read(request) {
        request.body
    } else if method.fields == ANY {
        b""
    } else {
        query = Fields::query_to_json(request.query)?;
        // Unknown parameters are refused here, because few handlers of reads check their fields.
        let mut fields = Fields::read(&query)?;
        fields.reject_unknown(method.fields);
        fields.finish()?;
        &query
    };
    let mut fields = Fields::read(body)?;
    if !is_read(request) {
        fields.reject_unknown(method.fields);
    }
    let mut call = SandboxCall::new(sandbox, request, within, parameters);
    let response = (method.handler)(&mut call, fields)?;
    Ok((response, call.target()))
}

/// Returns the response to a call that moved the clock.
pub(super) fn advance_response(sandbox: &Sandbox, before: u64, within: Option<Within>) -> Response {
    let mut fields = Map::new();
    add_events(sandbox, &mut fields, before, within);
    finish(sandbox, fields)
}

/// Returns `true` if there is an event after the `n`th that concerns the book.
pub(super) fn has_events_after(sandbox: &Sandbox, n: u64, within: Option<Within>) -> bool {
    events_after(sandbox, n, within).next().is_some()
}

/// Returns the response with these fields and the current time.
fn finish(sandbox: &Sandbox, mut fields: Map<String, Value>) -> Response {
    fields.insert("now".to_owned(), Value::from(sandbox.now().to_string()));
    let body = serde_json::to_vec(&fields).expect("a map of values is JSON");
    Response { status: 200, headers: Vec::new(), body: body.into() }
}

/// Adds the events after the `n`th, and the field `next` if there are more than one response may have.
fn add_events(sandbox: &Sandbox, fields: &mut Map<String, Value>, n: u64, within: Option<Within>) {
    let mut events = events_after(sandbox, n, within);
    let listed: Vec<&WorldEvent> = events.by_ref().take(EVENTS_MAX).collect();
    if let Some(last) = listed.last().filter(|_| events.next().is_some()) {
        fields.insert("next".to_owned(), last.n.into());
    }
    fields.insert("happened".to_owned(), listed.into_iter().map(api::json).collect());
}

/// Returns the events after the `n`th that concern the book.
fn events_after(sandbox: &Sandbox, n: u64, within: Option<Within>) -> impl Iterator<Item = &WorldEvent> {
    let within = within.map(|(no, mode)| (sandbox.service().account(no), mode));
    sandbox.log().events_after(n).filter(move |event| {
        within.is_none_or(|(account, mode)| {
            let is_own = |address: &str| account.book(mode).charge_by_address(address).is_some();
            event.kind.concerns(&account.id, mode, is_own)
        })
    })
}

#[cfg(test)]
pub(super) mod tests;
