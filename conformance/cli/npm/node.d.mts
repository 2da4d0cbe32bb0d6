/** A handler that webhooks are forwarded to, with the secrets that sign its deliveries. */
export interface Forward {
  url: string;
  testSecret: string;
  liveSecret: string;
}

/** The status and the JSON body of a response. */
export interface Response {
  status: number;
  body: any;
}

/** A delivery whose signature was verified. */
export interface Delivery {
  event: string;
  headers: Record<string, string | string[] | undefined>;
  body: Uint8Array;
  json: any;
}

/** A complete service with its own clock, chains, keys and webhooks. `baseUrl` and a key are what a client needs. */
export interface World {
  readonly id: string;
  readonly baseUrl: string;
  readonly dashboardUrl: string;
  readonly liveKey: string;
  readonly testKey: string;
  /** Calls the API below `/v1` with the test key, or with `key`. */
  api(method: string, path: string, body?: unknown, key?: string): Promise<Response>;
  /** Calls `POST /sandbox/CALL` with these fields and returns its body; an error is thrown. */
  sandbox(call: string, fields?: Record<string, unknown>): Promise<any>;
  /** Pays a charge in full, or the `share` or `amount` in `fields`. */
  pay(charge: string, fields?: Record<string, unknown>): Promise<any>;
  /** Lets time run until the chain of a coin has this many more blocks. The mode is `test` if not given. */
  mine(asset: string, blocks: number, mode?: "test" | "live"): Promise<any>;
  /** Moves the clock by a span such as `31m`; everything due happens. */
  advance(by: string): Promise<any>;
  /** Forwards the world's webhooks to a handler on this machine. */
  forward(to: string): Promise<Forward>;
  /** Ends the world. */
  close(): Promise<void>;
}

/** A running server. */
export interface Server {
  readonly url: string;
  /**
   * Opens a world whose clock stands still; `options` are those of `POST /sandbox/worlds`. Worlds of one name have the
   * same codes and addresses. A world that is not closed ends after ten idle minutes.
   */
  openWorld(name: string, options?: Record<string, unknown>): Promise<World>;
  /** Stops the process, if `startServer` started it. */
  stop(): Promise<void>;
}

/** Receives the webhooks of one world and verifies them. */
export interface Webhooks {
  /** The status that deliveries are answered with, 200 at first. */
  status: number;
  /** The deliveries that arrived so far, repeated attempts included. */
  readonly deliveries: Delivery[];
  /** The signatures that were invalid. */
  readonly refused: string[];
  readonly forward: Forward;
  /** Waits until deliveries of this event type have arrived `count` times (1), at most `timeout` ms (10,000). */
  waitFor(event: string, options?: { count?: number; timeout?: number }): Promise<Delivery>;
  /** Stops receiving. */
  close(): Promise<void>;
}

/** Starts the installed program on a free port. With `CHARGEPROOF_URL` it returns the server at that address. */
export function startServer(options?: string[]): Promise<Server>;

/** Receives the webhooks of a world. */
export function receiveWebhooks(world: World): Promise<Webhooks>;

/** Returns true if a delivery is genuine and at most `tolerance` seconds (300) old. `body`: the bytes as received. */
export function verify(body: Uint8Array | string, header: string, secret: string, tolerance?: number, now?: number): boolean;
