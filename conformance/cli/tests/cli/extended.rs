//! The extended profile: the built-in server satisfies it, and each of its checks detects a fault.
//!
//! Faults are injected into the recorded responses of one run, and the recording is judged again.

use std::fs;

use conformance::{
    Exchange, ExchangeOutcome, Outcome, Purpose, ReceivedResponse, Verdict, extended_statements,
};
use serde_json::{Value, json};

use crate::support::run;

/// A fault of a server, injected into recorded responses.
struct Fault {
    name: &'static str,
    /// The id of the statement that must detect the fault.
    violates: &'static str,
    inject: fn(&Exchange, &mut ReceivedResponse),
}

fn change_body(response: &mut ReceivedResponse, change: impl Fn(&mut Value)) {
    if let Ok(mut body) = serde_json::from_str(&response.body) {
        change(&mut body);
        response.body = body.to_string().into();
    }
}

/// Changes every row of the list at `path`, and in every list the objects in the field `member` of the rows.
fn change_objects(
    exchange: &Exchange,
    response: &mut ReceivedResponse,
    path: &str,
    member: &str,
    change: impl Fn(&mut Value),
) {
    if response.status != 200 {
        return;
    }
    let is_list = exchange.target.split('?').next() == Some(path);
    change_body(response, |body| {
        for row in body["data"].as_array_mut().into_iter().flatten() {
            if is_list {
                change(row);
            }
            if row.get(member).is_some_and(Value::is_object) {
                change(&mut row[member]);
            }
        }
    });
}

fn change_charges(exchange: &Exchange, response: &mut ReceivedResponse, change: impl Fn(&mut Value)) {
    change_objects(exchange, response, "/v1/charges", "charge", change);
}

fn change_invoices(exchange: &Exchange, response: &mut ReceivedResponse, change: impl Fn(&mut Value)) {
    change_objects(exchange, response, "/v1/invoices", "invoice", change);
}

fn change_events(exchange: &Exchange, response: &mut ReceivedResponse, change: impl Fn(&mut Value)) {
    // No row contains an event.
    change_objects(exchange, response, "/v1/events", "no such field", change);
}

fn change_account(exchange: &Exchange, response: &mut ReceivedResponse, change: impl Fn(&mut Value)) {
    if exchange.purpose == Purpose::Account && response.status == 200 {
        change_body(response, change);
    }
}

fn set_header(response: &mut ReceivedResponse, name: &str, value: Option<&str>) {
    response.headers.retain(|(header, _)| header != name);
    response.headers.extend(value.map(|value| (name.to_owned(), value.to_owned())));
}

/// Returns `true` for a request that tests the open choice with this name.
fn is_choice(exchange: &Exchange, name: &str) -> bool {
    matches!(&exchange.purpose, Purpose::Choice { name: tested } if tested == name)
}

fn set_error(response: &mut ReceivedResponse, status: u16) {
    response.status = status;
    response.body = json!({ "message": "No." }).to_string().into();
}

