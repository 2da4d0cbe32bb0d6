#!/usr/bin/env node
// Starts the program of this platform's package, with the same arguments, streams, signals and exit code.
"use strict";

const { spawn } = require("node:child_process");

let program;
try {
  program = require("./program.js")();
} catch (error) {
  console.error(`error: ${error.message}`);
  process.exit(2);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// Signals to the launcher alone are forwarded. A terminal sends Ctrl-C to both, and a second one has another meaning.
const onTerminal = [process.stdin, process.stdout, process.stderr].some((stream) => stream.isTTY);
process.on("SIGINT", () => onTerminal || child.kill("SIGINT"));
for (const signal of ["SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
// npm starts commands through a shell, which exits on a signal without forwarding it.
if (process.env.npm_lifecycle_event && process.platform !== "win32") {
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid !== parent) {
      clearInterval(watch);
      child.kill("SIGTERM");
    }
  }, 200);
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
