//! Faults in authentication, in the account, and in the JSON of responses.

use conformance::Mode;
use serde_json::{Value, json};

use crate::fake::{self, FakeServer, Reply, Request, wire};
use crate::mutant::{Mutant, account, list, reply, rewrite, rule};

pub(crate) const MUTANTS: &[Mutant] = &[
    // If the account states no mode, the suite sends no burst.
    account("the account does not state its mode", &["account.mode"], |_, response| {
        response.body["meta"]["mode"] = Value::Null
    }),
    account(
        "the account is a list",
        &["account.served", "account.mode", "account.accepted_assets"],
        |_, response| response.body = json!([]),
    ),
    account("the accepted assets are one string", &["account.accepted_assets"], |_, response| {
        response.body["meta"]["accepted_assets"] = json!("BTC,ETH")
    }),
    reply("a refused value gets an HTML page", &["answers.json"], 422, |_, response| {
        response.raw = Some("<h1>Unprocessable</h1>".into())
    }),
    reply("a list is HTML", &["answers.json"], 200, |_, response| response.raw = Some("<html>".into()))
        .for_requests(|request| request.path == "/v1/invoices"),
    list("a list is labelled text/html", &["answers.content_type"], |_, response| {
        response.set("content-type", "text/html")
    }),
    account("an object has a duplicate member", &["answers.duplicate_keys"], |_, response| {
        let body = response.body.to_string();
        response.raw = Some(body.replacen('{', "{\"meta\":{},", 1));
    }),
    rule(
        "a request without a key is accepted",
        &["auth.no_header", "auth.every_path", "auth.head"],
        |server| accept_if(server, |authorization| authorization.is_none()),
    ),
    reply("a missing key gets 403", &["auth.no_header", "auth.every_path"], 401, |_, response| {
        response.status = 403
    })
    .for_requests(|request| request.authorization.is_none()),
    reply("one path requires no key", &["auth.every_path"], 401, |_, response| response.status = 200)
        .for_requests(|request| request.path == "/v1/invoices")
        .may_fail(SINGLE_REFUSALS),
    rule("an empty bearer token is accepted", &["auth.empty_bearer"], |server| {
        accept_if(server, |authorization| authorization.is_some_and(|value| value.trim() == "Bearer"))
    }),
    rule("any authentication scheme is accepted", &["auth.other_scheme", "auth.token_scheme"], |server| {
        server.scheme_matters = false
    }),
    rule("the scheme Token is accepted too", &["auth.token_scheme"], |server| {
        server.rewrite_requests(|request| {
            if let Some(key) = request
                .authorization
                .as_deref()
                .and_then(|authorization| authorization.strip_prefix("Token "))
            {
                request.authorization = Some(format!("Bearer {key}"));
            }
        });
    }),
    rule("a key is cut at a space", &["auth.appended"], |server| {
        server.key_fits = |given, key| given.split(' ').next() == Some(key)
    }),
    rule("a key is cut at a comma", &["auth.appended"], |server| {
        server.key_fits = |given, key| given.split(',').next() == Some(key)
    }),
    rule("a key is percent-decoded before it is compared", &["auth.encoded"], |server| {
        server.key_fits = |given, key| given.replace("%5F", "_") == key
    }),
    reply("a missing key gets 503", &["auth.no_header", "auth.every_path"], 401, |_, response| {
        response.status = 503
    })
    .for_requests(|request| request.authorization.is_none()),
    reply("a missing key gets 429", &["auth.no_header", "auth.every_path"], 401, |_, response| {
        response.status = 429
    })
    .for_requests(|request| request.authorization.is_none()),
    reply(
        "a request without a key gets no response",
        &["auth.no_header", "auth.every_path"],
        401,
        |_, response| response.status = wire::CLOSED,
    )
    .for_requests(|request| request.authorization.is_none()),
    reply(
        "a wrong key gets 502",
        &["auth.unknown_key", "auth.last_character", "auth.appended", "auth.shortened"],
        401,
        |_, response| response.status = 502,
    )
    .for_requests(|request| request.authorization.is_some())
    .may_fail(OTHER_TOKEN_REFUSALS),
    reply("a 401 has bytes that are not UTF-8", &["auth.message"], 401, |_, response| {
        response.raw = Some(format!("{{\"message\":\"{}\"}}", char::REPLACEMENT_CHARACTER));
    }),
    rule(
        "every key with the right prefix is accepted",
        &[
            "auth.unknown_key",
            "auth.last_character",
            "auth.letter_case",
            "auth.appended",
            "auth.other_prefix",
            "auth.revoked_key",
            "auth.shortened",
        ],
        |server| server.key_fits = |given, key| given[..9] == key[..9],
    ),
    rule("the last character of a key is not compared", &["auth.last_character"], |server| {
        server.key_fits =
            |given, key| given.len() == key.len() && given[..given.len() - 1] == key[..key.len() - 1];
    }),
    rule("keys are compared case-insensitively", &["auth.letter_case"], |server| {
        server.key_fits = |given, key| given.eq_ignore_ascii_case(key)
    }),
    rule("a key with appended characters is accepted", &["auth.appended"], |server| {
        server.key_fits = |given, key| given.starts_with(key)
    }),
    rule("the prefix of a key is not compared", &["auth.other_prefix"], |server| {
        server.key_fits = |given, key| given.get(9..) == key.get(9..)
    }),
    rule("a revoked key still works", &["auth.revoked_key"], |server| server.revoked_works = true),
    reply("a 401 has no body", &["auth.message"], 401, |_, response| response.raw = Some(String::new())),
    reply("a 401 has JSON without a message", &["auth.message"], 401, |_, response| {
        response.body = json!({ "code": 17 })
    }),
    reply("a 401 has no WWW-Authenticate header", &["auth.www_authenticate"], 401, |_, response| {
        response.drop_header("www-authenticate")
    }),
    account("the account of a second key has the other mode", &["account.mode"], |request, response| {
        if request
            .authorization
            .as_deref()
            .is_some_and(|authorization| authorization.ends_with(fake::SECOND_KEY))
        {
            response.body["meta"]["mode"] = json!("live");
        }
    }),
    account("the mode is in upper case", &["account.mode"], |_, response| {
        let mode = response.body["meta"]["mode"].as_str().expect("the mode is a string").to_uppercase();
        response.body["meta"]["mode"] = json!(mode);
    }),
    account("the account has no meta", &["account.mode", "account.accepted_assets"], |_, response| {
        response.body = json!({ "data": response.body["data"], "mode": "test" })
    }),
    account(
        "the accepted assets are an object with indexes as names",
        &["account.accepted_assets"],
        |_, response| response.body["meta"]["accepted_assets"] = json!({ "0": "BTC", "2": "ETH" }),
    ),
    account("the account of test mode has null assets", &["account.accepted_assets"], |request, response| {
        if request.mode == Some(Mode::Test) {
            response.body["meta"]["accepted_assets"] = Value::Null;
        }
    }),
    account("reading the account gets 405", &["account.served"], |_, response| {
        *response = Reply::json(405, json!({ "message": "Use POST." }))
    }),
    reply("a 401 is a redirect to a login page", ALL_REFUSALS, 401, |_, response| {
        response.status = 302;
        response.set("location", "/login");
        response.raw = Some("<html>Redirecting to /login</html>".into());
    }),
    reply("a refused key gets 200 with an error in the body", ALL_REFUSALS, 401, |_, response| {
        *response = Reply::json(200, json!({ "success": false, "error": "unauthorized" }));
    })
    .may_fail(&["auth.head"]),
    reply(
        "a missing key gets 401, a wrong one 403",
        &[
            "auth.empty_bearer",
            "auth.other_scheme",
            "auth.token_scheme",
            "auth.unknown_key",
            "auth.last_character",
            "auth.letter_case",
            "auth.appended",
            "auth.encoded",
            "auth.other_prefix",
            "auth.revoked_key",
            "auth.shortened",
        ],
        401,
        |_, response| response.status = 403,
    )
    .for_requests(|request| request.authorization.is_some()),
    reply(
        "a wrong key gets 500",
        &["auth.unknown_key", "auth.last_character", "auth.letter_case"],
        401,
        |_, response| *response = Reply::json(500, json!({ "message": "undefined is not an object" })),
    )
    .for_requests(|request| {
        request.authorization.as_deref().is_some_and(|authorization| authorization.starts_with("Bearer svc"))
    })
    .may_fail(&[
        "auth.appended",
        "auth.encoded",
        "auth.other_prefix",
        "auth.revoked_key",
        "auth.shortened",
    ]),
    rule(
        "only the first 24 characters of a key are compared",
        &["auth.last_character", "auth.appended", "auth.shortened"],
        |server| server.key_fits = |given, key| given.get(..24) == key.get(..24),
    ),
    rule("a revoked key gets 403", &["auth.revoked_key"], |server| {
        let has_revoked_key = |request: &Request| {
            request
                .authorization
                .as_deref()
                .is_some_and(|authorization| authorization.ends_with(fake::REVOKED_KEY))
        };
        rewrite(server, 401, has_revoked_key, |_, response| response.status = 403);
    }),
    reply("a 401 is a web page", &["auth.message"], 401, |_, response| {
        response.set("content-type", "text/html");
        response.raw = Some("<!doctype html><title>401 Unauthorized</title>".into());
    }),
    reply("a 401 of a list is plain text", &["auth.message"], 401, |_, response| {
        response.raw = Some("Unauthorized".into())
    })
    .for_requests(Request::is_list),
    reply("single events require no key", &["auth.every_path"], 401, |_, response| {
        *response = Reply::json(200, json!({ "data": {} }))
    })
    .for_requests(|request| request.path.starts_with("/v1/events/"))
    .may_fail(SINGLE_REFUSALS),
    rule("a shortened key is accepted", &["auth.shortened"], |server| {
        server.key_fits = |given, key| given.len() > "svc_test_".len() && key.starts_with(given)
    }),
    rule("a revoked key still reads the events", &["auth.revoked_key"], |server| {
        server.rewrite_requests(|request| {
            let is_revoked = |authorization: &str| authorization.ends_with(fake::REVOKED_KEY);
            if request.path == "/v1/events" && request.authorization.as_deref().is_some_and(is_revoked) {
                request.authorization = Some(format!("Bearer {}", fake::LIVE_KEY));
            }
        });
    }),
    rule("HEAD requires no key", &["auth.head"], |server| {
        server.rewrite_requests(|request| {
            if request.method == "HEAD" && request.authorization.is_none() {
                request.authorization = Some(format!("Bearer {}", fake::TEST_KEY));
            }
        });
    }),
    reply("HEAD gets 404", &["answers.head"], 200, |_, response| response.status = 404)
        .for_requests(|request| request.method == "HEAD"),
    reply("HEAD has a different media type than GET", &["answers.head"], 200, |_, response| {
        response.set("content-type", "text/plain")
    })
    .for_requests(|request| request.method == "HEAD"),
    rule("a 401 is cached for the next request to the path", &["auth.after_refusal"], |server| {
        let mut refused_path = None;
        server.rewrite(move |request, response| {
            if refused_path.take().as_ref() == Some(&request.path) && response.status == 200 {
                *response = Reply::json(401, json!({ "message": "Unknown API key." }));
            } else if response.status == 401 {
                refused_path = Some(request.path.clone());
            }
        });
    }),
    reply(
        "invalid parameters are refused before the key is checked",
        &["auth.every_path"],
        401,
        |_, response| {
            *response = Reply::json(422, json!({ "message": "per_page must be between 1 and 100." }))
        },
    )
    .for_requests(|request| request.query.contains_key("per_page")),
    reply("a body is read before the key is checked", &["auth.every_path"], 401, |_, response| {
        *response = Reply::json(422, json!({ "message": "The asset field is required." }))
    })
    .for_requests(|request| request.method == "POST"),
    rule("concurrent requests get the mode of another key", &["account.mode"], |server| {
        let (mut requests, mut last_mode) = (0, None);
        server.rewrite(move |request, response| {
            requests += 1;
            let previous_mode = std::mem::replace(&mut last_mode, request.mode);
            if let (true, true, Some(mode)) = (requests > 4, request.path == "/v1/account", previous_mode)
                && response.status == 200
            {
                response.body["meta"]["mode"] = json!(mode.as_str());
            }
        });
    }),
    reply("a 401 in JSON is labelled text/html", &["auth.message"], 401, |_, response| {
        response.set("content-type", "text/html; charset=utf-8")
    }),
    reply("a 404 in JSON is labelled text/plain", &["errors.not_found_json"], 404, |_, response| {
        response.set("content-type", "text/plain")
    }),
    reply("a 429 in JSON is labelled text/plain", &["limits.json"], 429, |_, response| {
        response.set("content-type", "text/plain")
    }),
    rule("a request without a key uses the previous key", &["auth.no_header", "auth.every_path"], |server| {
        let mut last_authorization = None;
        server.rewrite_requests(move |request| match &request.authorization {
            Some(authorization) => last_authorization = Some(authorization.clone()),
            None => request.authorization = last_authorization.clone(),
        });
    })
    .may_fail(&["auth.head"]),
    reply(
        "a request without a key always gets 503",
        &["auth.no_header", "auth.every_path"],
        401,
        |_, response| *response = Reply::json(503, json!({ "message": "Unavailable." })),
    )
    .for_requests(|request| request.authorization.is_none()),
    reply("a wrong key always gets 502", INVALID_TOKENS, 401, |_, response| {
        *response = Reply::json(502, json!({ "message": "Bad gateway." }))
    })
    .for_requests(|request| request.authorization.is_some())
    .may_fail(&["auth.revoked_key"]),
    rule("a cache that sends X-Cache serves a 401 to the next key", &["auth.after_refusal"], |server| {
        let mut refused_path = None;
        server.rewrite(move |request, response| {
            if refused_path.take().as_ref() == Some(&request.path) && response.status == 200 {
                *response = Reply::json(401, json!({ "message": "Unknown API key." }));
                response.set("x-cache", "HIT");
            } else if response.status == 401 {
                refused_path = Some(request.path.clone());
            }
        });
    }),
];

