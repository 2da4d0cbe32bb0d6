//! Faults in deliveries: in their headers, bodies, signatures and routing.

use conformance::Mode;
use serde_json::{Value, json};

use crate::fake::sender::{Delivery, Sender, mac, secret_of, signed_text};
use crate::mutant::{Mutant, add_sender, body, delivery, remove, rule};

/// Returns `true` for a delivery of this event type to the endpoint with this path.
fn is_delivery_of(delivery: &Delivery, path: &str, event_type: &str) -> bool {
    delivery.path == path && delivery.kind == event_type
}

pub(crate) const MUTANTS: &[Mutant] = &[
    // The request.
    rule("the clock of the sender is far off", &["webhooks.clock"], |server| {
        add_sender(server, |sender| sender.settles = false);
    }),
    delivery("deliveries are GET requests", &["webhooks.post"], |_, request| request.method = "GET".into()),
    delivery("one delivery is a PUT", &["webhooks.post"], |delivery, request| {
        if is_delivery_of(delivery, "/test", "invoice.viewed") {
            request.method = "PUT".into();
        }
    }),
    rule("a body is not JSON", &["webhooks.post"], |server| {
        add_sender(server, |sender| {
            sender.sign = |secret, t, body| {
                let body = body.strip_prefix(b"{").unwrap_or(body);
                format!("t={t},v1={}", hex::encode(mac(secret, &signed_text(t, body))))
            };
            sender.change_request = |_, request| request.body = request.body.split_off(1);
        });
    }),
    delivery("bodies are labelled as a form", &["webhooks.content_type"], |_, request| {
        request.set("Content-Type", "application/x-www-form-urlencoded")
    }),
    delivery("deliveries have no Content-Type", &["webhooks.content_type"], |_, request| {
        request.drop("Content-Type")
    }),
    delivery("deliveries have no User-Agent", &["webhooks.user_agent"], |_, request| {
        request.drop("User-Agent")
    }),
    delivery("the User-Agent is the default of an HTTP library", &["webhooks.user_agent"], |_, request| {
        request.set("User-Agent", "python-requests/2.31.0")
    }),
    delivery(
        "the event header is the type of another event",
        &["webhooks.event_header"],
        |delivery, request| {
            if delivery.kind == "charge.refunded" {
                request.set("X-Service-Event", "charge.paid");
            }
        },
    ),
    delivery("there is no event header", &["webhooks.event_header"], |_, request| {
        request.drop("X-Service-Event")
    }),
    delivery("header and body name different deliveries", &["webhooks.delivery_id"], |delivery, request| {
        if is_delivery_of(delivery, "/live", "invoice.sent") {
            request.set("X-Service-Delivery", "0190a5c7-7f3e-7ddd-8def-aaaaaaaaaaaa");
        }
    }),
    delivery("the delivery header holds the event's id", &["webhooks.delivery_id"], |delivery, request| {
        request.set("X-Service-Delivery", delivery.event["id"].as_str().expect("the id is a string"))
    }),
    rule("delivery ids are reused", &["webhooks.delivery_id"], |server| {
        add_sender(server, |sender| {
            sender.change_body = Box::new(|delivery, body| body["id"] = json!(repeated_id(delivery)));
            sender.change_request =
                |delivery, request| request.set("X-Service-Delivery", &repeated_id(delivery));
        });
    }),
    body("a delivery has a different invoice than its event", &["webhooks.event_id"], |delivery, body| {
        if is_delivery_of(delivery, "/live", "invoice.viewed") {
            body["data"]["invoice"]["code"] = json!("another0000001");
        }
    }),
    rule("every delivery id is the number 4711", &["webhooks.delivery_id"], |server| {
        add_sender(server, |sender| {
            sender.change_body = Box::new(|_, body| body["id"] = json!("4711"));
            sender.change_request = |_, request| request.set("X-Service-Delivery", "4711");
        });
    }),
    // The body.
    body("the body has no mode", &["webhooks.body"], |delivery, body| {
        if delivery.kind == "invoice.created" {
            remove(body, "mode");
        }
    }),
    body("the body has no event_id", &["webhooks.body"], |delivery, body| {
        if is_delivery_of(delivery, "/test-some", "charge.paid") {
            body["event_id"] = Value::Null;
        }
    }),
    rule("a body has a duplicate member", &["webhooks.duplicate_keys"], |server| {
        add_sender(server, |sender| {
            sender.sign = |secret, t, body| {
                format!("t={t},v1={}", hex::encode(mac(secret, &signed_text(t, &duplicate_mode(body)))))
            };
            sender.change_request = |_, request| request.body = duplicate_mode(&request.body);
        });
    }),
    rule("a delivery has an unknown type", &["webhooks.event_type"], |server| {
        add_sender(server, |sender| {
            sender.change_body = Box::new(|delivery, body| {
                if is_delivery_of(delivery, "/live", "invoice.viewed") {
                    body["event"] = json!("invoice.opened");
                    // A test delivery needs no subscription and no event in the API.
                    body["test"] = json!(true);
                }
            });
            sender.change_request = |delivery, request| {
                if is_delivery_of(delivery, "/live", "invoice.viewed") {
                    request.set("X-Service-Event", "invoice.opened");
                }
            };
        });
    }),
    body("timestamps have no fraction", &["webhooks.created_at"], |_, body| {
        body["created_at"] =
            json!(body["created_at"].as_str().expect("the time is a string").replace(".000000", ""));
    }),
    body("timestamps have milliseconds", &["webhooks.created_at"], |_, body| {
        body["created_at"] =
            json!(body["created_at"].as_str().expect("the time is a string").replace(".000000", ".000"));
    }),
    body("a charge event without its charge", &["webhooks.data"], |delivery, body| {
        if delivery.kind == "charge.expired" {
            body["data"]["charge"] = Value::Null;
        }
    }),
    body(
        "an invoice event with a charge in addition to its invoice",
        &["webhooks.data"],
        |delivery, body| {
            if delivery.kind == "invoice.voided" {
                body["data"]["charge"] = Sender::charge(delivery.mode);
            }
        },
    ),
    // The signature.
    rule("only the body is signed", &["webhooks.signature_covers"], |server| {
        add_sender(server, |sender| {
            sender.sign = |secret, t, body| format!("t={t},v1={}", hex::encode(mac(secret, body)))
        });
    }),
    rule("the body is formatted again after signing", &["webhooks.signature_covers"], |server| {
        add_sender(server, |sender| {
            sender.sign = |secret, t, body| {
                let value: Value = serde_json::from_slice(body).expect("valid JSON");
                let pretty = serde_json::to_string_pretty(&value).expect("valid JSON");
                format!("t={t},v1={}", hex::encode(mac(secret, &signed_text(t, pretty.as_bytes()))))
            };
        });
    }),
    rule("t is in milliseconds", &["webhooks.signature_shape"], |server| {
        add_sender(server, |sender| {
            sender.sign = |secret, t, body| {
                let t = t * 1000;
                format!("t={t},v1={}", hex::encode(mac(secret, &signed_text(t, body))))
            };
        });
    }),
    rule("the signature header has no t", &["webhooks.signature_shape"], |server| {
        add_sender(server, |sender| {
            sender.sign = |secret, t, body| hex::encode(mac(secret, &signed_text(t, body)))
        });
    }),
    delivery("there is no signature", &["webhooks.signature_shape", "webhooks.signed"], |_, request| {
        request.drop("X-Service-Signature")
    }),
    rule("every signature is the same", &["webhooks.signed"], |server| {
        add_sender(server, |sender| sender.sign = |_, t, _| format!("t={t},v1={}", "ab".repeat(32)))
    }),
    rule("the signature is a hash without a secret", &["webhooks.signed"], |server| {
        add_sender(server, |sender| {
            sender.sign = |_, t, body| {
                use sha2::Digest;
                format!("t={t},v1={}", hex::encode(sha2::Sha256::digest(signed_text(t, body))))
            };
        });
    }),
    rule("all endpoints share one secret", &["webhooks.signed"], |server| {
        add_sender(server, |sender| sender.secret = |_| secret_of("/live"))
    }),
    delivery("one delivery is signed with another secret", &["webhooks.signed"], |delivery, request| {
        if is_delivery_of(delivery, "/test", "charge.late_payment") {
            request.set("X-Service-Signature", &format!("t=1767603600,v1={}", "cd".repeat(32)));
        }
    }),
    // Routing.
    rule("test endpoints get live events too", &["webhooks.mode_endpoints"], |server| {
        add_sender(server, |sender| {
            sender.delivers = |endpoint, mode, event_type| {
                let is_subscribed = endpoint.events.as_ref().is_some_and(|types| types.contains(event_type));
                is_subscribed
                    && (endpoint.mode == Some(mode) || (mode == Mode::Live && event_type == "invoice.paid"))
            };
        });
    }),
    rule("one type goes to every endpoint", &["webhooks.subscribed"], |server| {
        add_sender(server, |sender| {
            sender.delivers = |endpoint, mode, event_type| {
                let is_subscribed = endpoint.events.as_ref().is_some_and(|types| types.contains(event_type));
                endpoint.mode == Some(mode) && (is_subscribed || event_type == "invoice.voided")
            };
        });
    }),
    rule("one type is never delivered", &["webhooks.pushed"], |server| {
        add_sender(server, |sender| {
            sender.delivers = |endpoint, mode, event_type| {
                let is_subscribed = endpoint.events.as_ref().is_some_and(|types| types.contains(event_type));
                is_subscribed && endpoint.mode == Some(mode) && event_type != "charge.underpaid"
            };
        });
    }),
    rule("nothing is delivered in live mode", &["webhooks.pushed"], |server| {
        add_sender(server, |sender| {
            sender.delivers = |endpoint, mode, event_type| {
                let is_subscribed = endpoint.events.as_ref().is_some_and(|types| types.contains(event_type));
                is_subscribed && endpoint.mode == Some(mode) && mode == Mode::Test
            };
        });
    }),
    rule("a second endpoint gets nothing", &["webhooks.pushed"], |server| {
        add_sender(server, |sender| {
            sender.delivers = |endpoint, mode, event_type| {
                let is_subscribed = endpoint.events.as_ref().is_some_and(|types| types.contains(event_type));
                let is_delivered = endpoint.path == "/test" || event_type != "invoice.paid";
                is_subscribed
                    && endpoint.mode == Some(mode)
                    && (endpoint.mode == Some(Mode::Live) || is_delivered)
            };
            sender.reversed = true;
        });
    }),
    rule("redirects are followed", &["webhooks.redirects"], |server| {
        add_sender(server, |sender| sender.follows = |_| true)
    }),
    rule("only redirects that keep the method are followed", &["webhooks.redirects"], |server| {
        add_sender(server, |sender| sender.follows = |status| status == "307")
    }),
    rule("a loopback endpoint is accepted", &["endpoints.address"], |server| {
        add_sender(server, |sender| {
            sender.accepts = |address| !address.contains("10.") && address.starts_with("https://")
        })
    }),
    rule("a cloud metadata endpoint is accepted", &["endpoints.address"], |server| {
        add_sender(server, |sender| {
            sender.accepts = |address| address.contains("//shop.example/") || address.contains("169.254.")
        });
    }),
    rule("an address with a misleading user name is accepted", &["endpoints.address"], |server| {
        add_sender(server, |sender| sender.accepts = |address| address.starts_with("https://shop.example"));
    }),
    rule("an http endpoint is accepted", &["endpoints.address"], |server| {
        add_sender(server, |sender| {
            sender.accepts = |address| address.contains("//shop.example/") || address.starts_with("http:")
        });
    }),
    // Consistency with the API.
    body("an event_id that is unknown to the API", &["webhooks.event_id"], |delivery, body| {
        if is_delivery_of(delivery, "/live", "invoice.voided") {
            body["event_id"] = json!("0190a5c6-7f3e-7cc1-8def-ffffffffffff");
        }
    })
    .may_fail(&["webhooks.pushed"]),
    body("one event_id for two events", &["webhooks.event_id"], |delivery, body| {
        if is_delivery_of(delivery, "/live", "charge.refunded") {
            body["event_id"] = json!("0190a5c6-7f3e-7cc1-8def-003690ce9abe");
        }
    })
    .may_fail(&["webhooks.pushed"]),
    body("the body names the other mode", &["webhooks.mode"], |delivery, body| {
        if is_delivery_of(delivery, "/test", "charge.created") {
            body["mode"] = json!("live");
        }
    })
    .may_fail(&["webhooks.mode_endpoints"]),
    body("the body has an unknown mode", &["webhooks.mode"], |delivery, body| {
        if is_delivery_of(delivery, "/live", "charge.created") {
            body["mode"] = json!("production");
        }
    }),
    rule("a delivered event can be read by the other mode's key", &["isolation.delivered"], |server| {
        add_sender(server, |_| {});
        server.rewrite(|request, response| {
            if request.path.starts_with("/v1/events/0190a5c6") && response.status == 404 {
                response.status = 200;
                let id = request.path.rsplit('/').next().expect("`rsplit` yields at least one part");
                response.body = json!({ "data": {
                        "id": id, "type": "charge.paid", "details": {}, "charge": {}, "invoice": null,
                        "created_at": "2026-02-01T10:00:00.000000Z",
                    } });
            }
        });
    }),
    rule("a delivered event is forbidden to the other mode's key", &["isolation.delivered"], |server| {
        add_sender(server, |_| {});
        server.rewrite(|request, response| {
            if request.path.starts_with("/v1/events/0190a5c6") && response.status == 404 {
                response.status = 403;
            }
        });
    }),
];

/// Returns a delivery id that depends only on the length of the event type.
fn repeated_id(delivery: &Delivery) -> String {
    format!("0190a5c7-7f3e-7ddd-8def-{:012x}", delivery.kind.len())
}

/// Returns the body with a duplicate `mode`.
fn duplicate_mode(body: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(body.to_vec()).expect("valid UTF-8");
    let mode = if text.contains("\"mode\":\"live\"") { "live" } else { "test" };
    text.replacen('{', &format!("{{\"mode\":\"{mode}\","), 1).into_bytes()
}
