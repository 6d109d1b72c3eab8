// How the chosen query's row is shared out: a bar for each key on a fixed axis, and nothing where nothing may be read.
import { FONT, h, patch, s } from "../js/dom.js";
import { fixed } from "../js/numbers.js";

const BAR_PX = { most: 46, gap: 6 };
const HIGH_PX = 132;
const FLOOR_PX = 40; // for the keys' numbers and the weights
const LEFT_PX = 22;

const text = (x, y, words, more = {}) =>
  s("text", { x: x.toFixed(1), y: y.toFixed(1), "text-anchor": "middle", ...more }, words);

/** The bars of one row. */
export function shares() {
  const picture = s("svg", { role: "img", class: "attn-chart attn-sharing", "font-family": FONT });
  const title = h("div", { class: "attn-panel-title" });
  const element = h("div", { class: "attn-panel" }, title, picture);
  return {
    element,
    /** @param {{width: number, query: number, a: ArrayLike<number>, allowed: boolean[], sentence: string}} row */
    update({ width, query, a, allowed, sentence }) {
      const m = allowed.length;
      const step = Math.min(BAR_PX.most, (width - LEFT_PX) / m);
      const wide = LEFT_PX + step * m;
      const floor = 14 + HIGH_PX;
      picture.setAttribute("width", String(Math.ceil(wide)));
      picture.setAttribute("height", String(floor + FLOOR_PX));
      picture.setAttribute("viewBox", `0 0 ${Math.ceil(wide)} ${floor + FLOOR_PX}`);
      picture.setAttribute("aria-label", sentence);
      title.replaceChildren(h("b", {}, "Row of query ", h("span", { class: "attn-c-query" }, String(query + 1))));
      const y = (weight) => floor - weight * HIGH_PX;
      const nodes = [0, 0.5, 1].flatMap((weight) => [
        s("path", { class: weight ? "attn-grid" : "attn-axis", d: `M${LEFT_PX} ${y(weight)}H${wide.toFixed(1)}` }),
        text(LEFT_PX - 5, y(weight) + 4, String(weight).replace("0.", "."), { "text-anchor": "end" }),
      ]);
      for (let j = 0; j < m; j++) {
        const x = LEFT_PX + (j + 0.5) * step;
        const bar = step - BAR_PX.gap;
        nodes.push(text(x, floor + 16, String(j + 1), { class: allowed[j] ? "attn-f-key" : null }));
        if (!allowed[j]) {
          const [left, right, top] = [x - bar / 2, x + bar / 2, floor - 12].map((value) => value.toFixed(1));
          nodes.push(s("path", { class: "attn-gone", d: `M${left} ${floor}V${top}H${right}V${floor}` }));
          continue;
        }
        const box = { x: (x - bar / 2).toFixed(1), y: y(a[j]).toFixed(1), width: bar.toFixed(1) };
        nodes.push(s("rect", { class: "attn-f-weight", ...box, height: Math.max(0.6, a[j] * HIGH_PX).toFixed(1) }));
        if (step > 20) nodes.push(text(x, y(a[j]) - 4, fixed(a[j]).replace("0.", "."), { class: "attn-f-weight" }));
      }
      nodes.push(text(LEFT_PX + (step * m) / 2, floor + 34, "key"));
      patch(picture, nodes);
    },
  };
}
