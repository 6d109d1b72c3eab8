// What one query carries from tile to tile, as bars on fixed axes: the largest score so far, the sum of powers, and the
// output so far beside the exact one. A larger score makes everything that was carried shrink.
import { FONT, h, patch, s } from "../js/dom.js";
import { fixed } from "../js/numbers.js";

const ROW_PX = 34;
const LABEL_PX = 118;
const NUMBER_PX = 52;

const text = (x, y, words, more = {}) => s("text", { x: x.toFixed(1), y: y.toFixed(1), ...more }, words);

/** @param {{limits: {score: number, sum: number, output: number}}} options */
export function carried({ limits }) {
  const picture = s("svg", { role: "img", class: "attn-chart attn-carried", "font-family": FONT });
  const element = h("div", { class: "attn-answer" }, picture);
  return {
    element,
    /**
     * @param {{width: number, query: number, now: any, before: any, factor: number | null, soFar: ArrayLike<number>,
     *   exact: ArrayLike<number>, sentence: string}} view
     */
    update({ width, query, now, before, factor, soFar, exact, sentence }) {
      const [left, right] = [LABEL_PX, width - NUMBER_PX];
      const rows = 2 + soFar.length;
      const high = 30 + rows * ROW_PX + 24;
      picture.setAttribute("width", String(width));
      picture.setAttribute("height", String(high));
      picture.setAttribute("viewBox", `0 0 ${width} ${high}`);
      picture.setAttribute("aria-label", sentence);
      const middle = (left + right) / 2;
      const signed = (value, limit) => middle + (Math.max(-1, Math.min(1, value / limit)) * (right - left)) / 2;
      const summed = (value) => left + Math.min(1, value / limits.sum) * (right - left);
      const y = (row) => 30 + row * ROW_PX;
      const name = (row, words) => text(0, y(row) + 14, words, { class: "attn-strong" });
      const number = (row, value) => text(width, y(row) + 14, fixed(value), { "text-anchor": "end" });
      const bar = (row, from, to, role) =>
        s("rect", {
          class: `attn-f-${role} attn-carriedbar`,
          x: Math.min(from, to).toFixed(1),
          y: y(row) + 2,
          width: Math.max(0.6, Math.abs(to - from)).toFixed(1),
          height: 15,
        });
      const axis = (row, x) => s("path", { class: "attn-grid", d: `M${x.toFixed(1)} ${y(row) - 2}v23` });
      const held = factor === null ? now.normaliser : factor * before.normaliser;
      const nodes = [
        text(0, 14, ["What query ", s("tspan", { class: "attn-f-query" }, String(query + 1)), " carries"], {
          class: "attn-strong attn-heading",
        }),
        name(0, "largest score μ"),
        axis(0, middle),
        ...(now.maximum > -Infinity ? [bar(0, middle, signed(now.maximum, limits.score), "high")] : []),
        number(0, now.maximum),
        name(1, "sum of powers ℓ"),
        axis(1, left),
        bar(1, left, summed(now.normaliser), "weight"),
        // what was there before, after it has shrunk; beside it what this tile adds
        ...(factor === null ? [] : [s("path", { class: "attn-kept", d: `M${summed(held).toFixed(1)} ${y(1)}v19` })]),
        number(1, now.normaliser),
      ];
      Array.from(soFar).forEach((value, r) => {
        const row = 2 + r;
        const ghost = signed(exact[r], limits.output);
        nodes.push(
          name(row, `output ${r + 1}: u/ℓ`),
          axis(row, middle),
          ...(now.normaliser > 0 ? [bar(row, middle, signed(value, limits.output), "output")] : []),
          s("path", { class: "attn-ghostline", d: `M${ghost.toFixed(1)} ${y(row) - 2}v23` }),
          number(row, value),
        );
      });
      nodes.push(
        text(
          0,
          y(rows) + 14,
          factor === null
            ? "dashed: the exact output"
            : `before this tile: × ${fixed(factor)}; dashed: the exact output`,
        ),
      );
      patch(picture, nodes);
    },
  };
}
