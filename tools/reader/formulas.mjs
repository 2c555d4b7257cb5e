// Typesets formulas: a JSON list of [TeX, alone] on standard input, a JSON list of
// HTML on standard output. Called by formulas.py with the folder that holds katex.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const katex = createRequire(`${process.argv[2]}/package.json`)("katex");

const given = JSON.parse(readFileSync(0, "utf8"));
const options = { output: "htmlAndMathml", strict: "error", throwOnError: true };
const made = given.map(([tex, displayMode]) => {
  try {
    return katex.renderToString(tex, { ...options, displayMode });
  } catch (error) {
    console.error(`${tex}\n  ${error.message}`);
    process.exitCode = 1;
    return "";
  }
});
process.stdout.write(JSON.stringify(made));
