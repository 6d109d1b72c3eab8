// Two bells of dots on one axis: scores of one draw, raw and divided by √d_k, with the row of eight that a softmax gets.
import { FONT, h, patch, s } from "../js/dom.js";
import { fixed, significant } from "../js/numbers.js";

const SHOWN = 128; // of the draw's scores: the first 16 rows of 8
const MARKED = 8; // the first row
const BARS = { share: 0.22, gap: 36 };
const ROW = { wide: 158, narrow: 236 };
const FLOOR_PX = 22; // under the axis
const DOT_PX = { most: 4.2, least: 1.6 };
const NARROW_PX = 560;

/** Dots above an axis: each goes on top of those that are nearer than a dot. */
function stack(xs, dot) {
  const heights = new Map();
  return xs.map((x) => {
    const column = Math.round(x / dot);
    const level = heights.get(column) ?? 0;
    heights.set(column, level + 1);
    return [column * dot, level];
  });
}

/** The largest dots whose highest stack fits. */
function dotSize(xs, room) {
  for (let dot = DOT_PX.most; dot > DOT_PX.least; dot -= 0.2)
    if (Math.max(...stack(xs, dot).map(([, level]) => level)) * dot <= room) return dot;
  return DOT_PX.least;
}

const label = (x, y, words, more = {}) => s("text", { x: x.toFixed(1), y: y.toFixed(1), ...more }, words);
const letter = (text) => s("tspan", { class: "attn-letter" }, text);

/** The softmax of the marked eight, as bars. */
function bars(weights, { left, wide, floor, high }, role) {
  const step = wide / weights.length;
  const most = Math.max(...weights);
  const nodes = [
    s("path", { class: "attn-axis", d: `M${left} ${floor}H${left + wide}` }),
    s("path", { class: "attn-grid", d: `M${left} ${floor - high}H${left + wide}` }),
    label(left + wide, floor - high - 5, "1", { "text-anchor": "end" }),
    label(left, floor - high - 5, "softmax of the eight"),
  ];
  weights.forEach((weight, j) => {
    const x = left + j * step;
    const y = floor - weight * high;
    nodes.push(
      s("rect", {
        class: role,
        x: (x + 2).toFixed(1),
        y: y.toFixed(1),
        width: (step - 4).toFixed(1),
        height: Math.max(0.6, weight * high).toFixed(1),
      }),
    );
    if (weight === most)
      nodes.push(
        label(x + step / 2, floor + 15, fixed(weight).replace("0.", "."), {
          "text-anchor": "middle",
          class: "attn-f-weight",
        }),
      );
  });
  return nodes;
}

/**
 * @typedef {{name: string, formula: string[], scores: Float64Array, factor: number, mean: number, spread: number,
 *   weights: number[], ghost?: number | null, asking?: boolean}} Bell
 */

/**
 * The picture of both. The axis reaches `reach` to both sides of a predicted mean, at every width: what lies beyond is
 * counted.
 */
export function bells() {
  const picture = s("svg", { role: "img", class: "attn-chart attn-bells", "font-family": FONT });
  const element = h("div", {}, picture);

  /** @param {Bell} shown @param {any} at */
  function bell({ name, formula, scores, factor, mean, spread, weights, ghost }, at) {
    const { wide, top, reach, narrow, asking } = at;
    const floor = top + at.high - FLOOR_PX;
    const X = (value) => ((value - mean + reach) / (2 * reach)) * wide;
    const inside = Array.from(scores.subarray(0, SHOWN), (score) => X(factor * score)).map((x) =>
      Math.min(wide, Math.max(0, x)),
    );
    const dot = dotSize(inside, at.dots);
    const beyond =
      scores.reduce((count, score) => count + Number(Math.abs(factor * score - mean) > reach), 0) / scores.length;
    const ticks = [-1, -0.5, 0, 0.5, 1].map((part) => mean + part * reach);
    const nodes = [
      label(0, top + 15, [name, " ", ...formula.map((part) => (part.length === 1 ? letter(part) : part))], {
        class: "attn-belltitle",
      }),
      label(0, top + 33, `spread ${significant(spread)}`, { class: asking ? "attn-answer" : null }),
      s("path", { class: "attn-axis", d: `M0 ${floor + 0.5}H${wide}` }),
      ...ticks.flatMap((value) => [
        s("path", { class: "attn-axis", d: `M${X(value).toFixed(1)} ${floor}v4` }),
        label(Math.min(wide - 8, Math.max(8, X(value))), floor + 17, significant(value), { "text-anchor": "middle" }),
      ]),
    ];
    const placed = stack(inside, dot);
    const circle = ([x, level], k) =>
      s("circle", {
        class: k < MARKED ? "attn-f-high" : "attn-f-dot",
        cx: x.toFixed(1),
        cy: (floor - (level + 0.55) * dot).toFixed(1),
        r: (k < MARKED ? dot / 2 + 0.9 : dot / 2 - 0.2).toFixed(2),
      });
    const order = [...placed.keys()].sort((a, b) => b - a); // the marked ones on top
    nodes.push(s("g", { class: asking ? "attn-answer" : null }, ...order.map((k) => circle(placed[k], k))));
    if (beyond >= 0.005)
      nodes.push(label(wide, floor - 8, `${Math.round(100 * beyond)} % beyond`, { "text-anchor": "end" }));
    if (ghost) {
      const high = Math.min(at.dots, (SHOWN * dot * dot * reach) / (wide * ghost * 1.25));
      const points = Array.from({ length: 81 }, (_, k) => mean + ghost * (k / 10 - 4)).map((x) => [
        X(x),
        floor - high * Math.exp(-((x - mean) ** 2) / (2 * ghost ** 2)),
      ]);
      nodes.push(
        s("path", {
          class: "attn-ghost",
          d: `M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`,
        }),
        label(Math.min(wide - 80, X(mean + 1.4 * ghost)), floor - 0.5 * high - 8, "your guess", {
          class: "attn-ghostword",
        }),
      );
    }
    const box = narrow
      ? { left: 0, wide, floor: floor + 88, high: 34 }
      : { left: wide + BARS.gap, wide: at.width - wide - BARS.gap, floor, high: at.dots - 22 };
    nodes.push(s("g", { class: asking ? "attn-answer" : null }, ...bars(weights, box, "attn-f-weight")));
    return nodes;
  }

  return {
    element,
    /**
     * @param {{width: number, reach: number, sentence: string, pair: Bell[]}} view
     */
    update({ width, reach, sentence, pair }) {
      const narrow = width < NARROW_PX;
      const high = narrow ? ROW.narrow : ROW.wide;
      const wide = narrow ? width : Math.round(width * (1 - BARS.share)) - BARS.gap;
      picture.setAttribute("width", String(width));
      picture.setAttribute("height", String(2 * high + 6));
      picture.setAttribute("viewBox", `0 0 ${width} ${2 * high + 6}`);
      picture.setAttribute("aria-label", sentence);
      const bellHigh = narrow ? high - 90 : high;
      patch(
        picture,
        pair.flatMap((each, k) =>
          bell(each, {
            width,
            wide,
            top: k * high,
            high: bellHigh,
            dots: bellHigh - FLOOR_PX - 14,
            reach,
            narrow,
            asking: each.asking,
          }),
        ),
      );
    },
  };
}
