// Tests that run side by side, each in a world of its own.

import { SERVER, call, test } from "./world.mjs";

const CHARGE = { asset: "BTC", amount: "49.90", currency: "EUR" };

async function openCharge(world) {
  return (await world.api("POST", "/charges", CHARGE)).json.data.code;
}

for (const blocks of [0, 1, 2]) {
  test.concurrent(`a charge with ${blocks} blocks`, async ({ world, expect }) => {
    const code = await openCharge(world);
    await world.sandbox("pay", { charge: code });
    if (blocks > 0) await world.sandbox("mine", { asset: "BTC", blocks });
    const { json } = await world.api("GET", `/charges/${code}`);
    expect(json.data.status === "paid").toBe(blocks === 2);
  });
}

for (const minutes of [29, 31]) {
  test.concurrent(`a charge after ${minutes} minutes`, async ({ world, expect }) => {
    const code = await openCharge(world);
    // Nobody else's clock moves, and nobody waits.
    await world.sandbox("advance", { by: `${minutes}m` });
    const { json } = await world.api("GET", `/charges/${code}`);
    expect(json.data.status === "expired").toBe(minutes === 31);
  });
}

for (let nth = 0; nth < 20; nth++) {
  test.concurrent(`nobody sees the charges of another test, ${nth}`, async ({ world, expect }) => {
    await openCharge(world);
    expect((await world.api("GET", "/charges")).json.meta.total).toBe(1);
  });
}

test.concurrent("a client with a fixed address reaches its world by the key", async ({ world, expect }) => {
  const code = await openCharge(world);
  const { status, json } = await call("GET", `${SERVER}/v1/charges/${code}`, undefined, world.live_key);
  expect([status, json.data.code]).toEqual([200, code]);
});
