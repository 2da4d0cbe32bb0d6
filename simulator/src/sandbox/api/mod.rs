//! `/sandbox`: the simulated world as JSON calls, so that a script can do everything.
//!
//! Pure: the server and the player call the same function, one over sockets, the other directly.

mod account;
mod book;
mod chain;
mod dashboard;
mod delivery;
mod hosted;
mod page;
mod shape;
mod world;

use std::borrow::Cow;

use reference_core::{
    asset::Asset,
    book::Book,
    error::ApiError,
    id::{AccountNo, Code},
    mode::Mode,
    wire::{
        fields::{Fields, TEXT_MAX},
        http::{BODY_MAX, Request, Response},
    },
};
use serde_json::{Map, Value, json};

use super::{FIRST_ACCOUNT, Happening, Journey, Progress, Sandbox};

type Outcome = Result<Map<String, Value>, ApiError>;

/// The only book that a call reaches.
pub(super) type Within = (AccountNo, Mode);

/// Answers a call to `/sandbox`: of somebody who may do everything, or within one book.
pub(super) fn respond(sandbox: &mut Sandbox, request: &Request<'_>, within: Option<Within>) -> Progress {
    // A new world's chronicle begins anew.
    let before = if request.path == "/sandbox/world" { 0 } else { sandbox.chronicle.count() };
    if within.is_none()
        && let Some(looked) = look(sandbox, request)
    {
        return Progress::Done(looked.unwrap_or_else(|error| Response::refusal(&error)));
    }
    sandbox.within = within;
    let outcome = route(sandbox, request);
    // A refused call is not worked off, and may have changed something on its way.
    sandbox.due.set(None);
    sandbox.within = None;
    let heading = sandbox.heading.take();
    match outcome {
        Ok(mut answer) => {
            // What the call caused is part of its answer.
            sandbox.work();
            if let Some(heading) = heading {
                let journey = Journey::new(sandbox, heading, before, within);
                return sandbox.travel(journey);
            }
            if request.method != "GET" && request.method != "HEAD" && !sandbox.terse {
                answer.insert("happened".to_owned(), happened(sandbox, before, within));
            }
            Progress::Done(finish(sandbox, answer))
        }
        Err(error) => Progress::Done(Response::refusal(&error)),
    }
}

/// The answer to a call that moved the clock.
pub(super) fn arrived(sandbox: &Sandbox, before: u64, within: Option<Within>) -> Response {
    finish(sandbox, Map::from_iter([("happened".to_owned(), happened(sandbox, before, within))]))
}

/// What a key would read is answered as the key would be; everything else is this module's own.
fn look(sandbox: &Sandbox, request: &Request<'_>) -> Option<Result<Response, ApiError>> {
    let segments: Vec<&str> = request.path.trim_start_matches('/').split('/').skip(1).collect();
    match segments.as_slice() {
        ["books", _, _] | ["books", _, _, "late"] | ["books", _, _, "charges", _, "transfers"] => None,
        ["books", account, mode, rest @ ..] if matches!(request.method, "GET" | "HEAD") => {
            Some(book::look(sandbox, request, (account, mode, rest)))
        }
        _ => None,
    }
}

/// Whether anything that concerns the book has happened after the `n`th thing.
pub(super) fn has_happened(sandbox: &Sandbox, n: u64, within: Option<Within>) -> bool {
    happenings(sandbox, n, within).next().is_some()
}

fn finish(sandbox: &Sandbox, mut answer: Map<String, Value>) -> Response {
    answer.insert("now".to_owned(), json!(sandbox.now.to_string()));
    let body = serde_json::to_vec(&answer).expect("a map of values is JSON");
    Response { status: 200, headers: Vec::new(), body: body.into() }
}

fn happened(sandbox: &Sandbox, before: u64, within: Option<Within>) -> Value {
    happenings(sandbox, before, within).map(|happening| json!(happening)).collect()
}

/// What happened after the `n`th thing, as far as it concerns the book.
fn happenings(sandbox: &Sandbox, n: u64, within: Option<Within>) -> impl Iterator<Item = &Happening> {
    let within = within.map(|(no, mode)| (&*sandbox.service().account(no).id, mode));
    sandbox.chronicle.after(n).filter(move |happening| {
        within.is_none_or(|(account, mode)| happening.what.concerns(account, mode.as_str()))
    })
}

