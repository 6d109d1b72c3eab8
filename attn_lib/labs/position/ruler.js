// A ruler of positions: a query and a key on it, and the same pair moved on. Both can be pulled.
import { FONT, h, patch, s } from "../js/dom.js";
import { fixed } from "../js/numbers.js";

const HIGH_PX = 118;
const LINE_PX = 82;
const RADIUS_PX = 8;
const EDGE_PX = 14;

/**
 * @param {object} options
 * @param {number} options.last  the ruler runs from 0 to this position
 * @param {number} options.query  where the first query stands
 * @param {(offset: number) => void} options.onOffset  the key of a pair was pulled this far from its query
 * @param {(shift: number) => void} options.onShift  the query of the moved pair was pulled this far
 * @param {AbortSignal} options.signal
 */
export function ruler({ last, query, onOffset, onShift, signal }) {
  const picture = s("svg", { role: "img", class: "attn-chart attn-ruler", "font-family": FONT });
  const element = h("div", { class: "attn-answer" }, picture);
  let width = 0;
  let shown = { shift: 0 };
  const X = (position) => EDGE_PX + (position / last) * (width - 2 * EDGE_PX);
  const positionAt = (px) => Math.round(((px - EDGE_PX) / (width - 2 * EDGE_PX)) * last);

  let held = null;
  const pull = ({ clientX }) => {
    const position = positionAt(clientX - picture.getBoundingClientRect().left);
    if (held === "shift") onShift(position - query);
    else onOffset(position - query - (held === "moved" ? shown.shift : 0));
  };
  const listen = (type, run) => picture.addEventListener(type, run, { signal });
  listen("pointerdown", (event) => {
    const grip = event.target instanceof Element && event.target.closest("[data-grip]");
    if (!grip || event.button) return;
    held = grip.getAttribute("data-grip");
    picture.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  listen("pointermove", (event) => held && pull(event));
  for (const type of ["pointerup", "pointercancel"]) listen(type, () => (held = null));

  /** One pair: its arc, its two tokens, its score. */
  function pair(at, offset, score, { moved }) {
    const [xq, xk] = [X(at), X(at + offset)];
    const high = moved ? 50 : 34;
    const [left, right] = [Math.min(xq, xk), Math.max(xq, xk)];
    const top = Math.min(LINE_PX - 10, LINE_PX - 10 - high * Math.min(1, (right - left) / 60));
    const arc = `M${left.toFixed(1)} ${LINE_PX - 9}C${left.toFixed(1)} ${top} ${right.toFixed(1)} ${top} ${right.toFixed(1)} ${LINE_PX - 9}`;
    const token = (x, role, grip, letter) => [
      s("circle", {
        class: `attn-f-${role}${grip ? " attn-gripped" : ""}`,
        cx: x.toFixed(1),
        cy: LINE_PX,
        r: RADIUS_PX,
        ...(grip ? { "data-grip": grip } : {}),
      }),
      s(
        "text",
        { class: `attn-f-${role} attn-letter`, x: x.toFixed(1), y: LINE_PX + 26, "text-anchor": "middle" },
        letter + (moved ? "′" : ""),
      ),
    ];
    const middle = Math.min(width - 40, Math.max(40, (left + right) / 2));
    return [
      offset ? s("path", { class: moved ? "attn-movedarc" : "attn-pairarc", d: arc }) : null,
      ...token(xk, "key", moved ? "moved" : "offset", "k"),
      ...token(xq, "query", moved ? "shift" : null, "q"),
      s(
        "text",
        { class: "attn-rulerscore", x: middle.toFixed(1), y: (moved ? 16 : 34).toString(), "text-anchor": "middle" },
        `score ${fixed(score)}`,
      ),
    ].filter(Boolean);
  }

  return {
    element,
    /** @param {{width: number, offset: number, shift: number, score: number, shifted: number, sentence: string}} view */
    update(view) {
      width = view.width;
      shown = view;
      picture.setAttribute("width", String(width));
      picture.setAttribute("height", String(HIGH_PX));
      picture.setAttribute("viewBox", `0 0 ${width} ${HIGH_PX}`);
      picture.setAttribute("aria-label", view.sentence);
      const every = width < 560 ? 16 : 8;
      const ticks = Array.from({ length: Math.floor(last / every) + 1 }, (_, k) => k * every);
      const dots = Array.from({ length: last + 1 }, (_, k) =>
        s("circle", { class: "attn-place", cx: X(k).toFixed(1), cy: LINE_PX, r: 1.3 }),
      );
      patch(picture, [
        s("path", { class: "attn-axis", d: `M${X(0)} ${LINE_PX}H${X(last)}` }),
        ...dots,
        ...ticks.map((k) => s("text", { x: X(k).toFixed(1), y: LINE_PX + 16, "text-anchor": "middle" }, String(k))),
        ...pair(query, view.offset, view.score, { moved: false }),
        ...(view.shift ? pair(query + view.shift, view.offset, view.shifted, { moved: true }) : []),
      ]);
    },
  };
}