const FAULTS: &[Fault] = &[
    Fault {
        name: "a single event has no envelope",
        violates: "extended.envelope",
        inject: |exchange, response| {
            if matches!(exchange.purpose, Purpose::Event { .. }) && response.status == 200 {
                change_body(response, |body| *body = body["data"].take());
            }
        },
    },
    Fault {
        name: "charges have no object type",
        violates: "extended.objects",
        inject: |exchange, response| {
            change_charges(exchange, response, |object| object["object"] = Value::Null)
        },
    },
    Fault {
        name: "the account has no brand colour",
        violates: "extended.account_fields",
        inject: |exchange, response| {
            change_account(exchange, response, |object| {
                drop(object["data"].as_object_mut().unwrap().remove("brand_color"))
            });
        },
    },
    Fault {
        name: "charges have no deposit address",
        violates: "extended.charge_fields",
        inject: |exchange, response| {
            change_charges(exchange, response, |object| {
                drop(object.as_object_mut().unwrap().remove("deposit_address"))
            });
        },
    },
    Fault {
        name: "invoices have no memo",
        violates: "extended.invoice_fields",
        inject: |exchange, response| {
            change_invoices(exchange, response, |object| {
                drop(object.as_object_mut().unwrap().remove("memo"))
            });
        },
    },
    Fault {
        name: "a paid charge is called complete",
        violates: "extended.states",
        inject: |exchange, response| {
            change_charges(exchange, response, |charge| {
                if charge["status"] == "paid" {
                    charge["status"] = json!("complete");
                }
            });
        },
    },
    Fault {
        name: "a coin is called bitcoin",
        violates: "extended.assets",
        inject: |exchange, response| {
            change_account(exchange, response, |object| {
                object["meta"]["accepted_assets"][0] = json!("bitcoin")
            })
        },
    },
    Fault {
        name: "details of a payment have no transaction id",
        violates: "extended.details",
        inject: |exchange, response| {
            change_events(exchange, response, |object| {
                drop(object["details"].as_object_mut().unwrap().remove("txid"))
            });
        },
    },
    Fault {
        name: "ids of charges are not their codes",
        violates: "extended.codes",
        inject: |exchange, response| {
            if !matches!(exchange.purpose, Purpose::Choice { .. }) {
                change_charges(exchange, response, |object| object["id"] = json!("ch_0001"));
            }
        },
    },
    Fault {
        name: "invoices are numbered by year",
        violates: "extended.invoice_numbers",
        inject: |exchange, response| {
            change_invoices(exchange, response, |object| object["number"] = json!("2026/17"))
        },
    },
    Fault {
        name: "event ids are random",
        violates: "extended.event_ids",
        inject: |exchange, response| {
            change_events(exchange, response, |event| {
                let id = event["id"].as_str().unwrap();
                // Changes the version of the UUID from 7 (time) to 4 (random).
                event["id"] = json!(format!("{}4{}", &id[..14], &id[15..]));
            });
        },
    },
    Fault {
        name: "two events have the same id",
        violates: "extended.event_ids",
        inject: |exchange, response| {
            if exchange.target.starts_with("/v1/events?") && response.status == 200 {
                change_body(response, |body| {
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
        name: "coin amounts have trailing zeros",
        violates: "extended.amounts",
        inject: |exchange, response| {
            change_charges(exchange, response, |object| {
                object["asset_amount"] = json!("0.500000000000000000")
            })
        },
    },
    Fault {
        name: "fiat amounts have no cents",
        violates: "extended.amounts",
        inject: |exchange, response| {
            change_invoices(exchange, response, |object| object["amount"] = json!("99"))
        },
    },
    Fault {
        name: "times are in whole seconds",
        violates: "extended.times",
        inject: |exchange, response| {
            change_charges(exchange, response, |object| object["created_at"] = json!("2026-01-05T09:00:00Z"))
        },
    },
    Fault {
        name: "meta lacks from",
        violates: "extended.meta",
        inject: |exchange, response| {
            if matches!(exchange.purpose, Purpose::Page(_)) {
                change_body(response, |body| {
                    drop(body["meta"].as_object_mut().map(|meta| meta.remove("from")))
                });
            }
        },
    },
    Fault {
        name: "links are relative",
        violates: "extended.links",
        inject: |_, response| {
            change_body(response, |body| {
                if let Some(link) = body["links"]["first"].as_str() {
                    body["links"]["first"] = json!(link.splitn(4, '/').nth(3).map(|path| format!("/{path}")));
                }
            });
        },
    },
    Fault {
        name: "links lose the filter",
        violates: "extended.links",
        inject: |exchange, response| {
            if exchange.target.contains("invoice=") {
                change_body(response, |body| {
                    if let Some(link) = body["links"]["last"].as_str() {
                        body["links"]["last"] = json!(link.replace("invoice=", "of="));
                    }
                });
            }
        },
    },
    Fault {
        name: "invoices cannot be read one by one",
        violates: "extended.single_objects",
        inject: |exchange, response| {
            if is_choice(exchange, "invoice") {
                set_error(response, 404);
            }
        },
    },
    Fault {
        name: "a 404 has `error` instead of `message`",
        violates: "extended.error_body",
        inject: |_, response| {
            if response.status == 404 {
                response.body = json!({ "error": "not found" }).to_string().into();
            }
        },
    },
    Fault {
        name: "the errors of a field are a string",
        violates: "extended.error_body",
        inject: |_, response| {
            if response.status == 422 {
                change_body(response, |body| {
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
        violates: "extended.challenge",
        inject: |_, response| {
            if response.status == 401 {
                set_header(response, "www-authenticate", Some("Bearer realm=\"api\""));
            }
        },
    },
    Fault {
        name: "page 0 is the first",
        violates: "extended.page_values",
        inject: |exchange, response| {
            if is_choice(exchange, "page=0") {
                (response.status, response.body) = (200, "{}".into());
            }
        },
    },
    Fault {
        name: "per_page above 100 is 100",
        violates: "extended.page_values",
        inject: |exchange, response| {
            if is_choice(exchange, "per_page=101") {
                (response.status, response.body) = (200, "{}".into());
            }
        },
    },
    Fault {
        name: "an unknown status selects nothing",
        violates: "extended.filter_values",
        inject: |exchange, response| {
            if is_choice(exchange, "status=") {
                (response.status, response.body) = (200, json!({ "data": [] }).to_string().into());
            }
        },
    },
    Fault {
        name: "an unknown anchor selects nothing",
        violates: "extended.anchors",
        inject: |exchange, response| {
            if is_choice(exchange, "anchor=") {
                (response.status, response.body) = (200, json!({ "data": [] }).to_string().into());
            }
        },
    },
    Fault {
        name: "a page past the end gets a 404",
        violates: "extended.past_the_end",
        inject: |exchange, response| {
            if is_choice(exchange, "far") {
                set_error(response, 404);
            }
        },
    },
    Fault {
        name: "a filter with an unknown value gets a 404",
        violates: "extended.foreign_filters",
        inject: |exchange, response| {
            if matches!(exchange.purpose, Purpose::Filter { .. }) {
                set_error(response, 404);
            }
        },
    },
    Fault {
        name: "the 405 for a wrong method has no Allow header",
        violates: "extended.method",
        inject: |_, response| set_header(response, "allow", None),
    },
    Fault {
        name: "a wrong method gets a 404",
        violates: "extended.method",
        inject: |exchange, response| {
            if is_choice(exchange, "method") {
                set_error(response, 404);
            }
        },
    },
    Fault {
        name: "an unknown path gets a 400",
        violates: "extended.unknown_path",
        inject: |exchange, response| {
            if is_choice(exchange, "path") {
                set_error(response, 400);
            }
        },
    },
    Fault {
        name: "no response states the remaining requests",
        violates: "extended.rate_headers",
        inject: |_, response| set_header(response, "x-ratelimit-remaining", None),
    },
    Fault {
        name: "the stated limit is 100",
        violates: "extended.rate_headers",
        inject: |_, response| set_header(response, "x-ratelimit-limit", Some("100")),
    },
    Fault {
        name: "Retry-After is a date",
        violates: "extended.retry_after",
        inject: |_, response| {
            if response.status == 429 {
                set_header(response, "retry-after", Some("Mon, 05 Jan 2026 09:01:00 GMT"));
            }
        },
    },
];

/// Returns the ids of the failed statements of the extended profile.
fn failed_ids(outcome: &Outcome) -> Vec<&str> {
    let extended = outcome.rows.iter().filter(|row| row.id.starts_with("extended."));
    extended.filter(|row| matches!(row.verdict, Verdict::Fail(_))).map(|row| row.id.as_str()).collect()
}

#[test]
fn the_built_in_server_passes_and_every_fault_is_detected() {
    let directory = tempfile::tempdir().unwrap();
    let output = run(directory.path(), &["check", "--profile", "extended", "--record", "run.json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    let file = fs::read_to_string(directory.path().join("run.json")).unwrap();
    let correct = Outcome::from_file(&file).unwrap();
    assert_eq!(correct.exit_code(), 0, "the recording is judged as the run was");
    let passed: Vec<_> =
        correct.rows.iter().filter(|row| matches!(row.verdict, Verdict::Pass { .. })).collect();

    let mut errors = Vec::new();
    for fault in FAULTS {
        let mut with_fault = correct.clone();
        with_fault.selection.only = vec!["extended.*".to_owned()];
        for exchange in &mut with_fault.recording.exchanges {
            let before = exchange.clone();
            if let ExchangeOutcome::Answered(response) = &mut exchange.outcome {
                (fault.inject)(&before, response);
            }
        }
        let judged = Outcome::from_file(&with_fault.to_file()).unwrap();
        if failed_ids(&judged) != [fault.violates] {
            errors.push(format!(
                "{}: expected {}, failed {:?}",
                fault.name,
                fault.violates,
                failed_ids(&judged)
            ));
        }
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
    for id in extended_statements().keys() {
        assert!(passed.iter().any(|row| row.id == *id), "{id} was not judged to pass");
        assert!(FAULTS.iter().any(|fault| fault.violates == id), "no fault violates {id}");
    }
}
