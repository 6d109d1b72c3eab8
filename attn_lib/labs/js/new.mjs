// Begin a lab: `npm run new pair` makes the folder attn_lib/labs/pair, a small lab that works, with the class PairLab.
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { kind } from "./kind.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const name = process.argv[2] ?? "";
const folder = join(here, "..", name);
if (!/^[a-z]+(_[a-z]+)*$/.test(name)) throw new Error(`a lab's name is small letters, parted by _: got "${name}"`);
if (existsSync(folder)) throw new Error(`${folder} is there already`);
cpSync(join(here, "template"), folder, { recursive: true, filter: (path) => !path.includes("__pycache__") });
for (const file of readdirSync(folder)) {
  const text = readFileSync(join(folder, file), "utf8");
  writeFileSync(join(folder, file), text.replaceAll("TemplateLab", kind(name)).replaceAll("template", name));
}
console.log(`attn_lib/labs/${name} holds ${kind(name)}. Change it, then: npm run build`);
