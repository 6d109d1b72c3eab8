// Bundle the labs: one ES module for Jupyter, one classic script for pages, one style sheet.
// `node build.mjs OUT` writes them elsewhere, which is how a test sees that the committed ones are fresh.
import * as esbuild from "esbuild";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
// Long names that pass between our own modules only, never to or from the page, the model or the data: bundled short.
const OWN = /^(accumulator|colIds|control|current|domain|element|formula|formulaKey|fromInput|leastWithoutDigits|maximum|normaliser|onCell|onInput|onOrder|onQuery|onRow|rowIds|sentence|series|settings|shareLabel|toInput|untitled|update)$/;
const out = process.argv[2] ?? join(here, "..", "static");
const bundle = (entry, file, format) =>
  esbuild.build({
    absWorkingDir: here,
    bundle: true,
    charset: "utf8",
    entryPoints: [entry],
    format,
    legalComments: "none",
    mangleProps: OWN,
    minify: true,
    outfile: join(out, file),
    target: "es2022",
  });

await bundle("widget.js", "labs.mjs", "esm"); // anywidget loads a module
await bundle("page.js", "labs.page.js", "iife"); // browsers refuse modules from file://
await bundle("labs.css", "labs.css");
