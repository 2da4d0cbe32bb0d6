//! Faults in the links of a page.

use serde_json::{Value, json};

use crate::fake::EditableResponse;
use crate::mutant::{Mutant, list_fault, replace_links, server_fault};
use conformance::Mode;

pub(crate) const MUTANTS: &[Mutant] = &[
    list_fault("the link to the first page is missing", &["paging.links"], |_, response| {
        drop(response.body["links"].as_object_mut().expect("`links` is an object").remove("first"))
    }),
    list_fault("prev is not null on the first page", &["paging.ends"], |_, response| {
        if response.body["links"]["prev"].is_null() {
            response.body["links"]["prev"] = response.body["links"]["first"].clone();
        }
    }),
    list_fault("next is never null", &["paging.ends"], |_, response| {
        if response.body["links"]["next"].is_null() {
            response.body["links"]["next"] = response.body["links"]["last"].clone();
        }
    })
    .may_fail(&["paging.links_lead"]),
    list_fault("next is always null", &["paging.ends"], |_, response| {
        response.body["links"]["next"] = Value::Null
    }),
    list_fault("next leads to the same page", &["paging.links_lead"], |request, response| {
        if let Some(next) = response.body["links"]["next"].as_str() {
            let page = request.number("page").unwrap_or(1);
            let wrong = next.replace(&format!("&page={}", page + 1), &format!("&page={page}"));
            response.body["links"]["next"] = json!(wrong);
        }
    }),
    server_fault(
        "next of a filtered list repeats the last record of the page",
        &["paging.links_lead"],
        |server| {
            let books = [server.live.clone(), server.test.clone()];
            server.rewrite_responses(move |request, response| {
                if response.status != 200 || !request.query.contains_key("type") {
                    return;
                }
                replace_links(response, |link| format!("{link}&cursor=1"));
                let page = request.number("page").filter(|_| request.query.contains_key("cursor"));
                let (Some(page @ 2..), Some(size), Some(mode)) =
                    (page, request.number("per_page"), request.mode)
                else {
                    return;
                };
                let mut all_rows = request.clone();
                all_rows.query.remove("page");
                all_rows.query.insert("per_page".into(), "100".into());
                let start = usize::try_from((page - 1) * size).expect("the index fits in a usize") - 1;
                let mut rows =
                    books[usize::from(mode == Mode::Test)].respond(&all_rows, mode, "").body["data"].take();
                let rows = rows.as_array_mut().expect("`data` is an array");
                let count = response.body["data"].as_array().map_or(0, Vec::len);
                response.body["data"] = rows.drain(start..start + count).collect();
            });
        },
    ),
    list_fault("last leads to the first page", &["paging.links_lead"], |_, response| {
        response.body["links"]["last"] = response.body["links"]["first"].clone()
    }),
    list_fault("last leads to another path", &["paging.links_lead"], |_, response| {
        response.body["links"]["last"] = json!("/dashboard")
    }),
    list_fault("links omit per_page", &["paging.links_keep_size"], |_, response| {
        drop_link_parameter(response, "per_page")
    }),
    list_fault("links omit the type filter", &["paging.links_keep_filters"], |_, response| {
        drop_link_parameter(response, "type")
    })
    .may_fail(&["filters.total"]),
    list_fault("first leads to another host", &["paging.links_origin"], |request, response| {
        let first = response.body["links"]["first"].as_str().expect("the link is a string");
        let query = first.split_once('?').expect("the link has a query").1;
        response.body["links"]["first"] =
            json!(format!("http://internal.example:8080{}?{query}", request.path));
    }),
    list_fault("prev is omitted on the first page", &["paging.links"], |_, response| {
        if response.body["links"]["prev"].is_null() {
            response.body["links"].as_object_mut().expect("`links` is an object").remove("prev");
        }
    }),
    list_fault("prev and next are empty strings at the ends", &["paging.ends"], |_, response| {
        for rel in ["prev", "next"] {
            if response.body["links"][rel].is_null() {
                response.body["links"][rel] = json!("");
            }
        }
    })
    .may_fail(&["paging.links_keep_size", "paging.links_lead"]),
    list_fault("prev and next are false at the ends", &["paging.links"], |_, response| {
        for rel in ["prev", "next"] {
            if response.body["links"][rel].is_null() {
                response.body["links"][rel] = json!(false);
            }
        }
    }),
    list_fault("first and last are null", &["paging.links"], |_, response| {
        for rel in ["first", "last"] {
            response.body["links"][rel] = Value::Null;
        }
    }),
    list_fault("links are objects with an href", &["paging.links"], |_, response| {
        for rel in ["first", "last", "prev", "next"] {
            if response.body["links"][rel].is_string() {
                response.body["links"][rel] = json!({ "href": response.body["links"][rel] });
            }
        }
    }),
    list_fault("links are page numbers", &["paging.links"], |_, response| {
        response.body["links"]["first"] = json!(1);
        response.body["links"]["last"] = response.body["meta"]["last_page"].clone();
    }),
    list_fault("the ampersands of links are escaped for HTML", &["paging.links_lead"], |_, response| {
        replace_links(response, |link| link.replace('&', "&amp;"))
    })
    .may_fail(&["filters.total", "paging.links_keep_size", "paging.links_keep_filters"]),
    list_fault("the query of links is encoded twice", &["paging.links_lead"], |_, response| {
        replace_links(response, |link| link.replace('=', "%3D"))
    })
    .may_fail(&["filters.total", "paging.links_keep_size", "paging.links_keep_filters"]),
    list_fault("links repeat the version in their path", &["paging.links_lead"], |_, response| {
        replace_links(response, |link| link.replace("/v1/", "/v1/v1/"))
    }),
    list_fault("first leads to page 0", &["paging.links_lead"], |_, response| {
        let first = response.body["links"]["first"].as_str().expect("the link is a string");
        response.body["links"]["first"] = json!(first.replace("page=1", "page=0"));
    })
    .may_fail(&["paging.links_keep_size"]),
    list_fault("last leads one page too far", &["paging.links_lead"], |_, response| {
        let last_page = response.body["meta"]["last_page"].as_u64().expect("the page is a number");
        let link = response.body["links"]["last"].as_str().expect("the link is a string");
        let wrong = link.replace(&format!("&page={last_page}"), &format!("&page={}", last_page + 1));
        response.body["links"]["last"] = json!(wrong);
    }),
    list_fault("next skips a page", &["paging.links_lead"], |request, response| {
        if let Some(next) = response.body["links"]["next"].as_str() {
            let page = request.number("page").unwrap_or(1) + 1;
            let wrong = next.replace(&format!("&page={page}"), &format!("&page={}", page + 1));
            response.body["links"]["next"] = json!(wrong);
        }
    }),
    list_fault("next is null on the second page", &["paging.ends"], |request, response| {
        if request.number("page") == Some(2) {
            response.body["links"]["next"] = Value::Null;
        }
    }),
    list_fault("links have https although requests use http", &["paging.links_origin"], |_, response| {
        replace_links(response, |link| link.replace("http://", "https://"))
    }),
    list_fault("links name the port behind the proxy", &["paging.links_origin"], |_, response| {
        replace_links(response, |link| {
            let (_, path) = link.split_once("/v1/").expect("the path starts with /v1");
            format!("http://127.0.0.1:9000/v1/{path}")
        })
    }),
];

/// Removes a parameter from all links.
pub(crate) fn drop_link_parameter(response: &mut EditableResponse, name: &str) {
    for rel in ["first", "last", "prev", "next"] {
        let Some(link) = response.body["links"][rel].as_str() else { continue };
        let (path, query) = link.split_once('?').expect("a link has a query");
        let kept: Vec<_> = query.split('&').filter(|pair| !pair.starts_with(&format!("{name}="))).collect();
        response.body["links"][rel] = json!(format!("{path}?{}", kept.join("&")));
    }
}
