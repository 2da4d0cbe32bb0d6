//! Lies about the account, about JSON, and about who may come in.

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
