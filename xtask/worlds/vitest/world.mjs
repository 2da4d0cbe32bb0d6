// A fixture that opens a world for each test: its own clock, chains, keys and limits, on one served reference.

import { test as base } from "vitest";

export const SERVER = process.env.CHARGEPROOF_URL ?? "http://127.0.0.1:8402";

/** The status and the JSON of an answer. */
export async function call(method, url, body, key) {
  const headers = { "Content-Type": "application/json" };
  if (key) headers.Authorization = `Bearer ${key}`;
  const answer = await fetch(url, { method, headers, body: body && JSON.stringify(body) });
  return { status: answer.status, json: await answer.json() };
}

export const test = base.extend({
  world: async ({ task }, use) => {
    // Of one name, so the same codes and addresses each time the test runs. The ttl is for runs that are killed.
    const { status, json } = await call("POST", `${SERVER}/sandbox/worlds`, {
      name: task.name,
      clock: "frozen",
      start: "2026-01-05T09:00:00Z",
      ttl: "10m",
    });
    if (status !== 201) throw new Error(JSON.stringify(json));
    await use({
      ...json,
      api: (method, path, body) => call(method, `${json.base_url}/v1${path}`, body, json.live_key),
      sandbox: (what, body) => call("POST", `${json.sandbox_url}/${what}`, body),
    });
    await call("DELETE", `${SERVER}/sandbox/worlds/${json.world}`);
  },
});
