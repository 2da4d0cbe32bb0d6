//! Faults in the text of a response that break parsers.

use serde_json::{Value, json};

use crate::mutant::{Mutant, charges, list, reply};

pub(crate) const MUTANTS: &[Mutant] = &[
    charges("uncompressed bodies are labelled gzip", &["answers.json"], |_, reply| {
        reply.set("content-encoding", "gzip")
    }),
    charges("an interpreter warning precedes the JSON", &["answers.json"], |_, reply| {
        reply.raw = Some(format!("<br />Deprecated: usort()<br />{}", reply.body))
    }),
    charges("a byte order mark precedes the JSON", &["answers.json"], |_, reply| {
        reply.raw = Some(format!("\u{feff}{}", reply.body))
    }),
    charges("a number is NaN", &["answers.json"], |_, reply| {
        reply.raw = Some(reply.body.to_string().replace("null", "NaN"))
    }),
    charges("the body ends in the middle", &["answers.json"], |_, reply| {
        let body = reply.body.to_string();
        reply.raw = Some(body[..body.len() / 2].to_owned());
    }),
    charges("the JSON is encoded in a string", &["paging.envelope"], |_, reply| {
        reply.body = json!(reply.body.to_string())
    }),
    list("lists have no Content-Type", &["answers.media_type"], |_, reply| reply.drop_header("content-type")),
    reply(
        "a single event is labelled application/octet-stream",
        &["answers.content_type"],
        200,
        |_, reply| reply.set("content-type", "application/octet-stream"),
    )
    .for_requests(|request| request.path.starts_with("/v1/events/")),
    charges("every row has a duplicate code", &["answers.duplicate_keys"], |_, reply| {
        let text = reply.body.to_string();
        reply.raw = Some(text.replace("\"status\":", "\"code\":\"x\",\"status\":"));
    })
    .may_fail(&["paging.joined", "events.recorded", "filters.payment_link", "lists.complete"]),
    list("null members are omitted", &["paging.links", "events.subject"], |_, reply| {
        drop_nulls(&mut reply.body)
    })
    .may_fail(&["charges.fields"]),
    reply("the invoices are under `results`, next to `count`", &["paging.envelope"], 200, |_, reply| {
        let (rows, total) = (reply.body["data"].take(), reply.body["meta"]["total"].take());
        reply.body = json!({ "count": total, "next": null, "previous": null, "results": rows });
    })
    .for_requests(|request| request.path == "/v1/invoices"),
    charges("meta and links are spread over the top level", &["paging.envelope"], |_, reply| {
        let meta = reply.body["meta"].take();
        reply.body = json!({
            "data": reply.body["data"],
            "current_page": meta["current_page"],
            "last_page": meta["last_page"],
            "per_page": meta["per_page"],
            "total": meta["total"],
            "next_page_url": reply.body["links"]["next"],
            "prev_page_url": reply.body["links"]["prev"],
        });
    }),
    charges("the charges are under `content`, with `totalElements`", &["paging.envelope"], |_, reply| {
        let (rows, total) = (reply.body["data"].take(), reply.body["meta"]["total"].take());
        reply.body = json!({ "content": rows, "totalElements": total, "number": 0, "size": 25 });
    }),
    charges("links are a list of buttons", &["paging.envelope"], |_, reply| {
        reply.body["links"] = json!([{ "url": null, "label": "&laquo; Previous", "active": false }]);
    }),
    charges("rows are members of an object, by index", &["paging.envelope"], |_, reply| {
        let rows = reply.body["data"].as_array().cloned().unwrap_or_default();
        let named = rows.into_iter().enumerate().map(|(at, row)| (at.to_string(), row));
        reply.body["data"] = Value::Object(named.collect());
    }),
    list("an empty list is null", &["paging.envelope"], |_, reply| {
        if crate::mutant::is_empty_list(reply) {
            reply.body["data"] = Value::Null;
        }
    }),
    list("an empty list has links in an array", &["paging.envelope"], |_, reply| {
        if crate::mutant::is_empty_list(reply) {
            reply.body["links"] = json!([]);
        }
    }),
];

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
