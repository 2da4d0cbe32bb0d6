// Compiled, not run: what a shop sends and reads has a type.
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