fn route(sandbox: &mut Sandbox, request: &Request<'_>) -> Outcome {
    if request.body.len() > BODY_MAX {
        return Err(ApiError::BodyTooLarge);
    }
    let segments: Vec<&str> = request.path.trim_start_matches('/').split('/').skip(1).collect();
    let method = if request.method == "HEAD" { "GET" } else { request.method };
    let body = request.body;
    let query = request.query.unwrap_or("");
    if sandbox.within.is_some() && !stays_within_a_book(method, &segments) {
        return Err(ApiError::NotFound);
    }
    match (method, segments.as_slice()) {
        ("GET", []) => world::overview(sandbox),
        ("GET", ["happenings"]) => world::happenings(sandbox, query),
        ("POST", ["world"]) => world::begin(sandbox, body),
        ("POST", ["advance"]) => world::advance(sandbox, body),
        ("POST", ["restart"]) => world::restart(sandbox, body),
        ("POST", ["rates"]) => world::set_rate(sandbox, body),

        ("POST", ["accounts"]) => account::open(sandbox, body),
        ("PATCH", ["accounts", id]) => account::change(sandbox, id, body),
        ("GET", ["books", account, mode]) => book::glance(sandbox, account, mode),
        ("GET", ["books", account, mode, "late"]) => book::late(sandbox, account, mode),
        ("GET", ["books", account, mode, "charges", id, "transfers"]) => {
            book::transfers(sandbox, (account, mode), id)
        }
        ("GET", ["keys"]) => account::keys(sandbox),
        ("POST", ["keys"]) => account::create_key(sandbox, body),
        ("DELETE", ["keys", id]) => account::revoke_key(sandbox, code(id)?),
        ("GET", ["wallets"]) => account::wallets(sandbox),
        ("PUT", ["wallets"]) => account::set_wallet(sandbox, body),
        ("DELETE", ["wallets"]) => account::remove_wallet(sandbox, body),

        ("GET", ["endpoints"]) => dashboard::endpoints(sandbox),
        ("POST", ["endpoints"]) => dashboard::add_endpoint(sandbox, body),
        ("PATCH", ["endpoints", id]) => dashboard::change_endpoint(sandbox, code(id)?, body),
        ("DELETE", ["endpoints", id]) => dashboard::remove_endpoint(sandbox, code(id)?),
        ("POST", ["endpoints", id, "rotate"]) => dashboard::rotate(sandbox, code(id)?),
        ("POST", ["endpoints", id, "test"]) => dashboard::test(sandbox, code(id)?),
        ("POST", ["charges", id, "accept"]) => dashboard::accept(sandbox, code(id)?, body),
        ("POST", ["charges", id, "cancel"]) => dashboard::cancel(sandbox, code(id)?),
        ("POST", ["invoices", id, "void"]) => dashboard::void(sandbox, code(id)?),
        ("POST", ["invoices", id, "send"]) => dashboard::send(sandbox, code(id)?),
        ("GET", ["mails"]) => dashboard::mails(sandbox, query),

        ("GET", ["deliveries"]) => delivery::log(sandbox, query),
        ("GET", ["deliveries", id]) => delivery::one(sandbox, id),
        ("POST", ["deliveries", id, "resend"]) => delivery::resend(sandbox, id),
        ("POST", ["merchants"]) => delivery::set_merchant(sandbox, body),

        ("POST", ["invoices", id, "view"]) => hosted::view_invoice(sandbox, code(id)?),
        ("POST", ["invoices", id, "choose"]) => hosted::choose_coin(sandbox, code(id)?, body),
        ("POST", ["links", id, "view"]) => hosted::view_link(sandbox, code(id)?),
        ("POST", ["links", id, "choose"]) => hosted::pay_link(sandbox, code(id)?, body),

        ("GET", ["pages", "c", id]) => page::charge(sandbox, request, code(id)?),
        ("GET", ["pages", "i", id]) => page::invoice(sandbox, request, code(id)?),
        ("GET", ["pages", "pay", id]) => page::link(sandbox, request, code(id)?),

        ("POST", ["pay"]) => chain::pay(sandbox, body),
        ("POST", ["mine"]) => chain::mine(sandbox, body),
        ("POST", ["reorg"]) => chain::reorganise(sandbox, body),
        ("POST", ["double-spend"]) => chain::double_spend(sandbox, body),
        ("POST", ["replace"]) => chain::replace(sandbox, body),
        ("POST", ["drop"]) => chain::drop_transaction(sandbox, body),
        ("POST", ["rebroadcast"]) => chain::rebroadcast(sandbox, body),
        ("POST", ["stall"]) => chain::stall(sandbox, body),
        ("POST", ["congest"]) => chain::congest(sandbox, body),
        ("POST", ["watchers"]) => chain::watch(sandbox, body),
        (_, other) => match allow(other) {
            Some(allow) => Err(ApiError::WrongMethod { allow }),
            None => Err(ApiError::NotFound),
        },
    }
}

