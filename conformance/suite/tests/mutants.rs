//! Lies that the suite must notice: each breaks one rule of the mini service or warps its answers on
//! the wire, and must break exactly the statements it names.

mod mini;

use std::collections::BTreeSet;
use std::time::Duration;

use conformance::{Mode, catalogue, report};
use mini::{Asked, Limiter, Mini, Reply, named, run};
use serde_json::{Value, json};

struct Mutant {
    name: &'static str,
    breaks: &'static [&'static str],
    spoil: fn(&mut Mini),
}

/// Warps every answer of a status to a path that fits.
fn warp(mini: &mut Mini, status: u16, fits: fn(&Asked) -> bool, change: fn(&Asked, &mut Reply)) {
    mini.warp(move |asked, reply| {
        if reply.status == status && fits(asked) {
            change(asked, reply);
        }
    });
}

fn lists(mini: &mut Mini, change: fn(&Asked, &mut Reply)) {
    warp(mini, 200, Asked::is_list, change);
}

fn events(mini: &mut Mini, change: fn(&mut Value)) {
    mini.warp(move |asked, reply| {
        if reply.status == 200 && asked.path == "/v1/events" {
            reply.body["data"].as_array_mut().into_iter().flatten().for_each(change);
        } else if reply.status == 200 && asked.path.starts_with("/v1/events/") {
            change(&mut reply.body["data"]);
        }
    });
}

fn account(mini: &mut Mini, change: fn(&Asked, &mut Reply)) {
    warp(mini, 200, |asked| asked.path == "/v1/account", change);
}

/// Takes a parameter out of every link.
fn forget(reply: &mut Reply, name: &str) {
    for rel in ["first", "last", "prev", "next"] {
        let Some(link) = reply.body["links"][rel].as_str() else { continue };
        let (path, query) = link.split_once('?').expect("a link has a query");
        let kept: Vec<_> = query.split('&').filter(|pair| !pair.starts_with(&format!("{name}="))).collect();
        reply.body["links"][rel] = json!(format!("{path}?{}", kept.join("&")));
    }
}

/// An event of the other mode, by the make of its id.
fn foreign(asked: &Asked) -> bool {
    let other = if asked.mode == Some(Mode::Live) { "-7ab2-" } else { "-7ab1-" };
    asked.path.contains(other) && known(asked)
}

