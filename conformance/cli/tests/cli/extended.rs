//! The extended profile: the built-in server satisfies it, and each of its checks detects a fault.
//!
//! Faults are injected into the recording of one run, which is judged again.

use std::fs;

use conformance::{Answer, Ending, Exchange, Outcome, Purpose, Verdict, extended_statements};
use serde_json::{Value, json};

use crate::support::run;

/// A fault: a description, the statement that must detect it, and the change to a response.
struct Fault {
    name: &'static str,
    breaks: &'static str,
    spoil: fn(&Exchange, &mut Answer),
}

fn change_body(answer: &mut Answer, change: impl Fn(&mut Value)) {
    if let Ok(mut body) = serde_json::from_str(&answer.body) {
        change(&mut body);
        answer.body = body.to_string().into();
    }
}

/// Changes every row of lists at this path, and every nested member with this name.
fn change_objects(
    exchange: &Exchange,
    answer: &mut Answer,
    path: &str,
    member: &str,
    change: impl Fn(&mut Value),
) {
    if answer.status != 200 {
        return;
    }
    let listed = exchange.target.split('?').next() == Some(path);
    change_body(answer, |body| {
        for row in body["data"].as_array_mut().into_iter().flatten() {
            if listed {
                change(row);
            }
            if row.get(member).is_some_and(Value::is_object) {
                change(&mut row[member]);
            }
        }
    });
}

fn change_charges(exchange: &Exchange, answer: &mut Answer, change: impl Fn(&mut Value)) {
    change_objects(exchange, answer, "/v1/charges", "charge", change);
}

fn change_invoices(exchange: &Exchange, answer: &mut Answer, change: impl Fn(&mut Value)) {
    change_objects(exchange, answer, "/v1/invoices", "invoice", change);
}

fn change_events(exchange: &Exchange, answer: &mut Answer, change: impl Fn(&mut Value)) {
    change_objects(exchange, answer, "/v1/events", "no member", change);
}

fn change_account(exchange: &Exchange, answer: &mut Answer, change: impl Fn(&mut Value)) {
    if exchange.purpose == Purpose::Account && answer.status == 200 {
        change_body(answer, change);
    }
}

fn set_header(answer: &mut Answer, name: &str, value: Option<&str>) {
    answer.headers.retain(|(header, _)| header != name);
    answer.headers.extend(value.map(|value| (name.to_owned(), value.to_owned())));
}

fn is_choice(exchange: &Exchange, wanted: &str) -> bool {
    matches!(&exchange.purpose, Purpose::Choice { what } if what == wanted)
}

fn refuse(answer: &mut Answer, status: u16) {
    answer.status = status;
    answer.body = json!({ "message": "No." }).to_string().into();
}

