// A heatmap: a real table of values, with its colours and digits drawn on one canvas beneath the transparent cells.
// (Coloured cells with text cost the main thread about five times as much per step of a slider.)
import { colorMap, colorStep } from "./colors.js";
import { FONT, h, setStyle, setText, stillness, textWidth } from "./dom.js";
import { fixed, inCell } from "./numbers.js";

/** Rows or columns; more leave no room for a number. */
export const DIGITS_UP_TO = 12;

const DIGITS_FROM_PX = 20; // a smaller cell neither
const DIGITS_MEASURED_PX = 13.2; // digits of this size are as wide as textWidth says, which measures bold ones
const FORBIDDEN = -1; // in place of a colour step
const LATER = -2;

const TRAVEL_UP_TO = 16; // larger maps cross-fade instead
const TRAVEL_MS = 550;
const SETTLE_MS = 300; // the cells' own text, for screen readers and for copying, follows when a slider rests

const CELL = { least: 22, most: 34, leastWithoutDigits: 14 };
const GAP_PX = 18; // between panels, as in labs.css
const LEAST_ARROW_PX = 44; // of room between panels beside the gap
const MOST_BETWEEN_PX = 130;
const LABEL_GAP_PX = 9; // between a query's label and its row
const LEAST_LABEL_PX = 52; // the corner names both axes
const LEAST_HEADING_PX = 30;
const LEAST_PANEL_PX = 64; // a title over one column

// Drawing on a canvas makes the browser lay out the page at once if anything in it has changed. So maps are painted
// when all elements of the labs have what belongs there: one layout a frame.
const waiting = new Set();

function afterwards(paint) {
  if (!waiting.size)
    queueMicrotask(() => {
      for (const each of waiting) each();
      waiting.clear();
    });
  waiting.add(paint);
}

const plural = (noun) => (noun.endsWith("y") && noun !== "key" ? `${noun.slice(0, -1)}ies` : `${noun}s`);

/**
 * Fit heatmaps with the same rows into a flow: side by side with one column of row labels where there is room, else
 * stacked.
 * @param {HTMLElement} flow  a `div.attn-flow` of heatmaps
 * @param {{width: number, rows: string[], panels: string[][], digits?: boolean, most?: number, spread?: boolean, panel?: number}} content
 *   the labels of the rows, and of each panel's columns; without digits, cells may be smaller; they are `most` px high, and a panel at least `panel` px wide
 * @returns {number} the size of a cell in px
 */
export function fit(
  flow,
  { width, rows, panels, digits = true, most: highest = CELL.most, spread = true, panel = LEAST_PANEL_PX },
) {
  const label = Math.max(LEAST_LABEL_PX, Math.ceil(textWidth(rows)) + LABEL_GAP_PX);
  const most = Math.max(...panels.map((columns) => columns.length));
  const least = !digits || Math.max(most, rows.length) > DIGITS_UP_TO ? CELL.leastWithoutDigits : CELL.least;
  const together = (cell) =>
    panels.reduce((sum, columns) => sum + Math.max(columns.length * cell, panel), label + (panels.length - 1) * GAP_PX);
  const beside = together(least) <= width;
  let cell = highest;
  while (cell > Math.min(least, highest) && (beside ? together(cell) : label + most * cell) > width) cell--;
  flow.classList.toggle("attn-beside", beside);
  // what is left over parts the panels, and arrows from one to the next stand there
  const room = spread ? (width - together(cell)) / Math.max(1, panels.length - 1) : 0;
  setStyle(flow, "--between", `${beside ? GAP_PX + Math.min(MOST_BETWEEN_PX, Math.max(0, Math.floor(room))) : 0}px`);
  flow.classList.toggle("attn-parted", beside && room >= LEAST_ARROW_PX);
  measure(flow, cell, label, Math.max(...panels.map((columns) => textWidth(columns))));
  return cell;
}