/// What can be done for one book alone. The clock is the exception: there is one for all.
fn stays_within_a_book(method: &str, segments: &[&str]) -> bool {
    matches!(
        (method, segments),
        ("GET", ["happenings" | "endpoints" | "deliveries" | "mails"] | ["deliveries", _])
            | (
                "POST",
                ["advance"
                    | "pay"
                    | "mine"
                    | "reorg"
                    | "double-spend"
                    | "replace"
                    | "drop"
                    | "rebroadcast"
                    | "stall"
                    | "endpoints"]
                    | ["endpoints", _, "rotate" | "test"]
                    | ["deliveries", _, "resend"]
                    | ["charges", _, "accept"]
                    | ["invoices" | "links", _, "view" | "choose"]
            )
            | ("PATCH" | "DELETE", ["endpoints", _])
    )
}

/// What a known path takes.
fn allow(segments: &[&str]) -> Option<&'static str> {
    Some(match segments {
        []
        | ["happenings" | "deliveries" | "mails"]
        | ["deliveries", _]
        | ["books", _, _, ..]
        | ["pages", "c" | "i" | "pay", _] => "GET, HEAD",
        ["keys" | "endpoints"] => "GET, HEAD, POST",
        ["wallets"] => "GET, HEAD, PUT, DELETE",
        ["accounts", _] => "PATCH",
        ["keys", _] => "DELETE",
        ["endpoints", _] => "PATCH, DELETE",
        [
            "world" | "advance" | "restart" | "rates" | "accounts" | "merchants" | "pay" | "mine" | "reorg"
            | "double-spend" | "replace" | "drop" | "rebroadcast" | "stall" | "congest" | "watchers",
        ]
        | ["endpoints", _, "rotate" | "test"]
        | ["charges", _, "accept" | "cancel"]
        | ["invoices", _, "void" | "send" | "view" | "choose"]
        | ["links", _, "view" | "choose"]
        | ["deliveries", _, "resend"] => "POST",
        _ => return None,
    })
}

fn code(text: &str) -> Result<Code, ApiError> {
    Code::parse(text).ok_or(ApiError::NotFound)
}

/// Nothing to say beyond what happened.
fn nothing() -> Outcome {
    Ok(Map::new())
}

/// An answer with one field.
fn answer(name: &str, value: Value) -> Outcome {
    Ok(Map::from_iter([(name.to_owned(), value)]))
}

/// The value of a query parameter.
fn parameter<'q>(query: &'q str, name: &str) -> Option<Cow<'q, str>> {
    url::form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value)
}

/// `account`, by default the first one, or the only one within reach.
fn read_account(sandbox: &Sandbox, fields: &mut Fields<'_>) -> Option<AccountNo> {
    let own = sandbox.within.map(|(account, _)| account);
    let no = match fields.text("account", TEXT_MAX) {
        None if own.is_some() => own,
        id => sandbox.service().find_account(id.as_deref().unwrap_or(FIRST_ACCOUNT)),
    };
    if no.is_none() || own.is_some_and(|own| no != Some(own)) {
        fields.wrong("account", "The selected {} is invalid.");
    }
    no
}