fn known(asked: &Asked) -> bool {
    asked
        .path
        .rsplit('-')
        .next()
        .is_some_and(|node| u64::from_str_radix(node, 16).is_ok_and(|number| number % 0x1234_5678_9a == 0))
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "the account does not tell its mode",
        // Without it nobody knows that a burst would be harmless.
        breaks: &["account.mode"],
        spoil: |mini| account(mini, |_, reply| reply.body["meta"]["mode"] = Value::Null),
    },
    Mutant {
        name: "the account is a list",
        breaks: &["account.served", "account.mode", "account.accepted_assets"],
        spoil: |mini| account(mini, |_, reply| reply.body = json!([])),
    },
    Mutant {
        name: "the accepted assets are one text",
        breaks: &["account.accepted_assets"],
        spoil: |mini| account(mini, |_, reply| reply.body["meta"]["accepted_assets"] = json!("BTC,ETH")),
    },
    Mutant {
        name: "a list is HTML",
        breaks: &["answers.json"],
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
        spoil: |mini| lists(mini, |_, reply| reply.set("content-type", "text/html")),
    },
    Mutant {
        name: "a name stands twice in an object",
        breaks: &["answers.duplicate_keys"],
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
        spoil: |mini| let_in(mini, |given| given.is_none()),
    },
    Mutant {
        name: "a missing key is answered 403",
        breaks: &["auth.no_header", "auth.every_path"],
        spoil: |mini| {
            warp(mini, 401, |asked| asked.authorization.is_none(), |_, reply| reply.status = 403);
        },
    },
    Mutant {
        name: "one path wants no key",
        breaks: &["auth.every_path"],
        spoil: |mini| {
            warp(mini, 401, |asked| asked.path == "/v1/invoices", |_, reply| reply.status = 200);
        },
    },
    Mutant {
        name: "an empty bearer is let in",
        breaks: &["auth.empty_bearer"],
        spoil: |mini| let_in(mini, |given| given.is_some_and(|it| it.trim() == "Bearer")),
    },
    Mutant {
        name: "the scheme does not matter",
        breaks: &["auth.other_scheme"],
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
        spoil: |mini| mini.key_fits = |given, key| given[..9] == key[..9],
    },
    Mutant {
        name: "the last character of a key is not compared",
        breaks: &["auth.last_character"],
        spoil: |mini| {
            mini.key_fits =
                |given, key| given.len() == key.len() && given[..given.len() - 1] == key[..key.len() - 1];
        },
    },
    Mutant {
        name: "keys are compared without case",
        breaks: &["auth.letter_case"],
        spoil: |mini| mini.key_fits = |given, key| given.eq_ignore_ascii_case(key),
    },
    Mutant {
        name: "a key is compared as far as it goes",
        breaks: &["auth.appended"],
        spoil: |mini| mini.key_fits = |given, key| given.starts_with(key),
    },
    Mutant {
        name: "the prefix of a key is not compared",
        breaks: &["auth.other_prefix"],
        spoil: |mini| mini.key_fits = |given, key| given.get(9..) == key.get(9..),
    },
    Mutant {
        name: "a revoked key still works",
        breaks: &["auth.revoked_key"],
        spoil: |mini| mini.revoked_works = true,
    },
    Mutant {
        name: "401 has no body",
        breaks: &["auth.message"],
        spoil: |mini| warp(mini, 401, |_| true, |_, reply| reply.raw = Some(String::new())),
    },
    Mutant {
        name: "401 says nothing in its JSON",
        breaks: &["auth.message"],
        spoil: |mini| warp(mini, 401, |_| true, |_, reply| reply.body = json!({ "code": 17 })),
    },
    Mutant {
        name: "401 names no scheme",
        breaks: &["auth.www_authenticate"],
        spoil: |mini| warp(mini, 401, |_| true, |_, reply| reply.drop_header("www-authenticate")),
    },
    Mutant {
        name: "an unknown id is answered 400",
        breaks: &["errors.not_found", "isolation.not_found", "isolation.second_account"],
        spoil: |mini| warp(mini, 404, |_| true, |_, reply| reply.status = 400),
    },
    Mutant {
        name: "404 is a page",
        breaks: &["errors.not_found_json"],
        spoil: |mini| warp(mini, 404, |_| true, |_, reply| reply.raw = Some("<h1>404</h1>".into())),
    },
    Mutant {
        name: "an event of the other mode is answered 403",
        breaks: &["isolation.not_found"],
        spoil: |mini| warp(mini, 404, foreign, |_, reply| reply.status = 403),
    },
    Mutant {
        name: "an event of the other mode is answered",
        breaks: &["isolation.not_found"],
        spoil: |mini| {
            warp(mini, 404, foreign, |_, reply| {
                *reply = Reply::json(200, json!({ "data": { "leak": true } }))
            });
        },
    },
    Mutant {
        name: "the 404 of the other mode says why",
        breaks: &["isolation.indistinguishable"],
        spoil: |mini| {
            warp(mini, 404, foreign, |_, reply| reply.body["message"] = json!("Wrong mode."));
        },
    },
    Mutant {
        name: "the 404 of the other mode has a header more",
        breaks: &["isolation.indistinguishable"],
        spoil: |mini| warp(mini, 404, foreign, |_, reply| reply.set("x-mode", "other")),
    },
    Mutant {
        name: "the 404 of the other mode has other spaces",
        breaks: &["isolation.indistinguishable"],
        spoil: |mini| {
            warp(mini, 404, foreign, |_, reply| reply.raw = Some("{ \"message\": \"Not found.\" }".into()));
        },
    },
    Mutant {
        name: "an event of the other account is answered",
        breaks: &["isolation.second_account"],
        spoil: |mini| {
            let of_second = |asked: &Asked| asked.path.contains("-7ab3-");
            warp(mini, 404, of_second, |_, reply| *reply = Reply::json(200, json!({ "data": {} })));
        },
    },
    Mutant {
        name: "an event is listed in both modes",
        breaks: &["isolation.lists"],
        spoil: |mini| *mini.live.events.last_mut().expect("an event") = mini.test.events[27].clone(),
    },
    Mutant {
        name: "the charge filter sees the other mode",
        breaks: &["isolation.filter_charge"],
        spoil: |mini| {
            let other = |asked: &Asked| asked.query.get("charge").is_some_and(|it| it.ends_with("abcdef07"));
            warp(mini, 200, other, |_, reply| {
                if empty(reply) {
                    reply.body["meta"]["total"] = json!(2)
                }
            });
        },
    },
    Mutant {
        name: "the invoice filter tells the other mode by its status",
        breaks: &["isolation.filter_invoice"],
        spoil: |mini| {
            let other = |asked: &Asked| asked.query.get("invoice").is_some_and(|it| it.ends_with("mnopqr03"));
            warp(mini, 200, other, |_, reply| {
                if empty(reply) {
                    reply.status = 403
                }
            });
        },
    },
    Mutant {
        name: "the payment link filter shows a row of the other mode",
        breaks: &["isolation.filter_payment_link"],
        spoil: |mini| {
            let other =
                |asked: &Asked| asked.query.get("payment_link").is_some_and(|it| it.ends_with("ghijkl01"));
            warp(mini, 200, other, |_, reply| {
                if empty(reply) {
                    reply.body["data"] = json!([{}])
                }
            });
        },
    },
    Mutant { name: "no limit", breaks: &["limits.refused"], spoil: |mini| mini.limiter = Limiter::Off },
    Mutant { name: "a limit of 100", breaks: &["limits.served"], spoil: |mini| mini.limit = 100 },
    Mutant { name: "a limit of 119", breaks: &["limits.served"], spoil: |mini| mini.limit = 119 },
    Mutant { name: "a limit of 121", breaks: &["limits.refused"], spoil: |mini| mini.limit = 121 },
    Mutant {
        name: "a limit of 200, while time passes",
        breaks: &["limits.refused"],
        spoil: |mini| {
            mini.limit = 200;
            mini.tick = Duration::from_millis(10);
        },
    },
    Mutant {
        name: "the limit belongs to the account",
        breaks: &["limits.per_key"],
        spoil: |mini| mini.counted = |_| "the account".into(),
    },
    Mutant {
        name: "each path has a limit of its own",
        breaks: &["limits.refused"],
        spoil: |mini| mini.counted = |asked| format!("{:?} {}", asked.authorization, asked.path),
    },
    Mutant {
        name: "the account is exempt from the limit",
        // The wait is tried on that path too, which then proves nothing.
        breaks: &["limits.refused", "limits.every_path"],
        spoil: |mini| mini.exempt = Some("/v1/account"),
    },
    Mutant {
        name: "the charges are exempt from the limit",
        breaks: &["limits.refused", "limits.every_path"],
        spoil: |mini| mini.exempt = Some("/v1/charges"),
    },
    Mutant {
        name: "429 forgets Retry-After",
        breaks: &["limits.retry_after"],
        spoil: |mini| warp(mini, 429, |_| true, |_, reply| reply.drop_header("retry-after")),
    },
    Mutant {
        name: "Retry-After is in words",
        breaks: &["limits.retry_after"],
        spoil: |mini| warp(mini, 429, |_| true, |_, reply| reply.set("retry-after", "a minute")),
    },
    Mutant {
        name: "Retry-After is a fraction",
        breaks: &["limits.retry_after"],
        spoil: |mini| warp(mini, 429, |_| true, |_, reply| reply.set("retry-after", "59.5")),
    },
    Mutant {
        name: "Retry-After is too short",
        breaks: &["limits.retry_after_held"],
        spoil: |mini| warp(mini, 429, |_| true, |_, reply| reply.set("retry-after", "5")),
    },
    Mutant {
        name: "429 is plain text",
        breaks: &["limits.json"],
        spoil: |mini| warp(mini, 429, |_| true, |_, reply| reply.raw = Some("slow down".into())),
    },
    Mutant {
        name: "there are no invoices to list",
        breaks: &["lists.served"],
        spoil: |mini| {
            warp(
                mini,
                200,
                |asked| asked.path == "/v1/invoices",
                |_, reply| {
                    *reply = Reply::json(404, json!({ "message": "Not found." }));
                },
            );
        },
    },
    Mutant {
        name: "a list is a bare array",
        breaks: &["paging.envelope"],
        spoil: |mini| {
            warp(
                mini,
                200,
                |asked| asked.path == "/v1/charges",
                |_, reply| reply.body = reply.body["data"].clone(),
            );
        },
    },
    Mutant {
        name: "a list has no links",
        breaks: &["paging.envelope"],
        spoil: |mini| {
            warp(
                mini,
                200,
                |asked| asked.path == "/v1/charges",
                |_, reply| {
                    reply.body.as_object_mut().expect("an object").remove("links");
                },
            );
        },
    },
    Mutant {
        name: "numbers are texts",
        breaks: &["paging.meta"],
        spoil: |mini| {
            warp(
                mini,
                200,
                |asked| asked.path == "/v1/charges",
                |_, reply| {
                    reply.body["meta"]["total"] = json!(reply.body["meta"]["total"].to_string());
                },
            );
        },
    },
    Mutant {
        name: "a page has 20 records by default",
        breaks: &["paging.default_size"],
        spoil: |mini| {
            mini.warp_request(|asked| {
                if asked.is_list() && !asked.query.contains_key("per_page") {
                    asked.query.insert("per_page".into(), "20".into());
                }
            });
        },
    },
    Mutant {
        name: "per_page is ignored",
        breaks: &["paging.per_page"],
        spoil: |mini| mini.warp_request(|asked| drop(asked.query.remove("per_page"))),
    },
    Mutant {
        name: "per_page ends at 50",
        breaks: &["paging.per_page"],
        spoil: |mini| {
            mini.warp_request(|asked| {
                if asked.number("per_page").is_some_and(|size| (51..=100).contains(&size)) {
                    asked.query.insert("per_page".into(), "50".into());
                }
            });
        },
    },
    Mutant {
        name: "pages count from 0 in meta",
        // Behind a link only the page itself says which it is, and then prev and length do not fit.
        breaks: &["paging.current_page", "paging.ends", "paging.length", "paging.links_lead"],
        spoil: |mini| {
            lists(mini, |_, reply| {
                let page = reply.body["meta"]["current_page"].as_u64().expect("a number");
                reply.body["meta"]["current_page"] = json!(page - 1);
            });
        },
    },
    Mutant {
        name: "a page is one record short",
        breaks: &["paging.length", "paging.joined"],
        spoil: |mini| {
            lists(mini, |asked, reply| {
                if asked.number("page") == Some(1) {
                    reply.body["data"].as_array_mut().expect("rows").pop();
                }
            });
        },
    },
    Mutant {
        name: "last_page is one too many when it divides evenly",
        breaks: &["paging.last_page"],
        spoil: |mini| {
            lists(mini, |_, reply| {
                let number = |name: &str| reply.body["meta"][name].as_u64().expect("a number");
                let wrong = number("total") / number("per_page") + 1;
                reply.body["meta"]["last_page"] = json!(wrong);
            });
        },
    },
    Mutant {
        name: "last_page is rounded down",
        breaks: &["paging.last_page"],
        spoil: |mini| {
            lists(mini, |_, reply| {
                let number = |name: &str| reply.body["meta"][name].as_u64().expect("a number");
                let wrong = number("total") / number("per_page");
                reply.body["meta"]["last_page"] = json!(wrong);
            });
        },
    },
    Mutant {
        name: "the second page begins one record late",
        breaks: &["paging.joined"],
        spoil: |mini| shift_page(mini, 2, 1),
    },
    Mutant {
        name: "the second page repeats the end of the first",
        breaks: &["paging.joined"],
        spoil: |mini| shift_page(mini, 2, -1),
    },
    Mutant {
        name: "the oldest come first",
        breaks: &["paging.newest_first", "paging.newest_first_others"],
        spoil: |mini| {
            for book in [&mut mini.live, &mut mini.test] {
                for list in [&mut book.charges, &mut book.invoices, &mut book.events] {
                    list.reverse();
                }
            }
        },
    },
    Mutant {
        name: "two events have changed places",
        breaks: &["paging.newest_first"],
        spoil: |mini| mini.test.events.swap(3, 4),
    },
    Mutant {
        name: "a link is missing",
        breaks: &["paging.links"],
        spoil: |mini| {
            lists(mini, |_, reply| drop(reply.body["links"].as_object_mut().expect("links").remove("first")));
        },
    },
    Mutant {
        name: "prev is not null on the first page",
        breaks: &["paging.ends"],
        spoil: |mini| {
            lists(mini, |_, reply| {
                if reply.body["links"]["prev"].is_null() {
                    reply.body["links"]["prev"] = reply.body["links"]["first"].clone();
                }
            });
        },
    },
    Mutant {
        name: "next is never null",
        breaks: &["paging.ends"],
        spoil: |mini| {
            lists(mini, |_, reply| {
                if reply.body["links"]["next"].is_null() {
                    reply.body["links"]["next"] = reply.body["links"]["last"].clone();
                }
            });
        },
    },
    Mutant {
        name: "next is always null",
        breaks: &["paging.ends"],
        spoil: |mini| lists(mini, |_, reply| reply.body["links"]["next"] = Value::Null),
    },
    Mutant {
        name: "next leads to the same page",
        breaks: &["paging.links_lead"],
        spoil: |mini| {
            lists(mini, |asked, reply| {
                if let Some(next) = reply.body["links"]["next"].as_str() {
                    let page = asked.number("page").unwrap_or(1);
                    let wrong = next.replace(&format!("&page={}", page + 1), &format!("&page={page}"));
                    reply.body["links"]["next"] = json!(wrong);
                }
            });
        },
    },
    Mutant {
        name: "last leads to the first page",
        breaks: &["paging.links_lead"],
        spoil: |mini| {
            lists(mini, |_, reply| reply.body["links"]["last"] = reply.body["links"]["first"].clone())
        },
    },
    Mutant {
        name: "links lead to another path",
        breaks: &["paging.links_lead"],
        spoil: |mini| lists(mini, |_, reply| reply.body["links"]["last"] = json!("/dashboard")),
    },
    Mutant {
        name: "links forget per_page",
        breaks: &["paging.links_keep_size"],
        spoil: |mini| lists(mini, |_, reply| forget(reply, "per_page")),
    },
    Mutant {
        name: "links forget the filter",
        breaks: &["paging.links_keep_filters"],
        spoil: |mini| lists(mini, |_, reply| forget(reply, "type")),
    },
    Mutant {
        name: "links lead to another host",
        breaks: &["paging.links_origin"],
        spoil: |mini| {
            lists(mini, |asked, reply| {
                let first = reply.body["links"]["first"].as_str().expect("a link");
                let query = first.split_once('?').expect("a query").1;
                reply.body["links"]["first"] =
                    json!(format!("http://internal.example:8080{}?{query}", asked.path));
            });
        },
    },
    Mutant {
        name: "the type filter is ignored",
        breaks: &["filters.type", "filters.total", "paging.links_keep_filters"],
        spoil: |mini| mini.warp_request(|asked| drop(asked.query.remove("type"))),
    },
    Mutant {
        name: "the charge filter is ignored",
        breaks: &["filters.charge", "filters.total"],
        spoil: |mini| mini.warp_request(|asked| drop(asked.query.remove("charge"))),
    },
    Mutant {
        name: "the invoice filter lets nothing through",
        breaks: &["filters.invoice", "filters.total"],
        spoil: |mini| {
            mini.warp_request(|asked| {
                asked.query.entry("invoice".into()).and_modify(|it| it.push('x'));
            });
        },
    },
    Mutant {
        name: "total ignores the filter",
        breaks: &["filters.total"],
        spoil: |mini| {
            lists(mini, |asked, reply| {
                if asked.query.contains_key("type") {
                    reply.body["meta"]["total"] = json!(28);
                }
            });
        },
    },
    Mutant {
        name: "the status filter is ignored",
        breaks: &["filters.status"],
        spoil: |mini| mini.warp_request(|asked| drop(asked.query.remove("status"))),
    },
    Mutant {
        name: "the payment link filter finds others",
        breaks: &["filters.payment_link"],
        spoil: |mini| {
            lists(mini, |asked, reply| {
                if asked.query.contains_key("payment_link") && !empty(reply) {
                    reply.body["data"][0]["payment_link"] = json!("another");
                }
            });
        },
    },
    Mutant {
        name: "ids are numbers",
        breaks: &["events.id"],
        spoil: |mini| {
            warp(
                mini,
                200,
                |asked| asked.query.contains_key("invoice"),
                |_, reply| {
                    reply.body["data"]
                        .as_array_mut()
                        .into_iter()
                        .flatten()
                        .for_each(|row| row["id"] = json!(7));
                },
            );
        },
    },
    Mutant {
        name: "a single event is another",
        breaks: &["events.single"],
        spoil: |mini| {
            warp(
                mini,
                200,
                |asked| asked.path.starts_with("/v1/events/"),
                |_, reply| {
                    reply.body["data"]["id"] = json!("0190a5c4-7f3e-7abc-8def-aaaaaaaaaaaa");
                },
            );
        },
    },
    Mutant {
        name: "an event has a type of its own",
        breaks: &["events.type"],
        spoil: |mini| mini.test.events[2]["type"] = json!("invoice.confirmed"),
    },
    Mutant {
        name: "empty details are an array",
        breaks: &["events.details"],
        spoil: |mini| events(mini, |event| event["details"] = json!([])),
    },
    Mutant {
        name: "a charge event also carries an invoice",
        breaks: &["events.subject"],
        spoil: |mini| {
            events(mini, |event| {
                if event["invoice"].is_null() {
                    event["invoice"] = json!({})
                }
            })
        },
    },
    Mutant {
        name: "an invoice event has no charge member",
        breaks: &["events.subject"],
        spoil: |mini| {
            events(mini, |event| {
                if event["charge"].is_null() {
                    event.as_object_mut().expect("an event").remove("charge");
                }
            });
        },
    },
    Mutant {
        name: "times are local",
        breaks: &["events.created_at"],
        spoil: |mini| {
            events(mini, |event| {
                let time = event["created_at"].as_str().expect("a time").replace('Z', "+02:00");
                event["created_at"] = json!(time);
            });
        },
    },
];