function measure(flow, cell, label, heading) {
  setStyle(flow, "--cell", `${cell}px`);
  setStyle(flow, "--label", `${label}px`);
  setStyle(
    flow,
    "--heading",
    `${heading > cell - 2 ? Math.max(LEAST_HEADING_PX, Math.ceil(heading)) : LEAST_HEADING_PX}px`,
  );
}

/**
 * Fit many heatmaps with the same rows and columns into few lines of a flow, the first of each line with the row
 * labels: with digits where that takes no more than `lines` lines, else as small as need be.
 * @param {HTMLElement} flow  a `div.attn-flow` of heatmaps
 * @param {{width: number, rows: string[], cols: string[], titles: string[], lines: number, most?: number}} content
 *   with what stands above each
 * @returns {number} the size of a cell in px
 */
export function fitMultiples(flow, { width, rows, cols, titles, lines, most = CELL.most }) {
  const panels = [...flow.children];
  const label = Math.max(LEAST_LABEL_PX, Math.ceil(textWidth(rows)) + LABEL_GAP_PX);
  const title = Math.ceil(textWidth(titles));
  const abreast = (cell) =>
    Math.max(1, Math.floor((width - label + GAP_PX) / (Math.max(cols.length * cell, title) + GAP_PX)));
  const needed = (cell) => Math.ceil(panels.length / abreast(cell));
  const small = needed(CELL.least) > lines;
  const fewest = needed(small ? CELL.leastWithoutDigits : CELL.least);
  let cell = small ? DIGITS_FROM_PX - 1 : most;
  while (cell > CELL.leastWithoutDigits && (needed(cell) > fewest || label + cols.length * cell > width)) cell--;
  panels.forEach((panel, at) => panel.classList.toggle("attn-follower", at % abreast(cell) > 0));
  measure(flow, cell, label, textWidth(cols));
  return cell;
}

/**
 * What a map shows: a `plain` one has no digits; weights end at `limit`, by default 1; cells that are `later` are not
 * shown yet; `cuts` part blocks above a row or left of a column.
 * @typedef {object} View
 * @property {Float64Array} values
 * @property {number} n
 * @property {number} m
 * @property {string[]} rows
 * @property {string[]} cols
 * @property {any[]} rowIds
 * @property {any[]} colIds
 * @property {number} current
 * @property {number} [limit]
 * @property {"light" | "dark"} theme
 * @property {number} cell
 * @property {() => (Node | string)[]} formula
 * @property {any} [formulaKey]
 * @property {boolean[]} [forbidden]
 * @property {boolean[]} [later]
 * @property {boolean} [plain]
 * @property {string} sentence
 * @property {{rows?: number[], cols?: number[]}} [cuts]
 * @property {{kind: "box" | "word", row: number, col: number, rows: number, cols: number, word?: string}[]} [boxes]
 */

/**
 * @param {object} options
 * @param {string} options.panel  the page contract's name: "scores", "weights", "output"
 * @param {"scores"|"weights"|"outputs"} options.kind  which colour map
 * @param {string} options.title  the words above it
 * @param {string} [options.unit]  what a column is: "key", "coordinate"
 * @param {string} [options.rowUnit]  what a row is
 * @param {string} [options.corner]  the unit, short enough for the corner of the table
 * @param {string} [options.arrow]  what leads from the panel before to this one, along the current row
 * @param {object} [options.attributes]  more attributes of the table
 * @param {number} [options.digits]  decimals in a cell
 * @param {(row: number, col: number) => void} [options.onCell]
 *   a cell came under pointer or focus; (-1, -1) when it left
 * @param {(row: number, col: number) => void} [options.onRow]  a row was chosen, by this cell of it
 * @param {(row: number, col: number, first: boolean) => void} [options.onPaint]
 *   a cell was pressed, or the pressed pointer came over it; then only a row's name chooses the row
 * @param {AbortSignal} options.signal
 */
