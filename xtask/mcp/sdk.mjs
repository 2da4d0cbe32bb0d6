// Calls the tools of a served reference with a TypeScript SDK of the protocol, which validates every result against the
// tool's output schema. The argument is the entry point of the SDK: one module, or a client and a transport.
import assert from "node:assert/strict";

const [clientModule, transportModule = clientModule] = process.argv.slice(2);
const { Client } = await import(clientModule);
const { StreamableHTTPClientTransport } = await import(transportModule);

const headers = { Authorization: `Bearer ${process.env.MCP_SERVER_KEY}` };
const client = new Client({ name: "sdk-test", version: "1.0.0" });
await client.connect(
  new StreamableHTTPClientTransport(new URL(process.env.MCP_SERVER_URL), { requestInit: { headers } }),
);
const { tools } = await client.listTools();
assert(tools.length > 30 && tools.every((tool) => tool.outputSchema), "every tool has an output schema");

const call = (name, args = {}) => client.callTool({ name, arguments: args });
const succeed = async (name, args) => {
  const result = await call(name, args);
  assert(!result.isError, `${name}: ${JSON.stringify(result)}`);
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
  return result.structuredContent;
};
const refuse = async (name, args, text) => {
  const result = await call(name, args);
  assert.equal(result.isError, true, name);
  assert.equal(result.content[0].text, text);
};

const order = { asset: "BTC", amount: "49.90", idempotency_key: crypto.randomUUID() };
const { data: charge } = await succeed("create_charge", order);
const { txid } = await succeed("pay", { charge: charge.id });
await succeed("mine", { asset: "BTC", blocks: 1, at_once: true });
assert.equal((await succeed("get_charge", { id: charge.id })).data.status, "paid");
const readers = tools.filter((tool) => tool.annotations.readOnlyHint && !tool.inputSchema.required);
assert(readers.length > 5, "several tools read without an argument");
for (const tool of readers) await succeed(tool.name);

await refuse("get_charge", { id: "aaaaaaaaaaaa" }, "HTTP 404: Not found.");
await refuse("create_charge", { ...order, amount: "5" }, "HTTP 409: This Idempotency-Key was used for another request.");
await refuse(
  "create_charge",
  { amount: "ten" },
  "HTTP 422: The asset field is required. (and 1 more error)\n" +
    "amount: The amount field must be a decimal number such as 49.90.\nasset: The asset field is required.",
);
const dropped = await call("drop_transaction", { txid });
assert(dropped.isError && dropped.content[0].text.startsWith("HTTP 409: The chain refuses: "), dropped.content[0].text);
await client.close();
console.log(`${tools.length} tools listed, ${readers.length + 4} calls answered, 4 refusals read`);