/// `mode`, by default live, or the only one within reach.
fn read_mode(sandbox: &Sandbox, fields: &mut Fields<'_>) -> Mode {
    let own = sandbox.within.map(|(_, mode)| mode);
    let mode = fields.word("mode", Mode::parse).or(own).unwrap_or(Mode::Live);
    if own.is_some_and(|own| mode != own) {
        fields.wrong("mode", "The {} field must be the mode of the key.");
    }
    mode
}

/// `asset`, which must be there.
fn read_asset(fields: &mut Fields<'_>) -> Option<Asset> {
    let code = fields.required_text("asset", TEXT_MAX)?;
    let asset = Asset::parse(&code);
    if asset.is_none() {
        fields.wrong("asset", "The selected {} is invalid.");
    }
    asset
}

/// Every book within reach.
fn books(sandbox: &Sandbox) -> impl Iterator<Item = (AccountNo, Mode, &Book)> {
    let within = sandbox.within;
    let reached = move |account, mode| within.is_none_or(|only| only == (account, mode));
    sandbox.service().books().filter(move |(account, mode, _)| reached(*account, *mode))
}

/// The book that holds what `find` looks for.
fn find_book(sandbox: &Sandbox, find: impl Fn(&Book) -> bool) -> Result<(AccountNo, Mode), ApiError> {
    let mut books = books(sandbox);
    books.find(|(_, _, book)| find(book)).map(|(account, mode, _)| (account, mode)).ok_or(ApiError::NotFound)
}

#[cfg(test)]
mod tests {
    use reference_core::{dialect::Dialect, draw::Seed, time::Timestamp};

    use super::*;
    use crate::sandbox::{Reach, Setup};

    fn world() -> Sandbox {
        Sandbox::new(&Setup {
            seed: Seed(1),
            start: Timestamp::parse("2026-01-05T09:00:00Z").unwrap(),
            public_url: "https://pay.example".to_owned(),
            rate_limit: None,
            dialect: Dialect::default(),
            journal: false,
            reach: Reach::Simulated,
            vault: None,
        })
    }

    #[track_caller]
    fn check(method: &str, path: &str, body: &str, status: u16, part: &str) {
        let mut world = world();
        let now = world.now();
        let request = Request {
            method,
            path,
            query: None,
            authorization: None,
            content_type: Some(b"application/json"),
            idempotency_key: None,
            base: "https://pay.example",
            body: body.as_bytes(),
        };
        let response = world.respond(now, &request);
        let text = String::from_utf8(response.body.into()).unwrap();
        assert_eq!(response.status, status, "{method} {path} {body}: {text}");
        assert!(text.contains(part), "{part:?} in {text}");
    }

    #[test]
    fn a_wrong_call_says_what_is_taken() {
        check("POST", "/sandbox/advance", r#"{"by":"1y"}"#, 422, "30s, 250us or 1h30m");
        check("POST", "/sandbox/advance", r#"{"to":"today"}"#, 422, "2026-01-05T09:00:00Z");
        check("POST", "/sandbox/advance", r#"{"to":"2025-01-01T00:00:00Z"}"#, 422, "never goes back");
        check("POST", "/sandbox/advance", "{}", 422, "Give either by");
        check("POST", "/sandbox/advance", r#"{"by":"1s","fast":true}"#, 422, "fast field is not known here");
        check("POST", "/sandbox/advance", "[]", 400, "not a JSON object");
        check("POST", "/sandbox/stall", r#"{"asset":"BTC","for":"long"}"#, 422, "30s or 2h");
        check("POST", "/sandbox/pay", r#"{"charge":"aaaaaaaaaaaa"}"#, 422, "charge is invalid");
        check("POST", "/sandbox/drop", r#"{"txid":"00"}"#, 422, "no chain knows");
        check("POST", "/sandbox/reorg", r#"{"asset":"BTC"}"#, 422, "depth field is required");
        check(
            "PUT",
            "/sandbox/wallets",
            r#"{"asset":"BTC","key":"xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHi"}"#,
            422,
            "private key",
        );
        check("POST", "/sandbox/endpoints", r#"{"url":"https://shop.example"}"#, 422, "such as shop.sim");
        check("POST", "/sandbox/restart", "", 409, "no journal");
        check("GET", "/sandbox/advance", "", 405, "POST");
        check("GET", "/sandbox/nowhere", "", 404, "Not found.");
    }
}
