import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { receiveWebhooks, startServer } from "chargeproof/node";

let server;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

test("a charge expires after half an hour", async () => {
  const world = await server.openWorld("expiry");
  const webhooks = await receiveWebhooks(world);
  const order = { asset: "BTC", amount: "49.90", currency: "EUR" };
  const opened = await world.api("POST", "/charges", order);

  await world.advance("31m");

  const expired = await webhooks.waitFor("charge.expired");
  assert.equal(expired.json.data.charge.code, opened.body.data.id);
  await webhooks.close();
  await world.close();
});
