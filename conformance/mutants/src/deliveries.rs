//! Lies in deliveries: in their headers, their bodies, their signatures, and where they go.

use conformance::Mode;
use serde_json::{Value, json};

use crate::Mutant;
use crate::mini::Mini;
use crate::mini::sender::{Leaving, Sender, Sent, mac, secret_of, timed};

/// A service that sends, with a change to it.
pub(crate) fn sends(mini: &mut Mini, change: impl FnOnce(&mut Sender)) {
    let mut sender = Sender::default();
    change(&mut sender);
    mini.sender = Some(sender);
}

/// Changes what bodies say.
pub(crate) fn words(mini: &mut Mini, change: fn(&Leaving, &mut Value)) {
    sends(mini, |it| it.words = change);
}

/// Changes what goes over the wire.
fn wire(mini: &mut Mini, change: fn(&Leaving, &mut Sent)) {
    sends(mini, |it| it.wire = change);
}

/// Whether this one is the delivery of a type to an endpoint: a fault in one is a fault.
fn is(leaving: &Leaving, path: &str, kind: &str) -> bool {
    leaving.path == path && leaving.kind == kind
}

/// Takes a member away.
pub(crate) fn remove(holder: &mut Value, name: &str) {
    holder.as_object_mut().expect("an object").remove(name);
}

