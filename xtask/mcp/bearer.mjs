// Puts the API key into every request that this process makes, by fetch or by node:http: the conformance suite
// does not support keys.
import { channel } from "node:diagnostics_channel";

const bearer = `Bearer ${process.env.MCP_SERVER_KEY}`;
channel("undici:request:create").subscribe(({ request }) => request.addHeader("authorization", bearer));
channel("http.client.request.created").subscribe(({ request }) => request.setHeader("authorization", bearer));
