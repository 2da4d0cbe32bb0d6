//! Faults in deliveries: in their headers, bodies, signatures and routing.

use conformance::Mode;
use serde_json::{Value, json};

use crate::fake::book::EVENT_ID_FACTOR;
use crate::fake::sender::{Delivery, SIGNED_AT, Sender, hmac_sha256, secret_of, signed_text};
use crate::mutant::{Mutant, add_sender, delivery_body_fault, delivery_fault, remove_member, server_fault};

/// Returns `true` for a delivery of this event type to the endpoint with this path.
fn is_delivery_of(delivery: &Delivery, path: &str, event_type: &str) -> bool {
    delivery.path == path && delivery.event_type == event_type
}

/// The start of the path of an event that the sender recorded, in either mode.
const DELIVERED_EVENT_PATH: &str = "/v1/events/0190a5c6";

pub(crate) const MUTANTS: &[Mutant] = &[
    // The request.
    server_fault("the clock of the sender is far off", &["webhooks.clock"], |server| {
        // Every signature has the time `SIGNED_AT`, which the suite compares with its own clock unless the trigger
        // reports that all deliveries were sent.
        add_sender(server, |sender| sender.reports_settled = false);
    }),
    delivery_fault("deliveries are GET requests", &["webhooks.post"], |_, request| {
        request.method = "GET".into()
    }),
    delivery_fault("one delivery is a PUT", &["webhooks.post"], |delivery, request| {
        if is_delivery_of(delivery, "/test", "invoice.viewed") {
            request.method = "PUT".into();
        }
    }),
    server_fault("a body is not JSON", &["webhooks.post"], |server| {
        add_sender(server, |sender| {
            sender.sign = |secret, t, body| {
                let body = body.strip_prefix(b"{").unwrap_or(body);
                format!("t={t},v1={}", hex::encode(hmac_sha256(secret, &signed_text(t, body))))
            };
            sender.change_request = |_, request| request.body = request.body.split_off(1);
        });
    }),
    delivery_fault("bodies are labelled as a form", &["webhooks.content_type"], |_, request| {
        request.set_header("Content-Type", "application/x-www-form-urlencoded")
    }),
    delivery_fault("deliveries have no Content-Type", &["webhooks.content_type"], |_, request| {
        request.remove_header("Content-Type")
    }),
    delivery_fault("deliveries have no User-Agent", &["webhooks.user_agent"], |_, request| {
        request.remove_header("User-Agent")
    }),
    delivery_fault(
        "the User-Agent is the default of an HTTP library",
        &["webhooks.user_agent"],
        |_, request| request.set_header("User-Agent", "python-requests/2.31.0"),
    ),
    delivery_fault(
        "the event header is the type of another event",
        &["webhooks.event_header"],
        |delivery, request| {
            if delivery.event_type == "charge.refunded" {
                request.set_header("X-Service-Event", "charge.paid");
            }
        },
    ),
    delivery_fault("there is no event header", &["webhooks.event_header"], |_, request| {
        request.remove_header("X-Service-Event")
    }),
    delivery_fault(
        "header and body name different deliveries",
        &["webhooks.delivery_id"],
        |delivery, request| {
            if is_delivery_of(delivery, "/live", "invoice.sent") {
                request.set_header("X-Service-Delivery", "0190a5c7-7f3e-7ddd-8def-aaaaaaaaaaaa");
            }
        },
    ),
    delivery_fault(
        "the delivery header holds the event's id",
        &["webhooks.delivery_id"],
        |delivery, request| {
            request
                .set_header("X-Service-Delivery", delivery.event["id"].as_str().expect("the id is a string"))
        },
    ),
    server_fault("delivery ids are reused", &["webhooks.delivery_id"], |server| {
        add_sender(server, |sender| {
            sender.change_body = Box::new(|delivery, body| body["id"] = json!(repeated_id(delivery)));
            sender.change_request =
                |delivery, request| request.set_header("X-Service-Delivery", &repeated_id(delivery));
        });
    }),
    delivery_body_fault(
        "a delivery has a different invoice than its event",
        &["webhooks.event_id"],
        |delivery, body| {
            if is_delivery_of(delivery, "/live", "invoice.viewed") {
                body["data"]["invoice"]["code"] = json!("another0000001");
            }
        },
    ),
    server_fault("every delivery id is 4711", &["webhooks.delivery_id"], |server| {
        add_sender(server, |sender| {
            sender.change_body = Box::new(|_, body| body["id"] = json!("4711"));
            sender.change_request = |_, request| request.set_header("X-Service-Delivery", "4711");
        });
    }),
    // The body.
    delivery_body_fault("the body has no mode", &["webhooks.body"], |delivery, body| {
        if delivery.event_type == "invoice.created" {
            remove_member(body, "mode");
        }
    }),
    delivery_body_fault("the body has no event_id", &["webhooks.body"], |delivery, body| {
        if is_delivery_of(delivery, "/test-some", "charge.paid") {
            body["event_id"] = Value::Null;
        }
    }),
    server_fault("a body has a duplicate member", &["webhooks.duplicate_keys"], |server| {
        add_sender(server, |sender| {
            sender.sign = |secret, t, body| {
                format!(
                    "t={t},v1={}",
                    hex::encode(hmac_sha256(secret, &signed_text(t, &duplicate_mode(body))))
                )
            };
            sender.change_request = |_, request| request.body = duplicate_mode(&request.body);
        });
    }),
    server_fault("a delivery has an unknown type", &["webhooks.event_type"], |server| {
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
                    request.set_header("X-Service-Event", "invoice.opened");
                }
            };
        });
    }),
    delivery_body_fault("times of deliveries have no fraction", &["webhooks.created_at"], |_, body| {
        body["created_at"] =
            json!(body["created_at"].as_str().expect("the time is a string").replace(".000000", ""));
    }),
    delivery_body_fault("times of deliveries are cut to the day", &["webhooks.created_at"], |_, body| {
        body["created_at"] = json!("2026-02-01T00:00:00.000000Z");
    }),
    delivery_body_fault("times of deliveries have milliseconds", &["webhooks.created_at"], |_, body| {
        body["created_at"] =
            json!(body["created_at"].as_str().expect("the time is a string").replace(".000000", ".000"));
    }),
    delivery_body_fault("a charge event without its charge", &["webhooks.data"], |delivery, body| {
        if delivery.event_type == "charge.expired" {
            body["data"]["charge"] = Value::Null;
        }
    }),
    delivery_body_fault(
        "an invoice event with a charge in addition to its invoice",
        &["webhooks.data"],
        |delivery, body| {
            if delivery.event_type == "invoice.voided" {
                body["data"]["charge"] = Sender::charge(delivery.mode);
            }
        },
    ),
    // The signature.
    server_fault("only the body is signed", &["webhooks.signature_covers"], |server| {
        add_sender(server, |sender| {
            sender.sign = |secret, t, body| format!("t={t},v1={}", hex::encode(hmac_sha256(secret, body)))
        });
    }),
    server_fault("the body is formatted again after signing", &["webhooks.signature_covers"], |server| {
        add_sender(server, |sender| {
            sender.sign = |secret, t, body| {
                let value: Value = serde_json::from_slice(body).expect("valid JSON");
                let pretty = serde_json::to_string_pretty(&value).expect("valid JSON");
                format!("t={t},v1={}", hex::encode(hmac_sha256(secret, &signed_text(t, pretty.as_bytes()))))
            };
        });
    }),
    server_fault("t is in milliseconds", &["webhooks.signature_shape"], |server| {
        add_sender(server, |sender| {
            sender.sign = |secret, t, body| {
                let t = t * 1000;
                format!("t={t},v1={}", hex::encode(hmac_sha256(secret, &signed_text(t, body))))
            };
        });
    }),
    server_fault("the signature header has neither t nor v1", &["webhooks.signature_shape"], |server| {
        add_sender(server, |sender| {
            sender.sign = |secret, t, body| hex::encode(hmac_sha256(secret, &signed_text(t, body)))
        });
    }),
    delivery_fault(
        "there is no signature",
        &["webhooks.signature_shape", "webhooks.signed"],
        |_, request| request.remove_header("X-Service-Signature"),
    ),
    server_fault("every signature is the same", &["webhooks.signed"], |server| {
        add_sender(server, |sender| sender.sign = |_, t, _| format!("t={t},v1={}", "ab".repeat(32)))
    }),
    server_fault("the signature is a hash without a secret", &["webhooks.signed"], |server| {
        add_sender(server, |sender| {
            sender.sign = |_, t, body| {
                use sha2::Digest;
                format!("t={t},v1={}", hex::encode(sha2::Sha256::digest(signed_text(t, body))))
            };
        });
    }),
    server_fault("all endpoints share one secret", &["webhooks.signed"], |server| {
        add_sender(server, |sender| sender.secret = |_| secret_of("/live"))
    }),
    delivery_fault("one delivery has a wrong signature", &["webhooks.signed"], |delivery, request| {
        if is_delivery_of(delivery, "/test", "charge.late_payment") {
            request.set_header("X-Service-Signature", &format!("t={SIGNED_AT},v1={}", "cd".repeat(32)));
        }
    }),
    // Routing.
    server_fault(
        "test endpoints also get invoice.paid of live mode",
        &["webhooks.mode_endpoints"],
        |server| {
            add_sender(server, |sender| {
                sender.delivers = |endpoint, mode, event_type| {
                    let is_subscribed =
                        endpoint.events.as_ref().is_some_and(|types| types.contains(event_type));
                    is_subscribed
                        && (endpoint.mode == Some(mode)
                            || (mode == Mode::Live && event_type == "invoice.paid"))
                };
            });
        },
    ),
    server_fault("one type goes to every endpoint of its mode", &["webhooks.subscribed"], |server| {
        add_sender(server, |sender| {
            sender.delivers = |endpoint, mode, event_type| {
                let is_subscribed = endpoint.events.as_ref().is_some_and(|types| types.contains(event_type));
                endpoint.mode == Some(mode) && (is_subscribed || event_type == "invoice.voided")
            };
        });
    }),
    server_fault("one type is never delivered", &["webhooks.pushed"], |server| {
        add_sender(server, |sender| {
            sender.delivers = |endpoint, mode, event_type| {
                let is_subscribed = endpoint.events.as_ref().is_some_and(|types| types.contains(event_type));
                is_subscribed && endpoint.mode == Some(mode) && event_type != "charge.underpaid"
            };
        });
    }),
    server_fault("nothing is delivered in live mode", &["webhooks.pushed"], |server| {
        add_sender(server, |sender| {
            sender.delivers = |endpoint, mode, event_type| {
                let is_subscribed = endpoint.events.as_ref().is_some_and(|types| types.contains(event_type));
                is_subscribed && endpoint.mode == Some(mode) && mode == Mode::Test
            };
        });
    }),
    server_fault("invoice.paid goes to only one endpoint in test mode", &["webhooks.pushed"], |server| {
        add_sender(server, |sender| {
            sender.delivers = |endpoint, mode, event_type| {
                let is_subscribed = endpoint.events.as_ref().is_some_and(|types| types.contains(event_type));
                let is_delivered_in_test_mode = endpoint.path == "/test" || event_type != "invoice.paid";
                is_subscribed
                    && endpoint.mode == Some(mode)
                    && (endpoint.mode == Some(Mode::Live) || is_delivered_in_test_mode)
            };
            sender.sends_newest_first = true;
        });
    }),
    server_fault("redirects are followed", &["webhooks.redirects"], |server| {
        add_sender(server, |sender| sender.follows_redirect = |_| true)
    }),
    server_fault("only redirects that keep the method are followed", &["webhooks.redirects"], |server| {
        add_sender(server, |sender| sender.follows_redirect = |status| status == "307")
    }),
    server_fault("loopback and link-local endpoints are accepted", &["endpoints.address"], |server| {
        add_sender(server, |sender| {
            sender.accepts_address = |address| !address.contains("10.") && address.starts_with("https://")
        })
    }),
    server_fault("a cloud metadata endpoint is accepted", &["endpoints.address"], |server| {
        add_sender(server, |sender| {
            sender.accepts_address =
                |address| address.contains("//shop.example/") || address.contains("169.254.")
        });
    }),
    server_fault("an address with a misleading user name is accepted", &["endpoints.address"], |server| {
        add_sender(server, |sender| {
            sender.accepts_address = |address| address.starts_with("https://shop.example")
        });
    }),
    server_fault("an http endpoint is accepted", &["endpoints.address"], |server| {
        add_sender(server, |sender| {
            sender.accepts_address =
                |address| address.contains("//shop.example/") || address.starts_with("http:")
        });
    }),
    // Consistency with the API.
    delivery_body_fault(
        "an event_id that is unknown to the API",
        &["webhooks.event_id"],
        |delivery, body| {
            if is_delivery_of(delivery, "/live", "invoice.voided") {
                body["event_id"] = json!("0190a5c6-7f3e-7cc1-8def-ffffffffffff");
            }
        },
    )
    .may_fail(&["webhooks.pushed"]),
    delivery_body_fault("one event_id for two events", &["webhooks.event_id"], |delivery, body| {
        if is_delivery_of(delivery, "/live", "charge.refunded") {
            // The id of `charge.paid`, the third event that the sender recorded.
            body["event_id"] = json!(format!("0190a5c6-7f3e-7cc1-8def-{:012x}", 3 * EVENT_ID_FACTOR));
        }
    })
    .may_fail(&["webhooks.pushed"]),
    delivery_body_fault("the body names the other mode", &["webhooks.mode"], |delivery, body| {
        if is_delivery_of(delivery, "/test", "charge.created") {
            body["mode"] = json!("live");
        }
    })
    .may_fail(&["webhooks.mode_endpoints"]),
    delivery_body_fault("the body has an unknown mode", &["webhooks.mode"], |delivery, body| {
        if is_delivery_of(delivery, "/live", "charge.created") {
            body["mode"] = json!("production");
        }
    }),
    server_fault(
        "a delivered event can be read by the other mode's key",
        &["isolation.delivered"],
        |server| {
            add_sender(server, |_| {});
            server.rewrite_responses(|request, response| {
                if request.path.starts_with(DELIVERED_EVENT_PATH) && response.status == 404 {
                    response.status = 200;
                    let id = request.path.rsplit('/').next().expect("`rsplit` yields at least one part");
                    response.body = json!({ "data": {
                        "id": id, "type": "charge.paid", "details": {}, "charge": {}, "invoice": null,
                        "created_at": "2026-02-01T10:00:00.000000Z",
                    } });
                }
            });
        },
    ),
    server_fault(
        "a delivered event is forbidden to the other mode's key",
        &["isolation.delivered"],
        |server| {
            add_sender(server, |_| {});
            server.rewrite_responses(|request, response| {
                if request.path.starts_with(DELIVERED_EVENT_PATH) && response.status == 404 {
                    response.status = 403;
                }
            });
        },
    ),
];

/// Returns a delivery id that depends only on the length of the event type.
fn repeated_id(delivery: &Delivery) -> String {
    format!("0190a5c7-7f3e-7ddd-8def-{:012x}", delivery.event_type.len())
}

/// Returns the body with a duplicate `mode`.
fn duplicate_mode(body: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(body.to_vec()).expect("valid UTF-8");
    let mode = if text.contains("\"mode\":\"live\"") { "live" } else { "test" };
    text.replacen('{', &format!("{{\"mode\":\"{mode}\","), 1).into_bytes()
}
