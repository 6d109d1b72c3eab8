import assert from "node:assert/strict";
import { test } from "node:test";
import { choice, even, flag, inOrder, nearest, oneOf, permutation, real, tuples, whole } from "../settings.js";

const HOSTILE = ["<img src=x onerror=alert(1)>", "NaN", "", " ", "null", "[object Object]", "1,2,", "__proto__", "١"];

const fits = ([a, b]) => a < 3 && b < 3;
const KINDS = {
  whole: [whole(1, 9), (value) => Number.isInteger(value) && value >= 1 && value <= 9],
  even: [even(2, 8), (value) => [2, 4, 6, 8].includes(value)],
  real: [real(-1, 1), (value) => value >= -1 && value <= 1],
  flag: [flag, (value) => typeof value === "boolean"],
  choice: [choice(["a", "b"]), (value) => ["a", "b"].includes(value)],
  oneOf: [oneOf([1, 2], 2), (value) => [1, 2].includes(value)],
  nearest: [nearest([1, 4, 9], 4), (value) => [1, 4, 9].includes(value)],
  permutation: [permutation(3), (value) => [...value].sort().join() === "0,1,2"],
  tuples: [tuples(2, fits, "pairs"), (value) => value.every((pair) => pair.length === 2 && fits(pair))],
};

for (const [name, [setting, allowed]] of Object.entries(KINDS))
  test(`${name}: somebody's link gives an allowed value or words, never anything else`, () => {
    let refused = 0;
    for (const text of [...HOSTILE, "1e99", "-1e99", "Infinity", "0x10", "3.7", "true", "a", "0,1,2", "2,2,2", "0,9"])
      try {
        assert.ok(allowed(setting.read(text)), `${text} became ${setting.read(text)}`);
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error;
        assert.match(error.message, /^expected /);
        refused++;
      }
    assert.ok(refused >= 5);
  });

test("a number is rounded and brought into its range", () => {
  assert.equal(whole(1, 9).read("3.6"), 4);
  assert.equal(whole(1, 9).read("-5"), 1);
  assert.equal(even(2, 8).read("5.1"), 6);
  assert.equal(real(-1, 1).read("1e99"), 1);
  assert.equal(whole(1, 9).clean(NaN), 1);
  assert.equal(whole(1, 9).clean("7.2"), 7);
  assert.equal(nearest([1, 4, 9], 4).read("7"), 9);
});

test("what is not allowed becomes the default, what is stays", () => {
  assert.equal(choice(["a", "b"]).clean("toString"), "a");
  assert.equal(choice(["a", "b"], "b").clean(undefined), "b");
  assert.equal(oneOf([null, 2], 2).read(""), null);
  assert.equal(oneOf([null, 2], 2).clean(3), 2);
  assert.deepEqual(permutation(3).clean([2, 0, 1]), [2, 0, 1]);
  for (const order of [[0, 1], [0, 0, 1], [0, 1, 3], [0, 1, 1.5], "012", null])
    assert.deepEqual(permutation(3).clean(order), [0, 1, 2]);
});

test("tuples come one number after the other, and each counts once", () => {
  const pairs = tuples(2, fits, "pairs");
  assert.deepEqual(pairs.read(""), []);
  assert.deepEqual(pairs.read("0,1,2,2,0,1"), [
    [0, 1],
    [2, 2],
  ]);
  assert.throws(() => pairs.read("0,1,2"), /expected pairs/);
  assert.throws(() => pairs.read("0,-1"), /expected pairs/);
  assert.deepEqual(inOrder(3), [0, 1, 2]);
});