const FAULTS: &[Fault] = &[
    Fault {
        name: "a single event has no envelope",
        breaks: "extended.envelope",
        spoil: |exchange, answer| {
            if matches!(exchange.purpose, Purpose::Event { .. }) && answer.status == 200 {
                change_body(answer, |body| *body = body["data"].take());
            }
        },
    },
    Fault {
        name: "charges do not say what they are",
        breaks: "extended.objects",
        spoil: |exchange, answer| change_charges(exchange, answer, |object| object["object"] = Value::Null),
    },
    Fault {
        name: "the account has no colour",
        breaks: "extended.account_fields",
        spoil: |exchange, answer| {
            change_account(exchange, answer, |object| {
                drop(object["data"].as_object_mut().unwrap().remove("brand_color"))
            });
        },
    },
    Fault {
        name: "charges have no deposit address",
        breaks: "extended.charge_fields",
        spoil: |exchange, answer| {
            change_charges(exchange, answer, |object| {
                drop(object.as_object_mut().unwrap().remove("deposit_address"))
            });
        },
    },
    Fault {
        name: "invoices have no memo",
        breaks: "extended.invoice_fields",
        spoil: |exchange, answer| {
            change_invoices(exchange, answer, |object| drop(object.as_object_mut().unwrap().remove("memo")));
        },
    },
    Fault {
        name: "a paid charge is called complete",
        breaks: "extended.states",
        spoil: |exchange, answer| {
            change_charges(exchange, answer, |charge| {
                if charge["status"] == "paid" {
                    charge["status"] = json!("complete");
                }
            });
        },
    },
    Fault {
        name: "a coin is called bitcoin",
        breaks: "extended.assets",
        spoil: |exchange, answer| {
            change_account(exchange, answer, |object| object["meta"]["accepted_assets"][0] = json!("bitcoin"))
        },
    },
    Fault {
        name: "details of a payment do not name its transaction",
        breaks: "extended.details",
        spoil: |exchange, answer| {
            change_events(exchange, answer, |object| {
                drop(object["details"].as_object_mut().unwrap().remove("txid"))
            });
        },
    },
    Fault {
        name: "ids of charges are not their codes",
        breaks: "extended.codes",
        spoil: |exchange, answer| {
            if !matches!(exchange.purpose, Purpose::Choice { .. }) {
                change_charges(exchange, answer, |object| object["id"] = json!("ch_0001"));
            }
        },
    },
    Fault {
        name: "invoices are numbered by year",
        breaks: "extended.invoice_numbers",
        spoil: |exchange, answer| {
            change_invoices(exchange, answer, |object| object["number"] = json!("2026/17"))
        },
    },
    Fault {
        name: "event ids are random",
        breaks: "extended.event_ids",
        spoil: |exchange, answer| {
            change_events(exchange, answer, |event| {
                let id = event["id"].as_str().unwrap();
                event["id"] = json!(format!("{}4{}", &id[..14], &id[15..]));
            });
        },
    },
    Fault {
        name: "event ids do not rise",
        breaks: "extended.event_ids",
        spoil: |exchange, answer| {
            if exchange.target.starts_with("/v1/events?") && answer.status == 200 {
                change_body(answer, |body| {
                    let rows = body["data"].as_array_mut().unwrap();
                    if rows.len() > 1 {
                        let first = rows[0]["id"].clone();
                        rows[1]["id"] = first;
                    }
                });
            }
        },
    },
    Fault {
        name: "coin amounts are filled up with zeros",
        breaks: "extended.amounts",
        spoil: |exchange, answer| {
            change_charges(exchange, answer, |object| object["asset_amount"] = json!("0.500000000000000000"))
        },
    },
    Fault {
        name: "fiat amounts have no cents",
        breaks: "extended.amounts",
        spoil: |exchange, answer| change_invoices(exchange, answer, |object| object["amount"] = json!("99")),
    },
    Fault {
        name: "times are in whole seconds",
        breaks: "extended.times",
        spoil: |exchange, answer| {
            change_charges(exchange, answer, |object| object["created_at"] = json!("2026-01-05T09:00:00Z"))
        },
    },
    Fault {
        name: "meta lacks from and to",
        breaks: "extended.meta",
        spoil: |exchange, answer| {
            if matches!(exchange.purpose, Purpose::Page(_)) {
                change_body(answer, |body| {
                    drop(body["meta"].as_object_mut().map(|meta| meta.remove("from")))
                });
            }
        },
    },
    Fault {
        name: "links are relative",
        breaks: "extended.links",
        spoil: |_, answer| {
            change_body(answer, |body| {
                if let Some(link) = body["links"]["first"].as_str() {
                    body["links"]["first"] = json!(link.splitn(4, '/').nth(3).map(|path| format!("/{path}")));
                }
            });
        },
    },
    Fault {
        name: "links lose the filter",
        breaks: "extended.links",
        spoil: |exchange, answer| {
            if exchange.target.contains("invoice=") {
                change_body(answer, |body| {
                    if let Some(link) = body["links"]["last"].as_str() {
                        body["links"]["last"] = json!(link.replace("invoice=", "of="));
                    }
                });
            }
        },
    },
    Fault {
        name: "invoices cannot be read one by one",
        breaks: "extended.single_objects",
        spoil: |exchange, answer| {
            if is_choice(exchange, "invoice") {
                refuse(answer, 404);
            }
        },
    },
    Fault {
        name: "a refusal is called an error",
        breaks: "extended.error_body",
        spoil: |_, answer| {
            if answer.status == 404 {
                answer.body = json!({ "error": "not found" }).to_string().into();
            }
        },
    },
    Fault {
        name: "errors are one text",
        breaks: "extended.error_body",
        spoil: |_, answer| {
            if answer.status == 422 {
                change_body(answer, |body| {
                    for errors in
                        body["errors"].as_object_mut().into_iter().flat_map(|fields| fields.values_mut())
                    {
                        *errors = json!("wrong");
                    }
                });
            }
        },
    },
    Fault {
        name: "the challenge has a realm",
        breaks: "extended.challenge",
        spoil: |_, answer| {
            if answer.status == 401 {
                set_header(answer, "www-authenticate", Some("Bearer realm=\"api\""));
            }
        },
    },
    Fault {
        name: "page 0 is the first",
        breaks: "extended.page_values",
        spoil: |exchange, answer| {
            if is_choice(exchange, "page=0") {
                (answer.status, answer.body) = (200, "{}".into());
            }
        },
    },
    Fault {
        name: "per_page above 100 is 100",
        breaks: "extended.page_values",
        spoil: |exchange, answer| {
            if is_choice(exchange, "per_page=101") {
                (answer.status, answer.body) = (200, "{}".into());
            }
        },
    },
    Fault {
        name: "an unknown status selects nothing",
        breaks: "extended.filter_values",
        spoil: |exchange, answer| {
            if is_choice(exchange, "status=") {
                (answer.status, answer.body) = (200, json!({ "data": [] }).to_string().into());
            }
        },
    },
    Fault {
        name: "an unknown anchor is forgotten",
        breaks: "extended.anchors",
        spoil: |exchange, answer| {
            if is_choice(exchange, "anchor=") {
                (answer.status, answer.body) = (200, json!({ "data": [] }).to_string().into());
            }
        },
    },
    Fault {
        name: "behind the last page is nothing",
        breaks: "extended.past_the_end",
        spoil: |exchange, answer| {
            if is_choice(exchange, "far") {
                refuse(answer, 404);
            }
        },
    },
    Fault {
        name: "a filter with an unknown value is answered 404",
        breaks: "extended.foreign_filters",
        spoil: |exchange, answer| {
            if matches!(exchange.purpose, Purpose::Filter { .. }) {
                refuse(answer, 404);
            }
        },
    },
    Fault {
        name: "the wrong method is answered 405 without Allow",
        breaks: "extended.method",
        spoil: |_, answer| set_header(answer, "allow", None),
    },
    Fault {
        name: "the wrong method is not found",
        breaks: "extended.method",
        spoil: |exchange, answer| {
            if is_choice(exchange, "method") {
                refuse(answer, 404);
            }
        },
    },
    Fault {
        name: "an unknown path is a bad request",
        breaks: "extended.unknown_path",
        spoil: |exchange, answer| {
            if is_choice(exchange, "path") {
                refuse(answer, 400);
            }
        },
    },
    Fault {
        name: "no row states what remains",
        breaks: "extended.rate_headers",
        spoil: |_, answer| set_header(answer, "x-ratelimit-remaining", None),
    },
    Fault {
        name: "the stated limit is 100",
        breaks: "extended.rate_headers",
        spoil: |_, answer| set_header(answer, "x-ratelimit-limit", Some("100")),
    },
    Fault {
        name: "Retry-After is a date",
        breaks: "extended.retry_after",
        spoil: |_, answer| {
            if answer.status == 429 {
                set_header(answer, "retry-after", Some("Mon, 05 Jan 2026 09:01:00 GMT"));
            }
        },
    },
];