pub(crate) const MUTANTS: &[Mutant] = &[
    // The request.
    Mutant {
        name: "deliveries are GET requests",
        breaks: &["webhooks.post"],
        may: &[],
        spoil: |mini| wire(mini, |_, sent| sent.method = "GET".into()),
    },
    Mutant {
        name: "one delivery is a PUT",
        breaks: &["webhooks.post"],
        may: &[],
        spoil: |mini| {
            wire(mini, |it, sent| {
                if is(it, "/test", "invoice.viewed") {
                    sent.method = "PUT".into();
                }
            });
        },
    },
    Mutant {
        name: "a body is no JSON",
        breaks: &["webhooks.post"],
        may: &[],
        spoil: |mini| {
            sends(mini, |sender| {
                sender.sign = |secret, t, body| {
                    let body = body.strip_prefix(b"{").unwrap_or(body);
                    format!("t={t},v1={}", hex::encode(mac(secret, &timed(t, body))))
                };
                sender.wire = |_, sent| sent.body = sent.body.split_off(1);
            });
        },
    },
    Mutant {
        name: "bodies are sent as a form",
        breaks: &["webhooks.content_type"],
        may: &[],
        spoil: |mini| {
            wire(mini, |_, sent| sent.set("Content-Type", "application/x-www-form-urlencoded"));
        },
    },
    Mutant {
        name: "bodies have no type",
        breaks: &["webhooks.content_type"],
        may: &[],
        spoil: |mini| wire(mini, |_, sent| sent.drop("Content-Type")),
    },
    Mutant {
        name: "the sender does not say who it is",
        breaks: &["webhooks.user_agent"],
        may: &[],
        spoil: |mini| wire(mini, |_, sent| sent.drop("User-Agent")),
    },
    Mutant {
        name: "the sender calls itself by its library",
        breaks: &["webhooks.user_agent"],
        may: &[],
        spoil: |mini| wire(mini, |_, sent| sent.set("User-Agent", "python-requests/2.31.0")),
    },
    Mutant {
        name: "the event header is that of another event",
        breaks: &["webhooks.event_header"],
        may: &[],
        spoil: |mini| {
            wire(mini, |it, sent| {
                if it.kind == "charge.refunded" {
                    sent.set("X-Service-Event", "charge.paid");
                }
            });
        },
    },
    Mutant {
        name: "there is no event header",
        breaks: &["webhooks.event_header"],
        may: &[],
        spoil: |mini| wire(mini, |_, sent| sent.drop("X-Service-Event")),
    },
    Mutant {
        name: "header and body name different deliveries",
        breaks: &["webhooks.delivery_id"],
        may: &[],
        spoil: |mini| {
            wire(mini, |it, sent| {
                if is(it, "/live", "invoice.sent") {
                    sent.set("X-Service-Delivery", "0190a5c7-7f3e-7ddd-8def-aaaaaaaaaaaa");
                }
            });
        },
    },
    Mutant {
        name: "the delivery header holds the event's id",
        breaks: &["webhooks.delivery_id"],
        may: &[],
        spoil: |mini| {
            wire(mini, |it, sent| sent.set("X-Service-Delivery", it.event["id"].as_str().expect("an id")));
        },
    },
    Mutant {
        name: "delivery ids are numbers in a row",
        breaks: &["webhooks.delivery_id"],
        may: &[],
        spoil: |mini| {
            sends(mini, |sender| {
                sender.words = |_, body| body["id"] = json!("4711");
                sender.wire = |_, sent| sent.set("X-Service-Delivery", "4711");
            });
        },
    },
    // The body.
    Mutant {
        name: "the body does not say which mode",
        breaks: &["webhooks.body"],
        may: &[],
        spoil: |mini| {
            words(mini, |it, body| {
                if it.kind == "invoice.created" {
                    remove(body, "mode");
                }
            });
        },
    },
    Mutant {
        name: "the body has no event_id",
        breaks: &["webhooks.body"],
        may: &[],
        spoil: |mini| {
            words(mini, |it, body| {
                if is(it, "/test-some", "charge.paid") {
                    body["event_id"] = Value::Null;
                }
            });
        },
    },
    Mutant {
        name: "a body names a key twice",
        breaks: &["webhooks.duplicate_keys"],
        may: &[],
        spoil: |mini| {
            sends(mini, |sender| {
                sender.sign = |secret, t, body| {
                    format!("t={t},v1={}", hex::encode(mac(secret, &timed(t, &doubled(body)))))
                };
                sender.wire = |_, sent| sent.body = doubled(&sent.body);
            });
        },
    },
    Mutant {
        name: "a type of its own",
        breaks: &["webhooks.event_type"],
        may: &[],
        spoil: |mini| {
            sends(mini, |sender| {
                sender.words = |it, body| {
                    if is(it, "/live", "invoice.viewed") {
                        body["event"] = json!("invoice.opened");
                        // Nobody could have asked for it, and nothing says that there is no such event.
                        body["test"] = json!(true);
                    }
                };
                sender.wire = |it, sent| {
                    if is(it, "/live", "invoice.viewed") {
                        sent.set("X-Service-Event", "invoice.opened");
                    }
                };
            });
        },
    },
    Mutant {
        name: "times have seconds only",
        breaks: &["webhooks.created_at"],
        may: &[],
        spoil: |mini| {
            words(mini, |_, body| {
                body["created_at"] =
                    json!(body["created_at"].as_str().expect("a time").replace(".000000", ""));
            });
        },
    },
    Mutant {
        name: "times have milliseconds",
        breaks: &["webhooks.created_at"],
        may: &[],
        spoil: |mini| {
            words(mini, |_, body| {
                body["created_at"] =
                    json!(body["created_at"].as_str().expect("a time").replace(".000000", ".000"));
            });
        },
    },
    Mutant {
        name: "a charge event without its charge",
        breaks: &["webhooks.data"],
        may: &[],
        spoil: |mini| {
            words(mini, |it, body| {
                if it.kind == "charge.expired" {
                    body["data"]["charge"] = Value::Null;
                }
            });
        },
    },
    Mutant {
        name: "an invoice event with a charge beside its invoice",
        breaks: &["webhooks.data"],
        may: &[],
        spoil: |mini| {
            words(mini, |it, body| {
                if it.kind == "invoice.voided" {
                    body["data"]["charge"] = Sender::charge(it.mode);
                }
            });
        },
    },
    // The signature.
    Mutant {
        name: "only the body is signed",
        breaks: &["webhooks.signature_covers"],
        may: &[],
        spoil: |mini| {
            sends(mini, |it| {
                it.sign = |secret, t, body| format!("t={t},v1={}", hex::encode(mac(secret, body)))
            });
        },
    },
    Mutant {
        name: "the body is written again after it was signed",
        breaks: &["webhooks.signature_covers"],
        may: &[],
        spoil: |mini| {
            sends(mini, |it| {
                it.sign = |secret, t, body| {
                    let value: Value = serde_json::from_slice(body).expect("JSON");
                    let pretty = serde_json::to_string_pretty(&value).expect("JSON");
                    format!("t={t},v1={}", hex::encode(mac(secret, &timed(t, pretty.as_bytes()))))
                };
            });
        },
    },
    Mutant {
        name: "t is in milliseconds",
        breaks: &["webhooks.signature_shape"],
        may: &[],
        spoil: |mini| {
            sends(mini, |it| {
                it.sign = |secret, t, body| {
                    let t = t * 1000;
                    format!("t={t},v1={}", hex::encode(mac(secret, &timed(t, body))))
                };
            });
        },
    },
    Mutant {
        name: "the header holds the signature alone",
        breaks: &["webhooks.signature_shape"],
        may: &[],
        spoil: |mini| {
            sends(mini, |it| it.sign = |secret, t, body| hex::encode(mac(secret, &timed(t, body))));
        },
    },
    Mutant {
        name: "there is no signature",
        breaks: &["webhooks.signature_shape", "webhooks.signed"],
        may: &[],
        spoil: |mini| wire(mini, |_, sent| sent.drop("X-Service-Signature")),
    },
    Mutant {
        name: "every signature is the same",
        breaks: &["webhooks.signed"],
        may: &[],
        spoil: |mini| sends(mini, |it| it.sign = |_, t, _| format!("t={t},v1={}", "ab".repeat(32))),
    },
    Mutant {
        name: "a hash is no signature",
        breaks: &["webhooks.signed"],
        may: &[],
        spoil: |mini| {
            sends(mini, |it| {
                it.sign = |_, t, body| {
                    use sha2::Digest;
                    format!("t={t},v1={}", hex::encode(sha2::Sha256::digest(timed(t, body))))
                };
            });
        },
    },
    Mutant {
        name: "one secret signs for all endpoints",
        breaks: &["webhooks.signed"],
        may: &[],
        spoil: |mini| sends(mini, |it| it.secret = |_| secret_of("/live")),
    },
    Mutant {
        name: "one delivery is signed with something else",
        breaks: &["webhooks.signed"],
        may: &[],
        spoil: |mini| {
            wire(mini, |it, sent| {
                if is(it, "/test", "charge.late_payment") {
                    sent.set("X-Service-Signature", &format!("t=1767603600,v1={}", "cd".repeat(32)));
                }
            });
        },
    },
    // Where they go.
    Mutant {
        name: "test endpoints get live events too",
        breaks: &["webhooks.mode_endpoints"],
        may: &[],
        spoil: |mini| {
            sends(mini, |it| {
                it.tells = |endpoint, mode, kind| {
                    let wants = endpoint.events.as_ref().is_some_and(|it| it.contains(kind));
                    wants && (endpoint.mode == Some(mode) || (mode == Mode::Live && kind == "invoice.paid"))
                };
            });
        },
    },
    Mutant {
        name: "one type goes to everybody",
        breaks: &["webhooks.subscribed"],
        may: &[],
        spoil: |mini| {
            sends(mini, |it| {
                it.tells = |endpoint, mode, kind| {
                    let wants = endpoint.events.as_ref().is_some_and(|it| it.contains(kind));
                    endpoint.mode == Some(mode) && (wants || kind == "invoice.voided")
                };
            });
        },
    },
    Mutant {
        name: "one type is never delivered",
        breaks: &["webhooks.pushed"],
        may: &[],
        spoil: |mini| {
            sends(mini, |it| {
                it.tells = |endpoint, mode, kind| {
                    let wants = endpoint.events.as_ref().is_some_and(|it| it.contains(kind));
                    wants && endpoint.mode == Some(mode) && kind != "charge.underpaid"
                };
            });
        },
    },
    Mutant {
        name: "a second endpoint gets nothing",
        breaks: &["webhooks.pushed"],
        may: &[],
        spoil: |mini| {
            sends(mini, |it| {
                it.tells = |endpoint, mode, kind| {
                    let wants = endpoint.events.as_ref().is_some_and(|it| it.contains(kind));
                    let first = endpoint.path == "/test" || kind != "invoice.paid";
                    wants && endpoint.mode == Some(mode) && (endpoint.mode == Some(Mode::Live) || first)
                };
                it.reversed = true;
            });
        },
    },
    Mutant {
        name: "redirects are followed",
        breaks: &["webhooks.redirects"],
        may: &[],
        spoil: |mini| sends(mini, |it| it.follows_redirects = true),
    },
    Mutant {
        name: "an endpoint may be on this machine",
        breaks: &["endpoints.address"],
        may: &[],
        spoil: |mini| sends(mini, |it| it.takes = |address| !address.contains("10.")),
    },
    Mutant {
        name: "an endpoint may be a cloud's metadata service",
        breaks: &["endpoints.address"],
        may: &[],
        spoil: |mini| {
            sends(mini, |it| it.takes = |address| address.contains("shop") || address.contains("169.254."));
        },
    },
    // What the API says.
    Mutant {
        name: "an event_id that the API does not know",
        breaks: &["webhooks.event_id"],
        may: &["webhooks.pushed"],
        spoil: |mini| {
            words(mini, |it, body| {
                if is(it, "/live", "invoice.voided") {
                    body["event_id"] = json!("0190a5c6-7f3e-7cc1-8def-ffffffffffff");
                }
            });
        },
    },
    Mutant {
        name: "one event_id for two events",
        breaks: &["webhooks.event_id"],
        may: &["webhooks.pushed"],
        spoil: |mini| {
            words(mini, |it, body| {
                if is(it, "/live", "charge.refunded") {
                    body["event_id"] = json!("0190a5c6-7f3e-7cc1-8def-003690ce9abe");
                }
            });
        },
    },
    Mutant {
        name: "the body names the other mode",
        breaks: &["webhooks.mode"],
        may: &["webhooks.mode_endpoints"],
        spoil: |mini| {
            words(mini, |it, body| {
                if is(it, "/test", "charge.created") {
                    body["mode"] = json!("live");
                }
            });
        },
    },
    Mutant {
        name: "mode is a word of its own",
        breaks: &["webhooks.mode"],
        may: &[],
        spoil: |mini| {
            words(mini, |it, body| {
                if is(it, "/live", "charge.created") {
                    body["mode"] = json!("production");
                }
            });
        },
    },
    Mutant {
        name: "a delivered event can be read by the other mode's key",
        breaks: &["isolation.delivered"],
        may: &[],
        spoil: |mini| {
            sends(mini, |_| {});
            mini.warp(|asked, reply| {
                if asked.path.starts_with("/v1/events/0190a5c6") && reply.status == 404 {
                    reply.status = 200;
                    let id = asked.path.rsplit('/').next().expect("an id");
                    reply.body = json!({ "data": {
                        "id": id, "type": "charge.paid", "details": {}, "charge": {}, "invoice": null,
                        "created_at": "2026-02-01T10:00:00.000000Z",
                    } });
                }
            });
        },
    },
    Mutant {
        name: "a delivered event is forbidden to the other mode's key",
        breaks: &["isolation.delivered"],
        may: &[],
        spoil: |mini| {
            sends(mini, |_| {});
            mini.warp(|asked, reply| {
                if asked.path.starts_with("/v1/events/0190a5c6") && reply.status == 404 {
                    reply.status = 403;
                }
            });
        },
    },
];

/// The same body, with its mode named twice.
fn doubled(body: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(body.to_vec()).expect("text");
    let mode = if text.contains("\"mode\":\"live\"") { "live" } else { "test" };
    text.replacen('{', &format!("{{\"mode\":\"{mode}\","), 1).into_bytes()
}
