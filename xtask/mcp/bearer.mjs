// Puts the API key into every request that this process makes: the conformance suite knows no keys.
import { channel } from "node:diagnostics_channel";

channel("undici:request:create").subscribe(({ request }) => {
  request.addHeader("authorization", `Bearer ${process.env.MCP_SERVER_KEY}`);
});
