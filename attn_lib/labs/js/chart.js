// A chart: lines, bars and points on two axes, drawn as SVG, with its numbers in a table beside it.
import { FONT, h } from "./dom.js";
import { significant } from "./numbers.js";

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = { top: 12, right: 14, bottom: 38, left: 48 };
const COLORS = ["accent", "cool", "violet", "green"]; // with DASHES: no two series differ in colour alone
const DASHES = ["", "6 3", "2 3", "8 3 2 3"];

function s(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) if (value != null) element.setAttribute(name, value);
  element.append(...children.filter((child) => child != null));
  return element;
}

/** Round steps (1, 2 or 5 times a power of ten) that cut `low … high` into about `count` parts. */
export function linearTicks(low, high, count = 5) {
  if (!(high > low)) return [low];
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, k) => Number(((first + k) * step).toPrecision(12)));
}

/** Powers of `base` within `low … high`, thinned to at most `count`. */
export function logTicks(low, high, base = 10, count = 7) {
  const from = Math.ceil(Math.log(low) / Math.log(base) - 1e-9);
  const to = Math.floor(Math.log(high) / Math.log(base) + 1e-9);
  const every = Math.max(1, Math.ceil((to - from + 1) / count));
  return Array.from({ length: Math.floor((to - from) / every) + 1 }, (_, k) => base ** (from + k * every));
}

/** Map a domain onto pixels; `scale` is "linear" or "log". */
function axis({ scale = "linear", domain }, from, to) {
  const f = scale === "log" ? (value) => Math.log(Math.max(value, domain[0] / 1e6)) : (value) => value;
  const [low, high] = domain.map(f);
  return (value) => from + ((f(value) - low) / (high - low || 1)) * (to - from);
}

/**
 * @param {object} options
 * @param {string} options.panel  the page contract's name; the table of its numbers carries it
 * @param {string} options.title
 * @param {number} [options.height]  px
 */
