// Runs every case of the folder in the argument, and writes one JSON object a line.
const { readdirSync } = require("node:fs");
const { basename, join } = require("node:path");

const folder = process.argv[2];
for (const file of readdirSync(folder).filter((name) => name.endsWith(".js"))) {
  for (const [name, test] of Object.entries(require(join(folder, file)))) {
    if (typeof test !== "function") continue;
    let why = "";
    try {
      test();
    } catch (error) {
      why = String(error.message);
    }
    console.log(JSON.stringify({ test: `${basename(file, ".js")}: ${name}`, outcome: why ? "failed" : "passed", why }));
  }
}
process.exit();
