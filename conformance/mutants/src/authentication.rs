//! Faults in authentication, in the account, and in the JSON and media types of responses.

use conformance::Mode;
use serde_json::{Value, json};

use crate::fake::{self, EditableResponse, FakeServer, Request, http_server};
use crate::mutant::{Mutant, account_fault, list_fault, response_fault, rewrite_matching, server_fault};

/// The length of the prefix of every key.
const PREFIX_LEN: usize = "svc_test_".len();

pub(crate) const MUTANTS: &[Mutant] = &[
    // If the account states no mode, the suite sends no burst, so the statements about the limit are not judged.
    account_fault("the account does not state its mode", &["account.mode"], |_, response| {
        response.body["meta"]["mode"] = Value::Null
    }),
    account_fault(
        "the account is a list",
        &["account.served", "account.mode", "account.accepted_assets"],
        |_, response| response.body = json!([]),
    ),
    account_fault("the accepted assets are one string", &["account.accepted_assets"], |_, response| {
        response.body["meta"]["accepted_assets"] = json!("BTC,ETH")
    }),
    response_fault("a refused value gets an HTML page", &["answers.json"], 422, |_, response| {
        response.raw = Some("<h1>Unprocessable</h1>".into())
    }),
    response_fault("a list is HTML", &["answers.json"], 200, |_, response| {
        response.raw = Some("<html>".into())
    })
    .for_requests(|request| request.path == "/v1/invoices"),
    list_fault("a list is labelled text/html", &["answers.content_type"], |_, response| {
        response.set_header("content-type", "text/html")
    }),
    account_fault("an object has a duplicate member", &["answers.duplicate_keys"], |_, response| {
        let body = response.body.to_string();
        response.raw = Some(body.replacen('{', "{\"meta\":{},", 1));
    }),
    server_fault(
        "a request without a key is accepted",
        &["auth.no_header", "auth.every_path", "auth.head"],
        |server| accept_if(server, |authorization| authorization.is_none()),
    ),
    response_fault("a missing key gets 403", &["auth.no_header", "auth.every_path"], 401, |_, response| {
        response.status = 403
    })
    .for_requests(|request| request.authorization.is_none()),
    response_fault("one path requires no key", &["auth.every_path"], 401, |_, response| {
        response.status = 200
    })
    .for_requests(|request| request.path == "/v1/invoices")
    .may_fail(SINGLE_REFUSALS),
    response_fault("a single charge requires no key", &["auth.every_path"], 401, |_, response| {
        *response = EditableResponse::json(200, json!({ "data": {} }))
    })
    .for_requests(|request| request.authorization.is_none() && request.path.starts_with("/v1/charges/")),
    server_fault("an empty bearer token is accepted", &["auth.empty_bearer"], |server| {
        accept_if(server, |authorization| authorization.is_some_and(|value| value.trim() == "Bearer"))
    }),
    server_fault(
        "any authentication scheme is accepted",
        &["auth.other_scheme", "auth.token_scheme"],
        |server| server.requires_bearer = false,
    ),
    server_fault("the scheme Token is accepted too", &["auth.token_scheme"], |server| {
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
    server_fault("a key is cut at a space", &["auth.appended"], |server| {
        server.token_matches = |given, key| given.split(' ').next() == Some(key)
    }),
    server_fault("a key is cut at a comma", &["auth.appended"], |server| {
        server.token_matches = |given, key| given.split(',').next() == Some(key)
    }),
    server_fault("a key is percent-decoded before it is compared", &["auth.encoded"], |server| {
        server.token_matches = |given, key| given.replace("%5F", "_") == key
    }),
    response_fault("a missing key gets 503", &["auth.no_header", "auth.every_path"], 401, |_, response| {
        response.status = 503
    })
    .for_requests(|request| request.authorization.is_none()),
    response_fault("a missing key gets 429", &["auth.no_header", "auth.every_path"], 401, |_, response| {
        response.status = 429
    })
    .for_requests(|request| request.authorization.is_none()),
    response_fault(
        "a request without a key gets no response",
        &["auth.no_header", "auth.every_path"],
        401,
        |_, response| response.status = http_server::CLOSE_WITHOUT_RESPONSE,
    )
    .for_requests(|request| request.authorization.is_none()),
    response_fault(
        "a wrong key gets 502",
        &["auth.unknown_key", "auth.last_character", "auth.appended", "auth.shortened"],
        401,
        |_, response| response.status = 502,
    )
    .for_requests(|request| request.authorization.is_some())
    .may_fail(OTHER_TOKEN_REFUSALS),
    response_fault("a 401 has bytes that are not UTF-8", &["auth.message"], 401, |_, response| {
        response.raw = Some(format!("{{\"message\":\"{}\"}}", char::REPLACEMENT_CHARACTER));
    }),
    server_fault(
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
        |server| server.token_matches = |given, key| given[..PREFIX_LEN] == key[..PREFIX_LEN],
    ),
    server_fault("the last character of a key is not compared", &["auth.last_character"], |server| {
        server.token_matches =
            |given, key| given.len() == key.len() && given[..given.len() - 1] == key[..key.len() - 1];
    }),
    server_fault("keys are compared case-insensitively", &["auth.letter_case"], |server| {
        server.token_matches = |given, key| given.eq_ignore_ascii_case(key)
    }),
    server_fault("a key with appended characters is accepted", &["auth.appended"], |server| {
        server.token_matches = |given, key| given.starts_with(key)
    }),
    server_fault("the prefix of a key is not compared", &["auth.other_prefix"], |server| {
        server.token_matches = |given, key| given.get(PREFIX_LEN..) == key.get(PREFIX_LEN..)
    }),
    server_fault("a revoked key still works", &["auth.revoked_key"], |server| {
        server.accepts_revoked_key = true
    }),
    response_fault("a 401 has no body", &["auth.message"], 401, |_, response| {
        response.raw = Some(String::new())
    }),
    response_fault("a 401 has JSON without a message", &["auth.message"], 401, |_, response| {
        response.body = json!({ "code": 17 })
    }),
    response_fault("a 401 has no WWW-Authenticate header", &["auth.www_authenticate"], 401, |_, response| {
        response.remove_header("www-authenticate")
    }),
    account_fault(
        "the account of a second key has the other mode",
        &["account.mode"],
        |request, response| {
            if request
                .authorization
                .as_deref()
                .is_some_and(|authorization| authorization.ends_with(fake::SECOND_KEY))
            {
                response.body["meta"]["mode"] = json!("live");
            }
        },
    ),
    account_fault("the mode is in upper case", &["account.mode"], |_, response| {
        let mode = response.body["meta"]["mode"].as_str().expect("the mode is a string").to_uppercase();
        response.body["meta"]["mode"] = json!(mode);
    }),
    account_fault("the account has no meta", &["account.mode", "account.accepted_assets"], |_, response| {
        response.body = json!({ "data": response.body["data"], "mode": "test" })
    }),
    account_fault(
        "the accepted assets are an object with indexes as names",
        &["account.accepted_assets"],
        |_, response| response.body["meta"]["accepted_assets"] = json!({ "0": "BTC", "2": "ETH" }),
    ),
    account_fault(
        "the account of test mode has null assets",
        &["account.accepted_assets"],
        |request, response| {
            if request.mode == Some(Mode::Test) {
                response.body["meta"]["accepted_assets"] = Value::Null;
            }
        },
    ),
    response_fault("page 2 of the live events gets 401", &["auth.after_refusal"], 200, |_, response| {
        *response = EditableResponse::json(401, json!({ "message": "Unauthenticated." }))
    })
    .for_requests(|request| {
        request.mode == Some(Mode::Live)
            && request.path == "/v1/events"
            && request.query.get("page").is_some_and(|page| page == "2")
    })
    .may_fail(&["lists.served", "paging.links_lead"]),
    account_fault("the account of live mode has no tolerances", &["account.profile"], |request, response| {
        if request.mode == Some(Mode::Live) {
            response.body["data"]["payment_tolerances"] = Value::Null;
        }
    }),
    account_fault("the accepted assets contain null", &["account.accepted_assets"], |_, response| {
        response.body["meta"]["accepted_assets"] = json!(["BTC", null]);
    }),
    account_fault("reading the account gets 405", &["account.served"], |_, response| {
        *response = EditableResponse::json(405, json!({ "message": "Use POST." }))
    }),
    response_fault("a 401 is a redirect to a login page", ALL_REFUSALS, 401, |_, response| {
        response.status = 302;
        response.set_header("location", "/login");
        response.raw = Some("<html>Redirecting to /login</html>".into());
    }),
    response_fault("a refused key gets 200 with an error in the body", ALL_REFUSALS, 401, |_, response| {
        *response = EditableResponse::json(200, json!({ "success": false, "error": "unauthorized" }));
    })
    .may_fail(&["auth.head"]),
    response_fault(
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
    response_fault(
        "a wrong key gets 500",
        &["auth.unknown_key", "auth.last_character", "auth.letter_case"],
        401,
        |_, response| {
            *response = EditableResponse::json(500, json!({ "message": "undefined is not an object" }))
        },
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
    server_fault(
        "only the first 24 characters of a key are compared",
        &["auth.last_character", "auth.appended", "auth.shortened"],
        |server| server.token_matches = |given, key| given.get(..24) == key.get(..24),
    ),
    server_fault("a revoked key gets 403", &["auth.revoked_key"], |server| {
        let has_revoked_key = |request: &Request| {
            request
                .authorization
                .as_deref()
                .is_some_and(|authorization| authorization.ends_with(fake::REVOKED_KEY))
        };
        rewrite_matching(server, 401, has_revoked_key, |_, response| response.status = 403);
    }),
    response_fault("a 401 is a web page", &["auth.message"], 401, |_, response| {
        response.set_header("content-type", "text/html");
        response.raw = Some("<!doctype html><title>401 Unauthorized</title>".into());
    }),
    response_fault("a 401 of a list is plain text", &["auth.message"], 401, |_, response| {
        response.raw = Some("Unauthorized".into())
    })
    .for_requests(Request::is_list),
    response_fault("single events require no key", &["auth.every_path"], 401, |_, response| {
        *response = EditableResponse::json(200, json!({ "data": {} }))
    })
    .for_requests(|request| request.path.starts_with("/v1/events/"))
    .may_fail(SINGLE_REFUSALS),
    server_fault("a shortened key is accepted", &["auth.shortened"], |server| {
        server.token_matches = |given, key| given.len() > PREFIX_LEN && key.starts_with(given)
    }),
    server_fault("a revoked key still reads the events", &["auth.revoked_key"], |server| {
        server.rewrite_requests(|request| {
            let is_revoked = |authorization: &str| authorization.ends_with(fake::REVOKED_KEY);
            if request.path == "/v1/events" && request.authorization.as_deref().is_some_and(is_revoked) {
                request.authorization = Some(format!("Bearer {}", fake::LIVE_KEY));
            }
        });
    }),
    server_fault("HEAD requires no key", &["auth.head"], |server| {
        server.rewrite_requests(|request| {
            if request.method == "HEAD" && request.authorization.is_none() {
                request.authorization = Some(format!("Bearer {}", fake::TEST_KEY));
            }
        });
    }),
    response_fault("HEAD gets 404", &["answers.head"], 200, |_, response| response.status = 404)
        .for_requests(|request| request.method == "HEAD"),
    response_fault("HEAD has a different media type than GET", &["answers.head"], 200, |_, response| {
        response.set_header("content-type", "text/plain")
    })
    .for_requests(|request| request.method == "HEAD"),
    server_fault("a 401 is cached for the next request to the path", &["auth.after_refusal"], |server| {
        let mut refused_path = None;
        server.rewrite_responses(move |request, response| {
            if refused_path.take().as_ref() == Some(&request.path) && response.status == 200 {
                *response = EditableResponse::json(401, json!({ "message": "Unknown API key." }));
            } else if response.status == 401 {
                refused_path = Some(request.path.clone());
            }
        });
    }),
    response_fault(
        "invalid parameters are refused before the key is checked",
        &["auth.every_path"],
        401,
        |_, response| {
            *response =
                EditableResponse::json(422, json!({ "message": "per_page must be between 1 and 100." }))
        },
    )
    .for_requests(|request| request.query.contains_key("per_page")),
    response_fault("a body is read before the key is checked", &["auth.every_path"], 401, |_, response| {
        *response = EditableResponse::json(422, json!({ "message": "The asset field is required." }))
    })
    .for_requests(|request| request.method == "POST"),
    server_fault("the account has the mode of the previous request's key", &["account.mode"], |server| {
        let (mut requests, mut last_mode) = (0, None);
        server.rewrite_responses(move |request, response| {
            requests += 1;
            let previous_mode = std::mem::replace(&mut last_mode, request.mode);
            // The first four responses are correct: the fault appears only later in the run.
            if let (true, true, Some(mode)) = (requests > 4, request.path == "/v1/account", previous_mode)
                && response.status == 200
            {
                response.body["meta"]["mode"] = json!(mode.as_str());
            }
        });
    }),
    response_fault("a 401 in JSON is labelled text/html", &["auth.message"], 401, |_, response| {
        response.set_header("content-type", "text/html; charset=utf-8")
    }),
    response_fault("a 404 in JSON is labelled text/plain", &["errors.not_found_json"], 404, |_, response| {
        response.set_header("content-type", "text/plain")
    }),
    response_fault("a 429 in JSON is labelled text/plain", &["limits.json"], 429, |_, response| {
        response.set_header("content-type", "text/plain")
    }),
    server_fault(
        "a request without a key uses the previous key",
        &["auth.no_header", "auth.every_path"],
        |server| {
            let mut last_authorization = None;
            server.rewrite_requests(move |request| match &request.authorization {
                Some(authorization) => last_authorization = Some(authorization.clone()),
                None => request.authorization = last_authorization.clone(),
            });
        },
    )
    .may_fail(&["auth.head"]),
    response_fault(
        "a missing key gets 503 with the message of a gateway",
        &["auth.no_header", "auth.every_path"],
        401,
        |_, response| *response = EditableResponse::json(503, json!({ "message": "Unavailable." })),
    )
    .for_requests(|request| request.authorization.is_none()),
    response_fault(
        "a wrong key gets 502 with the message of a gateway",
        INVALID_TOKENS,
        401,
        |_, response| *response = EditableResponse::json(502, json!({ "message": "Bad gateway." })),
    )
    .for_requests(|request| request.authorization.is_some())
    .may_fail(&["auth.revoked_key"]),
    server_fault(
        "a cache that sends X-Cache serves a 401 to the next key",
        &["auth.after_refusal"],
        |server| {
            let mut refused_path = None;
            server.rewrite_responses(move |request, response| {
                if refused_path.take().as_ref() == Some(&request.path) && response.status == 200 {
                    *response = EditableResponse::json(401, json!({ "message": "Unknown API key." }));
                    response.set_header("x-cache", "HIT");
                } else if response.status == 401 {
                    refused_path = Some(request.path.clone());
                }
            });
        },
    ),
];

/// The statements about tokens that were never valid.
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

/// The statements about GET requests that must be refused.
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

/// [`ALL_REFUSALS`] without the statement that covers every path.
pub(crate) const SINGLE_REFUSALS: &[&str] = match ALL_REFUSALS {
    [single @ .., _every_path] => single,
    [] => &[],
};

/// The statements that the fault "a wrong key gets 502" may violate in addition to `violates`.
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
