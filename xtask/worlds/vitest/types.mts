// Compiled, not run: the declared types fit their use.

import { startServer, verify, type World } from "chargeproof/node";
import { test } from "chargeproof/vitest";

test("types", async ({ server, world, webhooks, expect }) => {
  const opened: World = await server.openWorld("types", { ttl: "1m" });
  const { status, body } = await opened.api("GET", "/account");
  expect([status, body.meta.mode]).toEqual([200, "test"]);
  await world.mine("BTC", 1, "live");
  const delivery = await webhooks.waitFor("charge.paid", { count: 1 });
  const genuine: boolean = verify(delivery.body, "t=1,v1=00", webhooks.forward.testSecret);
  expect(genuine).toBe(false);
  // @ts-expect-error: there is no such mode
  await world.mine("BTC", 1, "demo");
  await (await startServer(["--rate-limit", "off"])).stop();
});
