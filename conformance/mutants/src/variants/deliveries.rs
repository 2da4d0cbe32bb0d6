//! Correct webhook senders with other legal choices.

use serde_json::{Value, json};

use super::{Variant, set_choices, variant};
use crate::fake::FakeServer;
use crate::fake::sender::{Sender, hmac_sha256, signed_text};

/// Adds a webhook sender to a server, with a choice. The suite runs its full check.
fn add_sender(server: &mut FakeServer, choose: impl FnOnce(&mut Sender)) {
    let mut sender = Sender { uses_quick_check: false, ..Sender::default() };
    choose(&mut sender);
    server.sender = Some(sender);
}

pub(super) const VARIANTS: &[Variant] = &[
    variant("the default webhook sender", |server| add_sender(server, |_| {})),
    variant("a retry has a new delivery id", |server| {
        add_sender(server, |sender| sender.retry_has_new_id = true)
    }),
    variant("every delivery is sent twice", |server| add_sender(server, |sender| sender.attempts = 2)),
    variant("the newest delivery is sent first", |server| {
        add_sender(server, |sender| sender.sends_newest_first = true)
    }),
    variant("deliveries have additional headers", |server| {
        add_sender(server, |sender| {
            sender.change_request = |_, request| {
                request.set_header("X-Forwarded-For", "192.0.2.1");
                request.set_header("X-Service-Attempt", "1");
                request.set_header("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
            };
        });
    }),
    variant("deliveries have additional members", |server| {
        add_sender(server, |sender| {
            sender.change_body = Box::new(|_, body| {
                body["object"] = json!("delivery");
                body["attempt"] = json!(1);
                body["data"]["transaction"] = json!({ "txid": "ab", "amount": "0.1" });
                if body["data"]["charge"].is_object() {
                    body["data"]["charge"]["network"] = json!("bitcoin");
                }
            });
        });
    }),
    variant("the unused object of a delivery is null", |server| {
        add_sender(server, |sender| {
            sender.change_body = Box::new(|delivery, body| {
                let unused = if delivery.event_type.starts_with("charge.") { "invoice" } else { "charge" };
                body["data"][unused] = Value::Null;
            });
        });
    }),
    variant("header names of deliveries are in lower case", |server| {
        add_sender(server, |sender| {
            sender.change_request = |_, request| {
                for (name, _) in &mut request.headers {
                    *name = name.to_ascii_lowercase();
                }
            };
        });
    }),
    variant("deliveries are chunked", |server| {
        add_sender(server, |sender| sender.change_request = |_, request| request.chunked = true)
    }),
    variant("deliveries have a charset", |server| {
        add_sender(server, |sender| {
            sender.change_request =
                |_, request| request.set_header("Content-Type", "Application/JSON; charset=utf-8")
        });
    }),
    variant("deliveries write UTC as an offset of zero", |server| {
        add_sender(server, |sender| {
            sender.change_body = Box::new(|_, body| {
                body["created_at"] =
                    json!(body["created_at"].as_str().expect("the time is a string").replace('Z', "+00:00"));
            });
        });
    }),
    variant("created_at of a delivery differs from its event's", |server| {
        add_sender(server, |sender| {
            sender.change_body = Box::new(|_, body| {
                let time = body["created_at"].as_str().expect("the time is a string");
                body["created_at"] = json!(time.replace("2026-02-01T10:0", "2026-02-03T04:2"));
            });
        });
    }),
    variant("signatures are in upper case", |server| {
        add_sender(server, |sender| {
            sender.sign = |secret, t, body| {
                format!("t={t},v1={}", hex::encode_upper(hmac_sha256(secret, &signed_text(t, body))))
            };
        });
    }),
    variant("one header has signatures of two versions", |server| {
        add_sender(server, |sender| {
            sender.sign = |secret, t, body| {
                format!("t={t}, v0=old, v1={}", hex::encode(hmac_sha256(secret, &signed_text(t, body))))
            };
        });
    }),
    variant("the time and the body are joined by a colon for signing", |server| {
        add_sender(server, |sender| {
            sender.sign = |secret, t, body| {
                let message = [t.to_string().as_bytes(), b":", body].concat();
                format!("t={t},v1={}", hex::encode(hmac_sha256(secret, &message)))
            };
        });
    }),
    variant("a test delivery ignores subscriptions and has no event", |server| {
        add_sender(server, |sender| {
            sender.delivers = |endpoint, mode, event_type| {
                let is_subscribed = endpoint.events.as_ref().is_some_and(|types| types.contains(event_type));
                let is_test = event_type == "charge.created" && endpoint.path == "/live-some";
                endpoint.mode == Some(mode) && (is_subscribed || is_test)
            };
            sender.change_body = Box::new(|delivery, body| {
                if delivery.path == "/live-some" && delivery.event_type == "charge.created" {
                    body["test"] = json!(true);
                    body["event_id"] = Value::Null;
                }
            });
        });
    }),
    variant("many sender choices combined", |server| {
        set_choices(server, |choices| choices.bare_event = true);
        server.prefix = "/pay";
        add_sender(server, |sender| {
            sender.retry_has_new_id = true;
            sender.attempts = 2;
            sender.sends_newest_first = true;
            sender.change_body = Box::new(|_, body| body["version"] = json!(2));
            sender.change_request = |_, request| {
                request.chunked = true;
                request.set_header("Content-Type", "application/json;charset=UTF-8");
            };
            sender.sign = |secret, t, body| {
                format!("t={t}, v1={}", hex::encode_upper(hmac_sha256(secret, &signed_text(t, body))))
            };
        });
    }),
];
