//! Lies about the links of a page.

use serde_json::{Value, json};

use crate::mini::{Mini, Reply};
use crate::{Mutant, lists};

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "a link is missing",
        breaks: &["paging.links"],
        may: &[],
        spoil: |mini| {
            lists(mini, |_, reply| drop(reply.body["links"].as_object_mut().expect("links").remove("first")));
        },
    },
    Mutant {
        name: "prev is not null on the first page",
        breaks: &["paging.ends"],
        may: &[],
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
        may: &[],
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
        may: &[],
        spoil: |mini| lists(mini, |_, reply| reply.body["links"]["next"] = Value::Null),
    },
    Mutant {
        name: "next leads to the same page",
        breaks: &["paging.links_lead"],
        may: &[],
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
        may: &[],
        spoil: |mini| {
            lists(mini, |_, reply| reply.body["links"]["last"] = reply.body["links"]["first"].clone())
        },
    },
    Mutant {
        name: "links lead to another path",
        breaks: &["paging.links_lead"],
        may: &[],
        spoil: |mini| lists(mini, |_, reply| reply.body["links"]["last"] = json!("/dashboard")),
    },
    Mutant {
        name: "links forget per_page",
        breaks: &["paging.links_keep_size"],
        may: &[],
        spoil: |mini| lists(mini, |_, reply| forget(reply, "per_page")),
    },
    Mutant {
        name: "links forget the filter",
        breaks: &["paging.links_keep_filters"],
        may: &[],
        spoil: |mini| lists(mini, |_, reply| forget(reply, "type")),
    },
    Mutant {
        name: "links lead to another host",
        breaks: &["paging.links_origin"],
        may: &[],
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
        name: "prev is left out on the first page",
        breaks: &["paging.links"],
        may: &[],
        spoil: |mini| {
            lists(mini, |_, reply| {
                if reply.body["links"]["prev"].is_null() {
                    reply.body["links"].as_object_mut().expect("links").remove("prev");
                }
            });
        },
    },
    Mutant {
        name: "prev and next are empty texts at the ends",
        breaks: &["paging.ends"],
        may: &[],
        spoil: |mini| {
            lists(mini, |_, reply| {
                for rel in ["prev", "next"] {
                    if reply.body["links"][rel].is_null() {
                        reply.body["links"][rel] = json!("");
                    }
                }
            });
        },
    },
    Mutant {
        name: "prev and next are false at the ends",
        breaks: &["paging.links"],
        may: &[],
        spoil: |mini| {
            lists(mini, |_, reply| {
                for rel in ["prev", "next"] {
                    if reply.body["links"][rel].is_null() {
                        reply.body["links"][rel] = json!(false);
                    }
                }
            });
        },
    },
    Mutant {
        name: "first and last are null",
        breaks: &["paging.links"],
        may: &[],
        spoil: |mini| {
            lists(mini, |_, reply| {
                for rel in ["first", "last"] {
                    reply.body["links"][rel] = Value::Null;
                }
            });
        },
    },
    Mutant {
        name: "links are objects with an href",
        breaks: &["paging.links"],
        may: &[],
        spoil: |mini| {
            lists(mini, |_, reply| {
                for rel in ["first", "last", "prev", "next"] {
                    if reply.body["links"][rel].is_string() {
                        reply.body["links"][rel] = json!({ "href": reply.body["links"][rel] });
                    }
                }
            });
        },
    },
    Mutant {
        name: "links are page numbers",
        breaks: &["paging.links"],
        may: &[],
        spoil: |mini| {
            lists(mini, |_, reply| {
                reply.body["links"]["first"] = json!(1);
                reply.body["links"]["last"] = reply.body["meta"]["last_page"].clone();
            });
        },
    },
    Mutant {
        name: "the ampersands of links are written for HTML",
        breaks: &["paging.links_lead"],
        may: &["paging.links_keep_size", "paging.links_keep_filters"],
        spoil: |mini| each_link(mini, |link| link.replace('&', "&amp;")),
    },
    Mutant {
        name: "the query of links is encoded twice",
        breaks: &["paging.links_lead"],
        may: &["paging.links_keep_size", "paging.links_keep_filters"],
        spoil: |mini| each_link(mini, |link| link.replace('=', "%3D")),
    },
    Mutant {
        name: "links name their path twice",
        breaks: &["paging.links_lead"],
        may: &[],
        spoil: |mini| each_link(mini, |link| link.replace("/v1/", "/v1/v1/")),
    },
    Mutant {
        name: "first leads to page 0",
        breaks: &["paging.links_lead"],
        may: &[],
        spoil: |mini| {
            lists(mini, |_, reply| {
                let first = reply.body["links"]["first"].as_str().expect("a link");
                reply.body["links"]["first"] = json!(first.replace("page=1", "page=0"));
            });
        },
    },
    Mutant {
        name: "last leads one page too far",
        breaks: &["paging.links_lead"],
        may: &[],
        spoil: |mini| {
            lists(mini, |_, reply| {
                let last = reply.body["meta"]["last_page"].as_u64().expect("a number");
                let link = reply.body["links"]["last"].as_str().expect("a link");
                let wrong = link.replace(&format!("&page={last}"), &format!("&page={}", last + 1));
                reply.body["links"]["last"] = json!(wrong);
            });
        },
    },
    Mutant {
        name: "next skips a page",
        breaks: &["paging.links_lead"],
        may: &[],
        spoil: |mini| {
            lists(mini, |asked, reply| {
                if let Some(next) = reply.body["links"]["next"].as_str() {
                    let page = asked.number("page").unwrap_or(1) + 1;
                    let wrong = next.replace(&format!("&page={page}"), &format!("&page={}", page + 1));
                    reply.body["links"]["next"] = json!(wrong);
                }
            });
        },
    },
    Mutant {
        name: "next is null on the second page already",
        breaks: &["paging.ends"],
        may: &[],
        spoil: |mini| {
            lists(mini, |asked, reply| {
                if asked.number("page") == Some(2) {
                    reply.body["links"]["next"] = Value::Null;
                }
            });
        },
    },
    Mutant {
        name: "links say https where the service is asked by http",
        breaks: &["paging.links_origin"],
        may: &[],
        spoil: |mini| each_link(mini, |link| link.replace("http://", "https://")),
    },
    Mutant {
        name: "links name the port behind the proxy",
        breaks: &["paging.links_origin"],
        may: &[],
        spoil: |mini| {
            each_link(mini, |link| {
                let (_, path) = link.split_once("/v1/").expect("a path below /v1");
                format!("http://127.0.0.1:9000/v1/{path}")
            });
        },
    },
];

fn each_link(mini: &mut Mini, change: fn(&str) -> String) {
    mini.warp(move |asked, reply| {
        if reply.status != 200 || !asked.is_list() {
            return;
        }
        for rel in ["first", "last", "prev", "next"] {
            if let Some(link) = reply.body["links"][rel].as_str() {
                reply.body["links"][rel] = json!(change(link));
            }
        }
    });
}

/// Takes a parameter out of every link.
pub(crate) fn forget(reply: &mut Reply, name: &str) {
    for rel in ["first", "last", "prev", "next"] {
        let Some(link) = reply.body["links"][rel].as_str() else { continue };
        let (path, query) = link.split_once('?').expect("a link has a query");
        let kept: Vec<_> = query.split('&').filter(|pair| !pair.starts_with(&format!("{name}="))).collect();
        reply.body["links"][rel] = json!(format!("{path}?{}", kept.join("&")));
    }
}
