import assert from "node:assert/strict";
import { test } from "node:test";
import { formatFragment, parseFragment } from "../fragment.js";

test("a fragment says what differs, and says it back", () => {
  const initial = { d_k: 64, order: [0, 1, 2], scene: "a", causal: false, edge: null };
  const state = { d_k: 64, order: [2, 0, 1], scene: "a&b=c?d#é", causal: true, edge: null };
  const hash = formatFragment("my lab", state, initial);
  assert.equal(hash, "#my%20lab?order=2,0,1&scene=a%26b%3Dc%3Fd%23%C3%A9&causal=true");
  assert.deepEqual(parseFragment(hash), {
    name: "my lab",
    fields: [
      ["order", "2,0,1"],
      ["scene", "a&b=c?d#é"],
      ["causal", "true"],
    ],
  });
});

test("nothing changed is the lab's name alone, and nothing (null) is an empty field", () => {
  assert.equal(formatFragment("lab", { a: 1 }, { a: 1 }), "#lab");
  assert.equal(formatFragment("lab", { a: null }, { a: 1 }), "#lab?a=");
});

test("anybody's text does no more than address a lab or none", () => {
  assert.equal(parseFragment(""), null);
  assert.equal(parseFragment("#"), null);
  assert.equal(parseFragment("#?a=1"), null);
  assert.equal(parseFragment("#100%"), null); // not an encoded name
  assert.deepEqual(parseFragment("#lab?a=%zz"), { name: "lab", fields: [["a", "%zz"]] });
  assert.deepEqual(parseFragment("#lab?__proto__=1&a=<img>&a=2&=3"), {
    name: "lab",
    fields: [
      ["__proto__", "1"],
      ["a", "<img>"],
      ["a", "2"],
      ["", "3"],
    ],
  });
  assert.deepEqual(parseFragment("#lab?a=b?c"), { name: "lab", fields: [["a", "b?c"]] });
});
