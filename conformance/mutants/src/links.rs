//! Faults in the links of a page.

use serde_json::{Value, json};

use crate::fake::Reply;
use crate::mutant::{Mutant, each_link, list, rule};
use conformance::Mode;

pub(crate) const MUTANTS: &[Mutant] = &[
    list("a link is missing", &["paging.links"], |_, reply| {
        drop(reply.body["links"].as_object_mut().expect("`links` is an object").remove("first"))
    }),
    list("prev is not null on the first page", &["paging.ends"], |_, reply| {
        if reply.body["links"]["prev"].is_null() {
            reply.body["links"]["prev"] = reply.body["links"]["first"].clone();
        }
    }),
    list("next is never null", &["paging.ends"], |_, reply| {
        if reply.body["links"]["next"].is_null() {
            reply.body["links"]["next"] = reply.body["links"]["last"].clone();
        }
    })
    .may_fail(&["paging.links_lead"]),
    list("next is always null", &["paging.ends"], |_, reply| reply.body["links"]["next"] = Value::Null),
    list("next leads to the same page", &["paging.links_lead"], |request, reply| {
        if let Some(next) = reply.body["links"]["next"].as_str() {
            let page = request.number("page").unwrap_or(1);
            let wrong = next.replace(&format!("&page={}", page + 1), &format!("&page={page}"));
            reply.body["links"]["next"] = json!(wrong);
        }
    }),
    rule("next of a filtered list repeats the last record", &["paging.links_lead"], |server| {
        let books = [server.live.clone(), server.test.clone()];
        server.rewrite(move |request, reply| {
            if reply.status != 200 || !request.query.contains_key("type") {
                return;
            }
            each_link(reply, |link| format!("{link}&cursor=1"));
            let page = request.number("page").filter(|_| request.query.contains_key("cursor"));
            let (Some(page @ 2..), Some(size), Some(mode)) = (page, request.number("per_page"), request.mode)
            else {
                return;
            };
            let mut all = request.clone();
            all.query.remove("page");
            all.query.insert("per_page".into(), "100".into());
            let from = usize::try_from((page - 1) * size).expect("the index fits in a usize") - 1;
            let mut rows = books[usize::from(mode == Mode::Test)].respond(&all, mode, "").body["data"].take();
            let rows = rows.as_array_mut().expect("`data` is an array");
            let count = reply.body["data"].as_array().map_or(0, Vec::len);
            reply.body["data"] = rows.drain(from..from + count).collect();
        });
    }),
    list("last leads to the first page", &["paging.links_lead"], |_, reply| {
        reply.body["links"]["last"] = reply.body["links"]["first"].clone()
    }),
    list("links lead to another path", &["paging.links_lead"], |_, reply| {
        reply.body["links"]["last"] = json!("/dashboard")
    }),
    list("links omit per_page", &["paging.links_keep_size"], |_, reply| {
        drop_link_parameter(reply, "per_page")
    }),
    list("links omit the filter", &["paging.links_keep_filters"], |_, reply| {
        drop_link_parameter(reply, "type")
    }),
    list("links lead to another host", &["paging.links_origin"], |request, reply| {
        let first = reply.body["links"]["first"].as_str().expect("a link");
        let query = first.split_once('?').expect("a query").1;
        reply.body["links"]["first"] = json!(format!("http://internal.example:8080{}?{query}", request.path));
    }),
    list("prev is omitted on the first page", &["paging.links"], |_, reply| {
        if reply.body["links"]["prev"].is_null() {
            reply.body["links"].as_object_mut().expect("`links` is an object").remove("prev");
        }
    }),
    list("prev and next are empty texts at the ends", &["paging.ends"], |_, reply| {
        for rel in ["prev", "next"] {
            if reply.body["links"][rel].is_null() {
                reply.body["links"][rel] = json!("");
            }
        }
    })
    .may_fail(&["paging.links_keep_size", "paging.links_lead"]),
    list("prev and next are false at the ends", &["paging.links"], |_, reply| {
        for rel in ["prev", "next"] {
            if reply.body["links"][rel].is_null() {
                reply.body["links"][rel] = json!(false);
            }
        }
    }),
    list("first and last are null", &["paging.links"], |_, reply| {
        for rel in ["first", "last"] {
            reply.body["links"][rel] = Value::Null;
        }
    }),
    list("links are objects with an href", &["paging.links"], |_, reply| {
        for rel in ["first", "last", "prev", "next"] {
            if reply.body["links"][rel].is_string() {
                reply.body["links"][rel] = json!({ "href": reply.body["links"][rel] });
            }
        }
    }),
    list("links are page numbers", &["paging.links"], |_, reply| {
        reply.body["links"]["first"] = json!(1);
        reply.body["links"]["last"] = reply.body["meta"]["last_page"].clone();
    }),
    list("the ampersands of links are written for HTML", &["paging.links_lead"], |_, reply| {
        each_link(reply, |link| link.replace('&', "&amp;"))
    })
    .may_fail(&["paging.links_keep_size", "paging.links_keep_filters"]),
    list("the query of links is encoded twice", &["paging.links_lead"], |_, reply| {
        each_link(reply, |link| link.replace('=', "%3D"))
    })
    .may_fail(&["paging.links_keep_size", "paging.links_keep_filters"]),
    list("links name their path twice", &["paging.links_lead"], |_, reply| {
        each_link(reply, |link| link.replace("/v1/", "/v1/v1/"))
    }),
    list("first leads to page 0", &["paging.links_lead"], |_, reply| {
        let first = reply.body["links"]["first"].as_str().expect("a link");
        reply.body["links"]["first"] = json!(first.replace("page=1", "page=0"));
    })
    .may_fail(&["paging.links_keep_size"]),
    list("last leads one page too far", &["paging.links_lead"], |_, reply| {
        let last = reply.body["meta"]["last_page"].as_u64().expect("a number");
        let link = reply.body["links"]["last"].as_str().expect("a link");
        let wrong = link.replace(&format!("&page={last}"), &format!("&page={}", last + 1));
        reply.body["links"]["last"] = json!(wrong);
    }),
    list("next skips a page", &["paging.links_lead"], |request, reply| {
        if let Some(next) = reply.body["links"]["next"].as_str() {
            let page = request.number("page").unwrap_or(1) + 1;
            let wrong = next.replace(&format!("&page={page}"), &format!("&page={}", page + 1));
            reply.body["links"]["next"] = json!(wrong);
        }
    }),
    list("next is null on the second page already", &["paging.ends"], |request, reply| {
        if request.number("page") == Some(2) {
            reply.body["links"]["next"] = Value::Null;
        }
    }),
    list("links have https although requests use http", &["paging.links_origin"], |_, reply| {
        each_link(reply, |link| link.replace("http://", "https://"))
    }),
    list("links name the port behind the proxy", &["paging.links_origin"], |_, reply| {
        each_link(reply, |link| {
            let (_, path) = link.split_once("/v1/").expect("a path below /v1");
            format!("http://127.0.0.1:9000/v1/{path}")
        })
    }),
];

/// Removes a parameter from all links.
pub(crate) fn drop_link_parameter(reply: &mut Reply, name: &str) {
    for rel in ["first", "last", "prev", "next"] {
        let Some(link) = reply.body["links"][rel].as_str() else { continue };
        let (path, query) = link.split_once('?').expect("a link has a query");
        let kept: Vec<_> = query.split('&').filter(|pair| !pair.starts_with(&format!("{name}="))).collect();
        reply.body["links"][rel] = json!(format!("{path}?{}", kept.join("&")));
    }
}
