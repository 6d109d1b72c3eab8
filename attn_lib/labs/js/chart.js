// A chart: lines, bars and points on two axes, drawn as SVG, with its numbers in a table.
import { FONT, h, panelTitle, s, setText, sym, textWidth } from "./dom.js";
import { significant } from "./numbers.js";

const MARGIN = { top: 12, right: 14, tick: 6, label: 18, floor: 22, below: 16 };
const PICK_PX = 14; // a pointer this near to a point means it
const LABEL_PX = 14; // from one direct label to the next
const COLORS = ["accent", "cool", "violet", "green"]; // with DASHES: no two series differ in colour alone
const DASHES = ["", "6 3", "2 3", "8 3 2 3"];

/** Round steps (1, 2 or 5 times a power of ten) that cut `low … high` into about `count` parts. */
export function linearTicks(low, high, count = 5) {
  if (!(high > low)) return [low];
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, k) =>
    Number(((first + k) * step).toPrecision(12)),
  );
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

/** The value at a share of the way along an axis. */
function unscaled({ scale = "linear", domain: [low, high] }, share) {
  return scale === "log" ? low * (high / low) ** share : low + share * (high - low);
}

/** A label is words, or words and symbols: ["key width ", { sym: "d", sub: "k" }, "∇", { sub: "q" }]. */
const parts = (label) => [label ?? []].flat();
export const inHtml = (label) =>
  parts(label).map((part) =>
    typeof part === "string" ? part : part.sym ? sym(part.sym, part.sub) : h("sub", {}, part.sub),
  );
const inSvg = (label) =>
  parts(label).flatMap(
    (part) =>
      typeof part === "string"
        ? part
        : [
            part.sym && s("tspan", { class: "attn-sym" }, part.sym),
            ...(part.sub ? [s("tspan", { class: "attn-sub", dy: 3 }, part.sub), s("tspan", { dy: -3 }, "\u200b")] : []),
          ], // the last one climbs back
  );
const inWords = (label) =>
  parts(label)
    .map((part) => (typeof part === "string" ? part : `${part.sym ?? ""}${part.sub ? `_${part.sub}` : ""}`))
    .join("");

/** @param {Axis} axis */
const titled = ({ label, bare, untitled }) => label && !bare && !untitled;

/** Move labels apart that would overlap, within `top … bottom`; they keep their order. */
function spread(wanted, top, bottom) {
  const placed = [...wanted].sort((a, b) => a.y - b.y);
  placed.forEach((label, k) => (label.y = Math.max(label.y, k ? placed[k - 1].y + LABEL_PX : top)));
  for (let k = placed.length - 1, low = bottom; k >= 0; k--, low -= LABEL_PX)
    placed[k].y = Math.min(placed[k].y, k === placed.length - 1 ? low : placed[k + 1].y - LABEL_PX);
  return placed;
}

/** The tables of some charts in one disclosure. */
export function theNumbers(charts, signal) {
  const element = h(
    "details",
    { class: "attn-numbers" },
    h("summary", {}, "The numbers"),
    charts.map(({ numbers }) => numbers),
  );
  element.addEventListener("toggle", () => charts.forEach((each) => each.spell(element.open)), { signal });
  return element;
}

/**
 * A text, or its parts: words, and letters of formulas.
 * @typedef {string | (string | object)[]} Words
 */

/**
 * A bare axis has no ticks and no label, an untitled one only no label (the table has it).
 * @typedef {object} Axis
 * @property {Words} [label]
 * @property {[number, number]} domain
 * @property {"linear" | "log"} [scale]
 * @property {number} [base]
 * @property {number[]} [ticks]
 * @property {Function} [text]
 * @property {boolean} [bare]
 * @property {boolean} [untitled]
 */

