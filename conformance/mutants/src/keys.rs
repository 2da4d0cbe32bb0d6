//! Lies about the account, about JSON, and about who may come in.

use conformance::Mode;
use serde_json::{Value, json};

use crate::mini::{self, Asked, Mini, Reply};
use crate::{Mutant, lists, warp};

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "the account does not tell its mode",
        // Without it nobody knows that a burst would be harmless.
        breaks: &["account.mode"],
        may: &[],
        spoil: |mini| account(mini, |_, reply| reply.body["meta"]["mode"] = Value::Null),
    },
    Mutant {
        name: "the account is a list",
        breaks: &["account.served", "account.mode", "account.accepted_assets"],
        may: &[],
        spoil: |mini| account(mini, |_, reply| reply.body = json!([])),
    },
    Mutant {
        name: "the accepted assets are one text",
        breaks: &["account.accepted_assets"],
        may: &[],
        spoil: |mini| account(mini, |_, reply| reply.body["meta"]["accepted_assets"] = json!("BTC,ETH")),
    },
    Mutant {
        name: "a list is HTML",
        breaks: &["answers.json"],
        may: &[],
        spoil: |mini| {
            warp(
                mini,
                200,
                |asked| asked.path == "/v1/invoices",
                |_, reply| reply.raw = Some("<html>".into()),
            );
        },
    },
    Mutant {
        name: "JSON is called text",
        breaks: &["answers.content_type"],
        may: &[],
        spoil: |mini| lists(mini, |_, reply| reply.set("content-type", "text/html")),
    },
    Mutant {
        name: "a name stands twice in an object",
        breaks: &["answers.duplicate_keys"],
        may: &[],
        spoil: |mini| {
            account(mini, |_, reply| {
                let body = reply.body.to_string();
                reply.raw = Some(body.replacen('{', "{\"meta\":{},", 1));
            });
        },
    },
    Mutant {
        name: "a request without a key is let in",
        breaks: &["auth.no_header", "auth.every_path"],
        may: &[],
        spoil: |mini| let_in(mini, |given| given.is_none()),
    },
    Mutant {
        name: "a missing key is answered 403",
        breaks: &["auth.no_header", "auth.every_path"],
        may: &[],
        spoil: |mini| {
            warp(mini, 401, |asked| asked.authorization.is_none(), |_, reply| reply.status = 403);
        },
    },
    Mutant {
        name: "one path wants no key",
        breaks: &["auth.every_path"],
        may: &[],
        spoil: |mini| {
            warp(mini, 401, |asked| asked.path == "/v1/invoices", |_, reply| reply.status = 200);
        },
    },
    Mutant {
        name: "an empty bearer is let in",
        breaks: &["auth.empty_bearer"],
        may: &[],
        spoil: |mini| let_in(mini, |given| given.is_some_and(|it| it.trim() == "Bearer")),
    },
    Mutant {
        name: "the scheme does not matter",
        breaks: &["auth.other_scheme"],
        may: &[],
        spoil: |mini| mini.scheme_matters = false,
    },
    Mutant {
        name: "every key with the right prefix is let in",
        breaks: &[
            "auth.unknown_key",
            "auth.last_character",
            "auth.letter_case",
            "auth.appended",
            "auth.other_prefix",
            "auth.revoked_key",
        ],
        may: &[],
        spoil: |mini| mini.key_fits = |given, key| given[..9] == key[..9],
    },
    Mutant {
        name: "the last character of a key is not compared",
        breaks: &["auth.last_character"],
        may: &[],
        spoil: |mini| {
            mini.key_fits =
                |given, key| given.len() == key.len() && given[..given.len() - 1] == key[..key.len() - 1];
        },
    },
    Mutant {
        name: "keys are compared without case",
        breaks: &["auth.letter_case"],
        may: &[],
        spoil: |mini| mini.key_fits = |given, key| given.eq_ignore_ascii_case(key),
    },
    Mutant {
        name: "a key is compared as far as it goes",
        breaks: &["auth.appended"],
        may: &[],
        spoil: |mini| mini.key_fits = |given, key| given.starts_with(key),
    },
    Mutant {
        name: "the prefix of a key is not compared",
        breaks: &["auth.other_prefix"],
        may: &[],
        spoil: |mini| mini.key_fits = |given, key| given.get(9..) == key.get(9..),
    },
    Mutant {
        name: "a revoked key still works",
        breaks: &["auth.revoked_key"],
        may: &[],
        spoil: |mini| mini.revoked_works = true,
    },
    Mutant {
        name: "401 has no body",
        breaks: &["auth.message"],
        may: &[],
        spoil: |mini| warp(mini, 401, |_| true, |_, reply| reply.raw = Some(String::new())),
    },
    Mutant {
        name: "401 says nothing in its JSON",
        breaks: &["auth.message"],
        may: &[],
        spoil: |mini| warp(mini, 401, |_| true, |_, reply| reply.body = json!({ "code": 17 })),
    },
    Mutant {
        name: "401 names no scheme",
        breaks: &["auth.www_authenticate"],
        may: &[],
        spoil: |mini| warp(mini, 401, |_| true, |_, reply| reply.drop_header("www-authenticate")),
    },
    Mutant {
        name: "the mode is written in capitals",
        breaks: &["account.mode"],
        may: &[],
        spoil: |mini| {
            account(mini, |_, reply| {
                let mode = reply.body["meta"]["mode"].as_str().expect("a mode").to_uppercase();
                reply.body["meta"]["mode"] = json!(mode);
            });
        },
    },
    Mutant {
        name: "the account has no meta",
        breaks: &["account.mode", "account.accepted_assets"],
        may: &[],
        spoil: |mini| {
            account(mini, |_, reply| reply.body = json!({ "data": reply.body["data"], "mode": "test" }));
        },
    },
    Mutant {
        name: "the accepted assets are an object with numbers as names",
        breaks: &["account.accepted_assets"],
        may: &[],
        spoil: |mini| {
            account(mini, |_, reply| {
                reply.body["meta"]["accepted_assets"] = json!({ "0": "BTC", "2": "ETH" })
            });
        },
    },
    Mutant {
        name: "the account of test mode has null assets",
        breaks: &["account.accepted_assets"],
        may: &[],
        spoil: |mini| {
            account(mini, |asked, reply| {
                if asked.mode == Some(Mode::Test) {
                    reply.body["meta"]["accepted_assets"] = Value::Null;
                }
            });
        },
    },
    Mutant {
        name: "the account wants another method",
        breaks: &["account.served"],
        may: &[],
        spoil: |mini| {
            account(mini, |_, reply| *reply = Reply::json(405, json!({ "message": "Use POST." })));
        },
    },
    Mutant {
        name: "guests are sent to a login page",
        breaks: ALL_REFUSALS,
        may: &[],
        spoil: |mini| {
            warp(
                mini,
                401,
                |_| true,
                |_, reply| {
                    reply.status = 302;
                    reply.set("location", "/login");
                    reply.raw = Some("<html>Redirecting to /login</html>".into());
                },
            );
        },
    },
    Mutant {
        name: "a refused key gets 200 and an error",
        breaks: ALL_REFUSALS,
        may: &[],
        spoil: |mini| {
            warp(
                mini,
                401,
                |_| true,
                |_, reply| {
                    *reply = Reply::json(200, json!({ "success": false, "error": "unauthorized" }));
                },
            );
        },
    },
    Mutant {
        name: "no key is 401, a wrong one is 403",
        breaks: &[
            "auth.empty_bearer",
            "auth.other_scheme",
            "auth.unknown_key",
            "auth.last_character",
            "auth.letter_case",
            "auth.appended",
            "auth.other_prefix",
            "auth.revoked_key",
        ],
        may: &[],
        spoil: |mini| warp(mini, 401, |asked| asked.authorization.is_some(), |_, reply| reply.status = 403),
    },
    Mutant {
        name: "a wrong key makes the server stumble",
        breaks: &["auth.unknown_key", "auth.last_character", "auth.letter_case"],
        may: &["auth.appended", "auth.other_prefix", "auth.revoked_key"],
        spoil: |mini| {
            warp(
                mini,
                401,
                |asked| asked.authorization.as_deref().is_some_and(|it| it.starts_with("Bearer svc_")),
                |_, reply| *reply = Reply::json(500, json!({ "message": "undefined is not an object" })),
            );
        },
    },
    Mutant {
        name: "only the first 24 characters of a key are compared",
        breaks: &["auth.last_character", "auth.appended"],
        may: &[],
        spoil: |mini| mini.key_fits = |given, key| given.get(..24) == key.get(..24),
    },
    Mutant {
        name: "a revoked key is answered 403",
        breaks: &["auth.revoked_key"],
        may: &[],
        spoil: |mini| {
            let revoked = |asked: &Asked| {
                asked.authorization.as_deref().is_some_and(|it| it.ends_with(mini::REVOKED_KEY))
            };
            warp(mini, 401, revoked, |_, reply| reply.status = 403);
        },
    },
    Mutant {
        name: "401 is a web page",
        breaks: &["auth.message"],
        may: &[],
        spoil: |mini| {
            warp(
                mini,
                401,
                |_| true,
                |_, reply| {
                    reply.set("content-type", "text/html");
                    reply.raw = Some("<!doctype html><title>401 Unauthorized</title>".into());
                },
            );
        },
    },
    Mutant {
        name: "401 of a list is plain text",
        breaks: &["auth.message"],
        may: &[],
        spoil: |mini| warp(mini, 401, Asked::is_list, |_, reply| reply.raw = Some("Unauthorized".into())),
    },
    Mutant {
        name: "single events want no key",
        breaks: &["auth.every_path"],
        may: &[],
        spoil: |mini| {
            warp(
                mini,
                401,
                |asked| asked.path.starts_with("/v1/events/"),
                |_, reply| *reply = Reply::json(200, json!({ "data": {} })),
            );
        },
    },
    Mutant {
        name: "who was let in lets the next one in",
        breaks: &["auth.no_header", "auth.every_path"],
        may: &[],
        spoil: |mini| {
            let mut last = None;
            mini.warp_request(move |asked| match &asked.authorization {
                Some(given) => last = Some(given.clone()),
                None => asked.authorization = last.clone(),
            });
        },
    },
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
    "auth.other_prefix",
    "auth.revoked_key",
    "auth.every_path",
];

fn account(mini: &mut Mini, change: fn(&Asked, &mut Reply)) {
    warp(mini, 200, |asked| asked.path == "/v1/account", change);
}

/// Lets a request pass as if it came with the test key.
fn let_in(mini: &mut Mini, fits: fn(Option<&str>) -> bool) {
    mini.warp_request(move |asked| {
        if fits(asked.authorization.as_deref()) {
            asked.authorization = Some(format!("Bearer {}", mini::TEST_KEY));
        }
    });
}
