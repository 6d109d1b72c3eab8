// One pair, seen: a query and a key coordinate by coordinate, their products laid end to end, the score; the weight as a
// share of one whole; the value, and what of it arrives.
import { FONT, h, patch, s } from "./dom.js";
import { fixed } from "./numbers.js";

const NAMED_FROM_PX = 16; // a row of this height has room for names and numbers
const ROWS_PX = { least: 3, most: 32, all: 150 };
const NARROW_PX = 560;

/** As short as it can be read: .57, −1, 0, 3.5. */
const minus = (value, digits = 2) =>
  fixed(value, digits)
    .replace(/(\.\d*?)0+$/, "$1")
    .replace(/\.$/, "")
    .replace(/^(−?)0\./, "$1.");

/** Columns of the picture, and px for a unit of each quantity, in a width. */
function layout(width, { reach, walk, values, d_k, d_v }) {
  const narrow = width < NARROW_PX;
  const row = Math.min(narrow ? 24 : ROWS_PX.most, Math.max(ROWS_PX.least, ROWS_PX.all / d_k));
  const rows = d_k * row;
  const named = row >= NAMED_FROM_PX;
  const label = named ? Math.min(96, 0.24 * width) : 8;
  const wide = narrow ? width : 0.72 * width; // of the score's part
  const column = (wide - label) * (narrow ? 0.26 : 0.24);
  const products = label + 2 * column;
  const room = wide - products - (named && !narrow ? 44 : 30);
  return {
    narrow,
    named,
    row,
    rows,
    label,
    bar: Math.min(row - (named ? 10 : 1), 20),
    q: label + column / 2,
    k: label + 1.5 * column,
    unit: (column / 2 - (named && !narrow ? 30 : 8)) / reach,
    products: products + (room * walk.low) / (walk.low + walk.high) + 12,
    product: room / (walk.low + walk.high),
    top: 40,
    height: narrow ? 40 + rows + 2 * 24 + 30 + 34 + Math.max(110, d_v * 26) : 40 + rows + 2 * ROWS_PX.most + 10,
    share: narrow ? 8 : 0.77 * width,
    value: narrow ? width * 0.55 : 0.93 * width,
    arrival: narrow ? 40 + rows + 2 * 24 + 64 : 40,
    whole: narrow ? 110 : rows + 1.2 * ROWS_PX.most,
    each: (narrow ? width * 0.42 : 0.07 * width - 4) / values.high,
  };
}

/** How far a quantity of the scene can reach, so that no scale moves while pairs are compared. */
export function pairScales({ Q, K, V, n, width, d_v }, scale) {
  const reach = Math.max(...Q.map(Math.abs), ...K.map(Math.abs), 1e-9);
  let [low, high] = [0, 1e-9];
  for (let i = 0; i < n; i++)
    for (let j = 0; j < n; j++)
      for (let r = 0, sum = 0; r < width; r++) {
        sum += Q[i * width + r] * K[j * width + r];
        low = Math.min(low, sum, sum * scale);
        high = Math.max(high, sum, sum * scale);
      }
  return { reach, walk: { low: -low, high }, values: { high: Math.max(...V.map(Math.abs), 1e-9) }, d_k: width, d_v };
}

/**
 * @typedef {object} Pair
 * @property {number} width
 * @property {ReturnType<typeof pairScales>} scales
 * @property {string} query  its token
 * @property {string} key
 * @property {string[]} coordinates  names of the d_k
 * @property {string[]} outputs  names of the d_v
 * @property {ArrayLike<number>} q
 * @property {ArrayLike<number>} k
 * @property {ArrayLike<number>} v
 * @property {number} scale  1/√d_k, or 1
 * @property {number} score
 * @property {ArrayLike<number>} weights  of the query, in the order of the words
 * @property {number} place  the key's among them
 */

const bar = (x, y, length, high, role, more = {}) =>
  s("rect", {
    x: (length < 0 ? x + length : x).toFixed(1),
    y: y.toFixed(1),
    width: Math.max(0.6, Math.abs(length)).toFixed(1),
    height: high.toFixed(1),
    class: `attn-f-${role}`,
    ...more,
  });
const words = (x, y, text, more = {}) => s("text", { x: x.toFixed(1), y: y.toFixed(1), ...more }, text);
const heading = (x, y, letter, word, role, anchor = "middle") =>
  s(
    "text",
    { x: x.toFixed(1), y, class: `attn-f-${role} attn-heading`, "text-anchor": anchor },
    s("tspan", { class: "attn-letter" }, letter),
    s("tspan", { dx: 5 }, word),
  );

