//! Faults in responses that break parsers: invalid JSON, duplicate or missing members, wrong content headers, other
//! envelopes.

use serde_json::{Value, json};

use crate::mutant::{Mutant, charge_list_fault, list_fault, response_fault};

pub(crate) const MUTANTS: &[Mutant] = &[
    charge_list_fault("uncompressed bodies are labelled gzip", &["answers.json"], |_, response| {
        response.set_header("content-encoding", "gzip")
    }),
    charge_list_fault("a warning of the interpreter precedes the JSON", &["answers.json"], |_, response| {
        response.raw = Some(format!("<br />Deprecated: usort()<br />{}", response.body))
    }),
    charge_list_fault("a byte order mark precedes the JSON", &["answers.json"], |_, response| {
        response.raw = Some(format!("\u{feff}{}", response.body))
    }),
    charge_list_fault("null is written as NaN", &["answers.json"], |_, response| {
        response.raw = Some(response.body.to_string().replace("null", "NaN"))
    }),
    charge_list_fault("the body is truncated", &["answers.json"], |_, response| {
        let body = response.body.to_string();
        response.raw = Some(body[..body.len() / 2].to_owned());
    }),
    charge_list_fault("the JSON is encoded in a string", &["paging.envelope"], |_, response| {
        response.body = json!(response.body.to_string())
    }),
    list_fault("lists have no Content-Type", &["answers.media_type"], |_, response| {
        response.remove_header("content-type")
    }),
    response_fault(
        "a single event is labelled application/octet-stream",
        &["answers.content_type"],
        200,
        |_, response| response.set_header("content-type", "application/octet-stream"),
    )
    .for_requests(|request| request.path.starts_with("/v1/events/")),
    charge_list_fault("every row has the member `code` twice", &["answers.duplicate_keys"], |_, response| {
        let text = response.body.to_string();
        response.raw = Some(text.replace("\"status\":", "\"code\":\"x\",\"status\":"));
    })
    .may_fail(&[
        "paging.joined",
        "errors.not_found",
        "events.recorded",
        "filters.payment_link",
        "lists.complete",
    ]),
    list_fault("null members are omitted", &["paging.links", "events.subject"], |_, response| {
        drop_nulls(&mut response.body)
    })
    .may_fail(&["charges.fields"]),
    response_fault(
        "the invoices are under `results`, next to `count`",
        &["paging.envelope"],
        200,
        |_, response| {
            let (rows, total) = (response.body["data"].take(), response.body["meta"]["total"].take());
            response.body = json!({ "count": total, "next": null, "previous": null, "results": rows });
        },
    )
    .for_requests(|request| request.path == "/v1/invoices"),
    charge_list_fault("meta and links are spread over the top level", &["paging.envelope"], |_, response| {
        let meta = response.body["meta"].take();
        response.body = json!({
            "data": response.body["data"],
            "current_page": meta["current_page"],
            "last_page": meta["last_page"],
            "per_page": meta["per_page"],
            "total": meta["total"],
            "next_page_url": response.body["links"]["next"],
            "prev_page_url": response.body["links"]["prev"],
        });
    }),
    charge_list_fault(
        "the charges are under `content`, with `totalElements`",
        &["paging.envelope"],
        |_, response| {
            let (rows, total) = (response.body["data"].take(), response.body["meta"]["total"].take());
            response.body = json!({ "content": rows, "totalElements": total, "number": 0, "size": 25 });
        },
    ),
    charge_list_fault("links are a list of buttons", &["paging.envelope"], |_, response| {
        response.body["links"] = json!([{ "url": null, "label": "&laquo; Previous", "active": false }]);
    }),
    charge_list_fault("rows are members of an object, by index", &["paging.envelope"], |_, response| {
        let rows = response.body["data"].as_array().cloned().unwrap_or_default();
        let members = rows.into_iter().enumerate().map(|(index, row)| (index.to_string(), row));
        response.body["data"] = Value::Object(members.collect());
    }),
    list_fault("an empty list is null", &["paging.envelope"], |_, response| {
        if crate::mutant::is_empty_list(response) {
            response.body["data"] = Value::Null;
        }
    }),
    list_fault("an empty list has links in an array", &["paging.envelope"], |_, response| {
        if crate::mutant::is_empty_list(response) {
            response.body["links"] = json!([]);
        }
    }),
];

/// Removes all members that are null, at every depth.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
