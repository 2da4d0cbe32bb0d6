import hashlib
import hmac
import json
import os
import re
import time

from fastapi import FastAPI, Request, Response

SECRET = os.environ.get("WEBHOOK_SECRET")
if not SECRET:
    raise RuntimeError("WEBHOOK_SECRET is not set")
MODE = os.environ.get("WEBHOOK_MODE", "test")
app = FastAPI()
# The events that were handled. In production: a table with a unique key, written in the transaction that ships the order.
handled: set[str] = set()


{verify}

@app.post("/hooks")
async def hooks(request: Request) -> Response:
    body = await request.body()  # the bytes as received, not parsed JSON
    if not verify(body, request.headers.get("X-Service-Signature", ""), SECRET):
        return Response("invalid signature", 400)
    delivery = json.loads(body)
    event = delivery["event_id"] or delivery["id"]  # a test delivery has no event
    if event not in handled:
        if delivery["event"] == "charge.paid" and delivery["mode"] == MODE and not delivery.get("test"):
            print("ship the order of charge", delivery["data"]["charge"]["code"])
        handled.add(event)
    return Response(status_code=204)
