import { expect } from "vitest";
import { test } from "chargeproof/vitest";

const ORDER = { asset: "BTC", amount: "49.90", currency: "EUR" };

test("a paid charge is announced", async ({ world, webhooks }) => {
  // Use your client here, with world.baseUrl and world.testKey.
  const opened = await world.api("POST", "/charges", ORDER);
  const charge = opened.body.data.id;

  await world.pay(charge);
  await world.mine("BTC", 1);

  const paid = await webhooks.waitFor("charge.paid");
  expect(paid.json.data.charge.code).toBe(charge);
  expect(paid.json.mode).toBe("test");
});
