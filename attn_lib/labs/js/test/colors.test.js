import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import colors from "../../../colors.json" with { type: "json" };
import { colorLimit, colorMap, colorStep, luminance } from "../colors.js";

const contrast = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);

test("digits stand out on every colour of every map", () => {
  for (const theme of ["light", "dark"])
    for (const kind of ["weights", "scores", "outputs"]) {
      const { colors, css, dark } = colorMap(theme, kind);
      assert.equal(colors.length, 256);
      colors.forEach((color, step) => {
        const on = contrast(luminance(color), dark[step] ? 0 : 1);
        assert.ok(on >= 4.5, `${theme} ${kind} ${css[step]}: ${on}`);
      });
    }
});

test("weights run from 0 to their limit, scores to both sides of the middle", () => {
  assert.deepEqual(
    [-1, 0, 0.5, 1, 7].map((value) => colorStep("weights", value)),
    [0, 0, 128, 255, 255],
  );
  assert.deepEqual(
    [-9, -4, 0, 4, 9].map((value) => colorStep("scores", value, 4)),
    [0, 0, 128, 255, 255],
  );
  assert.equal(colorStep("scores", 3, 0), 128);
});

test("the limit is the power of two that holds every finite value", () => {
  assert.equal(colorLimit([0.3, -5, -Infinity, NaN]), 8);
  assert.equal(colorLimit([4]), 4);
  assert.equal(colorLimit([0.3]), 0.5);
  assert.equal(colorLimit([0, -Infinity]), 1);
});

test("the style sheet has the colours of the roles", () => {
  const css = readFileSync(new URL("../labs.css", import.meta.url), "utf8");
  for (const [role, { light, dark }] of Object.entries(colors.roles))
    assert.ok(css.includes(`--attn-${role}: light-dark(${light}, ${dark});`), role);
});
