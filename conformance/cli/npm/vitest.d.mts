import type { TestAPI } from "vitest";

import type { Server, Webhooks, World } from "./node.mjs";

export { verify } from "./node.mjs";

/** The fixtures of a test. */
export interface Fixtures {
  /** A server for the tests of this file, on a free port. */
  server: Server;
  /** A world for this test, with a clock that stands still. Each run of a test sees the same codes and addresses. */
  world: World;
  /** A receiver of the webhooks of this test's world. */
  webhooks: Webhooks;
}

/** `test` of vitest with these fixtures. */
export const test: TestAPI<Fixtures>;