/// The statements about invalid tokens.
const INVALID_TOKENS: &[&str] = &[
    "auth.empty_bearer",
    "auth.encoded",
    "auth.token_scheme",
    "auth.other_scheme",
    "auth.unknown_key",
    "auth.last_character",
    "auth.letter_case",
    "auth.appended",
    "auth.shortened",
    "auth.other_prefix",
];

/// The statements about requests that must be refused.
const ALL_REFUSALS: &[&str] = &[
    "auth.no_header",
    "auth.empty_bearer",
    "auth.other_scheme",
    "auth.unknown_key",
    "auth.last_character",
    "auth.letter_case",
    "auth.appended",
    "auth.encoded",
    "auth.token_scheme",
    "auth.shortened",
    "auth.other_prefix",
    "auth.revoked_key",
    "auth.every_path",
];

/// The statements about requests that must be refused, except the one that covers every path.
pub(crate) const SINGLE_REFUSALS: &[&str] = match ALL_REFUSALS {
    [single @ .., _every_path] => single,
    [] => &[],
};

/// The statements, beyond `violates`, that a fault for wrong tokens may violate.
const OTHER_TOKEN_REFUSALS: &[&str] = &[
    "auth.empty_bearer",
    "auth.other_scheme",
    "auth.token_scheme",
    "auth.letter_case",
    "auth.encoded",
    "auth.other_prefix",
    "auth.revoked_key",
];

/// Makes a server accept requests with matching Authorization headers as if they had the test key.
fn accept_if(server: &mut FakeServer, matches: fn(authorization: Option<&str>) -> bool) {
    server.rewrite_requests(move |request| {
        if matches(request.authorization.as_deref()) {
            request.authorization = Some(format!("Bearer {}", fake::TEST_KEY));
        }
    });
}