fn failed_ids(outcome: &Outcome) -> Vec<&str> {
    let ours = outcome.rows.iter().filter(|row| row.id.starts_with("extended."));
    ours.filter(|row| matches!(row.verdict, Verdict::Fail(_))).map(|row| row.id.as_str()).collect()
}

#[test]
fn the_built_in_server_satisfies_every_choice_and_every_fault_is_detected() {
    let directory = tempfile::tempdir().unwrap();
    let checked = run(directory.path(), &["check", "--profile", "extended", "--record", "run.json"]);
    assert_eq!(checked.status.code(), Some(0), "{}", String::from_utf8_lossy(&checked.stdout));
    let file = fs::read_to_string(directory.path().join("run.json")).unwrap();
    let correct = Outcome::from_file(&file).unwrap();
    assert_eq!(correct.exit_code(), 0, "judged again, it holds again");
    let passed: Vec<_> =
        correct.rows.iter().filter(|row| matches!(row.verdict, Verdict::Pass { .. })).collect();

    let mut wrong = Vec::new();
    for fault in FAULTS {
        let mut spoiled = correct.clone();
        spoiled.selection.only = vec!["extended.*".to_owned()];
        for exchange in &mut spoiled.recording.exchanges {
            let before = exchange.clone();
            if let Ending::Answered(answer) = &mut exchange.ending {
                (fault.spoil)(&before, answer);
            }
        }
        let again = Outcome::from_file(&spoiled.to_file()).unwrap();
        if failed_ids(&again) != [fault.breaks] {
            wrong.push(format!("{}: expected {}, broken {:?}", fault.name, fault.breaks, failed_ids(&again)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for id in extended_statements().keys() {
        assert!(passed.iter().any(|row| row.id == *id), "{id} is not shown to hold");
        assert!(FAULTS.iter().any(|fault| fault.breaks == id), "no lie breaks {id}");
    }
}
