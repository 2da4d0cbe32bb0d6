//! Planted faults in lists, links and fields that only a comparison of complete responses detects.

use serde_json::{Value, json};
use simulator::{
    invariant::Invariant::{self, Edges, Filters, Once, Order, Paging, SameObject},
    tamper::{AttemptFate, Tamper},
};

use super::{PlantedFault, attempts::change_attempts, http::change_responses};

/// Changes the JSON of every successful read under a path. `change` gets the query and the body.
fn change_reads(path: &'static str, change: fn(&str, &mut Value)) -> Box<dyn Tamper> {
    change_responses(move |_, request, response| {
        if request.method == "GET" && request.path.starts_with(path) && response.status == 200 {
            let mut body: Value = serde_json::from_slice(&response.body).expect("a response is JSON");
            change(request.query.unwrap_or_default(), &mut body);
            response.body = body.to_string().into_bytes().into();
        }
    })
}

/// Changes the `data` in the body of every webhook, except that of test deliveries.
fn change_webhooks(change: fn(&mut Value)) -> Box<dyn Tamper> {
    change_attempts(move |_, _, attempt| {
        let mut body: Value = serde_json::from_slice(&attempt.body).expect("a webhook is JSON");
        if body.get("test").is_none() {
            change(&mut body["data"]);
            attempt.body = body.to_string().into_bytes().into();
        }
        AttemptFate::Unchanged
    })
}

/// Changes every record of a list.
fn change_each_record(body: &mut Value, change: impl Fn(&mut Value)) {
    body["data"].as_array_mut().into_iter().flatten().for_each(change);
}

/// Changes the links of a page.
fn change_links(body: &mut Value, change: impl Fn(&str) -> String) {
    for link in body["links"].as_object_mut().into_iter().flat_map(|links| links.values_mut()) {
        if let Some(text) = link.as_str().map(&change) {
            *link = json!(text);
        }
    }
}

/// The invariants about lists.
const LISTS: &[Invariant] = &[Paging, Filters];
/// The invariants about the fields of objects.
const FIELDS: &[Invariant] = &[SameObject, Edges, Once, Order, Paging];

pub(super) const FAULTS: &[PlantedFault] = &[
    PlantedFault::new("links lose the filters of their list", LISTS, || {
        change_reads("/v1/", |_, body| change_links(body, |link| link.replacen("status=", "state=", 1)))
    }),
    PlantedFault::new("links lose the size of the page", LISTS, || {
        change_reads("/v1/", |_, body| change_links(body, |link| link.replace("per_page=7&", "")))
    }),
    PlantedFault::new("links have no anchor", LISTS, || {
        change_reads("/v1/", |_, body| {
            change_links(body, |link| link.split("&anchor").next().unwrap_or_default().to_owned());
        })
    }),
    PlantedFault::new("the first page has a previous one", LISTS, || {
        change_reads("/v1/", |_, body| {
            if body["links"]["prev"].is_null() && body.get("links").is_some() {
                body["links"]["prev"] = body["links"]["first"].clone();
            }
        })
    }),
    PlantedFault::new("the last link goes to the first page", LISTS, || {
        change_reads("/v1/", |_, body| {
            if body.get("links").is_some() {
                body["links"]["last"] = body["links"]["first"].clone();
            }
        })
    }),
    PlantedFault::new("`from` of a page is one too low", LISTS, || {
        change_reads("/v1/", |_, body| {
            if let Some(from) = body["meta"]["from"].as_u64() {
                body["meta"]["from"] = json!(from - 1);
            }
        })
    }),
    PlantedFault::new("`to` of an empty page is zero", LISTS, || {
        change_reads("/v1/", |_, body| {
            if body["meta"].get("to").is_some_and(Value::is_null) {
                body["meta"]["to"] = json!(0);
            }
        })
    }),
    PlantedFault::new("the total of a filtered list is one too high", LISTS, || {
        change_reads("/v1/", |query, body| {
            if let Some(total) = body["meta"]["total"].as_u64().filter(|_| query.contains("type=")) {
                body["meta"]["total"] = json!(total + 1);
            }
        })
    }),
    PlantedFault::new("payment links are listed oldest first", &[Paging, Once, SameObject], || {
        change_reads("/v1/payment-links", |_, body| {
            if let Some(rows) = body["data"].as_array_mut() {
                rows.reverse();
            }
        })
    }),
    PlantedFault::new("a charge lacks the field for the phone number", FIELDS, || {
        change_reads("/v1/charges", |_, body| {
            change_each_record(body, |charge| {
                charge["customer"].as_object_mut().and_then(|customer| customer.remove("phone"));
            });
        })
    }),
    PlantedFault::new("the customer's address is in one field only", FIELDS, || {
        change_reads("/v1/charges", |_, body| {
            change_each_record(body, |charge| charge["customer_email"] = Value::Null)
        })
    }),
    PlantedFault::new("a charge has a different checkout address", FIELDS, || {
        change_reads("/v1/charges", |_, body| {
            change_each_record(body, |charge| charge["checkout_url"] = json!("/c/"))
        })
    }),
    PlantedFault::new("an invoice loses its memo", FIELDS, || {
        change_reads("/v1/invoices", |_, body| {
            change_each_record(body, |invoice| invoice["memo"] = Value::Null)
        })
    }),
    PlantedFault::new("an invoice has the customer's name in `customer` only", FIELDS, || {
        change_reads("/v1/invoices", |_, body| {
            change_each_record(body, |invoice| invoice["customer_name"] = Value::Null)
        })
    }),
    PlantedFault::new("a payment link loses its custom fields", FIELDS, || {
        change_reads("/v1/payment-links", |_, body| {
            change_each_record(body, |link| link["custom_fields"] = json!([]))
        })
    }),
    PlantedFault::new("a payment link was updated when it was viewed", FIELDS, || {
        change_reads("/v1/payment-links", |_, body| {
            change_each_record(body, |link| {
                if link["views_count"] != 0 {
                    link["updated_at"] = json!("2026-01-05T09:00:00.000001Z");
                }
            });
        })
    }),
    PlantedFault::new("a webhook leaves out its transaction", FIELDS, || {
        change_webhooks(|data| {
            data.as_object_mut().and_then(|data| data.remove("transaction"));
        })
    }),
    PlantedFault::new("a webhook has no metadata", FIELDS, || {
        change_webhooks(|data| {
            if data["charge"].is_object() {
                data["charge"]["metadata"] = json!({});
            }
        })
    }),
    PlantedFault::new("a webhook also has the id of the API", FIELDS, || {
        change_webhooks(|data| {
            if data["charge"].is_object() {
                data["charge"]["id"] = data["charge"]["code"].clone();
            }
        })
    }),
    PlantedFault::new("a webhook of an invoice has no page addresses", FIELDS, || {
        change_webhooks(|data| {
            if data["invoice"].is_object() {
                data["invoice"]["hosted_url"] = Value::Null;
            }
        })
    }),
    PlantedFault::new("a webhook shows the transfers of its charge as credited", FIELDS, || {
        change_webhooks(|data| {
            for transfer in data["charge"]["transactions"].as_array_mut().into_iter().flatten() {
                transfer["credited"] = json!(true);
            }
        })
    }),
    PlantedFault::new("the response to a write has no timeline", FIELDS, || {
        change_responses(|_, request, response| {
            if request.method == "POST" && request.path == "/v1/charges" && response.status == 201 {
                let mut body: Value = serde_json::from_slice(&response.body).expect("a charge is JSON");
                body["data"]["timeline"] = json!([]);
                response.body = body.to_string().into_bytes().into();
            }
        })
    }),
];
