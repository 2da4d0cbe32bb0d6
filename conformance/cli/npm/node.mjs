// A server for tests, its worlds, and a receiver of their webhooks. The types are in node.d.mts.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { createInterface } from "node:readline";

import program from "./program.js";
import verify from "./verify.js";

export { verify };

/** Sends JSON and returns status and JSON of the response, whatever the status is. */
async function request(method, url, body, key) {
  const headers = { "Content-Type": "application/json" };
  if (key) headers.Authorization = `Bearer ${key}`;
  const answer = await fetch(url, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const text = await answer.text();
  return { status: answer.status, body: text ? JSON.parse(text) : null };
}

/** Sends JSON and returns the body of the response; throws if the status is not 2xx. */
async function requestOk(method, url, body) {
  const answer = await request(method, url, body);
  if (answer.status >= 200 && answer.status < 300) return answer.body;
  const message = `${method} ${url} was answered with ${answer.status}: ${JSON.stringify(answer.body)}`;
  throw Object.assign(new Error(message), answer);
}

export class World {
  #server;

  constructor(server, opened) {
    this.#server = server;
    this.id = opened.world;
    this.baseUrl = opened.base_url;
    this.dashboardUrl = opened.dashboard_url;
    this.liveKey = opened.live_key;
    this.testKey = opened.test_key;
  }

  api(method, path, body, key = this.testKey) {
    return request(method, `${this.baseUrl}/v1${path}`, body, key);
  }

  sandbox(call, fields = {}) {
    return requestOk("POST", `${this.baseUrl}/sandbox/${call}`, fields);
  }

  pay(charge, fields = {}) {
    return this.sandbox("pay", { charge, ...fields });
  }

  mine(asset, blocks, mode = "test") {
    return this.sandbox("mine", { asset, blocks, mode });
  }

  advance(by) {
    return this.sandbox("advance", { by });
  }

  async forward(to) {
    const { forward } = await this.sandbox("forwards", { to });
    return { url: to, testSecret: forward.test_secret, liveSecret: forward.live_secret };
  }

  async close() {
    await request("DELETE", `${this.#server.url}/sandbox/worlds/${this.id}`);
  }
}

export class Server {
  #stop;

  constructor(url, stop = async () => {}) {
    this.url = url;
    this.#stop = stop;
  }

  async openWorld(name, options = {}) {
    const wanted = { name, clock: "frozen", start: "2026-01-05T09:00:00Z", ttl: "10m", ...options };
    return new World(this, await requestOk("POST", `${this.url}/sandbox/worlds`, wanted));
  }

  stop() {
    return this.#stop();
  }
}

/** Starts the installed program on a free port. With `CHARGEPROOF_URL` it returns the server at that address. */
export async function startServer(options = []) {
  if (process.env.CHARGEPROOF_URL) return new Server(process.env.CHARGEPROOF_URL);
  const command = [program(), "serve", "--port", "0", "--format", "json", "--log", "off", ...options];
  const child = spawn(command[0], command.slice(1), { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("close", resolve));
  // The worlds are in memory, or in crash-safe storage, so nothing has to be flushed.
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  const lines = createInterface({ input: child.stdout });
  const line = await Promise.race([
    once(lines, "line").then(([text]) => text),
    ended.then((code) => Promise.reject(new Error(`${command.join(" ")} ended with ${code}`))),
    once(child, "error").then(([error]) => Promise.reject(error)),
  ]);
  return new Server(JSON.parse(line).url, async () => {
    process.off("exit", kill);
    kill();
    await ended;
  });
}

/** Receives the webhooks of a world, verifies them, and answers with `status`. */
export async function receiveWebhooks(world) {
  const webhooks = new Webhooks();
  await webhooks.listen(world);
  return webhooks;
}

class Webhooks {
  #arrivals = new Set();
  #http;
  status = 200;
  deliveries = [];
  refused = [];

  async listen(world) {
    this.#http = createServer(async (request, response) => {
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      response.writeHead(this.#receive(request.headers, Buffer.concat(chunks))).end();
    });
    await new Promise((resolve) => this.#http.listen(0, "127.0.0.1", resolve));
    this.forward = await world.forward(`http://127.0.0.1:${this.#http.address().port}/`);
  }

  #receive(headers, body) {
    const signature = headers["x-service-signature"] ?? "";
    const { testSecret, liveSecret } = this.forward;
    if (![testSecret, liveSecret].some((secret) => verify(body, signature, secret))) {
      this.refused.push(signature);
      return 400;
    }
    const parsed = JSON.parse(body);
    this.deliveries.push({ event: parsed.event, headers, body, json: parsed });
    for (const arrived of this.#arrivals) arrived();
    return this.status;
  }

  waitFor(event, { count = 1, timeout = 10_000 } = {}) {
    return new Promise((resolve, reject) => {
      const look = () => {
        const found = this.deliveries.filter((it) => it.event === event);
        if (found.length < count) return;
        end();
        resolve(found[count - 1]);
      };
      const timer = setTimeout(() => {
        end();
        const arrived = this.deliveries.map((it) => it.event).join(", ") || "none";
        const refused = this.refused.length ? `; ${this.refused.length} with an invalid signature` : "";
        reject(new Error(`\`${event}\` did not arrive ${count} times in ${timeout} ms; deliveries so far: ${arrived}${refused}`));
      }, timeout);
      const end = () => {
        clearTimeout(timer);
        this.#arrivals.delete(look);
      };
      this.#arrivals.add(look);
      look();
    });
  }

  close() {
    this.#http.closeAllConnections();
    return new Promise((resolve) => this.#http.close(resolve));
  }
}
