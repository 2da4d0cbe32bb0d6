// Tests that run in parallel, each in a separate world.

import { test, verify } from "chargeproof/vitest";

const CHARGE = { asset: "BTC", amount: "49.90", currency: "EUR" };

async function openCharge(world) {
  return (await world.api("POST", "/charges", CHARGE)).body.data.code;
}

for (const blocks of [0, 1]) {
  test.concurrent(`a charge with ${blocks} blocks`, async ({ world, expect }) => {
    const code = await openCharge(world);
    await world.pay(code);
    if (blocks > 0) await world.mine("BTC", blocks);
    const { body } = await world.api("GET", `/charges/${code}`);
    expect(body.data.status === "paid").toBe(blocks === 1);
  });
}

for (const minutes of [29, 31]) {
  test.concurrent(`a charge after ${minutes} minutes`, async ({ world, expect }) => {
    const code = await openCharge(world);
    // The clocks of other worlds do not move, and no test waits.
    await world.advance(`${minutes}m`);
    const { body } = await world.api("GET", `/charges/${code}`);
    expect(body.data.status === "expired").toBe(minutes === 31);
  });
}

for (let nth = 0; nth < 20; nth++) {
  test.concurrent(`no test sees the charges of another, ${nth}`, async ({ world, expect }) => {
    await openCharge(world);
    expect((await world.api("GET", "/charges")).body.meta.total).toBe(1);
  });
}

test.concurrent("a client with a fixed address reaches its world by the key", async ({ server, world, expect }) => {
  const code = await openCharge(world);
  const headers = { Authorization: `Bearer ${world.testKey}` };
  const answer = await fetch(`${server.url}/v1/charges/${code}`, { headers });
  expect([answer.status, (await answer.json()).data.code]).toEqual([200, code]);
});

test.concurrent("a delivery fails verification with another secret or body", async ({ world, webhooks, expect }) => {
  await openCharge(world);
  const { body, headers } = await webhooks.waitFor("charge.created");
  const signature = headers["x-service-signature"];
  const { testSecret, liveSecret } = webhooks.forward;
  expect(verify(body, signature, testSecret)).toBe(true);
  expect(verify(body, signature, liveSecret)).toBe(false);
  expect(verify(Buffer.concat([body, Buffer.from(" ")]), signature, testSecret)).toBe(false);
  expect(verify(body, signature, testSecret, 300, 0)).toBe(false);
});

test.concurrent("a refused delivery is sent again", async ({ world, webhooks, expect }) => {
  webhooks.status = 503;
  await openCharge(world);
  const first = await webhooks.waitFor("charge.created");
  webhooks.status = 200;
  await world.advance("1m");
  const second = await webhooks.waitFor("charge.created", { count: 2 });
  expect(second.body.equals(first.body)).toBe(true);
});

test.concurrent("a wrong call says what is wrong", async ({ world, webhooks, expect }) => {
  await expect(world.advance("soon")).rejects.toThrow("1h30m");
  const missing = "`charge.paid` did not arrive 1 times in 1 ms; deliveries so far: none";
  await expect(webhooks.waitFor("charge.paid", { timeout: 1 })).rejects.toThrow(missing);
});
