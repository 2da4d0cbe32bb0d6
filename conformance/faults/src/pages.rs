//! Faults in pages: in their statuses, rows, numbers and links.

use conformance_model::mode::Mode;
use conformance_model::recording::List;
use serde_json::{Value, json};

use crate::editable_response::EditableResponse;
use crate::fault::{Change, Fault};
use crate::injection_point::{InjectionPoint, Position};

/// The description of a fault, the violated statements, the positions at which it can occur, and the change.
type PageFault = (&'static str, &'static [&'static str], &'static [Position], fn(&mut EditableResponse));

const EVERYWHERE: &[Position] = &[
    Position::Number(1),
    Position::Number(2),
    Position::Number(3),
    Position::Middle,
    Position::Last,
    Position::Size(1),
    Position::OddSize,
    Position::Size(100),
    Position::LaterDefaultSize,
];
const AFTER_THE_FIRST: &[Position] =
    &[Position::Number(2), Position::Number(3), Position::Middle, Position::Last, Position::LaterDefaultSize];
const BEFORE_THE_LAST: &[Position] =
    &[Position::Number(1), Position::Number(2), Position::Number(3), Position::Middle, Position::OddSize];
/// The positions of pages with enough rows to show an order.
const WITH_SEVERAL_ROWS: &[Position] =
    &[Position::Number(1), Position::Number(2), Position::OddSize, Position::Size(100)];

const PAGE_FAULTS: &[PageFault] = &[
    ("its last record is missing", &["paging.length", "paging.joined"], EVERYWHERE, |response| {
        drop(rows_mut(response).pop())
    }),
    ("its first record is missing", &["paging.length", "paging.joined"], AFTER_THE_FIRST, |response| {
        if !rows_mut(response).is_empty() {
            rows_mut(response).remove(0);
        }
    }),
    (
        "its second record is a copy of the first",
        &["paging.joined", "filters.total"],
        WITH_SEVERAL_ROWS,
        |response| {
            if rows_mut(response).len() > 1 {
                rows_mut(response)[1] = rows_mut(response)[0].clone();
            }
        },
    ),
    (
        "its rows are in ascending order",
        &["paging.newest_first", "paging.newest_first_others", "paging.joined"],
        WITH_SEVERAL_ROWS,
        |response| {
            rows_mut(response).reverse();
        },
    ),
    ("the page is empty", &["paging.length", "paging.joined", "lists.served"], EVERYWHERE, |response| {
        rows_mut(response).clear()
    }),
    (
        "the request is refused with 422",
        &["lists.served", "paging.per_page", "paging.length", "paging.default_size", "paging.links_lead"],
        EVERYWHERE,
        |response| {
            *response = EditableResponse::json(422, json!({ "message": "The value is invalid." }));
        },
    ),
    (
        "the response is 500",
        &["lists.served", "paging.per_page", "paging.length", "paging.default_size", "paging.links_lead"],
        EVERYWHERE,
        |response| {
            *response = EditableResponse::json(500, json!({ "message": "Server Error" }));
        },
    ),
    ("`current_page` is one too low", &["paging.current_page"], EVERYWHERE, |response| {
        add_to_meta(response, "current_page", -1)
    }),
    (
        "`per_page` is one too high",
        &["paging.per_page", "paging.default_size", "paging.length"],
        EVERYWHERE,
        |response| add_to_meta(response, "per_page", 1),
    ),
    (
        "`total` is one too high",
        &["paging.length", "paging.last_page", "filters.total", "paging.joined"],
        EVERYWHERE,
        |response| add_to_meta(response, "total", 1),
    ),
    ("`last_page` is one too high", &["paging.last_page"], EVERYWHERE, |response| {
        add_to_meta(response, "last_page", 1)
    }),
    ("`total` is a string", &["paging.meta"], EVERYWHERE, |response| {
        response.body["meta"]["total"] = json!(response.body["meta"]["total"].to_string());
    }),
    ("`next` is null", &["paging.ends"], BEFORE_THE_LAST, |response| {
        response.body["links"]["next"] = Value::Null
    }),
    ("`prev` is null", &["paging.ends"], AFTER_THE_FIRST, |response| {
        response.body["links"]["prev"] = Value::Null
    }),
    ("`next` is missing", &["paging.links"], EVERYWHERE, |response| remove_member(response, "links", "next")),
    ("`last` is missing", &["paging.links"], AFTER_THE_FIRST, |response| {
        remove_member(response, "links", "last")
    }),
    (
        "`prev` leads to the first page",
        &["paging.links_lead"],
        &[Position::Number(3), Position::Middle],
        |response| {
            set_link_parameter(response, "prev", "page", "1");
        },
    ),
    (
        "`last` leads to the second last page",
        &["paging.links_lead"],
        &[Position::Number(2), Position::Middle],
        |response| {
            let last = response.body["meta"]["last_page"].as_u64().unwrap_or(1);
            set_link_parameter(response, "last", "page", &last.saturating_sub(1).to_string());
        },
    ),
    (
        "`next` lacks `per_page`",
        &["paging.links_keep_size"],
        &[Position::Number(3), Position::Middle, Position::OddSize],
        |response| {
            // A link without a size leads to a page of the default size, so pages of that size have no fault.
            if response.body["meta"]["per_page"] != DEFAULT_SIZE {
                set_link_parameter(response, "next", "per_page", "");
            }
        },
    ),
    ("the records are in an object", &["paging.envelope"], EVERYWHERE, |response| {
        response.body["data"] = json!({})
    }),
];

pub(crate) fn add_faults(all: &mut Vec<Fault>) {
    for (description, violates, positions, change) in PAGE_FAULTS {
        for position in *positions {
            for list in List::ALL {
                for mode in Mode::BOTH {
                    all.push(Fault {
                        description,
                        field: None,
                        violates: violates.to_vec(),
                        point: InjectionPoint::Page(list),
                        position: *position,
                        mode: Some(mode),
                        change: Change::Response(Box::new(*change)),
                    });
                }
            }
        }
    }
}

/// Returns the records of a page, replacing an invalid `data` by an empty array.
fn rows_mut(response: &mut EditableResponse) -> &mut Vec<Value> {
    if !response.body["data"].is_array() {
        response.body["data"] = json!([]);
    }
    response.body["data"].as_array_mut().expect("`data` was just set to an array")
}

fn add_to_meta(response: &mut EditableResponse, name: &str, by: i64) {
    if let Some(number) = response.body["meta"][name].as_i64() {
        response.body["meta"][name] = json!(number + by);
    }
}

/// The default number of records per page.
const DEFAULT_SIZE: u64 = 25;

/// Replaces a parameter of a link; an empty value removes it.
fn set_link_parameter(response: &mut EditableResponse, rel: &str, name: &str, value: &str) {
    let link = &mut response.body["links"][rel];
    let Some((path, query)) = link.as_str().and_then(|text| text.split_once('?')) else { return };
    let others = query.split('&').filter(|pair| pair.split('=').next() != Some(name));
    let pair = format!("{name}={value}");
    let pairs: Vec<_> = others.chain((!value.is_empty()).then_some(pair.as_str())).collect();
    *link = json!(format!("{path}?{}", pairs.join("&")));
}

fn remove_member(response: &mut EditableResponse, holder: &str, name: &str) {
    if let Some(members) = response.body[holder].as_object_mut() {
        members.remove(name);
    }
}