export function heatmap({
  panel,
  kind,
  title,
  unit = "key",
  rowUnit = "query",
  corner = unit,
  arrow = "",
  attributes = {},
  digits = 2,
  onCell = () => {},
  onRow = () => {},
  onPaint,
  signal,
}) {
  const heading = h("b", {}, title);
  const formula = h("span", { class: "attn-formula" });
  const canvas = h("canvas", { "aria-hidden": "true" });
  const frame = h("div", { class: "attn-frame" });
  const leading = arrow ? h("div", { class: "attn-arrow", "aria-hidden": "true" }, h("span", {}, arrow)) : null;
  const overlay = h("div", { class: "attn-overlay" });
  const lit = h("div", { class: "attn-lit", hidden: true });
  const caption = h("caption", { class: "attn-sr" });
  const head = h("thead");
  const body = h("tbody");
  const table = h("table", { "data-panel": panel, ...attributes }, caption, head, body);
  const low = h("span");
  const high = h("span");
  const ramp = h("b");
  const element = h(
    "div",
    { class: `attn-panel attn-panel-${panel}` },
    leading,
    h("div", { class: "attn-panel-title" }, heading, formula),
    h("div", { class: "attn-scroll" }, table),
    h("div", { class: "attn-bar", "aria-hidden": "true" }, low, ramp, high),
  );
  const pen = canvas.getContext("2d");
  const swatch = h("canvas");

  let view = null; // what update() was last given
  let cells = []; // per cell: its td
  let shown = null; // per cell: its value
  let steps = null; // per cell: its colour step, or -1 where forbidden
  let settling = 0;
  let motion = 0; // the running animation frame
  let painted = ""; // how the cells were last drawn
  let laid = ""; // what the overlay shows
  let place = null; // where each row and column is drawn now: ids to fractional positions

  function build({ n, m }) {
    const axes = h("span", { class: "attn-axes" }, h("span", {}, `${corner} →`), h("span", {}, `${rowUnit} ↓`));
    const origin = h(
      "td",
      { class: "attn-corner" },
      axes,
      canvas,
      overlay,
      frame,
      h("div", { class: "attn-overlay" }, lit),
    );
    head.replaceChildren(
      h(
        "tr",
        {},
        origin,
        Array.from({ length: m }, () => h("th", { scope: "col" }, h("span"))),
      ),
    );
    cells = [];
    body.replaceChildren(
      ...Array.from({ length: n }, (_, row) => {
        const tr = h("tr", {}, h("th", { scope: "row" }, h("span")));
        for (let col = 0; col < m; col++) {
          const td = h("td", { "data-row": row, "data-col": col, tabindex: row || col ? -1 : 0 });
          cells.push(td);
          tr.append(td);
        }
        return tr;
      }),
    );
    shown = new Float64Array(n * m).fill(NaN);
    steps = new Int16Array(n * m);
    setStyle(table, "--columns", m);
    setStyle(table, "--rows", n);
    label();
  }
  const label = () =>
    table.setAttribute("aria-label", `${title}: rows are ${plural(rowUnit)}, columns are ${plural(unit)}`);

  function relabel({ rows, cols, current }) {
    [...head.rows[0].cells].slice(1).forEach((th, col) => setText(th.firstChild, cols[col]));
    [...body.rows].forEach((tr, row) => {
      setText(tr.cells[0].firstChild, rows[row]);
      tr.classList.toggle("attn-current", row === current);
    });
  }

  const few = () => Math.max(view.n, view.m) <= DIGITS_UP_TO;
  const withDigits = () => few() && !view.plain && view.cell >= DIGITS_FROM_PX;
  const text = (at) => (steps[at] < 0 ? "" : inCell(view.values[at], digits));

  const kinds = { [FORBIDDEN]: "attn-forbidden", [LATER]: "attn-later" };

  /**
   * Give every cell its value and colour; true if any has another one.
   * @param {View} view
   */
  function fill({ values, limit, forbidden, later }) {
    let changed = false;
    for (let at = 0; at < cells.length; at++) {
      const value = values[at];
      const step = forbidden?.[at] ? FORBIDDEN : later?.[at] ? LATER : colorStep(kind, value, limit);
      if (step !== steps[at] && (step < 0 || steps[at] < 0)) cells[at].className = kinds[step] ?? "";
      if (step !== steps[at] || value !== shown[at]) changed = true;
      steps[at] = step;
      if (value !== shown[at]) cells[at].setAttribute("data-value", (shown[at] = value));
    }
    clearTimeout(settling);
    if (withDigits()) settling = setTimeout(() => cells.forEach((td, at) => setText(td, text(at))), SETTLE_MS);
    else if (cells[0]?.textContent) cells.forEach((td) => setText(td, ""));
    return changed;
  }

  /**
   * Part blocks of cells by wider gaps, frame some, and write a word over others.
   * @param {View} view
   */
  function lay({ n, m, cuts = {}, boxes = [] }) {
    /** @type {{kind: string, row: number, col: number, rows: number, cols: number, word?: string}[]} */
    const parts = [
      ...(cuts.rows ?? []).map((row) => ({ kind: "cut", row, col: 0, rows: 0, cols: m })),
      ...(cuts.cols ?? []).map((col) => ({ kind: "cut", row: 0, col, rows: n, cols: 0 })),
      ...boxes,
    ];
    const said = JSON.stringify(parts);
    if (said === laid) return;
    laid = said;
    overlay.replaceChildren(
      ...parts.map(({ kind, row, col, rows, cols, word }) =>
        h("div", { class: `attn-${kind}`, style: `--row:${row};--col:${col};--high:${rows};--wide:${cols}` }, word),
      ),
    );
  }

  /** Draw every cell where its row and column are now, on a canvas as fine as the screen. */
  function paint() {
    const { n, m, cell, theme, rowIds, colIds } = view;
    const { css, dark } = colorMap(theme, kind);
    const dense = window.devicePixelRatio || 1;
    const px = Math.round(cell * dense);
    if (canvas.width !== m * px) canvas.width = m * px;
    if (canvas.height !== n * px) canvas.height = n * px;
    pen.clearRect(0, 0, canvas.width, canvas.height);
    const gap = Math.max(1, Math.round(dense));
    const xs = colIds.map((id) => Math.round(place.cols.get(id) * px));
    const ys = rowIds.map((id) => Math.round(place.rows.get(id) * px));
    if (motion) {
      for (let at = 0; at < steps.length; at++) {
        if (steps[at] < 0) continue; // the cell's own hatching or shade shows
        pen.fillStyle = css[steps[at]];
        pen.fillRect(xs[at % m], ys[(at / m) | 0], px - gap, px - gap);
      }
    } else {
      // at rest: one pixel a cell, enlarged in one go, then the gaps; a third of the time of many rectangles
      paintPixels(swatch);
      pen.imageSmoothingEnabled = false;
      pen.drawImage(swatch, 0, 0, canvas.width, canvas.height);
      pen.globalCompositeOperation = "destination-out";
      pen.beginPath();
      for (const x of xs) pen.rect(x + px - gap, 0, gap, canvas.height);
      for (const y of ys) pen.rect(0, y + px - gap, canvas.width, gap);
      pen.fill();
      pen.globalCompositeOperation = "source-over";
    }
    if (withDigits()) {
      const texts = Array.from(steps, (_, at) => text(at));
      const size = Math.min(11.2, cell * 0.41, ((cell - 2) / textWidth(texts)) * DIGITS_MEASURED_PX);
      pen.font = `${size * dense}px ${FONT}`;
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      for (const black of [true, false]) {
        pen.fillStyle = black ? "#000" : "#fff";
        for (let at = 0; at < steps.length; at++)
          if (steps[at] >= 0 && dark[steps[at]] === black)
            pen.fillText(texts[at], xs[at % m] + (px - gap) / 2, ys[(at / m) | 0] + px * 0.52);
      }
    }
  }

  /** Draw one pixel a cell, to be enlarged: what a large map can afford at every step. */
  function paintPixels(target) {
    const { n, m, theme } = view;
    const { colors } = colorMap(theme, kind);
    const image = new ImageData(m, n);
    for (let at = 0; at < steps.length; at++) if (steps[at] >= 0) image.data.set(colors[steps[at]], at * 4);
    if (target.width !== m) target.width = m;
    if (target.height !== n) target.height = n;
    target.getContext("2d").putImageData(image, 0, 0);
  }

  /** Let rows and columns travel from where they are drawn to where they now belong. */
  function travel(from) {
    cancelAnimationFrame(motion);
    const { rowIds, colIds, cell } = view;
    const between = (ids, old) => ids.map((id, to) => [id, old.get(id) ?? to, to]);
    const rows = between(rowIds, from.rows);
    const cols = between(colIds, from.cols);
    const options = { duration: TRAVEL_MS, easing: "ease-in-out" };
    cols.forEach(
      ([, start, end]) =>
        start !== end &&
        head.rows[0].cells[end + 1].animate(
          [{ transform: `translateX(${(start - end) * cell}px)` }, { transform: "none" }],
          options,
        ),
    );
    rows.forEach(
      ([, start, end]) =>
        start !== end &&
        body.rows[end].cells[0].animate(
          [{ transform: `translateY(${(start - end) * cell}px)` }, { transform: "none" }],
          options,
        ),
    );
    element.classList.add("attn-moving");
    canvas.classList.remove("attn-pixels");
    const started = performance.now();
    const tick = (now) => {
      const t = Math.min(1, Math.max(0, (now - started) / TRAVEL_MS));
      const eased = t < 0.5 ? 2 * t * t : 1 - 2 * (1 - t) ** 2;
      const at = (list) => new Map(list.map(([id, start, end]) => [id, start + (end - start) * eased]));
      place = { rows: at(rows), cols: at(cols) };
      if (t < 1) {
        motion = requestAnimationFrame(tick);
        paint();
      } else settle();
    };
    tick(started);
  }

  const settled = ({ rowIds, colIds }) => ({
    rows: new Map(rowIds.map((id, at) => [id, at])),
    cols: new Map(colIds.map((id, at) => [id, at])),
  });

  function settle() {
    cancelAnimationFrame(motion);
    motion = 0;
    place = settled(view);
    element.classList.remove("attn-moving");
    canvas.classList.toggle("attn-pixels", !few());
    const px = few() ? Math.round(view.cell * (window.devicePixelRatio || 1)) : 1;
    if (canvas.width !== view.m * px) canvas.width = view.m * px;
    if (canvas.height !== view.n * px) canvas.height = view.n * px;
    afterwards(picture);
  }

  const picture = () => (few() ? paint() : paintPixels(canvas));

  /** @returns {[number, number] | null} */
  const find = (target) => {
    /** @type {HTMLElement} */
    const td = target instanceof Element && target.closest("td[data-row]");
    return td ? [Number(td.dataset.row), Number(td.dataset.col)] : null;
  };
  const at = (row, col) => cells[row * view.m + col];
  const listen = (type, listener) => table.addEventListener(type, listener, { signal });
  for (const type of ["pointerover", "focusin"])
    listen(type, ({ target }) => {
      const cell = find(target);
      if (cell) onCell(...cell);
    });
  for (const type of ["pointerleave", "focusout"]) listen(type, () => onCell(-1, -1));
  const press = ([row, col]) => (onPaint ? onPaint(row, col, true) : onRow(row, col));
  listen("click", (event) => {
    const cell = find(event.target);
    const name = event.target instanceof Element && event.target.closest('th[scope="row"]');
    if (name) onRow(name.parentElement.sectionRowIndex, -1);
    // a mouse has painted already when it was pressed; a finger that scrolls paints nothing
    else if (cell && !(onPaint && event.pointerType === "mouse")) press(cell);
  });
  if (onPaint) paintable();

  /** A mouse that is pressed paints the cells it comes over. */
  function paintable() {
    listen("pointerdown", (event) => {
      const cell = find(event.target);
      if (!cell || event.button || event.pointerType !== "mouse") return;
      event.preventDefault();
      press(cell);
    });
    listen("pointerover", (event) => {
      const cell = find(event.target);
      if (cell && event.buttons === 1 && event.pointerType === "mouse") onPaint(...cell, false);
    });
  }
  listen("keydown", (event) => {
    const cell = find(event.target);
    if (!cell) return;
    const [row, col] = cell;
    const moves = {
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
      Home: [0, -col],
      End: [0, view.m - 1 - col],
    };
    if (event.key === "Enter" || event.key === " ") press(cell);
    else if (moves[event.key]) {
      const [down, right] = moves[event.key];
      const next = col + right >= 0 && col + right < view.m ? at(row + down, col + right) : null;
      if (next) {
        event.target.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
      }
    } else return;
    event.preventDefault();
  });

  signal.addEventListener("abort", () => {
    cancelAnimationFrame(motion);
    clearTimeout(settling);
  });

  return {
    element,
    /**
     * Show `values` (n×m). `rowIds` and `colIds` name what each row and column stands for: when their order
     * changes, the cells travel.
     * @param {View} next
     */
    update(next) {
      const previous = view;
      view = next;
      const resized = !previous || previous.n !== next.n || previous.m !== next.m;
      if (resized) build(next);
      relabel(next);
      const look = [next.theme, next.cell, next.plain, window.devicePixelRatio].join();
      const stale = fill(next) || resized || look !== painted;
      painted = look;
      lay(next);
      element.classList.toggle("attn-turned", textWidth(next.cols) > next.cell - 2);
      frame.hidden = next.current < 0;
      for (const part of [frame, leading]) if (part) setStyle(part, "--row", next.current);
      if (leading) leading.hidden = next.current < 0;
      setText(caption, next.sentence);
      if (!previous || previous.formulaKey !== next.formulaKey) formula.replaceChildren(...next.formula());
      const ends = (value = 1) => fixed(value, Math.abs(value) < 1 ? 2 : 0);
      const beyond = next.values.reduce(
        (count, value) => count + Number(Math.abs(value) > (next.limit ?? 1) * (1 + 1e-9) && value !== -Infinity),
        0,
      );
      setText(low, kind === "weights" ? "0" : ends(-next.limit));
      setText(high, `${ends(next.limit)}${beyond ? ` (${beyond} beyond)` : ""}`);
      setStyle(ramp, "background-image", colorMap(next.theme, kind).ramp);
      const reordered = !resized && String([previous.rowIds, previous.colIds]) !== String([next.rowIds, next.colIds]);
      if (reordered && !stillness() && Math.max(next.n, next.m) <= TRAVEL_UP_TO) travel(place);
      else if (resized || reordered || (stale && !motion)) settle(); // else the running motion draws the new values
      if (reordered && Math.max(next.n, next.m) > TRAVEL_UP_TO && !stillness())
        canvas.animate([{ opacity: 0.2 }, { opacity: 1 }], TRAVEL_MS);
    },
    /** Let one cell stand out, as long as the same pair does elsewhere; −1 for none. */
    light(row, col) {
      lit.hidden = row < 0 || !view || col >= view.m || row >= view.n;
      setStyle(lit, "--row", row);
      setStyle(lit, "--col", col);
    },
    /** Give it another title. */
    rename(words) {
      if (words === title) return;
      setText(heading, (title = words));
      label();
    },
  };
}