export function chart({ panel, title, height = 220 }) {
  const picture = s("svg", { role: "img", class: "attn-chart" });
  const head = h("tr");
  const body = h("tbody");
  const table = h("table", { "data-panel": panel, "aria-label": title }, h("thead", {}, head), body);
  const numbers = h("details", { class: "attn-numbers" }, h("summary", {}, "The numbers"), h("div", { class: "attn-scroll" }, table));
  const key = h("div", { class: "attn-key" });
  const element = h("div", { class: `attn-panel attn-panel-${panel}` }, h("div", { class: "attn-panel-title attn-short" }, h("b", {}, title)), key, picture, numbers);
  let named = "";

  /** The table: one row per x, one column per series; data-value holds y. */
  function tabulate(series, x) {
    const rows = [...new Set(series.filter((each) => !each.quiet).flatMap(({ points }) => points.map(([at]) => at)))].sort((a, b) => a - b);
    const loud = series.filter((each) => !each.quiet);
    head.replaceChildren(h("th", { scope: "col" }, x.label), ...loud.map(({ name }) => h("th", { scope: "col" }, name)));
    body.replaceChildren(
      ...rows.map((at, row) =>
        h(
          "tr",
          {},
          h("th", { scope: "row", "data-value": at }, x.text ? x.text(at) : significant(at)),
          loud.map(({ points }, col) => {
            const found = points.find(([other]) => other === at);
            return found ? h("td", { "data-row": row, "data-col": col, "data-value": found[1] }, significant(found[1])) : h("td");
          }),
        ),
      ),
    );
  }

  function legend(series) {
    const names = String(series.map(({ name }) => name));
    if (names === named) return;
    named = names;
    key.replaceChildren(
      ...series.filter(({ name }) => name).map((each, at) =>
        h("span", {}, s("svg", { width: 26, height: 8, "aria-hidden": "true" }, swatch(each, at)), each.name),
      ),
    );
    key.hidden = series.length < 2;
  }
  const color = (each, at) => `attn-c-${each.color ?? COLORS[at % COLORS.length]}`;
  const dash = (each, at) => (each.dash ?? DASHES[at % DASHES.length]) || null;
  const swatch = (each, at) =>
    each.kind === "bars"
      ? s("rect", { x: 4, y: 0, width: 18, height: 8, class: `attn-bars ${color(each, at)}` })
      : each.kind === "points"
        ? s("circle", { cx: 13, cy: 4, r: 3.5, class: `attn-points ${color(each, at)}` })
        : s("line", { x1: 0, x2: 26, y1: 4, y2: 4, class: `attn-line ${color(each, at)}`, "stroke-dasharray": dash(each, at) });

  function marks(each, at, X, Y, floor) {
    const { points, kind = "line" } = each;
    if (kind === "bars")
      return points.map(([x, y, width]) => s("rect", { class: `attn-bars ${color(each, at)}`, x: X(x - width / 2), width: Math.max(0.5, X(x + width / 2) - X(x - width / 2) - 0.5), y: Math.min(Y(y), floor), height: Math.max(0, floor - Y(y)) }));
    if (kind === "points") return points.map(([x, y]) => s("circle", { class: `attn-points ${color(each, at)}`, cx: X(x), cy: Y(y), r: each.radius ?? 3 }));
    const path = points.map(([x, y], k) => `${k ? "L" : "M"}${X(x).toFixed(2)} ${Y(y).toFixed(2)}`).join("");
    return [s("path", { d: path, class: `attn-line ${color(each, at)}`, "stroke-dasharray": dash(each, at) })];
  }

  return {
    element,
    /**
     * @param {object} view
     * @param {number} view.width  px
     * @param {{label: string, domain: [number, number], scale?: "linear"|"log", base?: number, ticks?: number[], text?: Function}} view.x  and `view.y` alike
     * @param {{name: string, kind?: "line"|"bars"|"points", points: number[][], color?: string, dash?: string, quiet?: boolean}[]} view.series
     *   bars carry their width as a third number; a quiet series is drawn but not tabulated
     * @param {number} [view.at]  an x to mark with an upright line
     * @param {string} view.sentence  what the picture shows, for those who do not see it
     */
    update({ width, x, y, series, at, sentence }) {
      const right = width - MARGIN.right;
      const floor = height - MARGIN.bottom;
      const X = axis(x, MARGIN.left, right);
      const Y = axis(y, floor, MARGIN.top);
      const ticks = ({ domain, scale, base, ticks: given }, count) => given ?? (scale === "log" ? logTicks(...domain, base, count) : linearTicks(...domain, count));
      const text = (of, value) => (of.text ? of.text(value) : significant(value));
      picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
      picture.setAttribute("width", width);
      picture.setAttribute("height", height);
      picture.setAttribute("font-family", FONT);
      picture.setAttribute("aria-label", `${title}. ${sentence}`);
      picture.replaceChildren(
        ...ticks(y, 4).flatMap((value) => [
          s("line", { class: "attn-grid", x1: MARGIN.left, x2: right, y1: Y(value), y2: Y(value) }),
          s("text", { class: "attn-tick", x: MARGIN.left - 6, y: Y(value) + 4, "text-anchor": "end" }, text(y, value)),
        ]),
        ...ticks(x, Math.max(3, Math.round(width / 90))).flatMap((value) => [
          s("line", { class: "attn-axis", x1: X(value), x2: X(value), y1: floor, y2: floor + 4 }),
          s("text", { class: "attn-tick", x: X(value), y: floor + 17, "text-anchor": "middle" }, text(x, value)),
        ]),
        s("line", { class: "attn-axis", x1: MARGIN.left, x2: right, y1: floor, y2: floor }),
        s("text", { class: "attn-axislabel", x: (MARGIN.left + right) / 2, y: height - 4, "text-anchor": "middle" }, x.label),
        s("text", { class: "attn-axislabel", transform: `translate(11 ${(MARGIN.top + floor) / 2}) rotate(-90)`, "text-anchor": "middle" }, y.label),
        ...(at == null ? [] : [s("line", { class: "attn-mark", x1: X(at), x2: X(at), y1: MARGIN.top, y2: floor })]),
        ...series.flatMap((each, k) => marks(each, k, X, Y, floor)),
      );
      legend(series);
      tabulate(series, x);
    },
  };
}