fn empty(reply: &Reply) -> bool {
    reply.body["data"].as_array().is_some_and(Vec::is_empty)
}

/// Lets a request pass as if it came with the test key.
fn let_in(mini: &mut Mini, fits: fn(Option<&str>) -> bool) {
    mini.warp_request(move |asked| {
        if fits(asked.authorization.as_deref()) {
            asked.authorization = Some(format!("Bearer {}", mini::TEST_KEY));
        }
    });
}

/// Serves a page from rows that begin some records later or earlier than they should.
fn shift_page(mini: &mut Mini, page: u64, by: i64) {
    let books = [mini.live.clone(), mini.test.clone()];
    mini.warp(move |asked, reply| {
        if reply.status != 200 || !asked.is_list() || asked.number("page") != Some(page) {
            return;
        }
        let book = &books[usize::from(asked.mode == Some(Mode::Test))];
        let all = match asked.path.as_str() {
            "/v1/charges" => &book.charges,
            "/v1/events" if !asked.query.contains_key("type") => &book.events,
            _ => return,
        };
        let size = asked.number("per_page").expect("a size");
        let from = (page - 1) * size;
        let from = from.checked_add_signed(by).expect("a place in the list") as usize;
        let len = reply.body["data"].as_array().expect("rows").len();
        let rows: Vec<_> = all.iter().skip(from).take(len).cloned().collect();
        reply.body["data"] = json!(rows);
    });
}

