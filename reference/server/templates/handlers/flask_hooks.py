import hashlib
import hmac
import json
import os
import re
import threading
import time

from flask import Flask, request

SECRET = os.environ.get("WEBHOOK_SECRET")
if not SECRET:
    raise RuntimeError("WEBHOOK_SECRET is not set")
MODE = os.environ.get("WEBHOOK_MODE", "test")
app = Flask(__name__)
# The events that were handled. In production: a table with a unique key, written in the transaction that ships the order.
handled: set[str] = set()
lock = threading.Lock()


{verify}

@app.post("/hooks")
def hooks():
    body = request.get_data()  # the bytes as received, not parsed JSON
    if not verify(body, request.headers.get("X-Service-Signature", ""), SECRET):
        return "invalid signature", 400
    delivery = json.loads(body)
    event = delivery["event_id"] or delivery["id"]  # a test delivery has no event
    with lock:
        if event not in handled:
            if delivery["event"] == "charge.paid" and delivery["mode"] == MODE and not delivery.get("test"):
                print("ship the order of charge", delivery["data"]["charge"]["code"])
            handled.add(event)
    return "", 204
