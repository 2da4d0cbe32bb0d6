// The path of the program in this platform's package.
"use strict";

/** `CHARGEPROOF_PROGRAM`, or the installed program. Throws if neither exists. */
module.exports = function program() {
  if (process.env.CHARGEPROOF_PROGRAM) return process.env.CHARGEPROOF_PROGRAM;
  const native = `@chargeproof/${process.platform}-${process.arch}`;
  const name = process.platform === "win32" ? "chargeproof.exe" : "chargeproof";
  try {
    return require.resolve(`${native}/${name}`);
  } catch {
    throw new Error(
      `there is no chargeproof for ${process.platform}-${process.arch}, or npm was told to leave optional ` +
        `packages out; try \`npm install ${native}\`, or build it from source`,
    );
  }
};
