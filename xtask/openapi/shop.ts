// Compiled, not run: the requests and responses of a shop have types.
import createClient from "openapi-fetch";
import type { components, paths } from "./api";

type NewCharge = paths["/v1/charges"]["post"]["requestBody"]["content"]["application/json"];
type Charge = components["schemas"]["Charge"];

export const draft: NewCharge = {
  asset: "BTC",
  amount: "49.90",
  currency: "EUR",
  metadata: { order: "4711" },
};

export function isPaid(charge: Charge): boolean {
  return charge.status === "paid";
}

// @ts-expect-error a coin that is unknown
export const unknownCoin: NewCharge = { asset: "XYZ", amount: "49.90", currency: "EUR" };

const client = createClient<paths>({ baseUrl: "http://127.0.0.1:8402" });

// Both members are there, whatever the type of the event.
export async function subjects(): Promise<string[]> {
  const { data } = await client.GET("/v1/events");
  return (data?.data ?? []).map(({ charge, invoice }) => charge?.checkout_url ?? invoice?.code ?? "");
}
