// Ribbons between two rows of words: from each reader down below to what it reads above, as wide as its weight.
import { patch, s } from "../js/dom.js";

const HIGH_PX = 150;
const WHOLE_PX = 50; // the width of weight 1
const LEAST_PX = 8; // of it, however near the words stand
const CASING_PX = 3;

/**
 * @param {object} view
 * @param {SVGElement} view.layer
 * @param {number[]} view.above  the middles of the source's words
 * @param {number[]} view.below  of the reader's
 * @param {Float64Array} view.A  n×m, columns in the order of the source's places
 * @param {number} view.chosen
 * @param {boolean} view.alone
 * @param {number} view.lit  the place of a source word that stands out, or −1
 */
export function drawRibbons({ layer, above, below, A, chosen, alone, lit }) {
  const m = above.length;
  const gaps = [above, below].flatMap((xs) => xs.slice(1).map((x, k) => x - xs[k]));
  const whole = Math.max(LEAST_PX, Math.min(WHOLE_PX, ...gaps.map((gap) => 0.8 * gap)));
  const rows = below.map((_, i) => i).filter((i) => !alone || i === chosen);
  // at a source's word the ribbons stand beside one another, from the left reader to the right one
  const totals = above.map((_, j) => rows.reduce((sum, i) => sum + A[i * m + j], 0) * whole);
  const ends = above.map((x, j) => x - totals[j] / 2);
  const ribbons = rows.flatMap((i) => {
    let slot = below[i] - whole / 2;
    return above.map((_, j) => {
      const wide = A[i * m + j] * whole;
      const [start, end] = [slot + wide / 2, ends[j] + wide / 2];
      slot += wide;
      ends[j] += wide;
      return { i, j, wide, start, end };
    });
  });
  const path = ({ start, end }, more) =>
    s("path", {
      d: `M${start.toFixed(1)} ${HIGH_PX}C${start.toFixed(1)} ${HIGH_PX * 0.45} ${end.toFixed(1)} ${HIGH_PX * 0.55} ${end.toFixed(1)} 0`,
      ...more,
    });
  // the chosen reader's lie on top
  const order = [...ribbons].sort((a, b) => Number(a.i === chosen) - Number(b.i === chosen));
  patch(
    layer,
    order
      .filter(({ wide }) => wide > 0.05)
      .map((ribbon) => {
        const dim = ribbon.i !== chosen || (lit >= 0 && lit !== ribbon.j);
        return s(
          "g",
          {
            class: dim ? "attn-dim" : ribbon.wide > 2 ? null : "attn-faint",
            "data-reader": ribbon.i,
            "data-place": ribbon.j,
          },
          ribbon.wide > 2
            ? path(ribbon, { class: "attn-casing", "stroke-width": (ribbon.wide + CASING_PX).toFixed(2) })
            : null,
          path(ribbon, { class: "attn-arc", "stroke-width": Math.max(0.8, ribbon.wide).toFixed(2) }),
        );
      }),
  );
}

export { HIGH_PX };
