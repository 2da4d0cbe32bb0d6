// `test` of vitest with a server per file, and a world and a receiver of webhooks per test.

import { test as base } from "vitest";

import { receiveWebhooks, startServer, verify } from "./node.mjs";

export { verify };

export const test = base.extend({
  server: [
    async ({}, use) => {
      const server = await startServer();
      await use(server);
      await server.stop();
    },
    { scope: "file" },
  ],
  world: async ({ server, task }, use) => {
    const world = await server.openWorld(task.name);
    await use(world);
    await world.close();
  },
  webhooks: async ({ world }, use) => {
    const webhooks = await receiveWebhooks(world);
    await use(webhooks);
    await webhooks.close();
  },
});
