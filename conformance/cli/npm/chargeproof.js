#!/usr/bin/env node
// Starts the program of this platform's package, with the same arguments, streams, signals and exit code.
"use strict";

const { spawn } = require("node:child_process");

const native = `@chargeproof/${process.platform}-${process.arch}`;
const name = process.platform === "win32" ? "chargeproof.exe" : "chargeproof";

let program;
try {
  program = require.resolve(`${native}/${name}`);
} catch {
  console.error(
    `error: there is no chargeproof for ${process.platform}-${process.arch}, or npm was told to leave optional ` +
      `packages out; try \`npm install ${native}\`, or build it from source`,
  );
  process.exit(2);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// A terminal sends Ctrl-C to both; what is sent to the launcher alone is handed on.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`error: cannot start ${program}: ${error.message}`);
  process.exit(2);
});
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exit(code);
  }
});
