import assert from "node:assert/strict";
import { test } from "node:test";
import { normals, uniforms } from "../draws.js";

const mean = (x) => x.reduce((sum, value) => sum + value, 0) / x.length;

test("number i does not depend on how many are drawn, nor on where drawing begins", () => {
  const all = normals(7, 2, 11);
  assert.deepEqual(normals(7, 2, 4), all.slice(0, 4));
  assert.deepEqual(normals(7, 2, 5, 6), all.slice(6, 11));
  assert.deepEqual(uniforms(7, 2, 3, 5), uniforms(7, 2, 8).slice(5));
});

test("seeds and streams draw other numbers", () => {
  const firsts = [0, 1, 2].flatMap((seed) => [0, 1, 2].map((stream) => uniforms(seed, stream, 1)[0]));
  assert.equal(new Set(firsts).size, 9);
});

test("uniforms lie inside (0, 1), normals have mean 0 and variance 1", () => {
  const u = uniforms(1, 0, 20000);
  assert.ok(u.every((value) => value > 0 && value < 1));
  assert.ok(Math.abs(mean(u) - 0.5) < 0.01);
  const z = normals(1, 0, 20000);
  assert.ok(Math.abs(mean(z)) < 0.03);
  assert.ok(Math.abs(mean(z.map((value) => value * value)) - 1) < 0.05);
});
