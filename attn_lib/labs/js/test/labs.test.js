// What single labs compute beside the shared equations.
import assert from "node:assert/strict";
import { test } from "node:test";
import { attentionCost, windowTile } from "../../cost/counts.js";
import { convexHull, exactScores, gaussianScores, hardWeights, withLength } from "../../lookup/scores.js";
import { addPositions, alibiBias, equivarianceGap, rope, sinusoidalPositions } from "../../position/encodings.js";

const close = (a, b, within = 1e-12) => assert.ok(Math.abs(a - b) <= within, `${a}, not ${b}`);

test("sines and cosines stand side by side, and position 0 is 0, 1, 0, 1", () => {
  const P = sinusoidalPositions(2, 4, 100);
  assert.deepEqual([...P.subarray(0, 4)], [0, 1, 0, 1]);
  [Math.sin(1), Math.cos(1), Math.sin(0.1), Math.cos(0.1)].forEach((value, at) => close(P[4 + at], value));
  assert.deepEqual([...addPositions(Float64Array.of(1, 2), Float64Array.of(10, 20, 30, 40), 2, [1])], [31, 42]);
});

test("rope keeps lengths, and products depend on the distance alone", () => {
  const q = Float64Array.of(1, 2, -0.5, 3);
  const k = Float64Array.of(0.3, -1, 2, 1);
  const at = (x, place) => rope(x, 4, [place]);
  const dot = (a, b) => a.reduce((sum, value, r) => sum + value * b[r], 0);
  close(dot(at(q, 9), at(q, 9)), dot(q, q));
  close(dot(at(q, 5), at(k, 2)), dot(at(q, 105), at(k, 102)));
  assert.ok(Math.abs(dot(at(q, 5), at(k, 2)) - dot(at(q, 5), at(k, 3))) > 0.1);
});

test("the bias of a distance is alike on both sides", () => {
  assert.deepEqual(
    [...alibiBias(2, 3, { slope: 0.5, offset: 1 })].map((value) => value + 0),
    [-0.5, 0, -0.5, -1, -0.5, 0],
  );
});

test("a layer that looks at each row alone has no gap, one that looks at the place has", () => {
  const X = Float64Array.of(1, 2, 3, 4, 5, 6);
  const given = { d: 2, width: 2, permutation: [2, 0, 1] };
  assert.equal(
    equivarianceGap((M) => M.map((x) => 2 * x), X, given),
    0,
  );
  close(
    equivarianceGap((M) => M.map((x, at) => x + at), X, given),
    Math.sqrt(2 * (16 + 4 + 4)),
  );
});

test("a query on a key finds it alone, on none nothing, and equal scores share", () => {
  const K = Float64Array.of(0, 0, 3, 4);
  assert.deepEqual([...exactScores([3, 4], K)], [-Infinity, 0]);
  assert.deepEqual(
    [...gaussianScores([0, 0], K)].map((value) => value + 0),
    [0, -12.5],
  );
  assert.deepEqual([...hardWeights(Float64Array.of(1, 1, 0))], [0.5, 0.5, 0]);
  assert.deepEqual([...hardWeights(Float64Array.of(-Infinity, -Infinity))], [0, 0]);
  assert.deepEqual([...withLength(Float64Array.of(3, 4), 10)], [6, 8]);
});

test("the hull leaves out what lies inside or on an edge", () => {
  const [inside, onEdge] = [
    [1, 1],
    [1, 0],
  ];
  assert.deepEqual(convexHull([[0, 0], [2, 0], inside, [2, 2], [0, 2], onEdge]).sort(), [0, 1, 3, 4]);
  assert.deepEqual(convexHull([[1, 1]]), [0]);
});

test("costs: full attention counts every pair, a window only its own", () => {
  assert.deepEqual(attentionCost("plain", 10, 4), { operations: 800, memory: 100 });
  assert.equal(attentionCost("tiled", 10, 4).operations, 800);
  assert.ok(attentionCost("tiled", 1 << 16, 64).memory < (1 << 16) ** 2 / 100);
  const windowed = (n) => attentionCost("windowed", n, 64, 128).operations;
  assert.ok(windowed(1 << 18) < 2.01 * windowed(1 << 17)); // twice the tokens, twice the work
  assert.equal(attentionCost("linear", 2048, 64).memory, attentionCost("linear", 128, 64).memory);
  assert.deepEqual(windowTile(8), [32, 1024]);
});
