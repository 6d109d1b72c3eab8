import assert from "node:assert/strict";
import { test } from "node:test";
import * as math from "../math.js";

const near = (got, wanted, within = 1e-12) => {
  assert.equal(got.length, wanted.length);
  wanted.forEach((value, at) => assert.ok(Math.abs(got[at] - value) <= within, `${at}: ${got[at]}, not ${value}`));
};

test("a row's weights are e^s over their sum, and a row of −∞ gives zeros", () => {
  const S = Float64Array.of(Math.log(1), Math.log(3), -Infinity, -Infinity);
  near(math.attentionWeights(S, 2, 2), [0.25, 0.75, 0, 0]);
  near(math.attentionWeights(Float64Array.of(0, Math.log(9)), 1, 2, 2), [0.25, 0.75]); // √9 = 3
});

test("large scores do not overflow", () => {
  near(math.attentionWeights(Float64Array.of(1e308, 1e308, -1e308), 1, 3), [0.5, 0.5, 0]);
});

test("a product is right whether or not four divides the inner width", () => {
  for (const k of [1, 3, 4, 5, 8]) {
    const A = Float64Array.from({ length: 2 * k }, (_, at) => at + 1);
    const B = Float64Array.from({ length: k * 3 }, (_, at) => (at % 7) - 3);
    const wanted = [0, 1].flatMap((i) =>
      [0, 1, 2].map((j) => {
        let sum = 0;
        for (let r = 0; r < k; r++) sum += A[i * k + r] * B[r * 3 + j];
        return sum;
      }),
    );
    near(math.matmul(A, B, 2, k, 3), wanted);
  }
});

test("scores take the first d_k coordinates, scale them, add a bias and hide what a mask forbids", () => {
  const Q = Float64Array.of(1, 2, 9);
  const K = Float64Array.of(3, 4, 9, 5, 6, 9);
  const bias = Float64Array.of(0.5, 100);
  const shape = { n: 1, m: 2, width: 3, d_k: 2, scale: 2 };
  near(math.attentionScores(Q, K, { ...shape, bias, mask: (_, j) => j === 0 }).subarray(0, 1), [22.5]);
  assert.equal(math.attentionScores(Q, K, { ...shape, bias, mask: (_, j) => j === 0 })[1], -Infinity);
  near(math.attentionScores(Q, K, { n: 1, m: 2, width: 3, d_k: 1 }), [3, 5]); // 1/√1
});

test("masks say which keys a query may look at", () => {
  const allowed = (mask, n, m) =>
    Array.from({ length: n }, (_, i) => Array.from({ length: m }, (_, j) => Number(mask(i, j))).join(""));
  assert.deepEqual(allowed(math.causalMask(), 3, 3), ["100", "110", "111"]);
  assert.deepEqual(allowed(math.causalMask(1), 2, 3), ["110", "111"]);
  assert.deepEqual(allowed(math.windowMask(2), 4, 4), ["1000", "1100", "0110", "0011"]);
  assert.deepEqual(allowed(math.windowMask(1, 1), 2, 3), ["010", "001"]);
  assert.deepEqual(allowed(math.prefixMask(2), 3, 4), ["1100", "1100", "1110"]);
});

test("states of parts of a row merge into the state of the row, in any order, also with an empty part", () => {
  const scores = [0, 700, -Infinity, 699];
  const V = Float64Array.of(1, 2, 3, 4, 5, 6, 7, 8);
  const whole = math.outputOf(math.softmaxState(scores, V, 2));
  const part = (from, to) => math.softmaxState(scores.slice(from, to), V.slice(2 * from, 2 * to), 2);
  for (const [a, b] of [
    [part(0, 1), part(1, 4)],
    [part(2, 4), part(0, 2)],
  ])
    near(math.outputOf(math.mergeStates(a, b)), whole);
  const none = part(2, 3);
  near(math.outputOf(none), [0, 0]);
  near(math.outputOf(math.mergeStates(none, none)), [0, 0]);
  near(math.outputOf(math.mergeStates(none, part(0, 1))), [1, 2]);
});

test("entropy counts bits of one row of many", () => {
  const A = Float64Array.of(1, 0, 0, 0, 0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 0, 0);
  assert.deepEqual(
    [0, 4, 8].map((at) => math.entropyBits(A, at, 4)),
    [0, 2, 1],
  );
});

test("rows are taken in the order asked for", () => {
  assert.deepEqual([...math.takeRows(Float64Array.of(1, 2, 3, 4, 5, 6), 2, [2, 0, 2])], [5, 6, 1, 2, 5, 6]);
});
