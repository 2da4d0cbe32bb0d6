const { createHmac, timingSafeEqual } = require("node:crypto");

// Returns true if a delivery is genuine and at most `tolerance` seconds old. `body`: the bytes as received, a Buffer.
function verify(body, header, secret, tolerance = 300, now = Date.now() / 1000) {
  const parts = header.split(",").map((part) => part.split(/=(.*)/s));
  const times = parts.filter(([name]) => name === "t").map(([, value]) => value);
  if (times.length !== 1 || !/^[0-9]{1,15}$/.test(times[0])) return false;
  if (Math.abs(now - Number(times[0])) > tolerance) return false;
  const expected = createHmac("sha256", secret).update(`${times[0]}.`).update(body).digest("hex");
  const given = parts.filter(([name]) => name === "v1").map(([, value]) => Buffer.from(value ?? ""));
  return given.some((value) => value.length === 64 && timingSafeEqual(value, Buffer.from(expected)));
}