#[test]
fn each_mutant_breaks_what_it_names_and_nothing_else() {
    let mut wrong = Vec::new();
    for mutant in MUTANTS {
        let mut mini = Mini::default();
        (mutant.spoil)(&mut mini);
        let outcome = run(mini);
        let broken = named(&outcome, &["fail", "warn"]);
        let mut expected: Vec<_> = mutant.breaks.iter().map(|id| (*id).to_owned()).collect();
        expected.sort();
        if broken != expected {
            wrong.push(format!(
                "{}: expected {expected:?}, broken {broken:?}, {:?}",
                mutant.name, outcome.stop
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_statement_that_can_be_broken_has_a_mutant() {
    let named: BTreeSet<_> = MUTANTS.iter().flat_map(|mutant| mutant.breaks.iter().copied()).collect();
    for (id, requirement) in catalogue() {
        let open = requirement.level.word() == "open";
        assert!(open || named.contains(id.as_str()), "no mutant breaks {id}");
    }
}

#[test]
fn a_failure_ends_with_what_to_type() {
    let mut mini = Mini::default();
    warp(&mut mini, 404, foreign, |_, reply| reply.status = 403);
    let outcome = run(mini);
    let text = report::text(&outcome, report::Style::Plain);
    let base = &outcome.recording.base;
    let asked =
        format!("asked     curl -i -H \"Authorization: Bearer $CHARGEPROOF_LIVE_KEY\" '{base}v1/events/");
    assert!(text.contains(&asked), "{text}");
    assert!(text.contains("--only isolation.not_found"), "{text}");
    assert!(text.ends_with("exit 1\n"), "{text}");
}
