const { createHmac, timingSafeEqual } = require("node:crypto");
const express = require("express");

const SECRET = process.env.WEBHOOK_SECRET;
if (!SECRET) throw new Error("WEBHOOK_SECRET is not set");
const MODE = process.env.WEBHOOK_MODE ?? "test";
const app = express();
// The events that were handled. In production: a table with a unique key, written in the transaction that ships the order.
const handled = new Set();

{verify}
// `express.raw` keeps the bytes as received; `express.json` would lose them.
app.post("/hooks", express.raw({ type: "application/json" }), (request, response) => {
  const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
  if (!verify(body, request.get("X-Service-Signature") ?? "", SECRET)) {
    return response.status(400).send("invalid signature");
  }
  const delivery = JSON.parse(body);
  const event = delivery.event_id ?? delivery.id; // a test delivery has no event
  if (!handled.has(event)) {
    if (delivery.event === "charge.paid" && delivery.mode === MODE && !delivery.test) {
      console.log("ship the order of charge", delivery.data.charge.code);
    }
    handled.add(event);
  }
  response.sendStatus(204);
});

app.listen(process.env.PORT ?? 3000);