/**
 * Bars carry their width as a third number; dots are many points in one stroke, round or square; a quiet series is
 * drawn but not tabulated; one with a label is named at its end (an empty one nowhere), the others in a key.
 * @typedef {object} Series
 * @property {string} name
 * @property {"line" | "bars" | "points" | "dots"} [kind]
 * @property {"round" | "square"} [cap]
 * @property {number[][]} points
 * @property {string} [label]
 * @property {string} [color]
 * @property {string} [dash]
 * @property {boolean} [thin]
 * @property {boolean} [quiet]
 * @property {boolean} [dot]
 */

/**
 * A point to name; by default at its left, where there is room.
 * @typedef {object} Note
 * @property {number} x
 * @property {number} y
 * @property {Words} text
 * @property {"left" | "right" | "above" | "beside"} [side]
 * @property {boolean} [ring]
 */

/**
 * @param {object} options
 * @param {string} options.panel  the page contract's name; the table of its numbers carries it
 * @param {Words} options.title
 * @param {number} [options.height]  px
 * @param {(x: number) => void} [options.onDrag]  the mark at `at` is a handle: it was pulled to this x
 * @param {(series: number, point: number, pressed: boolean) => void} [options.onPick]
 *   a point of `dots` came under the pointer, or was pressed; (−1, −1) when none is near
 * @param {AbortSignal} [options.signal]
 * @returns {{element: Element, numbers: Element, spell: Function, update: Function}}
 *   `numbers` is the table, for `theNumbers`
 */