/** The score's part: q, k, products end to end, their sum, the score. @param {Pair} pair */
function scorePart(pair, at) {
  const { q, k, coordinates, scale, score } = pair;
  const nodes = [
    heading(at.q, 18, "q", pair.query, "query"),
    heading(at.k, 18, "k", pair.key, "key"),
    heading(at.products, 18, "q k", at.narrow ? "products" : "products, end to end", "high", "middle"),
  ];
  const end = at.top + at.rows;
  for (const x of [at.q, at.k])
    nodes.push(s("path", { class: "attn-grid", d: `M${x.toFixed(1)} ${at.top - 6}V${(end - 4).toFixed(1)}` }));
  nodes.push(
    s("path", { class: "attn-grid", d: `M${at.products.toFixed(1)} ${at.top - 6}V${end + 2 * ROWS_PX.most - 8}` }),
  );
  let run = 0;
  for (let r = 0; r < q.length; r++) {
    const y = at.top + r * at.row;
    const product = q[r] * k[r];
    nodes.push(bar(at.q, y, q[r] * at.unit, at.bar, "query"), bar(at.k, y, k[r] * at.unit, at.bar, "key"));
    nodes.push(bar(at.products + run * at.product, y, product * at.product, at.bar, product < 0 ? "low" : "high"));
    run += product;
    const x = (at.products + run * at.product).toFixed(1);
    if (at.named) {
      const line = y + at.bar / 2 + 4.5;
      nodes.push(words(0, line, coordinates[r] ?? String(r + 1)));
      if (!at.narrow)
        for (const [x0, value] of [
          [at.q, q[r]],
          [at.k, k[r]],
        ])
          nodes.push(words(x0 + Math.max(0, value) * at.unit + 5, line, minus(value, 1)));
      nodes.push(s("path", { class: "attn-mark", d: `M${x} ${(y + at.bar).toFixed(1)}V${(y + at.row).toFixed(1)}` }));
      if (!at.narrow)
        nodes.push(words(at.products + Math.max(run, run - product, 0) * at.product + 6, line, minus(product)));
    }
  }
  const line = at.narrow ? 24 : 28;
  const total = (y, name, value, strong) => [
    words(at.products - 12 + Math.min(0, value) * at.product, y + 13, name, { "text-anchor": "end" }),
    bar(at.products, y, value * at.product, 16, value < 0 ? "low" : "high"),
    words(at.products + Math.max(0, value) * at.product + 6, y + 13, minus(value), {
      class: strong ? "attn-strong" : null,
    }),
  ];
  nodes.push(...total(end + 6, "sum", run, false));
  if (Number.isFinite(score)) {
    const divisor = 1 / scale;
    const name = scale === 1 ? "score" : `÷ ${minus(divisor, Number.isInteger(divisor) ? 0 : 2)} = score`;
    nodes.push(...total(end + 6 + line, name, run * scale, true));
  } else
    nodes.push(
      words(at.products - 12, end + 19 + line, "the mask forbids it", { class: "attn-strong", "text-anchor": "end" }),
    );
  return nodes;
}

/** The weight as a share of one whole, and what of the value arrives. @param {Pair} pair */
function mixPart(pair, at) {
  const { weights, place, v, outputs, key } = pair;
  const a = weights[place];
  const top = at.arrival;
  const nodes = [heading(at.share, top - 22, "a", "weight", "weight", "start")];
  let share = 0;
  for (let j = 0; j < weights.length; j++) {
    const y = top - 6 + share * at.whole;
    if (weights[j] > 0)
      nodes.push(bar(at.share, y, 28, Math.max(0.5, weights[j] * at.whole - 1), j === place ? "weight" : "rest"));
    share += weights[j];
    if (j === place)
      nodes.push(words(at.share + 36, y + (a * at.whole) / 2 + 6, minus(a), { class: "attn-f-weight attn-large" }));
  }
  nodes.push(heading(at.value, top - 22, "v", key, "value", "middle"));
  const gap = at.narrow ? 26 : Math.min(34, at.whole / Math.max(1, v.length));
  nodes.push(s("path", { class: "attn-grid", d: `M${at.value.toFixed(1)} ${top - 8}v${(gap * v.length).toFixed(1)}` }));
  for (let r = 0; r < v.length; r++) {
    const y = top - 4 + r * gap;
    nodes.push(bar(at.value, y, v[r] * at.each, 16, "hollow"), bar(at.value, y, a * v[r] * at.each, 16, "output"));
    const left = Math.min(0, v[r]) * at.each;
    nodes.push(words(at.value + left - 7, y + 13, outputs[r], { "text-anchor": "end" }));
  }
  const under = top + gap * v.length + 12;
  nodes.push(
    s(
      "text",
      { x: at.value.toFixed(1), y: under, "text-anchor": "middle" },
      "filled: ",
      s("tspan", { class: "attn-f-output attn-letter" }, "a v"),
    ),
  );
  return nodes;
}

/** The panel that shows one query with one key. */
export function pairPanel() {
  const picture = s("svg", { role: "img", class: "attn-chart attn-pairing", "font-family": FONT });
  const element = h("div", { class: "attn-answer" }, picture);
  return {
    element,
    /** @param {Pair} pair */
    update(pair) {
      const at = layout(pair.width, pair.scales);
      picture.setAttribute("width", String(pair.width));
      picture.setAttribute("height", String(Math.ceil(at.height)));
      picture.setAttribute("viewBox", `0 0 ${pair.width} ${Math.ceil(at.height)}`);
      const score = Number.isFinite(pair.score) ? `score ${fixed(pair.score)}` : "forbidden by the mask";
      picture.setAttribute(
        "aria-label",
        `${pair.query} with ${pair.key}, coordinate by coordinate: ${score}, weight ${fixed(pair.weights[pair.place])}.`,
      );
      patch(picture, [...scorePart(pair, at), ...mixPart(pair, at)]);
    },
  };
}
