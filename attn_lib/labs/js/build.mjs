// Bundle the labs: one ES module for Jupyter, one classic script for pages, one style sheet.
// Every folder beside this one with a lab.js is a lab; its lab.css, if it has one, joins the style sheet.
// `node build.mjs OUT` writes them elsewhere, which is how a test sees that the committed ones are fresh.
import * as esbuild from "esbuild";
import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { kind } from "./kind.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "..", "static");
const has = (file) => (folder) => existsSync(join(here, "..", folder, file));
const folders = readdirSync(join(here, "..")).sort();

/** What `import { labs } from "labs"` gives: every lab's render by the name of its class. */
const registry = () => {
  const found = folders.filter(has("lab.js"));
  const imports = found.map((folder) => `import ${kind(folder)} from "../${folder}/lab.js";\n`);
  return `${imports.join("")}export const labs = { ${found.map(kind).join(", ")} };`;
};
const styles = () =>
  ["./labs.css", ...folders.filter(has("lab.css")).map((folder) => `../${folder}/lab.css`)]
    .map((path) => `@import "${path}";\n`)
    .join("");

const labs = {
  name: "labs",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^labs$/ }, () => ({ path: "labs", namespace: "labs" }));
    onLoad({ filter: /^labs$/, namespace: "labs" }, () => ({ contents: registry(), resolveDir: here }));
  },
};
const bundle = (file, options) =>
  esbuild.build({
    absWorkingDir: here,
    bundle: true,
    charset: "utf8",
    legalComments: "none",
    minify: true,
    outfile: join(out, file),
    plugins: [labs],
    target: "es2022",
    ...options,
  });

await bundle("labs.mjs", { entryPoints: ["widget.js"], format: "esm" }); // anywidget loads a module
await bundle("labs.page.js", { entryPoints: ["page.js"], format: "iife" }); // browsers refuse modules from file://
await bundle("labs.css", { stdin: { contents: styles(), loader: "css", resolveDir: here } });