export function chart({ panel, title, height = 220, onDrag, onPick, signal }) {
  const layers = { axes: s("g"), marks: s("g"), present: s("g") };
  const picture = s("svg", { role: "img", class: "attn-chart", "font-family": FONT }, Object.values(layers));
  const head = h("tr");
  const body = h("tbody");
  const numbers = h(
    "div",
    { class: "attn-scroll", tabindex: 0, role: "group", "aria-label": `Numbers: ${inWords(title)}` },
    h("table", { "data-panel": panel }, h("caption", {}, inHtml(title)), h("thead", {}, head), body),
  );
  const key = h("div", { class: "attn-key" });
  const heading = panelTitle(inHtml(title), null, "attn-short");
  const element = h("div", { class: `attn-panel attn-panel-${panel}` }, heading, key, picture);
  let named = "";
  let cells = [];
  let shape = "";
  let drawn = {};
  let spelled = false; // the text of the cells, which costs more than their data-value, waits until it can be seen

  /** The table: one row per x, one column per series; data-value holds y. */
  function tabulate(series, x) {
    const loud = series.filter((each) => !each.quiet);
    const at = [...new Set(loud.flatMap(({ points }) => points.map(([value]) => value)))].sort((a, b) => a - b);
    const needed = `${at.length} ${loud.map(({ name }) => name)}`;
    if (needed !== shape) {
      shape = needed;
      cells = at.map((_, row) => [
        h("th", { scope: "row" }),
        ...loud.map((_, col) => h("td", { "data-row": row, "data-col": col })),
      ]);
      head.replaceChildren(
        h("th", { scope: "col" }, inHtml(x.label)),
        ...loud.map(({ name }) => h("th", { scope: "col" }, name)),
      );
      body.replaceChildren(...cells.map((row) => h("tr", {}, row)));
    }
    const found = loud.map(({ points }) => new Map(points));
    at.forEach((value, row) => {
      write(cells[row][0], value, x.text ?? significant);
      found.forEach((column, col) => write(cells[row][col + 1], column.get(value), significant));
    });
  }

  function write(cell, value, text) {
    if (value == null || Number.isNaN(value)) delete cell.dataset.value;
    else cell.dataset.value = value;
    if (spelled) setText(cell, value == null || Number.isNaN(value) ? "" : text(value));
  }

  function legend(series) {
    const shown = series.map((each, at) => [each, at]).filter(([{ name, label }]) => name && label === undefined);
    const names = String(shown.map(([{ name }]) => name));
    if (names === named) return;
    named = names;
    key.replaceChildren(
      ...shown.map(([each, at]) =>
        h("span", {}, s("svg", { width: 26, height: 8, "aria-hidden": "true" }, swatch(each, at)), each.name),
      ),
    );
    key.hidden = shown.length < 2;
  }
  const color = (each, at) => `attn-c-${each.color ?? COLORS[at % COLORS.length]}`;
  const dash = (each, at) => (each.dash ?? DASHES[at % DASHES.length]) || null;
  const lineClass = (each, at) => `attn-line ${each.thin ? "attn-thin " : ""}${color(each, at)}`;
  const swatch = (each, at) =>
    each.kind === "bars"
      ? s("rect", { x: 4, y: 0, width: 18, height: 8, class: `attn-bars ${color(each, at)}` })
      : each.kind === "dots"
        ? s("path", { d: "M13 4h0", class: `attn-dots ${color(each, at)}`, "stroke-linecap": each.cap ?? "round" })
        : each.kind === "points"
          ? s("circle", { cx: 13, cy: 4, r: 3.5, class: `attn-points ${color(each, at)}` })
          : s("line", { x1: 0, x2: 26, y1: 4, y2: 4, class: lineClass(each, at), "stroke-dasharray": dash(each, at) });

  function marks(each, at, X, Y, floor) {
    const { points, kind = "line" } = each;
    const px = (value) => value.toFixed(2);
    if (kind === "bars") {
      const bar = ([x, y, width]) => {
        const [left, right] = [X(x - width / 2), X(x + width / 2)];
        return y > 0
          ? `M${px(left)} ${px(floor)}V${px(Y(y))}` +
              `H${px(Math.max(left + 0.5, right - (right - left > 4 ? 1 : 0)))}V${px(floor)}Z`
          : "";
      };
      return [s("path", { class: `attn-bars ${color(each, at)}`, d: points.map(bar).join("") })];
    }
    const seen = points.filter(([, y]) => Number.isFinite(y));
    if (kind === "dots")
      return [
        s("path", {
          class: `attn-dots ${color(each, at)}`,
          "stroke-linecap": each.cap ?? "round",
          d: seen.map(([x, y]) => `M${px(X(x))} ${px(Y(y))}h0`).join(""),
        }),
      ];
    if (kind === "points")
      return seen.map(([x, y]) =>
        s("circle", { class: `attn-points ${color(each, at)}`, cx: px(X(x)), cy: px(Y(y)), r: each.radius ?? 3 }),
      );
    const path = seen.map(([x, y], k) => `${k ? "L" : "M"}${px(X(x))} ${px(Y(y))}`).join("");
    return [s("path", { d: path, class: lineClass(each, at), "stroke-dasharray": dash(each, at) })];
  }

  /** The names of series at their last points, moved apart. */
  function directLabels(series, X, Y, floor) {
    const wanted = series
      .map((each, at) => ({ each, at, last: each.points.findLast(([, y]) => Number.isFinite(y)) }))
      .filter(({ each, last }) => each.label && last);
    return spread(
      wanted.map(({ each, at, last }) => ({ each, at, x: X(last[0]) + 7, y: Y(last[1]) + 4 })),
      MARGIN.top + 4,
      floor,
    ).map(({ each, at, x, y }) => s("text", { class: `attn-direct ${color(each, at)}`, x, y }, inSvg(each.label)));
  }

  /**
   * A ringed point and its name, or the name alone.
   * @param {Note} note
   * @param {(x: number) => number} X
   * @param {(y: number) => number} Y
   * @param {number} left  px where the y axis's numbers end
   */
  function note({ x, y, text, side, ring = true }, X, Y, left) {
    side ??= X(x) - left > textWidth([inWords(text)]) + 12 ? "left" : "right";
    /** @type {Record<Note["side"], [number, number, string]>} */
    const offsets = {
      left: [-8, -6, "end"],
      right: [8, 13, "start"],
      above: [0, -10, "middle"],
      beside: [6, 4, "start"],
    };
    const [dx, dy, anchor] = offsets[side];
    return [
      ...(ring ? [s("circle", { class: "attn-ring", cx: X(x), cy: Y(y), r: 4 })] : []),
      s("text", { class: "attn-noted", x: X(x) + dx, y: Y(y) + dy, "text-anchor": anchor }, inSvg(text)),
    ];
  }

  let toX = (px) => px; // from the picture's px to the x axis's values
  if (onDrag) pullable();
  if (onPick) pickable();

  /** The point of a series of dots that is nearest to the pointer, if it is near. */
  function pickable() {
    const near = ({ clientX, clientY }) => {
      const box = picture.getBoundingClientRect();
      let best = { far: PICK_PX, at: [-1, -1] };
      drawn.series?.forEach(({ kind, points }, k) => {
        if (kind !== "dots") return;
        points.forEach(([x, y], i) => {
          const far = Math.hypot(drawn.X(x) - clientX + box.left, drawn.Y(y) - clientY + box.top);
          if (far < best.far) best = { far, at: [k, i] };
        });
      });
      return best.at;
    };
    const listen = (type, run) => picture.addEventListener(type, run, { signal });
    listen("pointermove", (event) => {
      const [k, i] = near(event);
      picture.classList.toggle("attn-pickable", k >= 0);
      onPick(k, i, false);
    });
    listen("pointerleave", () => onPick(-1, -1, false));
    listen("click", (event) => {
      const [k, i] = near(event);
      if (k >= 0) onPick(k, i, true);
    });
  }

  /** The marked x can be pulled: by mouse anywhere, by finger along the axis (up and down scrolls the page). */
  function pullable() {
    picture.classList.add("attn-pullable");
    let pointer = null;
    const pull = ({ clientX }) => onDrag(toX(clientX - picture.getBoundingClientRect().left));
    const listen = (type, run) => picture.addEventListener(type, run, { signal });
    listen("pointerdown", (event) => {
      if (event.button) return;
      pointer = event.pointerId;
      picture.setPointerCapture(pointer);
      if (event.pointerType !== "touch") pull(event);
    });
    listen("pointermove", (event) => {
      if (event.pointerId === pointer) pull(event);
    });
    listen("click", pull); // a tap
    for (const type of ["pointerup", "pointercancel"]) listen(type, () => (pointer = null));
  }

  return {
    element,
    numbers,
    /** Write the table's numbers out, or leave that. */
    spell(on) {
      spelled = on;
      if (on && drawn.series) tabulate(drawn.series, drawn.x);
    },
    /**
     * @param {object} view
     * @param {number} view.width  px
     * @param {Axis} view.x
     * @param {Axis} view.y
     * @param {Series[]} view.series  the same array again means that nothing changed
     * @param {number} [view.at]  an x to mark with an upright line, and with a dot on each line that has a point there
     *   unless its `dot` is false
     * @param {{x: number, text: string}[]} [view.uprights]  more lines to mark, named at the top
     * @param {Note[]} [view.notes]  points to name and ring
     * @param {number} [view.left]  px that the y axis takes, and
     * @param {number} [view.right]  px that names at the right take, for panels that stand above each other
     * @param {string} view.sentence  what the picture shows, for those who do not see it
     */
    update({
      width,
      x,
      y,
      series,
      at,
      uprights = [],
      notes = [],
      left: leastLeft = 0,
      right: leastRight = 0,
      sentence,
    }) {
      /**
       * @param {Axis} axis
       * @param {number} count
       */
      const ticks = ({ domain, scale, base, ticks: given, bare }, count) =>
        bare ? [] : (given ?? (scale === "log" ? logTicks(...domain, base, count) : linearTicks(...domain, count)));
      const text = (of, value) => (of.text ?? significant)(value);
      const yTicks = ticks(y, Math.max(2, Math.round(height / 50)));
      const labelled = series.filter(({ label }) => label).map(({ label }) => inWords(label));
      const left = Math.max(
        leastLeft,
        yTicks.length
          ? textWidth(yTicks.map((value) => text(y, value))) + MARGIN.tick + 2 + (titled(y) ? MARGIN.label : 0)
          : 12,
      );
      const right = width - Math.max(leastRight, labelled.length ? textWidth(labelled) + 10 : MARGIN.right);
      const floor = height - MARGIN.floor - (titled(x) ? MARGIN.below : 0);
      const X = axis(x, left, right);
      const Y = axis(y, floor, MARGIN.top);
      toX = (px) => unscaled(x, Math.min(1, Math.max(0, (px - left) / (right - left))));
      const frame = JSON.stringify([width, left, right, x, y]);
      const moved = frame !== drawn.frame;

      if (moved) {
        for (const [name, value] of [
          ["viewBox", `0 0 ${width} ${height}`],
          ["width", width],
          ["height", height],
        ])
          picture.setAttribute(name, value);
        layers.axes.replaceChildren(
          ...yTicks.flatMap((value) => [
            s("line", { class: "attn-grid", x1: left, x2: right, y1: Y(value), y2: Y(value) }),
            s(
              "text",
              { class: "attn-tick", x: left - MARGIN.tick, y: Y(value) + 4, "text-anchor": "end" },
              text(y, value),
            ),
          ]),
          ...ticks(x, Math.max(3, Math.round((right - left) / 56))).flatMap((value) => [
            s("line", { class: "attn-axis", x1: X(value), x2: X(value), y1: floor, y2: floor + 4 }),
            s("text", { class: "attn-tick", x: X(value), y: floor + 16, "text-anchor": "middle" }, text(x, value)),
          ]),
          s("line", { class: "attn-axis", x1: left, x2: right, y1: floor, y2: floor }),
          ...(titled(x)
            ? [
                s(
                  "text",
                  { class: "attn-axislabel", x: (left + right) / 2, y: height - 4, "text-anchor": "middle" },
                  inSvg(x.label),
                ),
              ]
            : []),
          ...(titled(y)
            ? [
                s(
                  "text",
                  {
                    class: "attn-axislabel",
                    transform: `translate(11 ${(MARGIN.top + floor) / 2}) rotate(-90)`,
                    "text-anchor": "middle",
                  },
                  inSvg(y.label),
                ),
              ]
            : []),
        );
      }
      if (moved || series !== drawn.series) {
        layers.marks.replaceChildren(
          ...series.flatMap((each, k) => marks(each, k, X, Y, floor)),
          ...directLabels(series, X, Y, floor),
        );
        legend(series);
        tabulate(series, x);
      }
      const upright = (value) =>
        s("line", { class: "attn-mark", x1: X(value), x2: X(value), y1: MARGIN.top, y2: floor });
      layers.present.replaceChildren(
        ...uprights.flatMap(({ x: value, text: words }) => [
          upright(value),
          s("text", { class: "attn-tick", x: X(value) + 4, y: MARGIN.top + 4 }, words),
        ]),
        ...(at == null ? [] : [upright(at)]),
        ...(at == null || !onDrag ? [] : [s("circle", { class: "attn-handle", cx: X(at), cy: floor, r: 8 })]),
        ...series.flatMap((each, k) =>
          (each.kind ?? "line") !== "line" || each.dot === false
            ? []
            : each.points
                .filter(([value, height]) => value === at && Number.isFinite(height))
                .map(([value, height]) =>
                  s("circle", { class: `attn-points ${color(each, k)}`, cx: X(value), cy: Y(height), r: 4 }),
                ),
        ),
        ...notes.flatMap((each) => note(each, X, Y, left)),
      );
      picture.setAttribute("aria-label", `${inWords(title)}. ${sentence}`);
      drawn = { frame, series, x, X, Y };
    },
  };
}
