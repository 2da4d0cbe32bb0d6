//! Faults in filters: in their rows and totals.

use crate::fake::book::Book;
use crate::fake::{EditableResponse, LIVE_KEY, Request};
use conformance::Mode;
use serde_json::json;

use crate::mutant::{
    Mutant, charge_list_fault, is_empty_list, list_fault, remove_member, replace_links, request_fault,
    server_fault,
};

/// The numbers of events and charges of the default server in test mode.
const TEST_EVENTS: u64 = 28;
const TEST_CHARGES: u64 = 8;

pub(crate) const MUTANTS: &[Mutant] = &[
    request_fault("the type filter is ignored", &["filters.type", "filters.total"], |request| {
        drop(request.query.remove("type"))
    })
    .may_fail(&["filters.combined"]),
    request_fault("the filter for one type is ignored in live mode", &["filters.type"], |request| {
        if is_live(request) && request.query.get("type").is_some_and(|value| value == "invoice.sent") {
            request.query.remove("type");
        }
    })
    .may_fail(&["filters.total"]),
    request_fault("the filter for one status is ignored in live mode", &["filters.status"], |request| {
        if is_live(request) && request.query.get("status").is_some_and(|value| value == "paid") {
            request.query.remove("status");
        }
    })
    .may_fail(&["filters.total"]),
    request_fault("filter values are not percent-decoded", &["filters.combined"], |request| {
        let pairs = request.raw_query.split('&').filter_map(|pair| pair.split_once('='));
        request.query = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    }),
    request_fault("the charge filter is ignored", &["filters.charge", "filters.total"], |request| {
        drop(request.query.remove("charge"))
    })
    .may_fail(&["filters.combined"]),
    request_fault("the invoice filter returns nothing", &["filters.invoice", "filters.total"], |request| {
        request.query.entry("invoice".into()).and_modify(|value| value.push('x'));
    })
    .may_fail(&["filters.combined"]),
    list_fault("total ignores the filter", &["filters.total"], |request, response| {
        if request.query.contains_key("type") {
            response.body["meta"]["total"] = json!(TEST_EVENTS);
        }
    })
    .may_fail(&["filters.combined", "filters.type"]),
    request_fault("the status filter is ignored", &["filters.status"], |request| {
        drop(request.query.remove("status"))
    })
    .may_fail(&["filters.total", "paging.links_keep_filters"]),
    list_fault("an unknown type gets 500", &["filters.type"], |request, response| {
        let is_known = |name: &String| name.starts_with("charge.") || name.starts_with("invoice.");
        if request.query.get("type").is_some_and(|name| !is_known(name)) {
            *response = EditableResponse::json(500, json!({ "message": "Server Error" }));
        }
    }),
    list_fault(
        "the payment link filter returns other links",
        &["filters.payment_link"],
        |request, response| {
            if request.query.contains_key("payment_link") && !is_empty_list(response) {
                response.body["data"][0]["payment_link"] = json!("another");
            }
        },
    )
    .may_fail(&["filters.combined"]),
    server_fault(
        "the type filter compares only the part before the dot",
        &["filters.type", "filters.total"],
        |server| {
            // A filter for one type returns the events of all charges, or those of all invoices.
            let books = [server.live.clone(), server.test.clone()];
            server.rewrite_responses(move |request, response| {
                let event_type = request.query.get("type").filter(|_| response.status == 200);
                let Some(event_type) = event_type else { return };
                let prefix =
                    event_type.split('.').next().expect("`split` yields at least one part").to_owned();
                let mut book = books[usize::from(request.mode == Some(Mode::Test))].clone();
                book.events
                    .retain(|event| event["type"].as_str().is_some_and(|name| name.starts_with(&prefix)));
                let mut request = request.clone();
                request.query.remove("type");
                let (mode, links) = (request.mode.expect("the key is valid"), response.body["links"].take());
                *response = book.respond(&request, mode, "");
                response.body["links"] = links;
            });
        },
    )
    .may_fail(&["paging.ends", "paging.links_keep_filters", "paging.links_lead", "filters.combined"]),
    request_fault("the type filter returns nothing", &["filters.type", "filters.total"], |request| {
        request.query.entry("type".into()).and_modify(|value| *value = value.to_uppercase());
    })
    .may_fail(&["filters.combined"]),
    list_fault("the charge filter finds only one event", &["filters.total"], |request, response| {
        if request.query.contains_key("charge") && !is_empty_list(response) {
            response.body["data"].as_array_mut().expect("`data` is an array").truncate(1);
            response.body["meta"]["total"] = json!(1);
        }
    })
    .may_fail(&["filters.charge"]),
    server_fault(
        "the charge filter finds nothing for a charge of an invoice",
        &["filters.charge", "filters.total"],
        |server| {
            // The charge is neither the newest nor the oldest.
            server.test = Book::with_long_lists(2, 20);
            server.rewrite_requests(|request| {
                if let Some(code) = request.query.get_mut("charge").filter(|code| *code == "ch2abcdef12") {
                    code.push('x');
                }
            });
        },
    ),
    server_fault(
        "the charge filter ignores the last character of the code",
        &["filters.charge", "filters.total"],
        |server| {
            let books = [server.live.clone(), server.test.clone()];
            server.rewrite_responses(move |request, response| {
                let Some(code) = request.query.get("charge").filter(|_| response.status == 200) else {
                    return;
                };
                let prefix = code[..code.len() - 1].to_owned();
                let mut book = books[usize::from(request.mode == Some(Mode::Test))].clone();
                book.events.retain(|event| {
                    event["charge"]["code"].as_str().is_some_and(|code| code.starts_with(&prefix))
                });
                let mut request = request.clone();
                request.query.remove("charge");
                *response = book.respond(&request, Mode::Test, "");
            });
        },
    )
    .may_fail(&["filters.combined", "paging.links_keep_filters"]),
    request_fault("the invoice filter is ignored", &["filters.invoice", "filters.total"], |request| {
        drop(request.query.remove("invoice"))
    })
    .may_fail(&["filters.combined"]),
    list_fault(
        "total of a charge's events is that of all events",
        &["filters.total"],
        |request, response| {
            if request.query.contains_key("charge") && !is_empty_list(response) {
                response.body["meta"]["total"] = json!(TEST_EVENTS);
            }
        },
    )
    .may_fail(&["filters.combined"]),
    list_fault(
        "total of filtered charges is that of all charges",
        &["filters.total"],
        |request, response| {
            if request.path == "/v1/charges" && request.query.contains_key("status") {
                response.body["meta"]["total"] = json!(TEST_CHARGES);
            }
        },
    )
    .may_fail(&["filters.combined", "filters.status"]),
    list_fault("total ignores the payment link filter", &["filters.total"], |request, response| {
        if request.query.contains_key("payment_link") && !is_empty_list(response) {
            response.body["meta"]["total"] = json!(TEST_CHARGES);
        }
    })
    .may_fail(&["filters.combined"]),
    server_fault("invoices ignore the status filter", &["filters.status"], |server| {
        for book in [&mut server.live, &mut server.test] {
            book.invoices[0]["status"] = json!("overdue");
        }
        server.rewrite_requests(|request| {
            if request.path == "/v1/invoices" {
                request.query.remove("status");
            }
        });
    })
    .may_fail(&["filters.total"]),
    request_fault("the payment link filter returns nothing", &["filters.payment_link"], |request| {
        request.query.entry("payment_link".into()).and_modify(|value| value.push('x'));
    })
    .may_fail(&["filters.combined", "filters.total"]),
    list_fault("an unknown type returns an event", &["filters.type"], |request, response| {
        let is_known = |name: &String| name.starts_with("charge.") || name.starts_with("invoice.");
        if request.query.get("type").is_some_and(|name| !is_known(name)) {
            response.body["data"] = json!([{ "id": "0190a5c4-7f3e-7ab1-8def-000000000001" }]);
        }
    })
    .may_fail(&["filters.total"]),
    server_fault("the status filter compares prefixes", &["filters.status"], |server| {
        for book in [&mut server.live, &mut server.test] {
            book.filter_matches =
                |name, row_value, filter_value| is_equal_or_prefix(name == "status", row_value, filter_value);
        }
    }),
    server_fault("the type filter compares prefixes", &["filters.type"], |server| {
        for book in [&mut server.live, &mut server.test] {
            book.filter_matches =
                |name, row_value, filter_value| is_equal_or_prefix(name == "type", row_value, filter_value);
        }
    }),
    list_fault("an unknown status returns a row", &["filters.status"], |request, response| {
        let is_known = |status: &String| ["paid", "canceled", "open", "void"].contains(&status.as_str());
        if request.query.get("status").is_some_and(|status| !is_known(status)) {
            response.body["data"] = json!([{ "status": "paid" }]);
        }
    })
    .may_fail(&["filters.total"]),
    server_fault("page is ignored in filtered lists, but links use a cursor", &["filters.total"], |server| {
        let books = [server.live.clone(), server.test.clone()];
        server.rewrite_responses(move |request, response| {
            let filters = ["type", "charge", "invoice", "status", "payment_link"];
            if response.status != 200 || !filters.iter().any(|name| request.query.contains_key(*name)) {
                return;
            }
            replace_links(response, |link| format!("{link}&cursor=1"));
            if !request.query.contains_key("cursor") {
                let (mut first_page, mode) = (request.clone(), request.mode.expect("the key is valid"));
                first_page.query.remove("page");
                response.body["data"] =
                    books[usize::from(mode == Mode::Test)].respond(&first_page, mode, "").body["data"].take();
            }
        });
    }),
    charge_list_fault(
        "paid charges are not found by their status",
        &["filters.total"],
        |request, response| {
            if request.query.get("status").is_some_and(|value| value == "paid") {
                response.body["data"] = json!([]);
                response.body["meta"]["total"] = json!(0);
            }
        },
    )
    .may_fail(&["filters.status"]),
    list_fault("the filter for one type omits a record", &["filters.total"], |request, response| {
        if request.query.get("type").is_some_and(|value| value == "invoice.sent") {
            let rows = response.body["data"].as_array_mut().expect("`data` is an array");
            response.body["meta"]["total"] = json!(rows.pop().map_or(0, |_| rows.len()));
        }
    })
    .may_fail(&["filters.type"]),
    server_fault(
        "the payment link filter is ignored, and charges have no payment link",
        &["filters.payment_link"],
        |server| {
            server.request_rewrites.push(Box::new(|request| drop(request.query.remove("payment_link"))));
            server.rewrite_responses(|request, response| {
                if request.path == "/v1/charges" && response.status == 200 {
                    let rows = response.body["data"].as_array_mut();
                    rows.into_iter().flatten().for_each(|row| remove_member(row, "payment_link"));
                }
            });
        },
    )
    .may_fail(&["isolation.filter_payment_link", "filters.combined", "paging.links_keep_filters"]),
    request_fault("the payment link filter is ignored", &["filters.payment_link"], |request| {
        drop(request.query.remove("payment_link"))
    })
    .may_fail(&["isolation.filter_payment_link", "filters.combined"]),
];

/// Returns `true` if the values are equal, or if the filter value is a prefix and `allows_prefix` is `true`.
fn is_equal_or_prefix(allows_prefix: bool, row_value: &str, filter_value: &str) -> bool {
    if allows_prefix { row_value.starts_with(filter_value) } else { row_value == filter_value }
}

/// Returns `true` for a request with the live key.
fn is_live(request: &Request) -> bool {
    request.authorization.as_deref().is_some_and(|authorization| authorization.ends_with(LIVE_KEY))
}
